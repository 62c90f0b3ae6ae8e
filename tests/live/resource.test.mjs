import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startResource } from './resource.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-resource-'));
const file = path.join(folder, 'acts.jsonl');
const told = [];
let resource;

before(async () => {
  resource = await startResource({ file, onAct: (act) => told.push(act) });
});
after(async () => {
  await resource.close();
  fs.rmSync(folder, { recursive: true });
});

const post = async (where, body) => {
  const answer = await fetch(`${resource.url}${where}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
};
const act = (token, more = {}) => ({ member: 'a', session: 'a-1', token, lookMs: 1_000, remainingMs: 500, ...more });
const lines = () => fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

test('a token lower than the highest is refused, the same one is not, and each attempt is in the log in its order', async () => {
  const answers = [];
  for (const token of [5, 5, 7, 5, 6, 7]) answers.push(await post('/acts', act(token)));
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 409, 409, 200]);
  assert.deepEqual(answers[3].body, { accepted: false, highest: 7 });
  assert.deepEqual(lines().map(({ token, accepted }) => [token, accepted]), [[5, true], [5, true], [7, true], [5, false], [6, false], [7, true]]);
  assert.deepEqual(told, lines());
  assert.deepEqual({ ...told[0], atMs: 0 }, { event: 'act', accepted: true, ...act(5), atMs: 0 });
});

test('ends and notes stand beside the acts', async () => {
  assert.equal((await post('/ends', { member: 'a', session: 'a-1', token: 7, endMs: 2_000 })).status, 200);
  resource.note({ kind: 'kill', on: ['a'] });
  const [end, fault] = lines().slice(-2);
  assert.deepEqual(end, { event: 'end', member: 'a', session: 'a-1', token: 7, endMs: 2_000 });
  assert.deepEqual([fault.event, fault.kind, fault.on], ['fault', 'kill', ['a']]);
});

test('what is no act is refused and not written down, and neither is what else an act carries', async () => {
  const before = lines().length;
  for (const wrong of [{ token: -1 }, { token: 1.5 }, { member: 'a b' }, { session: undefined }, { remainingMs: null, lookMs: 'x' }]) {
    assert.equal((await post('/acts', act(9, wrong))).status, 400, JSON.stringify(wrong));
  }
  assert.equal(lines().length, before);
  await post('/acts', act(9, { authorization: 'a secret' }));
  assert.ok(!fs.readFileSync(file, 'utf8').includes('secret'));
});
