// Compiled by `tsc`, never run: the Worker's variables and bindings, and Cloudflare's own types in their places.
import type { Fetcher, R2Bucket } from '@cloudflare/workers-types';
import { R2Storage } from 'edgelect';
import type { Env } from 'edgelect/worker-env';

declare const bucket: R2Bucket;
declare const service: Fetcher;

export const env: Env = {
  EDGELECT_R2: bucket,
  JOB: service,
  EDGELECT_GROUPS: 'reports,mail-out',
  EDGELECT_LEADER_TIMEOUT: 15_000,
  EDGELECT_SUSTAIN: '57000',
  EDGELECT_PEER_MODE: true,
  EDGELECT_RETRY_DELAYS: '100,1000',
  EDGELECT_LEADER_TIMEOUT__MAIL_OUT: 30_000,
  EDGELECT_R2__REPORTS: bucket,
};
export const storages = [new R2Storage(bucket), new R2Storage(env.EDGELECT_R2 ?? bucket)];

// @ts-expect-error: durations are numbers of milliseconds
export const worded: Env = { EDGELECT_LEADER_TIMEOUT: '15s' };
// @ts-expect-error: no such way to follow
export const loose: Env = { EDGELECT_FOLLOW: 'loosely' };
// @ts-expect-error: a misspelt variable
export const misspelt: Env = { EDGELECT_LEADER_TIMOUT: 1_000 };
// @ts-expect-error: one group's own has the same rule
export const own: Env = { EDGELECT_LEADER_TIMEOUT__MAIL: '15s' };
// @ts-expect-error: a bucket has to be bound, not named
new R2Storage('edgelect');
