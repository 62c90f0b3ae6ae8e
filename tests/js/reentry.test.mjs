// Bugs that happened, kept: code that calls the elector back from inside its work, its callbacks, storages and listeners; sessions that
// wait for old work; and what listens for a signal. That a signal has fired when a blocked loop goes on, and that lost work counts for
// nothing, is held by tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
runtime.flow();
const { FAST, LONG, bent, gated, isReleased, leading, leads, member, newGroup, pause, recordIn, replaced, until, within } =
  await import('./group.mjs');

test('the lease is not released under work, or under a callback, that first gives its term up and then goes on', async () => {
  for (const giveUp of [(_elector, term) => term.resign(), (elector) => void elector.resign(), (elector) => void elector.stop()]) {
    for (const what of ['work', 'callback']) {
      const memory = await newGroup();
      const [atReleases, ends] = [[], gated()];
      let working = 0;
      const putIfMatch = (key, body, etag) => {
        if (isReleased(body)) atReleases.push(working);
        return memory.putIfMatch(key, body, etag);
      };
      const work = async (term) => {
        if (atReleases.length > 0) return;
        working += 1;
        giveUp(elector, term);
        await pause(2 * LONG.frequentInterval);
        working -= 1;
        ends.resolve();
      };
      const elector = member(bent(memory, { putIfMatch }), { ...LONG, ...(what === 'callback' && { onAcquireLeadership: work }) });
      // A lead that has lost its term competes again, until its elector is stopped.
      const over = what === 'work' ? elector.lead(work).catch(() => {}) : elector.start();
      await within(ends.promise);
      await until(() => atReleases.length > 0);
      assert.equal(atReleases[0], 0, `${what}: ${giveUp}`);
      await Promise.all([elector.stop(), over]);
    }
  }
});

/** A storage that never answers; `onAbort` runs when a request to it is given up for the first time. */
const silent = (onAbort) => {
  const state = { aborts: 0 };
  const get = (_key, { signal }) => new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      state.aborts += 1;
      if (state.aborts === 1) onAbort();
      reject(signal.reason);
    });
  });
  return Object.assign(state, { get, putIfMatch: () => null });
};

test('the listener of an aborted request may ask its elector anything, and nobody else loses a term', async () => {
  const bystander = await leading(LONG);
  const told = [];
  const storage = silent(() => {
    told.push(elector.isLeader(), elector.leaderId(), elector.status().role);
    void elector.resign();
    void elector.stop();
  });
  const elector = member(storage, { serverId: 'x' });
  await elector.start();
  await until(() => storage.aborts > 0);
  await within(elector.stop());
  assert.deepEqual(told.slice(0, 2), [false, null]);
  assert.notEqual(told[2], 'stopped');
  assert.equal(bystander.elector.isLeader(), true);
  assert.equal(bystander.term.signal.aborted, false);
  assert.deepEqual(bystander.losses, []);
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
    await until(() => elector.status().role === 'stopped');
    return started;
  }));
  assert.equal(outcomes[0], 'given up');
});

test('a signal that the storage fires while start asks it for the first time stops the elector', async () => {
  const memory = await newGroup();
  const controller = new AbortController();
  const get = (key) => {
    controller.abort();
    return memory.get(key);
  };
  const elector = member(bent(memory, { get }));
  await elector.start({ signal: controller.signal }).catch(() => {});
  assert.ok(controller.signal.aborted);
  await until(() => elector.status().role === 'stopped');
  assert.ok(isReleased(memory));
});

test('the signal of a second start stops an elector that runs already', async () => {
  const { elector } = await leading();
  const controller = new AbortController();
  await elector.start({ signal: controller.signal });
  controller.abort();
  await until(() => elector.status().role === 'stopped');
});

test('two starts make one loop: all that is stored is of one session, one write an interval, and nothing after its stop', async () => {
  const memory = await newGroup();
  const [reads, writes] = [[], []];
  const get = (key) => {
    reads.push(performance.now());
    return memory.get(key);
  };
  const putIfMatch = (key, body, etag) => {
    writes.push(JSON.parse(new TextDecoder().decode(body)));
    return memory.putIfMatch(key, body, etag);
  };
  const elector = member({ get, putIfMatch }, LONG);
  await Promise.all([elector.start(), elector.start()]);
  const { token } = await leads(elector);
  await elector.start();
  const [readBefore, writtenBefore, startMs] = [reads.length, writes.length, performance.now()];
  await until(() => writes.length >= writtenBefore + 6);
  const most = (performance.now() - startMs) / LONG.frequentInterval + 1.1;
  assert.ok(writes.length - writtenBefore <= most, `${writes.length - writtenBefore} writes, at most ${most} are one loop's`);
  assert.equal(reads.length, readBefore, 'a leader reads nothing, and nobody follows it');
  await elector.stop();
  const [readInAll, writtenInAll] = [reads.length, writes.length];
  await pause(2 * FAST.leaderTimeout);
  assert.deepEqual([reads.length, writes.length], [readInAll, writtenInAll], 'no loop is left');
  assert.ok(isReleased(memory));
  assert.deepEqual([new Set(writes.map(({ session }) => session)).size, new Set(writes.map(({ term }) => term)).size], [1, 1]);
  assert.equal(writes[0].term, token);
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
  await until(() => elector.status().role === 'stopped');
  assert.ok(isReleased(storage));
  assert.deepEqual([recordIn(storage).session, recordIn(storage).term], [session, term.token], 'it is its own tombstone');
});

for (const others of [false, true]) {
  const what = others ? 'takes no start of anybody else with it' : 'starts nothing later';
  test(`a lead whose signal fires while an earlier stop hangs ends at once and ${what}`, async () => {
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
  });
}

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

/** What calling an elector becomes when its clock breaks down. */
const withoutClock = (work) => replaced(performance, 'now', () => {
  throw new Error('no clock');
}, work);

/** A signal of another make than the runtime's, which counts its listeners. */
const foreign = () => {
  const listeners = new Set();
  return {
    aborted: false,
    reason: undefined,
    addEventListener: (_type, listener) => listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    },
    get listeners() {
      return listeners.size;
    },
    fire(reason) {
      Object.assign(this, { aborted: true, reason });
      for (const listener of [...listeners]) listener();
    },
  };
};

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
  for (const [end, options] of [
    [() => elector.stop()], [() => elector.stop({ release: false })], [() => controller.abort(), { signal: controller.signal }],
    [() => withoutClock(() => elector.status())],
  ]) {
    await elector.start(options);
    waits();
    await within(end());
    await until(() => elector.status().role === 'stopped');
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
  let began = false;
  void elector.lead(() => {
    began = true;
    return new Promise(() => {});
  }).catch(() => {});
  await until(() => began);
  const { setTimeout } = globalThis;
  // Of all timers only that of the stop which gives up is not forgotten, and it is early.
  await replaced(globalThis, 'setTimeout', (tell, ms) => setTimeout(() => ms > 10_000 && tell(), 20), () => elector.stop());
  assert.match(elector.status().error, /the runtime forgot the elector/);
  await elector.start();
  await leads(elector);
  await elector.stop();
});

test('a start that is repeated with one signal listens to it once, and no longer than it runs', async () => {
  const signal = foreign();
  const elector = member(await newGroup(), LONG);
  for (let count = 0; count < 5; count += 1) await elector.start({ signal });
  assert.equal(signal.listeners, 1);
  await leads(elector);
  await elector.stop();
  await new Promise(setImmediate);
  assert.equal(signal.listeners, 0);
  await elector.start({ signal });
  signal.fire(new Error('enough'));
  await until(() => elector.status().role === 'stopped');
});

test('a stop waits for the work of a term that was lost before', async () => {
  const storage = await newGroup();
  const gate = gated();
  let [lost, working] = [false, true];
  const onLoseLeadership = () => {
    lost = true;
    return gate.promise.then(() => { working = false; });
  };
  const one = member(storage, { serverId: 'a', onLoseLeadership });
  await one.start();
  await within(one.waitForLeadership());
  const other = member(storage, { serverId: 'b' });
  await other.start();
  block(1_300);
  await within(other.waitForLeadership());
  await until(() => lost);
  const stopping = one.stop();
  setTimeout(gate.resolve, 50);
  await within(stopping);
  assert.equal(working, false);
  await other.stop();
});
