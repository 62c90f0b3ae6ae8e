// A backend of three calls, in virtual time: what holds without versions, and what is refused.
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

const SHORT = { leaderTimeout: 2_000, frequentInterval: 400, requestTimeout: 200 };

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
    // It lands long after everybody has given it up.
    if (typeof fault === 'number') return new Promise(() => setTimeout(act, fault, shardId, ownerId, ttl));
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

test('one of three of one name leads and renews once per interval, and the others try about as often', async () => {
  const own = backend();
  const members = [1, 2, 3].map(() => member(own, { serverId: 'worker-1' }));
  await Promise.all(members.map(({ elector }) => elector.start()));
  await runtime.pass(INTERVAL_MS - 100);
  assert.deepEqual([own.count('tryAcquire'), own.count('renew')], [3, 0], 'a start costs one try');
  await runtime.pass(60 * SECOND_MS);
  const fromMs = Date.now();
  await runtime.pass(1_000 * SECOND_MS);
  const leaders = members.filter(({ elector }) => elector.isLeader());
  assert.equal(leaders.length, 1);
  const owners = [...new Set(own.calls.map(({ ownerId }) => ownerId))];
  assert.equal(owners.length, 3, 'the owner is one session');
  for (const ownerId of owners) assert.match(ownerId, /^worker-1-[0-9a-f]{32}-1$/);
  const renewals = own.count('renew', fromMs);
  assert.ok(Math.abs(renewals - 200) <= 1, `${renewals} renewals`);
  const tries = own.count('tryAcquire', fromMs);
  // Two followers, each once per interval and a tenth of one at most.
  assert.ok(tries >= 2 * 180 && tries <= 2 * 200, `${tries} tries`);
  const gaps = own.calls.filter(({ name, atMs }) => name === 'tryAcquire' && atMs >= fromMs)
    .map(({ ownerId, atMs }, index, all) => all.slice(index + 1).find((one) => one.ownerId === ownerId)?.atMs - atMs);
  assert.ok(new Set(gaps).size > 20, 'jitter keeps them apart');
  const follower = members.find((one) => one !== leaders[0]);
  const { role, leaderId, unfenced, term, remainingMs } = follower.elector.status();
  assert.deepEqual({ role, leaderId, unfenced, term, remainingMs }, { role: 'candidate', leaderId: null, unfenced: true, term: null, remainingMs: null });
  assert.deepEqual(follower.heard, [], 'nobody is named whom the backend does not name');
  for (const one of members) await stopped(one);
  assert.equal(own.locks.size, 0);
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

test('the lease is a duration, and authority ends a margin before it, counted from before the call', async () => {
  const own = backend();
  const { elector, term } = await leading(own);
  assert.deepEqual(own.calls.map(({ name, shardId, ttl }) => [name, shardId, ttl]), [['tryAcquire', 'shard-1', LEASE_MS]]);
  const sentMs = own.calls[0].atMs;
  own.fault = () => 'hang';
  await runtime.pass(sentMs + LEASE_MS - MARGIN_MS - 1 - Date.now());
  assert.ok(elector.isLeader() && !term.signal.aborted);
  assert.equal(term.remaining(), 1);
  await runtime.pass(1);
  assert.ok(term.signal.aborted && !elector.isLeader());
});

for (const fault of ['before', 'after', 'hang']) {
  test(`a renewal of which nobody knows what became (${fault}) is no loss: it is tried again`, async () => {
    const own = backend();
    const { elector, heard } = await leading(own);
    const left = own.failing('renew', fault, 2);
    await runtime.pass(60 * SECOND_MS);
    assert.equal(left(), 0);
    assert.ok(elector.isLeader());
    assert.deepEqual(heard.map(([what]) => what), ['acquired', 'leader']);
  });

  test(`a claim of which nobody knows what became (${fault}) is found out by renew, and leads once`, async () => {
    const own = backend();
    own.failing('tryAcquire', fault, 1);
    const { elector, heard } = member(own);
    await elector.start();
    await runtime.pass(INTERVAL_MS);
    assert.ok(elector.isLeader());
    assert.deepEqual(heard.map(([what]) => what), ['acquired', 'leader']);
    if (fault === 'after') assert.deepEqual(own.calls.slice(0, 3).map(({ name }) => name), ['tryAcquire', 'tryAcquire', 'renew']);
    const [{ ownerId }] = own.calls;
    assert.equal(own.holder('shard-1'), ownerId);
    await stopped({ elector });
    assert.equal(own.holder('shard-1'), undefined);
  });
}

test('a backend that is away for longer than the lease costs the term at its fence; a new one begins when it is back', async () => {
  const own = backend();
  const { elector, heard, term } = await leading(own);
  own.fault = () => 'before';
  await runtime.pass(60 * SECOND_MS);
  assert.ok(term.signal.aborted && !elector.isLeader());
  assert.match(elector.status().error, /locker, key "shard-1": renew was cut off/);
  own.fault = () => undefined;
  await runtime.pass(60 * SECOND_MS);
  assert.ok(elector.isLeader());
  const acquired = heard.filter(([what]) => what === 'acquired');
  assert.equal(acquired.length, 2);
  assert.notEqual(acquired[0][1], acquired[1][1]);
  assert.ok(acquired[0][1].signal.aborted, 'a term never resumes');
  assert.equal(elector.status().error, null);
});

test('a renewal that finds another owner ends the term at once', async () => {
  const own = backend();
  const { elector, heard } = await leading(own);
  own.locks.set('shard-1', { ownerId: 'thief', untilMs: Date.now() + LEASE_MS });
  await runtime.pass(INTERVAL_MS);
  assert.equal(elector.isLeader(), false);
  assert.deepEqual(heard.find(([what]) => what === 'lost'), ['lost', 'overtaken', undefined]);
  const fromMs = Date.now();
  await runtime.pass(4_000);
  assert.equal(own.count('tryAcquire', fromMs), 0, 'an interval passes first');
  await stopped({ elector });
  assert.equal(own.holder('shard-1') ?? 'thief', 'thief', 'the lock of another is not released');
});

for (const how of [{}, { park: true }]) {
  // Nobody else could take a parked lock over.
  test(`a stop (${JSON.stringify(how)}) releases after the work has stopped, and a member that waits takes over within an interval`, async () => {
    const own = backend();
    let ended;
    const worked = new Promise((resolve) => (ended = resolve));
    const { elector } = await leading(own, { onLoseLeadership: () => worked });
    const second = member(own);
    await second.elector.start();
    const stop = elector.stop(how);
    await runtime.pass(2 * SECOND_MS);
    assert.equal(own.count('release'), 0);
    ended();
    await runtime.pass(10);
    await stop;
    assert.equal(own.count('release'), 1);
    await runtime.pass(1.2 * INTERVAL_MS);
    assert.ok(second.elector.isLeader());
  });
}

test('a release that is held up does not meet what the same session has acquired since', async () => {
  const own = backend();
  const { elector, heard } = await leading(own);
  own.fault = (name) => (name === 'release' ? 30 * SECOND_MS : undefined);
  const resigned = elector.resign();
  await runtime.pass(25 * SECOND_MS);
  await resigned;
  assert.equal(own.count('release'), 3);
  await runtime.pass(3 * SECOND_MS);
  assert.ok(elector.isLeader(), 'it leads again once the lock it could not release has run out');
  await runtime.pass(10 * SECOND_MS);
  assert.ok(elector.isLeader() && own.holder('shard-1') !== undefined);
  assert.deepEqual(heard.map(([what]) => what).filter((what) => what !== 'leader'), ['acquired', 'lost', 'acquired']);
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

test('a no that comes after its time is none', async () => {
  const own = backend();
  const { elector, heard } = await leading(own);
  const { renew } = own.storage;
  own.storage.renew = async (...how) => {
    own.storage.renew = renew;
    await new Promise((resolve) => setTimeout(resolve, REQUEST_MS + 500));
    return renew('another shard', ...how.slice(1));
  };
  await runtime.pass(30 * SECOND_MS);
  assert.ok(elector.isLeader());
  assert.deepEqual(heard.map(([what]) => what), ['acquired', 'leader']);
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

test('random faults for an hour: at no instant two of five members lead', async () => {
  const own = backend();
  let seed = 7;
  const random = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed / 0x7fffffff;
  };
  const faults = ['before', 'after', 'hang', 500, 3_000, 12_000, 40_000];
  own.fault = () => (random() < 0.2 ? faults[Math.floor(random() * faults.length)] : undefined);
  const members = Array.from({ length: 5 }, (_one, index) => member(own, { serverId: `m${index}` }));
  await Promise.all(members.map(({ elector }) => elector.start()));
  let led = 0;
  for (let second = 0; second < 3_600; second += 1) {
    await runtime.pass(SECOND_MS);
    const leaders = members.filter(({ elector }) => elector.isLeader());
    assert.ok(leaders.length <= 1, `${leaders.length} lead after ${second} s`);
    led += leaders.length;
    if (leaders.length === 1 && second % 97 === 96) void leaders[0].elector.resign();
  }
  assert.ok(led > 1_800, `somebody led for ${led} of 3600 s`);
  own.fault = () => undefined;
});

/** One renewal is held up for `lateMs`; a later one is granted by then. */
const heldUpRenewal = async (own, lateMs) => {
  const left = own.failing('renew', lateMs, 1);
  await runtime.pass(SECOND_MS);
  assert.equal(left(), 0);
};

test('a renewal that is held up does not shorten what a later one has granted, whatever updateConfig said in between', async () => {
  const own = backend();
  const { elector, term } = await leading(own, SHORT);
  const follower = member(own, SHORT);
  await follower.elector.start();
  await heldUpRenewal(own, 10 * SECOND_MS);
  elector.updateConfig({ leaderTimeout: 30_000, frequentInterval: 20_000 });
  for (let tenth = 0; tenth < 400; tenth += 1) {
    await runtime.pass(100);
    assert.ok(!(elector.isLeader() && follower.elector.isLeader()), `two lead, ${term.remaining()} ms of authority left`);
  }
  const ttls = new Map();
  for (const { name, ownerId, ttl } of own.calls.filter((one) => one.name !== 'release')) {
    ttls.set(ownerId, (ttls.get(ownerId) ?? new Set()).add(ttl));
    assert.equal(ttls.get(ownerId).size, 1, `${name} of one owner asks for ${[...ttls.get(ownerId)]} ms`);
  }
});

test('a new lease counts from the next term on, under a name of its own', async () => {
  const own = backend();
  const { elector, heard } = await leading(own, SHORT);
  await heldUpRenewal(own, 20 * SECOND_MS);
  own.fault = () => 'before';
  await runtime.pass(3 * SECOND_MS);
  assert.equal(elector.isLeader(), false);
  elector.updateConfig({ leaderTimeout: 60_000, frequentInterval: 30_000, requestTimeout: 1_800 });
  const fromMs = Date.now();
  own.fault = () => undefined;
  await runtime.pass(40 * SECOND_MS);
  assert.ok(elector.isLeader());
  assert.equal(heard.filter(([what]) => what === 'acquired').length, 2);
  const later = own.calls.filter(({ name, atMs }) => name !== 'release' && atMs >= fromMs);
  assert.ok(later.some(({ ttl }) => ttl === 60_000));
  const owners = (ttl) => new Set(own.calls.filter((one) => one.ttl === ttl).map(({ ownerId }) => ownerId));
  assert.deepEqual([...owners(2_000)].filter((one) => owners(60_000).has(one)), []);
  assert.equal(own.holder('shard-1'), [...owners(60_000)].at(-1));
});
