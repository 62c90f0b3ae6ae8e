// What users of an `ObjectStoreBasedLock` and its `LeaderElectionConfig` know, as a view of a storage and of the options.
import { bucketOf } from './bucket.js';
import { plainOf } from './checkpoint.js';
import { leaderElection, unheldNumber } from './engine.js';
import { EdgelectError, callOptions, optionsOf, signalOf, textOf, unlessAborted, wrongOption } from './errors.js';
import { bytesOf, validEtag } from './host.js';
import { Objects } from './objects.js';
import { checkNoBinding } from './r2.js';

/** The longest record, in bytes, as in src/lease.rs. */
const MAX_RECORD_BYTES = 65_536;
const OPTIONS = [
  'leaseDuration', 'renewDeadline', 'retryPeriod', 'releaseOnCancel', 'holderIdentity', 'leaderKey', 'leaderCallbacks', 'onWarning',
];
const CALLBACKS = ['onStartLeading', 'onStopLeading', 'onNewLeader'];

/** The five calls of the lock interface over an `S3Storage`, or anything with `get` and `putIfMatch`. */
export const objectStoreLock = (options) => {
  const { storage: given, key, identity } = optionsOf(options, 'objectStoreLock takes an object with storage, key and identity');
  const storage = objectsOf(given);
  for (const [name, value] of Object.entries({ key, identity })) {
    if (typeof value !== 'string' || value === '') throw wrongOption(name, value, 'must be a text');
  }
  if (storage instanceof Objects) storage.check(key);
  const place = `the object ${JSON.stringify(key)}`;
  /** A success with the version that was to be replaced says nothing, unless the record was written again as it stood there. */
  const readBack = async (body, etag, signal) => {
    const unknown = (cause) => new EdgelectError(`${place}: a write was answered with a success and the version before it, so something else than the store may have said it; read the object`, {
      code: 'EDGELECT_UNKNOWN', cause,
    });
    let found;
    try {
      found = await unlessAborted(storage.get(key, { signal }), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw unknown(error);
    }
    const { body: shown, etag: version } = found ?? {};
    const bytes = typeof shown === 'string' ? new TextEncoder().encode(shown) : bytesOf(shown);
    if (version === etag && bytes?.length === body.length && body.every((byte, at) => byte === bytes[at])) return;
    throw unknown();
  };
  const put = async (record, etag, signal) => {
    const body = new TextEncoder().encode(recordText(record));
    // What nobody reads would keep the group from a leader until an elector heals it.
    if (body.length > MAX_RECORD_BYTES) throw wrongOption('record', record, `has ${body.length} bytes as JSON, and a record at most ${MAX_RECORD_BYTES}`);
    const written = await unlessAborted(storage.putIfMatch(key, body, etag, { signal }), signal);
    const version = validEtag(written ?? {}) ?? null;
    if (written && etag !== null && version === etag) await readBack(body, etag, signal);
    if (written) return { etag: version };
    const what = etag === null ? 'exists already' : 'is not what it was any more';
    throw new EdgelectError(`${place} ${what}: somebody else wrote it, or an earlier attempt of this write did; read it`, {
      code: 'EDGELECT_CONFLICT',
    });
  };
  return Object.freeze({
    async get(options) {
      const signal = waits(options, 'get');
      const found = await unlessAborted(storage.get(key, { signal }), signal);
      if (found === null || found === undefined) return null;
      return readFound(found, place);
    },
    create: async (record, options) => put(record, null, waits(options, 'create')),
    async update(oldEtag, record, options) {
      if (typeof oldEtag !== 'string' || oldEtag === '') throw wrongOption('oldEtag', oldEtag, 'must be the etag that get gave');
      return put(record, oldEtag, waits(options, 'update'));
    },
    identity: () => identity,
    describe: () => `${key} (${identity})`,
  });
};

/** The signal of a call, which has not fired yet. */
const waits = (options, call) => {
  const signal = signalOf(callOptions(options, ['signal'], call)) ?? new AbortController().signal;
  signal.throwIfAborted();
  return signal;
};

/** What reads and writes the object: the storage itself, or a view of its bucket. */
const objectsOf = (storage) => {
  checkNoBinding(storage);
  if (typeof storage?.get === 'function' && typeof storage?.putIfMatch === 'function') return storage;
  const bucket = typeof storage === 'object' && storage !== null ? bucketOf(storage) : undefined;
  if (bucket?.json === undefined) throw wrongOption('storage', storage, 'must be an S3Storage, or have the methods get and putIfMatch');
  if (JSON.parse(bucket.json).kind !== undefined) {
    throw wrongOption('storage', storage, 'must be one that keeps a record as the object of its key: an S3Storage, an R2Storage, or one '
      + 'with get and putIfMatch; over this one status() of an Elector tells who leads');
  }
  return new Objects(bucket);
};

const RECORD_RULE = 'must be a plain object with holderIdentity, leaseDuration, acquireTime, renewTime and leaderTransitions, and nothing '
  + 'in it that JSON would change or lose: no NaN, no function, no Map, no Date that is none';

const recordText = (record) => {
  const plain = plainOf(record, 'record', RECORD_RULE);
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) throw wrongOption('record', record, RECORD_RULE);
  return JSON.stringify(plain);
};

const readFound = (found, place) => {
  const unfit = (why, cause) => new EdgelectError(`${place} ${why}; nothing was changed`, { code: 'EDGELECT_STORE', cause });
  const etag = validEtag(found);
  if (!etag) throw unfit('has no etag, a text of at most 1024 characters');
  const bytes = typeof found.body === 'string' ? new TextEncoder().encode(found.body) : bytesOf(found.body);
  if (!bytes) throw unfit('has no body, a text or a Uint8Array');
  if (bytes.length > MAX_RECORD_BYTES) throw unfit('is larger than 64 KiB');
  let text;
  let record;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    record = JSON.parse(text);
  } catch (cause) {
    throw unfit(`is not JSON (${textOf(cause).slice(0, 100)})`, cause);
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record)) throw unfit('is not a JSON object');
  const number = unheldNumber(text);
  if (number !== undefined) throw unfit(`has the number ${number.slice(0, 40)}, which JavaScript would change: its numbers are 64-bit floats`);
  return { record, etag };
};

/** The options of `new Elector` that mean the same. */
export const leaderElectionOptions = (taken) => {
  const options = optionsOf(taken, `leaderElectionOptions takes an object with ${OPTIONS.join(', ')}`);
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown) throw wrongOption(unknown, options[unknown], `no such option; there are ${OPTIONS.join(', ')}`);
  const { releaseOnCancel = true, leaseDuration, renewDeadline, retryPeriod, holderIdentity, leaderKey } = options;
  const { onWarning = (text) => console.warn(`edgelect: ${text}`) } = options;
  const leaderCallbacks = optionsOf(options.leaderCallbacks, `must be an object with ${CALLBACKS.join(', ')}`, 'leaderCallbacks');
  if (typeof onWarning !== 'function') throw wrongOption('onWarning', onWarning, 'must be a function');
  const { warning, ...settings } = leaderElection({ leaseDuration, renewDeadline, retryPeriod, holderIdentity, leaderKey });
  if (warning) onWarning(warning);
  return given({ ...settings, releaseOnStop: releaseOnCancel, ...callbacksOf(leaderCallbacks) });
};

const callbacksOf = (callbacks) => {
  const unknown = Object.keys(callbacks).find((name) => !CALLBACKS.includes(name));
  if (unknown) throw wrongOption(`leaderCallbacks.${unknown}`, callbacks[unknown], `no such callback; there are ${CALLBACKS.join(', ')}`);
  for (const name of CALLBACKS) {
    const callback = callbacks[name] ?? undefined;
    if (callback !== undefined && typeof callback !== 'function') throw wrongOption(`leaderCallbacks.${name}`, callback, 'must be a function');
  }
  return {
    onAcquireLeadership: callbacks.onStartLeading && ((term) => callbacks.onStartLeading(term)),
    onLoseLeadership: callbacks.onStopLeading && ((lost) => callbacks.onStopLeading(lost)),
    // Theirs hears of leaders only, and not that there is none.
    onNewLeader: callbacks.onNewLeader && ((id) => (id === null ? undefined : callbacks.onNewLeader(id))),
  };
};

const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
