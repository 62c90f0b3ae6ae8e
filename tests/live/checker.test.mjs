// The live run is only worth its exit code if its checker sees what is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './checker.mjs';

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

/** What was written down, and the rules that it breaks. */
const CASES = [
  ['an act that comes after one of a later term and is accepted', [first, second, late()], ['order']],
  ['a zombie that the resource refused', [first, second, late(refused)], []],
  ['an act that was refused for no reason', [first, act('a', 10, 1_100, 1_000, refused)], ['refusal']],
  ['one token of two members', [first, act('b', 10, 9_000)], ['token', 'growth']],
  ['a term that begins later with a lower token, and is refused', [first, act('b', 9, 5_000, 1_000, refused)], ['growth']],
  ['two leaders for no longer than the margin', [first, act('b', 11, 2_000 - MARGIN_MS)], []],
  ['two leaders for longer than the margin', [first, act('b', 11, 2_000 - MARGIN_MS - 1)], ['overlap']],
  ['two leaders whose terms are not neighbours',
    [act('a', 10, 1_000, 5_000), act('b', 11, 5_600, 10), act('c', 12, 5_650, 10), act('d', 13, 5_999 - MARGIN_MS)], ['overlap']],
  ['two leaders, in the look of an act that was refused and came late',
    [act('b', 11, 1_500), act('a', 10, 1_000, 1_000, { ...refused, atMs: 8_000 })], ['overlap']],
  ['a term that follows one which was given up', [first, end('a', 10, 1_300), act('b', 11, 1_350)], []],
  ['an end that is told of another term', [first, end('a', 9, 1_300), act('b', 11, 1_350)], ['overlap']],
  ['acts without authority, refused or accepted by their token', [first, act('a', 10, 2_200, 0), second, act('a', 10, 3_000, 0, refused)], []],
];

test('each rule is seen to fail, and not to fail where all is well', () => {
  for (const [name, entries, rules] of CASES) assert.deepEqual(judge(...entries).violations.map(({ rule }) => rule), rules, name);
});

test('terms, failovers and zombies are counted, and looks of a term count in whatever order their acts arrive', () => {
  const { violations, terms, ...figures } = judge(
    act('a', 10, 1_200), act('a', 10, 1_000, 1_000, { atMs: 1_300 }), { event: 'fault', kind: 'kill' }, second, late(refused),
    act('a', 10, 3_000, 0, refused), act('b', 11, 2_600), act('a', 12, 3_900, 1_000, { session: 'a-2' }),
  );
  assert.deepEqual(violations, []);
  assert.deepEqual(terms.map(({ member, fromMs, untilMs }) => [member, fromMs, untilMs]), [['a', 1_000, 2_200], ['b', 2_500, 3_600], ['a', 3_900, 4_900]]);
  assert.deepEqual(figures, { accepted: 5, refused: 2, zombies: 1, failovers: 2, longestGapMs: 1_300, nearestMs: 300 });
});

test('a violation is told with who, how long, and the lines that show it', () => {
  const [order] = judge(first, second, late()).violations;
  assert.deepEqual(order.lines.map((line) => JSON.parse(line).token), [11, 10]);
  const [overlap] = judge(first, act('b', 11, 2_000 - MARGIN_MS - 1)).violations;
  assert.match(overlap.sentence, /a \(token 10\) and b \(token 11\) both had authority for 251 ms/);
});

test('a damaged line is told by its number', () => {
  const good = JSON.stringify(first);
  for (const line of ['{"event":"act"', 'null', '{"event":"other"}', good.replace('1000', '"1000"'), good.replace('true', '1'), '']) {
    const { violations } = check(`${good}\n${line}\n${good}\n`, { marginMs: MARGIN_MS });
    assert.deepEqual(violations.map(({ rule, sentence }) => [rule, sentence]), [['log', 'line 2 of the log is damaged']], line);
  }
});
