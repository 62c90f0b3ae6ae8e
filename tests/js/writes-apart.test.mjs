// A storage that takes one write a second of each object, as R2 does: nobody claims sooner after a release.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
runtime.flow();
const { MemoryStorage, R2Storage } = await import('edgelect');
const { bent, leads, member, pause, until } = await import('./group.mjs');

/** How many milliseconds after a release the next leader writes, who has looked so many milliseconds before it. */
const pauseOver = async (apart, afterMs) => {
  const memory = new MemoryStorage();
  const writes = [];
  const putIfMatch = (...how) => {
    const written = memory.putIfMatch(...how);
    if (written) writes.push(Date.now());
    return written;
  };
  const storage = Object.assign(bent(memory, { putIfMatch }), apart);
  const options = { leaderTimeout: 15_000, frequentInterval: 1_000, follow: 'tight' };
  const first = member(storage, options);
  await first.init();
  await first.start();
  await leads(first);
  const second = member(storage, { ...options, serverId: 'b' });
  await second.start();
  await until(() => second.status().role === 'follower');
  await pause(afterMs);
  await first.stop();
  const before = writes.length;
  await leads(second);
  return writes[before] - writes[before - 1];
};

test('a storage says how far apart writes of one object are, and nobody claims sooner after a release', async () => {
  const [any, apart] = [[], []];
  for (let round = 0; round < 10; round += 1) {
    any.push(await pauseOver({}, 100 * round));
    apart.push(await pauseOver({ writesApart: 1_000 }, 100 * round));
  }
  assert.ok(Math.min(...any) < 1_000, `without: ${any}`);
  assert.ok(Math.min(...apart) >= 1_000, `with: ${apart}`);
});

test("R2's binding says a second", () => {
  const nothing = () => null;
  assert.equal(new R2Storage({ head: nothing, get: nothing, put: nothing }).writesApart, 1_000);
});
