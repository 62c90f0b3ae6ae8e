// The live runs are only worth their exit codes if their checkers and their reports see what is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './checker.mjs';
import { FAULTS, REQUEST_FAULTS } from './proxy.mjs';
import { failuresOf } from './report.mjs';
import { checkSlots } from './slots-checker.mjs';
import { FATES, MEMBERS } from './slots-plan.mjs';
import { failuresOf as slotFailuresOf } from './slots-report.mjs';

/** A member's act with the look that it was made on; it arrives a little later. */
const act = (member, token, lookMs, remainingMs = 1_000, more = {}) =>
  ({ event: 'act', accepted: true, member, session: `${member}-1`, token, lookMs, remainingMs, atMs: lookMs + 50, ...more });
const end = (member, token, endMs) => ({ event: 'end', member, session: `${member}-1`, token, endMs });
const judge = (...entries) => check(entries);
const refused = { accepted: false };
const [first, second] = [act('a', 10, 1_000), act('b', 11, 2_500)];
/** An act of the first term that arrives when the second one has begun. */
const late = (more = {}) => act('a', 10, 1_100, 1_000, { atMs: 2_700, ...more });

test('each rule is seen to fail, and not to fail where all is well', () => {
  for (const [name, entries, rules] of [
    ['an act that comes after one of a later term and is accepted', [first, second, late()], ['order']],
    ['an act that was refused for no reason', [first, act('a', 10, 1_100, 1_000, refused)], ['refusal']],
    ['one token of two members', [first, act('b', 10, 9_000)], ['token', 'growth']],
    ['a leader that begins as another ends', [first, act('b', 11, 2_000)], []],
    ['two leaders, in the look of an act that was refused', [act('b', 11, 1_999), act('a', 10, 1_000, 1_000, { ...refused, atMs: 8_000 })], ['overlap']],
    ['a term that follows one which was given up', [first, end('a', 10, 1_300), act('b', 11, 1_350)], []],
    ['acts without authority, refused or accepted by their token', [first, act('a', 10, 2_200, 0), second, act('a', 10, 3_000, 0, refused)], []],
  ]) assert.deepEqual(judge(...entries).violations.map(({ rule }) => rule), rules, name);
  const { violations } = judge(first, { ...first, lookMs: '1000' });
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

/** Writes down a run in which all goes well, but for what a test changes. `a` claims with session a1 unless told otherwise. */
class Story {
  entries = [{ event: 'write', member: 'init', session: '', term: 100, slot: 0, done: true, released: true, etag: '"0"' }];
  #run = 0;
  #trigger = 0;
  #version = 0;

  claim(session, term, slot, more = {}) {
    const condition = this.entries.findLast(({ event }) => event === 'write').etag;
    const write = { event: 'write', member: session[0], session, term, slot, done: false, released: false, condition, etag: `"${(this.#version += 1)}"`, sentMs: 10, ...more };
    this.entries.push(write);
    return this;
  }

  close(session, term, slot, more = {}) {
    return this.claim(session, term, slot, { done: true, released: true, ...more });
  }

  job(member, token, slot, { status = 200, accepted = true } = {}) {
    const whose = { run: (this.#run += 1), slot, token, member };
    this.entries.push({ event: 'begin', ...whose, accepted }, { event: 'end', ...whose, status });
    return this;
  }

  trigger(member, slot, outcome, runs = [], more = {}) {
    const id = (this.#trigger += 1);
    this.entries.push({ event: 'trigger', id, member, slot });
    if (outcome !== undefined) this.entries.push({ event: 'report', id, member, slot, outcome, runs, atMs: 20, ...more });
    return this;
  }

  /** One slot from its trigger to its end. */
  slot(session, term, slot) {
    this.claim(session, term, slot).job(session[0], term, slot).close(session, term, slot);
    return this.trigger(session[0], slot, 'done', [{ slot, term, outcome: 'done', recorded: true, status: 200 }]);
  }

  rules(policy, last = Math.max(...this.entries.map(({ slot }) => slot ?? 0))) {
    return checkSlots(this.entries, { policy, attempts: 2, last }).violations.map(({ rule }) => rule);
  }
}

const story = () => new Story();
const oneSlot = () => story().slot('a1', 101, 1);
/** A first slot whose job was answered so and whose closing record says so. */
const failed = (status, failures) => story().claim('a1', 101, 1).job('a', 101, 1, { status }).close('a1', 101, 1, { done: false, failures });
/** A job that ended so, then the next slot by this session, without a closing record between. */
const unclosed = (session, status) => story().claim('a1', 101, 1).job('a', 101, 1, { status }).slot(session, 102, 2);

const BOTH = ['atMostOnce', 'atLeastOnce'];
const [MOST, LEAST] = BOTH.map((policy) => [policy]);

/** What went on, under which policies, and the rules that it breaks; `last` is the last slot that was due. */
const CASES = [
  ['slots one after the other', BOTH, oneSlot().slot('b1', 102, 2).trigger('a', 2, 'taken').trigger('b', 2, 'skipped').trigger('b', 1, 'taken'), []],
  ['a record that replaced none', BOTH, oneSlot().claim('b1', 102, 1, { condition: '"else"' }), ['chain']],
  ['a slot that falls', MOST, oneSlot().slot('a2', 102, 2).claim('b1', 103, 1), ['growth', 'claimed']],
  ['a session that changes within a term', MOST, story().claim('a1', 101, 1).claim('b1', 101, 1), ['growth']],
  ['failures that are forgotten', LEAST, story().claim('a1', 101, 1).close('a1', 101, 1, { done: false, failures: 1 }).slot('b1', 102, 1), ['growth']],
  ['a token that goes back', BOTH, story().slot('a1', 105, 1).slot('b1', 101, 2), ['token', 'fence']],
  ['a slot that nobody claims', MOST, oneSlot(), ['leftOut'], 2],
  ['a slot of a second session after it was done', LEAST, oneSlot().claim('b1', 102, 1).close('b1', 102, 1), ['claimed', 'done']],
  ['a session that claims once more what it claimed too late', BOTH, story().claim('a1', 101, 1).slot('a1', 102, 1), []],
  ['a later slot before the rerun of one that failed', LEAST, failed(500, 1).slot('b1', 102, 2), ['overtaken', 'lost']],
  ['a later slot after one that was given up', LEAST, failed(500, 2).slot('b1', 102, 2), []],
  ['a session that goes on without its closing record', BOTH, unclosed('a1', 200), []],
  ['a slot that begins twice', MOST, story().claim('a1', 101, 1).job('a', 101, 1).slot('b1', 102, 1), ['claimed', 'twice']],
  ['a slot that is run again', LEAST, story().claim('a1', 101, 1).job('a', 101, 1).slot('b1', 102, 1), []],
  ['a job with the token of somebody else', MOST, story().claim('a1', 101, 1).job('b', 101, 1).close('a1', 101, 1), ['unclaimed']],
  ['a slot that ends well and is left undone', LEAST, failed(200, 1), ['lost']],
  ['a lower token that is accepted', MOST, story().claim('a1', 101, 1).slot('b1', 102, 2).job('a', 101, 1), ['fence']],
  ['a trigger without a report', BOTH, oneSlot().trigger('a', 1), ['silent']],
];

test('each rule for slots is seen to fail, and not to fail where all is well', () => {
  for (const [name, policies, told, rules, last] of CASES) {
    for (const policy of policies) assert.deepEqual(told.rules(policy, last), rules, `${policy}: ${name}`);
  }
  // What a member reports is held against the records and the jobs.
  const RUN = { slot: 1, term: 101, outcome: 'done', recorded: true, status: 200 };
  for (const report of [
    ['error', []], ['skipped', [RUN]], ['taken', [], { atMs: 5 }], ['lost', [{ ...RUN, term: 102, outcome: 'lost', recorded: false, status: undefined }]],
    ['done', [{ ...RUN, status: 204 }]], ['lost', [{ ...RUN, outcome: 'lost' }]],
  ]) assert.deepEqual(oneSlot().trigger('a', 1, ...report).rules('atMostOnce'), ['report'], JSON.stringify(report));
});

test('slots fail for each thing that went wrong, and a hundred of them for what neither policy met', () => {
  const ones = (names) => Object.fromEntries(names.map((name) => [name, 1]));
  const well = (policy) => ({
    policy, broken: [], violations: [], entries: [], fired: ones(Object.keys(REQUEST_FAULTS)),
    happened: ones(FATES.map(({ kind, at }) => `${kind} ${at}`)), counts: { begun: ones(MEMBERS), refused: 1, reruns: 1 },
  });
  const nothing = { ...well('atMostOnce'), fired: {}, happened: {}, counts: { begun: {}, refused: 0, reruns: 0 } };
  const total = Object.keys(REQUEST_FAULTS).length + FATES.length + MEMBERS.length + 2;
  for (const [outcomes, slots, rules] of [
    [[nothing, well('atLeastOnce')], 100, []],
    [[nothing, nothing], 100, Array(total).fill('complete')],
    [[nothing, nothing], 99, []],
    [[{ ...nothing, error: 'waited', broken: ['node-1 ended with 1'] }], 100, ['member', 'end']],
  ]) assert.deepEqual(slotFailuresOf(outcomes, slots).map(({ rule }) => rule), rules);
});
