// Each rule of the checker is seen to fail, and not to fail where all is well.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSlots } from './slots-checker.mjs';

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

  killed(member, ...ended) {
    this.entries.push({ event: 'fault', kind: 'kill', on: member, ended });
    return this;
  }

  rules(policy, last = Math.max(...this.entries.map(({ slot }) => slot ?? 0))) {
    return checkSlots(this.entries, { policy, attempts: 2, last }).violations.map(({ rule }) => rule);
  }
}

const story = () => new Story();
/** A first slot whose job was answered so and whose closing record says so. */
const failed = (status, failures) => story().claim('a1', 101, 1).job('a', 101, 1, { status }).close('a1', 101, 1, { done: false, failures });
/** A job that ended so, then the next slot by this session, without a closing record between. */
const unclosed = (session, status) => story().claim('a1', 101, 1).job('a', 101, 1, { status }).slot(session, 102, 2);
/** A call with an old token that the endpoint took or refused. */
const zombie = (accepted) => story().claim('a1', 101, 1).slot('b1', 102, 2).job('a', 101, 1, { accepted, status: accepted ? 200 : 409 });
const answered = (job) => story().claim('a1', 101, 1).job('a', 101, 1, job).close('a1', 101, 1);

const BOTH = ['atMostOnce', 'atLeastOnce'];
const [MOST, LEAST] = BOTH.map((policy) => [policy]);

/** What went on, under which policies, and the rules that it breaks; `last` is the last slot that was due. */
const CASES = [
  ['slots one after the other', BOTH, story().slot('a1', 101, 1).slot('b1', 102, 2).trigger('a', 2, 'taken').trigger('b', 2, 'skipped').trigger('b', 2, 'unknown'), []],
  ['a record that replaced none', BOTH, story().slot('a1', 101, 1).claim('b1', 102, 1, { condition: '"else"' }), ['chain']],
  ['a slot that falls', LEAST, story().slot('a1', 101, 1).slot('a2', 102, 2).claim('b1', 103, 1), ['growth', 'lost']],
  ['a record without a slot', MOST, story().slot('a1', 101, 1).claim('a2', 102, undefined), ['growth']],
  ['a session that changes within a term', MOST, story().claim('a1', 101, 1).claim('b1', 101, 1), ['growth']],
  ['failures that are forgotten', LEAST, story().claim('a1', 101, 1).close('a1', 101, 1, { done: false, failures: 1 }).slot('b1', 102, 1), ['growth']],
  ['a token that goes back', BOTH, story().slot('a1', 105, 1).slot('b1', 101, 2), ['token', 'fence']],
  ['a slot that nobody claims', MOST, story().slot('a1', 101, 1), ['leftOut'], 2],
  ['a slot of a second session after it was done', LEAST, story().slot('a1', 101, 1).claim('b1', 102, 1).close('b1', 102, 1), ['claimed', 'done']],
  ['a slot of a second session after it was given up', LEAST,
    story().claim('a1', 101, 1).close('a1', 101, 1, { done: false, failures: 2 }).claim('b1', 102, 1, { failures: 2 }), ['claimed']],
  ['a session that claims once more what it claimed too late', BOTH, story().claim('a1', 101, 1).slot('a1', 102, 1), []],
  ['a later slot before the rerun of one that failed', LEAST, failed(500, 1).slot('b1', 102, 2), ['overtaken', 'lost']],
  ['a later slot after one that was given up', LEAST, failed(500, 2).slot('b1', 102, 2), []],
  ['a session that goes on without its closing record', BOTH, unclosed('a1', 200), []],
  ['a session that goes on after its job failed', LEAST, unclosed('a1', 500), ['overtaken', 'lost']],
  ['a slot that begins twice', MOST, story().claim('a1', 101, 1).job('a', 101, 1).slot('b1', 102, 1), ['claimed', 'twice']],
  ['a slot that is run again', LEAST, story().claim('a1', 101, 1).job('a', 101, 1).slot('b1', 102, 1), []],
  ['a token that begins twice', LEAST, story().slot('a1', 101, 1).job('a', 101, 1), ['twice']],
  ['a job without a claim', LEAST, story().slot('a1', 101, 1).slot('a2', 102, 2).job('b', 103, 2), ['unclaimed']],
  ['a job of another slot than was claimed', LEAST,
    story().slot('a1', 101, 1).claim('a2', 102, 2).job('a', 102, 1).close('a2', 102, 2, { done: false, failures: 2 }), ['unclaimed']],
  ['a job with the token of somebody else', MOST, story().claim('a1', 101, 1).job('b', 101, 1).close('a1', 101, 1), ['unclaimed']],
  ['done, of a job that failed', MOST, answered({ status: 500 }), ['done']],
  ['done, in the claim itself', MOST, story().claim('a1', 101, 1, { done: true }).job('a', 101, 1), ['done']],
  ['a slot that never ends well', LEAST, failed(500, 1), ['lost']],
  ['a slot that ends well and is left undone', LEAST, failed(200, 1), ['lost']],
  ['a lower token that is accepted', MOST, zombie(true), ['fence']],
  ['taken, of a slot before one that was claimed', BOTH, story().slot('a1', 101, 1).slot('a2', 102, 2).trigger('b', 1, 'taken'), []],
  ['taken, of a slot after all that were claimed', MOST, story().slot('a1', 101, 1).trigger('b', 2, 'taken'), ['report'], 1],
  ['a trigger without a report', BOTH, story().slot('a1', 101, 1).trigger('a', 1), ['silent']],
  ['a trigger whose member was killed under it', BOTH, story().slot('a1', 101, 1).trigger('a', 1).killed('a', 2), []],
];

test('each rule is seen to fail, and not to fail where all is well', () => {
  for (const [name, policies, told, rules, last] of CASES) {
    for (const policy of policies) assert.deepEqual(told.rules(policy, last), rules, `${policy}: ${name}`);
  }
});

const RUN = { slot: 1, term: 101, outcome: 'done', recorded: true, status: 200 };
const UNSAID = { recorded: false, status: undefined };
const LATER = { ...RUN, slot: 2, term: 102, outcome: 'failed', recorded: false, status: 500 };
const done = () => story().claim('a1', 101, 1).job('a', 101, 1).close('a1', 101, 1);

/** What a member reports of slot 1, held against what was seen of it. */
const REPORTS = [
  ['what was', done(), ['done', [RUN]], 0],
  ['an error', done(), ['error', []], 1],
  ['skipped, and that it ran it', done(), ['skipped', [RUN]], 1],
  ['that it ran it twice', done(), ['done', [RUN, RUN]], 1],
  ['taken, before any claim', done(), ['taken', [], { atMs: 5 }], 1],
  ['a term that never was', done(), ['lost', [{ ...RUN, ...UNSAID, term: 102, outcome: 'lost' }]], 1],
  ['another answer than the endpoint gave', done(), ['done', [{ ...RUN, status: 204 }]], 1],
  ['lost, where the record says done', done(), ['lost', [{ ...RUN, ...UNSAID, outcome: 'lost' }]], 1],
  ['done and recorded, where the record does not say so', failed(200), ['done', [RUN]], 1],
  ['taken, where it ran a later slot', story().slot('a1', 101, 1).claim('b1', 102, 2).job('b', 102, 2, { status: 500 }), ['taken', [LATER]], 0],
  ['skipped, where it ran a later slot', story().slot('a1', 101, 1).claim('b1', 102, 2).job('b', 102, 2, { status: 500 }), ['skipped', [LATER]], 1],
];

test('what a member reports is held against the records and the jobs', () => {
  for (const [name, told, report, count] of REPORTS) {
    assert.deepEqual(told.trigger('a', 1, ...report).rules('atMostOnce'), Array(count).fill('report'), name);
  }
});

test('records are in the order of their conditions, however late they were seen; calls in the order of the log', () => {
  const told = story().slot('a1', 101, 1).slot('b1', 102, 2);
  const [seed, ...rest] = told.entries;
  told.entries = [seed, ...rest.reverse()];
  assert.deepEqual(told.rules('atMostOnce'), ['fence']);
});
