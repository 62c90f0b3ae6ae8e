// Clocks, timers, randomness and `fetch` of the process of the members, which are the world's.

/** Numbers of a seed. */
export const newChance = (seed) => {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (bound) => next() % Math.max(1, Math.floor(bound));
  return { next, below, oneIn: (times) => below(times) === 0, pick: (list) => list[below(list.length)] };
};

const LONGEST_MS = 2 ** 31 - 1;
const real = { setImmediate, now: performance.now.bind(performance) };
export const realNow = real.now;

/** What one schedule gives the process. */
export class Runtime {
  #world;
  #timers = new Map();
  #numbers = 0;
  #pending = new Map();
  #chance;
  #sessionOf;
  #closed = false;
  /** The world's clocks, which move only while it runs. */
  #timersMs = 0;
  #wall = 0;
  /** Whether its wall clock is the only one, as on Workers. */
  single = false;
  /** How far time goes on after the schedule. */
  #aheadMs = 0;
  /** The names of those who sent something or heard something since the last turn. */
  active = new Set();
  /** What was asked and answered, and when. */
  trace = 0;

  /** `sessionOf(name, conditional)` is the session of the world that asks with credentials of this name. */
  constructor(world, seed, sessionOf) {
    this.#world = world;
    this.#chance = newChance(seed ^ 0x5eed);
    this.#sessionOf = sessionOf;
    this.readClocks();
  }

  /** The world has gone on. */
  readClocks() {
    this.#timersMs = this.#world.timers();
    this.#wall = this.#world.wall();
  }

  /** What timers go by. */
  get now() {
    return this.#timersMs + this.#aheadMs;
  }

  get wall() {
    return this.#wall + this.#aheadMs;
  }

  /** `own` timers are those of the schedule itself. */
  set(callback, ms = 0, { every = false, own = false } = {}) {
    const number = ++this.#numbers;
    const spanMs = ms >= 1 && ms <= LONGEST_MS ? Math.trunc(ms) : 1;
    const timer = { number, own, ref: () => timer, unref: () => timer, hasRef: () => true };
    const arm = () => {
      timer.dueMs = this.now + spanMs;
      this.#timers.set(number, timer);
    };
    timer.fire = () => {
      this.#timers.delete(number);
      if (every) arm();
      callback();
    };
    arm();
    return timer;
  }

  clear(timer) {
    this.#timers.delete(timer?.number);
  }

  sleep(ms) {
    return this.#closed ? Promise.resolve() : new Promise((resolve) => this.set(resolve, ms, { own: true }));
  }

  random(array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = this.#chance.next();
    return array;
  }

  /** How many requests each has sent to the store. */
  sent = new Map();

  /** How many isolates have ended in this process. */
  deaths = 0;

  /** The jobs of Workers, by their URLs. */
  jobs = new Map();

  fetch(url, { method, headers, body, signal }) {
    const job = this.jobs.get(url);
    if (job) return callsJob(job, { method, headers, body, signal });
    const [, name] = /Credential=(\w+)\//.exec(headers?.authorization) ?? [];
    const answer = new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (!headers) return this.#askPeer(new URL(url), signal, { resolve, reject });
      if (!url.endsWith('/leader.json')) {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        const { deaths } = this;
        const hears = (tell) => (answer) => deaths === this.deaths && tell(answer);
        const answered = this.objects(name, url.split('/').at(-1), { method, headers, body });
        void answered.then(hears(({ status, headers: own, body: text }) => resolve(responseOf(status, own, text))), hears(reject));
        return;
      }
      const session = this.#sessionOf(name, headers['if-none-match'] ?? headers['if-match']);
      // The world knows one bucket, by one name.
      const at = url.replace(/\/jobs-\d+\//, '/jobs/');
      const request = this.#world.ask(session, method, at, JSON.stringify(Object.entries(headers)), body ?? new Uint8Array());
      this.#awaits({ session, request, signal }, { resolve, reject, name });
      this.sent.set(name, (this.sent.get(name) ?? 0) + 1);
      this.note(name, method.length);
    });
    if (headers) this.sends(name, answer, signal);
    return answer;
  }

  /** A question to a peer says where the asker answers others. */
  #askPeer({ host, search, searchParams }, signal, { resolve, reject }) {
    const asker = this.peerAt(searchParams.get('relay')) ?? {};
    const { name, session } = asker;
    if (session === undefined) return reject(new TypeError('nobody is here who could ask'));
    const from = searchParams.get('from');
    if (from !== null) {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      return this.hearts.beat({ asker, host, query: search.slice(1), from, signal }).then(({ status, headers, body }) => resolve(responseOf(status, headers, body)), reject);
    }
    const request = this.#world.askPeer(session, host, search.slice(1));
    this.#awaits({ session, request, signal }, { resolve, reject, name });
    this.note(name, 0);
  }

  #awaits({ session, request, signal }, { resolve, reject, name }) {
    const onAbort = () => {
      if (!this.#pending.delete(request)) return;
      this.#world.abandon(session, request);
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#pending.set(request, { resolve, reject, name });
  }

  /** Somebody has sent something or heard something. */
  note(name, what, moves = true) {
    if (moves) this.active.add(name);
    for (const number of [this.#world.time, name.charCodeAt(1), what]) this.trace = (Math.imul(this.trace ^ number, 0x9e3779b1) ^ (this.trace >>> 13)) >>> 0;
  }

  answer({ request, status, headers, body, error }) {
    const { resolve, reject, name } = this.#pending.get(request) ?? {};
    if (!resolve) return;
    this.#pending.delete(request);
    this.note(name, status ?? 0);
    if (error) reject(new TypeError(error));
    else resolve(responseOf(status, headers, body));
  }

  /** When the next timer is due, and what is due now, the earliest first. */
  get nextMs() {
    let first = Infinity;
    for (const { dueMs } of this.#timers.values()) first = Math.min(first, dueMs);
    return first;
  }

  fireOne() {
    let first;
    for (const timer of this.#timers.values()) if (!first || timer.dueMs < first.dueMs) first = timer;
    if (!first || first.dueMs > this.now) return false;
    first.fire();
    return true;
  }

  /** The schedule is over: what it waits for itself happens at once, and no request is answered; `goesOn` lets time pass to the
   * next timer of anybody's, otherwise a millisecond passes. */
  close(goesOn) {
    this.#closed = true;
    for (const [request, { reject }] of [...this.#pending]) {
      this.#pending.delete(request);
      reject(new TypeError('the schedule is over'));
    }
    for (const timer of [...this.#timers.values()]) if (timer.own) timer.fire();
    // A session that has just begun waits for the shortest of timers, and so does its end.
    if (this.#timers.size > 0) this.#aheadMs += goesOn ? Math.max(0, this.nextMs - this.now) : 1;
    while (this.fireOne());
  }

  /** Whoever has waited for something in this process waits no more, and nobody is told. What was sent is on its way. */
  dies() {
    this.deaths += 1;
    for (const [number, { own }] of [...this.#timers]) if (!own) this.#timers.delete(number);
    this.#pending.clear();
  }

  /** What is left of the members. */
  get left() {
    return { timers: [...this.#timers.values()].filter(({ own }) => !own).length, requests: this.#pending.size };
  }
}

// Node's own costs more than all the rest of an answer.
const responseOf = (status, headers, body) => {
  const chunks = body ? [new TextEncoder().encode(body)] : [];
  const reader = { read: async () => ({ done: chunks.length === 0, value: chunks.shift() }), cancel: async () => {} };
  const own = { status, headers: { get: (name) => headers[name] ?? null }, body: { getReader: () => reader } };
  return Object.create(Response.prototype, Object.getOwnPropertyDescriptors(own));
};

/** And so does its request; this one is read at once. */
class LightRequest {
  constructor(url, { method = 'GET', headers = [], body, signal }) {
    Object.assign(this, { url, method, headers: Object.fromEntries(headers), body, signal });
  }
}

/** Who calls a job waits for it no longer than its own signal says. */
export const callsJob = (job, request) => new Promise((resolve, reject) => {
  request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
  job(request).then(({ status, headers, body }) => resolve(responseOf(status, headers, body)), reject);
});

/** Everything that needs no time happens. */
export const settle = () => new Promise((resolve) => real.setImmediate(resolve));

const WORKERS = { userAgent: 'Cloudflare-Workers' };

let runtime;

/** From now on the process lives in this runtime. */
export const enter = (next) => {
  runtime = next;
};

/** The process's own clocks and timers give way to a schedule's. */
export const virtual = () => {
  globalThis.setTimeout = (callback, ms, ...given) => runtime.set(given.length > 0 ? () => callback(...given) : callback, ms);
  globalThis.setInterval = (callback, ms) => runtime.set(callback, ms, { every: true });
  globalThis.clearTimeout = (timer) => runtime.clear(timer);
  globalThis.clearInterval = globalThis.clearTimeout;
  globalThis.performance.now = () => (runtime.single ? runtime.wall : runtime.now);
  Date.now = () => runtime.wall;
  const { navigator } = globalThis;
  Object.defineProperty(globalThis, 'navigator', { get: () => (runtime?.single ? WORKERS : navigator), configurable: true });
  globalThis.fetch = (what, init) => (what instanceof LightRequest ? runtime.fetch(what.url, { ...what, ...init }) : runtime.fetch(what, init));
  globalThis.Request = LightRequest;
  for (const method of ['log', 'error']) {
    const own = console[method].bind(console);
    console[method] = (...what) => (/^edgelect/.test(what[0]) ? runtime.logs(what[0], method === 'error') : own(...what));
  }
  crypto.getRandomValues = (array) => runtime.random(array);
};
