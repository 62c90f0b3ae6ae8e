// Runs on every machine, all the time. One of them leads and does the work; when it dies, another one takes over.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Elector } from 'edgelect';
import { writeReport } from './report.mjs';

const PAUSE_MS = 60_000;

// Ctrl-C and SIGTERM end the work by its signal and give the lease up, so that another machine can lead at once.
const ending = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => ending.abort(new Error('stopped')));

// Called when this machine begins to lead. It goes on until `term.signal` fires.
const lead = async (term) => {
  console.log(`leads with token ${term.token}`);
  for (;;) {
    await writeReport(term);
    await sleep(PAUSE_MS, undefined, { signal: term.signal });
  }
};

const main = async () => {
  // The bucket and the lease are named in .env.
  const elector = new Elector();
  console.log('waits until it leads');
  await elector.lead(lead, { signal: ending.signal });
};

main().catch((error) => {
  if (ending.signal.aborted) return console.log('stopped');
  console.error(error?.message ?? error);
  process.exitCode = 1;
});
