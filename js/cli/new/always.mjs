// Runs on every machine, all the time. One of them leads and does the work; when it dies, another one takes over.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Elector } from 'edgelect';
import { writeReport } from './report.mjs';

const PAUSE_MS = 60_000;

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
  // Ctrl-C and SIGTERM end the work by its signal and give the lease up, so that another machine can lead at once.
  elector.stopOnSignals();
  console.log('waits until it leads');
  await elector.lead(lead);
  console.log('stopped');
};

main().catch((error) => {
  console.error(error?.message ?? error);
  process.exitCode = 1;
});
