// `edgelect slot`: a command that one of many machines runs in each period.
import { EXIT, commandOf } from './command.js';
import { Runner } from './runner.js';
import { codeOf, exitOf } from './store.js';

const NEW_GROUP = /^the lease object is new/;

/** Variables of a Worker's job, which would be set for nothing. */
const OF_WORKERS = {
  EDGELECT_POLICY: 'use --policy', EDGELECT_MISSED: 'use --missed', EDGELECT_PERIOD: 'use --period', EDGELECT_BUDGET: 'use --budget',
  EDGELECT_ATTEMPTS: 'a slot is given up after three failures',
};

export const slot = () => commandOf('slot').action(async (command, flags) => {
  const ignored = Object.keys(OF_WORKERS).find((name) => process.env[name]);
  if (ignored) {
    process.exitCode = codeOf(Object.assign(new Error(`${ignored}: only Workers read it; ${OF_WORKERS[ignored]}`), { code: 'EDGELECT_CONFIG' }), 'slot');
    return;
  }
  process.exitCode = await Runner.exitCode(command, { ...flags, name: 'slot' }, (runner) => take(runner, flags));
});

async function take(runner, { period, policy, missed, budget, conflictExitCode = EXIT.conflict }) {
  const { elector, signal } = runner;
  /** The exit code of the command that failed last. */
  let failed;
  const job = async (term) => {
    const ended = await runner.run(term, new Date(term.slot).toISOString());
    if (ended?.code === 0) return;
    failed = ended?.code;
    throw new Error('the command has failed');
  };
  const { outcome, reason, slot: own, runs, fault } = await elector.runScheduled(null, job, { period, policy, missed, budget, signal });
  const busy = fault ? exitOf(fault) : conflictExitCode;
  const skipped = NEW_GROUP.test(reason) ? EXIT.nobody : busy;
  // A slot of before that was not done is told, whatever became of the newest.
  const undone = runs.findLast((run) => run.outcome !== 'done')?.outcome ?? outcome;
  const codes = { done: EXIT.done, taken: EXIT.done, failed, lost: EXIT.lost, skipped, unknown: EXIT.failed };
  const which = runs.length === 0 ? '' : ` for the slot of ${new Date(own).toISOString()}`;
  const unrun = reason && outcome !== 'taken' ? `the command did not run${which}: ${reason}` : undefined;
  const untold = outcome === 'done' && fault ? `the command has run, but nobody knows whether the store has recorded that; with atLeastOnce it may run again: ${fault.message}` : undefined;
  runner.tell('over', { outcome }, unrun ?? untold);
  runner.end(codes[undone]);
}
