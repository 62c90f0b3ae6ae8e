// A trap in the wasm ends every authority in it, and the next elector gets an instance of its own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Elector, EdgelectError, MemoryStorage } from 'edgelect';
import { initSync } from 'edgelect/edgelect.js';

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

test('a trap while it renews: the signal fires, work and waiters hear of it, and start() makes a new one', async () => {
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
  const dive = () => {
    elector.status();
    dive();
  };
  assert.throws(dive, (error) => error instanceof RangeError || error.code === 'EDGELECT_TRAP');
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
