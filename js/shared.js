// What many groups of one process share: one timer, one budget of requests, one judgement of the store, room for
// held questions.
import { ownWasm } from './engine.js';
import { hasSingleClock, setTimer } from './host.js';

/** Under this an `Electors` hands its groups what they share. No application has it. */
export const SHARED = Symbol('shared');

/** Under this an elector, or an `Electors`, says whether it has a page. */
export const HAS_PAGE = Symbol('page');

/** Under this an elector gives what its metrics are made of. */
export const SAMPLES = Symbol('samples');

/** Under this an elector is told to stop when a promise has settled. */
export const STOP_LATER = Symbol('stopLater');

/** Under this an elector says whether its session has failed. */
export const FAILED = Symbol('failed');

/** Under this an elector knows that its `Electors` has it no more. */
export const REMOVED = Symbol('removed');

/** Under this an elector says whether a callback or the work runs its first, synchronous part: who stops it there is waited for,
 * and must not wait for themselves. */
export const INSIDE = Symbol('inside');

/** What has to stop before a group's lease is released and another term is claimed: all that runs under its terms or for their
 * end, of every session there was. */
export class Work {
  #running = new Set();
  /** Who waits for all of it to have stopped. */
  #idle = new Set();

  get goesOn() {
    return this.#running.size > 0;
  }

  /** Lists one. Returns a function that removes it. Called before it begins: its first part may give the term up, and the lease
   * waits for what is listed then. */
  begin() {
    const one = {};
    this.#running.add(one);
    return () => {
      this.#running.delete(one);
      if (!this.goesOn) this.#tellIdle();
    };
  }

  /** Calls `then` at the turn after all of it has stopped; returns a function that takes this back. */
  after(then) {
    this.#idle.add(then);
    if (!this.goesOn) this.#tellIdle();
    return () => this.#idle.delete(then);
  }

  /** The runtime forgot it, so that it never ends. */
  forget() {
    this.#running.clear();
    this.#tellIdle();
  }

  #tellIdle() {
    for (const then of this.#idle) void Promise.resolve().then(() => this.#idle.delete(then) && then());
  }
}

/** Calls a callback or the work of an elector. */
export const calledBack = (elector, call) => {
  const before = elector[INSIDE];
  elector[INSIDE] = true;
  try {
    return call();
  } finally {
    elector[INSIDE] = before;
  }
};

/** The options of an elector that are called. */
export const CALLBACKS = ['onAcquireLeadership', 'onLoseLeadership', 'onNewLeader', 'onSuspect', 'onRecover', 'onError', 'onStatus'];

/** The callbacks among options, bound to them. Not only own properties: an instance of a class has its methods elsewhere. */
export const callbacksOf = (options) => {
  const given = CALLBACKS.map((name) => [name, options[name]]).filter(([, callback]) => callback !== undefined && callback !== null);
  return Object.fromEntries(given.map(([name, callback]) => [name, typeof callback === 'function' ? callback.bind(options) : callback]));
};

/** The options that an elector keeps to its end, and that are no settings of its election. */
export const FIXED = ['storage', 'unref', 'releaseOnStop', 'probe', 'warn', 'log', 'logLevel', 'page', ...CALLBACKS];

/** From how many entries on those that were taken back are cleared away. */
const FEW = 64;

const clock = () => (hasSingleClock() ? Date.now() : performance.now());

/** After how long a session has worked, whatever ends it. */
const LASTS_MS = 10_000;

/** Between sessions that the store ends: the third in a row begins an interval after the second has failed. */
export class Pace {
  #fails = 0;
  #failedMs = 0;
  #beganMs = 0;

  /** Whether one has ever failed. */
  get counts() {
    return this.#fails > 0;
  }

  /** One begins after this pause. */
  began(pauseMs) {
    this.#beganMs = clock() + pauseMs;
  }

  /** One has failed. It is the first in a row if it has lasted: the store has worked meanwhile. */
  failed() {
    const nowMs = clock();
    this.#fails = Math.abs(nowMs - this.#beganMs) < LASTS_MS ? this.#fails + 1 : 1;
    this.#failedMs = nowMs;
  }

  /** How long the next one has to wait; not at all where the clock was set back. */
  leftMs(intervalMs) {
    const passedMs = clock() - this.#failedMs;
    return this.#fails < 2 || passedMs < 0 ? 0 : Math.max(0, intervalMs - passedMs);
  }
}

/** One timer of the runtime for all that waits: a heap of what is due, the nearest first. */
export class SharedTimers {
  #heap = [];
  /** How many in the heap were taken back. */
  #gone = 0;
  /** Takes the runtime's timer back. */
  #forget;
  #armedMs = Infinity;
  #unref;

  constructor(unref) {
    this.#unref = unref;
  }

  set(ms, callback) {
    const entry = { dueMs: clock() + ms, callback };
    this.#push(entry);
    this.#arm();
    return () => {
      if (!entry.callback) return;
      entry.callback = undefined;
      this.#gone += 1;
      if (this.#gone > FEW && this.#gone > this.#heap.length / 2) this.#clear();
      if (this.#gone === this.#heap.length) this.#disarm();
    };
  }

  /** How many wait. */
  get size() {
    return this.#heap.length - this.#gone;
  }

  #arm() {
    const [first] = this.#heap;
    if (!first || first.dueMs >= this.#armedMs) return;
    this.#forget?.();
    this.#armedMs = first.dueMs;
    this.#forget = setTimer(Math.max(0, Math.ceil(first.dueMs - clock())), () => this.#fire(), this.#unref);
  }

  /** Nothing waits any more, and nothing keeps the process alive. */
  #disarm() {
    this.#forget?.();
    this.#armedMs = Infinity;
    this.#heap = [];
    this.#gone = 0;
  }

  #fire() {
    this.#armedMs = Infinity;
    const nowMs = clock();
    try {
      for (;;) {
        const [first] = this.#heap;
        if (!first || (first.callback && first.dueMs > nowMs)) break;
        this.#pop();
        if (first.callback) {
          const { callback } = first;
          first.callback = undefined;
          callback();
        } else this.#gone -= 1;
      }
    } finally {
      // Whatever a callback throws, the others are still due.
      this.#arm();
    }
  }

  #clear() {
    this.#heap = this.#heap.filter(({ callback }) => callback).sort((one, other) => one.dueMs - other.dueMs);
    this.#gone = 0;
  }

  #push(entry) {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent].dueMs <= entry.dueMs) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = entry;
  }

  /** Takes the first one off. */
  #pop() {
    const heap = this.#heap;
    const last = heap.pop();
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1].dueMs < heap[child].dueMs) child += 1;
      if (heap[child].dueMs >= last.dueMs) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
  }
}

/** Where requests wait for their turn. Which of them leaves next is decided in src/electors/budget.rs. */
export class SharedBudget {
  #limits;
  #timers;
  #raw;
  #instance;
  /** What tells each request that waits that it may leave, by its ticket. */
  #waiting = new Map();
  /** Whether a look is to come. */
  #looks = false;
  #forget;

  constructor(limits, timers) {
    this.#limits = limits;
    this.#timers = timers;
  }

  /** Calls `onTurn` once the request may leave, not within this call. Returns what ends its turn, or its wait. */
  enter(urgency, fenceMs, onTurn) {
    const [raw, ticket] = this.#ask((budget) => [budget, budget.ask(urgency, fenceMs)]);
    this.#waiting.set(ticket, onTurn);
    this.#lookSoon();
    return () => {
      // Tickets of a broken instance went with it.
      if (raw !== this.#raw) return;
      this.#waiting.delete(ticket);
      this.#ask((budget) => budget.leave(ticket));
      this.#lookSoon();
    };
  }

  /** `{ underWay, waiting }`. */
  get load() {
    return JSON.parse(this.#ask((budget) => budget.load()));
  }

  #ask(what) {
    if (!this.#raw || ownWasm.broken || this.#instance !== ownWasm.instance) {
      // Whoever waited ended with the instance.
      this.#waiting.clear();
      this.#looks = false;
      this.#raw = ownWasm.call(({ RawBudget }) => new RawBudget(this.#limits, clock()));
      this.#instance = ownWasm.instance;
    }
    return ownWasm.call(() => what(this.#raw), this.#instance);
  }

  /** In a turn of its own, in which many that have ended are one look. */
  #lookSoon() {
    // An event of a Worker that is ended from outside drops what it has queued.
    if (this.#looks && !hasSingleClock()) return;
    this.#looks = true;
    void Promise.resolve().then(() => {
      this.#looks = false;
      this.#look();
    });
  }

  #look() {
    let found;
    try {
      found = this.#ask((budget) => [budget.grant(clock()), budget.waitMs(clock())]);
    } catch {
      // A trap in the wasm: each group hears of it by itself.
      return;
    }
    const [tickets, waitMs] = found;
    this.#forget?.();
    this.#forget = waitMs === undefined ? undefined : this.#timers.set(waitMs, () => this.#look());
    for (const ticket of tickets) {
      const onTurn = this.#waiting.get(ticket);
      this.#waiting.delete(ticket);
      onTurn?.();
    }
  }
}

/** The one store of all groups is judged by the first of them that asks and can; the others wait for that. */
export class Judgement {
  #made = false;
  /** The one that judges. */
  #judge = null;
  #waiting = new Set();

  /**
   * A group that begins by `run(judges)`, which says whether it judges the store, and goes on by `drive`. `start` begins at once
   * or after the one that judges, `now` without waiting any longer. `judged` hears what came of its own judgement.
   */
  join(judges, run, drive) {
    const begin = (own = judges) => {
      this.#waiting.delete(begin);
      if (run(own)) this.#judge = begin;
      drive();
    };
    return {
      start: () => {
        if (judges === false || this.#made) begin(false);
        else if (this.#judge) this.#waiting.add(begin);
        else begin();
      },
      now: () => this.#waiting.has(begin) && begin(false),
      judged: ({ made }) => this.#end(begin, made),
      forget: () => this.#end(begin, false),
    };
  }

  /** One has ended. Where it has judged nothing, the next one that can does. */
  #end(begin, made) {
    this.#waiting.delete(begin);
    if (this.#judge !== begin) return;
    this.#judge = null;
    this.#made = made;
    for (const next of [...this.#waiting]) {
      if (this.#judge) return;
      // What one of them has told its application may have begun another.
      if (this.#waiting.has(next)) next(made ? false : undefined);
    }
  }
}

/** The room for questions of peers that are held, which all groups share: each needs a connection, and a process has a limit of them. */
export class Room {
  /** How many are held. */
  held = 0;
  #least;
  #ofGroups;
  /** Known once it matters: to ask ten thousand groups takes a while. */
  #most;

  /** For at least so many, or as many as one of the groups may hold by itself, which `ofGroups` lists. */
  constructor(least, ofGroups) {
    this.#least = least;
    this.#ofGroups = ofGroups;
  }

  get isFull() {
    if (this.held < this.#least) return false;
    this.#most ??= this.#ofGroups().reduce((most, one) => Math.max(most, one), this.#least);
    return this.held >= this.#most;
  }

  /** Other groups are there, or one has other settings. */
  changed() {
    this.#most = undefined;
  }
}
