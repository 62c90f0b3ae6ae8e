// A backend of three calls, `tryAcquire`, `renew` and `release`, as the storage of one session. It tells no version, no time
// and no name of a leader, so the records that are shown here are made up; what is promised of it is in index.d.ts.
import { bucketOf } from './bucket.js';
import { EdgelectError } from './errors.js';

export const LOCKER_METHODS = ['tryAcquire', 'renew', 'release'];
const RELEASED = '0001-01-01T00:00:00Z';

const has = (storage, names) => names.every((name) => typeof storage?.[name] === 'function');

/** Whether a storage is such a backend. One that has versions as well is used by them. */
export const isLocker = (storage) =>
  has(storage, LOCKER_METHODS) && !has(storage, ['get', 'putIfMatch']) && bucketOf(storage) === undefined;

export const unfencedError = (what) => {
  const message = `${what} needs a storage with versions (get and putIfMatch): one of tryAcquire, renew and release has no `
    + 'fencing tokens, and nothing that a late writer could be refused by';
  return new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'storage' });
};

export class LockerStorage {
  #locker;
  #serverId;
  #versions = 0;
  /** What a look is shown: `free`, to be claimed at once; `taken`, by somebody whom nobody names; `mine`. */
  #shown;
  #seen = false;
  /** The newest claim or renewal of which nobody knows whether it took effect. */
  #doubted = null;
  /** Under how many names the lock was asked for, for how long under the last one, and whether that has been released, or may
   * have been: neither a release that is held up nor a renewal for a shorter time must meet what was acquired after it. */
  #names = 0;
  #ttl = 0;
  #spent = true;

  constructor(locker, serverId) {
    this.#locker = locker;
    this.#serverId = serverId;
    this.#show('free', this.#madeUp(RELEASED));
  }

  async get(shardId, { signal }) {
    const { kind } = this.#shown;
    if (this.#doubted) {
      // Who has renewed is the owner; the lock then lasts for longer than any write in doubt may grant.
      const held = await this.#call('renew', shardId, this.#doubted, signal);
      if (held) this.#show('mine', this.#doubted.body, this.#doubted);
      else if (kind === 'mine') this.#show('taken', this.#madeUp());
      this.#doubted = null;
    } else if ((kind === 'taken' && this.#seen) || (kind === 'mine' && this.#spent)) {
      // The look after a refused claim was an interval ago; or a release may have taken effect.
      this.#show('free', this.#madeUp(RELEASED));
    }
    this.#seen = true;
    const { etag, body } = this.#shown;
    return { etag, body };
  }

  async putIfMatch(shardId, body, etag, { signal }) {
    if (etag !== this.#shown.etag) return null;
    const { session, leaseMs: ttl, lastUpdated, parked } = JSON.parse(new TextDecoder().decode(body));
    // Nobody else could take a parked lock over.
    if (parked || lastUpdated === RELEASED) return this.#release(shardId, body, signal);
    // A term keeps its lease, so that another one is a new term's.
    const held = this.#shown.kind === 'mine' && this.#shown.ttl === ttl;
    if (!held && (this.#spent || this.#ttl !== ttl)) {
      this.#names += 1;
      this.#ttl = ttl;
      this.#spent = false;
    }
    // The session makes it nobody else's, whoever has the same `serverId`.
    const ownerId = held ? this.#shown.ownerId : `${this.#serverId}-${session}-${this.#names}`;
    const before = this.#doubted;
    this.#doubted = { body, ownerId, ttl };
    const done = await this.#call(held ? 'renew' : 'tryAcquire', shardId, this.#doubted, signal);
    // An earlier claim may be what this one met.
    this.#doubted = done || held ? null : before;
    if (done) this.#show('mine', body, { ownerId, ttl });
    else this.#show('taken', this.#madeUp());
    return done ? { etag: this.#shown.etag } : null;
  }

  async #release(shardId, body, signal) {
    const { kind, ownerId } = this.#shown;
    this.#spent = true;
    this.#doubted = null;
    if (kind === 'mine') await this.#locker.release(shardId, ownerId, { signal });
    signal.throwIfAborted();
    this.#show('free', body);
    return { etag: this.#shown.etag };
  }

  async #call(name, shardId, { ownerId, ttl }, signal) {
    const answer = await this.#locker[name](shardId, ownerId, ttl, { signal });
    // What is answered later than anybody waits for stays in doubt.
    signal.throwIfAborted();
    if (typeof answer !== 'boolean') throw new Error(`${name} gave no true or false`);
    return answer;
  }

  #show(kind, body, { ownerId, ttl } = {}) {
    this.#versions += 1;
    this.#shown = { kind, body, ownerId, ttl, etag: `"${this.#versions}"` };
    this.#seen = false;
  }

  /** A record of another session: released, or one that nobody leads with yet. By our own name, which is looked at once per
   * `frequentInterval`, with jitter. */
  #madeUp(lastUpdated = '2000-01-01T00:00:00Z') {
    return JSON.stringify({ leaderID: this.#serverId, lastUpdated, term: 1, session: 'unknown', sequence: 1 });
  }
}
