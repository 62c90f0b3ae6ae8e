// What the runs stand on: plans that leave nothing out, and a proxy whose faults do what their names say. That what is acted on
// refuses old tokens, and those alone, is judged in each run.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { readAll, serve } from '../../js/tools/serve.mjs';
import { kept, until } from '../js/servers.mjs';
import { networkPhases, processPhases } from './plan.mjs';
import { FAULTS, startProxy } from './proxy.mjs';
import { FATES, fates } from './slots-plan.mjs';

/** A store that counts what came, behind a proxy with one lane. */
const rig = async () => {
  const came = [];
  const store = await kept(serve(async (request, response) => {
    came.push(String(await readAll(request)));
    response.writeHead(200, { etag: '"1"' }).end('answer');
  }));
  const proxy = await kept(startProxy(store.url, () => 0.5, { requestTimeoutMs: 200, leaseMs: 400 }));
  const landed = [];
  return { came, proxy, lane: await proxy.openLane({ onLanded: (write) => landed.push(write) }), landed };
};

/** Resolves to the status of the answer, or to how there was none. */
const send = ({ endpoint }, method = 'PUT', signal = undefined) =>
  new Promise((resolve) => {
    const headers = { 'If-Match': '"0"' };
    const request = http.request(`${endpoint}/key`, { method, headers, agent: false, signal }, (response) => response.resume().on('end', () => resolve(response.statusCode)));
    request.on('error', ({ code, name }) => resolve(code ?? name));
    request.end(method === 'PUT' ? 'body' : undefined);
  });

test('each fault does what its name says, and no longer than it lasts', async () => {
  // Under a fault: what is sent, what its sender sees, how many requests reach the store, and how often the fault did its work.
  for (const [fault, method, seen, reached, fired, kind = fault] of [
    ['cut', 'PUT', 'ECONNRESET', 0, 1],
    ['deaf', 'PUT', 'ABORT_ERR', 0, 1],
    ['lost', 'PUT', 'ABORT_ERR', 1, 1],
    ['reset', 'PUT', 'ECONNRESET', 1, 1],
    ['error', 'PUT', 503, 1, 1],
    ['error', 'GET', 503, 1, 0],
    ['late', 'PUT', 200, 1, 0],
    ['slow', 'PUT', 200, 1, 1],
    [() => 'refused', 'PUT', 503, 0, 1, 'refused'],
    [() => 'twice', 'PUT', 200, 2, 1, 'twice'],
  ]) {
    const { came, proxy, lane, landed } = await rig();
    lane.fault = fault;
    const leaving = new AbortController();
    // Whoever gets no answer leaves once the fault has done its work.
    if (seen === 'ABORT_ERR') void until(() => proxy.fired[kind] > 0).then(() => leaving.abort());
    assert.equal(await send(lane, method, leaving.signal), seen, kind);
    assert.deepEqual([came.length, proxy.fired[kind]], [reached, fired], kind);
    assert.deepEqual(landed.map(({ condition, body, etag }) => [condition, String(body), etag]), Array(method === 'PUT' ? reached : 0).fill(['"0"', 'body', '"1"']), kind);
    lane.fault = undefined;
    assert.equal(await send(lane), 200, kind);
  }
});

test('a seed gives its plan again, and each kind comes once before any comes again', () => {
  const nameOf = ({ kind, at = '' }) => `${kind}${at}`;
  for (const [plan, kinds] of [[networkPhases, Object.keys(FAULTS)], [processPhases, ['kill', 'stop']], [fates, FATES.map(nameOf)]]) {
    const drawn = (seed) => Array.from({ length: 20 * kinds.length }, function next() { return this.next().value; }, plan(seed, 2_500));
    assert.deepEqual(drawn(7), drawn(7));
    assert.notDeepEqual(drawn(7), drawn(8));
    for (let from = 0; from < 20 * kinds.length; from += kinds.length) assert.deepEqual(drawn(7).slice(from, from + kinds.length).map(nameOf).sort(), [...kinds].sort());
  }
});
