// examples/read-replica: reads go on while a dead leader's lease runs out, writes pause and come back, and never do two accept.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Elector, MemoryStorage, celeriant } from 'edgelect';
import { inRoot } from '../../js/tools/paths.mjs';
import { freePorts } from '../../js/tools/seaweed.mjs';
import { Replica } from '../../examples/read-replica/replica.mjs';
import { bucketOptions, until, variables } from './bucket.mjs';
import { run, start as startProgram } from './example.mjs';
import { atEnd, kept, startProxy } from './servers.mjs';

const MAIN = inRoot('examples/read-replica/main.mjs');
// Longer than both processors may be busy with others.
const LEASE_MS = 6_000;

const start = async (cluster, who, { port, peerPort, more }) => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const args = [MAIN, '--port', port, '--peer', `http://127.0.0.1:${peerPort}`, '--cluster', cluster, '--lease', LEASE_MS, ...more];
  const env = { ...variables, EDGELECT_SERVER_ID: who, EDGELECT_STORE_SKEW: '500', EDGELECT_ENDPOINT: proxy.endpoint };
  const program = startProgram(args, { env });
  const { child, all } = program;
  await until(() => all('serves')[0] || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(`node ${who} ended with ${child.exitCode} before it served port ${port}`);
  return { ...program, who, proxy, url: `http://127.0.0.1:${port}` };
};

const startCluster = async (more) => {
  const cluster = `read-replica/${crypto.randomUUID()}`;
  const init = run([MAIN, '--init', '--cluster', cluster, '--lease', LEASE_MS], { env: { ...variables, EDGELECT_SERVER_ID: 'init' } });
  assert.equal(init.status, 0, init.stderr);
  const [one, other] = await freePorts(2);
  const leader = await start(cluster, 'a', { port: one, peerPort: other, more });
  await until(() => leader.all('leads')[0]);
  const follower = await start(cluster, 'b', { port: other, peerPort: one, more });
  await until(async () => (await ask(follower, '/status')).leaderId === 'a');
  return { leader, follower };
};

// Another process may take one of the ports between our look and the start of its node.
const newCluster = (more = [], attempts = 3) => startCluster(more).catch((error) => {
  if (attempts === 1) throw error;
  return newCluster(more, attempts - 1);
});

const ask = async ({ url }, path, init) => {
  const startMs = performance.now();
  const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(2 * LEASE_MS) }).catch(() => undefined);
  if (!response) return { status: 0 };
  return { status: response.status, token: Number(response.headers.get('x-token')), startMs, ...(await response.json()), endMs: performance.now() };
};

const put = (node, key, value) => ask(node, `/items/${key}`, { method: 'PUT', body: value });
const get = (node, key) => ask(node, `/items/${key}`);

/** Writes to every node over and over until `end`; `accepted` has what they took, and no two of them at one time. */
const writing = async (...nodes) => {
  const accepted = [];
  let goesOn = true;
  // A failed test must not write for ever.
  atEnd(() => (goesOn = false));
  const loops = nodes.map(async (node) => {
    for (let count = 0; goesOn; count += 1) {
      const { status, ...rest } = await put(node, 'counted', `${node.who} ${count}`);
      if (status === 200) accepted.push({ who: node.who, ...rest });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const end = async () => {
    goesOn = false;
    await Promise.all(loops);
    neverTwo(accepted);
  };
  await until(() => accepted.length > 5);
  return { accepted, end };
};

const neverTwo = (accepted) => {
  for (const [index, one] of accepted.entries()) {
    for (const other of accepted.slice(index + 1)) {
      if (one.token === other.token) assert.equal(one.who, other.who, 'a token is one node\'s');
      const [early, late] = one.token < other.token ? [one, other] : [other, one];
      assert.ok(early.token === late.token || early.startMs < late.endMs, `${JSON.stringify(early)} after ${JSON.stringify(late)}`);
    }
  }
};

// Most of what they do is waiting for leases.
describe('two nodes', { concurrency: 4 }, () => {
  test('a leader answers no write that its own data refuse', async () => {
    const { leader, follower } = await newCluster();
    const [{ token }] = leader.all('leads');
    const later = { key: 'kept', value: 'later', token: token + 1, sequence: 1 };
    const sent = (type, entry) => ask(leader, '/replicate', { method: 'POST', body: JSON.stringify(entry), headers: { 'content-type': type } });
    const replicated = (entry) => sent('application/json', entry);
    assert.equal((await sent('text/plain', later)).status, 415, 'as a page of somebody else may send it');
    assert.equal((await replicated(later)).status, 200);
    // It would refuse the write itself.
    follower.child.kill('SIGKILL');
    await until(async () => (await get(follower, 'kept')).status === 0);
    assert.equal((await replicated({ ...later, sequence: 3 })).status, 503, 'what is missing before it is to be had nowhere');
    assert.equal((await put(leader, 'kept', 'earlier')).status, 503);
    assert.equal((await get(leader, 'kept')).value, 'later');
  });

  test('the leader is killed: reads go on, writes pause for the lease and come back with a higher token', async () => {
    const { leader, follower } = await newCluster();
    assert.equal((await put(leader, 'kept', 'before')).status, 200);
    // As JSON it is twice as long.
    const quotes = '"'.repeat(60_000);
    assert.equal((await put(leader, 'quotes', quotes)).status, 200);
    assert.equal((await get(follower, 'quotes')).value, quotes);
    const refused = await put(follower, 'kept', 'never');
    assert.deepEqual([refused.status, refused.leaderId], [503, 'a']);
    const { accepted, end } = await writing(leader, follower);
    leader.child.kill('SIGKILL');
    const before = accepted.length;
    let paused = 0;
    await until(async () => {
      const { status, value } = await get(follower, 'kept');
      assert.deepEqual([status, value], [200, 'before'], 'reads go on');
      const write = await put(follower, 'paused', 'x');
      paused += write.status === 503;
      return write.status === 200;
    });
    assert.ok(paused > 0, 'writes have paused');
    await until(() => accepted.at(-1).who === 'b');
    await end();
    assert.ok(accepted.length > before);
    const [first, last] = [accepted[0], accepted.at(-1)];
    assert.ok(first.who === 'a' && last.who === 'b' && last.token > first.token, JSON.stringify([first, last]));
  });

  test('with heartbeats the leader pauses writes while it suspects its follower, and still leads', async () => {
    const { leader, follower } = await newCluster(['--heartbeat']);
    const writes = async (status, key) => until(async () => (await put(leader, key, 'x')).status === status);
    await writes(200, 'before');
    // Whoever was never heard of is not suspected, and no status says who was.
    await until(async () => {
      follower.child.kill('SIGSTOP');
      await sleep(2_500);
      if (leader.all('suspects')[0]) return true;
      follower.child.kill('SIGCONT');
      await sleep(1_000);
      return false;
    });
    const paused = await put(leader, 'paused', 'x');
    assert.deepEqual([paused.status, paused.leaderId], [503, 'a']);
    assert.match(paused.error, /silent/);
    assert.equal((await get(leader, 'before')).value, 'x', 'reads go on');
    follower.child.kill('SIGCONT');
    await until(() => leader.all('recovers')[0]);
    await writes(200, 'after');
    assert.equal((await get(leader, 'paused')).status, 404, 'a write that was refused is not there');
    assert.deepEqual(leader.all('suspects')[0].serverId, 'b');
    assert.equal(follower.all('leads').length, 0, 'no other member leads');
  });

  test('a leader that cannot reach the store fences itself and stops accepting writes, and one that was stopped comes back fenced', async () => {
    const { leader, follower } = await newCluster();
    const { accepted, end } = await writing(leader, follower);
    leader.proxy.answerWith(() => 'hang');
    await until(() => leader.all('fenced')[0]);
    assert.equal((await put(leader, 'late', 'x')).status, 503);
    assert.equal((await get(leader, 'counted')).status, 200, 'it goes on with reads');
    await until(() => follower.all('leads')[0]);
    leader.proxy.answerWith(() => undefined);
    await until(() => accepted.at(-1).who === 'b');
    follower.child.kill('SIGSTOP');
    await until(() => leader.all('leads')[1]);
    assert.equal((await put(leader, 'missed', 'x')).status, 200);
    follower.child.kill('SIGCONT');
    await until(() => follower.all('fenced')[0]);
    await until(() => accepted.at(-1).who === 'a');
    await end();
    assert.equal((await put(leader, 'last', 'x')).status, 200);
    const both = await Promise.all([leader, follower].map((node) => ask(node, '/snapshot')));
    assert.deepEqual(both[0].items, both[1].items, 'who was stopped has caught up');
  });

  test('an outage of the store for both: nobody takes over, both refuse writes and serve reads, and the first answer after it decides', async () => {
    const { leader, follower } = await newCluster();
    const nodes = [leader, follower];
    assert.equal((await put(leader, 'kept', 'before')).status, 200);
    const terms = () => nodes.flatMap((node) => node.all('leads').map((one) => ({ who: node.who, ...one })));
    for (const { proxy } of nodes) proxy.answerWith(() => 'hang');
    const refuses = async (node) => (await put(node, 'refused', 'x')).status === 503;
    await until(async () => (await refuses(leader)) && refuses(follower));
    const before = terms();
    const token = Math.max(...before.map((one) => one.token));
    const endMs = performance.now() + 2 * LEASE_MS;
    while (performance.now() < endMs) {
      for (const node of nodes) {
        const [read, write] = [await get(node, 'kept'), await put(node, 'refused', 'x')];
        assert.deepEqual([read.status, read.value, write.status], [200, 'before', 503], node.who);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(terms(), before, 'nobody has taken over');
    for (const { proxy } of nodes) proxy.answerWith(() => undefined);
    const next = await until(() => terms().find((one) => !before.some((other) => other.token === one.token)));
    assert.ok(next.token > token, JSON.stringify(terms()));
    const [chosen, other] = next.who === 'a' ? nodes : nodes.toReversed();
    assert.equal((await put(chosen, 'kept', 'after')).status, 200);
    await until(async () => (await ask(other, '/status')).leaderId === next.who);
    assert.equal((await put(other, 'refused', 'x')).status, 503);
    assert.equal(terms().length, before.length + 1, 'one of them leads, once');
  });
});

test('a replica refuses what an earlier term wrote, and sees what it has missed', () => {
  const replica = new Replica();
  const entry = (token, sequence, value) => ({ key: 'k', value, token, sequence });
  assert.ok(replica.misses(entry(5, 1)) && replica.apply(entry(5, 1, 'one')) && replica.apply(entry(5, 2, 'two')));
  assert.equal(replica.apply(entry(4, 9, 'late')), false);
  assert.ok(replica.apply(entry(5, 1, 'again')), 'what came twice is no error');
  assert.deepEqual(replica.get('k'), { value: 'two', token: 5 });
  assert.deepEqual([3, 4].map((sequence) => replica.misses(entry(5, sequence))), [false, true]);
  assert.ok(replica.misses(entry(6, 1)), 'nobody knows what the term before has written last');
  const other = new Replica();
  other.adopt(replica.snapshot());
  assert.deepEqual([other.get('k'), other.next(5), other.next(6)], [{ value: 'two', token: 5 }, 3, 1]);
  other.apply(entry(7, 1, 'new'));
  other.adopt(replica.snapshot());
  assert.equal(other.get('k').value, 'new', 'an older state replaces nothing');
  // A snapshot that was held up, and answers that are none.
  for (const late of [{ token: 5, sequence: 1, items: [] }, { error: 'busy' }, { token: 5, items: [] }]) replica.adopt(late);
  assert.deepEqual(replica.get('k'), { value: 'two', token: 5 });
});

test('the preset is a lease of 30 s that is renewed three times in it, under a prefix of the cluster', () => {
  const { config } = new Elector({ storage: new MemoryStorage(), ...celeriant({ cluster: 'eu/prod' }) });
  const { lockfilePath, leaderTimeout, frequentInterval, margin, follow } = config;
  assert.deepEqual([lockfilePath, leaderTimeout, frequentInterval, margin, follow], ['eu/prod/lease.json', 30_000, 10_000, 3_000, 'tight']);
});
