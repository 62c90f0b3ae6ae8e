// Cron triggers as Cloudflare may send them: doubled, late, overlapping, out of order, to isolates that vanish. Each test holds
// every record that was written and every authority that was shown against the rules.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bucketOptions, getLease, until } from '../js/bucket.mjs';
import { newGroup, outcomes, warm } from './isolate.mjs';
import { assertOneAuthority, startWitness } from './witness.mjs';

const LEASE_MS = 3_000;
const SUSTAIN_MS = 9_000;
// A tick parks one second before its end.
const PARKS_AFTER_MS = SUSTAIN_MS - 1_000;
const FREQUENT_MS = 500;
// Two round trips and the start of the wasm on a busy machine.
const ROOM_MS = 1_000;
// For a tick that waits a dead one's lease out before it leads.
const PATIENT = { EDGELECT_SUSTAIN: '12000' };

const led = (worker) => outcomes(worker).includes('led');

/** A group whose members reach the store through a witness. */
const withGroup = async (work) => {
  const witness = await startWitness(bucketOptions.endpoint);
  const group = await newGroup();
  const bindings = { ...group, EDGELECT_ENDPOINT: witness.endpoint, EDGELECT_LEADER_TIMEOUT: String(LEASE_MS), EDGELECT_SUSTAIN: String(SUSTAIN_MS) };
  const watched = [];
  const fresh = async (changes = {}, more = {}) => {
    const worker = await warm({ ...bindings, ...changes }, more);
    watched.push(witness.watch(worker));
    return worker;
  };
  try {
    await work({ witness, fresh, key: group.EDGELECT_LOCKFILE_PATH });
  } finally {
    for (const end of watched) end();
    await witness.close();
  }
};

const seenLeading = ({ witness }, session) => until(() => witness.shown.some((one) => session === undefined || one.session === session));
const lastLead = ({ witness }) => witness.writes.at(-1);

describe('ticks', { concurrency: 3 }, () => {
  test('c53 c54 one trigger delivered twice, to one isolate and to two: one leads, and is not disturbed', () =>
    withGroup(async (group) => {
      const [one, other] = [await group.fresh(), await group.fresh()];
      const scheduledTime = new Date();
      await Promise.all([one.tick(scheduledTime), one.tick(scheduledTime), other.tick(scheduledTime)]);
      const firsts = assertOneAuthority(group.witness);
      // The first leads until it parks; only a lease that it has parked passes on, to the tail of another one's time.
      const before = group.witness.writes.slice(0, group.witness.writes.indexOf(firsts[1]) >>> 0);
      assert.ok(firsts.length === 1 || before.at(-1).parked, 'the one that led was disturbed');
      const own = group.witness.writes.filter(({ session }) => session === firsts[0].session);
      const ledMs = own.at(-1).atMs - own[0].atMs;
      assert.ok(own.length >= 2 + Math.max(2, ledMs / FREQUENT_MS / 2), `${own.length} writes in ${ledMs.toFixed(0)} ms`);
      await until(() => outcomes(one).length + outcomes(other).length === 3);
      assert.equal((await getLease(group.key)).parked, true);
    }));

  test('c54 a late trigger gets what is left of its time, and one behind its time asks the store nothing', () =>
    withGroup(async (group) => {
      const worker = await group.fresh();
      const lateMs = 2_000;
      const startMs = performance.now();
      await worker.tick(new Date(Date.now() - lateMs));
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs > PARKS_AFTER_MS - lateMs - ROOM_MS && tookMs < PARKS_AFTER_MS, `it took ${tookMs.toFixed(0)} ms`);
      assert.equal(lastLead(group).parked, true);
      const writes = group.witness.writes.length;
      for (const lateBy of [PARKS_AFTER_MS + 100, SUSTAIN_MS, 3_600_000]) await worker.tick(new Date(Date.now() - lateBy));
      await until(() => outcomes(worker).length === 4);
      assert.deepEqual(outcomes(worker), ['led', 'late', 'late', 'late']);
      assert.equal(worker.logged().match(/outcome=late requests=0$/gm).length, 3);
      assert.equal(group.witness.writes.length, writes);
      assertOneAuthority(group.witness);
    }));

  test('c52 an isolate that vanishes in mid-tick: a new one of the same name waits its lease out', () =>
    withGroup(async (group) => {
      const [first, next] = [await group.fresh(), await group.fresh(PATIENT)];
      first.tick().catch(() => {});
      await seenLeading(group);
      // It has the record in its memory, as anybody may ask it.
      await (await next.ask()).text();
      await first.kill();
      await next.tick();
      const firsts = assertOneAuthority(group.witness);
      assert.equal(firsts.length, 2);
      const died = group.witness.writes[group.witness.writes.indexOf(firsts[1]) - 1];
      const waitedMs = firsts[1].atMs - died.atMs;
      // The lease, storeSkew, and two seconds for whole seconds in the store's answers.
      assert.ok(waitedMs < LEASE_MS + 500 + 2_000 + 4 * ROOM_MS, `${waitedMs.toFixed(0)} ms after the last write`);
      assert.deepEqual([died.parked, firsts[1].leaderID], [false, died.leaderID]);
    }));

  test('c52 the wasm breaks down in mid-tick: the same isolate goes on with nothing from its memory', () =>
    withGroup(async (group) => {
      const worker = await group.fresh(PATIENT, { entry: 'tests/worker/bent-worker.js' });
      const broken = worker.tick();
      await seenLeading(group);
      const { session } = lastLead(group);
      await (await worker.ask('/break')).text();
      assert.equal((await broken).outcome, 'exception');
      await worker.tick();
      const firsts = assertOneAuthority(group.witness);
      assert.equal(firsts.length, 2);
      assert.notEqual(firsts[1].session, session);
      await until(() => led(worker));
    }));
});
