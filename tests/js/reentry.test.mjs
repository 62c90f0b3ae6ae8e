// Bugs that happened, kept: code that calls the elector back from inside its work, its callbacks, storages and listeners; sessions that
// wait for old work; and what listens for a signal. That a signal has fired when a blocked loop goes on, that lost work counts for
// nothing and that no lease is released under work which resigns is held by tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
runtime.flow();
const { S3Storage } = await import('edgelect');
const { FAST, LONG, gated, isReleased, leading, leads, member, newGroup, noting, pause, recordIn, replaced, started, until, within } =
  await import('./group.mjs');

const stopped = (elector) => until(() => elector.status().role === 'stopped');

test('the lease is not released under a callback that first gives its term up and then goes on', async () => {
  for (const giveUp of [(_elector, term) => term.resign(), (elector) => void elector.resign(), (elector) => void elector.stop()]) {
    const [atReleases, ends] = [[], gated()];
    let working = 0;
    const note = (name, _key, body) => name === 'putIfMatch' && isReleased(body) && atReleases.push(working);
    const onAcquireLeadership = async (term) => {
      if (atReleases.length > 0) return;
      working += 1;
      giveUp(elector, term);
      await pause(2 * LONG.frequentInterval);
      working -= 1;
      ends.resolve();
    };
    const elector = member(noting(await newGroup(), note), { ...LONG, onAcquireLeadership });
    await elector.start();
    await within(ends.promise);
    await until(() => atReleases.length > 0);
    assert.equal(atReleases[0], 0, String(giveUp));
    await elector.stop();
  }
});

test('the listener of an aborted request may ask its elector anything, and nobody else loses a term', async () => {
  const bystander = await leading(LONG);
  const told = [];
  const get = (_key, { signal }) => new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      told.push(elector.isLeader(), elector.leaderId(), elector.status().role);
      void elector.resign();
      void elector.stop();
      reject(signal.reason);
    });
  });
  const elector = member({ get, putIfMatch: () => null }, { serverId: 'x' });
  await elector.start();
  await until(() => told.length > 0);
  await within(elector.stop());
  assert.deepEqual(told.slice(0, 2), [false, null]);
  assert.notEqual(told[2], 'stopped');
  assert.deepEqual([bystander.elector.isLeader(), bystander.term.signal.aborted, bystander.losses], [true, false, []]);
  await bystander.elector.stop();
});

test('a signal that fires in any turn about the end of an earlier stop is heard by the start that waits', async () => {
  const outcomes = await Promise.all([0, 1, 2, 3, 4, 5, 6].map(async (turns) => {
    const { elector } = await leading();
    const controller = new AbortController();
    void elector.stop();
    const told = elector.waitForLeadership().catch(async () => {
      for (let turn = 0; turn < turns; turn += 1) await null;
      controller.abort(new Error('given up'));
    });
    const started = elector.start({ signal: controller.signal }).then(() => 'started', ({ message }) => message);
    await told;
    assert.ok(['started', 'given up'].includes(await started));
    await stopped(elector);
    return started;
  }));
  assert.equal(outcomes[0], 'given up');
});

test('a signal that the storage fires while start asks it for the first time stops the elector', async () => {
  const memory = await newGroup();
  const controller = new AbortController();
  const elector = member(noting(memory, () => controller.abort()));
  await elector.start({ signal: controller.signal }).catch(() => {});
  assert.ok(controller.signal.aborted);
  await stopped(elector);
  assert.ok(isReleased(memory));
});

test('the signal of a second start stops an elector that runs already', async () => {
  const { elector } = await leading();
  const controller = new AbortController();
  await elector.start({ signal: controller.signal });
  controller.abort();
  await stopped(elector);
});

test('two starts make one loop: all that is stored is of one session, one write an interval, and nothing after its stop', async () => {
  const memory = await newGroup();
  const [reads, writes] = [[], []];
  const note = (name, key, body) => (name === 'putIfMatch' ? writes.push(JSON.parse(new TextDecoder().decode(body))) : reads.push(key));
  const elector = member(noting(memory, note), LONG);
  await Promise.all([elector.start(), elector.start()]);
  const { token } = await leads(elector);
  await elector.start();
  const [readBefore, writtenBefore, startMs] = [reads.length, writes.length, performance.now()];
  await until(() => writes.length >= writtenBefore + 6);
  const most = (performance.now() - startMs) / LONG.frequentInterval + 1.1;
  assert.ok(writes.length - writtenBefore <= most, `${writes.length - writtenBefore} writes, at most ${most} are one loop's`);
  assert.equal(reads.length, readBefore, 'a leader reads nothing, and nobody follows it');
  await elector.stop();
  const inAll = [reads.length, writes.length];
  await pause(2 * FAST.leaderTimeout);
  assert.deepEqual([reads.length, writes.length], inAll, 'no loop is left');
  assert.ok(isReleased(memory));
  assert.deepEqual([new Set(writes.map(({ session }) => session)).size, [...new Set(writes.map(({ term }) => term))]], [1, [token]]);
});

test('a signal that fires under a leader ends its authority at once and releases its lease', async () => {
  const storage = await newGroup();
  const controller = new AbortController();
  const elector = member(storage);
  await elector.start({ signal: controller.signal });
  const term = await leads(elector);
  const { session } = recordIn(storage);
  assert.ok(!isReleased(storage));
  controller.abort();
  assert.deepEqual([term.signal.aborted, term.remaining(), elector.isLeader()], [true, 0, false]);
  await stopped(elector);
  assert.ok(isReleased(storage));
  assert.deepEqual([recordIn(storage).session, recordIn(storage).term], [session, term.token], 'it is its own tombstone');
});

test('a lead whose signal fires while an earlier stop hangs ends at once, starts nothing and ends no other start', async () => {
  for (const others of [false, true]) {
    const hangs = gated();
    const { elector } = await leading({ ...LONG, onLoseLeadership: () => hangs.promise });
    const stopping = elector.stop();
    const started = others && elector.start();
    const controller = new AbortController();
    let worked = false;
    const led = elector.lead(() => (worked = true), { signal: controller.signal });
    controller.abort(new Error('given up'));
    await assert.rejects(within(led), /given up/);
    assert.notEqual(elector.status().role, 'stopped', 'the earlier stop is still under way');
    hangs.resolve();
    await Promise.all([stopping, started]);
    if (others) await leads(elector);
    await new Promise(setImmediate);
    assert.deepEqual([elector.status().role === 'stopped', worked], [!others, false]);
    await elector.stop();
  }
});

test('an elector that its user started before, within or beside the work of a lead goes on after it', async () => {
  for (const startIn of [
    (elector, lead) => elector.start().then(lead),
    (elector, lead) => lead(() => elector.start()),
    // In the last turn of the work.
    (elector, lead) => lead(() => void elector.start()),
    (elector, lead) => lead(() => pause(0).then(() => elector.start())),
  ]) {
    const elector = member(await newGroup());
    await within(startIn(elector, (work = () => {}) => elector.lead(work)));
    await leads(elector);
    await elector.stop();
    await within(elector.lead(() => {}));
    assert.equal(elector.status().role, 'stopped', 'the next lead starts and stops it by itself');
  }
});

/** Keeps the event loop busy: the clocks go on, and no timer runs. */
const block = (ms) => runtime.jumpTo(Date.now() + ms);

test('work that waits for the next term of its own elector waits for itself until a signal or a stop ends it', async () => {
  const elector = member(await newGroup());
  const controller = new AbortController();
  const ends = [];
  const note = ({ code, message }) => ends.push(code ?? message);
  const led = elector.lead(async () => {
    block(1_100);
    await elector.waitForLeadership({ signal: controller.signal }).catch(note);
    await elector.lead(() => {}).catch(note);
  }).catch(note);
  await until(() => elector.status().error?.includes('its work goes on'));
  controller.abort(new Error('enough'));
  await until(() => ends.length === 1);
  await within(elector.stop());
  await within(led);
  assert.deepEqual(ends, ['enough', 'EDGELECT_STOPPED', 'EDGELECT_STOPPED']);
});

test('a session that waits for old work ends with a stop, a signal or a breakdown, and the next one waits too', async () => {
  const elector = member(await newGroup());
  const [gate, controller] = [gated(), new AbortController()];
  let terms = 0;
  const led = elector.lead(() => {
    terms += 1;
    return gate.promise;
  }).catch(({ code }) => code);
  await until(() => terms === 1);
  await within(elector.stop());
  const waits = () => {
    const { error, waiting } = elector.status();
    assert.match(error, /work of an earlier session/);
    assert.deepEqual([waiting.reason, waiting.untilMs, waiting.message], ['work', null, error]);
  };
  const noClock = () => { throw new Error('no clock'); };
  for (const [end, options] of [
    [() => elector.stop()], [() => elector.stop({ release: false })], [() => controller.abort(), { signal: controller.signal }],
    [() => replaced(performance, 'now', noClock, () => elector.status())],
  ]) {
    await elector.start(options);
    waits();
    await within(end());
    await stopped(elector);
  }
  await elector.start();
  waits();
  assert.equal(terms, 1);
  gate.resolve();
  await leads(elector);
  await within(led);
  await elector.stop();
});

test('work that the runtime forgot together with the elector is waited for by no later session', async () => {
  const elector = member(await newGroup());
  const began = gated();
  void elector.lead(() => {
    began.resolve();
    return new Promise(() => {});
  }).catch(() => {});
  await began.promise;
  const { setTimeout } = globalThis;
  // Of all timers only that of the stop which gives up is not forgotten, and it is early.
  await replaced(globalThis, 'setTimeout', (tell, ms) => setTimeout(() => ms > 10_000 && tell(), 20), () => elector.stop());
  assert.match(elector.status().error, /the runtime forgot the elector/);
  await started(elector);
  await elector.stop();
});

test('a start that is repeated with one signal, of any make, listens to it once, and no longer than it runs', async () => {
  const listeners = new Set();
  const signal = {
    aborted: false,
    addEventListener: (_type, listener) => listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
    throwIfAborted: () => assert.equal(signal.aborted, false),
  };
  const elector = member(await newGroup(), LONG);
  for (let count = 0; count < 5; count += 1) await elector.start({ signal });
  assert.equal(listeners.size, 1);
  await leads(elector);
  await elector.stop();
  await new Promise(setImmediate);
  assert.equal(listeners.size, 0);
  await elector.start({ signal });
  Object.assign(signal, { aborted: true, reason: new Error('enough') });
  for (const listener of [...listeners]) listener();
  await stopped(elector);
});

test('a stop waits for the work of a term that was lost before', async () => {
  const storage = await newGroup();
  const [gate, lost] = [gated(), gated()];
  let working = true;
  const onLoseLeadership = () => {
    lost.resolve();
    return gate.promise.then(() => { working = false; });
  };
  const one = member(storage, { serverId: 'a', onLoseLeadership });
  await started(one);
  const other = member(storage, { serverId: 'b' });
  await other.start();
  block(1_300);
  await leads(other);
  await lost.promise;
  const stopping = one.stop();
  setTimeout(gate.resolve, 50);
  await within(stopping);
  assert.equal(working, false);
  await other.stop();
});

/** A member whose work heeds no signal, and how many works ran at once. */
const stubborn = async (options) => {
  const storage = await newGroup();
  const way = { cut: false };
  const through = (call) => (...how) => (way.cut ? new Promise(() => {}) : call(...how));
  const ends = gated();
  const works = { now: 0, most: 0 };
  const onAcquireLeadership = async () => {
    works.now += 1;
    works.most = Math.max(works.most, works.now);
    await ends.promise;
    works.now -= 1;
  };
  const own = { get: through((...how) => storage.get(...how)), putIfMatch: through((...how) => storage.putIfMatch(...how)) };
  const elector = member(own, { ...FAST, onAcquireLeadership, ...options });
  await started(elector);
  return { elector, way, works, ends };
};

test('a session that a callback begins while a stop ends the one before claims nothing under old work', async () => {
  const afresh = (restart, more) => ({ onStatus: ({ role }) => role === 'stopped' && restart(), ...more });
  for (const [how, optionsOf, cuts] of [
    ['after a lost term', (restart) => afresh(restart), true],
    ['without a release', (restart) => afresh(restart, { releaseOnStop: false })],
    ['in a stop of its own', (restart, elector) => ({ onLoseLeadership: () => (void elector().stop({ release: false }), restart()) })],
  ]) {
    let [made, restarted] = [undefined, false];
    const restart = () => {
      if (restarted || !made) return;
      restarted = true;
      void made.start();
    };
    const { elector, way, works, ends } = await stubborn(optionsOf(restart, () => made ?? { stop: async () => {} }));
    made = elector;
    way.cut = cuts === true;
    if (cuts) await until(() => !elector.isLeader());
    way.cut = false;
    const stopping = elector.stop();
    await until(() => restarted);
    await pause(10 * FAST.leaderTimeout);
    assert.deepEqual([works.most, elector.isLeader()], [1, false], how);
    ends.resolve();
    await within(stopping);
    await until(() => elector.isLeader());
    await elector.stop();
  }
});

test('a session that a callback begins is not ended, and not forgotten, by the end of the one before', async () => {
  for (const [how, act] of [
    ['a stop that finds the term run out', (elector) => {
      runtime.jumpTo(Date.now() + 2 * FAST.leaderTimeout);
      return elector.stop();
    }],
    ['a stop without a release', (elector) => elector.stop({ release: false })],
  ]) {
    let restarted = false;
    const { elector, storage } = await leading({
      ...FAST,
      onLoseLeadership: () => {
        if (restarted) return;
        restarted = true;
        void elector.stop({ release: false });
        void elector.start();
      },
    });
    await within(act(elector));
    assert.ok(restarted, how);
    await leads(elector);
    assert.equal(await within(elector.lead(() => 'worked')), 'worked', how);
    await within(elector.stop());
    const left = recordIn(storage);
    await pause(10 * FAST.leaderTimeout);
    assert.deepEqual([recordIn(storage), elector.status().role], [left, 'stopped'], `${how}: nobody renews`);
  }
});

test('a start within onError begins anew, though the store has just ended the session, whoever began that', async () => {
  for (const call of ['start', 'lead']) {
    const storage = await newGroup();
    let refuses = true;
    const refusal = Object.assign(new Error('no network'), { name: 'NotCapable' });
    const get = (key) => {
      if (refuses) throw refusal;
      return storage.get(key);
    };
    const elector = member({ get, putIfMatch: (...how) => storage.putIfMatch(...how) }, {
      onError: () => {
        refuses = false;
        return elector.start();
      },
    });
    await assert.rejects(call === 'lead' ? elector.lead(() => {}) : elector.start(), { code: 'EDGELECT_STORE' });
    await leads(elector);
    await elector.stop();
  }
});

test('a start that nobody waits for and its own signal ends is no unhandled rejection where onError is given', async () => {
  const never = () => new Promise(() => {});
  const elector = member({ get: never, putIfMatch: never }, { onError: () => {} });
  const ending = new AbortController();
  void elector.start({ signal: ending.signal });
  void elector.start({ signal: AbortSignal.abort() });
  await pause(100);
  ending.abort();
  await within(elector.stop());
});

test('what a callback threw is heard by onError, and what a term can do may be taken out of it', async () => {
  const heard = [];
  const storage = await newGroup();
  const elector = member(storage, {
    onError: ({ code, message, cause }) => void heard.push([code, message, cause.name]),
    onAcquireLeadership: ({ remaining, resign, checkpoint }) => {
      if (heard.length === 0) throw new TypeError('no database');
      assert.ok(remaining() > 0 && typeof checkpoint === 'function');
      resign();
      heard.push('resigned');
    },
  });
  await elector.start();
  await until(() => heard.length >= 2);
  assert.deepEqual(heard.slice(0, 2), [['EDGELECT_CALLBACK', 'onAcquireLeadership threw: no database', 'TypeError'], 'resigned']);
  await elector.stop();
});

test('who starts again whenever it hears of an error keeps nobody busy: from the second failure on there is a pause, which a stop ends', async () => {
  let asked = 0;
  const get = () => {
    asked += 1;
    throw Object.assign(new Error('no network'), { name: 'NotCapable' });
  };
  const elector = member({ get, putIfMatch: get }, { onError: () => void elector.start() });
  const beganMs = Date.now();
  void elector.start();
  await pause(10 * FAST.frequentInterval);
  const passedMs = Date.now() - beganMs;
  assert.ok(asked > 2 && asked <= 3 + passedMs / FAST.frequentInterval, `${asked} reads in ${passedMs} ms`);
  const waits = elector.start();
  await elector.stop();
  await within(waits, 1);
});

test('so it is where the store answers reads and refuses each write for good', async () => {
  const { endpoint, answerWith } = runtime.bucket();
  const answer = (status, code) => new Response(`<Error><Code>${code}</Code></Error>`, { status });
  answerWith((_url, { method }) => (method === 'GET' ? answer(404, 'NoSuchKey') : answer(501, 'NotImplemented')));
  const storage = new S3Storage({ endpoint, bucket: 'jobs', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } });
  let sessions = 0;
  const elector = member(storage, {
    onError: () => {
      sessions += 1;
      // Who never lets a timer fire would go on for ever.
      if (sessions < 1_000) void elector.start();
    },
  });
  const beganMs = Date.now();
  void elector.start();
  await pause(10 * FAST.frequentInterval);
  const passedMs = Date.now() - beganMs;
  assert.ok(sessions > 2 && sessions <= 3 + passedMs / FAST.frequentInterval, `${sessions} sessions in ${passedMs} ms`);
  await elector.stop();
});

test('who leads again and again for work that ends at once lets timers fire, also over a storage that takes no time', async () => {
  const elector = member(await newGroup());
  let fired = 0;
  const timer = setTimeout(() => (fired += 1), 1);
  for (let term = 0; term < 10; term += 1) await elector.lead(() => {});
  clearTimeout(timer);
  assert.equal(fired, 1);
});

test('a callback that throws each time is told once, and keeps nobody busy who starts again then', async () => {
  const told = [];
  let calls = 0;
  const elector = member(await newGroup(), {
    onStatus: () => {
      calls += 1;
      throw new Error(`call ${calls}`);
    },
    onError: ({ message }) => {
      told.push(message);
      void elector.stop();
      void elector.start();
    },
  });
  await elector.start();
  await leads(elector);
  assert.deepEqual([told, calls < 40], [['onStatus threw: call 1'], true], `${calls} calls`);
  await elector.stop();
});

test('a start that onError has heard of is no unhandled rejection, though another callback throws as well', async () => {
  const heard = [];
  const get = () => {
    throw Object.assign(new Error('no network'), { name: 'NotCapable' });
  };
  const throws = () => {
    throw new Error('not now');
  };
  const elector = member({ get, putIfMatch: get }, { onStatus: throws, onError: ({ code }) => void heard.push(code) });
  void elector.start();
  await pause(100);
  assert.deepEqual(heard.sort(), ['EDGELECT_CALLBACK', 'EDGELECT_STORE']);
});

test("a listener of a term's signal that starts afresh gets no next term while the loss of this one is told", async () => {
  const [order, ends] = [[], gated()];
  const elector = member(await newGroup(), {
    onAcquireLeadership: ({ signal }) => {
      order.push('acquired');
      signal.addEventListener('abort', () => {
        void elector.stop({ release: false });
        void elector.start();
      });
    },
    onLoseLeadership: async () => {
      order.push('losing');
      await ends.promise;
      order.push('lost');
    },
  });
  const term = await started(elector);
  term.resign();
  await pause(10 * FAST.leaderTimeout);
  assert.deepEqual(order, ['acquired', 'losing']);
  ends.resolve();
  await leads(elector);
  assert.deepEqual(order, ['acquired', 'losing', 'lost', 'acquired']);
  await elector.stop();
});

test('a start that a stop has overtaken gives its signal to no later session, and a term can be cloned', async () => {
  const { elector, term } = await leading();
  assert.equal(structuredClone(term).token, term.token);
  const ending = new AbortController();
  const overtaken = [elector.stop(), elector.start({ signal: ending.signal }), elector.stop()];
  const last = elector.start();
  await within(Promise.all([...overtaken, last]));
  ending.abort();
  await leads(elector);
  await elector.stop();
});
