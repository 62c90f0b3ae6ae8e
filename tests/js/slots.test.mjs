// Cron slots as JavaScript sees them, in virtual time that passes by itself; which slots are run is held in tests/slots.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { virtualRuntime } from './virtual.mjs';

const MINUTE = 60_000;
const FIRST = Date.UTC(2026, 10, 21, 12);
const runtime = virtualRuntime(FIRST + 24 * 60 * MINUTE);
runtime.flow();
const { EdgelectError, MemoryStorage } = await import('edgelect');
const { SlotRuns } = await import('../../js/slots.js');
const { fired, isReleased, member, pause, putRecord, recordIn, slotRecord, started, until, within } = await import('./group.mjs');

/** A group whose slots up to `FIRST` were claimed and done. */
const slotGroup = () => {
  const storage = new MemoryStorage();
  putRecord(storage, slotRecord(FIRST));
  return storage;
};
const slot = (minute) => FIRST + minute * MINUTE;
const failing = () => assert.fail('it ran');
/** Keeps the event loop busy: the clocks go on, and no timer runs. */
const block = (ms) => runtime.jumpTo(Date.now() + ms);
const hangs = (term) => fired(term.signal).then(() => Promise.reject(term.signal.reason));

test('c54 five triggers for one slot run it once, with the slot and a token', async () => {
  const storage = slotGroup();
  const seen = [];
  const job = async (term) => {
    seen.push([term.slot, term.token]);
    assert.ok(term.remaining() > 0 && !term.signal.aborted);
    const state = await term.checkpoint('state.json');
    await state.write('kept');
    return 'value';
  };
  // The first is of another realm, as a test runner or a vm makes it.
  const times = [vm.runInNewContext(`new Date(${slot(1)})`), slot(1), new Date(slot(1)), new Date(slot(1)), slot(1)];
  const results = await Promise.all(times.map((time) => member(storage).runScheduled(time, job)));
  assert.equal(seen.length, 1);
  assert.deepEqual(results.map(({ outcome }) => outcome).sort(), ['done', 'taken', 'taken', 'taken', 'taken']);
  const done = results.find(({ outcome }) => outcome === 'done');
  assert.deepEqual([done.slot, done.term, done.value], [slot(1), seen[0][1], 'value']);
  assert.deepEqual([done.runs.length, done.runs[0].recorded], [1, true]);
  assert.match(results.find(({ outcome }) => outcome === 'taken').reason, /claimed before/);
  const { slotDone, slotResult, slotTookMs } = recordIn(storage);
  assert.deepEqual([recordIn(storage).slot, slotDone, slotResult, isReleased(storage)], [slot(1), true, 'ok', true]);
  assert.ok(slotTookMs < 60_000);
  assert.deepEqual([recordIn(storage, 'state.json').value, recordIn(storage, 'state.json').term], ['kept', done.term]);
});

test('a job that throws, at once or later, is reported, counted, and run again only at least once', async () => {
  for (const job of [() => { throw new Error('boom'); }, async () => { throw new Error('boom'); }]) {
    const storage = slotGroup();
    const policy = 'atLeastOnce';
    const first = await member(storage).runScheduled(slot(1), job, { policy });
    assert.deepEqual([first.outcome, first.error.message], ['failed', 'boom']);
    assert.deepEqual([recordIn(storage).slotDone, recordIn(storage).slotFailures, recordIn(storage).slotResult], [false, 1, 'failed']);
    const { outcome, by, finished, previous } = await member(storage).runScheduled(slot(1), failing);
    assert.deepEqual([outcome, by, finished, previous], ['taken', 'a', true, null]);
    const next = await member(storage).runScheduled(slot(2), (term) => term.slot, { policy });
    assert.deepEqual(next.runs.map((run) => [run.slot, run.value, run.outcome]), [[slot(1), slot(1), 'done'], [slot(2), slot(2), 'done']]);
    assert.ok(next.runs[0].term < next.runs[1].term);
    const told = (outcome) => ({ slot: slot(1), outcome, by: 'a' });
    assert.deepEqual(next.runs.map((run) => run.previous), [told('failed'), told('ok')]);
    assert.deepEqual(next.previous, told('ok'));
  }
});

test('the signal of the caller rejects with its reason, and the slot of a job that throws that, ends late or ignores it is not done', async () => {
  for (const [job, ...recorded] of [
    [hangs, 'stopped', true],
    [(term) => fired(term.signal).then(() => pause(1500)), undefined, false],
    // Nothing is written under it: the lease runs out.
    [() => new Promise(() => {}), undefined, false],
  ]) {
    const storage = slotGroup();
    const controller = new AbortController();
    const options = { policy: 'atLeastOnce', signal: controller.signal };
    const running = member(storage).runScheduled(slot(1), job, options);
    await until(() => recordIn(storage).slot === slot(1));
    controller.abort(new Error('enough'));
    await assert.rejects(within(running), /enough/);
    const { slotDone, slotResult, slotFailures } = recordIn(storage);
    assert.deepEqual([slotDone, slotFailures, slotResult, isReleased(storage)], [false, undefined, ...recorded], String(job));
    await assert.rejects(member(storage).runScheduled(slot(2), failing, options), /enough/);
  }
});

test('a job that was told to stop is done if it ends before its lease does, and lost after that', async ({ mock }) => {
  const { now } = Date;
  /** What a suspend leaves behind: the wall clock alone has gone on. */
  const sleep = () => mock.method(Date, 'now', () => now() + 950);
  for (const [pass, outcome] of [[() => block(800), 'done'], [() => block(950), 'lost'], [sleep, 'lost']]) {
    for (const stop of [(term) => term.resign(), () => process.emit('SIGUSR2')]) {
      const storage = slotGroup();
      const elector = member(storage);
      const forget = elector.stopOnSignals(['SIGUSR2']);
      const result = await within(elector.runScheduled(slot(1), async (term) => {
        // Not while its beginning is told.
        await pause(1);
        stop(term);
        assert.ok(term.signal.aborted);
        pass();
        return 'value';
      }));
      forget();
      mock.restoreAll();
      const done = outcome === 'done';
      assert.deepEqual([result.outcome, result.value, result.recorded], [outcome, done ? 'value' : undefined, done]);
      assert.equal(result.error?.code, done ? undefined : 'EDGELECT_LOST');
      assert.deepEqual([recordIn(storage).slotDone, isReleased(storage)], [done, done]);
    }
  }
});

test('a job that resigns at once hears of it at once', async () => {
  let seen;
  const { outcome } = await member(slotGroup()).runScheduled(slot(1), (term) => {
    term.resign();
    seen = [term.signal.aborted, term.remaining()];
  });
  assert.deepEqual([outcome, seen], ['done', [true, 0]]);
});

test('the signal of a job is over when that of its caller is, before any timer has run', async () => {
  // Within the event that begins the job, and after it.
  for (const wait of [() => {}, () => pause(1)]) {
    const outer = member(new MemoryStorage());
    await outer.init();
    const { signal } = await started(outer);
    const ended = member(slotGroup(), { leaderTimeout: 8_000 }).runScheduled(slot(1), async (term) => {
      await wait();
      block(1_200);
      return [term.remaining(), term.signal.aborted];
    }, { signal });
    // It was told to stop, and ended in time.
    assert.deepEqual((await within(ended)).value, [0, true]);
    await outer.stop();
  }
});

const ENGINE = { alive: true, tick: () => {}, stop: () => {}, standing: () => ({ term: 7, remainingMs: 60_000, proven: true }), endsInTime: () => true };
const acquired = (term, minute) => ({ type: 'acquired', term, slot: slot(minute) });
/** A trigger whose engine tells what `script` says, and then that it has finished: its result, the terms that it ended, and what it told the
 * engine of them. */
const played = async (job, script, { signal, ...engine } = {}) => {
  const [ended, told] = [[], []];
  const newTerm = (token, hooks) => ({ token, ...hooks, signal: { reason: `the end of ${token}` } });
  const endTerm = ({ token }, reason) => void ended.push([token, reason]);
  const runs = new SlotRuns({ job, newTerm, endTerm, signal, unref: true });
  const result = await runs.run((onEvent) => {
    const run = async () => {
      await script(onEvent);
      onEvent({ type: 'finished' });
    };
    return { ...ENGINE, slotEnded: (term, end) => void told.push([term, end]), run: () => void pause(1).then(run), ...engine };
  });
  return { result, ended, told };
};

/** The result of a trigger whose engine says `ends`, after one job that ran well where `ran` says so. */
const scripted = async (ends, { ran }) => {
  const { result } = await played(() => 'ran', async (onEvent) => {
    if (ran) {
      onEvent(acquired(7, 1));
      await pause(1);
      onEvent({ type: 'lost', term: 7, reason: 'done' });
      onEvent({ type: 'slotClosed', term: 7, recorded: true });
    }
    ends.forEach(onEvent);
  });
  return result;
};
const over = (why, outcome, more) => ({ type: 'slotsOver', why, outcome, saysNothing: false, slot: slot(2), leftOut: 2, ...more });
const FAILED = { type: 'failed', message: 'no bucket', status: 404, storeCode: 'NoSuchBucket' };
const TRAP = { type: 'finished', error: Object.assign(new Error('trap'), { code: 'EDGELECT_TRAP' }) };

test('what fails after a job was run is told beside it, and is an error only where none was', async () => {
  for (const [code, ends, fault] of [
    ['EDGELECT_SLOT', [over('ahead', 'skipped', { aheadMs: 5_000 })]],
    ['EDGELECT_STORE', [FAILED, over('store', 'skipped', { saysNothing: true })], 'EDGELECT_STORE'],
    ['EDGELECT_TRAP', [TRAP], 'EDGELECT_TRAP'],
  ]) {
    await assert.rejects(scripted(ends, { ran: false }), { code }, code);
    const { runs, fault: told } = await scripted(ends, { ran: true });
    assert.deepEqual([runs.length, runs[0].recorded, told?.code], [1, true, fault], code);
  }
});

test('a slot that is not run here has its outcome and its reason', async () => {
  for (const [outcome, problem, reason] of [['unknown', null, 'the engine\'s reason'], ['taken', null, 'the engine\'s reason'], ['skipped', 'a 503', 'the engine\'s reason: a 503']]) {
    const result = await scripted([FAILED, over('why', outcome, { problem, reason: 'the engine\'s reason' })], { ran: false });
    assert.deepEqual([result.outcome, result.slot, result.leftOut, result.fault.storeCode], [outcome, slot(2), 2, 'NoSuchBucket']);
    assert.equal(result.reason, reason);
  }
});

test('a slot whose end nobody tells is lost once its fence sees it, however its job ends then', async () => {
  for (const [job, ...lasted] of [[() => new Promise(() => {}), 1_000, 1_100], [() => pause(10_000).then(() => 'late'), 10_000, 10_100]]) {
    let standing = ENGINE.standing();
    const { result, ended, told } = await played(job, async (onEvent) => {
      onEvent(acquired(7, 1));
      await pause(1);
      standing = null;
      await pause(20_000);
    }, { standing: () => standing });
    assert.deepEqual(ended, [[7, 'expired']]);
    assert.deepEqual([result.outcome, result.value, result.error], ['lost', undefined, 'the end of 7']);
    assert.ok(result.durationMs >= lasted[0] && result.durationMs <= lasted[1], `${result.durationMs} ms`);
    assert.deepEqual(told.map(([term, { done }]) => [term, done]), lasted[0] > 1_000 ? [[7, false]] : []);
  }
});

test('the slot that the trigger was for is its result, and of a term that another one follows nothing goes on', async () => {
  const [older, newer] = [acquired(6, 1), acquired(7, 2)];
  const both = async (onEvent, ...more) => {
    onEvent(older);
    await pause(1);
    onEvent(newer);
    // Of a term that is over already.
    onEvent({ type: 'lost', term: 6, reason: 'overtaken' });
    await pause(1);
    onEvent({ type: 'lost', term: 7, reason: 'done' });
    more.forEach(onEvent);
  };
  for (const [more, of] of [[[], newer], [[over('done', 'skipped')], newer], [[{ ...over('done', 'skipped'), slot: slot(1) }], older], [[{ ...over('taken', 'taken'), slot: slot(3) }]]]) {
    const { result, ended } = await played(() => 'ran', (onEvent) => both(onEvent, ...more));
    assert.deepEqual(ended, [[6, 'expired'], [7, 'done']]);
    assert.deepEqual([result.term, result.slot], [of?.term, of?.slot ?? slot(3)]);
  }
});

test('a term that ends before there is authority for its job is told to the engine, and the job never runs', async () => {
  const { result, told } = await played(failing, async (onEvent) => {
    onEvent(acquired(7, 1));
    await pause(1);
    onEvent({ type: 'lost', term: 7, reason: 'overtaken' });
  }, { standing: () => ({ ...ENGINE.standing(), proven: false }) });
  assert.equal(result.outcome, 'lost');
  assert.deepEqual(told, [[7, { done: false, failed: false, result: 'stopped', tookMs: 0 }]]);
});

test('what ends after the result was told changes nothing of it', async () => {
  let finish;
  const { result, told } = await played(() => new Promise((resolve) => (finish = resolve)), async (onEvent) => {
    onEvent(acquired(7, 1));
    await pause(1);
  });
  const before = structuredClone({ result, told });
  finish('late');
  await pause(1);
  assert.deepEqual({ result, told }, before);
});

test('a job that has ended well stays done if its term is stopped, and is lost if it ends otherwise before that is recorded', async () => {
  for (const [reason, outcome, value, error] of [['stopped', 'done', 'ran'], ['overtaken', 'lost', undefined, 'the end of 7']]) {
    const { result } = await played(() => 'ran', async (onEvent) => {
      onEvent(acquired(7, 1));
      await pause(1);
      onEvent({ type: 'lost', term: 7, reason });
    });
    assert.deepEqual([result.outcome, result.value, result.error], [outcome, value, error]);
    const shown = ['durationMs', ...(error ? ['error'] : []), 'outcome', 'previous', 'recorded', 'slot', 'term', ...(value ? ['value'] : [])];
    assert.deepEqual(Object.keys(result.runs[0]).sort(), shown);
  }
});

test('a trigger that ends without a word fails by what its store failed by, and one whose caller has had enough is stopped at once', async () => {
  await assert.rejects(scripted([FAILED], { ran: false }), { code: 'EDGELECT_STORE' });
  const stops = [];
  const stopped = played(failing, () => {}, { signal: AbortSignal.abort(new Error('enough')), stop: (park) => void stops.push(park) });
  await assert.rejects(stopped, /enough/);
  assert.deepEqual(stops, [false]);
});

const WRONG_OPTIONS = { policy: 'exactlyOnce', missed: 'some', period: 999, attempts: 0, budget: 5, subrequests: 1, signal: 5 };
/** Options of a class, whose getters are its prototype's. */
const ofClass = (name, value) => Object.create(Object.defineProperty({}, name, { get: () => value }));

test('what cannot be meant is refused by name, and nothing is asked of the store', async () => {
  const storage = { get: () => assert.fail('it was asked'), putIfMatch: () => assert.fail('it was asked') };
  for (const [field, at, options, rule = /./] of [
    ...Object.entries(WRONG_OPTIONS).flatMap(([name, value]) => [[name, slot(1), { [name]: value }], [name, slot(1), ofClass(name, value)]]),
    ['missed', slot(1), { missed: 'all' }],
    ['period', slot(1), { period: '1 m' }],
    ['perod', slot(1), { perod: 1 }],
    ...[NaN, new Date(NaN), '12:00', -1, null, slot(1) / 1000, new Date(slot(1) / 1000)].map((at) => ['slot', at, {}]),
    ['slot', 1_795_262_400, {}, /^slot = 1795262400: .* since 1970, and this lies before 1974: is it in seconds\?$/],
    ...[true, [], () => {}, null].map((options) => ['options', slot(1), options]),
    ...[5, 'x'].map((options) => ['options', slot(1), options, /runScheduled takes an object, such as \{ period, policy, signal \}/]),
    ['options', slot(1), new AbortController().signal, /an AbortSignal is given as \{ signal \}/],
  ]) {
    const refused = member(storage).runScheduled(at, () => {}, options);
    await assert.rejects(refused, (error) => error instanceof EdgelectError && error.field === field && rule.test(error.message), `${field}: ${String(at)}`);
  }
  await assert.rejects(member(storage).runScheduled(slot(1)), { code: 'EDGELECT_CONFIG', field: 'job' });
  const ahead = member(slotGroup()).runScheduled(Date.now() + 3_600_000, () => {});
  await assert.rejects(ahead, { code: 'EDGELECT_SLOT', message: /ms ahead of the store's clock/ });
  const started = member(new MemoryStorage());
  await started.start();
  await assert.rejects(started.runScheduled(slot(1), () => {}), { field: 'runScheduled' });
  await started.stop();
  const { runs, leftOut } = await member(slotGroup()).runScheduled(slot(3), () => {}, Object.assign(ofClass('missed', 'all'), { period: MINUTE }));
  assert.deepEqual([runs.length, leftOut], [3, 0]);
});
