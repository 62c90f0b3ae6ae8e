// What users of shardcoordinator know: five options, over a storage or over three calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, MemoryStorage, coordinator } from 'edgelect';
import { newLocker } from './group.mjs';

const TIMING = { leaseDuration: 1_000, renewPeriod: 200 };

test('the five are the group, the name, the lease, the interval and the storage of an elector', () => {
  for (const locker of [new MemoryStorage(), newLocker()]) {
    const elector = new Elector(coordinator({ shardId: 'batch', ownerId: 'worker-1', ...TIMING, locker }));
    const { lockfilePath, serverId, leaderTimeout, frequentInterval } = elector.config;
    assert.deepEqual([lockfilePath, serverId, leaderTimeout, frequentInterval], ['batch', 'worker-1', 1_000, 200]);
    assert.equal(elector.status().unfenced, locker instanceof MemoryStorage ? undefined : true);
  }
});

test('each of the five is needed, and there are no others', () => {
  const all = { shardId: 'a', ownerId: 'b', ...TIMING, locker: new MemoryStorage() };
  for (const field of Object.keys(all)) {
    assert.throws(() => coordinator({ ...all, [field]: undefined }), { code: 'EDGELECT_CONFIG', field });
  }
  assert.throws(() => coordinator({ ...all, shard: 'a' }), { code: 'EDGELECT_CONFIG', field: 'shard' });
  assert.throws(() => coordinator(3), { code: 'EDGELECT_CONFIG' });
});
