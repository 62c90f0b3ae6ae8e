// The npm package in workerd, as a Worker of somebody's own has it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Elector, S3Storage } from 'edgelect';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { bucketOptions, credentials, freshKey, getLease } from '../js/bucket.mjs';
import { atEnd } from '../js/ending.mjs';
import { root } from './isolate.mjs';

const KEY = 'leader/report.json';
const OVER_R2 = { r2Buckets: ['JOBS'], bindings: { LOCKFILE_PATH: KEY } };

/** The modules of the package that a text brings along, if it lies in `folder`. */
const modulesOf = (text, folder, found = new Set()) => {
  for (const [, imported] of text.matchAll(/^(?:import|export) (?:[^;]*?from )?'(\.{1,2}\/[^']+\.js)';$/gms)) {
    const name = path.join(folder, imported);
    if (found.has(name)) continue;
    found.add(name);
    modulesOf(fs.readFileSync(`${root}${name}`, 'utf8'), path.dirname(name), found);
  }
  return found;
};

/** A Worker of this text: `ask(path)` gives its answer, `trigger()` fires it once. */
const started = (text, more) => {
  const entry = { type: 'ESModule', path: `${root}tests/worker/entry.js`, contents: text };
  const imported = [...modulesOf(text, 'tests/worker')].map((name) => ({ type: 'ESModule', path: `${root}${name}` }));
  const wasm = { type: 'CompiledWasm', path: `${root}js/dist/edgelect_bg.wasm` };
  const worker = new Miniflare(convertV4MiniflareOptions({
    modules: [entry, ...imported, wasm], modulesRoot: root, compatibilityDate: '2026-11-01', ...more,
  }));
  atEnd(() => worker.dispose());
  return {
    ask: async (asked = '/') => (await worker.dispatchFetch(`http://worker${asked}`)).json(),
    trigger: async () => (await worker.getWorker()).scheduled({ cron: '* * * * *', scheduledTime: new Date() }),
    bucket: () => worker.getR2Bucket('JOBS'),
  };
};

const lines = (more) => started(fs.readFileSync(`${root}tests/worker/package-lines.js`, 'utf8'), more);

/** Fires the README's Worker twice: each time it leads once and releases, as `leaseOf()` shows. */
const leadsTwice = async (worker, leaseOf) => {
  for (let trigger = 0; trigger < 2; trigger += 1) await worker.trigger();
  const { led, unused } = await worker.ask();
  assert.equal(unused, 'stopped');
  assert.equal(led.length, 2);
  assert.ok(led[1].token > led[0].token && led.every(({ remaining }) => remaining > 0));
  const lease = await leaseOf();
  assert.deepEqual([lease.term, lease.lastUpdated, lease.leaderID], [led[1].token, '0001-01-01T00:00:00Z', 'my-worker']);
};

test('the README\'s Worker runs the npm package in workerd: each trigger leads once and releases', async () => {
  const lockfilePath = freshKey('ten-lines');
  await new Elector({ storage: new S3Storage(bucketOptions), lockfilePath }).init();
  const { endpoint: ENDPOINT, bucket: BUCKET } = bucketOptions;
  const { accessKeyId: KEY_ID, secretAccessKey: SECRET } = credentials;
  const worker = lines({ bindings: { ENDPOINT, BUCKET, KEY_ID, SECRET, LOCKFILE_PATH: lockfilePath } });
  await leadsTwice(worker, () => getLease(lockfilePath));
});

test('the npm package leads over an R2 binding in workerd, with no credentials', async () => {
  const worker = lines(OVER_R2);
  await worker.ask('/init');
  await leadsTwice(worker, async () => (await (await worker.bucket()).get(KEY)).json());
});

for (const flags of [[], ['no_global_navigator']]) {
  test(`c41 js/entry/workerd.js knows that it is on Workers, which have one clock, with the flags [${flags}]`, async () => {
    const told = "Response.json({ singleClock: new Host().singleClock, named: 'navigator' in globalThis })";
    const text = ["import '../../js/entry/workerd.js';", "import { Host } from '../../js/host.js';", `export default { fetch: () => ${told} };`].join('\n');
    assert.deepEqual(await started(text, { compatibilityFlags: flags }).ask(), { singleClock: true, named: flags.length === 0 });
  });
}

for (const [field, call] of Object.entries({
  peerTls: "new Elector({ ...group, peerTls: { ca: '-----BEGIN CERTIFICATE-----' } })",
  signals: 'new Elector(group).stopOnSignals()',
})) {
  test(`what Workers accept and ignore is refused there, in a process that looks like Node's: ${field}`, async () => {
    const told = 'Response.json({ node: typeof process.getBuiltinModule, field: fieldOf() })';
    const text = [
      "import { Elector, MemoryStorage } from '../../js/entry/workerd.js';",
      "const group = { storage: new MemoryStorage(), lockfilePath: 'a' };",
      `const fieldOf = () => { try { ${call}; } catch ({ field }) { return field; } };`,
      `export default { fetch: () => ${told} };`,
    ].join('\n');
    assert.deepEqual(await started(text).ask(), { node: 'function', field });
  });
}
