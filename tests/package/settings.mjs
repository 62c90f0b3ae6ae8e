// Evaluated before anything else of the package: this entry brings the wasm along.
import { leaderElectionOptions } from 'edgelect/object-store-lock';

export const settings = leaderElectionOptions({ leaderKey: 'a', leaseDuration: 1000, retryPeriod: 250 });
