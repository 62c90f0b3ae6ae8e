// Outlives its parent by a moment: when the pipe closes, it ends what the parent had started.
import fs from 'node:fs';

const pids = new Set();
const paths = new Set();
let rest = '';

for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => {});

process.stdin.setEncoding('utf8');
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) obey(JSON.parse(line));
});
process.stdin.on('close', () => {
  for (const pid of pids) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The group is gone already.
    }
  }
  for (const path of paths) fs.rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
});

function obey({ keep, drop, path }) {
  if (keep !== undefined) pids.add(keep);
  if (drop !== undefined) pids.delete(drop);
  if (path !== undefined) paths.add(path);
}
