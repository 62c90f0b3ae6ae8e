// A backend of three calls as JavaScript sees it, in virtual time. How elections go over one is held in tests/driver/locker.rs, and
// what its calls may give and miss in tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

virtualRuntime().flow();
const { Elector, MemoryStorage, S3Storage, coordinator } = await import('edgelect');
const { member, newLocker, started } = await import('./group.mjs');

test('no token: nothing that somebody could mistake for a fence is anywhere', async () => {
  const lost = [];
  const elector = member(newLocker(), { onLoseLeadership: ({ term }) => lost.push(term) });
  const term = await started(elector);
  assert.equal(term.token, undefined);
  assert.ok('token' in term && Object.isFrozen(term));
  const { role, leaderId, unfenced, term: shown } = elector.status();
  assert.deepEqual([role, leaderId, unfenced, shown], ['leader', 'a', true, null]);
  const health = await elector.handleRequest(new Request('http://x/health/leadership'));
  const body = await health.json();
  assert.deepEqual([health.status, health.headers.get('etag'), 'term' in body, body.leaderID], [200, null, false, 'a']);
  assert.equal(await elector.lead(({ token }) => token), undefined);
  await elector.stop();
  assert.match(term.signal.reason.message, /^the authority of an unfenced term has ended: [a-z]+$/);
  assert.deepEqual([lost, elector.status().unfenced, elector.status().term], [[undefined], true, null]);
});

test('the five options of shardcoordinator are the group, the name, the lease, the interval and the storage, over three calls or versions', () => {
  const five = { shardId: 'batch', ownerId: 'worker-1', leaseDuration: 1_000, renewPeriod: 200 };
  for (const locker of [new MemoryStorage(), newLocker()]) {
    const elector = new Elector(coordinator({ ...five, locker }));
    const { lockfilePath, serverId, leaderTimeout, frequentInterval } = elector.config;
    assert.deepEqual([lockfilePath, serverId, leaderTimeout, frequentInterval], ['batch', 'worker-1', 1_000, 200]);
    assert.equal(elector.status().unfenced, locker instanceof MemoryStorage ? undefined : true);
  }
});

test('what needs versions is refused with the reason', async () => {
  const elector = member(newLocker());
  const refused = (what) => ({ name: 'EdgelectError', code: 'EDGELECT_CONFIG', field: 'storage', message: new RegExp(`^${what} needs a storage with versions`) });
  await elector.lead((term) => assert.rejects(term.checkpoint('a.json'), refused('a checkpoint')));
  assert.throws(() => elector.enablePeerMode(), refused('peerMode'));
  for (const option of ['peerMode', 'probe']) assert.throws(() => member(newLocker(), { [option]: true }), refused(option));
  for (const call of ['init', 'doctor', 'pause']) await assert.rejects(elector[call](), refused(call));
  await assert.rejects(elector.runScheduled(Date.now(), () => {}), refused('runScheduled'));
});

test('half a backend is refused by the name of what it lacks; one with versions as well is used by them', async () => {
  const { tryAcquire, renew, release } = newLocker();
  const over = (storage) => new Elector({ storage, lockfilePath: 'a' });
  assert.throws(() => over({ tryAcquire, renew }), /needs the methods tryAcquire, renew and release; it has no release/);
  assert.throws(() => over({ get: renew }), /needs the methods get and putIfMatch; it has no putIfMatch/);
  const both = { tryAcquire, renew, release, get: () => null, putIfMatch: () => null };
  assert.equal('unfenced' in over(both).status(), false);
  const { get: _, ...unread } = both;
  assert.equal(over(unread).status().unfenced, true, 'nothing to read versions by');
  class Bucket extends S3Storage {}
  Object.assign(Bucket.prototype, { tryAcquire, renew, release });
  const bucket = new Bucket({ bucket: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
  assert.equal('unfenced' in over(bucket).status(), false, 'an S3Storage stays one');
});
