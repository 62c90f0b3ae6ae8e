// One workerd process with one isolate of the deployable Worker, as the tests ask and tick it.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { modulesOf, startWorkerd } from '../../js/tools/miniflare.mjs';
import { newGroup as newBucketGroup, variables } from '../js/bucket.mjs';
import { atEnd } from '../js/ending.mjs';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** What the build made: the wasm, its glue, and the snippets that the glue imports. */
const built = () => readdirSync(`${root}build/worker`, { recursive: true }).map((name) => `${root}build/worker/${name}`);

/** `more` are Miniflare's own options, such as `r2Buckets`. */
export const isolate = async (bindings, { entry = 'js/worker.js', ...more } = {}) => {
  const lines = [];
  const files = [...new Set([entry, 'js/worker.js'])].map((path) => `${root}${path}`);
  const worker = startWorkerd({ modules: modulesOf([...files, ...built()]), modulesRoot: root, bindings, onLog: (line) => lines.push(line), ...more });
  let killed;
  const kill = () => (killed ??= worker.dispose());
  atEnd(kill);
  const url = await worker.ready;
  return {
    url,
    ask: (path = '/health/leadership', init) => worker.dispatchFetch(`http://worker${path}`, init),
    tick: async (scheduledTime = new Date(), cron = '* * * * *') => (await worker.getWorker()).scheduled({ cron, scheduledTime }),
    logged: () => lines.join('\n'),
    bucket: (name = 'EDGELECT_R2') => worker.getR2Bucket(name),
    kill,
  };
};

/** One whose wasm has started: a tick's time runs from its trigger, and how long a busy machine takes to start it is no part of
 * any test. */
export const warm = async (...how) => {
  const worker = await isolate(...how);
  await (await worker.ask('/health')).text();
  return worker;
};

export const outcomes = (worker) => [...worker.logged().matchAll(/outcome=(\w+)/g)].map(([, outcome]) => outcome);

export const healthy = (worker, path) => async () => {
  const answer = await worker.ask(path);
  return answer.status === 200 ? answer : void (await answer.text());
};

/** What a released lease leaves: whoever finds it leads at once. */
export const released = (more) => JSON.stringify({
  leaderID: 'nobody', lastUpdated: '0001-01-01T00:00:00Z', session: 'before', sequence: 1, term: 1, leaseMs: 2500, acquired: '2026-11-21T06:00:00Z', format: 1, ...more,
});

/** The record of a member that leads now. */
export const held = (leaderID, more) => released({ leaderID, lastUpdated: new Date().toISOString(), session: 'of another', sequence: 7, ...more });

export const TIMES = { EDGELECT_LEADER_TIMEOUT: '2500', EDGELECT_FREQUENT_INTERVAL: '500', EDGELECT_STORE_SKEW: '500', EDGELECT_SUSTAIN: '6500' };
export const newGroup = async () => ({ ...variables, ...TIMES, EDGELECT_LOCKFILE_PATH: await newBucketGroup('worker'), EDGELECT_SERVER_ID: 'the-worker' });
