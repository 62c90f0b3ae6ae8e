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
    if (request.url === '/large') return response.end(Buffer.alloc(1 << 20));
    if (request.url === '/broken') return response.destroy();
    response.writeHead(request.url === '/refused' ? 412 : 200, { etag: '"1"', date: 'Sat, 21 Nov 2026 06:58:12 GMT', 'X-Twice': ['a', 'b'] });
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
const shownOf = ({ status, error }) => status ?? error;

test('without a fault a request goes on once as it came, with its Host header, and so does the answer', async () => {
  const { came, proxy, lane } = await rig();
  const headers = { host: 'signed.example:1', 'X-Amz-Date': 'now', Authorization: 'AWS4', 'content-length': 4 };
  const answer = await send(lane, { path: '/a%2Fb?list&x=%20', headers });
  const [{ rawHeaders, ...request }] = came;
  assert.deepEqual(request, { method: 'PUT', url: '/a%2Fb?list&x=%20', body: 'body' });
  const names = rawHeaders.filter((_text, index) => index % 2 === 0).map((name) => name.toLowerCase());
  assert.deepEqual(names.filter((name) => name !== 'connection').sort(), ['authorization', 'content-length', 'host', 'x-amz-date']);
  assert.equal(rawHeaders[rawHeaders.findIndex((name) => name.toLowerCase() === 'host') + 1], 'signed.example:1');
  assert.deepEqual([answer.status, answer.body], [200, 'answer']);
  const text = answer.rawHeaders.join('\n');
  for (const header of ['etag\n"1"', 'date\nSat, 21 Nov 2026 06:58:12 GMT', 'X-Twice\na', 'X-Twice\nb']) assert.ok(text.includes(header), text);
  assert.ok(!text.toLowerCase().includes('content-type'), text);
  for (const method of ['GET', 'HEAD', 'DELETE']) assert.equal((await send(lane, { method })).status, 200, method);
  assert.deepEqual(came.map(({ method }) => method), ['PUT', 'GET', 'HEAD', 'DELETE']);
  assert.ok(Object.values(proxy.fired).every((count) => count === 0));
});

/** What is sent under a fault, what its sender sees, how many requests reach the store, and how often the fault did its work. */
const FAULTS = [
  ['cut', {}, 'ECONNRESET', 0, 1],
  ['deaf', {}, 'ABORT_ERR', 0, 1],
  ['lost', {}, 'ABORT_ERR', 1, 1],
  ['reset', {}, 'ECONNRESET', 1, 1],
  ['error', {}, 503, 1, 1],
  ['error', { path: '/refused' }, 503, 1, 0],
  ['error', { method: 'GET' }, 503, 1, 0],
  ['late', {}, 200, 1, 0],
  ['slow', {}, 200, 1, 1],
  [() => 'refused', {}, 503, 0, 1, 'refused'],
  [() => 'twice', {}, 200, 2, 1, 'twice'],
  [() => 'twice', { method: 'GET' }, 200, 1, 0, 'twice'],
  [(method) => (method === 'PUT' ? 'cut' : undefined), {}, 'ECONNRESET', 0, 1, 'cut'],
  [(method) => (method === 'PUT' ? 'cut' : undefined), { method: 'GET' }, 200, 1, 0, 'cut'],
  [undefined, { body: Buffer.alloc(1 << 20), path: '/large' }, /413|ECONNRESET|EPIPE/, 0],
  [undefined, { method: 'GET', path: '/large' }, 'ECONNRESET', 1],
  [undefined, { method: 'GET', path: '/broken' }, 'ECONNRESET', 1],
  [undefined, { path: '/broken' }, 'ECONNRESET', 1],
];
for (const [fault, request, seen, reached, fired, kind = fault] of FAULTS) {
  test(`${kind ?? 'no fault'}, ${request.method ?? 'PUT'} ${request.path ?? '/key'}: ${seen}`, async () => {
    const { came, proxy, lane } = await rig();
    lane.fault = fault;
    const leaving = new AbortController();
    // Whoever gets no answer leaves once the fault has done its work.
    if (seen === 'ABORT_ERR') void until(() => proxy.fired[kind] > 0).then(() => leaving.abort());
    const answer = await send(lane, { ...request, signal: leaving.signal });
    if (seen instanceof RegExp) assert.match(String(shownOf(answer)), seen);
    else assert.equal(shownOf(answer), seen);
    assert.equal(came.length, reached);
    if (kind !== undefined) assert.equal(proxy.fired[kind], fired);
    if (kind === 'slow') assert.ok(answer.tookMs >= 2 * 0.5 * 0.7 * TIMING.requestTimeoutMs - 5, `${answer.tookMs} ms`);
    lane.fault = undefined;
    assert.equal((await send(lane)).status, 200, 'and no longer than it lasts');
  });
}

test('cut resets the connections that are open, and none of another lane', async () => {
  const { proxy, lane } = await rig();
  lane.fault = 'deaf';
  const open = send(lane);
  await until(() => proxy.fired.deaf === 1);
  lane.fault = 'cut';
  assert.deepEqual(await open, { error: 'ECONNRESET' });
  assert.equal((await send(await proxy.openLane())).status, 200);
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

test('a fault of writes spares the reads by a chance of a half, and no write', async () => {
  for (const [chance, statuses] of [[0.4, [500, 200]], [0.6, [503, 503]]]) {
    const { lane } = await rig(() => chance);
    lane.fault = 'error';
    assert.deepEqual([(await send(lane)).status, (await send(lane, { method: 'GET' })).status], statuses);
  }
});

test('a write that comes again with the same signature is counted, a read and another write are not', async () => {
  const { proxy, lane } = await rig();
  for (const [method, authorization, repeated] of [['PUT', 'one', 0], ['GET', 'one', 0], ['GET', 'one', 0], ['PUT', 'two', 0], ['PUT', 'one', 1]]) {
    await send(lane, { method, headers: { authorization } });
    assert.equal(proxy.repeated, repeated);
  }
});

test('each write that the store has taken is told, also where its sender never hears of it', async () => {
  const { lane, landed } = await rig();
  await send(lane, { path: '/refused' });
  await send(lane, { method: 'GET' });
  lane.fault = 'reset';
  await send(lane, { path: '/a', headers: { 'If-Match': '"0"' } });
  assert.deepEqual(landed.map(({ url, condition, body, etag }) => [url, condition, String(body), etag]), [['/a', '"0"', 'body', '"1"']]);
  assert.ok(Math.abs(landed[0].sentMs - Date.now()) < 10_000);
});
