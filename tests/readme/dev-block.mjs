// What the block about `npm run dev` in docs/worker.md says, for those who run it.
import fs from 'node:fs';

const PAGE = new URL('../../docs/worker.md', import.meta.url);
const BLOCK = /^```\ncurl '(http:\/\/127\.0\.0\.1:(\d+)\/[^']+)' & .*\nsleep (\d+); curl (http:\/\/127\.0\.0\.1:\d+\/\S+)\n# (\{.*\})\n```$/m;

/** Its two URLs and their port, how long it waits between them, and the fields of the answer that are the same each time. */
export const devBlock = () => {
  const found = BLOCK.exec(fs.readFileSync(PAGE, 'utf8'));
  if (!found) throw new Error('docs/worker.md does not fire the cron of `npm run dev` by two lines of curl any more');
  const [, fire, port, wait, ask, answer] = found;
  const [, leaderID] = /"leaderID":"(\w+)"/.exec(answer);
  const [, leaseMs] = /"leaseMs":(\d+)/.exec(answer);
  const [, group] = /"group":"([\w.]+)"/.exec(answer);
  return { fire, ask, port, waitMs: wait * 1000, answer: { leaderID, leaseMs: Number(leaseMs), group } };
};
