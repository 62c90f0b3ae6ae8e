// What fails each of the two runs: what was broken, and what a run that is long enough never met.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS, MORE_FAULTS } from './proxy.mjs';
import { failuresOf } from './report.mjs';
import { FATES, MEMBERS } from './slots-plan.mjs';
import { failuresOf as failuresOfSlots } from './slots-report.mjs';

const ones = (names) => Object.fromEntries(names.map((name) => [name, 1]));

test('the live run fails for each thing that went wrong, and a minute also for what never happened', () => {
  const fired = ones([...Object.keys(FAULTS), 'kill', 'stop']);
  const good = {
    violations: [], broken: [], leaked: false, healedMs: 900, healLimitMs: 1_000, seconds: 60, fired, zombies: 1,
    runtimes: [{ runtime: 'Bun 1', terms: 2 }, { runtime: 'workerd', terms: 1 }],
  };
  const empty = { fired: { ...fired, lost: 0, kill: 0 }, zombies: 0, runtimes: [{ runtime: 'Bun 1', terms: 0 }] };
  for (const [changes, ...expected] of [
    [{}],
    [{ violations: [{ rule: 'order', sentence: 'out of order', lines: ['{}'] }] }, 'out of order'],
    [{ broken: ['bun ended with 1'] }, 'bun ended with 1'],
    [{ leaked: true }, 'a secret or a signature is in the log'],
    [{ healedMs: 1_001 }, 'nobody acted within 1000 ms after the last fault: 1001 ms'],
    [{ healedMs: undefined }, 'nobody acted within 1000 ms after the last fault: nor in twice that time'],
    [{ error: 'waited 60 s', healedMs: undefined, zombies: 0 }, 'waited 60 s'],
    [empty, 'the fault "lost" never did its work', 'the fault "kill" never did its work', 'Bun 1 never led',
      'no zombie came to the resource, so nothing shows that it refuses them'],
    [{ ...empty, seconds: 59 }],
  ]) assert.deepEqual(failuresOf({ ...good, ...changes }).map(({ sentence }) => sentence), expected);
});

const well = (policy) => ({
  policy, broken: [], violations: [], entries: [], fired: ones(Object.keys({ ...FAULTS, ...MORE_FAULTS })),
  happened: ones(FATES.map(({ kind, at }) => `${kind} ${at}`)), counts: { begun: ones(MEMBERS), refused: 1, reruns: 1 },
});

test('slots fail for each thing that went wrong, and a hundred of them for what neither policy met', () => {
  const [most, least] = [well('atMostOnce'), well('atLeastOnce')];
  const nothing = { fired: {}, happened: {}, counts: { begun: {}, refused: 0, reruns: 0 } };
  const total = Object.keys({ ...FAULTS, ...MORE_FAULTS }).length + FATES.length + MEMBERS.length + 2;
  for (const [outcomes, slots, rules] of [
    [[most, least], 100, []],
    [[{ ...most, ...nothing }, least], 100, []],
    [[{ ...most, ...nothing }, { ...least, ...nothing }], 100, Array(total).fill('complete')],
    [[{ ...most, ...nothing }, { ...least, ...nothing }], 99, []],
    [[{ ...most, ...nothing, error: 'waited' }], 100, ['end']],
    [[{ ...most, broken: ['node-1 ended with 1'] }], 100, ['member']],
  ]) assert.deepEqual(failuresOfSlots(outcomes, slots).map(({ rule }) => rule), rules);
});
