// A host with one clock, as Workers are: what a look at a term may do, and what not (S11).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, Electors, MemoryStorage, R2Storage } from 'edgelect';
import { keeper } from '../../js/credentials.js';
import { Host, setTimer } from '../../js/host.js';
import { atEnd } from './ending.mjs';
import { noting, replaced } from './group.mjs';
import { virtualRuntime } from './virtual.mjs';

Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Cloudflare-Workers' }, configurable: true });
const { settle, pass, passLooking, jumpTo, step, forgetTimers, timers, nextDueMs } = virtualRuntime();
const MINUTE = 60_000;
const KEY = 'leader/one.json';

/** A storage that tells no time, as R2's binding; each call takes 20 ms. */
const slow = () => {
  const memory = new MemoryStorage();
  const later = (answer) => new Promise((resolve) => setTimeout(() => resolve(answer()), 20));
  const undated = (found) => found && { body: found.body, etag: found.etag };
  return { get: (key) => later(() => undated(memory.get(key))), putIfMatch: (...how) => later(() => memory.putIfMatch(...how)) };
};

/** What a promise comes to while so much time passes. */
const after = async (ms, promise) => {
  await pass(ms);
  return promise;
};

const member = (storage, options) => {
  const elector = new Elector({ storage, lockfilePath: KEY, serverId: 'a', ...options });
  atEnd(() => after(60_000, elector.stop()));
  return elector;
};

const newGroup = async () => {
  const storage = slow();
  await after(5_000, member(storage).init());
  return storage;
};

/** The elector of one group of many. */
const ofMany = (storage, options) => new Electors({ storage, serverId: 'a', ...options }).add(KEY);

/** The term of an elector that is started, and leads within so much time. */
const leads = (elector, ms = 1_000) => {
  void elector.start();
  return after(ms, elector.waitForLeadership());
};

test('c41 to look at a leader at each millisecond of a minute ends nothing', async () => {
  const losses = [];
  const elector = member(await newGroup(), { onLoseLeadership: (loss) => losses.push(loss) });
  const term = await leads(elector);
  let without = 0;
  const left = new Set();
  await passLooking(MINUTE, () => {
    without += elector.isLeader() ? 0 : 1;
    left.add(term.remaining() > 0);
    assert.equal(term.signal.aborted, false);
    elector.status();
    elector.leaderId();
  });
  assert.deepEqual([[...left], losses], [[true], []]);
  assert.ok(without > 60 && without < 100, `at ${without} readings nobody can say, a millisecond each`);
});

test('c41 to look at the term of a slot at each millisecond of its job costs the job nothing', async () => {
  const storage = await newGroup();
  await pass(20_000);
  let looked;
  const job = (term) => new Promise((resolve) => {
    const beganMs = Date.now();
    looked = () => {
      if (term.signal.aborted || term.remaining() === 0) resolve('stopped early');
      if (Date.now() - beganMs >= 50_000) resolve('whole');
    };
  });
  const running = member(storage).runScheduled(Date.now(), job);
  await passLooking(MINUTE, () => looked?.());
  const { outcome, value, recorded } = await running;
  assert.deepEqual([outcome, value, recorded], ['done', 'whole', true]);
});

for (const [what, run] of Object.entries({
  lead: async (elector, work) => ({ outcome: await elector.lead(work) }),
  runScheduled: (elector, work) => elector.runScheduled(Date.now(), work),
})) {
  test(`c41 a term whose first reading is held at a timer is worked in, whichever that reading is: ${what}`, async () => {
    const { now } = Date;
    for (let reading = 1; reading <= 40; reading += 1) {
      const storage = await newGroup();
      await pass(20_000);
      const { putIfMatch } = storage;
      let sentMs;
      storage.putIfMatch = (...how) => {
        sentMs ??= now();
        return putIfMatch(...how);
      };
      const elector = member(storage);
      let left = reading;
      Date.now = () => {
        // From here on the clock stands where the renewal is due.
        if (sentMs !== undefined && left > 0 && --left === 0) jumpTo(sentMs + 5_000);
        return now();
      };
      const seen = [];
      let ended;
      const running = run(elector, (term) => void seen.push([term.remaining() > 0, term.signal.aborted])).then((end) => {
        ended = end;
      });
      await pass(20_000);
      Date.now = now;
      assert.deepEqual(seen, [[true, false]], `reading ${reading}`);
      await pass(20_000);
      assert.equal(ended?.outcome, what === 'lead' ? undefined : 'done');
      await running;
      // It had ended before so many readings.
      if (left > 0) return assert.ok(reading > 20, `only ${reading} readings`);
    }
    return undefined;
  });
}

/** An elector that leads, and whose renewal has taken effect and is not answered yet. */
const renewing = async (make = member) => {
  const storage = await newGroup();
  const { putIfMatch } = storage;
  const elector = make(storage);
  const term = await leads(elector);
  let answer;
  storage.putIfMatch = async (...how) => {
    const written = await putIfMatch(...how);
    await new Promise((resolve) => (answer = resolve));
    return written;
  };
  while (!answer) await pass(100);
  storage.putIfMatch = putIfMatch;
  return { elector, term, answer };
};

const besideAnother = async () => {
  const group = await renewing();
  const fenceMs = nextDueMs();
  // Its first read is given up before the fence is looked at.
  const other = member({ get: () => new Promise(() => {}), putIfMatch: () => {} }, { requestTimeout: fenceMs - Date.now() - 1, probe: false });
  void other.start();
  await settle();
  assert.ok(nextDueMs() < fenceMs);
  return group;
};

for (const [what, begin] of Object.entries({
  'for its own fence': renewing,
  'that groups share': () => renewing(ofMany),
  'of another elector': besideAnother,
})) {
  test(`s11 an answer that comes while the clock is held at a timer ${what} proves no authority`, async () => {
    const { elector, term, answer } = await begin();
    assert.equal(elector.isLeader(), true);
    jumpTo(nextDueMs());
    answer();
    await settle();
    assert.deepEqual([elector.isLeader(), term.signal.aborted], [false, false]);
    await pass(1);
    assert.equal(elector.isLeader(), false, 'the timer has fired, but no other answer came');
    await pass(6_000);
    assert.equal(elector.isLeader(), true);
    await after(60_000, elector.stop());
  });
}

for (const [what, make] of Object.entries({
  alone: member,
  'of many groups': ofMany,
  'with a limit of requests': (storage) => ofMany(storage, { maxRequestsPerSecond: 1 }),
})) {
  test(`s11 a clock that is stepped back while its elector leads ends the term before the lease is over, and holds nobody up: ${what}`, async () => {
    const storage = await newGroup();
    const elector = make(storage);
    const { signal } = await leads(elector, 18_000);
    step(-10 * MINUTE);
    await pass(elector.config.leaderTimeout);
    assert.equal(signal.aborted, true, 'another member may lead by now');
    await pass(2 * MINUTE);
    assert.equal(elector.isLeader(), true, 'it leads again');
    await after(60_000, elector.stop({ release: false }));
    step(10 * MINUTE);
  });
}

test('s11 the groups of an Electors go on in the next event where the last one ended without a stop', async () => {
  const storage = slow();
  for (const name of ['one.json', 'two.json']) await after(5_000, member(storage, { lockfilePath: name }).init());
  const electors = new Electors({ storage, serverId: 'a' });
  const [first, second] = ['one.json', 'two.json'].map((name) => electors.add(name));
  await leads(first);
  forgetTimers();
  await pass(20_000);
  void second.start();
  await pass(1_000);
  assert.equal(second.isLeader(), true);
  const { signal } = await second.waitForLeadership();
  await pass(MINUTE);
  assert.equal(signal.aborted, false, 'its lease is renewed');
  await after(60_000, second.stop());
  forgetTimers();
  assert.equal(timers(), 0);
});

test('a stop of many groups on a host with one clock releases each lease, though the clock is stepped back meanwhile', async () => {
  const storage = slow();
  const names = Array.from({ length: 4 }, (_, at) => `${at}.json`);
  for (const name of names) await after(5_000, member(storage, { lockfilePath: name }).init());
  const electors = new Electors({ storage, serverId: 'a' });
  for (const name of names) await leads(electors.add(name));
  await pass(10_000);
  let over = false;
  void electors.stop().then(() => (over = true));
  step(-MINUTE);
  await pass(10_000);
  assert.equal(over, true);
  step(MINUTE);
});

test('s11 a storage that answers at once while the clock is held at a timer is not asked over and over, and the timer fires', async () => {
  const memory = new MemoryStorage();
  await after(5_000, member(memory).init());
  let writes = 0;
  const storage = noting(memory, (name) => {
    // Who never lets a timer fire would go on for ever.
    if (name === 'putIfMatch' && (writes += 1) === 100) throw new Error('the clock does not move');
  });
  setTimer(0, () => {});
  const term = await leads(member(storage));
  assert.deepEqual([term.remaining() > 0, writes], [true, 2]);
});

test('a timer of an event that was cancelled holds the clock no longer than its millisecond and is forgotten', async () => {
  await replaced(globalThis, 'setTimeout', () => {}, () => setTimer(1_000, () => {}));
  const [host, dueMs] = [new Host(), Date.now() + 1_000];
  assert.deepEqual([-1, 0, 1].map((ms) => host.isHeld(dueMs + ms)), [false, true, false]);
  host.isHeld(dueMs + 15 * MINUTE);
  assert.equal(host.isHeld(dueMs), false);
});

test('s10 code that goes on after its clock has moved past the fence sees it, and the election says why', async () => {
  const losses = [];
  const elector = member(await newGroup(), { onLoseLeadership: (loss) => losses.push(loss.reason) });
  const { signal } = await leads(elector);
  const { now } = Date;
  assert.equal(await replaced(Date, 'now', () => now() + 20_000, () => signal.aborted), true);
  assert.deepEqual(losses, ['expired']);
});

test('a provider of credentials that hung, or was asked a moment ago, is asked again though the clock has stepped back', async () => {
  const answers = [new Promise(() => {}), 'first', 'second', 'third'];
  let asked = 0;
  const give = keeper(async () => {
    asked += 1;
    return { accessKeyId: await answers[asked - 1], secretAccessKey: 'secret' };
  });
  void give(false);
  step(-MINUTE);
  const given = give(false);
  assert.equal(asked, 2);
  assert.equal((await given).accessKeyId, 'first');
  assert.equal((await give(true)).accessKeyId, 'second');
  assert.equal((await give(true)).accessKeyId, 'second', 'it was refused a moment ago');
  step(-MINUTE);
  assert.equal((await give(true)).accessKeyId, 'third');
  step(2 * MINUTE);
});

test('a question that waits is answered at once, because no event of a Worker can wake another one', async () => {
  const elector = member(await newGroup(), { serverAddr: 'a.example:443' });
  const { token } = await leads(elector);
  const answer = elector.handleRequest(new Request(`https://a.example/health/leadership?group=${KEY}&wait=25000&term=${token}`));
  assert.equal((await answer).status, 200);
});

test('a Worker that makes its R2Storage anew for each question reads the record once an interval', async () => {
  const memory = new MemoryStorage();
  let reads = 0;
  const get = async (key) => {
    reads += 1;
    const { body, etag } = memory.get(key);
    return { size: body.length, httpEtag: etag, uploaded: new Date(Date.now()), body, arrayBuffer: async () => body };
  };
  const binding = { head: get, get, put: async () => null };
  await after(5_000, member(memory).init());
  const ask = (bound) => member(new R2Storage(bound)).handleRequest(new Request('http://localhost/health/leadership'));
  for (let event = 0; event < 3; event += 1) assert.equal((await after(10, ask(binding))).status, 404, 'it is released');
  assert.equal(reads, 1);
  await after(10, ask({ ...binding }));
  assert.equal(reads, 2, 'another binding may be another bucket');
});

test('beside the leading session of its serverId a waiting one has the stored record answer, read once an interval', async () => {
  let reads = 0;
  const storage = noting(new MemoryStorage(), (name) => (reads += name === 'get'));
  await after(5_000, member(storage).init());
  const ask = async (elector) => {
    const answer = await after(0, elector.handleRequest(new Request('http://localhost/health/leadership')));
    const { source, leaderID } = await answer.json();
    return [answer.status, source, leaderID];
  };
  const [before, next, other] = [member(storage), member(storage), member(storage, { serverId: 'b' })];
  void before.start();
  await pass(10_000);
  assert.deepEqual(await ask(before), [200, undefined, 'a']);
  void next.start();
  assert.deepEqual(await ask(next), [200, 'store', 'a'], 'before it has read anything');
  await pass(1_000);
  const read = reads;
  for (let second = 0; second < 3; second += 1) assert.deepEqual(await ask(next), [200, 'store', 'a']);
  assert.ok(reads - read <= 1, `${reads - read} reads`);
  void other.start();
  await pass(1_000);
  const unread = reads;
  assert.deepEqual(await ask(other), [404, undefined, 'a']);
  assert.equal(reads, unread, 'who leads by another name is known without a read');
  await after(10_000, before.stop({ park: true }));
  assert.deepEqual(await ask(next), [200, undefined, 'a'], 'it leads itself');
  // Cut off from the store it must not take its own record for that of another session.
  storage.putIfMatch = storage.get = () => Promise.reject(new Error('no way'));
  await pass(20_000);
  assert.deepEqual(await ask(next), [404, undefined, null]);
  await after(20_000, Promise.all([next, other].map((elector) => elector.stop({ release: false }))));
});

test('who asks an isolate while it reads the record for somebody else is to ask again in a second', async () => {
  const idle = member(await newGroup());
  const ask = () => idle.handleRequest(new Request('http://localhost/health/leadership'));
  const answers = await after(1_000, Promise.all([ask(), ask()]));
  assert.deepEqual(answers.map(({ status, headers }) => [status, headers.get('retry-after')]), [[404, null], [503, '1']]);
});
