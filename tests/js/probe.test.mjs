// `doctor` and the judgement of a start, in virtual time: stores that keep their conditions at first sight only, storages that
// throw, hang or answer nonsense, and how a start, a stop and a signal end a probe. Each lie of a store is tests/answers/lies.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, MemoryStorage, S3Storage } = await import('edgelect');

const SECOND_MS = 1_000;

/** A bucket that answers as a test says, and the storage over it. */
const newBucket = () => {
  const bucket = runtime.bucket();
  const credentials = { accessKeyId: 'the-id', secretAccessKey: 'the-secret' };
  return { ...bucket, storage: new S3Storage({ endpoint: bucket.endpoint, bucket: 'jobs', credentials }) };
};

/** What the doctor says in the end, while time passes in such steps. */
const judged = async (storage, options, step = () => runtime.pass(100)) => {
  let diagnosis;
  void new Elector({ storage, lockfilePath: 'a' }).doctor(options).then((one) => {
    diagnosis = one;
  });
  for (let steps = 0; !diagnosis; steps += 1) {
    assert.ok(steps < 2_000, 'the probe does not end');
    await step();
  }
  return diagnosis;
};

/** A bucket that does as `bend` says with what an honest one would answer. */
const bent = (bend) => {
  const bucket = newBucket();
  const honest = runtime.bucket();
  const state = { changedMs: Date.now() };
  bucket.answerWith(async (url, init) => {
    const plain = async (more = init) => globalThis.fetch(url.replace(bucket.endpoint, honest.endpoint), more);
    const answer = await bend({ init, plain, state });
    if (init.method === 'PUT' && answer.ok) state.changedMs = Date.now();
    return answer;
  });
  return bucket.storage;
};

const changed = (answer, headers) => new Response(answer.status === 304 ? null : answer.body, { status: answer.status, headers });

const headersOf = (answer, more) => {
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(more)) {
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
  }
  return headers;
};

/** Takes what it is given, whatever it asks, as soon as the object is older than this. */
const forgetsAfter = (ms) => bent(async ({ init, plain, state }) => {
  if (init.method !== 'PUT' || Date.now() - state.changedMs <= ms) return plain();
  const { etag } = Object.fromEntries((await plain({ method: 'GET', headers: {} })).headers);
  return plain({ ...init, headers: { 'if-match': etag } });
});

const answersOldEtag = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  const old = init.headers['if-match'];
  return init.method === 'PUT' && answer.ok && old ? changed(answer, headersOf(answer, { etag: old })) : answer;
});

const saysUnchanged = () => bent(async ({ init, plain }) => {
  const asked = init.method === 'GET' && init.headers['if-none-match'];
  return asked ? new Response(null, { status: 304, headers: { etag: asked } }) : plain();
});

const modifiedNow = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  const date = answer.headers.get('date');
  return init.method === 'GET' && answer.ok ? changed(answer, headersOf(answer, { 'last-modified': date })) : answer;
});

const namesNoVersion = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  return init.method === 'PUT' ? changed(answer, headersOf(answer, { etag: undefined })) : answer;
});

for (const [name, make, options, last, why] of [
  ['keeps conditions for a minute', () => forgetsAfter(60 * SECOND_MS), { age: 61 * SECOND_MS }, 'create again, later', /a write whose condition did not hold/],
  ['keeps conditions for four seconds', () => forgetsAfter(4 * SECOND_MS), { age: 5 * SECOND_MS }, 'create again, later', /a write whose condition did not hold/],
  ['answers a write with the version before', answersOldEtag, {}, 'update', /each renewal would cost a term/],
  ['has a cache that calls an old version unchanged', saysUnchanged, {}, 'read with a stale version', /nothing has changed/],
  ['names the time of each reading as that of the last change', modifiedNow, {}, 'clocks', /another `Last-Modified`/],
]) {
  test(`c26 a store that ${name} is refused by the doctor`, async () => {
    const { finding, steps } = await judged(make(), { races: 2, ...options });
    assert.deepEqual([finding, steps.at(-1).step], ['violated', last], steps.at(-1).why);
    assert.match(steps.at(-1).why, why);
  });
}

test('c26 a store that keeps its conditions for as long as it is watched holds, as an honest one and one that names no version of a write do', async () => {
  for (const [name, storage, age] of [
    ['a minute, at once', forgetsAfter(60 * SECOND_MS), 0],
    ['a minute, before it is over', forgetsAfter(60 * SECOND_MS), 59 * SECOND_MS],
    ['no version', namesNoVersion()],
    ['honest', bent(({ plain }) => plain())],
    ["one's own", new MemoryStorage()],
  ]) {
    const { finding, steps } = await judged(storage, { races: 2, age });
    assert.equal(finding, 'holds', `${name}: ${steps.at(-1).why}`);
  }
});

/** A storage of one's own whose methods are these, and how often it was asked. */
const watched = (methods = {}) => {
  const memory = new MemoryStorage();
  const own = { get: (key) => memory.get(key), putIfMatch: (key, body, etag) => memory.putIfMatch(key, body, etag), ...methods };
  const storage = { asked: 0 };
  for (const name of ['get', 'putIfMatch']) {
    storage[name] = (...all) => {
      storage.asked += 1;
      return own[name](...all);
    };
  }
  return storage;
};

const broken = () => {
  throw new Error('the disk is full');
};
const never = () => new Promise(() => {});

for (const [name, methods, step, why] of [
  ['throws at once when it is read', { get: broken }, 'update of an absent object', /^custom storage, key "a\.probe-[0-9a-f]{32}": the disk is full$/],
  ['rejects each write', { putIfMatch: async () => broken() }, 'update of an absent object', /the disk is full$/],
  ['never answers a reading', { get: never }, 'update of an absent object', /read: no answer within 10000 ms$/],
  ['never answers a write', { putIfMatch: never }, 'update of an absent object', /write: no answer within 10000 ms$/],
  ['throws what is no error', { get: () => { throw null; } }, 'update of an absent object', /null$/],
  ['gives a text for an object', { get: () => 'a text' }, 'update of an absent object', /get gave no etag, a text of at most 1024 characters$/],
  ['gives an etag that is no text', { get: () => ({ body: '{}', etag: 7 }) }, 'update of an absent object', /get gave no etag/],
  ['gives no body', { get: () => ({ etag: '"1"' }) }, 'update of an absent object', /get gave no body, a text or a Uint8Array$/],
  ['gives a body of another make', { get: () => ({ etag: '"1"', body: '<html>' }) }, 'create', /somebody else wrote the object/],
  ['accepts each write with true and keeps none', { putIfMatch: () => true }, 'create', /a success without a version came back, and nothing was carried out$/],
  ['answers each write with a function', { putIfMatch: () => () => {} }, 'create', /a success without a version came back/],
]) {
  test(`a storage that ${name} is unclear, and why is said`, async () => {
    const storage = watched(methods);
    const { finding, steps, store } = await judged(storage, { races: 1 });
    assert.deepEqual([finding, steps.at(-1).step, steps.at(-1).finding], ['unclear', step, 'unclear']);
    assert.match(steps.at(-1).why, why);
    assert.match(store, /^custom storage, key "a\.probe-[0-9a-f]{32}"$/);
    const { asked } = storage;
    await runtime.pass(60_000);
    assert.equal(storage.asked, asked, 'nothing goes on');
  });
}

test('a storage with no deletion keeps one released record of each probe, and no other key is touched', async () => {
  const bodies = new Map();
  const memory = new MemoryStorage();
  const putIfMatch = (key, body, etag) => {
    bodies.set(key, new TextDecoder().decode(body));
    return memory.putIfMatch(key, body, etag);
  };
  await judged(watched({ get: (key) => memory.get(key), putIfMatch }), { races: 1 });
  const [[key, body]] = bodies;
  assert.equal(bodies.size, 1);
  assert.match(key, /^a\.probe-[0-9a-f]{32}$/);
  assert.equal(JSON.parse(body).lastUpdated, '0001-01-01T00:00:00Z');
});

test('what is too slow for one request is given up by its signal, and the steps go on in bounds', async () => {
  const signals = [];
  const get = (_key, { signal }) => {
    signals.push(signal);
    return never();
  };
  await judged(watched({ get }), { races: 1 });
  assert.deepEqual(signals.map(({ aborted }) => aborted), signals.map(() => true));
});

test('a signal ends `doctor` at whatever call it fires, with its reason, and nothing is asked any more', async () => {
  for (let call = 1; call <= 21; call += 1) {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const memory = new MemoryStorage();
    const aborting = (name) => (...all) => {
      if (storage.asked === call) controller.abort(reason);
      return memory[name](...all);
    };
    const storage = watched({ get: aborting('get'), putIfMatch: aborting('putIfMatch') });
    const ended = new Elector({ storage, lockfilePath: 'a' }).doctor({ races: 1, signal: controller.signal }).catch((error) => error);
    await runtime.pass(2_000);
    assert.equal(await ended, reason, `call ${call}`);
    assert.equal(storage.asked, call);
  }
});

test('onBegin and onStep hear each step in its order, frozen; onStep may ask the elector, and is not called again after it threw', async () => {
  const storage = watched();
  const elector = new Elector({ storage, lockfilePath: 'a' });
  const heard = [];
  const begun = [];
  const onStep = (step) => {
    assert.equal(begun.at(-1), step.step);
    heard.push([step, elector.status().role]);
  };
  const diagnosing = elector.doctor({ races: 1, onBegin: (step) => begun.push(step), onStep });
  await runtime.pass(2_000);
  const { steps } = await diagnosing;
  assert.deepEqual(heard, steps.map((step) => [step, 'stopped']));
  assert.deepEqual(begun, steps.map(({ step }) => step));
  assert.ok([...steps, ...heard.map(([step]) => step)].every(Object.isFrozen));
  // The last two come together: neither asks for anything in between.
  let calls = 0;
  const failing = elector.doctor({ races: 1, onStep: ({ step }) => { calls += 1; if (step.endsWith('version, later')) broken(); } });
  const rejected = assert.rejects(failing, /the disk is full/);
  await runtime.pass(2_000);
  await rejected;
  assert.equal(calls, steps.length - 1);
});

test('c26 `probe: true` judges a storage of one\'s own: one that breaks a condition is never led over', async () => {
  const memory = new MemoryStorage();
  const storage = watched({ get: (key) => memory.get(key), putIfMatch: (key, body) => memory.putIfMatch(key, body, memory.get(key)?.etag ?? null) });
  const elector = new Elector({ storage, lockfilePath: 'a', probe: true });
  const message = /^custom storage, key "a\.probe-[0-9a-f]{32}": probe step "update of an absent object": it took a write/;
  const refused = assert.rejects(elector.lead(() => assert.fail('it leads')), { name: 'EdgelectError', code: 'EDGELECT_STORE', message });
  await runtime.pass(60_000);
  await refused;
  assert.match(elector.status().error, message);
  assert.deepEqual([elector.status().role, memory.get('a')], ['stopped', null]);
});

test('a key with no room for a probe\'s is refused by `doctor`, and keeps nobody from leading', async () => {
  const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a'.repeat(1_000), probe: true });
  const refused = assert.rejects(elector.doctor(), { code: 'EDGELECT_CONFIG', field: 'lockfilePath', message: /1 to 1024 bytes/ });
  await runtime.pass(60_000);
  await refused;
  const led = elector.lead(() => 'led');
  await runtime.pass(60_000);
  assert.equal(await led, 'led');
});

for (const part of [0.3, 0.6, 0.9, 0.99, 2]) {
  test(`c26 a store whose answers take ${part} of a request's time delays a start by five requests at most`, async () => {
    const storage = new MemoryStorage();
    const startMs = performance.now();
    let firstMs;
    const slowly = (name) => async (key, ...rest) => {
      if (key === 'a') firstMs ??= performance.now() - startMs;
      else await new Promise((resolve) => setTimeout(resolve, part * requestTimeout));
      return storage[name](key, ...rest);
    };
    const elector = new Elector({ storage: { get: slowly('get'), putIfMatch: slowly('putIfMatch') }, lockfilePath: 'a', probe: true });
    const { requestTimeout } = elector.config;
    const starting = elector.start();
    await runtime.pass(10 * requestTimeout);
    await starting;
    assert.ok(firstMs <= 5 * requestTimeout, `${firstMs / requestTimeout} requests`);
    const stop = elector.stop();
    await runtime.pass(60_000);
    await stop;
  });
}

test('the pause of a probe lets the process end where unref is set, and only there', async (context) => {
  const { setTimeout: virtual } = globalThis;
  const pauses = [];
  context.mock.method(globalThis, 'setTimeout', (callback, ms, ...rest) => {
    const timer = virtual(callback, ms, ...rest);
    const one = { ms, unreffed: false };
    pauses.push(one);
    return Object.assign(timer, { unref: () => { one.unreffed = true; } });
  });
  const { storage, answerWith } = newBucket();
  answerWith(() => new Response('<Error><Code>SlowDown</Code></Error>', { status: 503 }));
  for (const unref of [true, false]) {
    pauses.length = 0;
    const doctor = new Elector({ storage, lockfilePath: 'a', unref }).doctor();
    await runtime.pass(10_000);
    assert.equal((await doctor).finding, 'unclear');
    assert.deepEqual(pauses.filter(({ ms }) => ms === 1_100).map(({ unreffed }) => unreffed), [unref]);
  }
});

/** What is asked of a storage after a stop that comes `turns` microtasks after the call of this number. */
const askedAfterStop = async (call, turns, stopping) => {
  const storage = new MemoryStorage();
  let calls = 0;
  let late = 0;
  let isStopped = false;
  const asked = () => {
    calls += 1;
    if (isStopped) late += 1;
    if (calls !== call) return;
    let later = Promise.resolve();
    for (let index = 0; index < turns; index += 1) later = later.then(() => {});
    void later.then(() => {
      void elector.stop(stopping);
      isStopped = true;
    });
  };
  const counted = (name) => (...all) => asked() ?? storage[name](...all);
  const elector = new Elector({ storage: { get: counted('get'), putIfMatch: counted('putIfMatch') }, lockfilePath: 'a', probe: true });
  void elector.start();
  await runtime.settle();
  await runtime.settle();
  await elector.stop();
  return late;
};

for (const stopping of [{}, { release: false }]) {
  test(`c26 a stop ends the probe in whatever turn it comes (${JSON.stringify(stopping)})`, async () => {
    for (let call = 1; call <= 16; call += 1) {
      for (let turns = 0; turns <= 24; turns += 1) {
        assert.equal(await askedAfterStop(call, turns, stopping), 0, `call ${call}, ${turns} microtasks later`);
      }
    }
  });
}
