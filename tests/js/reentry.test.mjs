// Bugs that happened, kept: code that calls the elector back from inside its work, its callbacks, storages and listeners.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
virtualRuntime().flow();
const { FAST, LONG, bent, fired, gated, isReleased, leading, leads, member, newGroup, pause, recordIn, until, within } =
  await import('./group.mjs');

/** A storage that counts reads and notes what `seen()` was at each release. */
const watched = (storage, seen) => {
  const found = { reads: 0, atReleases: [] };
  const get = (key) => {
    found.reads += 1;
    return storage.get(key);
  };
  const putIfMatch = (key, body, etag) => {
    if (isReleased(body)) found.atReleases.push(seen());
    return storage.putIfMatch(key, body, etag);
  };
  return Object.assign(found, { storage: { get, putIfMatch } });
};

/** Two members: `a`, whose releases are watched, and `b`, whose work gives what `seen()` was when it began. */
const pair = async (seen, options = {}) => {
  const storage = await newGroup();
  const own = watched(storage, seen);
  const other = watched(storage, seen);
  const a = member(own.storage, { ...LONG, ...options });
  const b = member(other.storage, { ...LONG, serverId: 'b' });
  const begun = [];
  const leadB = () => b.lead(() => begun.push(seen()));
  // Or until it leads, which it must not.
  const lookedTwice = async () => {
    const before = other.reads;
    await until(() => other.reads >= before + 2 || begun.length > 0);
  };
  return { a, b, begun, leadB, lookedTwice, atReleases: own.atReleases };
};

for (const [how, giveUp] of Object.entries({
  'resigns its term': (_elector, term) => term.resign(),
  'resigns its term later': (_elector, term) => void setTimeout(() => term.resign()),
  'resigns its elector': (elector) => void elector.resign(),
  'stops its elector': (elector) => void elector.stop(),
})) {
  for (const what of ['work', 'an acquire callback']) {
    test(`the lease is not released under ${what} that first ${how} and then goes on`, async () => {
      let working = 0;
      let other;
      const work = async (term) => {
        working += 1;
        other ??= leadB();
        giveUp(a, term);
        await lookedTwice();
        working -= 1;
      };
      const { a, b, begun, leadB, lookedTwice, atReleases } = await pair(() => working, what === 'work' ? {} : { onAcquireLeadership: work });
      // A lead that has lost its term competes again, until its elector is stopped.
      const over = what === 'work' ? within(a.lead(work)).catch(({ code }) => assert.equal(code, 'EDGELECT_STOPPED')) : a.start();
      await until(() => other);
      await within(other);
      assert.deepEqual(begun, [0], `the other member's work began beside ${what}`);
      assert.equal(atReleases[0], 0);
      await Promise.all([a.stop(), b.stop(), over]);
    });
  }
}

test('one of two leads that resigns at once is waited for, though the other one has ended', async () => {
  let working = 0;
  const { a, b, begun, leadB, lookedTwice, atReleases } = await pair(() => working);
  let other;
  const counted = async (work) => {
    working += 1;
    await work();
    working -= 1;
  };
  let ended;
  const ends = a.lead((term) => counted(() => fired(term.signal)).then(() => {
    ended = true;
  }));
  const goesOn = a.lead((term) => counted(async () => {
    other = leadB();
    term.resign();
    await until(() => ended);
    await lookedTwice();
  }));
  const over = within(Promise.allSettled([ends, goesOn]));
  await until(() => other);
  await within(other);
  assert.deepEqual(begun, [0]);
  assert.equal(atReleases[0], 0);
  await Promise.all([a.stop(), b.stop(), over]);
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

for (const [where, startIn] of Object.entries({
  'before the lead began': (elector, lead) => elector.start().then(lead),
  'within its work': (elector, lead) => lead(() => elector.start()),
  'in the last turn of its work': (elector, lead) => lead(() => void elector.start()),
  'beside its work': (elector, lead) => lead(async () => {
    await pause(0);
    await elector.start();
  }),
})) {
  test(`an elector that its user started ${where} goes on after the lead`, async () => {
    const elector = member(await newGroup());
    await within(startIn(elector, (work = () => {}) => elector.lead(work)));
    await leads(elector);
    await elector.stop();
    await within(elector.lead(() => {}));
    assert.equal(elector.status().role, 'stopped', 'the next lead starts and stops it by itself');
  });
}
