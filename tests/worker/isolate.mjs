// The deployable Worker in workerd, as many isolates of it as a test wants, and a group for them.
import { readdirSync } from 'node:fs';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Elector, S3Storage } from 'edgelect';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { bucketOptions, credentials, freshKey } from '../js/bucket.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const isolates = [];

after(() => Promise.all(isolates.map((isolate) => isolate.dispose())));

/** What the build made: the wasm, its glue, and the snippets that the glue imports. */
const built = () =>
  readdirSync(`${root}build/worker`, { recursive: true })
    .filter((name) => /(\.js|\.wasm)$/.test(name))
    .map((name) => ({
      type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule',
      path: `${root}build/worker/${name}`,
    }));

/** One workerd process with one isolate of the deployable Worker; `more` are further options of miniflare's. */
export const isolate = async (bindings, entry = 'js/worker.js', more = {}) => {
  const lines = [];
  const options = convertV4MiniflareOptions({
    modules: [...new Set([entry, ...['worker', 'host', 'job', 'errors'].map((name) => `js/${name}.js`)])]
      .map((path) => ({ type: 'ESModule', path: `${root}${path}` })).concat(built()),
    modulesRoot: root,
    compatibilityDate: '2026-11-01',
    bindings,
    ...more,
    handleStructuredLogs: ({ message }) => lines.push(message),
  });
  const worker = new Miniflare(options);
  isolates.push(worker);
  await worker.ready;
  return {
    ask: (path = '/health/leadership', init) => worker.dispatchFetch(`http://worker${path}`, init),
    tick: async (scheduledTime = new Date()) => (await worker.getWorker()).scheduled({ cron: '* * * * *', scheduledTime }),
    logged: () => lines.join('\n'),
    /** Ends the process without any notice; the events under way fail. */
    kill: () => {
      isolates.splice(isolates.indexOf(worker), 1);
      return worker.dispose();
    },
  };
};

export const newGroup = async () => {
  const lockfilePath = freshKey('worker');
  await new Elector({ storage: new S3Storage(bucketOptions), lockfilePath }).init();
  return {
    EDGELECT_ENDPOINT: bucketOptions.endpoint,
    EDGELECT_BUCKET: bucketOptions.bucket,
    EDGELECT_ACCESS_KEY_ID: credentials.accessKeyId,
    EDGELECT_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    EDGELECT_LOCKFILE_PATH: lockfilePath,
    EDGELECT_SERVER_ID: 'the-worker',
    EDGELECT_LEADER_TIMEOUT: '2000',
    EDGELECT_FREQUENT_INTERVAL: '500',
    EDGELECT_STORE_SKEW: '500',
    EDGELECT_SUSTAIN: '6500',
  };
};
