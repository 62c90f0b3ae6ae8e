// A trap in the wasm ends every authority in it, and the next elector gets an instance of its own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from './until.mjs';
import { virtualRuntime } from './virtual.mjs';

virtualRuntime().flow();
const { EdgelectError, MemoryStorage } = await import('edgelect');
const { RawElector } = await import('edgelect/edgelect.js');
const { bent, breakMemory, fired, leading, member, newGroup, noting, replaced, started } = await import('./group.mjs');

const leadsAgain = async (elector) => {
  assert.ok((await started(elector)).remaining() > 0 && elector.isLeader());
  await elector.stop();
};

test('c51 a trap while it renews: the signal fires, work and waiters hear of it, and start() makes a new one', async () => {
  const told = [];
  const onError = ({ code }) => told.push(code);
  const pair = [await leading({ onError }), await leading({ onError })];
  breakMemory();
  for (const { elector, losses, term } of pair) {
    await fired(term.signal);
    assert.equal(term.signal.reason.code, 'EDGELECT_LOST');
    assert.deepEqual([term.remaining(), elector.isLeader(), elector.status().role], [0, false, 'stopped']);
    assert.deepEqual(losses, [{ term: term.token, reason: 'trap' }]);
    assert.match(elector.status().error, /broke down/);
    const error = await elector.waitForLeadership().catch((caught) => caught);
    assert.ok(error instanceof EdgelectError && error.cause instanceof Error && error.code === 'EDGELECT_TRAP', error);
  }
  assert.deepEqual(told, ['EDGELECT_TRAP', 'EDGELECT_TRAP'], 'whoever waits for nothing hears of it, too');
  const [{ elector }, bystander] = pair;
  await elector.stop();
  for (const one of [elector, bystander.elector]) await leadsAgain(one);
  await newGroup();
  await leadsAgain(elector);
});

test('lead ends with the trap', async () => {
  const elector = member(await newGroup());
  const led = elector.lead(async (term) => {
    breakMemory();
    await fired(term.signal);
    throw new Error('the work gives up');
  });
  await assert.rejects(led, /gives up/);
  await leadsAgain(elector);
});

test('a request that a broken instance had begun does not leave any more', async () => {
  const memory = await newGroup();
  const seen = [];
  let trapped = false;
  const { poll } = RawElector.prototype;
  // Stands for a stack that ends, or an allocation that fails, after the claim was begun.
  const trapping = function trapping() {
    const events = poll.call(this);
    if (trapped || seen.length === 0) return events;
    trapped = true;
    throw new RangeError('Maximum call stack size exceeded');
  };
  await replaced(RawElector.prototype, 'poll', trapping, async () => {
    const elector = member(noting(memory, (what) => seen.push(trapped ? `${what} after the trap` : what)));
    await assert.rejects(elector.start(), { code: 'EDGELECT_TRAP' });
    assert.match(await until(() => elector.status().error), /broke down/);
  });
  assert.deepEqual(seen, ['get']);
});

test('in the moment of a trap every question has its plain answer', async () => {
  for (const first of ['status', 'leaderId', 'isLeader', 'handleRequest']) {
    const { elector, losses, term } = await leading();
    breakMemory();
    const request = new Request('http://x/health/leadership');
    const answers = {};
    for (const name of [first, 'status', 'leaderId', 'isLeader', 'handleRequest']) answers[name] = elector[name](request);
    assert.deepEqual([answers.status.role, answers.leaderId, answers.isLeader], ['stopped', null, false]);
    assert.deepEqual(losses, [{ term: term.token, reason: 'trap' }], first);
    assert.ok(term.signal.aborted);
    assert.equal((await answers.handleRequest).status, 404);
    await elector.stop();
  }
});

test('a trap under init or doctor rejects it, and the next one is made in a new instance', async () => {
  const get = () => {
    breakMemory();
    return null;
  };
  for (const call of ['init', 'doctor']) await assert.rejects(member(bent(new MemoryStorage(), { get }))[call](), { code: 'EDGELECT_TRAP' }, call);
  assert.equal((await member(new MemoryStorage()).doctor({ races: 1 })).finding, 'holds');
});

test('a clock that throws a text is a trap, whatever the text says', async () => {
  for (const text of ['no clock', '{"code":', '7']) {
    const { elector, losses } = await leading();
    await replaced(performance, 'now', () => { throw text; }, () => assert.equal(elector.status().role, 'stopped'));
    // It is told before any timer of the elector's can have run into it again.
    await new Promise(setImmediate);
    assert.deepEqual(losses.map(({ reason }) => reason), ['trap'], text);
    assert.match(elector.status().error, /broke down/);
    if (text === '7') await leadsAgain(elector);
  }
});

test('an instance that cannot be made anew is told as a trap', async () => {
  const { Wasm } = await import('../../js/wasm.js');
  const broken = () => { throw new RangeError('no memory'); };
  const wasm = new Wasm({ __wbg_reset_state: broken });
  for (const call of ['first', 'next']) assert.throws(() => wasm.call(broken), { code: 'EDGELECT_TRAP' }, call);
});
