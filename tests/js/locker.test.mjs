// A backend of three calls as JavaScript sees it, in virtual time. How elections go over one is held in tests/driver/locker.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atEnd } from './ending.mjs';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, S3Storage } = await import('edgelect');

const SECOND_MS = 1_000;
const LEASE_MS = 15_000;
const MARGIN_MS = 1_500;
const INTERVAL_MS = 5_000;
const REQUEST_MS = 1_800;

const running = [];
atEnd(async () => {
  const stops = running.map((elector) => elector.stop());
  await runtime.pass(120 * SECOND_MS);
  await Promise.all(stops);
  assert.equal(runtime.timers(), 0);
});

/** The backend as its document describes it, on a clock of its own; `fault(name)` may change what a call does. */
const backend = () => {
  const locks = new Map();
  const calls = [];
  const self = { locks, calls, fault: () => undefined };
  const holder = (shardId) => {
    const lock = locks.get(shardId);
    return lock && lock.untilMs > Date.now() ? lock.ownerId : undefined;
  };
  const call = (name, act) => async (shardId, ownerId, ...rest) => {
    const [ttl, options] = name === 'release' ? [undefined, ...rest] : rest;
    calls.push({ name, shardId, ownerId, ttl, atMs: Date.now(), signal: options?.signal });
    const fault = self.fault(name, calls.length);
    if (fault === 'before') throw new Error(`${name} was cut off`);
    if (fault === 'hang') return new Promise(() => {});
    const answer = act(shardId, ownerId, ttl);
    if (fault === 'after') throw new Error(`${name} was cut off afterwards`);
    return answer;
  };
  self.storage = {
    tryAcquire: call('tryAcquire', (shardId, ownerId, ttl) => {
      if (holder(shardId) !== undefined) return false;
      locks.set(shardId, { ownerId, untilMs: Date.now() + ttl });
      return true;
    }),
    renew: call('renew', (shardId, ownerId, ttl) => {
      if (holder(shardId) !== ownerId) return false;
      locks.set(shardId, { ownerId, untilMs: Date.now() + ttl });
      return true;
    }),
    release: call('release', (shardId, ownerId) => {
      if (holder(shardId) === ownerId) locks.delete(shardId);
    }),
  };
  /** Has the next calls of this name fail so; tells how many of them are left. */
  self.failing = (failing, fault, times) => {
    let left = times;
    self.fault = (name) => (name === failing && left > 0 ? (left -= 1, fault) : undefined);
    return () => left;
  };
  self.holder = holder;
  self.count = (name, fromMs = 0) => calls.filter((one) => one.name === name && one.atMs >= fromMs).length;
  return self;
};

const member = ({ storage }, options = {}) => {
  const heard = [];
  const elector = new Elector({
    storage,
    lockfilePath: 'shard-1',
    onAcquireLeadership: (term) => void heard.push(['acquired', term]),
    onLoseLeadership: ({ term, reason }) => void heard.push(['lost', reason, term]),
    onNewLeader: (leaderId) => void heard.push(['leader', leaderId]),
    ...options,
  });
  running.push(elector);
  return { elector, heard };
};

const leading = async (own, options) => {
  const one = member(own, options);
  await one.elector.start();
  await runtime.pass(10);
  assert.ok(one.elector.isLeader(), one.elector.status().error ?? 'it does not lead');
  const term = one.heard[0][1];
  return { ...one, term };
};

const stopped = async ({ elector }) => {
  const stop = elector.stop();
  await runtime.pass(20 * SECOND_MS);
  await stop;
};

test('a claim and a renewal of which nobody knows what became, by whatever failure, cost no term', async () => {
  for (const fault of ['before', 'after', 'hang']) {
    const own = backend();
    own.failing('tryAcquire', fault, 1);
    const { elector, heard } = member(own, { serverId: 'worker-1' });
    await elector.start();
    await runtime.pass(INTERVAL_MS);
    assert.ok(elector.isLeader(), fault);
    const [{ name, shardId, ownerId, ttl }] = own.calls;
    assert.deepEqual([name, shardId, ttl, own.holder('shard-1')], ['tryAcquire', 'shard-1', LEASE_MS, ownerId], fault);
    assert.match(ownerId, /^worker-1-[0-9a-f]{32}-1$/);
    const left = own.failing('renew', fault, 2);
    await runtime.pass(60 * SECOND_MS);
    assert.deepEqual([left(), elector.isLeader()], [0, true], fault);
    assert.deepEqual(heard.map(([what]) => what), ['acquired', 'leader'], fault);
    await stopped({ elector });
    assert.equal(own.holder('shard-1'), undefined, fault);
  }
});

test('no token: nothing that somebody could mistake for a fence is anywhere', async () => {
  const own = backend();
  const { elector, heard, term } = await leading(own, { serverId: 'a' });
  assert.equal(term.token, undefined);
  assert.ok('token' in term && Object.isFrozen(term));
  const { role, leaderId, unfenced, term: shown } = elector.status();
  assert.deepEqual([role, leaderId, unfenced, shown], ['leader', 'a', true, null]);
  const health = await elector.handleRequest(new Request('http://x/health/leadership'));
  const body = await health.json();
  assert.deepEqual([health.status, health.headers.get('etag'), 'term' in body, body.leaderID], [200, null, false, 'a']);
  const led = elector.lead(({ token }) => token);
  await runtime.pass(10);
  assert.equal(await Promise.race([led, runtime.settle().then(() => 'still')]), undefined);
  await stopped({ elector });
  assert.match(term.signal.reason.message, /^the authority of an unfenced term has ended: [a-z]+$/);
  assert.deepEqual(heard.filter(([what]) => what === 'lost').map(([, , token]) => token), [undefined]);
  assert.deepEqual([elector.status().unfenced, elector.status().term], [true, null]);
});

test('what is neither true nor false is unknown, never a lock that is held', async () => {
  for (const answer of [undefined, 1, 'true', null, {}]) {
    const own = backend();
    own.storage.tryAcquire = async () => answer;
    own.storage.renew = async () => answer;
    const { elector, heard } = member(own);
    await elector.start();
    await runtime.pass(30 * SECOND_MS);
    assert.deepEqual(heard, []);
    assert.match(elector.status().error, /gave no true or false/);
  }
});

test('an answer that comes after its time grants nothing', async () => {
  const own = backend();
  const { tryAcquire } = own.storage;
  let late = 1;
  own.storage.tryAcquire = async (...how) => {
    const answer = await tryAcquire(...how);
    if (late > 0) {
      late -= 1;
      await new Promise((resolve) => setTimeout(resolve, REQUEST_MS + 100));
    }
    return answer;
  };
  const { elector, heard } = member(own);
  await elector.start();
  await runtime.pass(1.5 * SECOND_MS);
  assert.equal(elector.isLeader(), false);
  await runtime.pass(INTERVAL_MS);
  assert.equal(heard.filter(([what]) => what === 'acquired').length, 1, 'it is found out by renew instead');
  const { remainingMs } = elector.status();
  assert.ok(remainingMs <= own.locks.get('shard-1').untilMs - Date.now() - MARGIN_MS, `${remainingMs} ms`);
});

test('what needs versions is refused with the reason', async () => {
  const own = backend();
  const { elector, term } = await leading(own);
  const refused = (what) => ({ name: 'EdgelectError', code: 'EDGELECT_CONFIG', field: 'storage', message: new RegExp(`^${what} needs a storage with versions`) });
  await assert.rejects(term.checkpoint('a.json'), refused('a checkpoint'));
  assert.throws(() => elector.enablePeerMode(), refused('peerMode'));
  for (const option of ['peerMode', 'probe']) assert.throws(() => member(own, { [option]: true }), refused(option));
  await stopped({ elector });
  for (const call of ['init', 'doctor']) await assert.rejects(elector[call](), refused(call));
  await assert.rejects(elector.runScheduled(Date.now(), () => {}), refused('runScheduled'));
  assert.equal(own.count('renew'), 0);
});

test('half a backend is refused by the name of what it lacks; one with versions as well is used by them', async () => {
  const { tryAcquire, renew, release } = backend().storage;
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
