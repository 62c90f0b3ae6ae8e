// Bugs that happened, kept: what an application sees of its fence, and what listens for it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { LONG, fired, leading, leads, member, newGroup, stopAll, until, within } from './group.mjs';

after(stopAll);

/** Keeps the event loop busy, so that no timer runs. */
const block = (ms) => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

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

/** What the work of one lead sees after its event loop was blocked past the fence. */
const seenBlocked = async (signal, see) => {
  const elector = member(await newGroup());
  let seen;
  const led = elector.lead((term) => {
    if (seen) return;
    const given = term.signal;
    block(1_100);
    seen = see(term, given);
  }, { signal });
  await within(led);
  await elector.stop();
  return seen;
};

for (const [name, make] of Object.entries({ 'no signal': () => undefined, 'its own': () => new AbortController().signal, 'a foreign one': foreign })) {
  test(`s10 after a blocked event loop the signal of a lead with ${name} has fired when its time is over`, async () => {
    assert.deepEqual(await seenBlocked(make(), (term) => [term.signal.aborted, term.remaining()]), [true, 0]);
    assert.equal(await seenBlocked(make(), (_term, given) => given.aborted), true, 'kept from before');
    assert.equal(await seenBlocked(make(), (_term, given) => given.reason?.code), 'EDGELECT_LOST');
    assert.match(await seenBlocked(make(), (_term, given) => {
      try {
        return given.throwIfAborted();
      } catch (error) {
        return error.message;
      }
    }) ?? '', /authority of term \d+ has ended/);
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
  const record = {
    leaderID: 'before', lastUpdated: '0001-01-01T00:00:00Z', term: 7, session: 's', sequence: 1, leaseMs: 1000,
    acquired: '2026-11-21T06:00:00Z', slot: first, slotDone: true, format: 1,
  };
  storage.putIfMatch('slots', new TextEncoder().encode(JSON.stringify(record)), null);
  await member(storage, { lockfilePath: 'slots' }).runScheduled(first + 60_000, job);
  assert.deepEqual(jobs, [true]);
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
