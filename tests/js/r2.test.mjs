import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, R2Storage } from 'edgelect';

test('what is no bucket is refused, and the error says what to do', () => {
  const nothing = () => {};
  const service = new Proxy({}, { get: () => nothing });
  for (const binding of [undefined, null, 'edgelect', {}, nothing, { get: nothing, put: nothing }, service]) {
    assert.throws(() => new R2Storage(binding), { name: 'EdgelectError', code: 'EDGELECT_CONFIG', field: 'binding', message: /^binding = \(\w+\): an R2Storage takes an R2 bucket binding, such as env\.EDGELECT_R2: \[\[r2_buckets\]\] in wrangler\.toml binds one$/ });
  }
});

test('an etag that no answer gave is refused before anything is asked: R2 takes a star for any object', async () => {
  const asked = [];
  const note = (name) => async () => void asked.push(name);
  const storage = new R2Storage({ head: note('head'), get: note('get'), put: note('put') });
  for (const etag of ['*', '"*"', '', '""', 'abc', 'W/"abc"', '"a","b"', undefined, 5]) {
    await assert.rejects(storage.putIfMatch('key', new Uint8Array(1), etag), { code: 'EDGELECT_CONFIG', field: 'etag' }, String(etag));
  }
  const aborted = { signal: AbortSignal.abort(new Error('too late')) };
  await assert.rejects(storage.get('key', aborted), /too late/);
  await assert.rejects(storage.putIfMatch('key', new Uint8Array(1), null, aborted), /too late/);
  assert.deepEqual(asked, []);
});

test('an elector takes an R2Storage', () => {
  const bucket = { head() {}, get() {}, put() {} };
  assert.equal(new Elector({ storage: new R2Storage(bucket), lockfilePath: 'a' }).config.lockfilePath, 'a');
});
