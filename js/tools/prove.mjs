// `npm run prove`: the long run of the simulator, the table of planted bugs, the model checker. Everything but the
// compiler's flags is in examples/prove, tests/model and, for seeds of the npm package, tests/faces.
import { endOf, spawnKept } from './cleanup.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { exit, fail } from './run.mjs';
import { ensure } from './setup.mjs';

async function main(args) {
  await ensure(['rust']);
  if (args[0] === 'model' && !args.includes('--help')) {
    const long = args.includes('--long') ? { EDGELECT_MODEL: 'long' } : {};
    return cargo(['test', '--quiet', '--locked', '--test', 'model', '--', '--nocapture'], long);
  }
  const faces = args.some((arg) => arg.includes('faces:'));
  if (faces) return endOf(spawnKept(process.execPath, ['tests/faces/run.mjs', ...args], { cwd: ROOT, stdio: 'inherit' }));
  const run = ['run', '--quiet', '--locked', '--example', 'prove', '--', ...args];
  return cargo(run, {});
}

async function cargo(args, more) {
  const env = { ...process.env, CARGO_TARGET_DIR: inRoot('target'), ...more };
  const code = await endOf(spawnKept('cargo', args, { cwd: ROOT, env, stdio: 'inherit' }));
  return Number.isInteger(code) ? code : 1;
}

main(process.argv.slice(2)).then(exit, fail);
