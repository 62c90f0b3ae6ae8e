// Bugs that happened, kept: what applications do to an elector, and what they bring with them.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Elector, MemoryStorage, S3Storage } from 'edgelect';
import { bucketOptions, credentials, freshKey, until } from './bucket.mjs';
import { startProxy } from './proxy.mjs';

const FAST = { leaderTimeout: 1000, frequentInterval: 250, follow: 'tight', lockfilePath: 'leader/test.json' };
const rejections = [];
process.on('unhandledRejection', (reason) => rejections.push(reason));
after(() => assert.deepEqual(rejections, [], 'no path leaves a rejection unhandled'));

const member = (storage, options = {}) => new Elector({ storage, serverId: 'a', ...FAST, ...options });
const newGroup = async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  return storage;
};
const released = (storage) =>
  new TextDecoder().decode(storage.get(FAST.lockfilePath).body).includes('0001-01-01T00:00:00Z');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

test('a second stop does not release the lease under the work that the first one waits for', async () => {
  const storage = await newGroup();
  let cleaned = false;
  const elector = member(storage, {
    onLoseLeadership: async () => {
      await pause(200);
      assert.equal(released(storage), false);
      cleaned = true;
    },
  });
  await elector.start();
  await elector.waitForLeadership();
  const stops = [elector.stop(), pause(20).then(() => elector.stop()), pause(40).then(() => elector.resign())];
  await Promise.all(stops);
  assert.ok(cleaned && released(storage));
});

test('a blocked event loop past the fence hands out no term without authority', async () => {
  const storage = await newGroup();
  const elector = member(storage);
  await elector.start();
  const term = await elector.waitForLeadership();
  block(1100);
  assert.equal(term.remaining(), 0);
  assert.ok(term.signal.aborted, 'the signal is looked at before any timer could run');
  const next = await elector.waitForLeadership();
  assert.ok(next.token > term.token && next.remaining() > 0);
  void elector.resign();
  const controller = new AbortController();
  const waiting = elector.waitForLeadership({ signal: controller.signal });
  controller.abort(new Error('still waiting'));
  await assert.rejects(waiting, /still waiting/);
  await elector.stop();
});

test('c51 whatever a callback throws, the elector resigns and nothing is left unhandled', async () => {
  const hostile = [() => { throw Symbol('x'); }, () => { throw Object.create(null); }, () => Promise.reject(null)];
  for (const onAcquireLeadership of hostile) {
    const storage = await newGroup();
    const lost = [];
    const elector = member(storage, {
      onAcquireLeadership,
      onLoseLeadership: (how) => {
        lost.push(how.reason);
        throw Symbol('again');
      },
      onNewLeader: () => Promise.reject(new Error('no')),
    });
    await elector.start();
    await until(() => lost.length === 1);
    assert.equal(lost[0], 'resigned');
    assert.equal(elector.isLeader(), false);
    await elector.stop();
  }
});

test('an elector that is started while it stops runs', async () => {
  const storage = await newGroup();
  const elector = member(storage);
  await elector.start();
  await elector.waitForLeadership();
  const stopping = elector.stop();
  await elector.start();
  await stopping;
  assert.ok((await elector.waitForLeadership()).remaining() > 0);
  await elector.stop();
});

test('the last word counts: stop, start, stop; and a lead that began during a stop ends it again', async () => {
  const storage = await newGroup();
  const elector = member(storage);
  await elector.start();
  await elector.waitForLeadership();
  await Promise.all([elector.stop(), elector.start(), elector.stop()]);
  assert.equal(elector.status().role, 'stopped');
  await elector.start();
  await elector.waitForLeadership();
  const stopping = elector.stop();
  await elector.lead((term) => term.token);
  await stopping;
  assert.equal(elector.status().role, 'stopped');
});

test('stop at the start of the work does not wait for the work', async () => {
  const storage = await newGroup();
  const elector = member(storage, { leaderTimeout: 10_000 });
  const startMs = performance.now();
  await elector.lead(() => elector.stop());
  assert.ok(performance.now() - startMs < 5_000);
  assert.ok(released(storage));
});

test('two leads share a term, and the first to end leaves it to the other', async () => {
  const storage = await newGroup();
  const elector = member(storage, { leaderTimeout: 10_000 });
  const tokens = await Promise.all([
    elector.lead(async (term) => {
      await pause(600);
      assert.equal(term.signal.aborted, false);
      return term.token;
    }),
    elector.lead(async (term) => {
      await pause(50);
      return term.token;
    }),
  ]);
  assert.equal(tokens[0], tokens[1]);
  assert.equal(elector.status().role, 'stopped');
});

test('a secret in the wrong place is not shown', async () => {
  const storage = new MemoryStorage();
  const secret = { accessKeyId: 'AKID-SHOWN', secretAccessKey: 'SECRET-SHOWN' };
  for (const make of [
    () => member(storage, { credentials: secret }),
    () => member(storage, { secretAccessKey: secret.secretAccessKey }),
    () => member(storage, { lockfilePath: secret }),
    () => new S3Storage({ ...bucketOptions, region: secret }),
    () => new S3Storage({ ...bucketOptions, credentials: { accessKeyId: secret } }),
    () => new S3Storage({ ...bucketOptions, password: secret.secretAccessKey }),
  ]) {
    assert.throws(make, (error) => error.code === 'EDGELECT_CONFIG' && !/SHOWN/.test(`${error.message} ${error.stack}`));
  }
});

test('a value that JSON would change is refused, not turned into a text', () => {
  const storage = new MemoryStorage();
  for (const [name, value] of [['serverId', NaN], ['lockfilePath', () => 1], ['serverId', 7n], ['serverAddr', Symbol('a')]]) {
    assert.throws(() => member(storage, { [name]: value }), { code: 'EDGELECT_CONFIG', field: name });
  }
  const circular = {};
  circular.self = circular;
  assert.throws(() => member(storage, { retryDelays: circular }), { code: 'EDGELECT_CONFIG' });
  assert.throws(() => new Elector(5), { code: 'EDGELECT_CONFIG' });
  assert.throws(() => new S3Storage(null), { code: 'EDGELECT_CONFIG' });
});

test('callbacks of a class instance are heard, and undefined changes nothing', async () => {
  const heard = [];
  class Options {
    storage = new MemoryStorage();
    lockfilePath = 'a';
    onNewLeader(leaderId) {
      heard.push([this.lockfilePath, leaderId]);
    }
  }
  const elector = new Elector(Object.assign(new Options(), { serverId: 'x', leaderTimeout: 1000, frequentInterval: 250 }));
  await elector.init();
  await elector.lead(() => 1);
  assert.deepEqual(heard[0], ['a', 'x']);
  elector.updateConfig({ leaderTimeout: undefined });
  assert.equal(elector.config.leaderTimeout, 1000);
});

test('a storage of one\'s own may answer as it likes: bounded, and never a leader by accident', async () => {
  const huge = 'x'.repeat(50 << 20);
  for (const get of [
    () => ({ body: huge, etag: '"1"' }),
    () => ({ body: '{}', etag: huge }),
    () => ({ body: 7, etag: '"1"' }),
    () => ({ body: '{}' }),
    () => 'text',
    () => { throw new Error('sync'); },
    () => new Promise(() => {}),
  ]) {
    const elector = member({ get, putIfMatch: () => null });
    await elector.start();
    await until(() => elector.status().error);
    assert.equal(elector.isLeader(), false);
    await elector.stop();
  }
});

test('a version that no header can carry is left out of the health answer', async () => {
  const memory = new MemoryStorage();
  let writes = 0;
  const storage = {
    get: (key) => {
      const found = memory.get(key);
      return found && { ...found, etag: `ä\r\n${found.etag}` };
    },
    putIfMatch: (key, body, etag) => {
      writes += 1;
      const written = memory.putIfMatch(key, body, etag === null ? null : etag.slice(3));
      return written && { etag: `ä\r\n${written.etag}` };
    },
  };
  const elector = member(storage);
  await elector.init();
  await elector.start();
  await elector.waitForLeadership();
  const answer = await elector.handleRequest(new Request('http://x/health/leadership'));
  assert.deepEqual([answer.status, answer.headers.get('etag')], [200, null]);
  await elector.stop();
  assert.ok(writes >= 3);
});

test('a credentials provider slower than a request is asked once and waited for', async () => {
  const lockfilePath = freshKey('slow');
  const timing = { lockfilePath, leaderTimeout: 1500, frequentInterval: 400, serverId: 'a' };
  await new Elector({ storage: new S3Storage(bucketOptions), ...timing }).init();
  let asked = 0;
  const slow = async () => {
    asked += 1;
    await pause(1000);
    return credentials;
  };
  const elector = new Elector({ storage: new S3Storage({ ...bucketOptions, credentials: slow }), ...timing });
  await elector.start();
  await elector.waitForLeadership({ signal: AbortSignal.timeout(8000) });
  assert.equal(asked, 1);
  await elector.stop();
});

test('a fetch that quotes the signed request in its error shows no signature', async () => {
  const real = globalThis.fetch;
  const fetches = [
    () => { throw new Error('failed: authorization: AWS4-HMAC-SHA256 Signature=deadbeef'); },
    () => Promise.reject(new Error('x-amz-security-token: hidden')),
    () => ({ then: 'not a function' }),
  ];
  try {
    for (const fetch of fetches) {
      globalThis.fetch = fetch;
      const elector = new Elector({ storage: new S3Storage(bucketOptions), ...FAST });
      await elector.start();
      const error = await until(() => elector.status().error);
      assert.doesNotMatch(error, /deadbeef|hidden|HMAC/);
      await elector.stop();
    }
  } finally {
    globalThis.fetch = real;
  }
});

test('a certificate that nobody vouches for is told by the code that Node has for it', async () => {
  const real = globalThis.fetch;
  const code = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
  globalThis.fetch = () => Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code } }));
  try {
    const elector = new Elector({ storage: new S3Storage(bucketOptions), ...FAST });
    await elector.start();
    assert.match(await until(() => elector.status().error), new RegExp(code));
    await elector.stop();
  } finally {
    globalThis.fetch = real;
  }
});

test('c64 a long outage keeps neither requests nor memory', async () => {
  const lockfilePath = freshKey('outage');
  const proxy = await startProxy(bucketOptions.endpoint);
  proxy.answerWith(() => ({ status: 503, body: '<Error><Code>SlowDown</Code></Error>' }));
  const storage = new S3Storage({ ...bucketOptions, endpoint: proxy.endpoint });
  const elector = new Elector({ storage, ...FAST, lockfilePath });
  await elector.start();
  await until(() => proxy.seen.length >= 5);
  assert.match(elector.status().error, /SlowDown|503/);
  proxy.answerWith(() => undefined);
  await elector.waitForLeadership({ signal: AbortSignal.timeout(20_000) });
  await elector.stop();
  await proxy.close();
});
