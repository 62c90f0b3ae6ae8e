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
const rules = (...entries) => judge(...entries).violations.map(({ rule }) => rule);

test('terms that follow each other break nothing, and are counted', () => {
  const { violations, terms, ...figures } = judge(
    act('a', 10, 1_000), act('a', 10, 1_200), { event: 'fault', kind: 'kill' }, act('b', 11, 2_500), act('b', 11, 2_600),
    act('a', 12, 3_900, 1_000, { session: 'a-2' }),
  );
  assert.deepEqual(violations, []);
  assert.deepEqual(terms.map(({ member, fromMs, untilMs }) => [member, fromMs, untilMs]), [['a', 1_000, 2_200], ['b', 2_500, 3_600], ['a', 3_900, 4_900]]);
  assert.deepEqual(figures, { accepted: 5, refused: 0, zombies: 0, failovers: 2, longestGapMs: 1_300, nearestMs: 300 });
});

test('an empty log breaks nothing', () => {
  assert.deepEqual(check('', { marginMs: MARGIN_MS }).violations, []);
});

test('two accepted acts of different terms out of order are told with both lines', () => {
  const { violations } = judge(act('a', 10, 1_000), act('b', 11, 2_500), act('a', 10, 1_100, 1_000, { atMs: 2_700 }));
  assert.deepEqual(violations.map(({ rule }) => rule), ['order']);
  assert.match(violations[0].sentence, /of a with token 10 was accepted after one of b with token 11/);
  assert.deepEqual(violations[0].lines.map((line) => JSON.parse(line).token), [11, 10]);
});

test('each act out of order is told, and the one in order after it is not', () => {
  const late = (atMs) => act('a', 10, 1_100, 1_000, { atMs });
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 11, 2_500), late(2_700), late(2_800), act('b', 11, 2_900)), ['order', 'order']);
});

test('a zombie that the resource refused is counted and breaks nothing', () => {
  const { violations, refused, zombies } = judge(act('a', 10, 1_000), act('b', 11, 2_500), act('a', 10, 1_100, 1_000, { atMs: 2_700, accepted: false }));
  assert.deepEqual([violations, refused, zombies], [[], 1, 1]);
});

test('an act that was refused for no reason is told', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), act('a', 10, 1_100, 1_000, { accepted: false })), ['refusal']);
});

test('one token of two sessions is told, of two members and of one that was restarted', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 10, 9_000)), ['token', 'growth']);
  assert.deepEqual(rules(act('a', 10, 1_000), act('a', 10, 9_000, 1_000, { session: 'a-2' })), ['token', 'growth']);
});

test('one token of two sessions is told though the second was refused', () => {
  assert.ok(rules(act('a', 10, 1_000), act('c', 11, 2_500), act('b', 10, 9_000, 1_000, { accepted: false })).includes('token'));
});

test('a term that begins later with a lower token is told, though the resource refused it', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 9, 5_000, 1_000, { accepted: false })), ['growth']);
});

test('a term that comes back after another one is told', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 11, 2_500), act('a', 10, 4_000, 1_000, { accepted: false })), ['overlap']);
});

test('authority of two terms at once is told beyond the margin, and not within it', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 11, 2_000 - MARGIN_MS)), []);
  const { violations } = judge(act('a', 10, 1_000), act('b', 11, 2_000 - MARGIN_MS - 1));
  assert.deepEqual(violations.map(({ rule }) => rule), ['overlap']);
  assert.match(violations[0].sentence, /a \(token 10\) and b \(token 11\) both had authority for 251 ms/);
});

test('an overlap of terms that are not neighbours is told', () => {
  const { violations } = judge(act('a', 10, 1_000, 5_000), act('b', 11, 5_600, 10), act('c', 12, 5_650, 10), act('d', 13, 5_999 - MARGIN_MS));
  assert.deepEqual(violations.map(({ rule, sentence }) => [rule, / and (\w)/.exec(sentence)[1]]), [['overlap', 'd']]);
});

test('an overlap shows in the looks of acts that were refused, or came late', () => {
  assert.deepEqual(rules(act('b', 11, 1_500, 1_000), act('a', 10, 1_000, 1_000, { accepted: false, atMs: 8_000 })), ['overlap']);
});

test('a member that gave its term up has no authority from then on, and one that did not has it to the end', () => {
  assert.deepEqual(rules(act('a', 10, 1_000), end('a', 10, 1_300), act('b', 11, 1_350)), []);
  assert.deepEqual(rules(act('a', 10, 1_000), act('b', 11, 1_350)), ['overlap']);
});

test('an end that is told late, or of another term, shortens nothing', () => {
  assert.equal(judge(act('a', 10, 1_000), end('a', 10, 9_000)).terms[0].untilMs, 2_000);
  assert.equal(judge(act('a', 10, 1_000), end('a', 9, 1_100)).terms[0].untilMs, 2_000);
});

test('looks of a term count in whatever order their acts arrive', () => {
  const [{ fromMs, untilMs }] = judge(act('a', 10, 1_200), act('a', 10, 1_000, 1_000, { atMs: 1_400 })).terms;
  assert.deepEqual([fromMs, untilMs], [1_000, 2_200]);
});

test('acts without authority show none, and are refused or accepted by their token alone', () => {
  const heedless = act('a', 10, 3_000, 0, { accepted: false });
  const { violations, refused, zombies } = judge(act('a', 10, 1_000), act('a', 10, 2_200, 0), act('b', 11, 2_500), heedless);
  assert.deepEqual([violations, refused, zombies], [[], 1, 0]);
});

test('a damaged line is told by its number', () => {
  const good = JSON.stringify(act('a', 10, 1_000));
  for (const line of ['{"event":"act"', 'null', '{"event":"other"}', good.replace('1000', '"1000"'), good.replace('true', '1'), '']) {
    const { violations } = check(`${good}\n${line}\n${good}\n`, { marginMs: MARGIN_MS });
    assert.deepEqual(violations.map(({ rule, sentence }) => [rule, sentence]), [['log', 'line 2 of the log is damaged']], line);
  }
});
