// `doctor` and the judgement of a start, in virtual time: storages that throw, hang or answer nonsense, and how a start, a stop and
// a signal end a probe. What a store may answer is held in tests/answers/probe.rs and lies.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
const { Elector, MemoryStorage, S3Storage } = await import('edgelect');
const { bent, noting } = await import('./group.mjs');

/** What the doctor says in the end. */
const judged = (storage, options) => runtime.passing(new Elector({ storage, lockfilePath: 'a' }).doctor(options));

/** A storage of one's own whose methods are these, and how often it was asked; `onCall` hears of each call. */
const watched = (methods = {}, onCall = () => {}) => {
  const storage = { asked: 0 };
  const note = () => {
    storage.asked += 1;
    onCall();
  };
  return Object.assign(storage, noting(bent(new MemoryStorage(), methods), note));
};

const broken = () => { throw new Error('the disk is full'); };
const never = () => new Promise(() => {});

for (const [name, methods, step, why] of [
  ['throws at once when it is read', { get: broken }, 'update of an absent object', /^custom storage, key "a\.probe-[0-9a-f]{32}": the disk is full$/],
  ['never answers a reading', { get: never }, 'update of an absent object', /read: no answer within 10000 ms$/],
  ['never answers a write', { putIfMatch: never }, 'update of an absent object', /write: no answer within 10000 ms$/],
  ['gives an etag that is no text', { get: () => ({ body: '{}', etag: 7 }) }, 'update of an absent object', /get gave no etag/],
  ['gives no body', { get: () => ({ etag: '"1"' }) }, 'update of an absent object', /get gave no body, a text or a Uint8Array$/],
  ['gives a body of another make', { get: () => ({ etag: '"1"', body: '<html>' }) }, 'create', /somebody else wrote the object/],
  ['accepts each write with true and keeps none', { putIfMatch: () => true }, 'create', /a success without a version came back, and nothing was carried out$/],
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

test('a signal ends `doctor` at whatever call it fires, with its reason, and nothing is asked any more', async () => {
  for (let call = 1; call <= 21; call += 1) {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const storage = watched({}, () => storage.asked === call && controller.abort(reason));
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
  const { steps } = await runtime.passing(elector.doctor({ races: 1, onBegin: (step) => begun.push(step), onStep }));
  assert.deepEqual(heard, steps.map((step) => [step, 'stopped']));
  assert.deepEqual(begun, steps.map(({ step }) => step));
  assert.ok([...steps, ...heard.map(([step]) => step)].every(Object.isFrozen));
  // The last two come together: neither asks for anything in between.
  let calls = 0;
  const failing = elector.doctor({ races: 1, onStep: ({ step }) => { calls += 1; if (step.endsWith('version, later')) broken(); } });
  await assert.rejects(runtime.passing(failing), /the disk is full/);
  assert.equal(calls, steps.length - 1);
});

test('an onBegin or onStep that rejects ends the probe with that, also after the last step, and is not called again', async () => {
  for (const name of ['onBegin', 'onStep']) {
    for (const at of ['create', 'clocks']) {
      let [calls, before] = [0];
      const hear = async (told) => {
        calls += 1;
        if ((told.step ?? told) !== at) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
        before = calls;
        throw new Error(`no more of ${at}`);
      };
      const storage = watched();
      const failing = new Elector({ storage, lockfilePath: 'a' }).doctor({ races: 1, [name]: hear });
      await assert.rejects(runtime.passing(failing), new RegExp(`no more of ${at}`), `${name} ${at}`);
      const { asked } = storage;
      await runtime.pass(60_000);
      assert.deepEqual([storage.asked, calls], [asked, before], 'nothing goes on');
    }
  }
});

test('what fails ends a probe, whatever another callback waits for', async () => {
  const onStep = () => {
    throw new Error('no more');
  };
  const failing = new Elector({ storage: watched(), lockfilePath: 'a' }).doctor({ races: 1, onBegin: () => new Promise(() => {}), onStep });
  await assert.rejects(runtime.passing(failing), /no more/);
});

test('c26 `probe: true` judges a storage of one\'s own: one that breaks a condition is never led over', async () => {
  const memory = new MemoryStorage();
  const storage = watched({ get: (key) => memory.get(key), putIfMatch: (key, body) => memory.putIfMatch(key, body, memory.get(key)?.etag ?? null) });
  const elector = new Elector({ storage, lockfilePath: 'a', probe: true });
  const message = /^custom storage, key "a\.probe-[0-9a-f]{32}": probe step "update of an absent object": it took a write/;
  await assert.rejects(runtime.passing(elector.lead(() => assert.fail('it leads'))), { name: 'EdgelectError', code: 'EDGELECT_STORE', message });
  assert.match(elector.status().error, message);
  assert.deepEqual([elector.status().role, memory.get('a')], ['stopped', null]);
});

test('a key with no room for a probe\'s is refused by `doctor`, and keeps nobody from leading', async () => {
  const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a'.repeat(1_000), probe: true });
  await assert.rejects(runtime.passing(elector.doctor()), { code: 'EDGELECT_CONFIG', field: 'lockfilePath', message: /1 to 1024 bytes/ });
  assert.equal(await runtime.passing(elector.lead(() => 'led')), 'led');
});

test('the pause of a probe lets the process end where unref is set, but for one that is waited for', async (context) => {
  const { setTimeout: virtual } = globalThis;
  const pauses = [];
  context.mock.method(globalThis, 'setTimeout', (callback, ms, ...rest) => {
    const timer = virtual(callback, ms, ...rest);
    const one = { ms, unreffed: false };
    pauses.push(one);
    return Object.assign(timer, { unref: () => { one.unreffed = true; } });
  });
  const { endpoint, answerWith } = runtime.bucket();
  const storage = new S3Storage({ endpoint, bucket: 'jobs', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } });
  answerWith(() => new Response('<Error><Code>SlowDown</Code></Error>', { status: 503 }));
  const probes = [['start', true, true], ['start', false, false], ['doctor', true, false]];
  for (const [call, unref, unreffed] of probes) {
    pauses.length = 0;
    const elector = new Elector({ storage, lockfilePath: 'a', unref, probe: true, warn: false });
    elector[call]().catch(() => {});
    await runtime.pass(10_000);
    await runtime.passing(elector.stop());
    assert.deepEqual([...new Set(pauses.filter(({ ms }) => ms === 1_100).map((one) => one.unreffed))], [unreffed], call);
  }
});

/** What is asked of a storage after a stop that comes `turns` microtasks after the call of this number. */
const askedAfterStop = async (call, turns, stopping) => {
  let before;
  const storage = watched({}, () => {
    if (storage.asked !== call) return;
    let later = Promise.resolve();
    for (let index = 0; index < turns; index += 1) later = later.then(() => {});
    void later.then(() => {
      void elector.stop(stopping);
      before = storage.asked;
    });
  });
  const elector = new Elector({ storage, lockfilePath: 'a', probe: true });
  void elector.start();
  await runtime.settle();
  await runtime.settle();
  await elector.stop();
  return before === undefined ? 0 : storage.asked - before;
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
