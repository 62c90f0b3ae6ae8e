// What a seed draws has everything that the runs are to meet.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkPhases, processPhases } from './plan.mjs';
import { FAULTS } from './proxy.mjs';
import { FATES, fates, jobOf, requestFaults, triggersOf, weather } from './slots-plan.mjs';

const LEASE_MS = 2_500;
const TIMES = { leaseMs: 1_000, timeoutMs: 2_000 };
const SLOTS = Array.from({ length: 20 }, (_, index) => index + 1);
const first = (source, count) => Array.from({ length: count }, () => source.next().value);

test('a seed gives its plan again, another one gives another', () => {
  const plan = (seed) => ({
    network: first(networkPhases(seed, LEASE_MS), 30),
    processes: first(processPhases(seed, LEASE_MS), 30),
    triggers: SLOTS.map((slot) => triggersOf(seed, slot)),
    jobs: SLOTS.map((slot) => jobOf(seed, slot, 0, TIMES)),
    fates: first(fates(seed), 20),
    weather: first(weather(seed), 20),
    requests: first(requestFaults(seed, 'a'), 20).map((draw) => draw('GET', 0.5)),
  });
  assert.deepEqual(plan(7), plan(7));
  for (const [name, drawn] of Object.entries(plan(7))) assert.notDeepEqual(drawn, plan(8)[name], name);
});

// A run that is long enough fails where a kind never comes; this is that a short one has them in turn.
test('each kind comes once before any comes again, and one minute has room for every kind of the network', () => {
  const nameOf = ({ kind, at = '' }) => `${kind}${at}`;
  for (const [source, kinds] of [
    [networkPhases(3, LEASE_MS), Object.keys(FAULTS)], [processPhases(3, LEASE_MS), ['kill', 'stop']], [fates(7), FATES.map(nameOf)],
  ]) {
    for (let round = 0; round < 20; round += 1) assert.deepEqual(first(source, kinds.length).map(nameOf).sort(), [...kinds].sort());
  }
  for (let seed = 0; seed < 100; seed += 1) {
    const takesMs = first(networkPhases(seed, LEASE_MS), Object.keys(FAULTS).length).reduce((sum, { calmMs, lastsMs }) => sum + calmMs + lastsMs, 0);
    assert.ok(takesMs < 50_000, `seed ${seed}: ${takesMs} ms`);
    for (const { lastsMs } of first(processPhases(seed, LEASE_MS), 20)) assert.ok(lastsMs > LEASE_MS, 'a stop outlasts the lease');
  }
});
