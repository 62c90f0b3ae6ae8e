// Runs `fleet-worker.js` in workerd: `fleet-workerd.mjs FOLDER`, with the folder of its bundle. Speaks the protocol of
// `fleet-member.mjs`.
import { execFileSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { bundleIn, fireCron, startWorkerd } from '../tools/miniflare.mjs';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { value: SET_UP } = await lines.next();
const say = (text) => process.stdout.write(`${text}\n`);
const report = (event, more) => say(JSON.stringify({ event, ...more }));
const workerd = startWorkerd({ ...bundleIn(process.argv[2]), bindings: { SET_UP }, onLog: say });
await workerd.ready;
const ask = async (path) => (await workerd.dispatchFetch(`http://worker${path}`)).json();
/** What workerd takes, in bytes; this process is no member. */
const memory = () => {
  const children = execFileSync('ps', ['-o', 'rss=,comm=', '--ppid', String(process.pid)], { encoding: 'utf8' }).split('\n');
  return Number.parseInt(children.find((child) => child.endsWith('workerd')), 10) * 1024;
};

await ask('/');
const before = memory();
fireCron(workerd).then((outcome) => report('error', { error: `the event of its members ended with ${outcome}` }));
while (!(await ask('/')).ready) await pause(100);
report('ready', { before });
for await (const text of lines) {
  const [word, name] = text.trim().split(' ');
  const { leaders } = await ask(word === 'resign' ? `/resign?${name}` : '/');
  if (word === 'look') report('looked', { leaders, memory: memory() });
}
await workerd.dispose();
process.exit(0);
