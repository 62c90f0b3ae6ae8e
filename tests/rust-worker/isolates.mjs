// Isolates in workerd that run what `js/tools/rust-worker.mjs` has built.
import { readdirSync } from 'node:fs';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { until } from '../js/until.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const built = `${root}build/rust-worker/`;
const running = new Set();

after(() => Promise.all([...running].map((workerd) => workerd.dispose())));

const modulesOf = (entry, wasm) => [
  { type: 'ESModule', path: `${root}tests/rust-worker/${entry}` },
  { type: 'ESModule', path: `${built}${wasm}.js` },
  { type: 'CompiledWasm', path: `${built}${wasm}_bg.wasm` },
  ...readdirSync(built, { recursive: true })
    .filter((name) => /^snippets\/.*\.js$/.test(name))
    .map((name) => ({ type: 'ESModule', path: `${built}${name}` })),
];

/** One workerd with an isolate of its own for each name. `folder` keeps the bucket that is bound to all of them. */
export const startWorkerd = async ({ entry, wasm, names = ['only'], bindings = {}, bound = true, folder }) => {
  const lines = [];
  const common = {
    modules: modulesOf(entry, wasm),
    modulesRoot: root,
    compatibilityDate: '2026-11-01',
    bindings,
    ...(bound && { r2Buckets: { EDGELECT_R2: 'leases' } }),
  };
  const options = convertV4MiniflareOptions({
    workers: names.map((name) => ({ name, ...common })),
    ...(folder && { resourcePersistencePath: folder }),
    handleStructuredLogs: ({ message }) => lines.push(message),
  });
  const workerd = new Miniflare(options);
  running.add(workerd);
  await workerd.ready;
  const isolate = async (name) => {
    const worker = await workerd.getWorker(name);
    return {
      tick: (scheduledTime = new Date()) => worker.scheduled({ cron: '* * * * *', scheduledTime }),
      ask: (path = '/health/leadership', init) => worker.fetch(`http://worker${path}`, init),
    };
  };
  return {
    isolates: await Promise.all(names.map(isolate)),
    logged: () => lines.join('\n'),
    /** What is logged, once it is that many lines: it comes on its own way. */
    told: (count) => until(() => lines.length >= count && lines.join('\n')),
    lease: async (key) => {
      const object = await (await workerd.getR2Bucket('EDGELECT_R2', names[0])).get(key);
      return object && JSON.parse(await object.text());
    },
    bucket: () => workerd.getR2Bucket('EDGELECT_R2', names[0]),
    kill: () => {
      running.delete(workerd);
      return workerd.dispose();
    },
  };
};
