// What the runs stand on: plans that leave nothing out, a proxy whose faults do what their names say, and two ends that refuse old tokens.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { test } from 'node:test';
import { newFolder, removePath } from '../../js/tools/cleanup.mjs';
import { readAll, serve } from '../../js/tools/serve.mjs';
import { atEnd, kept } from '../js/ending.mjs';
import { until } from '../js/until.mjs';
import { networkPhases, processPhases } from './plan.mjs';
import { FAULTS, startProxy } from './proxy.mjs';
import { startResource } from './resource.mjs';
import { startEndpoint } from './slots-endpoint.mjs';
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

const post = async (url, body, headers = {}) => {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  await answer.body?.cancel();
  return answer.status;
};

test('resource: a token lower than the highest is refused, what is no act is not written down, and all are in the log in their order', async () => {
  const folder = newFolder('resource');
  atEnd(() => removePath(folder));
  const file = `${folder}/acts.jsonl`;
  const { url } = await kept(startResource({ file }));
  const act = (token, more = {}) => post(`${url}/acts`, { member: 'a', session: 'a-1', token, lookMs: 1_000, remainingMs: 500, ...more });
  const statuses = [];
  for (const token of [5, 5, 7, 5, -1, 7]) statuses.push(await act(token, { authorization: 'a secret' }));
  assert.deepEqual(statuses, [200, 200, 200, 409, 400, 200]);
  const text = fs.readFileSync(file, 'utf8');
  assert.deepEqual(text.trim().split('\n').map((line) => JSON.parse(line).accepted), [true, true, true, false, true]);
  assert.ok(!text.includes('secret'));
});

test('endpoint: a call is told and answered as its slot and count say; a lower token is refused; what is no call is told to nobody', async () => {
  const told = [];
  const jobOf = (slot, count) => ({ status: count === 0 ? 500 : 200, ms: slot });
  const { url } = await kept(startEndpoint({ group: 'g', jobOf, tell: (entry) => told.push(entry) }));
  const call = (slot, term, group = 'g') => post(url, { group, slot, term, serverId: 'a' }, { 'edgelect-token': String(term) });
  assert.deepEqual([await call(1, 10), await call(1, 11), await call(2, 9), await call(2, 11), await call(1, 12, 'h')], [500, 200, 409, 500, 400]);
  assert.deepEqual(told.map(({ event, token, accepted, status }) => `${event} ${token} ${accepted ?? status}`), [
    'begin 10 true', 'end 10 500', 'begin 11 true', 'end 11 200', 'begin 9 false', 'end 9 409', 'begin 11 true', 'end 11 500',
  ]);
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
