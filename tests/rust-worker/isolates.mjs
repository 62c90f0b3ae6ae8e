// Isolates in workerd that run what `js/tools/rust-worker.mjs` has built.
import { readdirSync } from 'node:fs';
import { COMPATIBILITY_DATE, fireCron, modulesOf, startWorkerd as start } from '../../js/tools/miniflare.mjs';
import { ROOT, inRoot } from '../../js/tools/paths.mjs';
import { atEnd, until } from '../js/servers.mjs';

const BUILT = inRoot('build/rust-worker');

const filesOf = (entry, wasm) => {
  const snippets = readdirSync(BUILT, { recursive: true }).filter((name) => /^snippets\/.*\.js$/.test(name));
  return [inRoot('tests/rust-worker', entry), ...[`${wasm}.js`, `${wasm}_bg.wasm`, ...snippets].map((name) => `${BUILT}/${name}`)];
};

/** One workerd with an isolate of its own for each name, and one bucket that is bound to all of them. */
export const startWorkerd = async ({ entry, wasm, names = ['only'], bindings = {} }) => {
  const lines = [];
  const workers = names.map((name) => ({
    name, modules: modulesOf(filesOf(entry, wasm)), modulesRoot: ROOT, compatibilityDate: COMPATIBILITY_DATE, bindings, r2Buckets: { EDGELECT_R2: 'leases' },
  }));
  const workerd = start({ workers, onLog: (text) => lines.push(text) });
  atEnd(() => workerd.dispose());
  await workerd.ready;
  const bucket = () => workerd.getR2Bucket('EDGELECT_R2', names[0]);
  const isolate = async (name) => {
    const worker = await workerd.getWorker(name);
    return {
      tick: (scheduledTime) => fireCron(workerd, scheduledTime, name),
      ask: (path = '/health/leadership', init) => worker.fetch(`http://worker${path}`, init),
    };
  };
  return {
    isolates: await Promise.all(names.map(isolate)),
    logged: () => lines.join('\n'),
    /** The outcome of each trigger, once the log has that many: it comes on its own way. */
    outcomes: (count) => until(() => {
      const found = lines.flatMap((line) => /^edgelect.*? outcome=(\w+)/.exec(line)?.[1] ?? []);
      return found.length >= count && found.join(' ');
    }),
    lease: async (key) => (await (await bucket()).get(key)).json(),
    bucket,
  };
};
