// The types for `require`: those of object-store-lock.d.ts, not a copy.
import type * as lock from '../object-store-lock.js' with { 'resolution-mode': 'import' };

export declare const objectStoreLock: typeof lock.objectStoreLock;
export declare const leaderElectionOptions: typeof lock.leaderElectionOptions;
export type {
  Duration,
  LeaderElectionConfig,
  LeaderElectionRecord,
  ObjectStoreLock,
} from '../object-store-lock.js' with { 'resolution-mode': 'import' };
