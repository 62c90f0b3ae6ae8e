// A trap in the wasm ends every authority in it, and the next elector gets an instance of its own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { exhaustUnder } from './exhaust.mjs';
import { until } from './until.mjs';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
virtualRuntime().flow();
const { Elector, EdgelectError, MemoryStorage } = await import('edgelect');
const { RawElector, initSync } = await import('edgelect/edgelect.js');

const uncaught = [];
process.on('unhandledRejection', (reason) => uncaught.push(reason));
process.on('uncaughtException', (error) => uncaught.push(error));
after(() => assert.deepEqual(uncaught, [], 'a trap surfaces in nobody else\'s event loop'));

const member = (options) =>
  new Elector({ storage: new MemoryStorage(), leaderTimeout: 1_000, frequentInterval: 250, lockfilePath: 'a', ...options });

const leading = async (lost) => {
  const elector = member({ onLoseLeadership: (why) => lost.push(why) });
  await elector.init();
  await elector.start();
  return { elector, term: await elector.waitForLeadership() };
};

const fired = (signal) => signal.aborted || new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

const leadsAgain = async (elector) => {
  await elector.start();
  const next = await elector.waitForLeadership();
  assert.ok(next.remaining() > 0 && elector.isLeader());
  await elector.stop();
};

test('c51 a trap while it renews: the signal fires, work and waiters hear of it, and start() makes a new one', async () => {
  const lost = [];
  const { elector, term } = await leading(lost);
  const bystander = await leading(lost);
  // Nothing of ours survives in such a memory: the next step inside must trap.
  new Uint8Array(initSync().memory.buffer).fill(0xff);
  await Promise.all([fired(term.signal), fired(bystander.term.signal)]);
  assert.equal(term.signal.reason.code, 'EDGELECT_LOST');
  assert.equal(term.remaining(), 0);
  assert.equal(elector.isLeader(), false);
  assert.deepEqual(lost.map(({ term: token }) => token).sort(), [term.token, bystander.term.token].sort());
  assert.equal(elector.status().role, 'stopped');
  assert.match(elector.status().error, /broke down/);
  const error = await elector.waitForLeadership().catch((caught) => caught);
  assert.ok(error instanceof EdgelectError && error.cause instanceof Error);
  assert.equal(error.code, 'EDGELECT_TRAP');
  await elector.stop();
  await leadsAgain(elector);
  await leadsAgain(bystander.elector);
  await leadsAgain(await member().init().then(() => elector));
});

test('a stack that ends inside the wasm is a trap', async () => {
  const lost = [];
  const { elector, term } = await leading(lost);
  assert.ok(exhaustUnder(elector));
  await fired(term.signal);
  assert.equal(elector.isLeader(), false);
  assert.equal(lost.length, 1);
  await leadsAgain(elector);
});

test('lead ends with the trap', async () => {
  const elector = member();
  await elector.init();
  const led = elector.lead(async (term) => {
    new Uint8Array(initSync().memory.buffer).fill(0xff);
    await fired(term.signal);
    throw new Error('the work gives up');
  });
  await assert.rejects(led, /gives up/);
  await leadsAgain(elector);
});

test('a request that a broken instance had begun does not leave any more', async () => {
  const memory = new MemoryStorage();
  await member({ storage: memory }).init();
  const seen = [];
  let trapped = false;
  const get = (key) => {
    seen.push(trapped ? 'read after the trap' : 'read');
    return memory.get(key);
  };
  const putIfMatch = (...how) => {
    seen.push(trapped ? 'write after the trap' : 'write');
    return memory.putIfMatch(...how);
  };
  const { poll } = RawElector.prototype;
  // Stands for a stack that ends, or an allocation that fails, after the claim was begun.
  RawElector.prototype.poll = function trapping() {
    const events = poll.call(this);
    if (trapped || seen.length === 0) return events;
    trapped = true;
    throw new RangeError('Maximum call stack size exceeded');
  };
  try {
    const elector = member({ storage: { get, putIfMatch } });
    await elector.start();
    assert.match(await until(() => elector.status().error), /broke down/);
  } finally {
    RawElector.prototype.poll = poll;
  }
  assert.deepEqual(seen, ['read']);
});

test('in the moment of a trap every question has its plain answer', async () => {
  for (const first of ['status', 'leaderId', 'isLeader', 'handleRequest']) {
    const lost = [];
    const { elector, term } = await leading(lost);
    new Uint8Array(initSync().memory.buffer).fill(0xff);
    const request = new Request('http://x/health/leadership');
    const answers = {};
    for (const name of [first, 'status', 'leaderId', 'isLeader', 'handleRequest']) answers[name] = elector[name](request);
    assert.deepEqual([answers.status.role, answers.leaderId, answers.isLeader], ['stopped', null, false]);
    assert.deepEqual(lost, [{ term: term.token, reason: 'trap' }], first);
    assert.ok(term.signal.aborted);
    assert.equal((await answers.handleRequest).status, 404);
    await elector.stop();
  }
});

test('a trap under init rejects it', async () => {
  const get = () => {
    new Uint8Array(initSync().memory.buffer).fill(0xff);
    return null;
  };
  await assert.rejects(member({ storage: { get, putIfMatch: () => null } }).init(), { code: 'EDGELECT_TRAP' });
});

test('a clock that throws a text is a trap, whatever the text says', async () => {
  for (const text of ['no clock', '{"code":', '7']) {
    const lost = [];
    const { elector } = await leading(lost);
    const { now } = performance;
    performance.now = () => {
      throw text;
    };
    try {
      assert.equal(elector.status().role, 'stopped');
    } finally {
      performance.now = now;
    }
    // It is told before any timer of the elector's can have run into it again.
    await new Promise(setImmediate);
    assert.deepEqual(lost.map(({ reason }) => reason), ['trap'], text);
    assert.match(elector.status().error, /broke down/);
    if (text === '7') await leadsAgain(elector);
  }
});
