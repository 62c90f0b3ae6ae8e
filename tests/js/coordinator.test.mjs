// What users of shardcoordinator know: five options, start, stop and isLeader, over a storage or over three calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, MemoryStorage, coordinator } from 'edgelect';
import { newLocker, until } from './group.mjs';

const TIMING = { leaseDuration: 1_000, renewPeriod: 200 };

for (const [name, storage] of [['a storage', new MemoryStorage()], ['three calls', newLocker()]]) {
  test(`one of two coordinators leads over ${name}, and the other one after it has stopped`, async () => {
    const [one, two] = ['worker-1', 'worker-2'].map((ownerId) =>
      new Elector({ ...coordinator({ shardId: 'batch', ownerId, ...TIMING, locker: storage }), warn: false }));
    await one.start();
    await until(() => one.isLeader());
    await two.start();
    assert.equal(two.isLeader(), false);
    await one.stop();
    assert.equal(one.isLeader(), false);
    await until(() => two.isLeader());
    await two.stop();
  });
}

test('each of the five is needed, and there are no others', () => {
  const all = { shardId: 'a', ownerId: 'b', ...TIMING, locker: new MemoryStorage() };
  for (const field of Object.keys(all)) {
    assert.throws(() => coordinator({ ...all, [field]: undefined }), { code: 'EDGELECT_CONFIG', field });
  }
  assert.throws(() => coordinator({ ...all, shard: 'a' }), { code: 'EDGELECT_CONFIG', field: 'shard' });
  assert.throws(() => coordinator(3), { code: 'EDGELECT_CONFIG' });
});
