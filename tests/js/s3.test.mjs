// An elector over a real store. What every runtime does the same is in tests/runtimes/.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, S3Storage } from 'edgelect';
import { bucketOptions, credentials, freshKey, getLease, getObject, newGroup, putObject, until } from './bucket.mjs';
import { started } from './group.mjs';
import { atEnd, kept, startProxy } from './servers.mjs';

const FAST = { leaderTimeout: 1500, frequentInterval: 400, storeSkew: 500, follow: 'tight' };

const member = (lockfilePath, options = {}, bucket = {}) => {
  const elector = new Elector({ storage: new S3Storage({ ...bucketOptions, ...bucket }), ...FAST, lockfilePath, ...options });
  atEnd(() => elector.stop());
  return elector;
};
const proxied = () => kept(startProxy(bucketOptions.endpoint));

test('one leads over a real store, and a crash is survived with a higher token', async () => {
  const key = await newGroup('crash');
  const proxy = await proxied();
  const a = member(key, { serverId: 'a' }, { endpoint: proxy.endpoint });
  const first = await started(a);
  const b = member(key, { serverId: 'b' });
  await b.start();
  await until(() => b.leaderId() === 'a');
  proxy.answerWith(() => 'hang');
  const cutMs = performance.now();
  const second = await b.waitForLeadership();
  const tookMs = performance.now() - cutMs;
  assert.ok(second.token > first.token);
  assert.ok(first.signal.aborted, 'the one that was cut off has fenced itself');
  assert.ok(tookMs < 8 * FAST.leaderTimeout, `${tookMs} ms`);
  assert.equal((await getLease(key)).leaderID, 'b');
  proxy.answerWith(() => undefined);
  await until(() => a.leaderId() === 'b');
  assert.equal(a.isLeader(), false);
});

test('a leader makes one request per renewal and no read', async () => {
  const key = await newGroup('cost');
  const proxy = await proxied();
  const steady = { leaderTimeout: 60_000, frequentInterval: 400, requestTimeout: 10_000 };
  const a = member(key, { serverId: 'a', ...steady }, { endpoint: proxy.endpoint });
  await started(a);
  const [reads, writes] = [proxy.count('GET'), proxy.count('PUT')];
  await until(() => proxy.count('PUT') >= writes + 5);
  assert.equal(proxy.count('GET'), reads);
  // What is compressed on the way has another ETag.
  assert.ok(proxy.seen.every(({ headers }) => headers['accept-encoding'] === 'identity'));
  for (const { headers } of proxy.seen.filter(({ method }) => method === 'PUT')) {
    assert.ok(headers['if-match'] ?? headers['if-none-match'], 'every write is conditional');
    assert.equal('content-type' in headers, false);
  }
});

test('an error of the store has the failed operation as its cause, as a copy without the request', async () => {
  const closed = await startProxy(bucketOptions.endpoint);
  await closed.close();
  const noRole = () => Promise.reject(Object.assign(new Error('no role'), { secret: 'hidden' }));
  for (const [bucket, cause] of [
    [{ endpoint: closed.endpoint }, 'fetch failed (ECONNREFUSED)'],
    [{ credentials: noRole }, 'no role'],
    [{ credentials: { ...credentials, secretAccessKey: 'wrong-secret' } }, undefined],
  ]) {
    const error = await member(freshKey('cause'), {}, bucket).init().catch((thrown) => thrown);
    assert.deepEqual([error.code, error.cause?.message, Object.keys(error.cause ?? {})], ['EDGELECT_STORE', cause, []]);
  }
});

test('storage left out: S3 from the variables, and a wrong one is named', async () => {
  const key = freshKey('variables');
  const variables = {
    EDGELECT_ENDPOINT: bucketOptions.endpoint, EDGELECT_BUCKET: bucketOptions.bucket, EDGELECT_LOCKFILE_PATH: key,
    EDGELECT_LEADER_TIMEOUT: '1500', EDGELECT_FREQUENT_INTERVAL: '400',
    AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  // What the tests themselves are told would be refused as a misspelt variable.
  const others = Object.entries(process.env).filter(([name]) => name.startsWith('EDGELECT_'));
  for (const [name] of others) delete process.env[name];
  Object.assign(process.env, variables);
  try {
    const elector = new Elector({ serverId: 'a' });
    assert.deepEqual([elector.config.lockfilePath, elector.config.leaderTimeout], [key, 1500]);
    await elector.init();
    const token = await elector.lead((term) => term.token);
    assert.equal((await getLease(key)).term, token);
    process.env.EDGELECT_LEADER_TIMEOUT = 'soon';
    assert.throws(() => new Elector(), { code: 'EDGELECT_CONFIG', field: 'EDGELECT_LEADER_TIMEOUT' });
    delete process.env.EDGELECT_BUCKET;
    process.env.EDGELECT_LEADER_TIMEOUT = '1500';
    assert.throws(() => new Elector(), { code: 'EDGELECT_CONFIG', field: 'EDGELECT_BUCKET' });
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
    Object.assign(process.env, Object.fromEntries(others));
  }
});

test('on SeaweedFS a key that is a folder of others is absent and yet refused: the doctor cannot see it, and nobody leads there', async () => {
  const key = freshKey('folder');
  const [folder] = key.split('/').slice(0, -1);
  await putObject(key, '{}');
  assert.equal(await getObject(folder), null);
  const elector = member(folder);
  assert.equal((await elector.doctor({ races: 1 })).finding, 'holds');
  await assert.rejects(elector.init(), { code: 'EDGELECT_STORE', message: /: refused to create an absent object$/ });
  await elector.start();
  await until(() => elector.status().requests.write >= 2);
  assert.equal(elector.isLeader(), false);
});
