// The wasm, and what became of it.
import { EdgelectError } from './errors.js';
import { hasSingleClock } from './host.js';

export const trapError = (cause) =>
  new EdgelectError('the elector broke down inside; start() makes a new one', { code: 'EDGELECT_TRAP', cause });

// Later: a trap may be an exhausted stack, in which hardly anything can be called. No engine of a broken instance is ever
// asked again, so its authority is gone at once; it stays listed until it has heard of it.
export const endLater = (end, cause) => Promise.resolve(cause).then((why) => end(trapError(why)));

export class Wasm {
  /** What ends each engine in the one instance, which a trap in any of them breaks for all. */
  engines = new Set();
  /** A field, as the next one: in an exhausted stack it is read where nothing can be called. */
  broken = false;
  /** How many instances there have been; an engine lives in the one that it was made in. */
  instance = 0;
  /** Whether a call is under way; an instance is not replaced under it. */
  #inside = false;
  /** When that call began, on Workers. */
  #beganMs = 0;
  #glue;

  /** `glue` is what wasm-bindgen made, initialised before the first call. */
  constructor(glue) {
    this.#glue = glue;
  }

  /** Calls into the wasm, with nothing but texts, numbers, flags and lists of texts of our own making; `work` is given the glue. What it
   * throws on purpose is a text of ours; anything else is a trap, after which its memory may be half-changed: nobody in it
   * has authority any more, and the next call is made in a new instance. `instance` is that of the objects which `work` uses. */
  call(work, instance) {
    if (this.#inside) {
      if (!this.#isLeftBehind()) throw trapError(new Error('called from inside the wasm'));
      [this.#inside, this.broken] = [false, true];
    }
    if (this.broken) {
      this.#endAllLater();
      try {
        this.#glue.__wbg_reset_state();
      } catch (cause) {
        throw trapError(cause);
      }
      this.instance += 1;
      this.broken = false;
    }
    if (instance !== undefined && instance !== this.instance) throw trapError();
    let thrown;
    this.#inside = true;
    try {
      if (hasSingleClock()) this.#beganMs = Date.now();
      return work(this.#glue);
    } catch (error) {
      // First of all, and taken back for a text of ours: in an exhausted stack nothing else may succeed.
      this.broken = true;
      const refused = refusal(error);
      this.broken = refused === undefined;
      thrown = refused ?? error;
      if (this.broken) this.#endAllLater(error);
    } finally {
      this.#inside = false;
    }
    throw this.broken ? trapError(thrown) : thrown;
  }

  /** Whether the call under way was ended from outside, because the CPU of its event was used up: nothing of it was unwound.
   * The clock of Workers stands still within a call. */
  #isLeftBehind() {
    return hasSingleClock() && Date.now() !== this.#beganMs;
  }

  #endAllLater(cause) {
    for (const end of this.engines) endLater(end, cause);
  }
}

/** What a text that the wasm threw says, or undefined for anything else. */
const refusal = (thrown) => {
  if (typeof thrown !== 'string' || !thrown.startsWith('{"code":')) return undefined;
  const { code, message, field } = JSON.parse(thrown);
  return new EdgelectError(message, { code, field });
};
