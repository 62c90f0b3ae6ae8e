import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS, MORE_FAULTS } from './proxy.mjs';
import { FATES, MEMBERS, fates, jobOf, requestFaults, triggersOf, weather } from './slots-plan.mjs';

const TIMES = { leaseMs: 1_000, timeoutMs: 2_000 };
const SLOTS = Array.from({ length: 1_000 }, (_, index) => index + 1);
const first = (source, count) => Array.from({ length: count }, () => source.next().value);

test('a seed gives its plan again, another one gives another', () => {
  const plan = (seed) => [
    SLOTS.slice(0, 20).map((slot) => [triggersOf(seed, slot), jobOf(seed, slot, 0, TIMES)]), first(fates(seed), 20), first(weather(seed), 20),
    first(requestFaults(seed, 'a'), 20).map((draw) => draw('GET', 0.5)),
  ];
  assert.deepEqual(plan(7), plan(7));
  for (const index of [0, 1, 2, 3]) assert.notDeepEqual(plan(7)[index], plan(8)[index]);
});

test('each slot has a trigger, and over a run each member is called alone, with others, twice, late', () => {
  const all = SLOTS.map((slot) => triggersOf(7, slot));
  for (const { triggers, patienceMs } of all) assert.ok(triggers.length > 0 && patienceMs > 0);
  for (const member of MEMBERS) {
    const with_ = all.map(({ triggers }) => triggers).filter((triggers) => triggers.some((trigger) => trigger.member === member));
    assert.ok(with_.some((triggers) => triggers.length === 1), `${member} alone`);
    assert.ok(with_.some((triggers) => new Set(triggers.map((trigger) => trigger.member)).size > 2), `${member} with others`);
    assert.ok(with_.some((triggers) => triggers.filter((trigger) => trigger.member === member).length === 2), `${member} twice`);
    assert.ok(with_.some((triggers) => triggers.some((trigger) => trigger.member === member && trigger.late > 0)), `${member} late`);
  }
  assert.deepEqual(new Set(all.map(({ haste }) => haste)), new Set(['done', 'begun', 'now']));
});

test('jobs end well, fail once, fail always, outlast the lease, and answer too late', () => {
  const calls = SLOTS.map((slot) => Array.from({ length: 4 }, (_, call) => jobOf(7, slot, call, TIMES)));
  const some = (holds) => assert.ok(calls.some(holds), String(holds));
  some(([one]) => one.status === 200 && one.ms < 100);
  some(([one, other]) => one.status === 500 && other.status === 200);
  some((all) => all.every(({ status }) => status === 500));
  some(([one]) => one.ms > TIMES.leaseMs && one.ms < TIMES.timeoutMs);
  some(([one]) => one.ms > TIMES.timeoutMs);
});

test('every fate comes once before any comes again', () => {
  const source = fates(7);
  const nameOf = ({ kind, at }) => `${kind} ${at}`;
  for (let round = 0; round < 10; round += 1) assert.deepEqual(first(source, FATES.length).map(nameOf).sort(), FATES.map(nameOf).sort());
});

test('the weather changes between calm, bad and none, and bad weather has every fault', () => {
  const phases = first(weather(7), 6);
  assert.deepEqual(phases.map(({ kind }) => kind), ['calm', 'bad', 'calm', 'bad', 'calm', 'out']);
  for (const { kind, share } of phases) assert.equal(share > 0, kind !== 'calm');
  const drawn = first(requestFaults(7, 'a'), 500);
  assert.deepEqual(new Set(drawn.map((draw) => draw('GET', 1))), new Set(Object.keys({ ...FAULTS, ...MORE_FAULTS })));
  assert.deepEqual(new Set(drawn.map((draw) => draw('PUT', 0))), new Set([undefined]));
  const failed = (method) => drawn.filter((draw) => draw(method, 0.2) !== undefined).length;
  assert.ok(failed('PUT') > failed('GET') && failed('GET') > 50);
});
