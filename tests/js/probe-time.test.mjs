// How long a probe may delay a start, in virtual time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, MemoryStorage } = await import('edgelect');

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
