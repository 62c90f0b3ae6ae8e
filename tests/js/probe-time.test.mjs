// How long a probe may delay a start, in virtual time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, MemoryStorage, S3Storage } = await import('edgelect');

const KEY = 'a';

for (const part of [0.3, 0.6, 0.9, 0.99, 2]) {
  test(`c26 a store whose answers take ${part} of a request's time delays a start by five requests at most`, async () => {
    const storage = new MemoryStorage();
    const startMs = performance.now();
    let firstMs;
    const slowly = (work) => async (key, ...rest) => {
      if (key === KEY) firstMs ??= performance.now() - startMs;
      else await new Promise((resolve) => setTimeout(resolve, part * requestTimeout));
      return work(key, ...rest);
    };
    const slow = { get: slowly((...all) => storage.get(...all)), putIfMatch: slowly((...all) => storage.putIfMatch(...all)) };
    const elector = new Elector({ storage: slow, lockfilePath: KEY, probe: true });
    const { requestTimeout } = elector.config;
    await elector.start();
    await runtime.pass(10 * requestTimeout);
    assert.ok(firstMs <= 5 * requestTimeout, `${firstMs / requestTimeout} requests`);
    const stop = elector.stop();
    await runtime.pass(60_000);
    await stop;
  });
}

test('the pause of a probe lets the process end where unref is set, and only there', async () => {
  const { setTimeout: virtual } = globalThis;
  const pauses = [];
  globalThis.setTimeout = (callback, ms, ...rest) => {
    const timer = virtual(callback, ms, ...rest);
    const one = { ms, unreffed: false };
    pauses.push(one);
    return Object.assign(timer, { unref: () => { one.unreffed = true; } });
  };
  const bucket = runtime.bucket();
  bucket.answerWith(() => new Response('<Error><Code>SlowDown</Code></Error>', { status: 503 }));
  const credentials = { accessKeyId: 'the-id', secretAccessKey: 'the-secret' };
  for (const unref of [true, false]) {
    pauses.length = 0;
    const storage = new S3Storage({ endpoint: bucket.endpoint, bucket: 'jobs', credentials });
    const judged = new Elector({ storage, lockfilePath: KEY, unref }).doctor();
    await runtime.pass(10_000);
    assert.equal((await judged).finding, 'unclear');
    assert.deepEqual(pauses.filter(({ ms }) => ms === 1_100).map(({ unreffed }) => unreffed), [unref]);
  }
  globalThis.setTimeout = virtual;
});
