// A job's own state in an object that no earlier term can change; how it is read and written is in src/checkpoint.rs.
import { Engine } from './engine.js';
import { EdgelectError, isLost, timeOf, toJson, wrongOption } from './errors.js';

/** Opens the checkpoint `key` for a term. `place` says where the group's objects are, `session` whose term it is. */
export const openCheckpoint = async (term, key, place, session) => {
  throwIfLost(term);
  const owner = { session: session(), token: term.token };
  const carryOut = (more) => carriedOut(term, place(), key, JSON.stringify({ ...owner, ...more }));
  const { held, error } = await carryOut();
  if (error) throw error;
  return new Checkpoint(term, held, carryOut);
};

class Checkpoint {
  #term;
  /** What the next write goes on with, as the wasm gave it; nothing if the last one broke off. */
  #held;
  #value = null;
  #carryOut;
  #writing = false;

  constructor(term, held, carryOut) {
    this.token = term.token;
    this.#term = term;
    this.#carryOut = carryOut;
    this.#hold(held);
    Object.freeze(this);
  }

  get value() {
    return this.#value;
  }

  async write(value) {
    throwIfLost(this.#term);
    const plain = plainOf(value, 'value', VALUE_RULE);
    // A getter or a `toJSON` of the value may have outlived the term, or given it up.
    throwIfLost(this.#term);
    // In a queue the second would be made of a value that the first has replaced.
    if (this.#writing) throw new EdgelectError('a write of this checkpoint is under way: await it first', { code: 'EDGELECT_BUSY' });
    const before = this.#held;
    if (!before) throw new EdgelectError('the last write broke off: open the checkpoint again', { code: 'EDGELECT_UNKNOWN' });
    this.#writing = true;
    this.#held = undefined;
    try {
      const { held, error } = await this.#carryOut({ ...before, value: plain });
      this.#hold(held ?? before);
      if (error) throw error;
    } finally {
      this.#writing = false;
    }
  }

  #hold({ value, ...held }) {
    this.#held = held;
    // Frozen: what is not written is not the state.
    if (value !== undefined) this.#value = frozen(value);
  }
}

/** One opening or write: a task of its own in the wasm, which moves only while the term has authority. Resolves to what is
 * held then, unless nothing was sent, and to the error if there is one; rejects where nobody knows what is held. */
const carriedOut = (term, place, key, order) =>
  new Promise((resolve, reject) => {
    const { signal } = term;
    let held;
    const lost = () => {
      engine.close();
      reject(signal.reason);
    };
    // Looked at in the turn in which something may leave: the process may have been stopped since the last one.
    const mayMove = () => !term.signal.aborted;
    const onEvent = ({ type, error, ...rest }) => {
      if (type === 'held') {
        held = rest;
        return;
      }
      signal.removeEventListener('abort', lost);
      if (held) resolve({ held, error });
      else reject(error);
    };
    const engine = engineAt(place, key, { onEvent, mayMove });
    signal.addEventListener('abort', lost, { once: true });
    // It may have fired before, under code of the storage's that was asked for its place: nothing would tell of it then.
    if (signal.aborted) {
      lost();
      return;
    }
    try {
      engine.checkpoint(order);
    } catch (error) {
      // A value that is refused before anything left, or a trap.
      signal.removeEventListener('abort', lost);
      engine.close();
      if (error.code === 'EDGELECT_CONFIG') resolve({ error: Object.assign(error, { field: 'value' }) });
      else reject(error);
    }
  });

const KEY_RULE = 'is the key of an object beside the lease object: 1 to 1024 bytes, without a leading slash, empty or dot '
  + 'segments, or control characters, such as "reports/cursor.json"';

/** An engine for another object of the group's store. */
const engineAt = ({ settings, bucket, format: _, ...place }, key, hooks) => {
  const group = JSON.parse(settings);
  const wrong = (rule) => new EdgelectError(`key = ${toJson(key)}: ${rule}`, { code: 'EDGELECT_CONFIG', field: 'key' });
  if (typeof key !== 'string') throw wrongOption('key', key, KEY_RULE);
  if (key === group.lockfilePath) throw wrong('is the lease object (lockfilePath); a checkpoint needs one of its own');
  try {
    return new Engine({ ...place, bucket: bucket && { ...bucket, json: native(bucket.json) }, settings: toJson({ ...group, lockfilePath: key }), ...hooks });
  } catch (error) {
    throw error.field === 'lockfilePath' ? wrong(KEY_RULE) : error;
  }
};

/** A checkpoint is nobody else's record: it is native, whatever the lease's format is. */
const native = (json) => {
  if (json === undefined) return undefined;
  const { format: _, kind, ...options } = JSON.parse(json);
  if (kind !== undefined) {
    const message = 'a checkpoint is an object that compare-and-swap changes: an S3Storage, an R2Storage or one of your own has them, this storage keeps leases only';
    throw new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'checkpoint' });
  }
  return JSON.stringify(options);
};

const throwIfLost = ({ signal }) => {
  if (signal.aborted) throw signal.reason;
};

const frozen = (value) => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
};

/** How deep the wasm reads a value. */
const DEEPEST = 126;
const VALUE_RULE = `must be JSON, nested no deeper than ${DEEPEST} levels: objects, lists, texts, flags, finite numbers and null`;

/** An object literal, a list, or no object at all; a Map, a Promise or an instance would be written as something else. */
const isPlain = (part) => {
  if (typeof part !== 'object' || part === null) return true;
  // What JSON leaves out in silence.
  if (Object.getOwnPropertySymbols(part).length > 0) return false;
  if (Array.isArray(part)) return Object.keys(part).length === part.length;
  const prototype = Object.getPrototypeOf(part);
  // Of whatever realm: a literal's prototype is the last of its chain.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** A `Date` that is none is JSON's null. */
const isNoDate = (given) => Number.isNaN(timeOf(given));

/** What the value of an option is as JSON, with nothing lost in silence but what its own `toJSON` leaves out, the sign of a zero, and
 * fields that are undefined. What else would be lost is refused by this rule. */
export const plainOf = (value, field, rule) => {
  let json;
  try {
    json = JSON.stringify(value, function keep(name, part) {
      const lost = isLost(part) || !isPlain(part) || (part === undefined && Array.isArray(this)) || (part === null && isNoDate(this[name]));
      if (lost) throw wrongOption(field, part, rule);
      return part;
    });
  } catch (cause) {
    if (cause instanceof EdgelectError) throw cause;
    throw new EdgelectError(`${field}: ${rule}`, { code: 'EDGELECT_CONFIG', field, cause });
  }
  if (json === undefined) throw wrongOption(field, value, rule);
  const plain = JSON.parse(json);
  if (!isShallow(plain)) throw wrongOption(field, plain, rule);
  return plain;
};

const isShallow = (value) => {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) return false;
    level = level.filter((part) => typeof part === 'object' && part !== null).flatMap((part) => Object.values(part));
  }
  return true;
};
