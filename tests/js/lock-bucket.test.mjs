// The lock interface as a view of an `S3Storage`, over a real store and over ones that fail.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Elector, R2Storage, S3Storage } from 'edgelect';
import { DynamoDBStorage, EpochStorage, R2Storage as AwsR2Storage, Route53Storage, S3Storage as AwsS3Storage } from 'edgelect/aws';
import { objectStoreLock } from 'edgelect/object-store-lock';
import { bucketOptions, credentials, freshKey, getObject, putObject, until } from './bucket.mjs';
import { startLiar } from './liar.mjs';
import { startProxy } from './proxy.mjs';

const closing = [];
after(() => Promise.all(closing.map((close) => close())));

const kept = async (starting) => {
  const server = await starting;
  closing.push(() => server.close());
  return server;
};

const record = (holderIdentity, more) => ({
  holderIdentity, leaseDuration: '45s', acquireTime: '2024-02-02T10:15:30.000Z', renewTime: '2024-02-02T10:15:30.000Z',
  leaderTransitions: 0, ...more,
});
const over = (storage, key, identity = 'a') => objectStoreLock({ storage, key, identity });

for (const [name, storage] of [
  ['of the package', new S3Storage(bucketOptions)],
  ['of edgelect/aws', new AwsS3Storage({ ...bucketOptions, format: 'kubernetes' })],
]) {
  test(`the lock over an S3Storage ${name} creates once, updates what it has seen, and changes no byte`, async () => {
    const key = freshKey('lock');
    const [a, b] = ['a', 'b'].map((identity) => over(storage, key, identity));
    assert.equal(await a.get(), null);
    const { etag } = await a.create(record('a', { theirs: [1, 'ü'] }));
    assert.deepEqual(await getObject(key), { etag, text: JSON.stringify(record('a', { theirs: [1, 'ü'] })) });
    await assert.rejects(b.create(record('b')), { code: 'EDGELECT_CONFLICT' });
    assert.deepEqual(await b.get(), { record: record('a', { theirs: [1, 'ü'] }), etag });
    const next = await a.update(etag, record('a', { renewTime: '2024-02-02T10:15:45.000Z' }));
    assert.equal((await getObject(key)).etag, next.etag);
    await assert.rejects(b.update(etag, record('b')), { code: 'EDGELECT_CONFLICT' });
    assert.equal((await b.get()).record.renewTime, '2024-02-02T10:15:45.000Z');
    await assert.rejects(over(storage, freshKey('lock')).update(next.etag, record('a')), { code: 'EDGELECT_CONFLICT' });
  });
}

test('an elector and the lock see one record', async () => {
  const storage = new AwsS3Storage({ ...bucketOptions, format: 'kubernetes' });
  const key = freshKey('lock');
  const elector = new Elector({ storage, lockfilePath: key, serverId: 'ours', leaderTimeout: 3_000, probe: false });
  await elector.init();
  const lock = over(storage, key, 'theirs');
  const tombstone = await lock.get();
  assert.deepEqual([tombstone.record.holderIdentity, tombstone.record.renewTime], ['', '0001-01-01T00:00:00.000Z']);
  await elector.lead(async () => {
    const { record: held } = await lock.get();
    assert.equal(held.holderIdentity, 'ours');
    await assert.rejects(lock.update(tombstone.etag, record('theirs')), { code: 'EDGELECT_CONFLICT' });
  });
});

test('an object that is no record, or too long for one, is named and left alone', async () => {
  const storage = new S3Storage(bucketOptions);
  for (const body of ['[]', '{', 'x', `{"a":"${'x'.repeat(70_000)}"}`]) {
    const key = freshKey('lock');
    await putObject(key, body);
    await assert.rejects(over(storage, key).get(), { code: 'EDGELECT_STORE' }, body.slice(0, 10));
    assert.equal((await getObject(key)).text, body);
  }
});

test('what is not known is thrown as such, and no secret is in it', async () => {
  const options = { bucket: 'jobs', region: 'us-east-1', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } };
  for (const [manner, reading, writing] of [
    ['forbids', undefined, 'EDGELECT_STORE'], ['lists', 'EDGELECT_STORE', undefined], ['unwell', 'EDGELECT_STORE', 'EDGELECT_UNKNOWN'],
    // Whoever says 200 beside a page, or names no version, may have stored nothing.
    ['portal', 'EDGELECT_STORE', 'EDGELECT_UNKNOWN'], ['nameless', undefined, 'EDGELECT_UNKNOWN'],
    // Another write is under way, which may be this one.
    ['between', undefined, 'EDGELECT_UNKNOWN'],
  ]) {
    const store = await kept(startLiar(manner));
    const lock = over(new S3Storage({ ...options, endpoint: store.endpoint }), 'ha/leader');
    for (const [code, asking] of [[reading, () => lock.get()], [writing, () => lock.create(record('a'))]]) {
      const error = await asking().then(() => undefined, (thrown) => thrown);
      assert.equal(error?.code, code, `${manner}: ${error}`);
      assert.doesNotMatch(String(error?.message), /the-secret|Signature=/);
    }
  }
  const provider = () => Promise.reject(new Error('no credentials today'));
  const lock = over(new S3Storage({ ...options, endpoint: 'http://127.0.0.1:1', credentials: provider }), 'ha/leader');
  await assert.rejects(lock.get(), { code: 'EDGELECT_STORE', message: /no credentials today/ });
});

test('a signal ends the waiting, and the request', async () => {
  const store = await kept(startLiar('silent'));
  const storage = new S3Storage({ ...bucketOptions, endpoint: store.endpoint });
  const lock = over(storage, 'ha/leader');
  const controller = new AbortController();
  const asking = assert.rejects(lock.get({ signal: controller.signal }), { name: 'TimeoutError' });
  await until(() => store.seen.length === 1);
  controller.abort(new DOMException('late', 'TimeoutError'));
  await asking;
  await assert.rejects(lock.create(record('a'), { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(store.seen.length, 1, 'nothing is asked for who has given up before');
});

test('a write is sent once, on its condition', async () => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const lock = over(new S3Storage({ ...bucketOptions, endpoint: proxy.endpoint }), freshKey('lock'));
  const { etag } = await lock.create(record('a'));
  await lock.update(etag, record('a', { leaderTransitions: 1 }));
  const puts = proxy.seen.filter(({ method }) => method === 'PUT').map(({ headers }) => [headers['if-none-match'], headers['if-match']]);
  assert.deepEqual(puts, [['*', undefined], [undefined, etag]]);
  assert.equal(proxy.seen.length, 2);
});

test('a storage whose records are no objects, a key that no store takes, and a foreign etag are refused', async () => {
  const storages = [
    new EpochStorage(bucketOptions), new DynamoDBStorage({ table: 'jobs', credentials }),
    new Route53Storage({ hostedZoneId: 'Z1', recordPrefix: 'lock', domainName: 'example.com', credentials }),
  ];
  for (const storage of storages) {
    assert.throws(() => over(storage, 'ha/leader'), { code: 'EDGELECT_CONFIG', field: 'storage', message: /an S3Storage, an R2Storage.*status\(\) of an Elector/ });
  }
  const storage = new S3Storage(bucketOptions);
  for (const key of ['/leader', 'a//b', 'a/../b']) assert.throws(() => over(storage, key), { code: 'EDGELECT_CONFIG', field: 'key' });
  await assert.rejects(over(storage, freshKey('lock')).update('*', record('a')), { code: 'EDGELECT_STORE', message: /nothing was sent/ });
});

test('an S3Storage of edgelect/aws is a class of its own, its R2Storage is none', () => {
  assert.ok(!(new AwsS3Storage(bucketOptions) instanceof S3Storage));
  const binding = Object.fromEntries(['head', 'get', 'put'].map((name) => [name, () => null]));
  assert.ok(new AwsR2Storage(binding) instanceof R2Storage);
});
