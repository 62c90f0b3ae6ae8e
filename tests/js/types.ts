// Compiled by `tsc`, never run: the types say what the README shows, and refuse what would be a mistake.
import type { Fetcher, R2Bucket } from '@cloudflare/workers-types';
import {
  celeriant, coordinator, DynamoDBStorage, EdgelectError, Elector, Electors, EpochStorage, MemoryStorage, R2Storage, Route53Storage, S3Storage, Shards,
} from 'edgelect';
import type {
  Checkpoint, Config, Credentials, ElectorOptions, Locker, LostReason, OperatorReceipt, ScheduledResult, SlotTerm, Status, Storage, Term,
} from 'edgelect';
import { leaderElectionOptions, objectStoreLock } from 'edgelect/object-store-lock';
import type { Env } from 'edgelect/worker-env';

// What the AWS SDK's functions of these names give.
declare const fromIni: (properties?: { callerClientConfig?: { profile?: string } }) => Promise<Credentials>;
declare const fromNodeProviderChain: (properties?: Record<string, unknown> & { forceRefresh?: boolean }) => Promise<Credentials>;
declare const provider: () => Promise<{ accessKeyId: string; secretAccessKey: string; expiration?: Date }>;

const own: Storage = {
  get: async (key, { signal }) => ({ body: signal.aborted ? '' : key, etag: '"1"', date: Date.now() }),
  putIfMatch: (_key, body, etag) => (etag === null && body.length > 0 ? { etag: '"2"' } : null),
};
const bucket = new S3Storage({ bucket: 'jobs', region: 'auto', credentials: provider });
new S3Storage({ bucket: 'jobs', credentials: fromIni });
new S3Storage({ bucket: 'jobs', credentials: fromNodeProviderChain });
new S3Storage({ bucket: 'jobs', credentials: async ({ forceRefresh = false } = {}) => ({ ...await provider(), sessionToken: String(forceRefresh) }) });
const locker: Locker = {
  tryAcquire: async (shardId, ownerId, ttl, { signal }) => !signal.aborted && ttl > 0 && shardId !== ownerId,
  renew: () => true,
  release: async () => {},
};
const options: ElectorOptions = {
  storage: own,
  lockfilePath: 'leader/jobs.json',
  retryDelays: [100, 1000],
  page: true,
  log: 'json',
  logLevel: 'info',
  onAcquireLeadership: (term) => void term.token.toFixed(),
  onLoseLeadership: async ({ term, reason }) => console.log(term, reason satisfies LostReason),
  onNewLeader: (leaderId: string | null) => console.log(leaderId),
};

export const useAws = async (): Promise<number | undefined> => {
  const table = new DynamoDBStorage({ table: 'coordination-table', region: 'eu-central-1', credentials: provider });
  const zone = new Route53Storage({ hostedZoneId: 'Z1', recordPrefix: 'lock', domainName: 'example.com', credentials: provider });
  const epochs = new EpochStorage({ bucket: 'jobs', credentials: provider, format: 'kubernetes' });
  // @ts-expect-error: no such format
  new EpochStorage({ bucket: 'jobs', credentials: provider, format: 'yaml' });
  new Elector({ storage: new S3Storage({ bucket: 'jobs', credentials: provider, format: 'kubernetes' }), lockfilePath: 'a' });
  // @ts-expect-error: a table has to be named
  new DynamoDBStorage({ credentials: provider });
  for (const storage of [table, zone, epochs]) new Elector({ storage, lockfilePath: 'shard-1' });
  return new Elector({ storage: table, lockfilePath: 'a', onLoseLeadership: ({ term }) => void term.toFixed() })
    .lead((term) => term.token);
};

export const useLocker = async (): Promise<void> => {
  const elector = new Elector({
    storage: locker,
    lockfilePath: 'shard-1',
    onAcquireLeadership: (term) => void term.remaining(),
    // @ts-expect-error: there is no token
    onLoseLeadership: ({ term }) => void term.toFixed(),
  });
  const token: undefined = await elector.lead((term) => term.token);
  // @ts-expect-error: a token is no number here
  await elector.lead((term) => term.token.toFixed());
  // @ts-expect-error: nothing fences a state
  await elector.lead((term) => term.checkpoint('a.json'));
  if (elector.status().unfenced) console.log(token);
  // @ts-expect-error: half a backend
  new Elector({ lockfilePath: 'a', storage: { tryAcquire: () => true, renew: () => true } });
};

export const use = async (): Promise<string> => {
  await using elector = new Elector(options);
  new Elector({ storage: bucket, lockfilePath: 'a' });
  new Elector({ storage: new MemoryStorage(), lockfilePath: 'a' });
  new Elector();
  const config: Config = elector.config;
  void ([config.sustain, config.heartbeat] satisfies (number | null)[]);
  // @ts-expect-error: null where nothing was said
  void (config.insecurePeers satisfies boolean);
  // @ts-expect-error: a secret is not shown
  void config.peerSecret;
  const status: Status = elector.status();
  const credentials: Credentials = await provider();
  elector.updateConfig({ leaderTimeout: config.leaderTimeout * 2 });
  const answer: Response = await elector.handleRequest(new Request('https://a/health/leadership'));
  const text: string | undefined = await elector.lead(async (term: Term) => `${term.token}`, { signal: AbortSignal.timeout(1) });
  await elector.lead(async (term) => {
    const state: Checkpoint<{ next: number }> = await term.checkpoint<{ next: number }>('reports/cursor.json');
    await state.write({ next: (state.value?.next ?? 0) + 1 });
    // @ts-expect-error: the state changes by a write only
    state.value = { next: 1 };
    // @ts-expect-error: of the type that it was opened with
    await state.write('one');
  });
  const error = new EdgelectError('x', { code: 'EDGELECT_CONFIG' });
  const ran: ScheduledResult<string> = await elector.runScheduled(Date.now(), (term: SlotTerm) => `${term.slot} ${term.token}`);
  // As the README does.
  const { outcome, reason, error: thrown, fault } = ran;
  void [outcome.trim(), reason?.trim(), thrown, fault?.code];
  if (ran.outcome === 'done') ran.value?.trim();
  else if (ran.outcome === 'skipped') ran.reason.trim();
  else if (ran.outcome === 'taken') void [ran.by?.trim(), ran.finished satisfies boolean];
  void [ran.previous?.outcome === 'died', ran.previous?.by?.trim(), status.lastSlot?.outcome === 'open'];
  for (const past of status.history) void ('term' in past ? past.how === 'released' : past.outcome === 'ok');
  const asked: OperatorReceipt = await elector.pause({ by: 'ada', why: 'a migration', until: new Date() });
  void [asked.leaderId?.trim(), asked.term?.toFixed(), (await elector.resume()).written satisfies boolean, status.paused?.by.trim()];
  // @ts-expect-error: a step-down has no end
  void elector.stepDown({ until: 7 });
  // @ts-expect-error: no such policy
  void elector.runScheduled(new Date(), () => 1, { policy: 'exactlyOnce' });
  // @ts-expect-error: a job is needed
  void elector.runScheduled(null);
  // @ts-expect-error: durations are numbers of milliseconds
  new Elector({ lockfilePath: 'a', leaderTimeout: '15s' });
  // @ts-expect-error: no such way to follow
  new Elector({ lockfilePath: 'a', follow: 'loosely' });
  // @ts-expect-error: a bucket has to be named
  new S3Storage({ credentials });
  // @ts-expect-error: the group can't change while it runs
  elector.updateConfig({ lockfilePath: 'b' });
  // @ts-expect-error: a storage that cannot compare and swap is none
  new Elector({ lockfilePath: 'a', storage: { get: () => null } });
  return `${text} ${status.role} ${answer.status} ${error.code}`;
};

// The object-store lock, the formats and the preset.
const memory = new MemoryStorage();
const lock = objectStoreLock({ storage: memory, key: 'ha/leader', identity: 'a' });
export const holder = async (): Promise<string | null | undefined> => (await lock.get())?.record.holderIdentity;
const leaderCallbacks = { onStartLeading: ({ token }: { token: number }) => void token, onNewLeader: (id: string) => void id };
export const elector = new Elector({ storage: memory, ...leaderElectionOptions({ leaseDuration: '45s', retryPeriod: 15_000, leaderCallbacks }) });
export const cluster = new Elector({ storage: memory, ...celeriant({ cluster: 'eu/prod' }) });
void elector.stop({ release: false });
// @ts-expect-error: no such format
new S3Storage({ bucket: 'jobs', credentials: provider, format: 'yaml' });
objectStoreLock({ storage: bucket, key: 'k', identity: 'a' });
// @ts-expect-error: a record there is no object at the key
objectStoreLock({ storage: new DynamoDBStorage({ table: 'jobs', credentials: provider }), key: 'k', identity: 'a' });
// @ts-expect-error: a cluster is needed
celeriant({});
// @ts-expect-error: no such option
leaderElectionOptions({ bucketName: 'b' });

export const many = async (): Promise<number> => {
  await using electors = new Electors({ storage: bucket, maxRequestsPerSecond: 100, onError: (error, group) => console.log(group, error.code) });
  const elector = electors.add({ lockfilePath: 'a', leaderTimeout: 20_000 });
  void elector.lead((term) => term.token.toFixed());
  // @ts-expect-error Each group has its own, given by add.
  new Electors({ lockfilePath: 'a' });
  // @ts-expect-error All groups have one storage.
  electors.add({ lockfilePath: 'b', storage: own });
  return electors.status().groups.length + [...electors].length;
};

export const shares = async (): Promise<number[]> => {
  const shards = new Shards({ storage: own, prefix: 'jobs', shards: 16, onLose: (shard, reason) => console.log(shard.toFixed(), reason) });
  await shards.lead(async (shard, term) => console.log(shard.toFixed(), term.token.toFixed()), { signal: AbortSignal.timeout(1) });
  // @ts-expect-error A locker names nobody who leads.
  new Shards({ storage: locker, prefix: 'jobs', shards: 16 });
  return shards.led();
};

export const coordinated = new Elector(coordinator({ shardId: 'a', ownerId: 'b', leaseDuration: 15_000, renewPeriod: 5_000, locker: own }));

// The Worker's variables and bindings, and Cloudflare's own types in their places.
declare const bound: R2Bucket;
declare const service: Fetcher;

export const env: Env = {
  EDGELECT_R2: bound,
  JOB: service,
  EDGELECT_GROUPS: 'reports,mail-out',
  EDGELECT_LEADER_TIMEOUT: 15_000,
  EDGELECT_SUSTAIN: '57000',
  EDGELECT_PEER_MODE: true,
  EDGELECT_RETRY_DELAYS: '100,1000',
  EDGELECT_LEADER_TIMEOUT__MAIL_OUT: 30_000,
  EDGELECT_R2__REPORTS: bound,
};
export const storages = [new R2Storage(bound), new R2Storage(env.EDGELECT_R2 ?? bound)];

// @ts-expect-error: durations are numbers of milliseconds
export const worded: Env = { EDGELECT_LEADER_TIMEOUT: '15s' };
// @ts-expect-error: no such way to follow
export const loose: Env = { EDGELECT_FOLLOW: 'loosely' };
// @ts-expect-error: a misspelt variable
export const misspelt: Env = { EDGELECT_LEADER_TIMOUT: 1_000 };
// @ts-expect-error: one group's own has the same rule
export const ownOf: Env = { EDGELECT_LEADER_TIMEOUT__MAIL: '15s' };
// @ts-expect-error: a bucket has to be bound, not named
new R2Storage('edgelect');
