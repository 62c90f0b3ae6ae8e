// `npm run scale`: groups of up to 100,000 followers, simulated. Everything is in examples/scale.
import { endOf, spawnKept } from './cleanup.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { exit, fail } from './run.mjs';
import { ensure } from './setup.mjs';

async function main(args) {
  await ensure(['rust']);
  const run = ['run', '--quiet', '--locked', '--example', 'scale', '--', ...args];
  const env = { ...process.env, CARGO_TARGET_DIR: inRoot('target') };
  const code = await endOf(spawnKept('cargo', run, { cwd: ROOT, env, stdio: 'inherit' }));
  return Number.isInteger(code) ? code : 1;
}

main(process.argv.slice(2)).then(exit, fail);
