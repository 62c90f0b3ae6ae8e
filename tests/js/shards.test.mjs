// One elector for each shard, many in one process and over one storage, in virtual time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, MemoryStorage } = await import('edgelect');
const { initSync } = await import('edgelect/edgelect.js');
const wasm = initSync();

const MINUTE_MS = 60_000;
const SHARDS = Array.from({ length: 50 }, (_one, index) => `shards/${index}`);

/** A process of its own, as far as electors know: an elector for each shard, all by one name. */
const process = (storage, shards, serverId) =>
  shards.map((lockfilePath) => new Elector({ storage, lockfilePath, serverId }));

const all = async (electors, what) => {
  const done = Promise.all(electors.map((elector) => elector[what]()));
  await runtime.pass(MINUTE_MS);
  await done;
};

const leaders = (electors) => electors.filter((elector) => elector.isLeader());

/** What a number of shards costs in this time, all of them led by one process. */
const costOf = async (count, runMs = 10 * MINUTE_MS) => {
  const storage = new MemoryStorage();
  const electors = process(storage, SHARDS.slice(0, count), 'a');
  await all(electors, 'init');
  await all(electors, 'start');
  assert.equal(leaders(electors).length, count);
  const requests = () => electors.reduce((sum, elector) => sum + elector.status().requests.write + elector.status().requests.read, 0);
  const before = requests();
  await runtime.pass(runMs);
  const cost = { requests: requests() - before, timers: runtime.timers() };
  await all(electors, 'stop');
  assert.equal(runtime.timers(), 0);
  return cost;
};

test('fifty shards cost fifty times as much as one: requests and timers', async () => {
  const [one, fifty] = [await costOf(1), await costOf(50)];
  assert.ok(one.requests >= 119 && one.requests <= 121, `${one.requests} requests in ten minutes`);
  assert.ok(Math.abs(fifty.requests - 50 * one.requests) <= 50, `${fifty.requests} requests of fifty`);
  assert.equal(fifty.timers, 50 * one.timers);
});

test('fifty shards take little memory in the wasm, and give it back', async () => {
  const bytes = () => wasm.memory.buffer.byteLength;
  // What a renewal holds is told by hours of them, in memory.test.mjs; here it is what an elector holds.
  await costOf(50, MINUTE_MS);
  const before = bytes();
  for (let round = 0; round < 5; round += 1) await costOf(50, MINUTE_MS);
  assert.equal(bytes(), before);
});

test('of three processes with fifty shards each, every shard is led by one; when one goes, the others have all of them', async () => {
  const storage = new MemoryStorage();
  // By one name, as somebody who copies a configuration does: the sessions keep them apart.
  const processes = [1, 2, 3].map(() => process(storage, SHARDS, 'worker'));
  await all(processes[0], 'init');
  await all(processes.flat(), 'start');
  const led = () => SHARDS.map((_shard, index) => processes.filter((electors) => electors[index].isLeader()).length);
  assert.deepEqual(led(), SHARDS.map(() => 1));
  await all(processes[0], 'stop');
  await runtime.pass(MINUTE_MS);
  assert.deepEqual(led(), SHARDS.map(() => 1));
  assert.equal(leaders(processes[0]).length, 0);
  const terms = processes.flat().filter((elector) => elector.isLeader()).map((elector) => elector.status().group);
  assert.deepEqual(terms.toSorted(), SHARDS.toSorted());
  await all(processes.flat(), 'stop');
});
