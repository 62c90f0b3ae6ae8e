// A runtime in which time passes only when a test says so: clocks, timers and a bucket behind `fetch`. It is made before the package
// is loaded, which must find the virtual clocks wherever it looks.

/** Turns of the event loop within which everything has happened that needs no time. */
const QUIET_TURNS = 3;

export const virtualRuntime = (startMs = Date.UTC(2026, 10, 21)) => {
  const { setImmediate } = globalThis;
  let nowMs = startMs;
  /** How far the clocks were stepped, which no timer notices. */
  let steppedMs = 0;
  let flowing = false;
  let pump;
  const pending = new Set();
  const buckets = new Map();

  globalThis.setTimeout = (callback, ms = 0, ...rest) => {
    const timer = { dueMs: nowMs + Math.max(1, ms), keeps: true, run: () => callback(...rest) };
    timer.unref = () => Object.assign(timer, { keeps: false });
    pending.add(timer);
    if (flowing && !pump) turn(0);
    pump?.ref();
    return timer;
  };
  globalThis.clearTimeout = (timer) => pending.delete(timer);
  globalThis.performance.now = () => nowMs + steppedMs - startMs;
  Date.now = () => nowMs + steppedMs;
  globalThis.fetch = async (url, init) => buckets.get(new URL(url).port).fetch(url, init);

  /** Lets everything happen that needs no time. */
  const settle = async () => {
    for (let turn = 0; turn < QUIET_TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  const nextTimer = () => [...pending.values()].reduce((first, timer) => (!first || timer.dueMs < first.dueMs ? timer : first), null);

  const fire = (timer) => {
    nowMs = Math.max(nowMs, timer.dueMs);
    pending.delete(timer);
    timer.run();
  };

  const pass = async (ms) => {
    const endMs = nowMs + ms;
    for (;;) {
      await settle();
      const next = nextTimer();
      if (!next || next.dueMs > endMs) break;
      fire(next);
    }
    nowMs = endMs;
    await settle();
  };

  /** What a promise comes to while time passes, second by second, for a few minutes at most. */
  const passing = async (promise) => {
    let over = false;
    const end = () => (over = true);
    promise.then(end, end);
    for (let second = 0; second < 200 && !over; second += 1) await pass(1_000);
    if (!over) throw new Error('it is not over');
    return promise;
  };

  const turn = (quietTurns) => {
    pump = setImmediate(() => {
      const next = quietTurns < QUIET_TURNS ? undefined : nextTimer();
      if (next) fire(next);
      pump = undefined;
      if (pending.size > 0) turn(next ? 0 : quietTurns + 1);
    });
    // As a real timer does, it keeps the process, unless it was told not to.
    if (![...pending.values()].some(({ keeps }) => keeps)) pump.unref();
  };

  /** From now on time passes by itself: once nothing happens any more that needs none, it is the next timer's time. */
  const flow = () => {
    flowing = true;
    if (pending.size > 0) turn(0);
  };

  /** The clocks go on, and no timer has run. */
  const jumpTo = (ms) => (nowMs = Math.max(nowMs, ms));

  /** A single clock is stepped: every clock there is, and no timer. */
  const step = (ms) => (steppedMs += ms);

  /** The event has ended, and its timers with it. */
  const forgetTimers = () => pending.clear();

  /** Time passes millisecond by millisecond, and `look` runs at each before any timer that is due there. */
  const passLooking = async (ms, look) => {
    for (const endMs = nowMs + ms; nowMs < endMs;) {
      nowMs += 1;
      look();
      if ([...pending.values()].some(({ dueMs }) => dueMs <= nowMs)) await pass(0);
    }
  };

  /** A bucket with one object in it that honours conditions. */
  const bucket = () => {
    const port = String(10_000 + buckets.size);
    let [object, writes, own] = [null, 0, null];
    const answer = async (_url, { method, headers, body }) => {
      const date = new Date(nowMs).toUTCString();
      if (method === 'PUT') {
        const holds = headers['if-none-match'] ? object === null : object?.etag === headers['if-match'];
        if (!holds) return new Response('<Error><Code>PreconditionFailed</Code></Error>', { status: 412, headers: { date } });
        writes += 1;
        object = { body: body.slice(), etag: `"${writes}"`, modified: date };
        return new Response(null, { headers: { date, etag: object.etag } });
      }
      if (!object) return new Response('<Error><Code>NoSuchKey</Code></Error>', { status: 404, headers: { date } });
      const facts = { date, etag: object.etag, 'last-modified': object.modified };
      if (headers['if-none-match'] === object.etag) return new Response(null, { status: 304, headers: facts });
      return new Response(object.body, { headers: facts });
    };
    buckets.set(port, { fetch: (url, init) => (own ?? answer)(url, init) });
    return { endpoint: `http://127.0.0.1:${port}`, answerWith: (other) => (own = other) };
  };

  return { settle, pass, passing, flow, passLooking, jumpTo, step, forgetTimers, bucket, timers: () => pending.size, nextDueMs: () => nextTimer().dueMs };
};
