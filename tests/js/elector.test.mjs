// One elector and its calls, in memory and in virtual time that passes by itself. What every runtime does the same is in
// tests/runtimes/suite.mjs.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
runtime.flow();
const { Elector, MemoryStorage, R2Storage } = await import('edgelect');
const { KEY, bent, fired, gated, isReleased, leading, leads, member, newGroup, noting, pause, started, until, within } = await import('./group.mjs');

test('the three callbacks come once each, in order, and the signal fires first', async () => {
  const storage = await newGroup();
  const heard = [];
  const elector = member(storage, {
    onAcquireLeadership: (term) => {
      heard.push('acquire');
      term.signal.addEventListener('abort', () => heard.push('signal'));
    },
    onLoseLeadership: async ({ term, reason }) => {
      heard.push(`lose ${reason}`);
      assert.equal(typeof term, 'number');
      // The lease is not released before the work has stopped.
      await pause(100);
      assert.ok(!isReleased(storage));
    },
    onNewLeader: (leaderId) => heard.push(`leader ${leaderId}`),
  });
  const term = await started(elector);
  assert.ok(Number.isSafeInteger(term.token) && term.remaining() > 0 && term.remaining() <= 900);
  await elector.stop();
  assert.equal(term.remaining(), 0);
  assert.equal(term.signal.reason.code, 'EDGELECT_LOST');
  assert.deepEqual(heard, ['acquire', 'leader a', 'signal', 'lose stopped', 'leader null']);
});

/** Hears what is logged of terms in place of the terminal, and holds up everything for so long each time. */
const logging = (heard, holdsUpMs = () => 0) => {
  const { warn } = console;
  console.warn = (line) => {
    const { event } = JSON.parse(line);
    if (!['acquired', 'lost'].includes(event)) return;
    heard.push(event);
    runtime.jumpTo(Date.now() + holdsUpMs(event));
  };
  return () => (console.warn = warn);
};

const LOGS = { log: 'json', logLevel: 'info' };

test('s10 no work begins in a term that was over before it could be told', async () => {
  const [heard, works] = [[], []];
  let slow = true;
  const unheard = logging(heard, (event) => (event === 'acquired' && slow ? 2_000 : 0));
  const elector = member(await newGroup(), {
    ...LOGS,
    onAcquireLeadership: (term) => works.push(['began', term.remaining() > 0]),
    onLoseLeadership: ({ reason }) => works.push([reason]),
  });
  await elector.start();
  await until(() => heard.includes('lost'));
  slow = false;
  await until(() => elector.isLeader() && works.length > 0);
  unheard();
  assert.deepEqual([heard, works], [['acquired', 'lost', 'acquired'], [['began', true]]]);
  await elector.stop();
});

test('s10 what a log asks of an elector tells of no loss of a term that nobody was told of', async () => {
  for (const asks of ['isLeader', 'stop']) {
    const [heard, works] = [[], []];
    let elector;
    const unheard = logging(heard, (event) => {
      if (event !== 'acquired' || heard.length > 1) return 0;
      runtime.jumpTo(Date.now() + 2_000);
      if (asks === 'stop') void elector.stop({ release: false });
      else elector.isLeader();
      return 0;
    });
    elector = member(await newGroup(), {
      ...LOGS,
      onAcquireLeadership: () => works.push('began'),
      onLoseLeadership: () => works.push('lost'),
    });
    await elector.start();
    if (asks === 'stop') await until(() => elector.status().role === 'stopped');
    else await until(() => works.length > 0);
    await elector.stop();
    unheard();
    assert.deepEqual(works, asks === 'stop' ? [] : ['began', 'lost'], asks);
  }
});

test('s5 the signal fires before a log hears of the loss', async () => {
  const heard = [];
  const unheard = logging(heard);
  const elector = member(await newGroup(), LOGS);
  const term = await started(elector);
  term.signal.addEventListener('abort', () => heard.push('signal'));
  await elector.stop();
  unheard();
  assert.deepEqual(heard, ['acquired', 'signal', 'lost']);
});

test('c50 c51 an acquire callback that throws, whatever it is, resigns, sits out and competes again, and nothing is left unhandled', async () => {
  const hostile = [() => { throw new Error('not ready'); }, () => { throw Symbol('x'); }, () => { throw Object.create(null); }, () => Promise.reject(null)];
  for (const [index, refuse] of hostile.entries()) {
    const [tokens, lost] = [[], []];
    const elector = member(await newGroup(), {
      onAcquireLeadership: (term) => (tokens.push(term.token) === 1 ? refuse() : undefined),
      onLoseLeadership: ({ term, reason }) => {
        lost.push([term, reason]);
        if (index > 0) throw Symbol('again');
      },
      onNewLeader: () => (index > 0 ? Promise.reject(new Error('no')) : undefined),
    });
    await elector.start();
    await until(() => lost.length === 1);
    assert.deepEqual([lost, elector.isLeader()], [[[tokens[0], 'resigned']], false], `the callback ${index}`);
    if (index === 0) assert.match(elector.status().error, /onAcquireLeadership threw: not ready/);
    await until(() => tokens.length === 2);
    assert.ok(tokens[1] > tokens[0] && elector.isLeader());
    await elector.stop();
  }
});

test('what a callback threw is no problem any more once a later call of the same callback has ended well', async () => {
  let failing;
  const call = (name) => async () => {
    await null;
    if (name === failing) throw new Error('not now');
  };
  const names = ['onAcquireLeadership', 'onLoseLeadership', 'onNewLeader'];
  const elector = member(await newGroup(), Object.fromEntries(names.map((name) => [name, call(name)])));
  await elector.start();
  for (const name of names) {
    const term = await elector.waitForLeadership();
    failing = name;
    term.resign();
    await until(() => elector.status().error === `${name} threw: not now`);
    // Others that end well meanwhile take nothing away.
    if (name === 'onLoseLeadership') await until(() => elector.isLeader());
    assert.equal(elector.status().error, `${name} threw: not now`);
    failing = undefined;
    await until(() => elector.isLeader());
    elector.resign().catch(() => {});
    await until(() => elector.status().error === null);
  }
  await elector.stop();
});

test('a callback that ends late takes the error of a later call from nobody', async () => {
  const [storage, gate] = [await newGroup(), gated()];
  let calls = 0;
  const onNewLeader = () => ((calls += 1) > 1 ? Promise.reject(new Error('the second call')) : gate.promise);
  const elector = member(storage, { onNewLeader });
  const other = member(storage, { serverId: 'b' });
  await started(other);
  await elector.start();
  await until(() => calls === 1);
  await other.stop();
  await until(() => elector.status().error === 'onNewLeader threw: the second call');
  gate.resolve();
  await new Promise(setImmediate);
  assert.equal(elector.status().error, 'onNewLeader threw: the second call');
  await elector.stop();
});

test('c49 a callback that calls the elector does not wait for itself', async () => {
  const storage = await newGroup();
  const stops = [];
  const stopping = (what) => async () => {
    elector.status();
    elector.isLeader();
    await elector.stop();
    stops.push(what);
  };
  const elector = member(storage, { onAcquireLeadership: stopping('acquire'), onLoseLeadership: stopping('lose') });
  await elector.start();
  await until(() => stops.length === 2);
  assert.equal(elector.status().role, 'stopped');
  assert.ok(isReleased(storage));
  const working = member(storage, { leaderTimeout: 10_000 });
  await within(working.lead(() => working.stop()), 5_000);
  assert.ok(isReleased(storage));
});

test('the last word counts: a start during a stop runs, a stop after both ends it, and a lead ends what it began', async () => {
  const { elector } = await leading();
  const stopping = elector.stop();
  await elector.start();
  await stopping;
  assert.ok((await leads(elector)).remaining() > 0);
  await Promise.all([elector.stop(), elector.start(), elector.stop()]);
  assert.equal(elector.status().role, 'stopped');
  await started(elector);
  const ending = elector.stop();
  await elector.lead((term) => term.token);
  await ending;
  assert.equal(elector.status().role, 'stopped');
});

test('work that throws because its term is over runs again in the next term', async () => {
  let first;
  const last = await within(member(await newGroup()).lead((term) => {
    if (first !== undefined) return term.token;
    first = term.token;
    term.resign();
    throw term.signal.reason;
  }));
  assert.ok(last > first);
});

test('two leads share a term, and the first to end leaves it to the other', async () => {
  const elector = member(await newGroup(), { leaderTimeout: 10_000 });
  const work = (ms) => elector.lead(async (term) => {
    await pause(ms);
    assert.equal(term.signal.aborted, false);
    return term.token;
  });
  const [one, other] = await Promise.all([work(600), work(50)]);
  assert.equal(one, other);
  assert.equal(elector.status().role, 'stopped');
});

test('a lead that was stopped, or came before a stop, runs its work in no later session', async () => {
  for (const passMs of [100, 4_000]) {
    const elector = member(await newGroup());
    const running = new Set();
    let runs = 0;
    /** Looks at its signal between its passes only. */
    const work = async ({ signal }) => {
      const run = ++runs;
      assert.equal(running.size, 0, `run ${run} beside another one`);
      running.add(run);
      do await pause(run === 1 ? passMs : 100);
      while (!signal.aborted);
      running.delete(run);
      return run;
    };
    const first = elector.lead(work);
    await until(() => running.size > 0);
    const stopped = elector.stop({ release: passMs > 100 });
    if (passMs > 100) await stopped;
    const second = elector.lead(work);
    assert.equal(await within(first), 1);
    await until(() => running.has(2));
    await pause(1_000);
    assert.equal(runs, 2);
    await elector.stop();
    assert.equal(await within(second), 2);
    await started(elector);
    // One of before a stop and a start in the same turn, while the elector stops and while it rests.
    for (const before of [() => void elector.stop(), () => {}]) {
      before();
      const never = elector.lead(() => assert.fail('it ran'));
      void elector.stop();
      await Promise.all([started(elector), assert.rejects(never, { code: 'EDGELECT_STOPPED' })]);
      await elector.stop();
    }
  }
});

test('a lead whose term is stopped before its work begins runs it in no later session', async () => {
  for (const of of ['onAcquireLeadership', 'onNewLeader', 'onStatus']) {
    let stopped = false;
    const elector = member(await newGroup(), {
      [of]: () => {
        if (stopped || !elector.isLeader()) return;
        stopped = true;
        void elector.stop();
        void elector.start();
      },
    });
    await assert.rejects(within(elector.lead(() => assert.fail('it ran'))), { code: 'EDGELECT_STOPPED' }, of);
    await until(() => elector.isLeader());
    await elector.stop();
  }
});

test('what work has left running hears that it is not to go on, also in a term that goes on, and leaves no listener behind', async () => {
  const { elector, term } = await leading();
  let end;
  const holding = elector.lead(() => new Promise((resolve) => (end = resolve)));
  const caller = new AbortController();
  const listeners = () => [term.signal, caller.signal].map((signal) => getEventListeners(signal, 'abort').length);
  await until(() => end);
  const before = listeners();
  for (const work of [() => 'value', () => { throw new Error('one of two'); }]) {
    let heard;
    await elector.lead(({ signal }) => {
      signal.addEventListener('abort', () => (heard = signal.reason));
      return work();
    }, { signal: caller.signal }).catch(({ message }) => assert.equal(message, 'one of two'));
    assert.equal(heard.code, 'EDGELECT_LOST');
    assert.deepEqual(listeners(), before);
  }
  assert.ok(term.remaining() > 0);
  end();
  await within(holding);
  await elector.stop();
});

test('the signal of a lead within a lead is over when that of the outer one is, before any timer has run', async () => {
  const [outer, inner] = [member(await newGroup()), member(await newGroup(), { leaderTimeout: 8_000 })];
  let seen;
  const ended = outer.lead((term) => inner.lead(({ signal }) => {
    runtime.jumpTo(Date.now() + 1_200);
    seen ??= [signal.aborted, signal.reason.code];
  }, { signal: term.signal }).finally(() => void outer.stop()));
  await assert.rejects(within(ended), { code: 'EDGELECT_STOPPED' });
  assert.deepEqual(seen, [true, 'EDGELECT_LOST']);
});

test('callbacks of a class instance are heard, and undefined changes nothing', async () => {
  let heard;
  class Options {
    lockfilePath = KEY;
    onNewLeader(leaderId) {
      heard ??= [this.lockfilePath, leaderId];
    }
  }
  const given = { storage: new MemoryStorage(), serverId: 'x', leaderTimeout: 1000, frequentInterval: 250 };
  const elector = new Elector(Object.assign(new Options(), given));
  await elector.init();
  await elector.lead(() => 1);
  assert.deepEqual(heard, [KEY, 'x']);
  elector.updateConfig({ leaderTimeout: undefined });
  assert.equal(elector.config.leaderTimeout, 1000);
});

test('a storage says how far apart writes of one object are, and nobody claims sooner after a release', async () => {
  const least = { undefined: Infinity, 1000: Infinity };
  for (let round = 0; round < 20; round += 1) {
    const writesApart = round % 2 === 0 ? undefined : 1_000;
    const memory = await newGroup();
    const writes = [];
    const storage = Object.assign(noting(memory, (name) => name === 'putIfMatch' && writes.push(Date.now())), { writesApart });
    const [first, second] = ['a', 'b'].map((serverId) => member(storage, { leaderTimeout: 15_000, frequentInterval: 1_000, serverId }));
    await started(first);
    await second.start();
    await until(() => second.status().role === 'follower');
    await pause(50 * round);
    await first.stop();
    const released = writes.length - 1;
    await leads(second);
    least[writesApart] = Math.min(least[writesApart], writes[released + 1] - writes[released]);
    await second.stop();
  }
  assert.ok(least[undefined] < 1_000 && least[1_000] >= 1_000, JSON.stringify(least));
  assert.equal(new R2Storage({ head() {}, get() {}, put() {} }).writesApart, 1_000);
});

test('what a stop leaves of the lease is what releaseOnStop or its own option says', async () => {
  for (const [releaseOnStop, options, released] of [[undefined, undefined, true], [false, undefined, false], [false, { release: true }, true], [true, { release: false }, false]]) {
    const { elector, storage } = await leading({ releaseOnStop });
    await elector.stop(options);
    assert.equal(isReleased(storage), released, `${releaseOnStop} ${JSON.stringify(options)}`);
  }
});

test('a lead that a stop ends is over once the lease is released: its program may end then', async () => {
  const storage = await newGroup();
  const elector = member(bent(storage, { putIfMatch: (...how) => pause(50).then(() => storage.putIfMatch(...how)) }));
  const led = elector.lead(({ signal }) => fired(signal));
  await until(() => elector.isLeader());
  void elector.stop();
  await within(led);
  assert.ok(isReleased(storage));
});

test('who waits for leadership while a term is given up gets the next one, and a resignation that holds nothing waits for nothing', async () => {
  const { elector, term } = await leading({
    onLoseLeadership: async () => {
      // Within the loss, whose lease is still held.
      await pause(50);
      waited ??= leads(elector);
    },
  });
  let waited;
  void elector.resign();
  assert.ok((await leads(elector)).token > term.token);
  assert.ok((await waited).token > term.token);
  let end;
  const led = elector.lead(() => new Promise((resolve) => (end = resolve)));
  await until(() => end);
  await elector.stop({ release: false, signal: AbortSignal.timeout(50) }).catch(() => {});
  await elector.start();
  assert.equal(elector.status().waiting.reason, 'work');
  const startMs = performance.now();
  await within(elector.resign());
  assert.ok(performance.now() - startMs < 100);
  end('value');
  assert.equal(await within(led), 'value');
  await elector.stop();
});
