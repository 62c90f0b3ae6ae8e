// Bugs that happened, kept: what an application sees of its fence, and what listens for it. In virtual time; a loop that is
// really blocked is in look-stack.test.mjs, and that lost work counts for nothing and is waited for is held by tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime(Date.UTC(2026, 10, 22));
runtime.flow();
const { LONG, fired, gated, leading, leads, member, newGroup, putRecord, replaced, slotRecord, until, within } = await import('./group.mjs');

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

for (const [name, make] of Object.entries({ 'no signal': () => undefined, 'its own': () => new AbortController().signal, 'a foreign one': foreign })) {
  test(`s10 after a blocked event loop the signal of a lead with ${name} has fired when its time is over`, async () => {
    /** What its work sees then, first of all that it looks at. */
    const seen = async (see) => {
      const elector = member(await newGroup());
      const found = [];
      await within(elector.lead((term) => {
        if (found.length > 0) return;
        const { signal } = term;
        block(1_100);
        found.push(see(term, signal));
      }, { signal: make() }));
      await elector.stop();
      return found[0];
    };
    assert.deepEqual(await seen((term) => [term.signal.aborted, term.remaining()]), [true, 0]);
    assert.equal(await seen((_term, given) => given.aborted), true, 'kept from before');
    assert.equal(await seen((_term, given) => given.reason?.code), 'EDGELECT_LOST');
    const thrown = await seen((_term, given) => {
      try {
        return given.throwIfAborted();
      } catch (error) {
        return error.message;
      }
    });
    assert.match(thrown ?? '', /authority of term \d+ has ended/);
  });
}

test('s10 after a blocked event loop a callback, a waiter and a job see that the time is over, by a signal that they kept', async () => {
  const seen = [];
  const storage = await newGroup();
  const elector = member(storage, {
    onAcquireLeadership: ({ signal }) => {
      if (seen.length > 0) return;
      block(1_100);
      seen.push(signal.aborted);
    },
  });
  await elector.start();
  const { signal } = await leads(elector);
  block(1_100);
  seen.push(signal.aborted);
  await elector.stop();
  assert.deepEqual(seen, [true, true]);
  const jobs = [];
  const job = ({ signal: own }) => {
    block(1_100);
    jobs.push(own.aborted);
  };
  const first = Date.UTC(2026, 10, 21, 12);
  putRecord(storage, slotRecord(first), 'slots');
  await member(storage, { lockfilePath: 'slots' }).runScheduled(first + 60_000, job);
  assert.deepEqual(jobs, [true]);
});

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

/** An elector that was stopped under work that goes on until `gate` opens; `running` counts what runs at once. */
const outlived = async (options = {}) => {
  const storage = await newGroup();
  const elector = member(storage, options);
  const gate = gated();
  const seen = { running: 0, terms: 0 };
  const work = async () => {
    seen.terms += 1;
    seen.running += 1;
    if (seen.terms === 1) await gate.promise;
    seen.running -= 1;
  };
  const led = elector.lead(work).catch(({ code }) => code);
  await until(() => seen.running === 1);
  await within(elector.stop());
  assert.deepEqual([elector.status().role, seen.running], ['stopped', 1], 'a stop waits no longer than a lease');
  return { elector, gate, seen, led };
};

test('a session that waits for old work ends with a stop, a signal or a breakdown, and the next one waits too', async () => {
  const { elector, gate, seen, led } = await outlived({ probe: true });
  const waits = () => {
    const { error, waiting } = elector.status();
    assert.match(error, /work of an earlier session/);
    assert.deepEqual([waiting.reason, waiting.untilMs, waiting.message], ['work', null, error]);
  };
  for (const stop of [{}, { park: true }, { release: false }]) {
    await elector.start();
    waits();
    await within(elector.stop(stop));
    assert.equal(elector.status().role, 'stopped');
  }
  const controller = new AbortController();
  await elector.start({ signal: controller.signal });
  waits();
  controller.abort();
  await until(() => elector.status().role === 'stopped');
  await elector.start();
  await withoutClock(() => assert.equal(elector.status().role, 'stopped'));
  await new Promise(setImmediate);
  await elector.start();
  waits();
  assert.equal(seen.terms, 1);
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

test('a signal that a lead was given fires its term\'s, has no listener left afterwards, and one of a term that goes on neither', async () => {
  const { elector } = await leading(LONG);
  const signal = foreign();
  const goesOn = elector.lead((term) => fired(term.signal).then(() => 'told'), { signal: new AbortController().signal });
  const more = [];
  for (let count = 0; count < 5; count += 1) more.push(await within(elector.lead((term) => term.signal.aborted, { signal })));
  assert.deepEqual(more, Array(5).fill(false));
  assert.equal(signal.listeners, 0, 'the term goes on, and they have ended');
  const told = elector.lead((term) => fired(term.signal).then(() => term.signal.reason.message), { signal });
  await until(() => signal.listeners > 0);
  signal.fire(new Error('enough'));
  assert.equal(await within(told.catch((error) => error.message)), 'enough');
  assert.equal(signal.listeners, 0);
  await elector.stop();
  assert.equal(await within(goesOn), 'told');
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
