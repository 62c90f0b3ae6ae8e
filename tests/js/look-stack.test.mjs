// Bugs that happened, kept: a term that ends while an application asks for it at the end of an exhausted stack.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Fence } from '../../js/fence.js';
import { block, leading, leads, stopAll } from './group.mjs';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
process.on('uncaughtException', (error) => unhandled.push(error));
after(stopAll);
after(() => assert.deepEqual(unhandled, [], 'no path leaves a rejection or an exception unhandled'));

/** Looks at every depth from the end of the stack upwards, and gives what was seen. */
const lookUnder = (look) => {
  const seen = new Set();
  const dive = () => {
    try {
      dive();
    } catch {
      // The bottom, or a frame too near to it.
    }
    try {
      seen.add(look());
    } catch {
      // No room for the look itself.
    }
  };
  dive();
  return [...seen];
};

for (const [name, { look, none }] of Object.entries({
  'isLeader': { look: ({ elector }) => elector.isLeader(), none: false },
  'remaining': { look: ({ term }) => term.remaining(), none: 0 },
  'the signal': { look: ({ term }) => term.signal.aborted, none: undefined },
})) {
  test(`s10 the end of a term that ${name} finds in an exhausted stack is told once, and whole`, async () => {
    const leader = await leading();
    const { elector, losses, term } = leader;
    let heard = 0;
    term.signal.addEventListener('abort', () => {
      heard += 1;
    });
    block(1_100);
    const seen = lookUnder(() => look(leader));
    if (none !== undefined) assert.deepEqual(seen, [none], 'nothing says more than the election does');
    await new Promise(setImmediate);
    assert.deepEqual([heard, term.signal.aborted, losses.length], [1, true, 1]);
    assert.equal(losses[0].term, term.token);
    // The wasm may have broken down, and then it stops; otherwise it competes again by itself.
    if (elector.status().role === 'stopped') await elector.start();
    assert.ok((await leads(elector)).token > term.token);
    await elector.stop();
    assert.equal(losses.length, 2);
  });
}

test('s10 a term of which an exhausted stack has no room to ask is not over', async () => {
  const over = [];
  const standing = () => {
    // What it needs of the stack; without that it has no answer, as an engine.
    const use = (frames) => frames > 0 && use(frames - 1);
    try {
      use(100);
      return { term: 1, remainingMs: 1_000, proven: true };
    } catch {
      return undefined;
    }
  };
  const engine = { alive: true, standing, tick: () => {} };
  const fence = new Fence(engine, 1, { onOver: (reason) => over.push(reason), onProven: () => {}, unref: true });
  assert.deepEqual(new Set(lookUnder(() => fence.remaining)), new Set([0, 1_000]));
  await new Promise(setImmediate);
  assert.deepEqual(over, []);
  assert.equal(fence.remaining, 1_000);
});

test('s10 the end of a term is told to everybody though something throws on the way', async () => {
  const { elector, losses, term } = await leading();
  const { abort } = AbortController.prototype;
  let threw = 0;
  AbortController.prototype.abort = function throwing(...reason) {
    if (this.signal !== term.signal || threw > 0) return abort.apply(this, reason);
    threw += 1;
    throw new RangeError('Maximum call stack size exceeded');
  };
  try {
    block(1_100);
    assert.equal(elector.isLeader(), false);
    await new Promise(setImmediate);
  } finally {
    AbortController.prototype.abort = abort;
  }
  assert.deepEqual([threw, term.signal.aborted, term.remaining(), losses.length], [1, true, 0, 1]);
  assert.ok((await leads(elector)).token > term.token);
  await elector.stop();
});
