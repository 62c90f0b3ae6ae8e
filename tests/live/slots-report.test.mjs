import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS, MORE_FAULTS } from './proxy.mjs';
import { FATES, MEMBERS } from './slots-plan.mjs';
import { failuresOf } from './slots-report.mjs';

const ones = (names) => Object.fromEntries(names.map((name) => [name, 1]));
const good = (policy) => ({
  policy, broken: [], violations: [], entries: [], fired: ones(Object.keys({ ...FAULTS, ...MORE_FAULTS })),
  happened: ones(FATES.map(({ kind, at }) => `${kind} ${at}`)), counts: { begun: ones(MEMBERS), refused: 1, reruns: 1 },
});
const empty = (policy) => ({ ...good(policy), fired: {}, happened: {}, counts: { begun: {}, refused: 0, reruns: 0 } });
const rules = (outcomes, slots = 100) => failuresOf(outcomes, slots).map(({ rule }) => rule);

test('a good run has no failure, nor has one in which one policy met what the other did not', () => {
  assert.deepEqual(rules([good('atMostOnce'), good('atLeastOnce')]), []);
  assert.deepEqual(rules([empty('atMostOnce'), good('atLeastOnce')]), []);
});

test('each thing that never happened fails a run that is long enough', () => {
  const total = Object.keys({ ...FAULTS, ...MORE_FAULTS }).length + FATES.length + MEMBERS.length + 2;
  assert.deepEqual(rules([empty('atMostOnce'), empty('atLeastOnce')]), Array(total).fill('complete'));
  assert.deepEqual(rules([empty('atMostOnce'), empty('atLeastOnce')], 99), []);
});

test('a run that was cut short, and a member that ended, are told', () => {
  assert.deepEqual(rules([{ ...empty('atMostOnce'), error: 'waited' }]), ['end']);
  assert.deepEqual(rules([{ ...good('atMostOnce'), broken: ['node-1 ended with 1'] }]), ['member']);
});

test('a violation comes with the lines of its slot, and with what failed just then', () => {
  const entries = [
    { event: 'trigger', slot: 6 }, { event: 'fault', kind: 'kill' }, { event: 'trigger', slot: 7 }, { event: 'report', slot: 8, runs: [{ slot: 7 }] },
    { event: 'trigger', slot: 8 }, { event: 'fault', kind: 'stop' },
  ];
  const violations = [{ rule: 'lost', slot: 7, sentence: 'slot 7 was never run' }];
  const [failure] = failuresOf([{ ...good('atLeastOnce'), entries, violations }], 100);
  assert.deepEqual([failure.rule, failure.sentence], ['lost', 'atLeastOnce: slot 7 was never run']);
  assert.deepEqual(failure.lines, entries.slice(1, 4).map((entry) => JSON.stringify(entry)));
});
