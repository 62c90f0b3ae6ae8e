// One job per minute in as many Deno processes as you like: Deno.cron fires in each of them, one runs it.
import { parseArgs } from 'node:util';
import { Elector } from 'npm:edgelect';
import { writeReport } from './report.js';

const HELP = `deno run --unstable-cron --allow-env --allow-net=HOST main.js

Start it twice or more, on one machine or on many. Each minute Deno.cron fires in all of them: one process writes the report,
the others say "taken". Deno has Deno.cron only with --unstable-cron; --allow-env shows it the variables, --allow-net lets
it reach the store and nothing else. Ctrl-C or SIGTERM ends it.

The bucket and the group come from variables:
  EDGELECT_BUCKET=jobs EDGELECT_ENDPOINT=https://ACCOUNT.r2.cloudflarestorage.com EDGELECT_REGION=auto \\
  EDGELECT_LOCKFILE_PATH=jobs/report.json EDGELECT_ACCESS_KEY_ID=… EDGELECT_SECRET_ACCESS_KEY=… \\
  deno run --unstable-cron --allow-env --allow-net=ACCOUNT.r2.cloudflarestorage.com main.js`;

const start = () => {
  if (!Deno.cron) throw new Error('this Deno has no Deno.cron: run it with --unstable-cron');
  const ending = new AbortController();
  const { signal } = ending;
  for (const name of ['SIGINT', 'SIGTERM']) Deno.addSignalListener(name, () => ending.abort());
  const elector = new Elector();
  const tick = async () => {
    const result = await elector.runScheduled(null, writeReport, { period: 60_000, signal });
    const { slot, outcome, error, reason, durationMs } = result;
    console.log(slot && new Date(slot), `${outcome}:`, error?.message ?? error ?? reason ?? `${durationMs} ms`);
  };
  const unlessEnding = (error) => {
    if (!signal.aborted) throw error;
    console.log('stopped');
  };
  // What is thrown on, such as a bucket that can't be used, Deno shows, and fires again some seconds later.
  Deno.cron('report', '* * * * *', { signal }, () => tick().catch(unlessEnding));
  console.log(`a slot each minute, with ${elector.config.lockfilePath}; Ctrl-C ends it`);
};

try {
  const { values } = parseArgs({ options: { help: { type: 'boolean' } } });
  if (values.help) console.log(HELP);
  else start();
} catch (error) {
  console.error(`${error.message}\nSee --help.`);
  Deno.exitCode = 1;
}
