import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkPhases, processPhases } from './plan.mjs';
import { FAULTS } from './proxy.mjs';

const LEASE_MS = 1_000;
const first = (phases, count) => Array.from({ length: count }, () => phases.next().value);

test('a seed gives its plan again, another one gives another', () => {
  const plan = (seed) => [first(networkPhases(seed, LEASE_MS), 30), first(processPhases(seed, LEASE_MS), 30)];
  assert.deepEqual(plan(7), plan(7));
  assert.notDeepEqual(plan(7), plan(8));
});

test('each kind comes once before any comes again', () => {
  for (const [phases, kinds] of [[networkPhases, Object.keys(FAULTS)], [processPhases, ['kill', 'stop']]]) {
    const plan = phases(3, LEASE_MS);
    for (let round = 0; round < 20; round += 1) {
      assert.deepEqual(first(plan, kinds.length).map(({ kind }) => kind).sort(), [...kinds].sort());
    }
  }
});

test('one minute at the lease of the live run has room for every kind of the network, and a stop outlasts the lease', () => {
  for (let seed = 0; seed < 100; seed += 1) {
    const takesMs = first(networkPhases(seed, 2_500), Object.keys(FAULTS).length).reduce((sum, { calmMs, lastsMs }) => sum + calmMs + lastsMs, 0);
    assert.ok(takesMs < 50_000, `seed ${seed}: ${takesMs} ms`);
    for (const { lastsMs } of first(processPhases(seed, LEASE_MS), 20)) assert.ok(lastsMs > LEASE_MS);
  }
});

test('every sort of victim comes', () => {
  const victims = new Set(first(networkPhases(3, LEASE_MS), 100).map((phase) => phase.victims));
  assert.deepEqual([...victims].sort(), ['everyone', 'leader', 'some']);
});
