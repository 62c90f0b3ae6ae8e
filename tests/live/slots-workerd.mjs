// The deployed Worker in workerd, as `slots-workerd.mjs FOLDER` with its bundle there: each line on stdin is a cron trigger, what
// its log says of one is reported on stdout, as js/worker.js cannot.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

const RUN = /run="(\d+) term (\d+) (.*?) (\d+) ms( \(not recorded\))?"/g;
const [folder] = process.argv.slice(2);
const report = (event, more = {}) => process.stdout.write(`${JSON.stringify({ event, atMs: Date.now(), ...more })}\n`);
/** Triggers without a report. The log does not name them, and those for one slot are alike. */
const waiting = [];

function onLog(message) {
  const { outcome, slot } = /outcome=(?<outcome>\w+)(?:.*? slot=(?<slot>\d+))?/.exec(message)?.groups ?? {};
  const index = waiting.findIndex((one) => slot !== undefined && one.slot === Number(slot));
  if (index === -1) return console.error(message);
  const [{ id }] = waiting.splice(index, 1);
  const runs = [...message.matchAll(RUN)].map(([, ran, term, word, tookMs, not]) => ({
    slot: Number(ran), term: Number(term), ...ended(word), durationMs: Number(tookMs), recorded: not === undefined,
  }));
  report('report', { id, slot: Number(slot), outcome, reason: message, runs });
}

function ended(word) {
  const [how, status] = word.split(' ');
  const outcome = { ok: 'done', failed: 'failed', 'unknown:': 'failed' }[how] ?? 'lost';
  return { outcome, status: /^\d+$/.test(status) ? Number(status) : undefined };
}

const bindings = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('EDGELECT_')));
// The first module is the Worker's entry.
const names = readdirSync(folder).sort((one, other) => Number(one.endsWith('.wasm')) - Number(other.endsWith('.wasm')));
const modules = names.map((name) => ({ type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path: path.join(folder, name) }));
const miniflare = new Miniflare(convertV4MiniflareOptions({
  modules, modulesRoot: folder, compatibilityDate: '2026-11-01', bindings, handleStructuredLogs: ({ message }) => onLog(message),
}));
const worker = await miniflare.getWorker();
report('up');

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const trigger = JSON.parse(line);
    waiting.push(trigger);
    const { outcome } = await worker.scheduled({ cron: '* * * * *', scheduledTime: new Date(trigger.slot) });
    if (outcome !== 'ok') console.error(`the trigger ended with ${outcome}`);
  })
  // The one who asked for us is gone.
  .on('close', () => process.exit(0));
