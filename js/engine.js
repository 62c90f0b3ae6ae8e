import { RawElector, __wbg_reset_state, check, checkBucket, fromVariables } from './dist/edgelect.js';
import { EdgelectError, toJson } from './errors.js';
import { Host } from './host.js';

/** The engines in the one wasm instance, which a trap in any of them breaks for all. */
const engines = new Set();
let broken = false;
/** How many instances there have been; an engine lives in the one that it was made in. */
let instance = 0;

const trapError = (cause) =>
  new EdgelectError('the elector broke down inside; start() makes a new one', { code: 'EDGELECT_TRAP', cause });

/** Calls into the wasm, and into nothing of the application's. What it throws on purpose is a text of ours; anything else is a trap, after which its memory
 * may be half-changed: nobody in it has authority any more, and the next call is made in a new instance. */
const call = (work) => {
  if (broken) {
    __wbg_reset_state();
    instance += 1;
    broken = false;
  }
  try {
    return work();
  } catch (thrown) {
    if (typeof thrown === 'string') {
      const { code, message, field } = JSON.parse(thrown);
      throw new EdgelectError(message, { code, field });
    }
    broken = true;
    const error = trapError(thrown);
    for (const end of [...engines]) endLater(end, error);
    throw error;
  }
};

// Later: a trap may be an exhausted stack, in which nothing more can be called. No engine of a broken instance is ever
// asked again, so its authority is gone at once.
const endLater = (end, error) => {
  engines.delete(end);
  Promise.resolve(error).then(end);
};

/** The settings in force, or the EdgelectError that names what is wrong with them. */
export const checked = (settings, bucket) => {
  const json = toJson(settings);
  return JSON.parse(call(() => check(json, bucket?.json, bucket?.credentials, new Host())));
};

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
  #driving = false;
  #again = false;
  #ended = false;
  #instance;
  #breakDown = (error) => this.#end(error);

  /** `onEvent` hears each event; the last one is `finished`, with `error` if something broke. */
  constructor({ settings, storage, bucket, unref, onEvent }) {
    const settle = (...how) => this.#tell((raw) => raw.settle(...how));
    this.#host = new Host({ settle, storage, credentials: bucket?.provider, unref });
    const json = toJson(settings);
    this.#raw = call(() => new RawElector(json, bucket?.json, bucket?.credentials, this.#host));
    this.#instance = instance;
    this.#onEvent = onEvent;
    engines.add(this.#breakDown);
  }

  run() {
    this.#tell((raw) => raw.run());
  }

  init() {
    this.#tell((raw) => raw.init());
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

  configure(settings) {
    const json = toJson(settings);
    this.#ask((raw) => raw.configure(json));
    this.#drive();
  }

  /** `[term, remainingMs]`, or undefined without authority. */
  authority() {
    try {
      return this.#ask((raw) => raw.authority());
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
    // What a trap left half-changed goes with its instance.
    if (!this.#broken()) this.#attempt((raw) => raw.free());
  }

  #broken() {
    return broken || this.#instance !== instance;
  }

  #ask(what) {
    if (this.#ended || this.#broken()) throw trapError();
    return call(() => what(this.#raw));
  }

  /** Nobody waits for what goes wrong here: a trap tells everybody by itself. */
  #attempt(what) {
    try {
      call(() => what(this.#raw));
    } catch {
      return;
    }
  }

  #tell(what) {
    if (this.#ended || this.#broken()) return;
    this.#attempt(what);
    this.#drive();
  }

  #drive() {
    // A callback that calls the elector comes here while its event is being told.
    this.#again = true;
    if (this.#driving) return;
    this.#driving = true;
    try {
      while (this.#again && !this.#ended && !this.#broken()) {
        this.#again = false;
        let events = '[]';
        this.#attempt((raw) => {
          events = raw.poll();
        });
        for (const event of JSON.parse(events)) {
          if (event.type === 'finished') this.#end(event.error);
          else if (!this.#ended) this.#onEvent(event);
        }
        this.#host.startAll();
      }
    } finally {
      this.#driving = false;
    }
  }

  #end(error) {
    if (this.#ended) return;
    this.close();
    const { code, message } = error ?? {};
    const known = error === undefined || error instanceof EdgelectError;
    this.#onEvent({ type: 'finished', error: known ? error : new EdgelectError(message, { code }) });
  }
}
