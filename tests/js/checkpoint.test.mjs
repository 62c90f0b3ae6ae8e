// A job's own state, as JavaScript sees it: over a real store through a proxy that fails, in memory, and when the wasm traps.
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { Elector, EdgelectError, MemoryStorage, S3Storage } from 'edgelect';
import { initSync } from 'edgelect/edgelect.js';
import { bucketOptions, freshKey, getLease, getObject, putObject, until } from './bucket.mjs';
import { KEY, LONG, fired, leading, leads, member, newGroup, stopAll, within } from './group.mjs';
import { startProxy } from './proxy.mjs';

const FAST = { leaderTimeout: 60_000, frequentInterval: 400, requestTimeout: 10_000, storeSkew: 500, follow: 'tight' };
const STATE = 'reports/cursor.json';
const closing = [];

afterEach(stopAll);

after(async () => {
  for (const close of closing.reverse()) await close();
});

const inMemory = async (storage, key) => {
  const found = await storage.get(key);
  return found && JSON.parse(new TextDecoder().decode(found.body));
};

/** A leader over SeaweedFS whose checkpoint's requests go through a proxy, and those of its lease as well. */
const onS3 = async () => {
  const proxy = await startProxy(bucketOptions.endpoint);
  closing.push(proxy.close);
  const lockfilePath = freshKey('checkpoint');
  const key = freshKey('state');
  const at = (endpoint, serverId) => {
    const elector = new Elector({ ...FAST, storage: new S3Storage({ ...bucketOptions, endpoint }), lockfilePath, serverId });
    closing.push(() => elector.stop());
    return elector;
  };
  await at(bucketOptions.endpoint).init();
  const elector = at(proxy.endpoint, 'a');
  await elector.start();
  const term = await leads(elector);
  const ofState = (fails) => proxy.answerWith(({ method, url }) => (url.includes(key) ? fails(method) : undefined));
  return { proxy, key, elector, term, ofState, heir: () => at(bucketOptions.endpoint, 'b') };
};

test('a checkpoint is created, written and read by the next term, over a real store', async () => {
  const { proxy, key, elector, term, heir } = await onS3();
  const state = await term.checkpoint(key);
  assert.equal(state.value, null);
  assert.equal(state.token, term.token);
  await state.write({ next: 1, 'a name': ['ä', null, 1.5] });
  assert.deepEqual(state.value, { next: 1, 'a name': ['ä', null, 1.5] });
  assert.throws(() => {
    state.value.next = 7;
  }, TypeError, 'what is not written is not the state');
  await state.write({ next: 2 });
  const record = await getLease(key);
  assert.deepEqual([record.term, record.leaderID, record.value, 'leaseMs' in record], [term.token, 'a', { next: 2 }, false]);
  const puts = proxy.seen.filter(({ method, url }) => method === 'PUT' && url.includes(key));
  assert.equal(puts.length, 3);
  assert.equal(proxy.count('GET', key), 1, 'one request a write');
  for (const { headers } of puts) assert.ok(headers['if-match'] ?? headers['if-none-match'], 'every write is conditional');
  await elector.stop();
  const next = heir();
  await next.start();
  const later = await leads(next);
  const found = await later.checkpoint(key);
  assert.deepEqual(found.value, { next: 2 });
  assert.ok(found.token > state.token);
  await assert.rejects(state.write({ next: 3 }), { code: 'EDGELECT_LOST' });
  assert.equal((await getLease(key)).term, later.token);
});

test('a zombie whose own look still passes is refused by the store', async () => {
  const { key, term } = await onS3();
  const state = await term.checkpoint(key);
  await state.write({ next: 1 });
  // Its write is held back on the way until a later term has sealed the object: what a stop between look and send does.
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  const answers = [];
  let sent = false;
  const { fetch } = globalThis;
  globalThis.fetch = async (url, init) => {
    if (init?.method !== 'PUT' || !new TextDecoder().decode(init.body).includes('"next":99')) return fetch(url, init);
    sent = true;
    await held;
    const answer = await fetch(url, { ...init, signal: undefined });
    answers.push(answer.status);
    return answer;
  };
  try {
    const writing = assert.rejects(state.write({ next: 99 }), { code: 'EDGELECT_FENCED' });
    await until(() => sent);
    // A seal of our own making; examples/checkpoint has a member that waits out the lease.
    const record = await getLease(key);
    await putObject(key, JSON.stringify({ ...record, term: record.term + 1, session: 'heir', leaderID: 'heir', opening: 'x' }));
    release();
    await writing;
    await until(() => answers.length > 0);
    assert.ok(answers.every((status) => status === 412), `the store itself refused it: ${answers}`);
    assert.deepEqual((await getLease(key)).value, { next: 1 });
  } finally {
    globalThis.fetch = fetch;
  }
  const error = await state.write({ next: 100 }).catch((caught) => caught);
  assert.ok(error instanceof EdgelectError);
  assert.equal(error.code, 'EDGELECT_FENCED');
  assert.match(error.message, /later term \d+ of "heir"/);
  await assert.rejects(term.checkpoint(key), { code: 'EDGELECT_FENCED' });
});

test('a lost answer, a 503, a 409 and a lying 412 are read back and never taken for a failure', async () => {
  const { proxy, key, term, ofState } = await onS3();
  const state = await term.checkpoint(key);
  let count = 0;
  for (const status of [500, 503, 409, 412]) {
    let left = 1;
    ofState((method) => {
      if (method !== 'PUT' || left === 0) return undefined;
      left -= 1;
      return { status };
    });
    count += 1;
    await state.write(count);
    assert.equal((await getLease(key)).value, count, `${status}`);
  }
  // Three lost ones: nobody knows, and the next write finds out.
  ofState((method) => (method === 'PUT' ? { status: 503 } : undefined));
  const error = await state.write('lost').catch((caught) => caught);
  assert.equal(error.code, 'EDGELECT_UNKNOWN');
  assert.match(error.message, /^checkpoint "state\/[^"]+" \(S3 bucket .*may have landed/);
  assert.equal(state.value, count, 'what is known to have landed');
  ofState(() => undefined);
  const reads = proxy.count('GET', key);
  await state.write('found');
  assert.equal(proxy.count('GET', key), reads + 1);
  assert.equal((await getLease(key)).value, 'found');
  // The store says no, so nothing is tried again.
  ofState((method) => (method === 'PUT' ? { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' } : undefined));
  const puts = proxy.count('PUT', key);
  await assert.rejects(state.write('denied'), { code: 'EDGELECT_STORE' });
  assert.equal(proxy.count('PUT', key), puts + 1);
});

test('what is no checkpoint is left as it is, with the key and the way out in the error', async () => {
  const { term } = await onS3();
  for (const body of ['', '{"orders":[1]}', 'x'.repeat(70_000), '\u0000\u0001', '['.repeat(300), '{"leaderID":"a","term":1,"value":1,"format":2}']) {
    const key = freshKey('foreign');
    await putObject(key, body);
    const error = await term.checkpoint(key).catch((caught) => caught);
    assert.equal(error.code, 'EDGELECT_STORE');
    assert.ok(error.message.includes(`"${key}"`) && /use another key/.test(error.message), error.message);
    assert.equal((await getObject(key)).text, body);
  }
});

test('the lease object and keys that no store takes are refused before anything leaves', async () => {
  const { storage, term } = await leading(LONG);
  for (const [key, rule] of [[KEY, /lockfilePath/], ['', /1 to 1024 bytes/], ['a//b', /empty or dot/], ['../a', /dot/], [7, /number/], [undefined, /undefined/], ['a\ud800', /control/]]) {
    const error = await term.checkpoint(key).catch((caught) => caught);
    assert.ok(error instanceof EdgelectError, String(error));
    assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', 'key'], error.message);
    assert.match(error.message, rule);
  }
  assert.equal((await inMemory(storage, KEY)).value, undefined);
});

test('what JSON would change and what is too large is refused, and the state goes on', async () => {
  const { storage, term } = await leading(LONG);
  const state = await term.checkpoint(STATE);
  const circle = {};
  circle.circle = circle;
  for (const value of [undefined, () => 1, { at: Number.NaN }, [1n], { f: Symbol.iterator }, circle, Promise.resolve(1), new Map(), { a: new Set() }, [undefined], new Uint8Array(2), /a/]) {
    await assert.rejects(state.write(value), { code: 'EDGELECT_CONFIG', field: 'value' });
  }
  const error = await state.write('x'.repeat(61_439)).catch((caught) => caught);
  assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', 'value']);
  assert.match(error.message, /^value = 61441 bytes: a checkpoint has at most 61440 bytes of JSON/);
  await state.write('x'.repeat(61_438));
  assert.equal((await inMemory(storage, STATE)).value.length, 61_438);
  // Counted in bytes of UTF-8.
  await assert.rejects(state.write('ä'.repeat(40_000)), /80002 bytes/);
  const when = new Date(0);
  await state.write({ when, left: undefined, lone: '\ud800', zero: -0 });
  assert.deepEqual(state.value, { when: when.toISOString(), lone: '\ud800', zero: 0 });
});

test('one write at a time, and one state of a key in a term', async () => {
  const { term } = await leading(LONG);
  const first = await term.checkpoint(STATE);
  const writing = first.write(1);
  await assert.rejects(first.write(2), { code: 'EDGELECT_BUSY' });
  await writing;
  assert.equal(first.value, 1);
  const second = await term.checkpoint(STATE);
  assert.equal(second.value, 1);
  const error = await first.write(3).catch((caught) => caught);
  assert.equal(error.code, 'EDGELECT_FENCED');
  assert.match(error.message, /opened it again/);
  await second.write(4);
  const both = await Promise.all([term.checkpoint('x'), term.checkpoint('x')]);
  const written = await Promise.allSettled(both.map((state, index) => state.write(index)));
  assert.deepEqual(written.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'the later opening holds');
});

test('without authority nothing is opened, nothing is sent, and what is under way ends at once', async () => {
  const { elector, storage, term } = await leading(LONG);
  const state = await term.checkpoint(STATE);
  let asked;
  const { putIfMatch } = storage;
  storage.putIfMatch = (key, ...rest) => {
    if (key !== STATE) return putIfMatch.call(storage, key, ...rest);
    const [, , { signal }] = rest;
    asked = signal;
    return new Promise(() => {});
  };
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
  assert.equal((await inMemory(storage, STATE)).value, null);
});

test('a write that waits for its next attempt does not leave once the authority is gone, whatever the timers say', async () => {
  const { storage, term } = await leading(LONG);
  const state = await term.checkpoint(STATE);
  const { putIfMatch } = storage;
  let sent = 0;
  const { now } = performance;
  const { now: wall } = Date;
  storage.putIfMatch = (key, ...rest) => {
    if (key !== STATE) return putIfMatch.call(storage, key, ...rest);
    sent += 1;
    // The process is stopped for a minute before the answer is heard.
    performance.now = () => now.call(performance) + 60_000;
    Date.now = () => wall.call(Date) + 60_000;
    throw new Error('the answer was lost');
  };
  try {
    await assert.rejects(state.write(1), { code: 'EDGELECT_LOST' });
    assert.equal(term.signal.aborted, true);
    assert.equal(sent, 1);
  } finally {
    performance.now = now;
    Date.now = wall;
  }
});

test('lead hands the checkpoint to the work, and the caller may still write after its own signal', async () => {
  const storage = await newGroup();
  const elector = member(storage);
  const controller = new AbortController();
  const led = elector.lead(async (term) => {
    const state = await term.checkpoint(STATE);
    controller.abort(new Error('the caller ends'));
    assert.ok(term.signal.aborted);
    await state.write('the last word');
    return state.value;
  }, { signal: controller.signal });
  assert.equal(await within(led), 'the last word');
  assert.equal((await inMemory(storage, STATE)).value, 'the last word');
});

test('a trap under a write ends it, nothing of it leaves any more, and the next term goes on', async () => {
  const { elector, storage, term } = await leading();
  const state = await term.checkpoint(STATE);
  await state.write(1);
  const { putIfMatch } = storage;
  let sent = 0;
  storage.putIfMatch = (key, ...rest) => {
    if (key !== STATE) return putIfMatch.call(storage, key, ...rest);
    sent += 1;
    // Nothing of ours survives in such a memory: the next step inside must trap.
    new Uint8Array(initSync().memory.buffer).fill(0xff);
    throw new Error('the answer was lost');
  };
  const error = await within(state.write(2).catch((caught) => caught));
  assert.ok(['EDGELECT_LOST', 'EDGELECT_TRAP'].includes(error.code), error.code);
  await fired(term.signal);
  assert.equal(sent, 1);
  storage.putIfMatch = putIfMatch;
  await assert.rejects(state.write(3), { code: 'EDGELECT_LOST' });
  await elector.stop();
  await elector.start();
  const next = await (await leads(elector)).checkpoint(STATE);
  assert.equal(next.value, 1);
  await next.write(4);
  assert.equal((await inMemory(storage, STATE)).value, 4);
});

for (const [how, end] of Object.entries({
  // The clocks go on and no timer runs, as if it kept the event loop busy for so long.
  'outlives the term': (_elector, _term, { mock }) => {
    for (const clock of [performance, Date]) {
      const { now } = clock;
      mock.method(clock, 'now', () => now.call(clock) + LONG.leaderTimeout);
    }
  },
  'resigns it': (_elector, term) => term.resign(),
  'resigns the elector': (elector) => void elector.resign(),
  'stops the elector': (elector) => void elector.stop(),
})) {
  for (const what of ['toJSON', 'getter']) {
    test(`a write whose value's ${what} ${how} is refused, and settles`, async (context) => {
      const { elector, storage, term } = await leading(LONG);
      const state = await term.checkpoint(STATE);
      await state.write('before');
      const ends = () => end(elector, term, context) ?? 7;
      const value = what === 'toJSON' ? { toJSON: ends } : { get part() { return ends(); } };
      await assert.rejects(within(state.write(value)), { code: 'EDGELECT_LOST' });
      await assert.rejects(state.write('after'), { code: 'EDGELECT_LOST' });
      assert.equal((await inMemory(storage, STATE)).value, 'before');
    });
  }
}

test('opening a checkpoint under a storage whose format gives the term up settles', async () => {
  const { elector, storage, term } = await leading(LONG);
  Object.defineProperty(storage, 'format', { get: () => void term.resign() });
  await assert.rejects(within(term.checkpoint(STATE)), { code: 'EDGELECT_LOST' });
  await elector.stop();
});

test('a value that JSON would change in silence is refused by name, and so is one that is nested too deep', async () => {
  const { term } = await leading(LONG);
  const state = await term.checkpoint(STATE);
  await state.write('before');
  const nested = (levels) => Array.from({ length: levels }).reduce((inner) => [inner], 1);
  const refused = {
    'an invalid date': { at: new Date(NaN) },
    'the same alone': new Date('never'),
    'a symbol for a key': { a: 1, [Symbol('hidden')]: 2 },
    'a list with a name': Object.assign([1, 2], { more: 3 }),
    'a list with a hole and a name': Object.assign(Array(1), { more: 3 }),
    '127 levels': nested(127),
    '5,000 levels': nested(5_000),
    '100,000 levels': nested(100_000),
  };
  for (const [name, value] of Object.entries(refused)) {
    const error = await state.write(value).then(() => assert.fail(name), (caught) => caught);
    assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', 'value'], name);
    assert.match(error.message, /must be JSON, nested no deeper than 126 levels/, name);
  }
  assert.equal(state.value, 'before');
  await state.write(nested(126));
  const date = new Date(0);
  await state.write({ date, zero: -0, left: undefined, list: [null] });
  assert.deepEqual(state.value, { date: date.toISOString(), zero: 0, list: [null] });
});

test('two thousand writes leave nothing behind in the wasm', async () => {
  const { term } = await leading(LONG);
  const state = await term.checkpoint(STATE);
  const wasm = initSync();
  const held = () => [wasm.memory.buffer.byteLength, wasm.__wbindgen_externrefs.length];
  const write = async (times) => {
    for (let count = 0; count < times; count += 1) {
      await state.write({ count });
      // Or the elector's timers would never run.
      await new Promise(setImmediate);
    }
  };
  await write(300);
  const before = held();
  await write(2_000);
  assert.deepEqual(held(), before);
});

test('a storage that keeps one object whatever the key is called loses no lease', async () => {
  const one = new MemoryStorage();
  const storage = { get: (_key) => one.get('x'), putIfMatch: (_key, body, etag) => one.putIfMatch('x', body, etag) };
  const elector = member(storage);
  await elector.init();
  await elector.start();
  const term = await leads(elector);
  await assert.rejects(term.checkpoint(STATE), /no checkpoint, but a lease/);
  assert.equal((await inMemory(one, 'x')).leaderID, 'a');
});
