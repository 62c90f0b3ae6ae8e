// The types for `require`: those of worker-env.d.ts, not a copy.
export type { Env, FlagVariable, GroupEnv, JobBinding, NumberVariable } from '../worker-env.js' with { 'resolution-mode': 'import' };
