// `edgelect slot`: a command that one of many machines runs in each period.
import { EXIT, commandOf } from './command.js';
import { Runner } from './runner.js';

const NEW_GROUP = /^the lease object is new/;

export const slot = () => commandOf('slot').action(async (command, flags) => {
  process.exitCode = await Runner.exitCode(command, { ...flags, name: 'slot' }, (runner) => take(runner, flags));
});

async function take(runner, { period, policy, missed, budget, conflictExitCode = EXIT.conflict }) {
  const { elector, signal } = runner;
  let ended;
  const job = async (term) => {
    ended = await runner.run(term, new Date(term.slot).toISOString());
    if (ended?.code !== 0) throw new Error('the command has failed');
  };
  const { outcome, reason, fault } = await elector.runScheduled(null, job, { period, policy, missed, budget, signal });
  const busy = fault ? EXIT.failed : conflictExitCode;
  const skipped = NEW_GROUP.test(reason) ? EXIT.nobody : busy;
  const codes = { done: EXIT.done, taken: EXIT.done, failed: ended?.code, lost: EXIT.lost, skipped, unknown: EXIT.failed };
  runner.tell('over', { outcome }, reason && outcome !== 'taken' ? `the command did not run: ${reason}` : undefined);
  runner.end(codes[outcome]);
}
