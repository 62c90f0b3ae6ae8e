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
  let watched;
  let looks;
  const waits = (leftMs) => {
    clearTimeout(timer);
    const ms = Math.min(leftMs, LONGEST_TIMER_MS);
    timer = setTimeout(() => (leftMs > ms ? waits(leftMs - ms) : giveUp()), ms);
  };
  if (wait !== undefined) waits(wait);
  if (nonblock) {
    runner.onError = giveUp;
    runner.onStatus = ({ waiting, renewedMs, leaseMs }) => {
      const { leaderTimeout, maxLease, storeSkew, requestTimeout } = elector.config;
      const isOver = renewedMs !== null && Date.now() > renewedMs + (leaseMs ?? leaderTimeout) + storeSkew;
      if (isOver && !watched) {
        // Where no clock of the store's proves that, it is watched for its whole length, or no call would ever lead.
        watched = { renewedMs };
        waits(2 * (maxLease + storeSkew + 4 * requestTimeout) + PATIENCE_MS);
        looks = setInterval(() => runner.onStatus(elector.status()), MOMENT_MS);
      }
      // One that is renewed meanwhile is not over: a clock is wrong.
      const seemsOver = isOver && watched.renewedMs === renewedMs;
      const isLate = waiting?.untilMs > Date.now() + MOMENT_MS;
      const isLong = {
        store: false,
        lease: !seemsOver && (waiting?.untilMs === null || isLate),
        // Where nobody has written anything yet, the next call has to find that this one has.
        grace: !watched && isLate,
      }[waiting?.reason] ?? (waiting?.untilMs === null || isLate);
      if (waiting && isLong) giveUp();
    };
  }
  const work = async (term) => {
    clearTimeout(timer);
    clearInterval(looks);
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
    clearInterval(looks);
  }
}
