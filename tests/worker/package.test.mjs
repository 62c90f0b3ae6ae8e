// What the npm package is only in workerd, over R2's own binding too. That it leads there is held by tests/runtimes, the README's
// Worker and examples/js-worker.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { before, test } from 'node:test';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { bundleIn, startWorkerd } from '../../js/tools/miniflare.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { bundled } from '../../js/tools/workerd.mjs';
import { atEnd } from '../js/ending.mjs';
import { isolate } from './isolate.mjs';

/** What a Worker answers that has this text, and these options of Miniflare's. */
const answerOf = async (text, more) => {
  const folder = newFolder('worker');
  fs.writeFileSync(`${folder}/entry.js`, text);
  const worker = startWorkerd({ ...bundleIn(await bundled(`${folder}/entry.js`, folder)), ...more });
  atEnd(() => worker.dispose());
  return (await worker.dispatchFetch('http://worker/')).json();
};

for (const flags of [[], ['no_global_navigator']]) {
  test(`c41 js/entry/workerd.js knows that it is on Workers, which have one clock, with the flags [${flags}]`, async () => {
    const text = `import '${inRoot('js/entry/workerd.js')}';
      import { Host } from '${inRoot('js/host.js')}';
      export default { fetch: () => Response.json({ singleClock: new Host().singleClock, named: 'navigator' in globalThis }) };`;
    assert.deepEqual(await answerOf(text, { compatibilityFlags: flags }), { singleClock: true, named: flags.length === 0 });
  });
}

test('an elector is made in the global scope; what Workers accept and ignore is refused, in a process that looks like Node\'s', async () => {
  const text = `import { Elector, MemoryStorage } from '${inRoot('js/entry/workerd.js')}';
    const group = { storage: new MemoryStorage(), lockfilePath: 'a' };
    // Where Workers have neither randomness nor a clock.
    const made = new Elector(group);
    const fieldOf = (call) => { try { call(); } catch ({ field }) { return field; } };
    export default { fetch: () => Response.json([
      typeof process.getBuiltinModule, made.status().role,
      fieldOf(() => new Elector({ ...group, peerTls: { ca: '-----BEGIN CERTIFICATE-----' } })), fieldOf(() => made.stopOnSignals()),
    ]) };`;
  assert.deepEqual(await answerOf(text), ['function', 'stopped', 'peerTls', 'signals']);
});

test('c44 c45 docs/fencing.md over a bound R2 bucket: a later leader is not overwritten, whenever the late write leaves', async () => {
  const [, block] = /^```js\n(\/\/ fenced-r2\.mjs\n.*?)^```$/ms.exec(fs.readFileSync(inRoot('docs/fencing.md'), 'utf8'));
  const text = `${block}
    const ended = async (bucket, ...write) => writeFenced(bucket, 'a', ...write).then(() => 'written', ({ message }) => message);
    const heldUp = (bucket) => ({ get: (key) => bucket.get(key), put: async (...put) => {
      await writeFenced(bucket, 'a', 9, 'later');
      return bucket.put(...put);
    } });
    export default { async fetch(_, { B }) {
      const outcomes = [await ended(heldUp(B), 5, 'first'), await ended(B, 9, 'again'), await ended(B, 7, 'late'), await ended(heldUp(B), 9, 'held up')];
      const { token, value } = await (await B.get('a')).json();
      return Response.json([...outcomes, token, value]);
    } };`;
  const lost = 'put a: somebody else has written';
  assert.deepEqual(await answerOf(text, { r2Buckets: ['B'] }), [lost, 'written', 'fenced: token 9 has written', lost, 9, 'later']);
});

let store;

before(async () => {
  const modules = ['tests/worker/r2-store.js', 'js/r2.js', 'js/errors.js'].map((name) => ({ type: 'ESModule', path: inRoot(name) }));
  const serviceBindings = { F: () => new Response('a service') };
  store = await isolate({}, { r2Buckets: ['EDGELECT_R2'], modules, kvNamespaces: ['K'], serviceBindings });
});

const step = async (name) => (await store.ask(`/${name}`)).json();

test('an object of 10 MiB is cut at one byte more than a record, never read whole, and can be replaced', async () => {
  const { length, sevens, counts, healed, after: text } = await step('large');
  assert.deepEqual([length, sevens, counts.whole, counts.cancelled, text], [65_537, true, ['small'.length], true, 'small']);
  // What is on the way in the stream may be more than what is kept.
  assert.ok(counts.read >= 65_537 && counts.read < 1_000_000, `${counts.read} bytes read`);
  assert.match(healed.etag, /^"/);
});

test('what the binding throws is thrown on, whether it had written or not: never a refusal', async () => {
  const { before: early, absent, after: late, there, get } = await step('broken');
  assert.deepEqual([early, absent], [{ threw: 'put: We encountered an internal error. Please try again. (10001)' }, { value: null }]);
  assert.deepEqual([late, there], [{ threw: 'put: Network connection lost.' }, 'a']);
  assert.match(get.threw, /^get: /);
});

test('a service binding has every method and a KV namespace has some: neither is taken for a bucket', async () => {
  const { service, names, kv } = await step('others');
  assert.match(service, /takes an R2 bucket binding/);
  assert.match(kv, /takes an R2 bucket binding/);
  assert.equal(names, 'function', 'this is why: its methods are found only when they are called');
});
