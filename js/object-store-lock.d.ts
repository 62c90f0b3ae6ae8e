/**
 * For those who come from an `ObjectStoreBasedLock`: its five calls over a storage, and its options as those of `new Elector`.
 * docs/object-store-lock.md has both beside each other.
 */
import type { ElectorOptions, LostLeadership, S3Storage, Storage, Term } from './index.js';

/** The record, as it is in the store. What others wrote beside is kept if it is written back. */
export interface LeaderElectionRecord {
  /** `null` or empty where the lease is released. */
  holderIdentity?: string | null;
  /** `45s`, `PT45S`, or a number of seconds. */
  leaseDuration?: string | number;
  acquireTime?: string;
  renewTime?: string;
  leaderTransitions?: number;
  [other: string]: unknown;
}

export interface ObjectStoreLock {
  /** The record and its etag, for `update`; `null` if there is none.
   * @throws EdgelectError `EDGELECT_STORE` for an object that is no record or has a number that JavaScript would write back as another
   * one, such as 9007199254740993, and where an `S3Storage` can't be read. */
  get(options?: { signal?: AbortSignal }): Promise<{ record: LeaderElectionRecord; etag: string } | null>;
  /** Writes the record if there is none. What a storage of your own throws is thrown on: nobody knows then what it did.
   * @throws EdgelectError `EDGELECT_CONFIG` for a record that JSON would change or that has more than 65,536 bytes, of which nothing is
   * sent; `EDGELECT_CONFLICT` if there is one; over an `S3Storage` also `EDGELECT_UNKNOWN` for a write that may
   * have landed or may still do so, and `EDGELECT_STORE` for one that did not. */
  create(record: LeaderElectionRecord, options?: { signal?: AbortSignal }): Promise<{ etag: string | null }>;
  /** Writes the record if it still has this etag.
   * @throws EdgelectError `EDGELECT_CONFLICT` if it has not, else as `create`. */
  update(oldEtag: string, record: LeaderElectionRecord, options?: { signal?: AbortSignal }): Promise<{ etag: string | null }>;
  identity(): string;
  describe(): string;
}

/** The lock interface as a view of a storage: to look at a group's record, or to write a member of one's own. An `Elector`
 * needs none of it. Records pass as they are, whatever the storage's `format`.
 * @throws EdgelectError `EDGELECT_CONFIG` for an option that breaks a rule, and for a storage whose records are no objects. */
export function objectStoreLock(options: {
  storage: Storage | S3Storage;
  key: string;
  identity: string;
}): ObjectStoreLock;

/** Milliseconds, or `45s`, `1m30s`, `PT45S`. */
export type Duration = number | string;

export interface LeaderElectionConfig {
  /** Default 15 s. */
  leaseDuration?: Duration;
  /** For how long after its last renewal a leader leads: from half of the lease to nine tenths of it. More is capped there, with
   * a warning. */
  renewDeadline?: Duration;
  /** How often a leader renews and a candidate looks. Default 5 s. */
  retryPeriod?: Duration;
  /** Whether a leader that stops releases the lease. Default true. */
  releaseOnCancel?: boolean;
  /** Default: a random id. */
  holderIdentity?: string;
  /** The key of the object. */
  leaderKey?: string;
  leaderCallbacks?: {
    onStartLeading?(term: Term): void | Promise<void>;
    onStopLeading?(lost: LostLeadership): void | Promise<void>;
    onNewLeader?(holderIdentity: string): void | Promise<void>;
  };
  /** Hears what was changed. Default: `console.warn`. */
  onWarning?(text: string): void;
}

/** `new Elector({ storage, ...leaderElectionOptions({ … }) })`.
 * @throws EdgelectError `EDGELECT_CONFIG` for an option that has no meaning. */
export function leaderElectionOptions(config?: LeaderElectionConfig): Omit<ElectorOptions, 'storage'>;
