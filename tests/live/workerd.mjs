// Runs a Worker in workerd and is its cron: `workerd.mjs FOLDER`. Speaks the protocol of js/demo/member.mjs, as far as there is
// something to say, so that whoever starts it treats it as any other process.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

const BETWEEN_TICKS_MS = 500;
const [folder] = process.argv.slice(2);
const report = (event, more = {}) => process.stdout.write(`${JSON.stringify({ event, atMs: Date.now(), ...more })}\n`);

const bindings = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('EDGELECT_')));
// The first module is the Worker's entry.
const names = readdirSync(folder).sort((one, other) => Number(one.endsWith('.wasm')) - Number(other.endsWith('.wasm')));
const modules = names.map((name) => ({ type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path: path.join(folder, name) }));
const miniflare = new Miniflare(convertV4MiniflareOptions({
  modules, modulesRoot: folder, compatibilityDate: '2026-11-01', bindings, handleStructuredLogs: ({ message }) => console.error(message),
}));
const worker = await miniflare.getWorker();
report('status', { role: 'follower', requests: { read: 0, write: 0 } });

let stopping = false;
const stop = async () => {
  stopping = true;
  await miniflare.dispatchFetch('http://worker/');
};
createInterface({ input: process.stdin })
  .on('line', (line) => line.trim() === 'stop' && stop())
  // The one who asked for us is gone, so nobody will ever ask us to stop.
  .on('close', () => process.exit(0));

while (!stopping) {
  const { outcome } = await worker.scheduled({ cron: '* * * * *', scheduledTime: new Date() });
  if (outcome !== 'ok') report('error', { error: `the tick ended with ${outcome}` });
  if (!stopping) await new Promise((resolve) => setTimeout(resolve, BETWEEN_TICKS_MS));
}
report('stopped');
await miniflare.dispose();
process.exit(0);
