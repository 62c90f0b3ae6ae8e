// One job per minute in as many Bun processes as you like: Bun.cron fires in each of them, one runs it.
//   EDGELECT_BUCKET=… EDGELECT_LOCKFILE_PATH=jobs/report.json bun main.js
import { Elector } from 'edgelect';

const elector = new Elector();
const writeReport = ({ slot, token }) => console.log(`${new Date(slot).toISOString()} is written with token ${token}`);

const job = Bun.cron('* * * * *', async () => {
  const result = await elector.runScheduled(null, writeReport, { period: 60_000 });
  const { slot, outcome, error, reason, durationMs } = result;
  console.log(slot && new Date(slot), `${outcome}:`, error?.message ?? error ?? reason ?? `${durationMs} ms`);
});
// What runs is told to end, and nothing new begins.
elector.stopOnSignals();
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => job.stop());
