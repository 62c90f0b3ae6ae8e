// `npm test`: all that CI runs, on a machine that may be bare.
import fs from 'node:fs';
import { parsed, say } from './command.mjs';
import { inRoot } from './paths.mjs';
import { PlainError, exit, fail } from './run.mjs';
import { EVERYTHING, ensure } from './setup.mjs';

const HELP = `npm test                   runs every step, computing and waiting side by side, and stops at the first that fails
npm test -- --keep-going   goes on after a failure
npm test -- --only NAME    runs one step and shows what it says; repeat it for more
npm test -- --list         lists the steps
What each step said is kept in build/test/NAME.log.`;

const TICKS_A_SECOND = 100;

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  list: { type: 'boolean' },
  'keep-going': { type: 'boolean' },
  only: { type: 'string', multiple: true },
  // One step in a process of its own, for the lanes.
  step: { type: 'string' },
};

/** The processor time of all that this process has waited for: Linux tells it, and Node does not. */
function tellProcessor() {
  if (!fs.existsSync('/proc/self/stat')) return;
  const fields = fs.readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
  console.log(`processor: ${(ticks / TICKS_A_SECOND).toFixed(0)} s`);
}

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  const { STEPS } = await import('./steps.mjs');
  if (values.list) return say(STEPS.map(({ name, what }) => `${name.padEnd(18)}${what}`).join('\n'));
  const only = values.only ?? STEPS.map(({ name }) => name);
  const wrong = [...only, ...[values.step ?? []].flat()].find((name) => !STEPS.some((step) => step.name === name));
  if (wrong !== undefined) throw new PlainError(`there is no step ${wrong}; see npm test -- --list\n${HELP}`);
  const stepOf = (name) => STEPS.find((step) => step.name === name);
  if (values.step !== undefined) return stepOf(values.step).run().finally(tellProcessor).then(() => 0);
  // The step that needs the runner compiles it.
  await ensure(EVERYTHING.filter((name) => name !== 'runner'));
  const { newRecord } = await import('./outcomes.mjs');
  newRecord(inRoot('build/test-outcomes.jsonl'));
  if (only.length === 1) return stepOf(only[0]).run().then(() => 0);
  const { runLanes } = await import('./lanes.mjs');
  const { withSharedStore } = await import('./seaweed.mjs');
  const steps = STEPS.filter(({ name }) => only.includes(name));
  return withSharedStore((env) => runLanes(steps, { keepGoing: values['keep-going'], env: { ...process.env, ...env } }));
}

main(process.argv.slice(2)).then(exit, fail);
