// The native member over a real store, beside a Node member: one leads, the other takes over; and its errors.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { endProcess } from '../../js/tools/cleanup.mjs';
import { NATIVE as PROGRAMS, inRoot } from '../../js/tools/paths.mjs';
import { keepTail } from '../../js/tools/run.mjs';
import { startSpeaking } from '../../js/tools/speaking.mjs';
import { variablesOf } from '../../js/tools/variables.mjs';
import { bucketOptions, credentials, freshKey, getLease, newGroup as newBucketGroup, until } from '../js/bucket.mjs';
import { atEnd, kept, startDropping } from '../js/servers.mjs';

const NATIVE = [`${PROGRAMS}/native`];
const NODE = [process.execPath, inRoot('js/demo/member.mjs')];
const LEASE_MS = 3_000;
const FREQUENT_MS = 700;

const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: FREQUENT_MS, follow: 'tight' };

const start = (key, serverId, [command, ...args], changes = {}) => {
  const env = { ...variablesOf({ ...bucketOptions, ...credentials }, key, { ...TIMING, serverId }), ...changes };
  const heard = [];
  const tail = keepTail(100);
  let child;
  const ended = new Promise((onEnd) => {
    child = startSpeaking({ command, args, env }, { onLine: (line) => heard.push(JSON.parse(line)), onEnd, tail });
  });
  atEnd(() => endProcess(child));
  const all = (event) => heard.filter((one) => one.event === event);
  return {
    child, heard, errors: tail.lines, all, ended,
    say: (line) => child.stdin.write(`${line}\n`),
    status: () => all('status').at(-1),
    acquired: async (count = 1) => (await until(() => all('acquired').at(count - 1))).term,
    /** How its terms ended. */
    lost: () => all('lost').map(({ term, reason }) => [term, reason]),
  };
};

const newGroup = (name) => newBucketGroup(name, { leaderTimeout: LEASE_MS });

// Most of what they do is waiting for leases.
describe('one group', { concurrency: 3 }, () => {
  test('a native and a Node member take over from each other, after a crash and after a resignation', async () => {
    const key = await newGroup('native-mixed');
    const crashing = start(key, 'rust', NATIVE);
    const tokens = [await crashing.acquired()];
    assert.equal((await getLease(key)).leaderID, 'rust');
    const node = start(key, 'node', NODE);
    await until(() => node.status()?.leaderId === 'rust');
    assert.equal(node.all('acquired').length, 0, 'one leads at a time');
    await endProcess(crashing.child);
    tokens.push(await node.acquired());
    const rust = start(key, 'rust', NATIVE);
    await until(() => rust.status()?.leaderId === 'node');
    assert.equal(rust.all('acquired').length, 0, 'one leads at a time');
    node.say('resign');
    tokens.push(await rust.acquired());
    // Else both would sit out, and either could be the first to look.
    const resignedMs = node.all('lost').at(-1).atMs;
    await until(() => node.status().atMs > resignedMs + LEASE_MS + FREQUENT_MS);
    rust.say('resign');
    tokens.push(await node.acquired(2));
    assert.deepEqual(rust.lost(), [[tokens[2], 'resigned']]);
    assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b), 'tokens grow');
    await until(() => rust.status().leaderId === 'node');
    rust.say('stop');
    assert.equal(await rust.ended, 0);
    assert.equal(rust.heard.at(-1).event, 'stopped');
    assert.deepEqual([...crashing.errors, ...rust.errors], []);
  });

  test('a native leader releases when it is stopped, by a word or a signal, and ends at once with the one who started it', async () => {
    const key = await newGroup('native-stop');
    let before = 0;
    for (const stop of [({ say }) => say('stop'), ({ child }) => child.kill('SIGTERM'), ({ child }) => child.kill('SIGINT')]) {
      const stopped = start(key, 'a', NATIVE);
      const first = await stopped.acquired();
      assert.ok(first > before);
      stop(stopped);
      assert.equal(await stopped.ended, 0);
      assert.deepEqual(stopped.lost(), [[first, 'stopped']]);
      const { leaderID, term, lastUpdated } = await getLease(key);
      assert.deepEqual([leaderID, term, lastUpdated], ['a', first, '0001-01-01T00:00:00Z']);
      before = first;
    }
    const left = start(key, 'b', NATIVE);
    await left.acquired();
    left.child.stdin.end();
    assert.equal(await left.ended, 0);
    assert.notEqual((await getLease(key)).lastUpdated, '0001-01-01T00:00:00Z', 'its lease runs out');
  });

  test('native members answer each other in peer mode, and who follows asks the leader in place of the store', async () => {
    const key = await newGroup('native-peers');
    const peers = { EDGELECT_PEER_MODE: 'true' };
    const term = await start(key, 'a', NATIVE, peers).acquired();
    const answer = await fetch(`http://${(await getLease(key)).leaderAddr}/health/leadership`);
    const lease = await answer.json();
    assert.deepEqual([answer.status, lease.leaderID, lease.term, lease.group], [200, 'a', term, key]);
    const follower = start(key, 'b', NATIVE, peers);
    const before = await until(() => follower.status()?.requests.peer > 0 && follower.status().requests);
    await until(() => follower.status().requests.peer >= before.peer + 3);
    assert.equal(follower.status().requests.read, before.read, 'the peer answered, so the store was not asked');
  });
});

test('a native member that can never lead ends with 1 and one line that says why, before anything is written', async () => {
  const dropping = await kept(startDropping(bucketOptions.endpoint, credentials));
  const lies = /S3 bucket .*: probe step \\?"update of an absent object\\?": it took a write whose condition did not hold/;
  for (const [changes, expected, program = 'native'] of [
    [{ EDGELECT_BUCKET: 'no-such-bucket' }, /^edgelect: S3 bucket "no-such-bucket" at .*404 NoSuchBucket: create the bucket/],
    [{ EDGELECT_SECRET_ACCESS_KEY: 'a-wrong-secret' }, /^edgelect: S3 bucket .*: GET .* was answered 403 SignatureDoesNotMatch: check the secret access key/],
    [{ EDGELECT_LEADER_TIMOUT: '15000' }, /^edgelect: EDGELECT_LEADER_TIMOUT = \(not shown\): no such variable: did you mean EDGELECT_LEADER_TIMEOUT\? docs\/options\.md lists them$/],
    [{ EDGELECT_PORT: 'http' }, /^edgelect: EDGELECT_PORT = "http": must be a port number/],
    [{ EDGELECT_ENDPOINT: dropping.endpoint }, lies],
    [{ EDGELECT_ENDPOINT: dropping.endpoint }, lies, 'ten_lines'],
  ]) {
    const key = await newGroup('native-hopeless');
    const before = await getLease(key);
    const member = start(key, 'a', [`${PROGRAMS}/${program}`], changes);
    assert.equal(await member.ended, 1, program);
    assert.equal(member.errors.filter((line) => line !== '').length, 1, member.errors.join('\n'));
    assert.match(member.errors[0], expected);
    assert.ok(!member.errors[0].includes(credentials.secretAccessKey));
    assert.doesNotMatch(member.errors[0], /a-wrong-secret|AWS4|Credential=/);
    assert.deepEqual(await getLease(key), before, 'the lease is as it was');
  }
});

test('https goes through the proxy that the variables name, http straight to its address', async () => {
  const tunnels = [];
  const proxy = createServer().on('connect', ({ url }, socket) => {
    tunnels.push(url);
    socket.on('error', () => {}).end('HTTP/1.1 503 No\r\n\r\n');
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  atEnd(() => proxy.close());
  const address = `http://127.0.0.1:${proxy.address().port}`;
  const proxies = { HTTP_PROXY: address, http_proxy: address, HTTPS_PROXY: address, ALL_PROXY: address };
  start(freshKey('native-tunnel'), 'a', NATIVE, { ...proxies, EDGELECT_ENDPOINT: 'https://store.invalid' });
  await until(() => tunnels.length > 0);
  assert.equal(tunnels[0], 'store.invalid:443');
  const direct = start(await newGroup('native-direct'), 'a', NATIVE, proxies);
  await direct.acquired();
});

test('--help names the variables and an unknown argument is refused', async () => {
  for (const [argument, code] of [['--help', 0], ['--bucket', 2]]) {
    const { status, stdout } = spawnSync(NATIVE[0], [argument], { encoding: 'utf8', timeout: 60_000 });
    assert.equal(status, code);
    assert.match(stdout, /^EDGELECT_BUCKET .*^EDGELECT_LEADER_TIMEOUT +leaderTimeout$/ms);
    assert.match(stdout, /^EDGELECT_FORMAT {15}how the lease is written down: native or kubernetes$/m);
  }
});
