// Tries the job without a bucket: it runs once, and a second trigger of its slot finds it done.
import { setTimeout } from 'node:timers/promises';
import { Elector, MemoryStorage } from 'edgelect';
import { writeReport } from './report.mjs';

const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'leader/try' });
await elector.init();
await setTimeout(8_000); // what was due up to some seconds after `init` counts as claimed
const slot = Date.now();
const first = await elector.runScheduled(slot, writeReport);
const again = await elector.runScheduled(slot, writeReport);
console.log(first.outcome, again.outcome); // done taken
