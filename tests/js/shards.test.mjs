// What the application of a member of shards hears, on virtual time. Who gets which is held in tests/shards.rs.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { inRoot } from '../../js/tools/paths.mjs';
import { atEnd } from './ending.mjs';
import { virtualRuntime } from './virtual.mjs';

const runtime = virtualRuntime();
const { passing } = runtime;
const { MemoryStorage, S3Storage, Shards } = await import('edgelect');
const { breakMemory, fired, isReleased } = await import('./group.mjs');

const SETTLED_MS = 80_000;

const groupOf = async (shards) => {
  const storage = new MemoryStorage();
  await new Shards({ storage, prefix: 'jobs', shards }).init();
  return storage;
};

/** A member, what it has heard, and what cuts it off from the store. */
const memberOf = (storage, serverId, options = {}) => {
  const heard = [];
  const way = { cut: false };
  const through = (call) => async (...how) => (way.cut ? new Promise(() => {}) : call(...how));
  const own = { get: through((key) => storage.get(key)), putIfMatch: through((...how) => storage.putIfMatch(...how)) };
  const onLose = (shard, reason) => void heard.push(['lost', shard, reason]);
  const shards = new Shards({ storage: own, prefix: 'jobs', serverId, warn: false, onLose, ...options });
  atEnd(() => passing(shards.stop()));
  return { shards, heard, way };
};

test('shards are initialized a few at a time', async () => {
  const storage = new MemoryStorage();
  let [underWay, most] = [0, 0];
  const slow = (call) => async (...how) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise((resolve) => setTimeout(resolve, 50));
    underWay -= 1;
    return call(...how);
  };
  const own = { get: slow((key) => storage.get(key)), putIfMatch: slow((...how) => storage.putIfMatch(...how)) };
  const make = () => new Shards({ storage: own, prefix: 'jobs', shards: 100 }).init();
  await passing(make());
  assert.ok(most > 1 && most <= 10, `${most} at once`);
  await assert.rejects(passing(make()), { code: 'EDGELECT_EXISTS' });
});

test('an init that is aborted rejects by any reason', async () => {
  for (const reason of ['', 0, null, new Error('enough')]) {
    const controller = new AbortController();
    const memory = new MemoryStorage();
    const storage = { get: (key) => memory.get(key), putIfMatch: (...how) => (controller.abort(reason), memory.putIfMatch(...how)) };
    const ended = await passing(new Shards({ storage, prefix: 'jobs', shards: 40 }).init({ signal: controller.signal })).then(() => ['resolved'], (error) => [error]);
    assert.deepEqual(ended, [reason]);
  }
});

test('shards are initialized also where nothing else keeps the process', async () => {
  const script = "import { MemoryStorage, Shards } from 'edgelect'; await new Shards({ storage: new MemoryStorage(), prefix: 'jobs', shards: 3, unref: true, maxRequestsPerSecond: 100 }).init();";
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: inRoot('.') });
});

test('what is waited for keeps the process, whatever unref says', async () => {
  for (const [made, call] of [
    ["new Elector({ lockfilePath: 'a', storage, unref: true, warn: false })", 'doctor()'],
    ["new Electors({ storage, unref: true, warn: false }).add('a')", 'doctor()'],
    ["new Electors({ storage, unref: true, warn: false }).add('a')", 'pause().catch((error) => console.log(error.code))'],
  ]) {
    const script = `import { Elector, Electors } from 'edgelect'; const busy = async () => { throw new Error('busy'); }; const storage = { get: busy, putIfMatch: busy }; console.log(await ${made}.${call});`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: inRoot('.') });
    assert.notEqual(stdout, '', `${made}.${call}`);
  }
});

test('a resignation that is waited for keeps the process until the lease is released, whatever unref says', async () => {
  const script = `
    import { Elector, MemoryStorage } from 'edgelect';
    const memory = new MemoryStorage();
    let refuses = false;
    const putIfMatch = async (...how) => {
      if (!refuses) return memory.putIfMatch(...how);
      refuses = false;
      throw new Error('busy');
    };
    const elector = new Elector({ lockfilePath: 'a', storage: { get: (key) => memory.get(key), putIfMatch }, unref: true, warn: false });
    await elector.init();
    const alive = setInterval(() => {}, 100);
    await elector.start();
    await elector.waitForLeadership();
    clearInterval(alive);
    refuses = true;
    await elector.resign();
    console.log(Buffer.from((await memory.get('a')).body).toString());`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: inRoot('.') });
  assert.match(stdout, /0001-01-01/);
});

test('shards that a rate has no room for are refused before anything is made, and a slow rate fails no init', async () => {
  const storage = new MemoryStorage();
  const of = (options) => new Shards({ storage, prefix: 'jobs', ...options });
  assert.throws(() => of({ shards: 100, maxRequestsPerSecond: 5 }), { code: 'EDGELECT_CONFIG', field: 'maxRequestsPerSecond' });
  await passing(of({ shards: 16, maxRequestsPerSecond: 1, frequentInterval: 60_000, infrequentInterval: 60_000, leaderTimeout: 300_000 }).init());
});

test('a second member gets half of the shards, and what stops leaves its shards to the other', async () => {
  const storage = await groupOf(8);
  const one = memberOf(storage, 'one', { shards: 8 });
  await passing(one.shards.start());
  await runtime.pass(SETTLED_MS);
  assert.deepEqual(one.shards.led(), [0, 1, 2, 3, 4, 5, 6, 7]);
  const two = memberOf(storage, 'two', { shards: 8 });
  await passing(two.shards.start());
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([one, two].map(({ shards }) => shards.led().length), [4, 4]);
  assert.deepEqual(one.heard.sort(), two.shards.led().map((shard) => ['lost', shard, 'resigned']));
  await passing(one.shards.stop());
  await runtime.pass(10_000);
  assert.deepEqual([one.shards.led(), two.shards.led().length], [[], 8]);
  assert.deepEqual([two.shards.status().led.length, one.shards.status().groups], [8, []]);
});

test('a start within onError begins anew, though the store has just ended all shards', async () => {
  const storage = await groupOf(2);
  let refuses = true;
  const get = (key) => {
    if (refuses) throw Object.assign(new Error('no network'), { name: 'NotCapable' });
    return storage.get(key);
  };
  let again;
  const shards = new Shards({
    storage: { get, putIfMatch: (...how) => storage.putIfMatch(...how) }, prefix: 'jobs', serverId: 'one', shards: 2,
    onError: () => {
      refuses = false;
      again ??= shards.start();
    },
  });
  atEnd(() => passing(shards.stop()));
  await assert.rejects(passing(shards.start()), { code: 'EDGELECT_STORE' });
  await passing(again);
  await runtime.pass(SETTLED_MS);
  assert.deepEqual(shards.led(), [0, 1]);
});

test('a trap ends all shards, and the status says why', async () => {
  const { shards, heard } = memberOf(await groupOf(2), 'one', { shards: 2 });
  await passing(shards.start());
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([shards.led(), shards.status().error], [[0, 1], null]);
  breakMemory();
  await runtime.pass(SETTLED_MS);
  assert.deepEqual(heard.sort(), [['lost', 0, 'trap'], ['lost', 1, 'trap']]);
  assert.match(shards.status().error, /broke down/);
  await passing(shards.start());
  assert.equal(shards.status().error, null);
});

test('lead runs the work of each shard until its signal fires, and work that returns gives its shard up', async () => {
  const storage = await groupOf(3);
  const { shards } = memberOf(storage, 'a', { shards: 3, onLose: undefined });
  const ending = new AbortController();
  const runs = [];
  const work = async (shard, term) => {
    runs.push(shard);
    if (shard !== 1) await fired(term.signal);
  };
  const leading = shards.lead(work, { signal: ending.signal });
  await assert.rejects(shards.lead(work), { code: 'EDGELECT_BUSY' });
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([...new Set(runs)].sort(), [0, 1, 2]);
  assert.deepEqual(shards.led(), [0, 2]);
  ending.abort();
  await passing(leading);
  assert.deepEqual(shards.led(), []);
  await assert.rejects(shards.lead(work, { signal: AbortSignal.abort(new Error('no')) }), { message: 'no' });
});

test('a stop or a signal that comes while a start yields ends it', async () => {
  const { shards } = memberOf(await groupOf(2), 'a', { shards: 2 });
  const ran = [];
  const ledUntil = (ending) => shards.lead((shard) => void ran.push(shard), { signal: ending.signal });
  const ends = {
    'a stop': () => [shards.start(), shards.stop()],
    'a signal': () => {
      const ending = new AbortController();
      const leading = ledUntil(ending);
      ending.abort(new Error('enough'));
      return [leading];
    },
    // From here on the start has an earlier stop to wait for.
    'a later stop': async () => {
      await passing(shards.start());
      return [shards.stop(), shards.start(), shards.stop()];
    },
    'a signal after a stop': async () => {
      await passing(shards.start());
      const ending = new AbortController();
      const both = [shards.stop(), assert.rejects(ledUntil(ending), /enough/)];
      ending.abort(new Error('enough'));
      return both;
    },
  };
  for (const [how, end] of Object.entries(ends)) {
    await passing(Promise.all(await end()));
    assert.deepEqual(shards.status().groups, [], how);
    await runtime.pass(SETTLED_MS);
    assert.deepEqual([shards.status().groups, shards.led(), ran], [[], [], []], how);
  }
  await passing(Promise.all([shards.start(), shards.stop(), shards.start()]));
  assert.equal(shards.status().groups.length, 3, 'a start has the last word');
});

test('a signal that a running member is given by another start stops it', async () => {
  const { shards } = memberOf(await groupOf(2), 'a', { shards: 2 });
  const ending = new AbortController();
  const { signal } = ending;
  const listeners = [];
  signal.addEventListener = (...how) => (listeners.push(how[1]), AbortSignal.prototype.addEventListener.apply(signal, how));
  signal.removeEventListener = (...how) => (listeners.pop(), AbortSignal.prototype.removeEventListener.apply(signal, how));
  await passing(shards.start());
  await shards.start({ signal });
  await shards.start({ signal });
  assert.equal(listeners.length, 1);
  ending.abort();
  await runtime.pass(10_000);
  assert.deepEqual([shards.status().groups, listeners.length], [[], 0]);
});

test('a shard whose old work goes on is not claimed again before that has stopped, and the others are', async () => {
  const { shards } = memberOf(await groupOf(3), 'a', { shards: 3 });
  let [running, most] = [0, 0];
  const work = async (shard, { signal }) => {
    if (shard !== 0) return fired(signal);
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 300_000));
    running -= 1;
  };
  const first = shards.lead(work);
  await runtime.pass(SETTLED_MS);
  assert.equal(running, 1);
  await passing(shards.stop());
  await passing(first);
  const second = shards.lead(work);
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([running, shards.led()], [1, [1, 2]]);
  await runtime.pass(200_000);
  assert.deepEqual([running, most, shards.led()], [1, 1, [0, 1, 2]]);
  await passing(shards.stop());
  await passing(second);
});

test('a start that nobody waits for is left unhandled only where no onError has heard of it', async () => {
  const unhandled = [];
  const hear = ({ code }) => void unhandled.push(code);
  const before = process.rawListeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', hear);
  const forgotten = runtime.bucket();
  forgotten.answerWith(async () => new Response('<Error><Code>InvalidAccessKeyId</Code></Error>', { status: 403 }));
  const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' };
  const storage = new S3Storage({ endpoint: forgotten.endpoint, bucket: 'jobs', credentials });
  try {
    for (const onError of [() => {}, undefined]) {
      const { shards } = memberOf(storage, 'a', { storage, shards: 1, probe: false, onError });
      void shards.start();
      await runtime.pass(20_000);
      await passing(shards.stop());
      assert.deepEqual(unhandled.splice(0), onError ? [] : ['EDGELECT_STORE']);
    }
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const listener of before) process.on('unhandledRejection', listener);
  }
});

test('callbacks of a class instance are heard of all shards, and of the seat only its errors', async () => {
  const heard = [];
  class Told {
    storage = { get: () => Promise.reject(new Error('no disk')), putIfMatch: () => Promise.reject(new Error('no disk')) };
    prefix = 'jobs';
    shards = 1;
    #own = 'mine';

    onError(_error, group) {
      heard.push([this.#own, 'error', group]);
    }

    onStatus(_status, group) {
      heard.push([this.#own, 'status', group]);
    }
  }
  const shards = new Shards(new Told());
  void shards.start().catch(() => {});
  await runtime.pass(20_000);
  assert.deepEqual([...new Set(heard.map(String))].sort(), ['mine,error,jobs/0', 'mine,error,jobs/seat', 'mine,status,jobs/0']);
  await passing(shards.stop());
  class Leads extends Told {
    onAcquireLeadership() {}
  }
  assert.throws(() => new Shards(new Leads()), { code: 'EDGELECT_CONFIG', field: 'onAcquireLeadership' });
});

test('work of a shard whose term ended while onAcquire went on is not begun', async () => {
  const storage = await groupOf(1);
  const began = [];
  let calls = 0;
  const onAcquire = async () => {
    calls += 1;
    // Longer than the lease, which no renewal prolongs meanwhile.
    if (calls === 1) await new Promise((resolve) => setTimeout(resolve, 40_000));
  };
  const { shards, heard, way } = memberOf(storage, 'a', { shards: 1, onAcquire });
  const leading = shards.lead((_shard, { signal }) => {
    began.push(signal.aborted);
    return fired(signal);
  });
  await runtime.pass(1_000);
  assert.equal(calls, 1);
  way.cut = true;
  await runtime.pass(30_000);
  assert.deepEqual(heard, [['lost', 0, 'expired']]);
  way.cut = false;
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([calls, began], [2, [false]], 'only under the next term');
  await passing(shards.stop());
  await passing(leading);
});

test('a stop from within onAcquire, the work or onLose fires the signal at once and waits for nobody', async () => {
  const storage = await groupOf(2);
  for (const within of ['onAcquire', 'the work']) {
    let [leading, stops] = [0, 0];
    const stopping = async (term) => {
      const beganMs = performance.now();
      await shards.stop();
      assert.deepEqual([performance.now(), term?.signal.aborted ?? true], [beganMs, true], within);
      stops += 1;
    };
    const called = async (where, term) => {
      leading += where === within ? 1 : 0;
      if (where === within && leading === 2) await stopping(term);
    };
    const { shards } = memberOf(storage, 'a', { shards: 2, onAcquire: (_shard, term) => called('onAcquire', term), onLose: () => stopping() });
    await passing(shards.lead(async (_shard, term) => {
      await called('the work', term);
      await fired(term.signal);
    }));
    assert.equal(stops, 3, within);
    for (const key of ['jobs/0', 'jobs/1']) assert.ok(isReleased(storage.get(key).body), `${within}: ${key}`);
  }
});

test('a lead that a later stop has ended runs nothing in the session that a later start begins', async () => {
  const { shards } = memberOf(await groupOf(2), 'a', { shards: 2 });
  await passing(shards.start());
  const ran = [];
  const stopped = shards.stop();
  const led = shards.lead((shard) => void ran.push(shard));
  await passing(Promise.all([stopped, shards.stop(), shards.start(), led]));
  await runtime.pass(SETTLED_MS);
  assert.deepEqual([shards.led(), ran], [[0, 1], []]);
});

test('a second start waits for the first answers, too, and is rejected as the first is', async () => {
  const refuse = async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    throw Object.assign(new Error('no network'), { name: 'NotCapable' });
  };
  const { shards } = memberOf({ get: refuse, putIfMatch: refuse }, 'a', { storage: { get: refuse, putIfMatch: refuse }, shards: 1, onError: () => {} });
  const ends = [shards.start(), shards.start()].map((starting) => assert.rejects(starting, { code: 'EDGELECT_STORE' }));
  await passing(Promise.all(ends));
});

test('a trap that the look at the leases meets first ends all shards, and the status says so until a stop', async () => {
  const { shards } = memberOf(await groupOf(2), 'one', { shards: 2 });
  const led = shards.lead(() => new Promise(() => {}));
  await runtime.pass(150);
  breakMemory();
  const told = assert.rejects(led, { code: 'EDGELECT_TRAP' });
  await runtime.pass(SETTLED_MS);
  await told;
  assert.match(shards.status().error, /broke down/);
  await passing(shards.stop());
  assert.equal(shards.status().error, null);
});

test('a start within a callback that the first start calls waits for the same answers', async () => {
  const starts = [];
  const onStatus = () => void starts.push(shards.start());
  const { shards } = memberOf(await groupOf(1), 'a', { shards: 1, onStatus });
  await passing(shards.start());
  await passing(Promise.all(starts));
  assert.ok(starts.length > 0);
});

test('who starts shards again whenever it hears of an error keeps nobody busy', async () => {
  let asked = 0;
  const refuse = async () => {
    asked += 1;
    throw Object.assign(new Error('no network'), { name: 'NotCapable' });
  };
  const storage = { get: refuse, putIfMatch: refuse };
  const onError = () => {
    if (asked > 500) return;
    void shards.stop();
    void shards.start();
  };
  const { shards } = memberOf(storage, 'a', { storage, shards: 1, onError });
  void shards.start();
  await runtime.pass(1_000);
  assert.ok(asked < 20, `${asked} reads`);
  await passing(shards.stop());
});
