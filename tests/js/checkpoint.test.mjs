// A job's own state, as JavaScript sees it; what a store may answer to it is held in tests/checkpoint.rs, how it goes on over real ones
// and in the next term in checkpoint-example.test.mjs and tests/faces, and there that nothing of it is sent without authority.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { KEY, LONG, breakMemory, fired, leading, member, newGroup, recordIn, started, until, within } from './group.mjs';

const STATE = 'reports/cursor.json';

/** The state of a leader over memory; `intercept` may answer in the place of the storage what is written to it. */
const inMemory = async (options = LONG) => {
  const { storage, ...leader } = await leading(options);
  const own = storage.putIfMatch.bind(storage);
  const intercept = (answer) => {
    storage.putIfMatch = (key, ...rest) => (key === STATE ? answer(...rest) : own(key, ...rest));
  };
  const stored = () => recordIn(storage, STATE).value;
  return { ...leader, storage, stored, intercept, state: await leader.term.checkpoint(STATE) };
};

test('the lease object and keys that no store takes are refused before anything leaves', async () => {
  const { storage, term } = await leading(LONG);
  for (const [key, rule] of [[KEY, /lockfilePath/], ['', /1 to 1024 bytes/], ['a//b', /empty or dot/], ['../a', /dot/], [7, /number/], [undefined, /undefined/], ['a\ud800', /control/]]) {
    await assert.rejects(term.checkpoint(key), { name: 'EdgelectError', code: 'EDGELECT_CONFIG', field: 'key', message: rule }, String(key));
  }
  assert.equal(recordIn(storage).value, undefined);
});

const nested = (levels) => Array.from({ length: levels }).reduce((inner) => [inner], 1);
const circle = {};
circle.circle = circle;

test('what JSON would change in silence, what is nested too deep or too large is refused, and the state goes on', async () => {
  const { stored, state } = await inMemory();
  await state.write('before');
  for (const value of [
    undefined, () => 1, { at: NaN }, [1n], { f: Symbol.iterator }, circle, Promise.resolve(1), new Map(), { a: new Set() }, [undefined],
    new Uint8Array(2), /a/, { at: new Date(NaN) }, new Date('never'), { a: 1, [Symbol('hidden')]: 2 },
    Object.assign([1, 2], { more: 3 }), Object.assign(Array(1), { more: 3 }), nested(127), nested(5_000), nested(100_000),
  ]) {
    const what = inspect(value, { depth: 1 });
    const message = /must be JSON, nested no deeper than 126 levels/;
    await assert.rejects(state.write(value), { code: 'EDGELECT_CONFIG', field: 'value', message }, what);
    assert.equal(state.value, 'before', what);
  }
  const tooLarge = { code: 'EDGELECT_CONFIG', field: 'value', message: /^value = 61441 bytes: a checkpoint has at most 61440 bytes of JSON/ };
  await assert.rejects(state.write('x'.repeat(61_439)), tooLarge);
  await state.write('x'.repeat(61_438));
  assert.equal(stored().length, 61_438);
  await assert.rejects(state.write('ä'.repeat(40_000)), /80002 bytes/);
  await state.write(nested(126));
  const when = new Date(0);
  await state.write({ when, left: undefined, lone: '\ud800', zero: -0, list: [null] });
  assert.deepEqual(state.value, { when: when.toISOString(), lone: '\ud800', zero: 0, list: [null] });
  assert.throws(() => {
    state.value.zero = 7;
  }, TypeError, 'what is not written is not the state');
});

test('a state of a Rust member with a number that JavaScript would change is named, and left as it is', async () => {
  const { storage, term } = await leading(LONG);
  const put = (key, value) => storage.putIfMatch(key, new TextEncoder().encode(`{"leaderID":"rust","leaderAddr":"",
    "lastUpdated":"2026-11-21T06:58:12Z","term":1,"session":"s","sequence":1,"opening":"o","value":${value},"format":1}`), null);
  for (const [key, number] of [['one', '9007199254740993'], ['two', '1e400'], ['three', '-18446744073709551615']]) {
    put(key, `{"offsets":[1,${number}]}`);
    const before = storage.get(key);
    await assert.rejects(term.checkpoint(key), { code: 'EDGELECT_STORE', message: new RegExp(`has the number ${number}, which JavaScript would change.*left as it is`) });
    assert.deepEqual([storage.get(key).etag, storage.get(key).body], [before.etag, before.body]);
  }
  put('held', '{"offset":9007199254740992,"text":"9007199254740993","part":0.1}');
  const state = await term.checkpoint('held');
  assert.deepEqual(state.value, { offset: 2 ** 53, text: '9007199254740993', part: 0.1 });
  await state.write(state.value);
});

test('one write at a time, and one state of a key in a term', async () => {
  const { term, state: first } = await inMemory();
  const writing = first.write(1);
  await assert.rejects(first.write(2), { code: 'EDGELECT_BUSY' });
  await writing;
  assert.equal(first.value, 1);
  const second = await term.checkpoint(STATE);
  assert.equal(second.value, 1);
  await assert.rejects(first.write(3), { code: 'EDGELECT_FENCED', message: /opened it again/ });
  await second.write(4);
  const both = await Promise.all([term.checkpoint('x'), term.checkpoint('x')]);
  const written = await Promise.allSettled(both.map((state, index) => state.write(index)));
  assert.deepEqual(written.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'the later opening holds');
});

test('without authority nothing is opened, nothing is sent, and what is under way ends at once', async () => {
  const { elector, term, state, stored, intercept } = await inMemory();
  let asked;
  intercept((_body, _etag, { signal }) => new Promise(() => (asked = signal)));
  const writing = state.write('under way').catch((caught) => caught);
  await until(() => asked);
  const stopping = elector.stop();
  assert.equal((await within(writing)).code, 'EDGELECT_LOST');
  assert.ok(asked.aborted, 'nobody waits for the answer any more');
  asked = undefined;
  await assert.rejects(state.write('later'), { code: 'EDGELECT_LOST' });
  await assert.rejects(term.checkpoint(STATE), { code: 'EDGELECT_LOST' });
  assert.equal(asked, undefined);
  await stopping;
  assert.equal(stored(), null);
});

/** The clocks go on and no timer runs, as if the process had been stopped or the event loop kept busy for so long. */
const skip = (mock, ms) => {
  for (const clock of [performance, Date]) {
    const { now } = clock;
    mock.method(clock, 'now', () => now.call(clock) + ms);
  }
};

for (const [how, end] of Object.entries({
  'outlives the term': (_term, mock) => skip(mock, LONG.leaderTimeout),
  'resigns it': (term) => term.resign(),
})) {
  test(`a write whose value's toJSON or getter ${how} is refused, and settles`, async ({ mock }) => {
    for (const valueOf of [(ends) => ({ toJSON: ends }), (ends) => ({ get part() { return ends(); } })]) {
      const { term, state, stored } = await inMemory();
      await state.write('before');
      await assert.rejects(within(state.write(valueOf(() => end(term, mock) ?? 7))), { code: 'EDGELECT_LOST' });
      await assert.rejects(state.write('after'), { code: 'EDGELECT_LOST' });
      assert.equal(stored(), 'before');
      mock.restoreAll();
    }
  });
}

test('lead hands the checkpoint to the work, and the caller may still write after its own signal', async () => {
  const storage = await newGroup();
  const controller = new AbortController();
  const led = member(storage).lead(async (term) => {
    const state = await term.checkpoint(STATE);
    controller.abort(new Error('the caller ends'));
    assert.ok(term.signal.aborted);
    await state.write('the last word');
    return state.value;
  }, { signal: controller.signal });
  assert.equal(await within(led), 'the last word');
  assert.equal(recordIn(storage, STATE).value, 'the last word');
});

test('a trap under a write ends it, nothing of it leaves any more, and the next term goes on', async () => {
  const { elector, storage, term, state, stored, intercept } = await inMemory({});
  await state.write(1);
  let sent = 0;
  intercept(() => {
    sent += 1;
    breakMemory();
    throw new Error('the answer was lost');
  });
  const error = await within(state.write(2).catch((caught) => caught));
  assert.ok(['EDGELECT_LOST', 'EDGELECT_TRAP'].includes(error.code), error.code);
  await fired(term.signal);
  assert.equal(sent, 1);
  delete storage.putIfMatch;
  await assert.rejects(state.write(3), { code: 'EDGELECT_LOST' });
  await elector.stop();
  const next = await (await started(elector)).checkpoint(STATE);
  assert.equal(next.value, 1);
  await next.write(4);
  assert.equal(stored(), 4);
});

test('opening a checkpoint under a storage whose format gives the term up settles', async () => {
  const { storage, term } = await leading(LONG);
  Object.defineProperty(storage, 'format', { get: () => void term.resign() });
  await assert.rejects(within(term.checkpoint(STATE)), { code: 'EDGELECT_LOST' });
});

test('a success that names the version it was to replace is no success: the write is read back, and made again', async () => {
  const { storage, stored, intercept, state } = await inMemory();
  const { putIfMatch } = Object.getPrototypeOf(storage);
  let lies = 1;
  intercept((body, etag, ...more) => (lies-- > 0 ? { etag } : putIfMatch.call(storage, STATE, body, etag, ...more)));
  await state.write('kept');
  assert.deepEqual([stored(), state.value], ['kept', 'kept']);
});
