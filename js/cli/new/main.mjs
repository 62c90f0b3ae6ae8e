// cron starts this on every machine at the same times. At each of them one machine does the work; the others end at once.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Elector } from 'edgelect';
import { writeReport } from './report.mjs';

// Each time of the cron `__CRON__` is a multiple of this, in any time zone.
const PERIOD_MS = __PERIOD_MINUTES__ * 60_000;
// A clock that is set right may go back a little between cron and this.
const BACK_MS = 5_000;
const PAUSE_MS = 1_000;
const MOST_PAUSES = 30;

// Ctrl-C and SIGTERM end the work by its signal and give the lease up. A signal may come twice: npm passes it on.
const ending = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => ending.abort(new Error('stopped')));

// The store takes no time that lies ahead of its own clock. A machine whose clock is fast waits for that, up to half a
// minute.
const runOnce = async (elector, time) => {
  const options = { period: PERIOD_MS, missed: 'skip', signal: ending.signal };
  for (let left = MOST_PAUSES; ; left -= 1) {
    try {
      return await elector.runScheduled(time, writeReport, options);
    } catch (error) {
      if (error.code !== 'EDGELECT_SLOT' || left === 0) throw error;
    }
    await sleep(PAUSE_MS, undefined, { signal: ending.signal });
  }
};

const main = async () => {
  // By the clock that cron goes by: so all machines mean the same time, however far apart their clocks are.
  const time = Math.floor((Date.now() + BACK_MS) / PERIOD_MS) * PERIOD_MS;
  // The bucket and the lease are named in .env.
  const { slot, outcome, reason, error, fault } = await runOnce(new Elector(), time);
  // done: here. taken: another machine does it, or has done it. skipped, unknown: not here, and the reason says why.
  console.log(new Date(slot).toISOString(), reason ? `${outcome}: ${reason}` : outcome);
  if (outcome === 'failed' || outcome === 'lost') throw error ?? new Error(`the work ${outcome}`);
  if (fault) throw fault;
};

main().catch((error) => {
  console.error(error?.message ?? error);
  process.exitCode = 1;
});
