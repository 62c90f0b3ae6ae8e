import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { FAULTS, startProxy } from './proxy.mjs';

const TIMING = { requestTimeoutMs: 200, leaseMs: 400 };
const closing = [];

after(async () => {
  for (const close of closing.reverse()) await close();
});

/** A store that keeps what came, behind a proxy with one lane. */
const rig = async (chance = () => 0.5) => {
  const came = [];
  const store = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    came.push({ method: request.method, url: request.url, rawHeaders: request.rawHeaders, body: String(Buffer.concat(chunks)) });
    if (request.url === '/large') return response.end(Buffer.alloc(1 << 20));
    if (request.url === '/broken') return response.destroy();
    response.writeHead(request.url === '/refused' ? 412 : 200, { etag: '"1"', date: 'Sat, 21 Nov 2026 06:58:12 GMT', 'X-Twice': ['a', 'b'] });
    response.end(request.method === 'HEAD' ? undefined : 'answer');
  });
  await new Promise((resolve) => store.listen(0, '127.0.0.1', resolve));
  const proxy = startProxy(`http://127.0.0.1:${store.address().port}`, chance, TIMING);
  const lane = await proxy.openLane();
  closing.push(async () => {
    await proxy.close();
    store.closeAllConnections();
    store.close();
  });
  return { came, proxy, lane };
};

/** Resolves to the answer, or to how there was none. */
const send = ({ endpoint }, { method = 'PUT', path = '/key', headers = {}, body = method === 'PUT' ? 'body' : undefined, limitMs = 5_000 } = {}) =>
  new Promise((resolve) => {
    const startMs = performance.now();
    const request = http.request(`${endpoint}${path}`, { method, headers, agent: false, signal: AbortSignal.timeout(limitMs) }, async (response) => {
      const chunks = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode, rawHeaders: response.rawHeaders, body: String(Buffer.concat(chunks)), tookMs: performance.now() - startMs });
    });
    request.on('error', (error) => resolve({ error: error.code ?? error.name }));
    request.end(body);
  });

const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

test('without a fault a request goes on once as it came, with its Host header, and so does the answer', async () => {
  const { came, proxy, lane } = await rig();
  const headers = { host: 'signed.example:1', 'X-Amz-Date': 'now', Authorization: 'AWS4', 'content-length': 4 };
  const answer = await send(lane, { path: '/a%2Fb?list&x=%20', headers });
  assert.equal(came.length, 1);
  const { rawHeaders, ...request } = came[0];
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
  assert.equal((await send(lane, { path: '/refused' })).status, 412);
  assert.ok(Object.keys(FAULTS).every((kind) => proxy.fired[kind] === 0));
});

test('bodies are bounded both ways, and what fails upstream is a reset that nobody tried again', async () => {
  const { came, lane } = await rig();
  const { status, error } = await send(lane, { body: Buffer.alloc(1 << 20) });
  assert.ok(status === 413 || error !== undefined, `${status}`);
  assert.equal(came.length, 0);
  assert.deepEqual(await send(lane, { method: 'GET', path: '/large' }), { error: 'ECONNRESET' });
  for (const method of ['GET', 'PUT']) assert.deepEqual(await send(lane, { method, path: '/broken' }), { error: 'ECONNRESET' });
  assert.equal(came.length, 3);
});

test('cut resets the connections that are open and those that come', async () => {
  const { came, proxy, lane } = await rig();
  lane.fault = 'deaf';
  const open = send(lane);
  await until(() => proxy.fired.deaf === 1);
  lane.fault = 'cut';
  assert.deepEqual([await open, await send(lane)], [{ error: 'ECONNRESET' }, { error: 'ECONNRESET' }]);
  assert.equal(came.length, 0);
  assert.equal(proxy.fired.cut, 2);
  lane.fault = undefined;
  assert.equal((await send(lane)).status, 200);
});

test('deaf swallows requests, and lost swallows the answers to writes that were carried out', async () => {
  const { came, proxy, lane } = await rig();
  for (const [fault, carried] of [['deaf', 0], ['lost', 1]]) {
    lane.fault = fault;
    assert.deepEqual(await send(lane, { limitMs: 300 }), { error: 'ABORT_ERR' });
    assert.deepEqual([came.length, proxy.fired[fault]], [carried, 1]);
  }
});

test('reset and error come after the write; a refused write and a read count for nothing', async () => {
  const { came, proxy, lane } = await rig();
  lane.fault = 'reset';
  assert.deepEqual(await send(lane), { error: 'ECONNRESET' });
  lane.fault = 'error';
  assert.deepEqual((await send(lane)).status, 503);
  await send(lane, { path: '/refused' });
  await send(lane, { method: 'GET' });
  assert.equal(came.length, 4);
  assert.deepEqual([proxy.fired.reset, proxy.fired.error], [1, 1]);
});

test('a fault of writes spares the reads by a chance of a half, and no write', async () => {
  for (const [chance, statuses] of [[0.4, [500, 200]], [0.6, [503, 503]]]) {
    const { came, lane } = await rig(() => chance);
    lane.fault = 'error';
    assert.deepEqual([(await send(lane)).status, (await send(lane, { method: 'GET' })).status], statuses);
    assert.equal(came.length, 2);
  }
});

test('slow delays both ways, late brings a write to the store after its sender has gone', async () => {
  const { came, proxy, lane } = await rig();
  lane.fault = 'slow';
  const { status, tookMs } = await send(lane);
  assert.equal(status, 200);
  assert.ok(tookMs >= 2 * 0.5 * 0.7 * TIMING.requestTimeoutMs - 5, `${tookMs} ms`);
  assert.equal(proxy.fired.slow, 1);
  lane.fault = 'late';
  assert.equal((await send(lane)).status, 200);
  assert.equal(proxy.fired.late, 0, 'its sender has waited');
  assert.deepEqual(await send(lane, { limitMs: 50 }), { error: 'ABORT_ERR' });
  assert.equal(came.length, 2);
  await until(() => came.length === 3 && proxy.fired.late === 1);
});

test('a write that comes again with the same signature is counted, a read and another write are not', async () => {
  const { proxy, lane } = await rig();
  const requests = [['PUT', 'one'], ['GET', 'one'], ['GET', 'one'], ['PUT', 'two']];
  for (const [method, authorization] of requests) await send(lane, { method, headers: { authorization } });
  assert.equal(proxy.repeated, 0);
  await send(lane, { headers: { authorization: 'one' } });
  assert.equal(proxy.repeated, 1);
});

test('a fault that is drawn for each request hears its method, and may also refuse, cut and repeat', async () => {
  const { came, proxy, lane } = await rig();
  const faults = ['refused', 'cut', 'twice', 'twice', undefined];
  const methods = [];
  lane.fault = (method) => {
    methods.push(method);
    return faults.shift();
  };
  assert.deepEqual([(await send(lane)).status, (await send(lane)).error, came.length], [503, 'ECONNRESET', 0]);
  assert.deepEqual([(await send(lane)).status, came.length], [200, 2]);
  assert.deepEqual([(await send(lane, { method: 'GET' })).status, (await send(lane, { method: 'GET' })).status, came.length], [200, 200, 4]);
  assert.deepEqual(methods, ['PUT', 'PUT', 'PUT', 'GET', 'GET']);
  assert.deepEqual([proxy.fired.refused, proxy.fired.cut, proxy.fired.twice], [1, 1, 1]);
});

test('each write that the store has taken is told before its sender hears of it, also where it never does', async () => {
  const { proxy } = await rig();
  const told = [];
  const lane = await proxy.openLane({ onLanded: (write) => told.push(write) });
  await send(lane, { path: '/refused' });
  await send(lane, { method: 'GET' });
  lane.fault = 'reset';
  await send(lane, { path: '/a', headers: { 'If-Match': '"0"' } });
  assert.deepEqual(told.map(({ url, condition, body, etag }) => [url, condition, String(body), etag]), [['/a', '"0"', 'body', '"1"']]);
  assert.ok(Math.abs(told[0].sentMs - Date.now()) < 10_000);
});

test('a lane has its own fault', async () => {
  const { proxy, lane } = await rig();
  const other = await proxy.openLane();
  lane.fault = 'cut';
  assert.equal((await send(other)).status, 200);
});
