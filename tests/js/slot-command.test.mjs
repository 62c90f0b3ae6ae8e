// `edgelect slot`: the same line in the crontab of many machines.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begin, edgelect } from './command.mjs';
import { LEASE_MS, newGroup, sh, store } from './commanded.mjs';
import { slotRecord, started } from './group.mjs';
import { kept, startProxy, until } from './servers.mjs';

const HOUR_MS = 3_600_000;

/** A group whose slots until a week ago have run, so that no test waits for the clock; its lease is one that a busy machine keeps. */
const running = async (leaseMs = 15_000) => {
  const group = await newGroup({ starts: false, leaseMs });
  group.put(JSON.stringify(slotRecord((Math.floor(Date.now() / HOUR_MS) - 7 * 24) * HOUR_MS)));
  return group;
};

/** Not near the moment at which one slot of an hour follows the other. */
const awayFromHalfHour = () => until(() => Math.abs((Date.now() % HOUR_MS) - HOUR_MS / 2) > 10_000);

test('of three machines one runs the slot, and all end with 0; status then knows when the next one is late', async () => {
  await awayFromHalfHour();
  const { variables, read, record, lockfilePath } = await running();
  const args = ['slot', '--period', '1h', ...sh('echo "$EDGELECT_SLOT $EDGELECT_TOKEN" >> "$FILE"; sleep 0.2')];
  const told = await Promise.all([1, 2, 3].map(() => edgelect(args, { variables: variables() })));
  assert.deepEqual(told, Array(3).fill({ code: 0, stdout: '', stderr: '' }));
  const { slot, term } = record();
  assert.equal(read(), `${new Date(slot).toISOString()} ${term}\n`);
  assert.equal(slot % HOUR_MS, 0);
  for (const [more, code, shown] of [[[], 3, /nobody leads: the slot of .* has ended \(ok\)/], [['--period', '1h'], 0, /ok/], [['--period', '1s', '--late', '0'], 4, /the next slot is overdue/]]) {
    const seen = await edgelect(['status', ...more, lockfilePath], { variables: variables() });
    assert.equal(seen.code, code, seen.stdout + seen.stderr);
    assert.match(seen.stdout, shown);
  }
});

test('a command that fails gives its code, and the record says that it failed', async () => {
  const { variables, record } = await running();
  const { code, stderr } = await edgelect(['slot', '--period', '1d', '--json', ...sh('exit 9')], { variables: variables() });
  const { slot, term, slotDone, slotResult } = record();
  assert.deepEqual([code, slotDone, slotResult], [9, false, 'failed']);
  const began = stderr.split('\n').map((line) => line && JSON.parse(line)).find(({ event }) => event === 'began');
  assert.deepEqual({ ...began, at: '' }, { at: '', event: 'began', term, slot: new Date(slot).toISOString() });
});

test('a missed slot whose command failed is told by its code, whatever became of the newest', async () => {
  const { variables, read, record } = await running();
  const args = ['slot', '--period', '1h', '--missed', 'latest', ...sh('echo x >> "$FILE"; [ "$(wc -l < "$FILE")" -gt 1 ] || exit 9')];
  const { code, stderr } = await edgelect(args, { variables: variables() });
  assert.deepEqual([code, read(), record().slotResult], [9, 'x\nx\n', 'ok'], stderr);
});

test('a command of a missed slot that a signal ends well is the last: the newest slot is left to others', async () => {
  const { variables, read, record } = await running();
  const ends = sh(`echo x >> "$FILE"; trap 'exit 0' TERM; kill -TERM "$PPID"; sleep 20 & wait`);
  const { code, stderr } = await edgelect(['slot', '--period', '1h', '--missed', 'latest', ...ends], { variables: variables() });
  const { slot, slotDone } = record();
  assert.deepEqual([code, read(), slotDone], [0, 'x\n', true], stderr);
  assert.ok(slot < Math.floor(Date.now() / HOUR_MS) * HOUR_MS, 'the missed one');
});

test('not run: another holds the lease (75), the group is new (3), no period (2)', async () => {
  const led = await running(LEASE_MS);
  await started(led.elector);
  const fresh = await newGroup({ starts: false });
  for (const [group, args, code, stderr] of [
    [led, ['--period', '1h', '--budget', '9s'], 75, /did not run: somebody else held the lease/],
    [fresh, ['--period', '1h'], 3, /did not run: the lease object is new/],
    [led, [], 2, /required .*--period <duration>/],
    [led, ['--period', '1s'], 2, /^edgelect: --period = 1000: /],
  ]) {
    const told = await edgelect(['slot', ...args, ...sh('echo begun >> "$FILE"')], { variables: group.variables() });
    assert.equal(told.code, code, told.stderr);
    assert.match(told.stderr, stderr);
    assert.equal(group.read(), '');
  }
});

test('a store that fails to the end of the budget is 1 and no conflict; one that has only stumbled says who holds the lease', async () => {
  const led = await running(LEASE_MS);
  await started(led.elector);
  const stumbling = await kept(startProxy(store.endpoint));
  const slot = (group, endpoint) => edgelect(['slot', '--period', '1h', '--budget', '9s', '--conflict-exit-code', '0', ...sh('echo begun >> "$FILE"')], { variables: group.variables(endpoint) });
  const stumbles = () => {
    const before = stumbling.seen.length;
    stumbling.answerWith(() => (stumbling.seen.length - before <= 2 ? { status: 503 } : undefined));
    return slot(led, stumbling.endpoint);
  };
  let [dead, held] = await Promise.all([slot(await running(LEASE_MS), 'http://127.0.0.1:1'), stumbles()]);
  // On a busy machine the last read may take longer than its quarter of a second: then the store has not answered.
  for (let again = 0; again < 3 && /no answer within/.test(held.stderr); again += 1) held = await stumbles();
  assert.equal(dead.code, 1, dead.stderr);
  assert.match(dead.stderr, /no answer/);
  assert.equal(held.code, 0, held.stderr);
  assert.match(held.stderr, /did not run: somebody else held the lease/);
});

test('a SIGTERM passes on, and the slot is closed as stopped', async () => {
  const { variables, read, record, isReleased } = await running();
  const slot = begin(['slot', '--period', '1d', ...sh('trap "exit 5" TERM; echo ready >> "$FILE"; while :; do sleep 0.05; done')], { variables: variables() });
  await until(() => read() === 'ready\n');
  slot.kill('SIGTERM');
  assert.deepEqual(await slot.ended, { code: 5, signal: null });
  assert.ok(isReleased());
  assert.deepEqual([record().slotDone, record().slotResult], [false, 'stopped']);
});
