// `npm run check`: what somebody runs after each change of a line.
import { build } from './build.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { exit, fail, run, seconds } from './run.mjs';
import { ensure } from './setup.mjs';

const HELP = 'npm run check   format, lints, types, unit tests and 2,000 schedules: under 90 s after a change of one file';

const cargo = (label, args, more = {}) => run(label, 'cargo', args, { env: { ...process.env, CARGO_TARGET_DIR: inRoot('target'), ...more } });
const FEW = { EDGELECT_SCHEDULES: '2000', EDGELECT_STORE_SCHEDULES: '200' };

async function main(args) {
  if (args.length > 0) {
    console.log(HELP);
    return args.every((arg) => ['--help', '-h'].includes(arg)) ? 0 : 1;
  }
  const startMs = Date.now();
  await ensure(['bindgen', 'packages']);
  await cargo('The format', ['fmt', '--all', '--check'], {});
  await cargo('The lints', ['clippy', '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings']);
  await cargo('The unit tests and 2,000 schedules', ['test', '--locked', '--lib', '--test', 'simulation', '--test', 'layers'], FEW);
  // The types name those of the wasm.
  await build(['npm']);
  await run('The types', NODE_24, [inRoot('node_modules/typescript/bin/tsc'), '--noEmit', '-p', 'js/tsconfig.json']);
  console.log(`All is well, in ${seconds(Date.now() - startMs)}. \`npm test\` runs the rest.`);
  return 0;
}

main(process.argv.slice(2)).then(exit, fail);
