import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from './proxy.mjs';
import { failuresOf } from './report.mjs';

const fired = Object.fromEntries([...Object.keys(FAULTS), 'kill', 'stop'].map((kind) => [kind, 1]));
const good = {
  violations: [], broken: [], leaked: false, healedMs: 900, healLimitMs: 1_000, seconds: 60, fired, zombies: 1,
  runtimes: [{ runtime: 'Bun 1', terms: 2 }, { runtime: 'workerd', terms: 1 }],
};
const sentences = (changes) => failuresOf({ ...good, ...changes }).map(({ sentence }) => sentence);

test('a good run has no failure', () => {
  assert.deepEqual(sentences({}), []);
});

test('each thing that went wrong is told', () => {
  const violation = { rule: 'order', sentence: 'out of order', lines: ['{}'] };
  assert.deepEqual(failuresOf({ ...good, violations: [violation] }), [violation]);
  assert.deepEqual(sentences({ broken: ['bun ended with 1'] }), ['bun ended with 1']);
  assert.deepEqual(sentences({ leaked: true }), ['a secret or a signature is in the log']);
  assert.match(sentences({ healedMs: 1_001 })[0], /^nobody acted within 1000 ms after the last fault: 1001 ms$/);
  assert.match(sentences({ healedMs: undefined })[0], /nor in twice that time/);
  assert.deepEqual(sentences({ error: 'waited 60 s', healedMs: undefined, zombies: 0 }), ['waited 60 s']);
});

test('a fault that did nothing, a runtime that never led and a resource that met no zombie fail a run of a minute, not a shorter one', () => {
  const empty = { fired: { ...fired, lost: 0, kill: 0 }, zombies: 0, runtimes: [{ runtime: 'Bun 1', terms: 0 }] };
  assert.deepEqual(sentences(empty), [
    'the fault "lost" never did its work', 'the fault "kill" never did its work', 'Bun 1 never led',
    'no zombie came to the resource, so nothing shows that it refuses them',
  ]);
  assert.deepEqual(sentences({ ...empty, seconds: 59 }), []);
});
