import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { until } from '../js/until.mjs';
import { isolate, root, warm } from './isolate.mjs';

const R2 = { r2Buckets: ['EDGELECT_R2'] };
const VARIABLES = {
  EDGELECT_LOCKFILE_PATH: 'leader.json',
  EDGELECT_SERVER_ID: 'the-worker',
  EDGELECT_LEADER_TIMEOUT: 2000,
  EDGELECT_FREQUENT_INTERVAL: 500,
  EDGELECT_STORE_SKEW: 500,
  EDGELECT_SUSTAIN: 8000,
};
const leaseIn = async (bucket, key = 'leader.json') => (await bucket.get(key))?.json();

let store;

before(async () => {
  const modules = ['tests/worker/r2-store.js', 'js/r2.js', 'js/errors.js'].map((name) => ({ type: 'ESModule', path: `${root}${name}` }));
  store = await isolate({}, { ...R2, modules, kvNamespaces: ['K'], serviceBindings: { F: () => new Response('a service') } });
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

test('with EDGELECT_FORMAT the lease in R2 is a record for Kubernetes members, and one that they released is taken within a tick', async () => {
  const worker = await warm({ ...VARIABLES, EDGELECT_FORMAT: 'kubernetes' }, R2);
  const bucket = await worker.bucket();
  const theirs = {
    holderIdentity: '', leaseDuration: 'PT2S', acquireTime: '2026-11-21T06:00:00.000Z', renewTime: '2026-11-21T06:00:00.000Z', leaderTransitions: 6,
  };
  await bucket.put('leader.json', JSON.stringify(theirs));
  const ticking = worker.tick();
  const held = await until(async () => {
    const record = await leaseIn(bucket);
    // Their record has no term, so the first write over it is none of a term either.
    return record.holderIdentity === 'the-worker' && record.term > 0 ? record : null;
  });
  assert.deepEqual([held.leaseDuration, held.leaderTransitions, held.leaderID], ['2s', 7, undefined]);
  assert.match(held.renewTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  await ticking;
  const parked = await leaseIn(bucket);
  assert.deepEqual([parked.parked, parked.term], [true, held.term]);
});
