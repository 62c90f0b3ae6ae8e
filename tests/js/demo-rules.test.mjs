// The demo is only worth its exit code if its judge sees what is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rules } from '../../js/demo/rules.mjs';

const report = (call) => (member, term, atMs, remainingMs = 5_000) => (rules) => rules[call]({ member, term, atMs, remainingMs });
const [began, proven, again] = ['acquired', 'proven', 'shownAgain'].map(report);
const ended = (member, atMs) => (rules) => rules.ended(member, atMs);
const unseen = (member) => (rules) => rules.endedUnseen(member);
const failover = (what, ms) => (rules) => rules.failover(what, ms);
const FLEET = [{ name: 'node-1', runtime: 'Node' }, { name: 'node-2', runtime: 'Node' }, { name: 'deno', runtime: 'Deno' }];
const everyRuntime = (rules) => rules.everyRuntimeLed(FLEET);
const BOTH = /both had authority/;

for (const [name, reports, ...broken] of [
  ['terms that grow and follow each other break nothing',
    [began('a', 10, 1_000), proven('a', 10, 3_000), ended('a', 4_000), began('b', 11, 4_500), failover('a stop', 500)]],
  ['a term that does not grow is told, even when its news comes late', [began('b', 10, 20_000), began('a', 10, 1_000)], /terms must grow/],
  ['a term that is shown again counts beside the others',
    [began('a', 10, 1_000), unseen('a'), again('a', 10, 2_000), proven('a', 10, 4_000), began('b', 11, 3_000), proven('b', 11, 3_500)], BOTH],
  ['authority that two members report for one instant is told once',
    [began('a', 10, 1_000), began('b', 11, 2_000), proven('b', 11, 2_500), proven('a', 10, 2_400), proven('a', 10, 2_600)], BOTH],
  ['news of an end that comes after the fence does not stretch the authority',
    [began('a', 10, 1_000, 2_000), began('b', 11, 3_500), proven('b', 11, 4_500), ended('a', 4_000)]],
  ['a failover over the limit is told', [failover('the crash', 12_001)], /the crash took 12001 ms/],
  ['a runtime that never led is told once for all its members', [began('deno', 10, 1_000), everyRuntime, everyRuntime], /^Node never led: every runtime must lead once$/],
]) {
  test(name, () => {
    const rules = new Rules({ failoverLimitMs: 12_000 });
    for (const one of reports) one(rules);
    assert.equal(rules.broken.length, broken.length, rules.broken.join());
    broken.forEach((sentence, index) => assert.match(rules.broken[index], sentence));
  });
}
