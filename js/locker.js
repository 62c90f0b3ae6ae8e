// What tells a backend of three calls, `tryAcquire`, `renew` and `release`, from a storage, and what it is refused. How elections
// go over it is in src/locker.rs; what is promised of it is in index.d.ts.
import { bucketOf } from './bucket.js';
import { EdgelectError } from './errors.js';

export const LOCKER_METHODS = ['tryAcquire', 'renew', 'release'];

const has = (storage, names) => names.every((name) => typeof storage?.[name] === 'function');

/** Whether a storage is such a backend. One that has versions as well is used by them. */
export const isLocker = (storage) =>
  has(storage, LOCKER_METHODS) && !has(storage, ['get', 'putIfMatch']) && bucketOf(storage) === undefined;

export const unfencedError = (what) => {
  const message = `${what} needs a storage with versions (get and putIfMatch): one of tryAcquire, renew and release has no `
    + 'fencing tokens, and nothing that a late writer could be refused by';
  return new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'storage' });
};
