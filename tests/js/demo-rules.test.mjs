// The demo is only worth its exit code if its judge sees what is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rules } from '../../js/demo/rules.mjs';

const began = (rules) => (member, term, atMs, remainingMs = 5_000) => rules.acquired({ member, term, atMs, remainingMs });

test('terms that grow and follow each other break nothing', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('a', 10, 1_000);
  rules.proven({ member: 'a', term: 10, atMs: 3_000, remainingMs: 5_000 });
  rules.ended('a', 4_000);
  begin('b', 11, 4_500);
  rules.failover('a stop', 500);
  assert.deepEqual(rules.broken, []);
});

test('a term that does not grow is told, even when its news comes late', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('b', 10, 20_000);
  begin('a', 10, 1_000);
  assert.match(rules.broken[0], /terms must grow/);
});

test('a term that is shown again after a moment without proof is the same term, and counts beside the others', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  began(rules)('worker', 10, 1_000);
  rules.endedUnseen('worker');
  rules.shownAgain({ member: 'worker', term: 10, atMs: 2_000, remainingMs: 5_000 });
  assert.deepEqual([rules.broken, rules.acquisitions.length], [[], 1]);
  rules.proven({ member: 'worker', term: 10, atMs: 4_000, remainingMs: 5_000 });
  began(rules)('b', 11, 3_000);
  rules.proven({ member: 'b', term: 11, atMs: 3_500, remainingMs: 5_000 });
  assert.match(rules.broken[0], /both had authority/);
});

test('authority reported by two members at one instant is told once', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('a', 10, 1_000);
  begin('b', 11, 2_000);
  rules.proven({ member: 'b', term: 11, atMs: 2_500, remainingMs: 5_000 });
  assert.deepEqual(rules.broken, [], "nothing proves yet that a's authority went on");
  rules.proven({ member: 'a', term: 10, atMs: 2_400, remainingMs: 5_000 });
  rules.proven({ member: 'a', term: 10, atMs: 2_600, remainingMs: 5_000 });
  assert.equal(rules.broken.length, 1);
  assert.match(rules.broken[0], /both had authority/);
});

test('news of an end that comes after the fence does not stretch the authority', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('a', 10, 1_000, 2_000);
  begin('b', 11, 3_500);
  rules.proven({ member: 'b', term: 11, atMs: 4_500, remainingMs: 5_000 });
  rules.ended('a', 4_000);
  assert.deepEqual(rules.broken, []);
});

test('an end that nobody saw counts from what was proven last', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('worker', 10, 1_000);
  rules.proven({ member: 'worker', term: 10, atMs: 2_000, remainingMs: 5_000 });
  begin('b', 11, 2_200);
  rules.proven({ member: 'b', term: 11, atMs: 2_900, remainingMs: 5_000 });
  rules.endedUnseen('worker');
  assert.deepEqual(rules.broken, []);
});

test('a failover over the limit is told', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  rules.failover('the crash', 12_001);
  assert.match(rules.broken[0], /the crash took 12001 ms/);
});

const FLEET = [
  { name: 'node-1', runtime: 'Node' }, { name: 'node-2', runtime: 'Node' }, { name: 'deno', runtime: 'Deno' },
];

test('a runtime leads by any of its members', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  const begin = began(rules);
  begin('node-2', 10, 1_000);
  assert.equal(rules.hasLed('Node', FLEET), true);
  assert.equal(rules.hasLed('Deno', FLEET), false);
  begin('deno', 11, 7_000);
  rules.everyRuntimeLed(FLEET);
  assert.deepEqual(rules.broken, []);
});

test('a runtime that never led is told by its name, once for all its members', () => {
  const rules = new Rules({ failoverLimitMs: 12_000 });
  began(rules)('deno', 10, 1_000);
  rules.everyRuntimeLed(FLEET);
  rules.everyRuntimeLed(FLEET);
  assert.deepEqual(rules.broken, ['Node never led: every runtime must lead once']);
});
