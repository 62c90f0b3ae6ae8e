// Hours of virtual work leak nothing on either side of the wasm boundary.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { virtualRuntime } from './virtual.mjs';

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const runtime = virtualRuntime();
const { Elector, Electors, MemoryStorage, S3Storage, Shards } = await import('edgelect');
const { initSync } = await import('edgelect/edgelect.js');
const wasm = initSync();

/** What both sides hold once everything that can go has gone. */
const held = async () => {
  await runtime.settle();
  for (let round = 0; round < 3; round += 1) {
    collect();
    await runtime.settle();
  }
  const [wasmBytes, references] = [wasm.memory.buffer.byteLength, wasm.__wbindgen_externrefs.length];
  return { wasmBytes, references, heapBytes: process.memoryUsage().heapUsed, timers: runtime.timers() };
};

/** Nothing is held after `later` that was not before it, nor a timer once `stopping` has stopped everything. */
const holdsNoMore = async (what, later, stopping = () => {}) => {
  const before = await held();
  await later();
  const { heapBytes, ...after } = await held();
  const grownBytes = heapBytes - before.heapBytes;
  assert.deepEqual({ ...after, heapBytes: before.heapBytes }, before, `wasm, references from it, and timers after ${what}`);
  // A leak of 100 bytes for each of the thousands of requests would be more; compiled code comes and goes.
  assert.ok(grownBytes < 500_000, `${grownBytes} bytes of JavaScript's heap after ${what}`);
  await runtime.passing(Promise.resolve(stopping()));
};

test('a leader and a follower hold no more after three hours than after one', async () => {
  const credentials = async () => ({ accessKeyId: 'a', secretAccessKey: 'b', expiration: new Date(Date.now() + 10 * MINUTE_MS) });
  const storage = new S3Storage({ endpoint: runtime.bucket().endpoint, bucket: 'jobs', credentials });
  const electors = ['a', 'b'].map((serverId) => new Elector({ storage, serverId, lockfilePath: 'leader.json' }));
  await Promise.all(electors.map((elector) => elector.start()));
  await runtime.pass(HOUR_MS);
  const leader = electors.find((elector) => elector.isLeader());
  const writes = leader.status().requests.write;
  assert.ok(writes > 700, `${writes} renewals in an hour`);
  const later = async () => {
    await runtime.pass(2 * HOUR_MS);
    assert.ok(leader.isLeader() && leader.status().requests.write > 2 * writes);
  };
  await holdsNoMore('two hours', later, () => Promise.all(electors.map((elector) => elector.stop())));
  assert.equal(runtime.timers(), 0);
});

test('a thousand electors that came, wrote a checkpoint and went hold nothing', async () => {
  const work = async (term) => {
    await (await term.checkpoint('state')).write({ at: Date.now() });
    assert.ok(term.remaining() > 0);
  };
  const comeAndGo = async (count) => {
    for (let index = 0; index < count; index += 1) {
      const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1_000, frequentInterval: 250 });
      await runtime.passing(elector.init().then(() => elector.lead(work)));
    }
  };
  await comeAndGo(500);
  await holdsNoMore('a thousand electors', () => comeAndGo(1_000));
});

test('three hours of a store that is gone hold nothing', async () => {
  const { endpoint, answerWith } = runtime.bucket();
  answerWith(() => Promise.reject(new TypeError('fetch failed')));
  const storage = new S3Storage({ endpoint, bucket: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
  const elector = new Elector({ storage, lockfilePath: 'leader.json' });
  await elector.start();
  await runtime.pass(HOUR_MS);
  await holdsNoMore('three hours', () => runtime.pass(3 * HOUR_MS), () => {
    assert.match(elector.status().error, /no answer: fetch failed/);
    return elector.stop();
  });
});

test('fifty groups of an Electors, and a member of shards, hold no more after half an hour than after ten minutes', async () => {
  const storage = new MemoryStorage();
  const names = Array.from({ length: 50 }, (_, index) => `groups/${index}`);
  for (const lockfilePath of names) await new Elector({ storage, lockfilePath }).init();
  const shards = new Shards({ storage, prefix: 'jobs', shards: 10 });
  await shards.init();
  const electors = new Electors({ storage, maxRequestsPerSecond: 50 });
  for (const name of names) void electors.add(name).start();
  void shards.start();
  await runtime.pass(10 * MINUTE_MS);
  await holdsNoMore('twenty minutes', () => runtime.pass(20 * MINUTE_MS), () => {
    assert.deepEqual([shards.led().length, electors.status().groups.filter(({ role }) => role === 'leader').length], [10, 50]);
    return Promise.all([electors.stop(), shards.stop()]);
  });
});
