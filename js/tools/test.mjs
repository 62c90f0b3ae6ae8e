// `npm test`: all that CI runs, step by step, on a machine that may be bare.
import { fail } from './run.mjs';
import { EVERYTHING, ensure } from './setup.mjs';

const HELP = `npm test                   runs every step and stops at the first that fails
npm test -- --keep-going   goes on after a failure
npm test -- --only NAME    runs one step; repeat it for more
npm test -- --list         lists the steps`;

async function main(args) {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const { STEPS, runSteps } = await import('./steps.mjs');
  if (args.includes('--list')) {
    console.log(STEPS.map(({ name, what }) => `${name.padEnd(12)}${what}`).join('\n'));
    return 0;
  }
  const only = args.flatMap((arg, index) => (arg === '--only' ? [args[index + 1]] : []));
  const wrong = args.find((arg, index) => !['--keep-going', '--only'].includes(arg) && args[index - 1] !== '--only')
    ?? only.find((name) => !STEPS.some((step) => step.name === name));
  if (wrong !== undefined || only.includes(undefined)) {
    console.error(`edgelect: there is no option or step ${wrong ?? 'after --only'}; see npm test -- --list\n${HELP}`);
    return 1;
  }
  // The step that needs the runner compiles it.
  await ensure(EVERYTHING.filter((name) => name !== 'runner'));
  return runSteps(STEPS.filter(({ name }) => only.length === 0 || only.includes(name)), { keepGoing: args.includes('--keep-going') });
}

main(process.argv.slice(2)).then((code) => process.exit(code), fail);
