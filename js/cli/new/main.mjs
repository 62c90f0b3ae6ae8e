// cron starts this on every machine at the same times. At each of them one machine does the work; the others end at once.
import process from 'node:process';
import { Elector } from 'edgelect';
import { writeReport } from './report.mjs';

// Each time of the cron `__CRON__` is a multiple of this, in any time zone. So all machines mean the same time, as long as
// cron starts this within half of it.
const PERIOD_MS = __PERIOD_MINUTES__ * 60_000;

// Ctrl-C and SIGTERM end the work by its signal and give the lease up.
const ending = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => ending.abort(new Error('stopped')));

const main = async () => {
  // The bucket and the lease are named in .env.
  const elector = new Elector();
  const options = { period: PERIOD_MS, missed: 'skip', signal: ending.signal };
  const { slot, outcome, reason, error, fault } = await elector.runScheduled(null, writeReport, options);
  // done: here. taken: another machine does it, or has done it. skipped, unknown: not here, and the reason says why.
  console.log(slot ? new Date(slot).toISOString() : 'no time', reason ? `${outcome}: ${reason}` : outcome);
  if (outcome === 'failed' || outcome === 'lost') throw error ?? new Error(`the work ${outcome}`);
  if (fault) throw fault;
};

main().catch((error) => {
  console.error(error?.message ?? error);
  process.exitCode = 1;
});
