import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { Elector, S3Storage } from 'edgelect';
import { bucketOptions, credentials, deleteObject, freshKey, getLease, getObject, putObject, until } from './bucket.mjs';
import { startProxy } from './proxy.mjs';

const FAST = { leaderTimeout: 1500, frequentInterval: 400, storeSkew: 500, follow: 'tight' };
const closing = [];

after(async () => {
  for (const close of closing.reverse()) await close();
});

const member = (lockfilePath, options = {}, bucket = {}) => {
  const storage = new S3Storage({ ...bucketOptions, ...bucket });
  const elector = new Elector({ storage, ...FAST, lockfilePath, ...options });
  closing.push(() => elector.stop());
  return elector;
};

const newGroup = async (name) => {
  const key = freshKey(name);
  await member(key).init();
  return key;
};

const proxied = async () => {
  const proxy = await startProxy(bucketOptions.endpoint);
  closing.push(proxy.close);
  return proxy;
};

test('one leads over a real store, and a crash is survived with a higher token', async () => {
  const key = await newGroup('crash');
  let cut = false;
  const proxy = await proxied();
  proxy.answerWith(() => (cut ? 'hang' : undefined));
  const a = member(key, { serverId: 'a' }, { endpoint: proxy.endpoint });
  await a.start();
  const first = await a.waitForLeadership();
  const b = member(key, { serverId: 'b' });
  await b.start();
  await until(() => b.leaderId() === 'a');
  cut = true;
  const cutMs = performance.now();
  const second = await b.waitForLeadership();
  const tookMs = performance.now() - cutMs;
  assert.ok(second.token > first.token);
  assert.ok(first.signal.aborted, 'the one that was cut off has fenced itself');
  assert.ok(tookMs < 8 * FAST.leaderTimeout, `${tookMs} ms`);
  assert.equal((await getLease(key)).leaderID, 'b');
  cut = false;
  await until(() => a.leaderId() === 'b');
  assert.equal(a.isLeader(), false);
});

test('a leader makes one request per renewal and no read', async () => {
  const key = await newGroup('cost');
  const proxy = await proxied();
  const steady = { leaderTimeout: 60_000, frequentInterval: 400, requestTimeout: 10_000 };
  const a = member(key, { serverId: 'a', ...steady }, { endpoint: proxy.endpoint });
  await a.start();
  await a.waitForLeadership();
  const [reads, writes] = [proxy.count('GET'), proxy.count('PUT')];
  await until(() => proxy.count('PUT') >= writes + 5);
  assert.equal(proxy.count('GET'), reads);
  for (const { headers } of proxy.seen.filter(({ method }) => method === 'PUT')) {
    assert.ok(headers['if-match'] ?? headers['if-none-match'], 'every write is conditional');
    assert.equal('content-type' in headers, false);
  }
});

test('in peer mode no follower reads while the leader answers, and reads again when it is silent', async () => {
  const key = await newGroup('peers');
  const [leaderProxy, proxy] = [await proxied(), await proxied()];
  let leader;
  const server = http.createServer(async (request, response) => {
    const answer = await leader.handleRequest(new Request(`http://${request.headers.host}${request.url}`));
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => server.close());
  const serverAddr = `127.0.0.1:${server.address().port}`;
  // All of them are in this process, so that a pause of it makes nobody silent.
  const steady = { leaderTimeout: 15_000, frequentInterval: 400 };
  leader = member(key, { serverId: 'leader', serverAddr, ...steady }, { endpoint: leaderProxy.endpoint });
  await leader.start();
  await leader.waitForLeadership();
  const peers = { serverAddr: '127.0.0.1:1', peerMode: true, peerTimeout: 10_000, ...steady };
  const followers = ['b', 'c', 'd'].map((serverId) => member(key, { serverId, ...peers }, { endpoint: proxy.endpoint }));
  await Promise.all(followers.map((elector) => elector.start()));
  await until(() => followers.every((elector) => elector.status().requests.peer >= 1));
  const reads = proxy.count('GET');
  await until(() => followers.every((elector) => elector.status().requests.peer >= 6));
  assert.equal(proxy.count('GET'), reads, 'the store was not asked while the leader answered');
  assert.ok(followers.every((elector) => elector.leaderId() === 'leader'));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await until(() => proxy.count('GET') >= reads + 6);
  assert.ok(leader.isLeader(), 'a silent address deposes nobody');
  assert.ok(followers.every((elector) => elector.leaderId() === 'leader'));
});

test('c27 c28 a hostile body is waited out and healed, or left alone if a newer version wrote it', async () => {
  const healed = async (body) => {
    const key = freshKey('hostile');
    await putObject(key, body);
    const a = member(key, { serverId: 'a', leaderTimeout: 4_000, frequentInterval: 300 });
    await a.start();
    await until(() => a.status().error?.includes('lease object'));
    assert.equal(a.isLeader(), false);
    assert.equal((await getObject(key)).text.length, body.length, 'nothing is written before the grace');
    const term = await a.waitForLeadership({ signal: AbortSignal.timeout(30_000) });
    assert.equal((await getLease(key)).term, term.token);
    await a.stop();
  };
  const all = ['', 'x'.repeat(10 << 20), '\u0000\u0001', '{"leaderID":', '{"leaderID":"a","leaseMs":-1}'].map(healed);
  const key = freshKey('newer');
  await putObject(key, '{"leaderID":"a","format":2}');
  const a = member(key, { serverId: 'b' });
  await a.start();
  await until(() => a.status().error?.includes('format 2'));
  await new Promise((resolve) => setTimeout(resolve, 4000));
  assert.equal((await getObject(key)).text, '{"leaderID":"a","format":2}');
  await Promise.all(all);
});

test('c33 a deleted object deposes the leader, and the next term waits for the grace with a higher token', async () => {
  const key = await newGroup('deleted');
  const a = member(key, { serverId: 'a' });
  await a.start();
  const first = await a.waitForLeadership();
  let lostMs;
  first.signal.addEventListener('abort', () => (lostMs = performance.now()));
  await deleteObject(key);
  await until(() => lostMs !== undefined);
  const second = await a.waitForLeadership();
  assert.ok(performance.now() - lostMs >= 2000, 'the grace is storeSkew + 2 s here');
  assert.ok(second.token > first.token);
});

test('an async credentials provider is asked again when its credentials expire', async () => {
  const key = await newGroup('provider');
  let asked = 0;
  const provider = async () => {
    asked += 1;
    return { ...credentials, expiration: new Date(Date.now() + 60_500) };
  };
  const a = member(key, { serverId: 'a' }, { credentials: provider });
  await a.start();
  await a.waitForLeadership();
  // They count as expired a minute before their time, so half a second from now.
  await until(() => asked >= 3);
  assert.ok(a.isLeader());
});

test('c19 ExpiredToken asks the provider once more and tries again', async () => {
  const key = await newGroup('expired');
  const proxy = await proxied();
  let asked = 0;
  const provider = () => {
    asked += 1;
    return credentials;
  };
  let refusals = 1;
  proxy.answerWith(({ method }) => {
    if (method !== 'PUT' || refusals === 0) return undefined;
    refusals -= 1;
    return { status: 400, body: '<Error><Code>ExpiredToken</Code></Error>' };
  });
  const a = member(key, { serverId: 'a' }, { endpoint: proxy.endpoint, credentials: provider });
  await a.start();
  await a.waitForLeadership();
  assert.equal(asked, 2);
});

test('a store that cannot be used is one clear error that shows no secret', async () => {
  const port = 1;
  for (const [bucket, pattern] of [
    [{ credentials: { ...credentials, secretAccessKey: 'wrong-secret' } }, /SignatureDoesNotMatch|403/],
    [{ bucket: 'there-is-no-such-bucket' }, /NoSuchBucket|bucket/],
    [{ endpoint: `http://127.0.0.1:${port}` }, /endpoint/],
    [{ credentials: () => Promise.reject(new Error('no role')) }, /provider failed: no role/],
  ]) {
    const a = member(freshKey('unusable'), { serverId: 'a' }, bucket);
    await a.start();
    const error = await until(() => a.status().error);
    assert.match(error, pattern);
    assert.doesNotMatch(error, /wrong-secret|Signature=|AWS4-HMAC/);
    await a.stop();
  }
});

test('an error of the store has the failed operation as its cause, as a copy without the request', async () => {
  const closed = await startProxy(bucketOptions.endpoint);
  await closed.close();
  const unreachable = await member(freshKey('cause'), { serverId: 'a' }, { endpoint: closed.endpoint }).init().catch((thrown) => thrown);
  assert.equal(unreachable.code, 'EDGELECT_STORE');
  assert.deepEqual([unreachable.cause.message, Object.keys(unreachable.cause)], ['fetch failed (ECONNREFUSED)', []]);
  const provider = async () => {
    throw Object.assign(new Error('no role'), { secret: 'hidden' });
  };
  const denied = await member(freshKey('cause'), { serverId: 'a' }, { credentials: provider }).init().catch((thrown) => thrown);
  assert.deepEqual([denied.code, denied.cause.message, denied.cause.secret], ['EDGELECT_STORE', 'no role', undefined]);
  const wrong = { credentials: { ...credentials, secretAccessKey: 'wrong-secret' } };
  const refused = await member(freshKey('cause'), { serverId: 'a' }, wrong).init().catch((thrown) => thrown);
  assert.deepEqual([refused.code, refused.cause], ['EDGELECT_STORE', undefined]);
});

test('wrong bucket options are refused by name', () => {
  for (const [bucket, field] of [
    [{ endpoint: 'http://example.com' }, 'endpoint'],
    [{ endpoint: 'https://user:pass@example.com' }, 'endpoint'],
    [{ endpoint: 7 }, 'endpoint'],
    [{ bucket: 'No' }, 'bucket'],
    [{ bucket: undefined }, 'bucket'],
    [{ region: 'eu west' }, 'region'],
    [{ pathStyle: 'yes' }, 'pathStyle'],
    [{ forcePathStyle: true }, 'forcePathStyle'],
    [{ credentials: undefined }, 'credentials.accessKeyId'],
    [{ credentials: { accessKeyId: 'a' } }, 'credentials.secretAccessKey'],
  ]) {
    assert.throws(() => new S3Storage({ ...bucketOptions, ...bucket }), (error) => {
      assert.deepEqual([error.name, error.code, error.field], ['EdgelectError', 'EDGELECT_CONFIG', field]);
      return true;
    });
  }
});

test('storage left out: S3 from the variables, and a wrong one is named', async () => {
  const key = freshKey('variables');
  const variables = {
    EDGELECT_ENDPOINT: bucketOptions.endpoint,
    EDGELECT_BUCKET: bucketOptions.bucket,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    EDGELECT_LOCKFILE_PATH: key,
    EDGELECT_LEADER_TIMEOUT: '1500',
    EDGELECT_FREQUENT_INTERVAL: '400',
  };
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
  }
});

test('on SeaweedFS a lockfilePath that is a folder of other keys is absent and yet refused: nobody leads there', async () => {
  const key = freshKey('folder');
  const [folder] = key.split('/').slice(0, -1);
  await putObject(key, '{}');
  const elector = member(folder);
  await assert.rejects(elector.init(), { message: /: refused to create an absent object$/ });
  await elector.start();
  await until(() => elector.status().requests.write >= 2);
  assert.equal(elector.isLeader(), false);
});
