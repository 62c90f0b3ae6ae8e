// Each fault does what its name says, and without one nothing is changed.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { readAll, serve } from '../../js/tools/serve.mjs';
import { startProxy } from './proxy.mjs';
import { until } from '../js/until.mjs';

const TIMING = { requestTimeoutMs: 200, leaseMs: 400 };
const closing = [];

after(async () => {
  for (const close of closing.reverse()) await close();
});

const textOf = async (stream) => String(await readAll(stream));

/** A store that keeps what came, behind a proxy with one lane. */
const rig = async (chance = () => 0.5) => {
  const came = [];
  const store = await serve(async (request, response) => {
    came.push({ method: request.method, url: request.url, rawHeaders: request.rawHeaders, body: await textOf(request) });
    if (request.url === '/broken') return response.destroy();
    response.writeHead(request.url === '/refused' ? 412 : 200, { etag: '"1"', 'X-Twice': ['a', 'b'] });
    response.end(request.method === 'HEAD' ? undefined : 'answer');
  });
  const proxy = startProxy(store.url, chance, TIMING);
  const landed = [];
  const lane = await proxy.openLane({ onLanded: (write) => landed.push(write) });
  closing.push(async () => {
    await proxy.close();
    await store.close();
  });
  return { came, proxy, lane, landed };
};

/** Resolves to the answer, or to how there was none. */
const send = ({ endpoint }, { method = 'PUT', path = '/key', headers = {}, body = method === 'PUT' ? 'body' : undefined, signal } = {}) =>
  new Promise((resolve) => {
    const startMs = performance.now();
    const request = http.request(`${endpoint}${path}`, { method, headers, agent: false, signal }, async (response) => {
      const text = await textOf(response);
      resolve({ status: response.statusCode, rawHeaders: response.rawHeaders, body: text, tookMs: performance.now() - startMs });
    });
    request.on('error', (error) => resolve({ error: error.code ?? error.name }));
    request.end(body);
  });

test('without a fault a request goes on once as it came, with its Host header, and so does the answer', async () => {
  const { came, proxy, lane } = await rig();
  const headers = { host: 'signed.example:1', 'X-Amz-Date': 'now', Authorization: 'AWS4', 'content-length': 4 };
  const answer = await send(lane, { path: '/a%2Fb?list&x=%20', headers });
  const [{ rawHeaders, ...request }] = came;
  assert.deepEqual(request, { method: 'PUT', url: '/a%2Fb?list&x=%20', body: 'body' });
  const text = rawHeaders.join('\n');
  for (const header of ['signed.example:1', 'X-Amz-Date\nnow', 'Authorization\nAWS4']) assert.ok(text.includes(header), text);
  assert.deepEqual([answer.status, answer.body], [200, 'answer']);
  const answered = answer.rawHeaders.join('\n');
  for (const header of ['etag\n"1"', 'X-Twice\na', 'X-Twice\nb']) assert.ok(answered.includes(header), answered);
  assert.ok(Object.values(proxy.fired).every((count) => count === 0));
});

/** What is sent under a fault, what its sender sees, how many requests reach the store, and how often the fault did its work. */
const FAULTS = [
  ['cut', {}, 'ECONNRESET', 0, 1],
  ['deaf', {}, 'ABORT_ERR', 0, 1],
  ['lost', {}, 'ABORT_ERR', 1, 1],
  ['reset', {}, 'ECONNRESET', 1, 1],
  ['error', {}, 503, 1, 1],
  ['error', { method: 'GET' }, 503, 1, 0],
  ['late', {}, 200, 1, 0],
  ['slow', {}, 200, 1, 1],
  [() => 'refused', {}, 503, 0, 1, 'refused'],
  [() => 'twice', {}, 200, 2, 1, 'twice'],
  [(method) => (method === 'PUT' ? 'cut' : undefined), { method: 'GET' }, 200, 1, 0, 'cut'],
  [undefined, { body: Buffer.alloc(1 << 20), path: '/large' }, /413|ECONNRESET|EPIPE/, 0],
  [undefined, { method: 'GET', path: '/broken' }, 'ECONNRESET', 1],
];
test('each fault does what its name says, and no longer than it lasts', async () => {
  for (const [fault, request, seen, reached, fired, kind = fault] of FAULTS) {
    const name = `${kind ?? 'no fault'}, ${request.method ?? 'PUT'} ${request.path ?? '/key'}`;
    const { came, proxy, lane } = await rig();
    lane.fault = fault;
    const leaving = new AbortController();
    // Whoever gets no answer leaves once the fault has done its work.
    if (seen === 'ABORT_ERR') void until(() => proxy.fired[kind] > 0).then(() => leaving.abort());
    const answer = await send(lane, { ...request, signal: leaving.signal });
    assert.match(String(answer.status ?? answer.error), seen instanceof RegExp ? seen : new RegExp(`^${seen}$`), name);
    assert.equal(came.length, reached, name);
    if (kind !== undefined) assert.equal(proxy.fired[kind], fired, name);
    if (kind === 'slow') assert.ok(answer.tookMs >= 2 * 0.5 * 0.7 * TIMING.requestTimeoutMs - 5, `${answer.tookMs} ms`);
    lane.fault = undefined;
    assert.equal((await send(lane)).status, 200, name);
  }
});

test('late brings a write to the store after its sender has gone', async () => {
  const { came, proxy, lane } = await rig();
  const leaving = new AbortController();
  lane.fault = () => {
    leaving.abort();
    return 'late';
  };
  assert.deepEqual(await send(lane, { signal: leaving.signal }), { error: 'ABORT_ERR' });
  await until(() => came.length === 1 && proxy.fired.late === 1);
});

test('each write that the store has taken is told, also where its sender never hears of it; one that comes again is counted', async () => {
  const { proxy, lane, landed } = await rig();
  await send(lane, { path: '/refused' });
  await send(lane, { method: 'GET' });
  lane.fault = 'reset';
  const headers = { authorization: 'one', 'If-Match': '"0"' };
  await send(lane, { path: '/a', headers });
  await send(lane, { method: 'GET', headers });
  assert.equal(proxy.repeated, 0);
  assert.deepEqual(landed.map(({ url, condition, body, etag }) => [url, condition, String(body), etag]), [['/a', '"0"', 'body', '"1"']]);
  await send(lane, { path: '/a', headers });
  assert.equal(proxy.repeated, 1);
});
