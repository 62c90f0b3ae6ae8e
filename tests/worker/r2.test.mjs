import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { isolate, root } from './isolate.mjs';

let store;

before(async () => {
  const modules = ['tests/worker/r2-store.js', 'js/r2.js', 'js/errors.js'].map((name) => ({ type: 'ESModule', path: `${root}${name}` }));
  store = await isolate({}, { r2Buckets: ['EDGELECT_R2'], modules, kvNamespaces: ['K'], serviceBindings: { F: () => new Response('a service') } });
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
