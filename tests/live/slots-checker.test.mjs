// Each rule of the checker is seen to fail, and not to fail where all is well.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSlots } from './slots-checker.mjs';

/** Writes down a run in which all goes well, but for what a test changes. */
class Story {
  entries = [{ event: 'write', member: 'init', session: '', term: 100, slot: 0, done: true, released: true, etag: '"0"' }];
  #run = 0;
  #trigger = 0;
  #version = 0;

  write(member, session, term, slot, more = {}) {
    const condition = this.entries.findLast(({ event }) => event === 'write').etag;
    const write = { event: 'write', member, session, term, slot, done: false, released: false, condition, etag: `"${(this.#version += 1)}"`, sentMs: 10, ...more };
    this.entries.push(write);
    return this;
  }

  close(member, session, term, slot, more = {}) {
    return this.write(member, session, term, slot, { done: true, released: true, ...more });
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
  slot(member, session, term, slot) {
    this.write(member, session, term, slot).job(member, term, slot).close(member, session, term, slot);
    return this.trigger(member, slot, 'done', [{ slot, term, outcome: 'done', recorded: true, status: 200 }]);
  }

  rules(policy = 'atMostOnce', more = {}) {
    const last = Math.max(...this.entries.map(({ slot }) => slot ?? 0));
    return checkSlots(this.entries, { policy, attempts: 2, last, ...more }).violations.map(({ rule }) => rule);
  }
}

const story = () => new Story();
const both = (told, rules) => {
  assert.deepEqual(told.rules('atMostOnce'), rules);
  assert.deepEqual(told.rules('atLeastOnce'), rules);
};

test('slots one after the other break nothing, and are counted', () => {
  const told = story().slot('a', 'a1', 101, 1).slot('b', 'b1', 102, 2).trigger('a', 2, 'taken').trigger('b', 2, 'skipped').trigger('b', 2, 'unknown');
  both(told, []);
  const { counts } = checkSlots(told.entries, { policy: 'atMostOnce', attempts: 2, last: 2 });
  assert.deepEqual(counts, {
    triggers: 5, claims: 2, begun: { a: 1, b: 1 }, statuses: { 200: 2 }, refused: 0, reruns: 0, reclaimed: 0, unbegun: 0,
    outcomes: { done: 2, taken: 1, skipped: 1, unknown: 1 }, unrecorded: 0,
  });
});

test('records in the order of their conditions, however late they were seen', () => {
  const told = story().slot('a', 'a1', 101, 1).slot('b', 'b1', 102, 2);
  const [seed, ...rest] = told.entries;
  told.entries = [seed, ...rest.reverse()];
  assert.deepEqual(told.rules('atMostOnce'), ['fence'], 'only the order of the calls is the order of the log');
});

test('chain: two records that replaced one, and one that replaced none', () => {
  both(story().slot('a', 'a1', 101, 1).write('b', 'b1', 102, 1, { condition: '"0"' }), ['chain']);
  both(story().slot('a', 'a1', 101, 1).write('b', 'b1', 102, 1, { condition: '"else"' }), ['chain']);
});

test('growth: a slot that falls, is missing or changes within a term, and failures that are forgotten', () => {
  assert.ok(story().slot('a', 'a1', 101, 1).slot('a', 'a2', 102, 2).write('b', 'b1', 103, 1).rules('atLeastOnce').includes('growth'));
  assert.ok(story().slot('a', 'a1', 101, 1).write('a', 'a2', 102, undefined).rules().includes('growth'));
  assert.ok(story().write('a', 'a1', 101, 1).write('a', 'a1', 101, 2).rules().includes('growth'));
  assert.ok(story().write('a', 'a1', 101, 1).write('b', 'b1', 101, 1).rules().includes('growth'));
  const forgotten = story().write('a', 'a1', 101, 1).close('a', 'a1', 101, 1, { done: false, failures: 1 }).slot('b', 'b1', 102, 1);
  assert.deepEqual(forgotten.rules('atLeastOnce'), ['growth']);
});

test('token: a claim with a lower token than the one before, or than one long before', () => {
  assert.deepEqual(story().write('a', 'a1', 99, 1).rules(), ['token']);
  assert.deepEqual(story().slot('a', 'a1', 105, 1).write('b', 'b1', 103, 2).write('c', 'c1', 104, 3).rules(), ['token', 'token']);
  both(story().slot('a', 'a1', 105, 1).slot('b', 'b1', 101, 2), ['token', 'fence']);
});

test('leftOut: a slot that is passed over, and one that nobody claims', () => {
  assert.deepEqual(story().slot('a', 'a1', 101, 1).slot('b', 'b1', 102, 3).rules(), ['leftOut', 'leftOut']);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).rules('atMostOnce', { last: 2 }), ['leftOut']);
});

test('claimed: a slot of two sessions at most once, of a second one after it was done or given up at least once', () => {
  const dead = story().write('a', 'a1', 101, 1).slot('b', 'b1', 102, 1);
  assert.deepEqual(dead.rules('atMostOnce'), ['claimed']);
  assert.deepEqual(dead.rules('atLeastOnce'), []);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).write('b', 'b1', 102, 1).close('b', 'b1', 102, 1).rules('atLeastOnce'), ['claimed', 'done']);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).write('a', 'a1', 102, 1).rules(), ['claimed'], 'its own, done before');
  const failed = { done: false, failures: 2 };
  const spent = story().write('a', 'a1', 101, 1).close('a', 'a1', 101, 1, failed).write('b', 'b1', 102, 1, failed);
  assert.deepEqual(spent.rules('atLeastOnce'), ['claimed']);
});

test('a session may claim once more what it claimed too late to run it', () => {
  both(story().write('a', 'a1', 101, 1).slot('a', 'a1', 102, 1), []);
});

test('overtaken: a later slot before the rerun of one that is not done, and none after one that is given up', () => {
  const left = (failures) => story().write('a', 'a1', 101, 1).job('a', 101, 1, { status: 500 }).close('a', 'a1', 101, 1, { done: false, failures }).slot('b', 'b1', 102, 2);
  assert.deepEqual(left(1).rules('atLeastOnce'), ['overtaken', 'lost']);
  assert.deepEqual(left(2).rules('atLeastOnce'), []);
  assert.deepEqual(left(1).rules('atMostOnce'), []);
});

test('a session whose job ended well may go on without its closing write; nobody else may', () => {
  const next = (session, status) => story().write('a', 'a1', 101, 1).job('a', 101, 1, { status }).slot('a', session, 102, 2);
  both(next('a1', 200), []);
  assert.deepEqual(next('a2', 200).rules('atLeastOnce'), ['overtaken', 'lost']);
  assert.deepEqual(next('a1', 500).rules('atLeastOnce'), ['overtaken', 'lost']);
});

test('twice: a slot that begins twice at most once, though the second was refused, and a token under either policy', () => {
  const rerun = story().write('a', 'a1', 101, 1).job('a', 101, 1).slot('b', 'b1', 102, 1);
  assert.deepEqual(rerun.rules('atMostOnce').filter((rule) => rule === 'twice'), ['twice']);
  assert.deepEqual(rerun.rules('atLeastOnce'), []);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).job('a', 101, 1).rules('atLeastOnce'), ['twice']);
});

test('unclaimed: a job without a claim of that slot, or with the token of somebody else', () => {
  assert.deepEqual(story().slot('a', 'a1', 101, 1).slot('a', 'a2', 102, 2).job('b', 103, 2).rules('atLeastOnce'), ['unclaimed']);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).write('a', 'a2', 102, 2).job('a', 102, 1).close('a', 'a2', 102, 2, { done: false, failures: 2 }).rules('atLeastOnce'), ['unclaimed']);
  assert.deepEqual(story().write('a', 'a1', 101, 1).job('b', 101, 1).close('a', 'a1', 101, 1).rules(), ['unclaimed']);
});

test('done: a record that says so of a job that failed, was refused or never came, or in the claim itself', () => {
  const with_ = (job) => story().write('a', 'a1', 101, 1).job('a', 101, 1, job).close('a', 'a1', 101, 1).rules();
  assert.deepEqual(with_({}), []);
  assert.deepEqual(with_({ status: 500 }), ['done']);
  assert.deepEqual(story().write('a', 'a1', 101, 1).close('a', 'a1', 101, 1).rules(), ['done']);
  assert.deepEqual(story().write('a', 'a1', 101, 1, { done: true }).job('a', 101, 1).rules(), ['done']);
});

test('lost: a slot that never ends well at least once, or is left undone, unless its failures are spent', () => {
  const left = (status, failures) => story().write('a', 'a1', 101, 1).job('a', 101, 1, { status }).close('a', 'a1', 101, 1, { done: false, failures });
  assert.deepEqual(left(500, 1).rules('atLeastOnce'), ['lost']);
  assert.deepEqual(left(200, 1).rules('atLeastOnce'), ['lost']);
  assert.deepEqual(left(500, 2).rules('atLeastOnce'), []);
  assert.deepEqual(left(500, 1).rules('atMostOnce'), []);
});

test('fence: a lower token that is accepted, and one that is refused without need', () => {
  const late = (accepted) => story().write('a', 'a1', 101, 1).slot('b', 'b1', 102, 2).job('a', 101, 1, { accepted, status: accepted ? 200 : 409 });
  assert.deepEqual(late(true).rules(), ['fence']);
  assert.deepEqual(late(false).rules(), []);
  assert.deepEqual(story().write('a', 'a1', 101, 1).job('a', 101, 1, { accepted: false, status: 409 }).rules(), ['fence']);
});

test('report: what the records or the jobs deny', () => {
  const run = { slot: 1, term: 101, outcome: 'done', recorded: true, status: 200 };
  const says = (outcome, runs, more) => story().write('a', 'a1', 101, 1).job('a', 101, 1).close('a', 'a1', 101, 1).trigger('a', 1, outcome, runs, more).rules();
  assert.deepEqual(says('done', [run]), []);
  for (const [what, outcome, runs, more] of [
    ['an error', 'error', []],
    ['done without a run', 'done', []],
    ['done, its run failed', 'done', [{ ...run, outcome: 'failed', recorded: false, status: undefined }]],
    ['taken, and ran it', 'taken', [run]],
    ['skipped, and ran it', 'skipped', [run]],
    ['unknown, and ran it', 'unknown', [run]],
    ['twice', 'done', [run, run]],
    ['taken before any claim', 'taken', [], { atMs: 5 }],
    ['a term that never was', 'lost', [{ ...run, term: 102, outcome: 'lost', recorded: false, status: undefined }]],
    ['another answer than the endpoint gave', 'done', [{ ...run, status: 204 }]],
    ['lost, and the record says done', 'lost', [{ ...run, outcome: 'lost', recorded: false, status: undefined }]],
  ]) assert.ok(says(outcome, runs, more).includes('report'), what);
});

test('report: a run that is recorded, without the record or with another one', () => {
  const run = { slot: 1, term: 101, outcome: 'done', recorded: true, status: 200 };
  const open = story().write('a', 'a1', 101, 1).job('a', 101, 1).trigger('a', 1, 'done', [run]);
  assert.deepEqual(open.rules(), ['report', 'report']);
  const undone = story().write('a', 'a1', 101, 1).job('a', 101, 1).close('a', 'a1', 101, 1, { done: false }).trigger('a', 1, 'done', [run]);
  assert.deepEqual(undone.rules(), ['report']);
  const said = [{ ...run, recorded: false, status: undefined }];
  const failed = story().write('a', 'a1', 101, 1).job('a', 101, 1, { status: 500 }).close('a', 'a1', 101, 1, { done: false }).trigger('a', 1, 'done', said);
  assert.deepEqual(failed.rules(), ['report'], 'no job ended well');
});

test('taken is true as soon as a later slot was claimed', () => {
  both(story().slot('a', 'a1', 101, 1).slot('a', 'a2', 102, 2).trigger('b', 1, 'taken'), []);
  assert.deepEqual(story().slot('a', 'a1', 101, 1).trigger('b', 2, 'taken').rules('atMostOnce', { last: 1 }), ['report']);
});

test('report: skipped, where it ran a later slot and so its own was claimed before', () => {
  const run = { slot: 2, term: 102, outcome: 'failed', recorded: false, status: 500 };
  const late = (outcome, more) => story().slot('a', 'a1', 101, 1).write('b', 'b1', 102, 2).job('b', 102, 2, { status: 500 }).trigger('b', 1, outcome, [{ ...run, ...more }]);
  assert.deepEqual(late('taken').rules(), []);
  assert.deepEqual(late('skipped').rules(), ['report']);
});

test('silent: a trigger without a report, unless its member was killed under it', () => {
  const told = story().slot('a', 'a1', 101, 1).trigger('a', 1);
  both(told, ['silent']);
  told.entries.push({ event: 'fault', kind: 'kill', on: 'a', ended: [2] });
  both(told, []);
});
