// One job per slot of a plain timer, in as many processes as you like: of those that are due, one runs it.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Elector } from 'edgelect';
import { writeReport } from './report.mjs';

const HELP = `node main.mjs [options]

Start it twice or more, on one machine or on many. Slots are the multiples of the period since 1970, by the store's clock. In
each slot one process writes the report and the others say "taken". Kill one in the midst of its job and look.

  --period MS      from one slot to the next (default 60000); at least the lease, EDGELECT_LEADER_TIMEOUT (default 15000)
  --policy POLICY  atMostOnce (default): a slot whose process died is not run again
                   atLeastOnce: the next one runs it again first, and slots that nobody ran
  --help           this text

Ctrl-C or SIGTERM ends the job by its signal and gives the lease up, so that the others need not wait for it.
The bucket and the group come from variables:
  EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 EDGELECT_LOCKFILE_PATH=jobs/report.json \\
  EDGELECT_ACCESS_KEY_ID=… EDGELECT_SECRET_ACCESS_KEY=… node main.mjs`;
const POLICIES = ['atMostOnce', 'atLeastOnce'];
const MOST_MS = 86_400_000;

const ending = new AbortController();
const { signal } = ending;

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      period: { type: 'string', default: '60000' },
      policy: { type: 'string', default: POLICIES[0] },
      help: { type: 'boolean', default: false },
    },
  });
  const { period, policy, help } = values;
  if (!/^[1-9]\d*$/.test(period) || Number(period) > MOST_MS) {
    throw new Error(`--period ${period}: must be a whole number of milliseconds, at most ${MOST_MS} (a day)`);
  }
  if (!POLICIES.includes(policy)) throw new Error(`--policy ${policy}: must be ${POLICIES.join(' or ')}`);
  return { period: Number(period), policy, help };
};

/** Waits for the next slot by the own clock; which one it is says the store's. */
const nextSlot = (period) => sleep(period - (Date.now() % period), undefined, { signal });

const main = async () => {
  const { period, policy, help } = readOptions();
  if (help) return console.log(HELP);
  const elector = new Elector();
  console.log(`a slot every ${period} ms, ${policy}, with ${elector.config.lockfilePath}; Ctrl-C ends it`);
  for (;;) {
    await nextSlot(period);
    const result = await elector.runScheduled(null, writeReport, { period, policy, signal });
    const { slot, outcome, error, reason, durationMs } = result;
    console.log(slot && new Date(slot), `${outcome}:`, error?.message ?? error ?? reason ?? `${durationMs} ms`);
  }
};

for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => ending.abort());

main().catch((error) => {
  if (signal.aborted) return console.log('stopped');
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
