import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Elector, EdgelectError, MemoryStorage } from 'edgelect';

const FAST = { leaderTimeout: 1000, frequentInterval: 250, follow: 'tight', lockfilePath: 'leader/test.json' };
const running = [];

after(() => Promise.all(running.map((elector) => elector.stop())));

const member = (storage, options = {}) => {
  const elector = new Elector({ storage, ...FAST, ...options });
  running.push(elector);
  return elector;
};

const record = (storage, key = FAST.lockfilePath) =>
  JSON.parse(new TextDecoder().decode(storage.get(key).body));

const newGroup = async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  return storage;
};

const until = async (holds, limitMs = 30_000) => {
  const endMs = Date.now() + limitMs;
  while (!holds()) {
    if (Date.now() > endMs) throw new Error(`not within ${limitMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

test('one of three leads, and the record names it with a growing token', async () => {
  const storage = await newGroup();
  const started = record(storage).term;
  const members = ['a', 'b', 'c'].map((serverId) => member(storage, { serverId }));
  await Promise.all(members.map((elector) => elector.start()));
  await until(() => members.some((elector) => elector.isLeader()));
  await until(() => members.every((elector) => elector.leaderId() !== null));
  const leaders = members.filter((elector) => elector.isLeader());
  assert.equal(leaders.length, 1);
  const { serverId } = leaders[0].status();
  assert.ok(members.every((elector) => elector.leaderId() === serverId));
  assert.equal(record(storage).leaderID, serverId);
  assert.ok(record(storage).term > started);
  assert.equal(leaders[0].status().role, 'leader');
  assert.ok(leaders[0].status().remainingMs <= 900);
  await Promise.all(members.map((elector) => elector.stop()));
  assert.equal(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
  assert.equal(members[0].status().role, 'stopped');
});

test('c01 without init nobody leads before the grace is over', async () => {
  const storage = new MemoryStorage();
  const startedMs = performance.now();
  const members = ['a', 'b'].map((serverId) => member(storage, { serverId }));
  await Promise.all(members.map((elector) => elector.start()));
  await until(() => storage.get(FAST.lockfilePath) !== null);
  const created = record(storage);
  assert.equal(created.leaseMs, 4000);
  assert.ok(members.every((elector) => !elector.isLeader()));
  await Promise.race(members.map((elector) => elector.waitForLeadership()));
  assert.ok(performance.now() - startedMs >= 4000);
  assert.ok(record(storage).term > created.term);
  assert.equal(members.filter((elector) => elector.isLeader()).length, 1);
  await Promise.all(members.map((elector) => elector.stop()));
});

test('the three callbacks come once each, in order, and the signal fires first', async () => {
  const storage = await newGroup();
  const heard = [];
  const elector = member(storage, {
    serverId: 'a',
    onAcquireLeadership: (term) => {
      heard.push('acquire');
      term.signal.addEventListener('abort', () => heard.push('signal'));
    },
    onLoseLeadership: async ({ term, reason }) => {
      heard.push(`lose ${reason}`);
      assert.equal(typeof term, 'number');
      // The lease is not released before the work has stopped.
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.notEqual(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
    },
    onNewLeader: (leaderId) => heard.push(`leader ${leaderId}`),
  });
  await elector.start();
  const term = await elector.waitForLeadership();
  assert.ok(Number.isSafeInteger(term.token));
  assert.ok(term.remaining() > 0 && term.remaining() <= 900);
  await elector.stop();
  assert.equal(term.remaining(), 0);
  assert.equal(term.signal.reason.code, 'EDGELECT_LOST');
  assert.deepEqual(heard, ['acquire', 'leader a', 'signal', 'lose stopped', 'leader null']);
});

test('lead runs the work as the leader and gives the lease back', async () => {
  const storage = await newGroup();
  const elector = member(storage, { serverId: 'a' });
  const token = await elector.lead(async (term) => {
    assert.ok(elector.isLeader());
    return term.token;
  });
  assert.equal(record(storage).term, token);
  assert.equal(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
  await assert.rejects(elector.lead(() => Promise.reject(new Error('the work failed'))), /the work failed/);
  await assert.rejects(elector.lead(() => 1, { signal: AbortSignal.abort(new Error('no')) }), /^Error: no$/);
  const controller = new AbortController();
  const aborted = elector.lead(
    (term) => {
      setTimeout(() => controller.abort(new Error('enough')), 10);
      return new Promise((_resolve, reject) => {
        term.signal.addEventListener('abort', () => reject(term.signal.reason));
      });
    },
    { signal: controller.signal },
  );
  await assert.rejects(aborted, /^Error: enough$/);
  assert.equal(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
});

test('lead runs the work again in a new term when the old one was lost', async () => {
  const storage = await newGroup();
  const elector = member(storage, { serverId: 'a' });
  const tokens = [];
  await elector.lead((term) => {
    tokens.push(term.token);
    if (tokens.length === 2) return undefined;
    const stolen = record(storage);
    const thief = { ...stolen, leaderID: 'thief', session: 'thief', term: stolen.term + 10, leaseMs: 1000 };
    storage.putIfMatch(FAST.lockfilePath, new TextEncoder().encode(JSON.stringify(thief)), storage.get(FAST.lockfilePath).etag);
    return new Promise((_resolve, reject) => {
      term.signal.addEventListener('abort', () => reject(term.signal.reason));
    });
  });
  assert.equal(tokens.length, 2);
  assert.ok(tokens[1] > tokens[0] + 10);
});

test('resign hands over and the resigned member sits out', async () => {
  const storage = await newGroup();
  const [a, b] = ['a', 'b'].map((serverId) => member(storage, { serverId }));
  await a.start();
  const first = await a.waitForLeadership();
  await b.start();
  await a.resign();
  assert.equal(a.isLeader(), false);
  const second = await b.waitForLeadership();
  assert.ok(second.token > first.token);
  assert.equal(a.isLeader(), false);
  await Promise.all([a.stop(), b.stop()]);
});

test('c50 an acquire callback that throws resigns, sits out, and competes again', async () => {
  const storage = await newGroup();
  const tokens = [];
  const lost = [];
  const elector = member(storage, {
    serverId: 'a',
    onAcquireLeadership: (term) => {
      tokens.push(term.token);
      if (tokens.length === 1) throw new Error('not ready');
    },
    onLoseLeadership: ({ term, reason }) => lost.push([term, reason]),
  });
  await elector.start();
  await until(() => lost.length === 1);
  assert.deepEqual(lost, [[tokens[0], 'resigned']]);
  assert.match(elector.status().error, /onAcquireLeadership threw: not ready/);
  await until(() => tokens.length === 2);
  assert.ok(tokens[1] > tokens[0]);
  assert.ok(elector.isLeader());
  await elector.stop();
});

test('what a callback threw is no problem any more once a later call of the same callback has ended well', async () => {
  const storage = await newGroup();
  const failing = new Set();
  const call = (name) => async () => {
    await null;
    if (failing.has(name)) throw new Error('not now');
  };
  const names = ['onAcquireLeadership', 'onLoseLeadership', 'onNewLeader'];
  const elector = member(storage, { serverId: 'a', ...Object.fromEntries(names.map((name) => [name, call(name)])) });
  await elector.start();
  for (const name of names) {
    const term = await elector.waitForLeadership();
    failing.add(name);
    term.resign();
    await until(() => elector.status().error === `${name} threw: not now`);
    // Others that end well meanwhile take nothing away.
    if (name === 'onLoseLeadership') await until(() => elector.isLeader());
    assert.equal(elector.status().error, `${name} threw: not now`);
    failing.clear();
    await until(() => elector.isLeader());
    elector.resign().catch(() => {});
    await until(() => elector.status().error === null);
  }
  await elector.stop();
});

test('c49 a callback that calls the elector does not wait for itself', async () => {
  const storage = await newGroup();
  const stops = [];
  const elector = member(storage, {
    serverId: 'a',
    onAcquireLeadership: async () => {
      elector.status();
      elector.isLeader();
      await elector.stop();
      stops.push('acquire');
    },
    onLoseLeadership: async () => {
      await elector.stop();
      stops.push('lose');
    },
  });
  await elector.start();
  await until(() => stops.length === 2);
  assert.equal(elector.status().role, 'stopped');
  assert.equal(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
});

test('a stopped elector starts again as another session', async () => {
  const storage = await newGroup();
  const elector = member(storage, { serverId: 'a' });
  await elector.start();
  const first = await elector.waitForLeadership();
  const { session } = elector.status();
  await elector.stop();
  await assert.rejects(elector.waitForLeadership(), { code: 'EDGELECT_STOPPED' });
  await elector.start();
  const second = await elector.waitForLeadership();
  assert.notEqual(elector.status().session, session);
  assert.ok(second.token > first.token);
  await elector.stop({ park: true });
  assert.equal(record(storage).parked, true);
});

test('waitForLeadership ends with its signal', async () => {
  const storage = await newGroup();
  const [a, b] = ['a', 'b'].map((serverId) => member(storage, { serverId }));
  await a.start();
  await a.waitForLeadership();
  await b.start();
  const controller = new AbortController();
  const waiting = b.waitForLeadership({ signal: controller.signal });
  controller.abort(new Error('long enough'));
  await assert.rejects(waiting, /long enough/);
  await Promise.all([a.stop(), b.stop()]);
});

test('updateConfig takes effect with the next write, and config shows what is in force', async () => {
  const storage = await newGroup();
  const elector = member(storage, { serverId: 'a', maxLease: 4000 });
  await elector.start();
  await elector.waitForLeadership();
  assert.equal(elector.config.leaderTimeout, 1000);
  elector.updateConfig({ leaderTimeout: 2000 });
  assert.equal(elector.config.leaderTimeout, 2000);
  assert.equal(elector.config.margin, 200);
  await until(() => record(storage).leaseMs === 2000);
  assert.throws(() => elector.updateConfig({ leaderTimeout: 5000 }), { field: 'maxLease' });
  assert.throws(() => elector.updateConfig({ lockfilePath: 'other' }), { field: 'lockfilePath' });
  assert.equal(elector.config.leaderTimeout, 2000);
  elector.enablePeerMode({ peerTimeout: 500 });
  assert.equal(elector.config.peerMode, true);
  await elector.stop();
});

test('handleRequest answers while it leads, 404 otherwise, 405 to other methods', async () => {
  const storage = await newGroup();
  const [a, b] = ['a', 'b'].map((serverId) => member(storage, { serverId }));
  const ask = (elector, init) => elector.handleRequest(new Request('http://x/health/leadership', init));
  assert.equal((await ask(a)).status, 404);
  await a.start();
  const term = await a.waitForLeadership();
  await b.start();
  const answer = await ask(a);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('etag'), storage.get(FAST.lockfilePath).etag);
  const body = await answer.json();
  assert.deepEqual([body.leaderID, body.term, body.group], ['a', term.token, FAST.lockfilePath]);
  assert.ok(body.remainingMs > 0 && body.remainingMs <= 900);
  assert.equal((await ask(b)).status, 404);
  const wrong = await ask(a, { method: 'POST' });
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
  assert.equal((await a.handleRequest(new Request('http://x/other'))).status, 404);
  await a.stop();
  assert.equal((await ask(a)).status, 404);
  await b.stop();
});

test('c05 the signal fires at the fence when the storage is gone', async () => {
  const storage = await newGroup();
  let cut = false;
  const flaky = {
    get: (key) => (cut ? Promise.reject(new Error('cut')) : storage.get(key)),
    putIfMatch: (...args) => (cut ? new Promise(() => {}) : storage.putIfMatch(...args)),
  };
  const lost = [];
  const elector = member(flaky, { serverId: 'a', onLoseLeadership: (how) => lost.push(how) });
  await elector.start();
  const term = await elector.waitForLeadership();
  cut = true;
  const startMs = performance.now();
  let seenMs = startMs;
  await until(() => {
    const nowMs = performance.now();
    if (term.remaining() > 0) seenMs = nowMs;
    return term.signal.aborted;
  });
  assert.ok(seenMs - startMs <= 1000, 'the lease is 1000 ms, so authority is gone before');
  assert.equal(elector.isLeader(), false);
  assert.deepEqual(lost, [{ term: term.token, reason: 'expired' }]);
  cut = false;
  const again = await elector.waitForLeadership();
  assert.ok(again.token > term.token);
  await elector.stop();
  assert.equal(lost.length, 2);
});

test('a wrong option is an EdgelectError that names it', () => {
  const storage = new MemoryStorage();
  for (const [options, field] of [
    [{ leaderTimeout: '15s' }, 'leaderTimeout'],
    [{ leaderTimeout: NaN }, 'leaderTimeout'],
    [{ leaderTimeout: 10n }, 'leaderTimeout'],
    [{ frequentInterval: 999 }, 'frequentInterval'],
    [{ lockfilePath: '/a' }, 'lockfilePath'],
    [{ follow: 'loosely' }, 'follow'],
    [{ unref: 'yes' }, 'unref'],
    [{ onNewLeader: 'me' }, 'onNewLeader'],
    [{ leaderTimeOut: 15000 }, 'leaderTimeOut'],
    [{ storage: {} }, 'storage'],
    [{ storage: 's3://bucket' }, 'storage'],
  ]) {
    const make = () => new Elector({ storage, ...FAST, ...options });
    assert.throws(make, (error) => {
      assert.ok(error instanceof EdgelectError, String(error));
      assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', field]);
      return error.message.includes(field);
    });
  }
});

test('init makes a group once', async () => {
  const storage = await newGroup();
  await assert.rejects(member(storage).init(), { code: 'EDGELECT_EXISTS' });
});

test('s10 an event loop that was really blocked past the fence finds the signal fired and the time over', async () => {
  const elector = member(await newGroup());
  const seen = [];
  await elector.lead((term) => {
    if (seen.length > 0) return;
    const { signal } = term;
    const endMs = performance.now() + 1_100;
    while (performance.now() < endMs);
    seen.push(signal.aborted, term.remaining());
  });
  assert.deepEqual(seen, [true, 0]);
  await elector.stop();
});
