// examples/checkpoint: a leader that is stopped for longer than its lease comes back, and the store refuses what it writes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inRoot } from '../../js/tools/paths.mjs';
import { freshKey, getLease, newGroup, variables } from './bucket.mjs';
import { start as startProgram } from './example.mjs';

const MAIN = inRoot('examples/checkpoint/main.mjs');
const LEASE_MS = 3000;

const start = ({ lockfilePath, key }, serverId, args = []) => startProgram([MAIN, '--key', key, '--every', 50, ...args], {
  env: {
    ...variables,
    EDGELECT_LOCKFILE_PATH: lockfilePath,
    EDGELECT_SERVER_ID: serverId,
    EDGELECT_LEADER_TIMEOUT: String(LEASE_MS),
    EDGELECT_FREQUENT_INTERVAL: '400',
    EDGELECT_STORE_SKEW: '500',
    EDGELECT_FOLLOW: 'tight',
  },
});

/** What two members have printed, where the second took over from the first. */
const assertNeverBack = async (group, a, b) => {
  const [first, second] = [a.all('written').map(({ count }) => count), b.all('written').map(({ count }) => count)];
  const [{ term: earlier }, { term: later, count: from }] = [a.all('opened')[0], b.all('opened')[0]];
  assert.ok(later > earlier);
  assert.equal(from, first.at(-1), 'it counts on from the last accepted write');
  const counts = [...first, ...second];
  assert.deepEqual(counts, counts.map((_count, index) => index + 1), 'every accepted write counts one on');
  const { term, value } = await getLease(group.key);
  assert.equal(term, later);
  assert.ok(value.count >= counts.length, `${value.count} is in the store, ${counts.length} were printed`);
};

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
  await assertNeverBack(group, a, b);
});
