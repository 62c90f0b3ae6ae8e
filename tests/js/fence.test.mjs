// Bugs that happened, kept: sessions that wait for old work, and what listens for a signal. In virtual time. That a signal has fired
// when a blocked loop goes on, and that lost work counts for nothing and is waited for, is held by tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime(Date.UTC(2026, 10, 22));
runtime.flow();
const { LONG, gated, leads, member, newGroup, replaced, until, within } = await import('./group.mjs');

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
