// examples/checkpoint: a leader that is stopped for longer than its lease comes back, and the store refuses what it writes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inRoot } from '../../js/tools/paths.mjs';
import { freshKey, getLease, newGroup, variables } from './bucket.mjs';
import { start as startProgram } from './example.mjs';

const MAIN = inRoot('examples/checkpoint/main.mjs');
const LEASE_MS = 3000;

const LEASE = String(LEASE_MS);
const TIMES = { EDGELECT_LEADER_TIMEOUT: LEASE, EDGELECT_FREQUENT_INTERVAL: '400', EDGELECT_STORE_SKEW: '500', EDGELECT_FOLLOW: 'tight' };

const start = ({ lockfilePath, key }, serverId, args = []) => startProgram([MAIN, '--key', key, '--every', 50, ...args], {
  env: { ...variables, ...TIMES, EDGELECT_LOCKFILE_PATH: lockfilePath, EDGELECT_SERVER_ID: serverId },
});

test('a write that had passed every look before the process was stopped is refused by the store, and the count never goes back', async () => {
  const group = { lockfilePath: await newGroup('checkpoint-example', { leaderTimeout: LEASE_MS }), key: freshKey('count') };
  const a = start(group, 'a', ['--stop-before-write', '5']);
  await a.next('written', 3);
  const b = start(group, 'b');
  await a.next('stopping');
  await b.next('written', 3);
  assert.deepEqual(a.all('answered'), [], 'it is still stopped');
  a.child.kill('SIGCONT');
  const { status } = await a.next('answered');
  assert.equal(status, 412, 'at the store, after its own look had passed');
  const { code } = await a.next('refused');
  assert.ok(['EDGELECT_FENCED', 'EDGELECT_LOST'].includes(code), code);
  await b.next('written', b.all('written').length + 3);
  assert.equal(a.all('written').length, 3);
  const counts = [a, b].flatMap((one) => one.all('written').map(({ count }) => count));
  assert.deepEqual(counts, counts.map((_count, index) => index + 1), 'every accepted write counts one on');
  const [{ term: earlier }, { term: later, count: from }] = [a.all('opened')[0], b.all('opened')[0]];
  assert.ok(later > earlier);
  assert.equal(from, 3, 'it counts on from the last accepted write');
  const { term, value } = await getLease(group.key);
  assert.equal(term, later);
  assert.ok(value.count >= counts.length, `${value.count} is in the store, ${counts.length} were printed`);
});
