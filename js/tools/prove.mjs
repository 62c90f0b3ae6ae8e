// `npm run prove`: the long run of the simulator; everything but the compiler is in examples/prove.
import { spawnKept } from './cleanup.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { fail } from './run.mjs';
import { ensure } from './setup.mjs';

async function main(args) {
  await ensure({ node24: false, seaweed: false });
  const cargo = ['run', '--quiet', '--locked', '--example', 'prove', '--', ...args];
  const env = { ...process.env, CARGO_TARGET_DIR: inRoot('target') };
  const child = spawnKept('cargo', cargo, { cwd: ROOT, env, stdio: 'inherit' });
  const [code] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...end) => resolve(end));
  });
  return code ?? 1;
}

main(process.argv.slice(2)).then((code) => process.exit(code), fail);
