// Peers over real servers on loopback: who has room, who is answered without a session, and TLS. Proofs, relays and who is told
// of a resignation are held in tests/faces.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { Elector, MemoryStorage } from 'edgelect';
import { fetchWith } from '../../js/peer-tls.js';
import { inRoot } from '../../js/tools/paths.mjs';
import { atEnd } from './ending.mjs';
import { bent, noting, pause, putRecord, slotRecord, started, until } from './group.mjs';
import { peered } from './peered.mjs';

const LEASE_MS = 9_000;

const member = (storage, serverId, options = {}, more = {}) =>
  peered({ storage, lockfilePath: 'peers.json', serverId, leaderTimeout: LEASE_MS, frequentInterval: 2_500, ...options }, more);

/** One that leads. */
const leading = async (storage, options, more) => {
  const leader = await member(storage, 'a', options, more);
  await leader.elector.init();
  await started(leader.elector);
  return leader;
};

/** The key of a server of this machine, and the certificate that nobody else has signed. */
const [key, cert] = ['PRIVATE KEY', 'CERTIFICATE'].map((name) =>
  new RegExp(`-----BEGIN ${name}-----[^]*?-----END ${name}-----\n`).exec(fs.readFileSync(inRoot('tests/runtimes/self-signed.pem'), 'utf8'))[0]);

const ask = (host, query = '', signal = undefined) => fetch(`http://${host}/health/leadership${query}`, { signal });

test('who goes away leaves room, and without room a question is answered 503, later again', async () => {
  const storage = new MemoryStorage();
  const { host, elector, held } = await leading(storage, { maxPeers: 1 });
  const query = `?group=peers.json&term=${elector.status().term}&wait=5000`;
  const gone = new AbortController();
  const first = ask(host, query, gone.signal);
  await until(() => held() === 1);
  const second = await ask(host, query);
  assert.equal(second.status, 503);
  const seconds = Number(second.headers.get('retry-after'));
  assert.ok(seconds >= 9 && seconds <= 14, `${seconds} s, a lease and up to a half more`);
  assert.deepEqual((await second.json()).relays, []);
  assert.equal((await ask(host, '?group=peers.json')).status, 200, 'who does not wait needs no room');
  gone.abort();
  await assert.rejects(first, { name: 'AbortError' });
  await until(async () => {
    const third = ask(host, query, AbortSignal.timeout(300));
    return third.then(({ status }) => assert.equal(status, 503), ({ name }) => name === 'TimeoutError');
    // Well before the time of the first question is over.
  }, 2_500);
});

test('nobody is suspected any more by a session that is over, however it ended', async () => {
  const [storage, heard] = [new MemoryStorage(), []];
  const beats = { heartbeat: 100, suspectAfter: 500, peerTimeout: 400 };
  const leader = await leading(storage, beats);
  const callbacks = { onSuspect: (id) => heard.push(`suspects ${id}`), onRecover: (id) => heard.push(`recovers ${id}`) };
  const follower = await member(storage, 'b', { ...beats, ...callbacks });
  await follower.elector.start();
  await until(() => leader.asked.length > 3);
  await leader.elector.stop({ release: false });
  await until(() => heard.length === 1);
  await follower.elector.stop({ release: false });
  assert.deepEqual(heard, ['suspects a', 'recovers a']);
});

test('without a session the stored record answers, read once an interval, and of whom it names alone', async () => {
  let reads = 0;
  const memory = noting(new MemoryStorage(), (name) => (reads += name === 'get'));
  const storage = bent(memory, { get: (key) => pause(50).then(() => memory.get(key)) });
  const leader = await leading(storage);
  const idle = await member(storage, 'a');
  const before = reads;
  const askers = [() => ask(idle.host), () => idle.elector.handleRequest(new Request(`http://${idle.host}/health/leadership`))];
  const statuses = await Promise.all([...askers, ...askers, ...askers].map(async (asks) => (await asks()).status));
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200], 'who asks while it is read waits for that');
  const answer = await ask(idle.host);
  const { source, leaderID, remainingMs } = await answer.json();
  assert.deepEqual([answer.status, source, leaderID, remainingMs], [200, 'store', 'a', undefined]);
  // The leader's own renewals read nothing.
  assert.equal(reads - before, 1);
  const other = await member(storage, 'c');
  const notMine = await ask(other.host);
  assert.deepEqual([notMine.status, (await notMine.json()).leaderID], [404, 'a']);
  await leader.elector.stop();
});

test('who waits for the leader of a slot is told when the slot is over', async () => {
  const storage = new MemoryStorage();
  putRecord(storage, { ...slotRecord(Date.now() - 3_600_000), leaseMs: LEASE_MS }, 'peers.json');
  const { elector, host, held } = await member(storage, 'a');
  let answered;
  const { outcome } = await elector.runScheduled(Date.now(), async ({ token, slot }) => {
    const now = await (await ask(host)).json();
    assert.deepEqual([now.term, now.slot, now.leaderID], [token, slot, 'a']);
    answered = ask(host, `?group=peers.json&term=${token}&wait=55000`);
    await until(() => held() === 1);
  });
  assert.equal(outcome, 'done');
  await until(() => held() === 0);
  assert.equal((await answered).status, 404);
});

test('peers are asked by TLS that only their own authority has signed', async () => {
  const storage = new MemoryStorage();
  const leader = await leading(storage, { peerTls: { ca: cert } }, { secure: { key, cert } });
  const { elector: trusting } = await member(storage, 'b', { peerMode: false }, { secure: { key, cert } });
  trusting.enablePeerMode(cert);
  assert.deepEqual([trusting.config.peerMode, trusting.config.insecurePeers], [true, false]);
  await trusting.start();
  await until(() => leader.held() === 1);
  const asked = leader.asked.length;
  const { elector: strict } = await member(storage, 'c', { insecurePeers: false }, { secure: { key, cert } });
  await strict.start();
  await until(() => strict.status().requests.peer >= 1);
  await until(() => strict.status().requests.read >= 2);
  assert.ok(leader.asked.length <= asked + 1, 'nobody else comes through');
  for (const peerTls of [{ ca: 'no certificate' }, { cert }, { certificate: cert }]) {
    assert.throws(() => new Elector({ storage, lockfilePath: 'x', peerTls }), { code: 'EDGELECT_CONFIG' });
  }
  const hidden = ({ message }) => !message.includes('secret key');
  assert.throws(() => new Elector({ storage, lockfilePath: 'x', peerTls: { cert, key: 'secret key' } }), hidden);
});

test('where the leader wants a certificate, a follower with one asks it, and one without reads the store', async () => {
  const storage = new MemoryStorage();
  const secure = { key, cert, ca: cert, requestCert: true, rejectUnauthorized: true };
  const leader = await leading(storage, { peerTls: { ca: cert, key, cert } }, { secure });
  const asks = ({ host }) => leader.asked.some(({ query }) => query.relay === host);
  const known = await member(storage, 'b', { peerTls: { ca: cert, key, cert } }, { secure });
  await known.elector.start();
  await until(() => asks(known) && leader.held() === 1);
  const unknown = await member(storage, 'c', { peerTls: { ca: cert } }, { secure });
  await unknown.elector.start();
  await until(() => unknown.elector.status().requests.peer >= 1 && unknown.elector.status().requests.read >= 2);
  assert.deepEqual([asks(known), asks(unknown)], [true, false]);
});

test('no answer that a peer makes up ends the process or keeps a connection', async () => {
  let answer;
  let open = 0;
  const server = createTlsServer({ key, cert }, (socket) => {
    open += 1;
    socket.on('close', () => (open -= 1));
    socket.on('error', () => {});
    socket.on('data', () => socket.write(answer));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => server.close());
  const url = `https://127.0.0.1:${server.address().port}/health/leadership`;
  const fetchPeer = fetchWith({ ca: cert });
  const { signal } = new AbortController();
  for (const status of ['999 Odd', '600 Odd', '101 Switching\r\nupgrade: x\r\nconnection: upgrade']) {
    answer = `HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`;
    await assert.rejects(fetchPeer(url, { signal }), status);
  }
  for (const status of [204, 205]) {
    answer = `HTTP/1.1 ${status} Empty\r\n\r\n`;
    assert.equal((await fetchPeer(url, { signal })).status, status);
  }
  await until(() => open === 0);
});
