// Runs a Worker in workerd and is its cron: `workerd.mjs FOLDER`. Speaks the protocol of js/demo/member.mjs, as far as there is
// something to say, so that whoever starts it treats it as any other process.
import { setTimeout as pause } from 'node:timers/promises';
import { bundleIn, fireCron, startWorkerd } from '../../js/tools/miniflare.mjs';
import { isUp, obey, ownVariables, report } from './speak.mjs';

const BETWEEN_TICKS_MS = 500;
const workerd = startWorkerd({ ...bundleIn(process.argv[2]), bindings: ownVariables(), onLog: (text) => console.error(text) });
await workerd.ready;
isUp();

let stopping = false;
obey(async (line) => {
  if (line.trim() !== 'stop') return;
  stopping = true;
  await workerd.dispatchFetch('http://worker/');
});

while (!stopping) {
  const outcome = await fireCron(workerd);
  if (outcome !== 'ok') report('error', { error: `the tick ended with ${outcome}` });
  if (!stopping) await pause(BETWEEN_TICKS_MS);
}
report('stopped');
await workerd.dispose();
process.exit(0);
