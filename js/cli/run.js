// `edgelect run`: a command that runs only while this machine leads.
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, commandOf } from './command.js';
import { Runner } from './runner.js';

const PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** With -n: how long a lease that is about to end, and a store that is slow, are waited for. */
const MOMENT_MS = 1_000;
const PATIENCE_MS = 10_000;
/** A longer timer of JavaScript fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const run = () => commandOf('run').action(async (command, flags) => {
  const { wait, nonblock = wait === 0 } = flags;
  process.exitCode = await Runner.exitCode(command, { ...flags, nonblock, name: 'run' }, (runner) => campaign(runner, { ...flags, nonblock }));
});

async function campaign(runner, { wait: given, nonblock, restart, conflictExitCode = EXIT.conflict }) {
  const wait = nonblock ? given || PATIENCE_MS : given;
  const { elector, signal } = runner;
  const giveUp = () => {
    const { error, waiting } = elector.status();
    if (error) runner.tellError(error);
    // That nobody leads the exit code does not tell.
    else if (waiting && waiting.reason !== 'lease') runner.tellWaiting(waiting);
    runner.end(error ? EXIT.failed : conflictExitCode);
  };
  let timer;
  const waits = (leftMs) => {
    const ms = Math.min(leftMs, LONGEST_TIMER_MS);
    timer = setTimeout(() => (leftMs > ms ? waits(leftMs - ms) : giveUp()), ms);
  };
  if (wait !== undefined) waits(wait);
  if (nonblock) {
    runner.onError = giveUp;
    runner.onStatus = ({ waiting }) => {
      // Where nobody has written anything yet, the next call has to find that this one has.
      const isLong = waiting?.untilMs === null ? waiting.reason !== 'grace' : waiting?.untilMs > Date.now() + MOMENT_MS;
      if (waiting && waiting.reason !== 'store' && isLong) giveUp();
    };
  }
  const work = async (term) => {
    clearTimeout(timer);
    // Who has begun waits for the store and for the next term.
    [runner.onStatus, runner.onError] = [() => {}, () => {}];
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const ended = await runner.run(term);
      if (!ended) return;
      if (!restart || !ended.started || ended.code === 0) return runner.end(ended.code);
      // The signal of this work fires when either ends.
      await sleep(pauseMs, undefined, { signal: term.signal }).catch(() => {});
      if (term.signal.aborted) return;
    }
  };
  try {
    await elector.lead(work, { signal });
  } finally {
    clearTimeout(timer);
  }
}
