// A host with one clock, as Workers are: what a look at a term may do, and what not (S11).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Elector, MemoryStorage } from 'edgelect';
import { virtualRuntime } from './virtual.mjs';

Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Cloudflare-Workers' }, configurable: true });
const { pass, passLooking, jumpTo } = virtualRuntime();
const MINUTE = 60_000;
const KEY = 'leader/one.json';

/** A storage that tells no time, as R2's binding; each call takes `latency()` milliseconds. */
const slow = (latency = () => 20) => {
  const memory = new MemoryStorage();
  const after = (answer) => new Promise((resolve) => setTimeout(() => resolve(answer()), latency()));
  const undated = (found) => found && { body: found.body, etag: found.etag };
  return { get: (key) => after(() => undated(memory.get(key))), putIfMatch: (...how) => after(() => memory.putIfMatch(...how)) };
};

const member = (storage, options) => new Elector({ storage, lockfilePath: KEY, serverId: 'a', ...options });

const newGroup = async (latency) => {
  const storage = slow(latency);
  const made = member(storage).init();
  await pass(5_000);
  await made;
  return storage;
};

test('c41 to look at a leader at each millisecond of a minute ends nothing', async () => {
  const losses = [];
  const elector = member(await newGroup(), { onLoseLeadership: (loss) => losses.push(loss) });
  void elector.start();
  const waiting = elector.waitForLeadership();
  await pass(1_000);
  const term = await waiting;
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
  assert.ok(without > 0 && without < 50, `at ${without} readings nobody can say, a millisecond each`);
  const stopped = elector.stop();
  await pass(1_000);
  await stopped;
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

test('s10 code that goes on after its clock has moved past the fence sees it, and the election says why', async () => {
  const losses = [];
  const elector = member(await newGroup(), { onLoseLeadership: (loss) => losses.push(loss.reason) });
  void elector.start();
  const waiting = elector.waitForLeadership();
  await pass(1_000);
  const { signal } = await waiting;
  let seen;
  const now = Date.now;
  Date.now = () => now() + 20_000;
  try {
    seen = signal.aborted;
  } finally {
    Date.now = now;
  }
  assert.equal(seen, true);
  assert.deepEqual(losses, ['expired']);
  const stopped = elector.stop();
  await pass(30_000);
  await stopped;
});

test('a question that waits is answered at once, because no event of a Worker can wake another one', async () => {
  const elector = member(await newGroup(), { serverAddr: 'a.example:443' });
  void elector.start();
  const waiting = elector.waitForLeadership();
  await pass(1_000);
  const { token } = await waiting;
  const answer = elector.handleRequest(new Request(`https://a.example/health/leadership?group=${KEY}&wait=25000&term=${token}`));
  assert.equal((await answer).status, 200);
  const stopped = elector.stop();
  await pass(1_000);
  await stopped;
});
