// One term's fence: what the election says of its authority now, and a timer for when nobody asks.
import { ownTimers } from './host.js';

// How often the authority is read besides: a timer does not count the time of a suspend.
const WATCH_MS = 1_000;
// How soon it is read again where a reading proved nothing. Also how long the election's own event has, which says why.
const LATE_MS = 20;
// The same for a single clock, which is held at each of these timers: seldom enough, and no parts of a frequentInterval, so that few
// renewals begin or are answered in such a millisecond.
const SINGLE_WATCH_MS = 970;
const SINGLE_LATE_MS = 97;
// 128 kB: the arguments of a call lie on the stack.
const ROOM = new Array(16_000).fill(0);

/** Calls `tell` now, or in a microtask, whose stack is empty, if the stack has no room left for it and for what it calls: a
 * callback or a listener that the end of the stack has interrupted can't be called a second time. `note` is called before a
 * microtask, and says at once what others only hear later. Returns whether there is one. */
export const inFull = (tell, note) => {
  try {
    Reflect.apply(() => {}, undefined, ROOM);
  } catch {
    note();
    void Promise.resolve().then(tell);
    return true;
  }
  tell();
  return false;
};

export class Fence {
  #engine;
  #number;
  #onOver;
  #onSeen;
  #onProven;
  #timers;
  /** Takes the timer back. */
  #forget;
  #closed = false;
  /** Whether the end is told at the next turn. */
  #telling = false;

  /** `onOver(reason)` is called once the authority is over, unless the election says so itself and this is closed then, and
   * before it `onSeen(reason)` where the stack has no room to tell; `onProven` at each check at which there is authority. */
  constructor(engine, number, { onOver, onSeen, onProven, unref }) {
    this.#engine = engine;
    this.#number = number;
    this.#onOver = onOver;
    this.#onSeen = onSeen;
    this.#onProven = onProven;
    this.#timers = engine.sharedTimers ?? ownTimers(unref);
  }

  /** Milliseconds of authority that this reading leaves, 0 once it is over. Where a single clock proves nothing for a moment
   * (S11) that is advice: no reading ends a term that the election goes on with. */
  get remaining() {
    return this.#read()?.remainingMs ?? 0;
  }

  /** Whether there is authority, proven by this reading. */
  get leads() {
    return this.#read()?.proven === true;
  }

  /** Checks now, and again and again until it is closed. */
  watch() {
    this.#forget?.();
    if (this.#closed) return;
    const standing = this.#standing();
    if (standing?.proven) this.#onProven();
    if (this.#closed) return;
    const [watchMs, lateMs] = this.#engine.isOnWorkers ? [SINGLE_WATCH_MS, SINGLE_LATE_MS] : [WATCH_MS, LATE_MS];
    const ms = standing?.proven ? Math.min(standing.remainingMs, watchMs) : lateMs;
    this.#forget = this.#timers.set(ms, () => this.#read() && this.watch());
  }

  close() {
    this.#closed = true;
    this.#forget?.();
  }

  #standing() {
    const standing = this.#engine.standing();
    return standing && standing.term !== this.#number ? undefined : standing;
  }

  #read() {
    if (this.#closed) return undefined;
    const standing = this.#standing();
    if (standing) return standing;
    // Where the stack has no room to ask, nobody knows yet.
    const seen = () => standing === undefined && this.#onSeen(this.#reason());
    if (!this.#telling) this.#telling = inFull(() => this.#over(), seen);
    return undefined;
  }

  #over() {
    this.#telling = false;
    // Asked again: in an exhausted stack there is no answer, though the term goes on.
    if (this.#closed) return;
    if (this.#standing()) return this.watch();
    // The election has seen it too, and says why; while one of its events is being told, it can do so only afterwards.
    this.#engine.tick();
    if (!this.#closed) this.#onOver(this.#reason());
  }

  #reason() {
    return this.#engine.alive ? 'expired' : 'trap';
  }
}

/** Has the controller's signal call `look` before it says whether it has fired: code that goes on after a blocked event loop
 * asks it before any timer has run. What `look` returns is the reason of a signal whose listeners are yet to be called.
 * Returns a function that fires it. */
export const lookingFirst = (controller, look) => {
  const { signal } = controller;
  const own = (name) => Reflect.get(AbortSignal.prototype, name, signal);
  let fires = false;
  const seen = () => {
    const reason = look();
    // Deno asks a signal whether it has fired before it fires it.
    return fires ? undefined : reason;
  };
  const aborted = () => seen() !== undefined || own('aborted');
  const reason = () => seen() ?? own('reason');
  const value = () => {
    if (aborted()) throw reason();
  };
  Object.defineProperties(signal, { aborted: { get: aborted }, reason: { get: reason }, throwIfAborted: { value } });
  return (why) => {
    fires = true;
    try {
      controller.abort(why);
    } catch (error) {
      fires = false;
      throw error;
    }
  };
};
