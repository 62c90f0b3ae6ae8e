// The live run is only worth its exit code if its checker and its report see what is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './checker.mjs';
import { FAULTS } from './proxy.mjs';
import { failuresOf } from './report.mjs';

const MARGIN_MS = 250;

/** A member's act with the look that it was made on; it arrives a little later. */
const act = (member, token, lookMs, remainingMs = 1_000, more = {}) =>
  ({ event: 'act', accepted: true, member, session: `${member}-1`, token, lookMs, remainingMs, atMs: lookMs + 50, ...more });
const end = (member, token, endMs) => ({ event: 'end', member, session: `${member}-1`, token, endMs });
const judge = (...entries) => check(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), { marginMs: MARGIN_MS });
const refused = { accepted: false };
const [first, second] = [act('a', 10, 1_000), act('b', 11, 2_500)];
/** An act of the first term that arrives when the second one has begun. */
const late = (more = {}) => act('a', 10, 1_100, 1_000, { atMs: 2_700, ...more });

test('each rule is seen to fail, and not to fail where all is well', () => {
  for (const [name, entries, rules] of [
    ['an act that comes after one of a later term and is accepted', [first, second, late()], ['order']],
    ['an act that was refused for no reason', [first, act('a', 10, 1_100, 1_000, refused)], ['refusal']],
    ['one token of two members', [first, act('b', 10, 9_000)], ['token', 'growth']],
    ['two leaders for no longer than the margin', [first, act('b', 11, 2_000 - MARGIN_MS)], []],
    ['two leaders for longer, in the look of an act that was refused', [act('b', 11, 1_749), act('a', 10, 1_000, 1_000, { ...refused, atMs: 8_000 })], ['overlap']],
    ['a term that follows one which was given up', [first, end('a', 10, 1_300), act('b', 11, 1_350)], []],
    ['acts without authority, refused or accepted by their token', [first, act('a', 10, 2_200, 0), second, act('a', 10, 3_000, 0, refused)], []],
  ]) assert.deepEqual(judge(...entries).violations.map(({ rule }) => rule), rules, name);
  const { violations } = check(`${JSON.stringify(first)}\n${JSON.stringify(first).replace('1000', '"1000"')}\n`, { marginMs: MARGIN_MS });
  assert.equal(violations[0].sentence, 'line 2 of the log is damaged');
  const { terms: _, violations: none, ...figures } = judge(first, second, late(refused), act('a', 10, 3_000, 0, refused), act('a', 12, 3_900));
  assert.deepEqual([none, figures], [[], { accepted: 3, refused: 2, zombies: 1, failovers: 2, longestGapMs: 1_500, nearestMs: 400 }]);
});

test('the live run fails for each thing that went wrong, and a minute also for what never happened', () => {
  const fired = Object.fromEntries([...Object.keys(FAULTS), 'kill', 'stop'].map((name) => [name, 1]));
  const good = {
    violations: [], broken: [], leaked: false, healedMs: 900, healLimitMs: 1_000, seconds: 60, fired, zombies: 1, runtimes: [{ runtime: 'Bun 1', terms: 2 }],
  };
  const empty = { fired: { ...fired, lost: 0 }, zombies: 0, runtimes: [{ runtime: 'Bun 1', terms: 0 }] };
  for (const [changes, ...expected] of [
    [{}],
    [{ violations: [{ sentence: 'out of order' }], broken: ['bun ended with 1'], leaked: true }, 'out of order', 'bun ended with 1', 'a secret or a signature is in the log'],
    [{ healedMs: undefined }, 'nobody acted within 1000 ms after the last fault: nor in twice that time'],
    [{ error: 'waited 60 s', healedMs: undefined, zombies: 0 }, 'waited 60 s'],
    [empty, 'the fault "lost" never did its work', 'Bun 1 never led', 'no zombie came to the resource, so nothing shows that it refuses them'],
    [{ ...empty, seconds: 59 }],
  ]) assert.deepEqual(failuresOf({ ...good, ...changes }).map(({ sentence }) => sentence), expected);
});
