// What the leaders of both runs act on refuses old tokens, and writes down what it was asked.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { newFolder, removePath } from '../../js/tools/cleanup.mjs';
import { startResource } from './resource.mjs';
import { startEndpoint } from './slots-endpoint.mjs';

const closing = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

const post = async (url, body, headers = {}) => {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  await answer.body?.cancel();
  return answer.status;
};

const openResource = async () => {
  const folder = newFolder('resource');
  const file = `${folder}/acts.jsonl`;
  const told = [];
  const resource = await startResource({ file, onAct: (act) => told.push(act) });
  closing.push(() => removePath(folder), () => resource.close());
  const act = (token, more = {}) => post(`${resource.url}/acts`, { member: 'a', session: 'a-1', token, lookMs: 1_000, remainingMs: 500, ...more });
  return { resource, told, act, lines: () => fs.readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line)) };
};

test('resource: a token lower than the highest is refused, the same one is not, and all are in the log in their order', async () => {
  const { resource, told, act, lines } = await openResource();
  const statuses = [];
  for (const token of [5, 5, 7, 5, 6, 7]) statuses.push(await act(token));
  assert.deepEqual(statuses, [200, 200, 200, 409, 409, 200]);
  assert.deepEqual(lines().map(({ token, accepted }) => [token, accepted]), [[5, true], [5, true], [7, true], [5, false], [6, false], [7, true]]);
  assert.deepEqual(told, lines());
  const end = { member: 'a', session: 'a-1', token: 7, endMs: 2_000 };
  assert.equal(await post(`${resource.url}/ends`, end), 200);
  resource.note({ kind: 'kill', on: ['a'] });
  const [ended, fault] = lines().slice(-2);
  assert.deepEqual([ended, fault.event, fault.kind], [{ event: 'end', ...end }, 'fault', 'kill']);
});

test('resource: what is no act is refused and not written down, and neither is what else an act carries', async () => {
  const { act, lines } = await openResource();
  for (const wrong of [{ token: -1 }, { member: 'a b' }, { remainingMs: null, lookMs: 'x' }]) assert.equal(await act(9, wrong), 400);
  await act(9, { authorization: 'a secret' });
  assert.equal(lines().length, 1);
  assert.ok(!JSON.stringify(lines()).includes('secret'));
});

const openEndpoint = async (jobOf) => {
  const told = [];
  const endpoint = await startEndpoint({ group: 'g', jobOf, tell: (entry) => told.push(entry) });
  closing.push(() => endpoint.close());
  const call = (slot, term, more = {}, token = term) => post(endpoint.url, { group: 'g', slot, term, serverId: 'a', ...more }, { 'edgelect-token': String(token) });
  return { told, endpoint, call };
};

test('endpoint: a call is told and answered as its slot and count say; a lower token is refused; what is no call is told to nobody', async () => {
  const { told, call, endpoint } = await openEndpoint((slot, count) => ({ status: count === 0 ? 500 : 200, ms: slot }));
  assert.deepEqual([await call(1, 10), await call(1, 11), await call(2, 9), await call(2, 11)], [500, 200, 409, 500]);
  assert.deepEqual(told.slice(0, 3).map(({ event, run, slot, token, member, accepted, status }) => [event, run, slot, token, member, accepted ?? status]), [
    ['begin', 1, 1, 10, 'a', true], ['end', 1, 1, 10, 'a', 500], ['begin', 2, 1, 11, 'a', true],
  ]);
  assert.deepEqual(told.filter(({ event }) => event === 'begin').map(({ accepted }) => accepted), [true, true, false, true]);
  assert.equal(endpoint.highest, 11);
  assert.deepEqual([await call(1, 12, { group: 'h' }), await call(1, 12, {}, 13), await call('1', 12), await call(1, 12, { more: 1 })], [400, 400, 400, 400]);
  assert.equal(told.length, 8);
});
