// Bugs that happened, kept: an application that asks for a term which has ended at the end of an exhausted stack. What it sees after it
// has blocked the event loop is held by tests/faces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fence } from '../../js/fence.js';
import { LONG, block, leading, leads, member, newGroup, replaced } from './group.mjs';

/** The events by which the end of a term is heard. */
const hearing = ({ signal }) => {
  const heard = [];
  signal.addEventListener('abort', (event) => heard.push(event));
  return heard;
};

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
    const heard = hearing(term);
    block(1_100);
    const seen = lookUnder(() => look(leader));
    if (none !== undefined) assert.deepEqual(seen, [none], 'nothing says more than the election does');
    await new Promise(setImmediate);
    assert.deepEqual([heard.length, term.signal.aborted, losses.map((loss) => loss.term)], [1, true, [term.token]]);
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
      return null;
    }
  };
  const engine = { alive: true, standing, tick: () => {} };
  const fence = new Fence(engine, 1, { onOver: (reason) => over.push(reason), onSeen: (reason) => over.push(reason), onProven: () => {}, unref: true });
  assert.deepEqual(new Set(lookUnder(() => fence.remaining)), new Set([0, 1_000]));
  await new Promise(setImmediate);
  assert.deepEqual(over, []);
  assert.equal(fence.remaining, 1_000);
});

/** Calls where less than 120 kB of the stack are left: a callback may need more. */
const deep = (work) => {
  const room = new Array(15_000).fill(0);
  const at = () => {
    try {
      Reflect.apply(() => {}, undefined, room);
    } catch {
      return work();
    }
    return at();
  };
  return at();
};

test('s10 a signal says at once, deep in the stack too, that the authority is over', async () => {
  const { elector, losses, term } = await leading();
  const heard = hearing(term);
  deep(() => {
    block(1_100);
    const { signal } = term;
    assert.deepEqual([signal.aborted, signal.reason.code, term.remaining()], [true, 'EDGELECT_LOST', 0]);
    assert.throws(() => signal.throwIfAborted(), { code: 'EDGELECT_LOST' });
  });
  await new Promise(setImmediate);
  assert.deepEqual([heard.length, losses], [1, [{ term: term.token, reason: 'expired' }]]);
  assert.ok((await leads(elector)).token > term.token);
});

test('looks at a term that is over keep nothing, however deep in the stack', async () => {
  const { term } = await leading();
  const grown = deep(() => {
    block(1_100);
    const before = process.memoryUsage().heapUsed;
    for (let looks = 0; looks < 200_000; looks += 1) void term.signal.aborted;
    return process.memoryUsage().heapUsed - before;
  });
  assert.ok(grown < 30e6, `${grown} bytes for 200,000 looks`);
});

test('a stop deep in the stack ends the term for that reason, and the work keeps its value', async () => {
  const losses = [];
  const elector = member(await newGroup(), { ...LONG, onLoseLeadership: ({ reason }) => losses.push(reason) });
  const value = await elector.lead(async (term) => {
    deep(() => void elector.stop());
    return term.signal.aborted && 'value';
  });
  assert.deepEqual([value, losses], ['value', ['stopped']]);
});

test('s10 the end of a term is told to everybody though something throws on the way', async () => {
  const { elector, losses, term } = await leading();
  const { abort } = AbortController.prototype;
  let threw = 0;
  const throwing = function throwing(...reason) {
    if (this.signal !== term.signal || (threw += 1) > 1) return abort.apply(this, reason);
    throw new RangeError('Maximum call stack size exceeded');
  };
  await replaced(AbortController.prototype, 'abort', throwing, async () => {
    block(1_100);
    assert.equal(elector.isLeader(), false);
    await new Promise(setImmediate);
  });
  assert.deepEqual([threw > 0, term.signal.aborted, term.remaining(), losses.length], [true, true, 0, 1]);
  assert.ok((await leads(elector)).token > term.token);
});
