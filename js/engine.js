import { RawElector, __wbg_reset_state, check, checkBucket, fromVariables } from './dist/edgelect.js';
import { EdgelectError, toJson } from './errors.js';
import { Host } from './host.js';

/** What ends each engine in the one wasm instance, which a trap in any of them breaks for all. */
const engines = new Set();
let broken = false;
/** How many instances there have been; an engine lives in the one that it was made in. */
let instance = 0;
/** Whether a call is under way; an instance is not replaced under it. */
let inside = false;

const trapError = (cause) =>
  new EdgelectError('the elector broke down inside; start() makes a new one', { code: 'EDGELECT_TRAP', cause });

// Later: a trap may be an exhausted stack, in which hardly anything can be called. No engine of a broken instance is ever
// asked again, so its authority is gone at once; it stays listed until it has heard of it.
const endLater = (end, cause) => Promise.resolve(cause).then((why) => end(trapError(why)));

const endAllLater = (cause) => {
  for (const end of engines) endLater(end, cause);
};

/** Calls into the wasm, with nothing but texts, numbers and flags of our own making. What it throws on purpose is a text
 * of ours; anything else is a trap, after which its memory may be half-changed: nobody in it has authority any more, and
 * the next call is made in a new instance. */
const call = (work) => {
  if (inside) throw trapError(new Error('called from inside the wasm'));
  if (broken) {
    endAllLater();
    __wbg_reset_state();
    instance += 1;
    broken = false;
  }
  let thrown;
  inside = true;
  try {
    return work();
  } catch (error) {
    // First of all, and taken back for a text of ours: in an exhausted stack nothing else may succeed.
    broken = true;
    const refused = refusal(error);
    broken = refused === undefined;
    thrown = refused ?? error;
    if (broken) endAllLater(error);
  } finally {
    inside = false;
  }
  throw broken ? trapError(thrown) : thrown;
};

/** What a text that the wasm threw says, or undefined for anything else. */
const refusal = (thrown) => {
  if (typeof thrown !== 'string' || !thrown.startsWith('{"code":')) return undefined;
  const { code, message, field } = JSON.parse(thrown);
  return new EdgelectError(message, { code, field });
};

/** The settings in force, or the EdgelectError that names what is wrong with them. */
export const checked = (json, bucket) => JSON.parse(call(() => check(json, bucket?.json, bucket?.credentials, new Host())));

export const checkedBucket = (json, credentials) => call(() => checkBucket(json, credentials, new Host()));

/** Settings, bucket and credentials out of an object of variables. */
export const readVariables = (variables) => {
  const json = toJson(variables);
  return JSON.parse(call(() => fromVariables(json)));
};

/** One session: an election inside the wasm and the operations that it has begun outside. */
export class Engine {
  #raw;
  #host;
  #onEvent;
  #mayMove;
  #events = [];
  #driving = false;
  #again = false;
  #ended = false;
  #instance;
  #breakDown = (error) => this.#end(error);

  /** `settings` is JSON, and so is `schedule`, for an engine that runs slots. `format` is
   * that of a storage's records, unless it is a bucket. `onEvent` hears each event; the last one is
   * `finished`, with `error` if something broke. `mayMove` is asked before each turn, and may close this engine instead. */
  constructor({ settings, storage, bucket, schedule, format, unref, onEvent, mayMove = () => true }) {
    const settle = (id, ok, head, body) => this.#tell((raw) => raw.settle(id, ok, head, body));
    this.#host = new Host({ settle, storage, credentials: bucket?.provider, unref });
    this.#raw = call(() => new RawElector(settings, bucket?.json, bucket?.credentials, schedule, format, this.#host));
    this.#instance = instance;
    this.#onEvent = onEvent;
    this.#mayMove = mayMove;
    engines.add(this.#breakDown);
  }

  /** False as soon as nothing can be asked any more, which may be a moment before `finished` is told. */
  get alive() {
    return !this.#ended && !broken && this.#instance === instance;
  }

  run() {
    this.#tell((raw) => raw.run());
  }

  init() {
    this.#tell((raw) => raw.init());
  }

  /** Opens or writes the checkpoint at `lockfilePath`; `order` is JSON. What is held then is told as an event. */
  checkpoint(order) {
    this.#ask((raw) => raw.checkpoint(order));
    this.#drive();
  }

  /** Performs one operation of a probe, whose key is `lockfilePath`; the answer is told as an event. */
  ask({ body, version, retire = false, timeoutMs }) {
    this.#tell((raw) => raw.ask(body, version, retire, timeoutMs));
  }

  tick() {
    this.#tell((raw) => raw.tick());
  }

  resign() {
    this.#tell((raw) => raw.resign());
  }

  stop(park) {
    this.#tell((raw) => raw.stop(park));
  }

  workEnded(term) {
    this.#tell((raw) => raw.workEnded(term));
  }

  /** How the job of this term's slot has ended. */
  slotEnded(term, { done, failed, result, tookMs }) {
    this.#tell((raw) => raw.slotEnded(term, done, failed, result, tookMs));
  }

  /** New settings, as JSON; they are heard at the next turn. */
  configure(settings) {
    this.#ask((raw) => raw.configure(settings));
    Promise.resolve().then(() => this.#drive());
  }

  /** `[term, remainingMs]`, or undefined without authority. */
  authority() {
    try {
      return this.alive ? this.#ask((raw) => raw.authority()) : undefined;
    } catch {
      return undefined;
    }
  }

  status() {
    return JSON.parse(this.#ask((raw) => raw.status()));
  }

  health() {
    return JSON.parse(this.#ask((raw) => raw.health()));
  }

  /** Ends at once, whatever is under way. */
  close() {
    if (this.#ended) return;
    this.#ended = true;
    engines.delete(this.#breakDown);
    this.#host.close();
    // Looked at only now: the listeners of what was aborted may have broken it.
    if (!broken && this.#instance === instance) this.#attempt((raw) => raw.free());
    // What a trap left half-changed goes with its instance; the garbage collector must not touch it.
    else this.#raw.__destroy_into_raw();
  }

  #ask(what) {
    if (!this.alive) throw trapError();
    return call(() => what(this.#raw));
  }

  /** Nobody waits for what goes wrong here: a trap tells everybody by itself. */
  #attempt(what) {
    try {
      return call(() => what(this.#raw));
    } catch {
      return undefined;
    }
  }

  #tell(what) {
    if (this.#ended) return;
    if (!this.alive) {
      endLater(this.#breakDown);
      return;
    }
    this.#attempt(what);
    this.#drive();
  }

  #drive() {
    // A callback that calls the elector comes here while its event is being told.
    this.#again = true;
    if (this.#driving) return;
    // What an exhausted stack or an error of ours leaves undone is done at the next turn.
    Promise.resolve().then(() => this.#resume());
    this.#driving = true;
    try {
      while (this.#again && this.alive) {
        this.#again = false;
        if (!this.#mayMove()) break;
        const events = this.#attempt((raw) => raw.poll());
        if (events === undefined) break;
        this.#events.push(...JSON.parse(events));
        this.#tellEvents();
        // A broken instance sends nothing more: its write would bind a group to nobody.
        if (this.alive) this.#host.startAll();
      }
    } finally {
      this.#driving = false;
    }
  }

  #tellEvents() {
    while (this.#events.length > 0 && this.alive) {
      const event = this.#events.shift();
      if (event.type === 'finished') this.#end(event.error);
      else if (event.type === 'failed') this.#onEvent({ ...event, cause: this.#causeOf(event.message) });
      else this.#onEvent(event);
    }
  }

  #resume() {
    if (this.#driving || !this.alive) return;
    if (this.#again || this.#events.length > 0 || this.#host.waits) {
      this.#tellEvents();
      this.#drive();
    }
  }

  #end(error) {
    if (this.#ended) return;
    this.close();
    const { code, field, message } = error ?? {};
    const known = error === undefined || error instanceof EdgelectError;
    const cause = known ? undefined : this.#causeOf(message);
    this.#onEvent({ type: 'finished', error: known ? error : new EdgelectError(message, { code, field, cause }) });
  }

  /** The failed operation that a message tells of, if it is one of ours. */
  #causeOf(message) {
    const { failure } = this.#host;
    return failure && message.includes(failure.message) ? failure : undefined;
  }
}
