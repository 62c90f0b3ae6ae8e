/**
 * What the deployable Worker reads from its `env`: variables, secrets and bindings. docs/options.md has the rules. All
 * durations are milliseconds. Variables are texts; wrangler.toml may give numbers and flags as such.
 */
import type { R2BucketBinding } from './index.js';

/** A whole number, as wrangler.toml or an environment gives it. */
export type NumberVariable = number | `${number}`;
/** A flag, as wrangler.toml or an environment gives it. */
export type FlagVariable = boolean | 'true' | 'false' | '1' | '0';

/** What is used of a service binding: `Fetcher` of @cloudflare/workers-types fits. */
export interface JobBinding {
  fetch(url: string, init?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<object>;
}

/** The variables and bindings of one group. */
export interface GroupEnv {
  /** Which store it is. Default the R2 bucket that is bound, or S3. */
  EDGELECT_STORE?: 's3' | 'r2' | 'epochs' | 'dynamodb' | 'route53';
  /** The store: an R2 bucket, used where neither `EDGELECT_STORE` nor `EDGELECT_ENDPOINT` names another. */
  EDGELECT_R2?: R2BucketBinding;
  /** The job of a slot, reached through a service binding. */
  JOB?: JobBinding;

  /** The key of the lease object; it names the group. */
  EDGELECT_LOCKFILE_PATH?: string;
  /** The name of this member. Default `edgelect`. */
  EDGELECT_SERVER_ID?: string;
  /** `host` or `host:port` under which peers reach this Worker. */
  EDGELECT_SERVER_ADDR?: string;
  /** The lease. Default 15000. */
  EDGELECT_LEADER_TIMEOUT?: NumberVariable;
  /** How often a leader renews and an unstable follower looks. Default 5000. */
  EDGELECT_FREQUENT_INTERVAL?: NumberVariable;
  /** How often a `frugal` follower looks. Default 30000. */
  EDGELECT_INFREQUENT_INTERVAL?: NumberVariable;
  /** How closely a stable leader is watched. Default `tight`. */
  EDGELECT_FOLLOW?: 'tight' | 'balanced' | 'frugal';
  /** Ask the leader before the store. Default false. */
  EDGELECT_PEER_MODE?: FlagVariable;
  /** How long a leader may take to answer. Default 3000. */
  EDGELECT_PEER_TIMEOUT?: NumberVariable;
  /** How long a leader may hold a question until its term is over. Default 25000, and no more than a lease. */
  EDGELECT_PEER_WAIT?: NumberVariable;
  /** What the members share, to prove questions and answers; a secret. While it changes `NEW,OLD`. */
  EDGELECT_PEER_SECRET?: string;
  /** Whether peers are asked over plain HTTP. Default: on loopback only. */
  EDGELECT_INSECURE_PEERS?: FlagVariable;
  /** The only places where peers are asked, such as `.example.com,10.0.0.0/8`. Default: any. */
  EDGELECT_PEER_HOSTS?: string;
  /** Whose answers are believed. Default `edgelect`. */
  EDGELECT_PEER_TRUST?: 'edgelect' | 's3lect';
  /** How many questions are held at once. Default 1000. */
  EDGELECT_MAX_PEERS?: NumberVariable;
  /** How often a follower lets the leader hear of it. Default: not at all. */
  EDGELECT_HEARTBEAT?: NumberVariable;
  /** After how long without a heartbeat the other side is suspected. Default three heartbeats. */
  EDGELECT_SUSPECT_AFTER?: NumberVariable;
  /** What authority ends before the lease does. Default a tenth of the lease. */
  EDGELECT_MARGIN?: NumberVariable;
  /** How far the store's own clocks may be apart. Default 2000. */
  EDGELECT_STORE_SKEW?: NumberVariable;
  /** The longest lease in the group; one value for all members. Default the own. */
  EDGELECT_MAX_LEASE?: NumberVariable;
  /** How long one request may take. Default 1800, or what fits. */
  EDGELECT_REQUEST_TIMEOUT?: NumberVariable;
  /** The pauses before the second and third attempt of a write, such as `100,1000`. */
  EDGELECT_RETRY_DELAYS?: `${number},${number}`;
  /** No new token is lower than this. Default 0. */
  EDGELECT_TERM_FLOOR?: NumberVariable;
  EDGELECT_FAIL_FAST?: FlagVariable;
  /** How long a tick may take, from its scheduled time. Default 63000. */
  EDGELECT_SUSTAIN?: NumberVariable;

  /** The table of DynamoDB. */
  EDGELECT_TABLE?: string;
  /** The zone of Route 53. */
  EDGELECT_HOSTED_ZONE_ID?: string;
  /** What the name of the Route 53 record begins with. */
  EDGELECT_RECORD_PREFIX?: string;
  /** The zone's domain, or one below it. */
  EDGELECT_DOMAIN_NAME?: string;
  /** The store's address, `https://…`. Default AWS in the region. */
  EDGELECT_ENDPOINT?: string;
  /** How the lease is written down, the same for every member. Default `native`. */
  EDGELECT_FORMAT?: 'native' | 'kubernetes';
  /** The S3 bucket. */
  EDGELECT_BUCKET?: string;
  /** The region that signatures name. Default `us-east-1`; `auto` for R2. */
  EDGELECT_REGION?: string;
  /** Whether the bucket is the first part of the path. Default true except on AWS. */
  EDGELECT_PATH_STYLE?: FlagVariable;
  EDGELECT_ACCESS_KEY_ID?: string;
  /** A secret: `wrangler secret put EDGELECT_SECRET_ACCESS_KEY`. */
  EDGELECT_SECRET_ACCESS_KEY?: string;
  /** Of temporary credentials; a secret. */
  EDGELECT_SESSION_TOKEN?: string;

  /** Whether `/` is a page for people, and who may see its data, `/status.json` and `/metrics`: whoever has `EDGELECT_STATUS_TOKEN`, or
   * anybody. Default `off`. */
  EDGELECT_PAGE?: 'off' | 'token' | 'public';
  /** What a request for `/status.json` and `/metrics` shows as `Authorization: Bearer TOKEN`: at least 16 characters, a secret. Default
   * nobody is answered. */
  EDGELECT_STATUS_TOKEN?: string;
  /** Whether each line of the log about a trigger is a JSON object. Default `text`. */
  EDGELECT_LOG?: 'text' | 'json';
  /** The one trigger that the group is for, as in `crons` of wrangler.toml. Default every trigger. */
  EDGELECT_CRON?: string;
  /** Where the job of a slot is called, instead of the binding `JOB`: `https://…`, on loopback also `http://…`. Without both
   * a tick leads and parks. At most five groups of one trigger. */
  EDGELECT_JOB_URL?: string;
  /** Signs the call as Standard Webhooks does: `whsec_` and Base64 of 24 to 64 random bytes. A secret. */
  EDGELECT_JOB_SECRET?: string;
  /** How long a job may take. 1000 to 840000, default 120000 or what fits one trigger. */
  EDGELECT_JOB_TIMEOUT?: NumberVariable;
  /** What becomes of a slot that died. Default `atMostOnce`. */
  EDGELECT_POLICY?: 'atMostOnce' | 'atLeastOnce';
  /** What becomes of slots that nobody claimed; needs a period. Default `skip`; with `atLeastOnce` and a period `all`. */
  EDGELECT_MISSED?: 'skip' | 'latest' | 'all';
  /** From one slot to the next; at least `leaderTimeout`. */
  EDGELECT_PERIOD?: NumberVariable;
  /** With `atLeastOnce`: after how many failures of its job a slot is given up. 1 to 100, default 3. */
  EDGELECT_ATTEMPTS?: NumberVariable;
  /** How long to wait for a lease that somebody else holds. Default `EDGELECT_SUSTAIN`. */
  EDGELECT_BUDGET?: NumberVariable;
  /** How many requests one trigger may make; its groups share them. Default 50, as on Workers Free. */
  EDGELECT_SUBREQUESTS?: NumberVariable;
}

/** One group's own variables: `EDGELECT_SUSTAIN__REPORTS` for the group `reports`. */
type Overrides = { [Name in keyof GroupEnv as `${Name}__${string}`]?: GroupEnv[Name] };

export interface Env extends GroupEnv, Overrides {
  /** The names of the Worker's groups with commas between, such as `reports,mail`. Default one group. */
  EDGELECT_GROUPS?: string;
}
