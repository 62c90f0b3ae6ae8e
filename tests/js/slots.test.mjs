// Cron slots, in virtual time that passes by itself.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

const MINUTE = 60_000;
const FIRST = Date.UTC(2026, 10, 21, 12);

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime(FIRST + 24 * 60 * MINUTE);
runtime.flow();
const { Elector, EdgelectError, MemoryStorage, S3Storage } = await import('edgelect');
const { SlotRuns } = await import('../../js/slots.js');
const { FAST, KEY, fired, member, stopAll, until, within } = await import('./group.mjs');

after(stopAll);

/** A group whose slots up to `FIRST` were claimed and done, so that tests need not wait for the clock. */
const slotGroup = () => {
  const storage = new MemoryStorage();
  const record = {
    leaderID: 'before', leaderAddr: '', lastUpdated: '0001-01-01T00:00:00Z', term: 7, session: 's', sequence: 1,
    leaseMs: 1000, acquired: '2026-11-21T06:00:00Z', transitions: 0, parked: false, slot: FIRST, slotDone: true, format: 1,
  };
  storage.putIfMatch(KEY, new TextEncoder().encode(JSON.stringify(record)), null);
  return storage;
};
const record = (storage) => JSON.parse(new TextDecoder().decode(storage.get(KEY).body));
const worker = (storage, options) => member(storage, options);
const slot = (minute) => FIRST + minute * MINUTE;
const hangs = (term) => fired(term.signal).then(() => {
  throw term.signal.reason;
});

test('c54 five triggers for one slot run it once, with the slot and a token', async () => {
  const storage = slotGroup();
  const seen = [];
  const job = async (term) => {
    seen.push([term.slot, term.token]);
    assert.ok(term.remaining() > 0 && !term.signal.aborted);
    return 'value';
  };
  const results = await Promise.all([1, 2, 3, 4, 5].map(() => worker(storage).runScheduled(slot(1), job)));
  assert.equal(seen.length, 1);
  assert.deepEqual(results.map(({ outcome }) => outcome).sort(), ['done', 'taken', 'taken', 'taken', 'taken']);
  const done = results.find(({ outcome }) => outcome === 'done');
  assert.deepEqual([done.slot, done.term, done.value], [slot(1), seen[0][1], 'value']);
  assert.deepEqual([done.runs.length, done.runs[0].recorded], [1, true]);
  assert.match(results.find(({ outcome }) => outcome === 'taken').reason, /claimed before/);
  const { slotDone, slotResult, slotTookMs, lastUpdated } = record(storage);
  assert.deepEqual([record(storage).slot, slotDone, slotResult, lastUpdated], [slot(1), true, 'ok', '0001-01-01T00:00:00Z']);
  assert.ok(slotTookMs < 60_000);
});

test('the lease is renewed under a long job, and a Date or a late trigger means the same slot', async () => {
  const storage = slotGroup();
  const job = () => new Promise((resolve) => setTimeout(resolve, 2700));
  const running = worker(storage, { leaderTimeout: 2_500 }).runScheduled(new Date(slot(1)), job);
  await until(() => record(storage).slot === slot(1));
  const late = await worker(storage).runScheduled(slot(1), () => assert.fail('it ran twice'));
  assert.equal(late.outcome, 'taken');
  const result = await running;
  assert.equal(result.outcome, 'done');
  assert.ok(result.durationMs >= 2600, `${result.durationMs} ms`);
  assert.ok(record(storage).sequence >= 5, `${record(storage).sequence} writes`);
});

test('a job that throws, at once or later, is reported, counted, and run again only at least once', async () => {
  for (const job of [() => { throw new Error('boom'); }, async () => { throw new Error('boom'); }]) {
    const storage = slotGroup();
    const policy = 'atLeastOnce';
    const first = await worker(storage).runScheduled(slot(1), job, { policy });
    assert.deepEqual([first.outcome, first.error.message], ['failed', 'boom']);
    assert.deepEqual([record(storage).slotDone, record(storage).slotFailures, record(storage).slotResult], [false, 1, 'failed']);
    const most = await worker(storage).runScheduled(slot(1), () => assert.fail('it ran again'));
    assert.equal(most.outcome, 'taken');
    const slots = [];
    const next = await worker(storage).runScheduled(slot(2), (term) => void slots.push(term.slot), { policy });
    assert.deepEqual([next.outcome, slots], ['done', [slot(1), slot(2)]]);
    assert.deepEqual(next.runs.map((run) => [run.slot, run.outcome]), [[slot(1), 'done'], [slot(2), 'done']]);
    assert.ok(next.runs[0].term < next.runs[1].term);
  }
});

test('missed slots are run first, the oldest first, and counted where they are left out', async () => {
  const slots = [];
  const job = (term) => void slots.push((term.slot - FIRST) / MINUTE);
  const all = await worker(slotGroup()).runScheduled(slot(4), job, { period: MINUTE, missed: 'all' });
  assert.deepEqual([all.outcome, all.leftOut, slots.splice(0)], ['done', 0, [1, 2, 3, 4]]);
  const latest = await worker(slotGroup()).runScheduled(slot(4), job, { period: MINUTE, missed: 'latest' });
  assert.deepEqual([latest.leftOut, slots.splice(0)], [2, [3, 4]]);
  const skip = await worker(slotGroup()).runScheduled(slot(4), job, { period: MINUTE });
  assert.deepEqual([skip.leftOut, slots.splice(0)], [3, [4]]);
});

test('c56 a runner that dies: its slot is waited out, and run again only at least once', async () => {
  for (const [policy, again] of [['atMostOnce', []], ['atLeastOnce', [slot(1)]]]) {
    const storage = slotGroup();
    let dead = false;
    // The store is all that a dead process leaves behind; this one is cut off and never heard of again.
    const cut = {
      get: (key) => (dead ? new Promise(() => {}) : storage.get(key)),
      putIfMatch: (...all) => (dead ? new Promise(() => {}) : storage.putIfMatch(...all)),
    };
    const dying = worker(cut, { unref: true }).runScheduled(slot(1), hangs, { policy });
    await until(() => record(storage).slot === slot(1));
    dead = true;
    const slots = [];
    const next = await worker(storage).runScheduled(slot(2), (term) => void slots.push(term.slot), { policy });
    assert.deepEqual([next.outcome, slots], ['done', [...again, slot(2)]]);
    const lost = await within(dying);
    assert.deepEqual([lost.outcome, lost.error.code, lost.runs[0].recorded], ['lost', 'EDGELECT_LOST', false]);
  }
});

test('the signal of the caller ends the job, closes the slot undone, and rejects with its reason', async () => {
  const storage = slotGroup();
  const controller = new AbortController();
  let stopped = false;
  const job = (term) => hangs(term).catch((error) => {
    stopped = true;
    throw error;
  });
  const running = worker(storage).runScheduled(slot(1), job, { policy: 'atLeastOnce', signal: controller.signal });
  await until(() => record(storage).slot === slot(1));
  controller.abort(new Error('enough'));
  await assert.rejects(within(running), /enough/);
  assert.equal(stopped, true);
  const { slotDone, slotResult, slotFailures, lastUpdated } = record(storage);
  assert.deepEqual([slotDone, slotResult, slotFailures, lastUpdated], [false, 'stopped', undefined, '0001-01-01T00:00:00Z']);
  await assert.rejects(worker(storage).runScheduled(slot(2), hangs, { signal: controller.signal }), /enough/);
});

test('a job that ignores its signal does not hold the caller', async () => {
  const storage = slotGroup();
  const controller = new AbortController();
  const running = worker(storage).runScheduled(slot(1), () => new Promise(() => {}), { signal: controller.signal });
  await until(() => record(storage).slot === slot(1));
  controller.abort(new Error('enough'));
  await assert.rejects(within(running), /enough/);
  // Nothing was written under it: the lease runs out.
  assert.notEqual(record(storage).lastUpdated, '0001-01-01T00:00:00Z');
});

test('what a job does after its authority changes nothing of the result', async () => {
  const storage = slotGroup();
  let dead = false;
  const cut = {
    get: (key) => (dead ? new Promise(() => {}) : storage.get(key)),
    putIfMatch: (...all) => (dead ? new Promise(() => {}) : storage.putIfMatch(...all)),
  };
  let end;
  const job = () => new Promise((resolve) => {
    end = resolve;
  });
  const running = worker(cut).runScheduled(slot(1), job);
  await until(() => record(storage).slot === slot(1));
  dead = true;
  const result = await within(running);
  assert.deepEqual([result.outcome, result.runs[0].recorded, result.error.code], ['lost', false, 'EDGELECT_LOST']);
  assert.ok(result.durationMs > 500, `${result.durationMs} ms`);
  const before = JSON.stringify(result);
  end('late');
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(JSON.stringify(result), before);
});

test('a job that goes on after its caller gave it up has not ended well', async () => {
  const storage = slotGroup();
  const controller = new AbortController();
  const job = (term) => fired(term.signal).then(() => new Promise((resolve) => setTimeout(resolve, 1500, 'late')));
  const running = worker(storage).runScheduled(slot(1), job, { signal: controller.signal });
  await until(() => record(storage).slot === slot(1));
  controller.abort(new Error('enough'));
  await assert.rejects(within(running), /enough/);
  assert.equal(record(storage).slotDone, false);
});

test('a lease that somebody else holds is waited for within the budget, and the result says so', async () => {
  const storage = slotGroup();
  const controller = new AbortController();
  const timing = { leaderTimeout: 3_000, requestTimeout: 100, storeSkew: 0 };
  const holder = worker(storage, timing).runScheduled(slot(1), hangs, { signal: controller.signal });
  await until(() => record(storage).slot === slot(1));
  const patient = worker(storage, timing);
  const result = await patient.runScheduled(slot(2), () => assert.fail('it ran'), { budget: 5000 });
  assert.equal(result.outcome, 'skipped');
  assert.match(result.reason, /budget/);
  controller.abort(new Error('enough'));
  await assert.rejects(holder, /enough/);
});

test('whoever runs a slot answers its peers', async () => {
  const elector = worker(slotGroup());
  const ask = async () => (await elector.handleRequest(new Request('http://a/health/leadership'))).json();
  let answer;
  const job = async (term) => {
    answer = await ask();
    assert.equal(answer.term, term.token);
  };
  const result = await elector.runScheduled(slot(1), job);
  assert.equal(result.outcome, 'done', String(result.error));
  assert.deepEqual([answer.slot, answer.leaderID], [slot(1), 'a']);
  assert.deepEqual(await ask(), { error: 'not the leader' });
});

test('a job keeps its state in a checkpoint, which the next slot opens', async () => {
  const storage = slotGroup();
  const job = async (term) => {
    const state = await term.checkpoint('state.json');
    await state.write({ count: (state.value?.count ?? 0) + 1 });
    return [state.value.count, state.token];
  };
  const first = await worker(storage).runScheduled(slot(1), job);
  const second = await worker(storage).runScheduled(slot(2), job);
  assert.deepEqual([first.value, second.value], [[1, first.term], [2, second.term]]);
});

const S3 = { endpoint: 'https://s3.test', bucket: 'bucket', credentials: { accessKeyId: 'a', secretAccessKey: 's' } };
const refusal = (status, code) => new Response(`<Error><Code>${code}</Code></Error>`, { status, headers: { 'content-type': 'application/xml' } });

/** A bucket over `storage` in place of the network; `bend(method, text)` may answer first: with a response, or with `lost` for
 * one that is carried out and whose answer never comes. */
const s3Over = (context, storage, bend) => {
  context.mock.method(globalThis, 'fetch', async (url, { method, headers: given, body }) => {
    const headers = new Headers(given);
    const text = body ? new TextDecoder().decode(body) : '';
    const bent = bend(method, text);
    if (bent instanceof Response) return bent;
    const date = new Date().toUTCString();
    if (method === 'GET') {
      const found = storage.get(KEY);
      if (!found) return refusal(404, 'NoSuchKey');
      const told = { date, etag: found.etag, 'last-modified': date };
      return headers.get('if-none-match') === found.etag ? new Response(null, { status: 304, headers: told }) : new Response(found.body, { headers: told });
    }
    const written = storage.putIfMatch(KEY, new TextEncoder().encode(text), headers.get('if-match'));
    if (bent === 'lost') throw new TypeError('reset');
    return written ? new Response('', { headers: { date, etag: written.etag } }) : refusal(412, 'PreconditionFailed');
  });
  return new S3Storage(S3);
};

test('a claim landed, its answer was lost, and then the store fails for good: told as unknown, and no error', async (context) => {
  const storage = slotGroup();
  let claimed = false;
  const bucket = s3Over(context, storage, (method) => {
    if (claimed) return refusal(404, 'NoSuchBucket');
    if (method === 'PUT') claimed = true;
    return method === 'PUT' ? 'lost' : undefined;
  });
  const result = await within(worker(bucket).runScheduled(slot(1), () => assert.fail('it ran'), { budget: 9_000 }));
  assert.deepEqual([result.outcome, result.slot, result.runs, record(storage).slot], ['unknown', slot(1), [], slot(1)]);
  await assert.rejects(within(worker(bucket).runScheduled(slot(2), () => assert.fail('it ran'))), { storeCode: 'NoSuchBucket' });
});

test('a job that was run and recorded is reported, also where the store fails before the trigger\'s own slot', async (context) => {
  const storage = slotGroup();
  let recorded = false;
  const bucket = s3Over(context, storage, (_method, text) => {
    if (recorded) return refusal(404, 'NoSuchBucket');
    recorded = text.includes('"slotResult":"ok"');
  });
  const options = { period: MINUTE, missed: 'all', budget: 9_000 };
  const result = await within(worker(bucket).runScheduled(slot(2), (term) => term.slot, options));
  // The next claim had left when the store said so, and something on the way may have said it.
  assert.deepEqual([result.outcome, result.slot], ['unknown', slot(2)]);
  assert.deepEqual(result.runs.map((run) => [run.slot, run.outcome, run.value, run.recorded]), [[slot(1), 'done', slot(1), true]]);
  assert.match(result.reason, /NoSuchBucket/);
});

/** The runs of an engine that says what a test has it say. */
const scripted = async (script, job = () => 'ran') => {
  const newTerm = (token, hooks) => ({ token, ...hooks, signal: { reason: 'ended' } });
  const runs = new SlotRuns({ job, newTerm, endTerm: () => {}, unref: true });
  return runs.run((onEvent) => ({
    alive: true, tick: () => {}, stop: () => {}, standing: () => ({ term: 7, remainingMs: 60_000, proven: true }), slotEnded: (...end) => script.ended?.(onEvent, ...end),
    run: () => queueMicrotask(() => script.begin(onEvent)),
  }));
};

test('a slot that turns out to be ahead of the store\'s clock is an error only where no job was run', async () => {
  const over = { type: 'slotsOver', why: 'ahead', outcome: 'skipped', saysNothing: false, slot: slot(2), leftOut: 0, aheadMs: 5_000 };
  const end = (onEvent) => [over, { type: 'finished' }].forEach((event) => onEvent(event));
  await assert.rejects(scripted({ begin: end }), { code: 'EDGELECT_SLOT' });
  const result = await scripted({
    begin: (onEvent) => onEvent({ type: 'acquired', term: 7, slot: slot(1) }),
    ended: (onEvent, term) => {
      onEvent({ type: 'lost', term, reason: 'done' });
      onEvent({ type: 'slotClosed', term, recorded: true });
      end(onEvent);
    },
  });
  assert.deepEqual([result.outcome, result.slot, result.runs.length, result.runs[0].recorded], ['skipped', slot(2), 1, true]);
  assert.match(result.reason, /ahead of the store's clock/);
});

test('a store that fails is an error where nothing was claimed, and else beside what became of the slot', async () => {
  const failed = { type: 'failed', message: 'no bucket', status: 404, storeCode: 'NoSuchBucket' };
  const over = (why, outcome, saysNothing) => ({ type: 'slotsOver', why, outcome, saysNothing, slot: slot(1), leftOut: 2 });
  const begin = (event) => (onEvent) => [failed, event, { type: 'finished' }].forEach((one) => onEvent(one));
  await assert.rejects(scripted({ begin: begin(over('store', 'skipped', true)) }), { code: 'EDGELECT_STORE', storeCode: 'NoSuchBucket' });
  for (const [why, outcome] of [['unknown', 'unknown'], ['taken', 'taken'], ['newGroup', 'skipped'], ['lost', 'lost']]) {
    const result = await scripted({ begin: begin(over(why, outcome, false)) });
    assert.deepEqual([result.outcome, result.slot, result.leftOut, result.fault.storeCode], [outcome, slot(1), 2, 'NoSuchBucket']);
    assert.doesNotMatch(result.reason, /it was stopped/);
  }
});

test('a breakdown is an error only where no job was run', async () => {
  const broken = Object.assign(new Error('trap'), { code: 'EDGELECT_TRAP' });
  const end = { type: 'finished', error: broken };
  await assert.rejects(scripted({ begin: (onEvent) => onEvent(end) }), { code: 'EDGELECT_TRAP' });
  const result = await scripted({
    begin: (onEvent) => onEvent({ type: 'acquired', term: 7, slot: slot(1) }),
    ended: (onEvent, term) => {
      onEvent({ type: 'lost', term, reason: 'done' });
      onEvent({ type: 'slotClosed', term, recorded: true });
      onEvent(end);
    },
  });
  assert.deepEqual([result.runs.length, result.runs[0].recorded, result.fault.code], [1, true, 'EDGELECT_TRAP']);
});

test('a group without init leaves its first slot out and says why', async () => {
  const storage = new MemoryStorage();
  const result = await worker(storage).runScheduled(Date.now(), () => assert.fail('it ran'));
  assert.equal(result.outcome, 'skipped');
  assert.match(result.reason, /init\(\)/);
});

/** A storage that does not say when an object was changed, as DynamoDB. */
const undated = (storage) => ({
  get: async (key) => {
    const found = await storage.get(key);
    return found && { ...found, lastModified: undefined };
  },
  putIfMatch: (...write) => storage.putIfMatch(...write),
});
/** The first moment whose slot the record does not count as claimed. */
const uncovered = async (storage) => {
  await until(() => Date.now() > record(storage).slot);
  return Date.now();
};

test('a record that does not say which slots ran costs one of them, where the storage names no lastModified', async () => {
  const storage = new MemoryStorage();
  const slotless = { leaderID: 'other', lastUpdated: '0001-01-01T00:00:00Z', term: 7, format: 1 };
  storage.putIfMatch(KEY, new TextEncoder().encode(JSON.stringify(slotless)), null);
  const first = await worker(undated(storage), { storeSkew: 0 }).runScheduled(Date.now(), () => assert.fail('it ran'));
  assert.equal(first.outcome, 'skipped');
  assert.match(first.reason, /did not say which slots ran/);
  const { slot: through, slotDone, lastUpdated, term } = record(storage);
  assert.ok(through >= Date.now() - 60_000 && slotDone && lastUpdated === slotless.lastUpdated && term > 7, JSON.stringify(record(storage)));
  const next = await worker(undated(storage), { storeSkew: 0 }).runScheduled(await uncovered(storage), (run) => run.token);
  assert.equal(next.outcome, 'done', next.reason);
  assert.ok(next.value > term);
});

test('the first slot after init is run, where the storage names no lastModified', async () => {
  const storage = new MemoryStorage();
  await worker(undated(storage), { storeSkew: 0 }).init();
  const result = await worker(undated(storage), { storeSkew: 0 }).runScheduled(await uncovered(storage), () => 'ran');
  assert.equal(result.outcome, 'done', result.reason);
});

test('a timer without a scheduled time means the nearest multiple of its period, and never one that the store may not have reached', async (context) => {
  let nowMs;
  context.mock.method(Date, 'now', () => nowMs);
  const due = slot(100);
  for (const [earlyMs, expected] of [[400, due], [1, due], [0, due], [-400, due], [-29_999, due], [29_000, due - MINUTE], [2_000, due - MINUTE]]) {
    nowMs = due - earlyMs;
    const result = await worker(slotGroup(), { storeSkew: 500 }).runScheduled(null, (term) => term.slot, { period: MINUTE });
    assert.deepEqual([result.outcome, result.value], ['done', expected], `${earlyMs} ms early: ${result.reason}`);
  }
});

test('what cannot be meant is refused by name, and nothing is asked of the store', async () => {
  const storage = { get: () => assert.fail('it was asked'), putIfMatch: () => assert.fail('it was asked') };
  for (const [field, at, options] of [
    ['policy', slot(1), { policy: 'exactlyOnce' }],
    ['missed', slot(1), { missed: 'some' }],
    ['missed', slot(1), { missed: 'all' }],
    ['period', slot(1), { period: 999 }],
    ['period', slot(1), { period: '1 m' }],
    ['attempts', slot(1), { attempts: 0 }],
    ['budget', slot(1), { budget: 5 }],
    ['slot', NaN, {}],
    ['slot', new Date(NaN), {}],
    ['slot', '12:00', {}],
    ['slot', -1, {}],
    ['slot', null, {}],
    ['slot', slot(1) / 1000, {}],
    ['slot', Math.floor(Date.now() / 1000), {}],
    ['slot', new Date(slot(1) / 1000), {}],
    ['perod', slot(1), { perod: 1 }],
    ['signal', slot(1), { signal: 5 }],
    ...[5, true, 'x', [], () => {}, null, new AbortController().signal].map((options) => ['options', slot(1), options]),
  ]) {
    const refused = worker(storage).runScheduled(at, () => {}, options);
    await assert.rejects(refused, (error) => error instanceof EdgelectError && error.field === field, field);
  }
  await assert.rejects(worker(storage).runScheduled(slot(1)), { code: 'EDGELECT_CONFIG', field: 'job' });
  const seconds = worker(storage).runScheduled(1_795_262_400, () => {});
  await assert.rejects(seconds, { code: 'EDGELECT_CONFIG', message: /^slot = 1795262400: .* since 1970, and this lies before 1974: is it in seconds\?$/ });
  const bare = worker(storage).runScheduled(slot(1), () => {}, new AbortController().signal);
  await assert.rejects(bare, { code: 'EDGELECT_CONFIG', message: /an AbortSignal is given as \{ signal \}/ });
  for (const wrong of [5, 'x']) {
    await assert.rejects(worker(storage).runScheduled(slot(1), () => {}, wrong), { message: /runScheduled takes an object, such as \{ period, policy, signal \}/ });
  }
  const ahead = worker(slotGroup()).runScheduled(Date.now() + 3_600_000, () => {});
  await assert.rejects(ahead, (error) => error.code === 'EDGELECT_SLOT' && /ms ahead of the store's clock/.test(error.message));
  const started = new Elector({ storage: new MemoryStorage(), ...FAST });
  await started.start();
  await assert.rejects(started.runScheduled(slot(1), () => {}), { field: 'runScheduled' });
  await started.stop();
});

test('options of a class count, whose getters are its prototype\'s', async () => {
  const wrong = { policy: 'exactlyOnce', missed: 'some', period: 999, attempts: 0, budget: 5, subrequests: 1, signal: 5 };
  for (const [name, value] of Object.entries(wrong)) {
    const Options = class {};
    Object.defineProperty(Options.prototype, name, { get: () => value });
    await assert.rejects(worker(slotGroup()).runScheduled(slot(1), () => {}, new Options()), { code: 'EDGELECT_CONFIG', field: name }, name);
  }
  class Options {
    own = 1;
    get missed() {
      return 'all';
    }
    get period() {
      return MINUTE;
    }
  }
  await assert.rejects(worker(slotGroup()).runScheduled(slot(1), () => {}, new Options()), { field: 'own' });
  const options = new Options();
  delete options.own;
  const result = await worker(slotGroup()).runScheduled(slot(3), () => {}, options);
  assert.equal(result.runs.length, 3);
});
