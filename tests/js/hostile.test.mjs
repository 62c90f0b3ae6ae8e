// Bugs that happened, kept: values, bodies, signals and providers that nobody should give to an elector, but somebody does.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import vm from 'node:vm';
import { Elector, MemoryStorage, R2Storage, S3Storage } from 'edgelect';
import { keeper } from '../../js/credentials.js';
import { LONG, leading, leads, member, newGroup, stopAll, until, within } from './group.mjs';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
process.on('uncaughtException', (error) => unhandled.push(error));
after(stopAll);
after(() => assert.deepEqual(unhandled, [], 'no path leaves a rejection or an exception unhandled'));

const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const s3Storage = (options) => new S3Storage({ endpoint: 'http://127.0.0.1:9', bucket: 'jobs', credentials, ...options });

const leadsOn = ({ elector, losses, term }) => {
  assert.ok(elector.isLeader() && !term.signal.aborted && elector.status().term === term.token);
  assert.deepEqual(losses, []);
};

test('options that JSON makes nothing of are refused, and nobody else loses a term', async () => {
  const bystander = await leading(LONG);
  const nothing = { toJSON() {} };
  for (const give of [
    () => new Elector({ storage: new MemoryStorage(), ...nothing }),
    () => s3Storage(nothing),
    () => s3Storage({ credentials: { ...credentials, accessKeyId: nothing } }),
    () => bystander.elector.updateConfig(nothing),
  ]) {
    assert.throws(give, { code: 'EDGELECT_CONFIG' });
    leadsOn(bystander);
  }
  await bystander.elector.stop();
});

test('a format that is no text is refused by its name, whenever it turns up, and nobody else loses a term', async () => {
  const bystander = await leading(LONG);
  const refusedAsFormat = { code: 'EDGELECT_CONFIG', field: 'format' };
  const binding = { head() {}, get() {}, put() {} };
  for (const format of [1, true, {}, ['native'], Symbol('native'), 1n, () => 'native']) {
    const storage = Object.assign(new MemoryStorage(), { format });
    assert.throws(() => new Elector({ storage, lockfilePath: 'a' }), refusedAsFormat);
    assert.throws(() => new R2Storage(binding, { format }), refusedAsFormat);
    delete storage.format;
    const elector = new Elector({ storage, lockfilePath: 'a' });
    storage.format = format;
    await assert.rejects(elector.start(), refusedAsFormat);
    await assert.rejects(elector.init(), refusedAsFormat);
    await assert.rejects(elector.runScheduled(Date.now(), () => {}), refusedAsFormat);
    leadsOn(bystander);
  }
  for (const format of [undefined, null, 'native']) assert.ok(new Elector({ storage: Object.assign(new MemoryStorage(), { format }), lockfilePath: 'a' }));
  await bystander.elector.stop();
});

test('whatever park is, the elector stops and nobody else loses a term', async () => {
  const bystander = await leading(LONG);
  const untouched = () => assert.fail('a value is not asked what it is worth');
  for (const park of [Symbol('park'), 1n, { valueOf: untouched, toString: untouched }]) {
    const { elector } = await leading(LONG);
    await within(elector.stop({ park }));
    assert.equal(elector.status().role, 'stopped');
    leadsOn(bystander);
  }
  await bystander.elector.stop();
});

test('a stop whose options throw has not begun, and the elector goes on as before', async () => {
  const leader = await leading(LONG);
  const options = { get park() { throw new Error('of the caller'); } };
  await assert.rejects(leader.elector.stop(options), /of the caller/);
  leadsOn(leader);
  await within(leader.elector.start());
  assert.equal(await leads(leader.elector), leader.term);
  await leader.elector.stop();
});

test('a body that lies about its length takes nobody else with it', async () => {
  class Lying extends Uint8Array {
    subarray() {
      return { length: 3e9 };
    }
  }
  const bystander = await leading(LONG);
  const liar = member({ get: () => ({ etag: '1', body: new Lying(4) }), putIfMatch: () => null });
  await liar.start();
  assert.doesNotMatch(await until(() => liar.status().error), /broke down/);
  leadsOn(bystander);
  await Promise.all([liar.stop(), bystander.elector.stop()]);
});

test('bytes of another realm are bytes', async () => {
  const memory = await newGroup();
  const Foreign = vm.runInNewContext('Uint8Array');
  const get = (key) => ({ ...memory.get(key), body: Foreign.from(memory.get(key).body) });
  const elector = member({ get, putIfMatch: (...how) => memory.putIfMatch(...how) });
  await elector.start();
  await leads(elector);
  await elector.stop();
});

test('settings are those of the moment they were given, whatever becomes of the objects', async () => {
  const retryDelays = [100, 100];
  const controller = new AbortController();
  const storage = await newGroup();
  const elector = member(storage, { leaderTimeout: 2000, retryDelays });
  await elector.start({ signal: controller.signal });
  await leads(elector);
  retryDelays.push(7);
  assert.deepEqual(elector.config.retryDelays, [100, 100]);
  assert.equal(elector.status().role, 'leader');
  controller.abort();
  await until(() => elector.status().role === 'stopped');
});

test('a setting that starts the elector when it is looked at starts it once', async () => {
  const memory = await newGroup();
  let elector;
  let reads = 0;
  const terms = [];
  const retryDelays = {
    toJSON() {
      void elector?.start();
      return [50, 50];
    },
  };
  const get = (key) => {
    reads += 1;
    return memory.get(key);
  };
  const storage = { get, putIfMatch: (...how) => memory.putIfMatch(...how) };
  elector = member(storage, { leaderTimeout: 2000, retryDelays, onAcquireLeadership: ({ token }) => terms.push(token) });
  await elector.start();
  assert.equal(reads, 1, 'one session asks');
  const { token } = await leads(elector);
  await elector.stop();
  assert.deepEqual(terms, [token]);
});

test('what is no signal is refused at the door and changes nothing', async () => {
  const leader = await leading(LONG);
  const { elector } = leader;
  for (const signal of [{ aborted: false, addEventListener() {} }, 7, 'abort', { aborted: true }]) {
    for (const give of [
      () => elector.start({ signal }),
      () => elector.waitForLeadership({ signal }),
      () => elector.lead(() => assert.fail('the work began'), { signal }),
      () => elector.resign({ signal }),
      () => elector.stop({ signal }),
      () => elector.init({ signal }),
    ]) {
      await assert.rejects(within(give()), { code: 'EDGELECT_CONFIG', field: 'signal' });
      leadsOn(leader);
    }
  }
  await within(elector.stop());
});

test('a signal of another make is heard by lead', async () => {
  class ForeignSignal extends EventTarget {
    aborted = false;
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    abort(reason) {
      Object.assign(this, { aborted: true, reason });
      this.dispatchEvent(new Event('abort'));
    }
  }
  const signal = new ForeignSignal();
  const elector = member(await newGroup());
  const { any } = AbortSignal;
  // As Deno and Bun have it; Node is less strict.
  AbortSignal.any = (signals) => {
    if (signals.every((one) => one instanceof AbortSignal)) return any.call(AbortSignal, signals);
    throw new TypeError('not an AbortSignal');
  };
  const led = elector.lead(async (term) => {
    signal.abort(new Error('of the caller'));
    assert.ok(term.signal.aborted);
    term.signal.throwIfAborted();
  }, { signal });
  await assert.rejects(within(led), /of the caller/).finally(() => {
    AbortSignal.any = any;
  });
  assert.equal(elector.status().role, 'stopped');
});

const withClocks = async (work) => {
  const [wall, steady] = [Date.now, performance.now];
  const passed = { wallMs: 0, steadyMs: 0 };
  Date.now = () => wall.call(Date) + passed.wallMs;
  performance.now = () => steady.call(performance) + passed.steadyMs;
  try {
    await work(passed);
  } finally {
    Date.now = wall;
    performance.now = steady;
  }
};

test('a provider that hung is asked again though the wall clock has stepped back', () => withClocks(async (passed) => {
  let asked = 0;
  const get = keeper(() => {
    asked += 1;
    return asked === 1 ? new Promise(() => {}) : credentials;
  });
  void get(false);
  passed.wallMs = -3_600_000;
  void get(false);
  assert.equal(asked, 1);
  passed.steadyMs = 11_000;
  const { accessKeyId } = await within(get(false));
  assert.deepEqual([asked, accessKeyId], [2, 'a']);
}));

test('credentials that come late replace no newer ones', () => withClocks(async (passed) => {
  const answers = [];
  const get = keeper(() => new Promise((resolve) => answers.push(resolve)));
  const expiration = new Date(Date.now() + 10 * 3_600_000);
  const first = get(false);
  passed.steadyMs = 11_000;
  passed.wallMs = 11_000;
  const second = get(false);
  assert.equal(answers.length, 2);
  answers[1]({ ...credentials, accessKeyId: 'newer', expiration });
  await second;
  answers[0]({ ...credentials, accessKeyId: 'older', expiration });
  await first;
  assert.equal((await get(false)).accessKeyId, 'newer');
}));

/** An elector whose fetch answers with the body that `reader` reads. */
const withBody = async (reader, work) => {
  const real = globalThis.fetch;
  const headers = new Headers({ etag: '"1"', date: new Date().toUTCString() });
  globalThis.fetch = async () => ({ status: 200, headers, body: { getReader: () => reader } });
  try {
    const elector = member(s3Storage());
    await elector.start();
    await work(elector);
    await within(elector.stop());
  } finally {
    globalThis.fetch = real;
  }
};

test('a body of empty pieces without end is given up and cancelled', async () => {
  const found = { reads: 0, cancels: 0 };
  const read = async () => {
    found.reads += 1;
    // An end, though a late one: without it a failure would take all memory before any timer runs.
    return { done: found.reads > 50_000, value: new Uint8Array(0) };
  };
  const cancel = async () => {
    found.cancels += 1;
  };
  await withBody({ read, cancel }, async (elector) => {
    assert.match(await until(() => elector.status().error), /does not end/);
  });
  assert.ok(found.cancels > 0);
});

test('a body is read no further once its request is given up', async () => {
  const found = { reads: 0, cancels: 0 };
  const read = async () => {
    found.reads += 1;
    await new Promise(setImmediate);
    return { done: false, value: new Uint8Array(0) };
  };
  const cancel = async () => {
    found.cancels += 1;
  };
  await withBody({ read, cancel }, () => until(() => found.reads > 10));
  const { reads } = found;
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.ok(found.reads <= reads + 1, `${found.reads - reads} more reads after the stop`);
  assert.ok(found.cancels > 0);
});

test('a reader without a cancel of the usual kind ends nothing but its own request', async () => {
  for (const cancel of [undefined, () => {}, () => { throw new Error('of the reader'); }]) {
    let reads = 0;
    const read = async () => {
      reads += 1;
      await new Promise(setImmediate);
      return { done: false, value: new Uint8Array(0) };
    };
    await withBody({ read, cancel }, () => until(() => reads > 1));
  }
});
