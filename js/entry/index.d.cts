// The types for `require`: those of index.d.ts, not a copy, so that values from either way fit the other.
import type * as edgelect from '../index.js' with { 'resolution-mode': 'import' };

export declare const Elector: typeof edgelect.Elector;
export type Elector<S extends edgelect.AnyStorage = edgelect.FencedStorage> = edgelect.Elector<S>;
export declare const S3Storage: typeof edgelect.S3Storage;
export type S3Storage = edgelect.S3Storage;
export declare const R2Storage: typeof edgelect.R2Storage;
export type R2Storage = edgelect.R2Storage;
export declare const EpochStorage: typeof edgelect.EpochStorage;
export type EpochStorage = edgelect.EpochStorage;
export declare const DynamoDBStorage: typeof edgelect.DynamoDBStorage;
export type DynamoDBStorage = edgelect.DynamoDBStorage;
export declare const Route53Storage: typeof edgelect.Route53Storage;
export type Route53Storage = edgelect.Route53Storage;
export declare const MemoryStorage: typeof edgelect.MemoryStorage;
export type MemoryStorage = edgelect.MemoryStorage;
export declare const Electors: typeof edgelect.Electors;
export type Electors<S extends edgelect.AnyStorage = edgelect.FencedStorage> = edgelect.Electors<S>;
export declare const Shards: typeof edgelect.Shards;
export type Shards<S extends edgelect.FencedStorage = edgelect.FencedStorage> = edgelect.Shards<S>;
export declare const coordinator: typeof edgelect.coordinator;
export declare const celeriant: typeof edgelect.celeriant;
export declare const nodeHandler: typeof edgelect.nodeHandler;
export declare const EdgelectError: typeof edgelect.EdgelectError;
export type EdgelectError = edgelect.EdgelectError;
export type {
  AnyStorage,
  Checkpoint,
  Config,
  Credentials,
  CredentialsProvider,
  DiagnosedStep,
  Diagnosis,
  DoctorOptions,
  ElectorOptions,
  ElectorsOptions,
  ElectorsStatus,
  FencedStorage,
  Finding,
  Format,
  GroupOptions,
  Locker,
  LostLeadership,
  LostReason,
  OperatorOptions,
  OperatorReceipt,
  PastSlot,
  PastTerm,
  PeerTls,
  R2BucketBinding,
  ScheduledOptions,
  ScheduledResult,
  ServiceOptions,
  ShardsOptions,
  ShardsStatus,
  SlotRun,
  SlotTerm,
  Status,
  Storage,
  StoredObject,
  Term,
  TermOf,
  TimingOptions,
  UnfencedTerm,
  Waiting,
} from '../index.js' with { 'resolution-mode': 'import' };
