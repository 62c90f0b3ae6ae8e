// Members of one group on a storage in memory.
import { Elector, MemoryStorage } from 'edgelect';
import { initSync } from 'edgelect/edgelect.js';
import { atEnd } from './ending.mjs';

export { until } from './until.mjs';

export const KEY = 'a';
export const FAST = { leaderTimeout: 1000, frequentInterval: 250, follow: 'tight', lockfilePath: KEY };

// Long enough that no lease runs out while the machine is busy, or a work looks twice at what another member does.
export const LONG = { leaderTimeout: 8000, frequentInterval: 200 };

const RELEASED = '0001-01-01T00:00:00Z';

/** A backend of three calls, as shardcoordinator's users write one. */
export const newLocker = () => {
  const held = new Map();
  const take = (shard, owner, ttl) => Boolean(held.set(shard, { owner, until: Date.now() + ttl }));
  const free = (shard, owner) => !held.has(shard) || held.get(shard).owner === owner || held.get(shard).until <= Date.now();
  return {
    tryAcquire: async (shard, owner, ttl) => free(shard, owner) && take(shard, owner, ttl),
    renew: async (shard, owner, ttl) => held.get(shard)?.owner === owner && take(shard, owner, ttl),
    release: async (shard, owner) => void (held.get(shard)?.owner === owner && held.delete(shard)),
  };
};

/** A member, which is stopped at the end of the file if a failed test left it running. */
export const member = (storage, options = {}) => {
  const elector = new Elector({ storage, serverId: 'a', ...FAST, ...options });
  atEnd(() => within(elector.stop()).catch(() => {}));
  return elector;
};

export const newGroup = async () => {
  const storage = new MemoryStorage();
  await member(storage).init();
  return storage;
};

/** A leader in a group of its own, with what it was told of losses. */
export const leading = async (options = {}) => {
  const storage = await newGroup();
  const losses = [];
  const elector = member(storage, { onLoseLeadership: (loss) => losses.push(loss), ...options });
  return { elector, storage, losses, term: await started(elector) };
};

/** Starts it, and gives its term once it leads. */
export const started = async (elector) => {
  await elector.start();
  return leads(elector);
};

/** The next term, or an error instead of a test that hangs. */
export const leads = (elector) => within(elector.waitForLeadership());

/** What a promise comes to, or an error instead of a test that hangs. */
export const within = async (promise, limitMs = 30_000) => {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

export const fired = (signal) =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const textOf = (body) => new TextDecoder().decode(body);

/** The JSON of the object `key`, or null. */
export const recordIn = (storage, key = KEY) => {
  const found = storage.get(key);
  return found && JSON.parse(textOf(found.body));
};

export const putRecord = (storage, record, key = KEY) =>
  storage.putIfMatch(key, new TextEncoder().encode(JSON.stringify(record)), storage.get(key)?.etag ?? null);

/** The body of a released lease, or the storage that has one. */
export const isReleased = (body) => textOf(body.get?.(KEY).body ?? body).includes(RELEASED);

/** Whose slots up to `slot` were claimed and done, so that tests need not wait for the clock. */
export const slotRecord = (slot) => ({
  leaderID: 'before', leaderAddr: '', lastUpdated: RELEASED, term: 7, session: 's', sequence: 1, leaseMs: 1000,
  acquired: new Date(slot - 6 * 3_600_000).toISOString(), transitions: 0, parked: false, slot, slotDone: true, format: 1,
});

/** `storage` through calls of a test's own: what `bend` has of `get` and `putIfMatch` comes before the storage's. */
export const bent = (storage, { get, putIfMatch }) => ({
  get: (...how) => (get ? get(...how) : storage.get(...how)),
  putIfMatch: (...how) => (putIfMatch ? putIfMatch(...how) : storage.putIfMatch(...how)),
});

/** `storage`, of whose calls `note(name, ...args)` hears before they are carried out. */
export const noting = (storage, note) => {
  const call = (name) => (...how) => {
    note(name, ...how);
    return storage[name](...how);
  };
  return { get: call('get'), putIfMatch: call('putIfMatch') };
};

/** Runs `work` while `object[name]` is `other`. */
export const replaced = async (object, name, other, work) => {
  const own = object[name];
  object[name] = other;
  try {
    return await work(own);
  } finally {
    object[name] = own;
  }
};

/** Keeps the event loop busy, so that no timer runs. */
export const block = (ms) => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

export const gated = () => {
  let resolve;
  return { promise: new Promise((own) => (resolve = own)), resolve };
};

/** Nothing of the package's survives in such a memory: the next step inside must trap. */
export const breakMemory = () => new Uint8Array(initSync().memory.buffer).fill(0xff);
