/// <reference lib="esnext.disposable" />
/**
 * edgelect: leader election over S3-compatible storage. All durations are milliseconds.
 *
 * What is promised: at any instant at most one session of a group has authority, as long as during a lease two
 * clocks move on by times that differ by less than `margin`, and the store's own clocks agree to `storeSkew + margin`.
 * What is not: that your last request arrives before the authority ends. Hand `term.token` to whatever you change, and
 * let it refuse lower tokens.
 */

/** One unbroken leadership. */
export interface Term {
  /** The fencing token: higher than that of every earlier term of the group. A safe integer. */
  readonly token: number;
  /** Fires when the authority ends; its `reason` is an `EdgelectError` with the code `EDGELECT_LOST`. `aborted` asks the
   * elector, so it is right also after a blocked event loop, before any timer has run. To ask ends no term. */
  readonly signal: AbortSignal;
  /** Milliseconds of authority that are left, 0 once the term is over. On Workers, where the clock stands still between I/O,
   * it is what the clock as it is would leave: advice, and never 0 while the term goes on. */
  remaining(): number;
  /** Gives this term up: the signal fires now, the lease is released when the work has stopped, and after a while the elector
   * competes again. Waits for nothing, so the work itself may call it. */
  resign(): void;
  /** Opens the work's own state: the object `key` beside the lease, created if need be, which no earlier term can change
   * from here on, not even a process that was stopped meanwhile and does not know that its term is over. A state of the
   * same key that this term opened before is refused from here on, so keep one.
   * @throws EdgelectError `EDGELECT_FENCED` if a later term owns it, `EDGELECT_LOST` without authority,
   * `EDGELECT_UNKNOWN` where opening it again finds out, `EDGELECT_STORE` for a store that fails and for an object that is
   * no checkpoint, which is left as it is, `EDGELECT_CONFIG` for a key that breaks a rule and over a storage that keeps
   * leases only: epochs, a table, a zone. */
  checkpoint<T = unknown>(key: string): Promise<Checkpoint<T>>;
}

/** A term over a `Locker`, which has no fencing tokens: nothing can refuse what a late writer sends, so its time is all there
 * is. `checkpoint` is refused. */
export interface UnfencedTerm extends Omit<Term, 'token' | 'checkpoint'> {
  /** Never a number that somebody could take for a fence. */
  readonly token: undefined;
}

/** What the terms over a storage are. */
export type TermOf<S> = S extends FencedStorage ? Term : S extends Locker ? UnfencedTerm : Term;

/** The work's own state, opened by one term. */
export interface Checkpoint<T = unknown> {
  /** The token of the term that opened it, which the object carries. */
  readonly token: number;
  /** What is known to have been written last, frozen; `null` if nothing was. */
  readonly value: Readonly<T> | null;
  /** Replaces the value by a compare-and-swap: JSON, at most 61440 bytes and 126 levels. What JSON would change is refused, but
   * a `Date` becomes a text, `undefined` fields are left out, and `-0` becomes 0. One write at a time.
   * @throws EdgelectError `EDGELECT_FENCED`: refused, for a later term owns it. `EDGELECT_UNKNOWN`: it may have landed or
   * may still do so; the next write finds out first. `EDGELECT_LOST`: the authority ended; a write that was under way may
   * have landed. `EDGELECT_STORE`: not written. `EDGELECT_BUSY`: another write is under way. `EDGELECT_CONFIG`: the value
   * can't be stored. */
  write(value: T): Promise<void>;
}

/** The term of one slot: what `runScheduled` hands to its job. */
export interface SlotTerm extends Term {
  /** The scheduled time of the slot that is run, in milliseconds since the Unix epoch. */
  readonly slot: number;
}

export interface ScheduledOptions {
  /** `atMostOnce` (default): a slot whose runner died or whose job failed is not run again. `atLeastOnce`: the next
   * trigger runs it again, before any later slot. */
  policy?: 'atMostOnce' | 'atLeastOnce';
  /** Slots that nobody claimed: left out, the latest one run first, or all of them, the oldest first and at most 100. Needs
   * `period`. Default `skip`; with `atLeastOnce` and a `period`, `all`. */
  missed?: 'skip' | 'latest' | 'all';
  /** From one slot to the next, exact, and at least `leaderTimeout`. Where you pass slots of local time (days of 23 or 25
   * hours), leave it out: otherwise a slot that nobody scheduled is made up for. A timer (`null`) of local time takes 900000 with
   * `missed: 'skip'`. */
  period?: number;
  /** With `atLeastOnce`: after how many failures of its job a slot is given up. 1 to 100, default 3. */
  attempts?: number;
  /** How long to wait for a lease that somebody else holds: long enough to take over a dead runner's (the grace, `storeSkew`,
   * four requests and 1.5 s; 25700 at the defaults), to 900000. Default `sustain`, or 50000, or that shortest time if it is longer. */
  budget?: number;
  /** How many requests one call may make, each job counted as one, before it leaves further slots to the next. 10 to 100000;
   * default 50 on Workers, as on their free plan, and no limit elsewhere. */
  subrequests?: number;
  /** Ends the waiting, or the job: its `term.signal` fires. A job that throws then leaves its slot undone; one that returns counts as
   * done. The call rejects with the signal's
   * reason, whatever it ran before, unless the job of the trigger's own slot had ended well. */
  signal?: AbortSignal;
}

/** How a slot ended, as the lease object tells it: to be shown, never to decide by. */
export interface PastSlot {
  slot: number;
  /** `died`: another claim replaced the record before the job was recorded as ended. `unknown`: the record does not say. */
  outcome: 'ok' | 'failed' | 'stopped' | 'died' | 'unknown';
  /** The `serverId` that claimed it, at most 64 bytes of it; `null` where nothing says which. */
  by: string | null;
}

/** A term that has ended, as the lease object tells it: to be shown, never to decide by. */
export interface PastTerm {
  term: number;
  /** The `serverId` that held it, at most 64 bytes of it. */
  by: string;
  /** When it began, in milliseconds since 1970. */
  from?: number;
  /** When its last record was written, in milliseconds since 1970, where that is known. */
  to?: number;
  /** `steppedDown`, `paused`: released because an operator asked. `expired`: its last record was neither released nor parked. */
  how: 'released' | 'parked' | 'steppedDown' | 'paused' | 'expired';
}

/** One job that was run. */
export interface SlotRun<T> {
  slot: number;
  /** The fencing token: each run has its own. */
  term: number;
  /** `lost`: the authority ended under the job, so nobody knows what came of it. */
  outcome: 'done' | 'failed' | 'lost';
  durationMs: number;
  /** Whether the lease object is known to say how it ended. */
  recorded: boolean;
  /** The slot before it, as the lease object told it when this one was claimed; the same slot where this is a rerun. */
  previous: PastSlot | null;
  /** What the job returned, if it is done. */
  value?: T;
  /** What the job threw, or why its authority ended. */
  error?: unknown;
}

/** What became of the trigger's own slot. */
export type ScheduledResult<T> = {
  /** How many missed slots nobody will run. */
  leftOut: number;
  /** Every job that this call ran, in order: reruns and missed slots come first. */
  runs: SlotRun<T>[];
  /** Why the store could not be used any more, after a job had been run or a claim had left, or did not take a job's end; or why it
   * failed to the end of the `budget`. */
  fault?: EdgelectError;
} & (
  | (SlotRun<T> & { reason?: undefined })
  | {
      /** Claimed before, or a later slot was. */
      outcome: 'taken';
      slot: number;
      /** Why, as a sentence. */
      reason: string;
      previous: null;
      value?: undefined;
      error?: undefined;
      /** The `serverId` that claimed the slot that the lease object shows, which is this one or a later one; `null` where
       * nothing says which. */
      by: string | null;
      /** Whether the lease object says how the job of that slot ended. */
      finished: boolean;
    }
  | {
      /** `skipped`: not run here; `reason` says why, and whether it counts as claimed. `unknown`: a claim was sent and its
       * answer never came, so that it may count as claimed. `lost`: it was claimed, and the term ended before its job began; no
       * entry of `runs` has it. */
      outcome: 'skipped' | 'unknown' | 'lost';
      /** `null` if the store was never heard of and the slot was to be found by its clock. */
      slot: number | null;
      /** Why, as a sentence. */
      reason: string;
      previous: null;
      value?: undefined;
      error?: undefined;
    }
);

/** Why a term ended. */
export type LostReason =
  | 'expired'
  | 'overtaken'
  | 'deleted'
  | 'clock'
  | 'resigned'
  | 'stopped'
  | 'done'
  | 'stepDown'
  | 'paused'
  | 'trap';

export interface LostLeadership<S extends AnyStorage = FencedStorage> {
  /** The token of the term that ended. */
  term: TermOf<S>['token'];
  reason: LostReason;
}

/** The timing options, which `updateConfig` may change. */
export interface TimingOptions {
  /** How often a leader renews and an unstable follower looks. Default 5000. */
  frequentInterval?: number;
  /** How often a `frugal` follower looks. Default 30000. Set without `follow`, it makes `frugal` the default. */
  infrequentInterval?: number;
  /** The lease: how long after a leader's last renewal another may lead. 1000 to 3600000, default 15000. */
  leaderTimeout?: number;
  /** Ask the leader (`serverAddr`) before the store. Default false. */
  peerMode?: boolean;
  /** How long a leader may take to answer, beyond the time for which it holds the question. Default 3000. */
  peerTimeout?: number;
  /** How long a leader may hold a question until its term is over: a resignation is told to its followers at once, and a follower
   * that waits reads nothing. 0 to 55000; 0: it does not wait. Default 25000, and never more than the lease less `peerTimeout`. */
  peerWait?: number;
  /** What the members share, to prove questions and answers to each other: 16 to 256 characters, such as `openssl rand -hex 16`
   * prints. To change it, give all members `[OLD, NEW]`, then all `[NEW, OLD]`, then all `NEW`. Without one an answer is believed by the leader's name,
   * its term and its growing sequence, and saves reads for at most ten leases. */
  peerSecret?: string | [string, string];
  /** `true`: peers are asked over plain HTTP everywhere. `false`: nowhere. Default: on loopback only. */
  insecurePeers?: boolean;
  /** The only places where peers are asked: host names, `.example.com` for all below it, IP addresses, networks such as
   * `10.0.0.0/8`. Default: wherever the record says, but no metadata service, and loopback only for members that are there. */
  peerHosts?: string[];
  /** `s3lect`: answers of S3lect's leaders are believed too. They name no group and prove nothing: whoever answers at that address
   * by the leader's name keeps followers from the store, for up to ten leases. Not with `peerSecret`. Default `edgelect`. */
  peerTrust?: 'edgelect' | 's3lect';
  /** How often a follower lets the leader hear of it, in milliseconds; `true` is 500. Needs `peerMode`, a `serverAddr` of whoever
   * leads, and costs a request each time. For work that wants to know early: it changes no lease. Default: not at all. */
  heartbeat?: number | boolean;
  /** After how many milliseconds without a heartbeat the other side is suspected. Default three heartbeats. */
  suspectAfter?: number;
  /** How many questions this member holds at once. Beyond them it answers 503, and with `peerSecret` it names followers that
   * answer in its place. All groups of an `Electors` together hold 1,000, or the largest `maxPeers` of one. Default 1000. */
  maxPeers?: number;
  /** How closely a stable leader is watched. Default `tight`, one GET per `frequentInterval`, or `frugal` where `infrequentInterval`
   * is set; `balanced` is one per lease. */
  follow?: 'tight' | 'balanced' | 'frugal';
  /** How long before the end of the lease the authority ends. Default `leaderTimeout / 10`. */
  margin?: number;
  /** How far the store's own clocks may be apart. Default 2000. */
  storeSkew?: number;
  /** The longest `leaderTimeout` in the group; one value for all members. Default the own. */
  maxLease?: number;
  /** How long one request may take. Default 1800, or what fits. */
  requestTimeout?: number;
  /** The pauses before the second and third attempt of a write. Default [100, 1000], less for short leases. */
  retryDelays?: [number, number];
  /** No new token is lower than this. Default 0. */
  termFloor?: number;
  /** Whether a store that refuses for good before it ever worked ends the elector: an unknown access key, a wrong secret, no such
   * bucket, a missing Deno permission. Then `start`, `lead` and `runScheduled` reject. With false it tries again and again.
   * Default true. */
  failFast?: boolean;
  /** How long a cron tick may take, from its scheduled time; checked against the lease. */
  sustain?: number;
  /** `host` or `host:port` under which peers reach this member. */
  serverAddr?: string;
}

/** The storages over which terms have fencing tokens. */
export type FencedStorage =
  | S3Storage
  | R2Storage
  | MemoryStorage
  | DynamoDBStorage
  | EpochStorage
  | Route53Storage
  | Storage;

export type AnyStorage = FencedStorage | Locker;

/** Certificates for questions to peers, each a PEM text. */
export interface PeerTls {
  /** The authority that has signed the peers' certificates. */
  ca?: string;
  /** What this member shows to its peers, with its `key`. */
  cert?: string;
  key?: string;
}

export interface ElectorOptions<S extends AnyStorage = FencedStorage> extends TimingOptions {
  /** Default: S3 from the variables `EDGELECT_*` and `AWS_*`; Deno shows them only with `--allow-env`. */
  storage?: S;
  /** The key of the lease object; it names the group. From `EDGELECT_LOCKFILE_PATH` where `storage` is left
   * out as well. */
  lockfilePath?: string;
  /** The name of this member, for people: two processes of one name are two sessions and exclude each other, except that one
   * may take over what the other has parked. To find a process by it:
   * `${os.hostname()}-${process.pid}-${crypto.randomUUID()}`. Default: the session's random id, a UUID. */
  serverId?: string;
  /** How peers are asked whose certificates only their own authority has signed, on Node, Deno and Bun; then never over plain
   * HTTP, unless `insecurePeers` is set. */
  peerTls?: PeerTls;
  /** Whether `handleRequest` shows a page for people at `/`. Default false. */
  page?: boolean;
  /** Whether pending timers let the process end. Default false. */
  unref?: boolean;
  /** Whether `stop` leaves a tombstone, so that another can lead at once. Default true; without it the lease runs out. */
  releaseOnStop?: boolean;
  /** Whether `start` and `lead` judge the store before they compete: 18 requests, none of them in a tick. Default: true
   * over an `S3Storage` and an `EpochStorage` (28 requests), but not with `sustain` and not on Workers. A store that breaks a condition stops the elector
   * with `EDGELECT_STORE`; one that can't be judged does not, and delays it by no more than five `requestTimeout`. */
  probe?: boolean;
  /** A term began. If it throws or rejects, the elector resigns, sits out, and competes again. Its promise is work of the term,
   * as that of `lead` is: until it settles the lease is not released and no other term is claimed, so end it at the signal. */
  onAcquireLeadership?(term: TermOf<S>): void | Promise<void>;
  /** The term ended, once for each acquired one. When the returned promise settles, the work counts as stopped: after a
   * resignation or a stop the lease is released then, and no other term is claimed before. So stop your work here. That of
   * each `lead` and of `onAcquireLeadership` is waited for besides. */
  onLoseLeadership?(lost: LostLeadership<S>): void | Promise<void>;
  /** No heartbeat came for `suspectAfter` from this member, by its `serverId`: a follower hears it of the leader, a leader of its
   * followers, of whom it watches the first 1,000. The lease alone says who leads: a suspected leader leads until its lease has run out. */
  onSuspect?(serverId: string): void | Promise<void>;
  /** Heartbeats come again from a member that was suspected, or it is watched no more: another one leads, it has been gone for
   * ten leases, heartbeats are switched off, or this elector ends. Each `onSuspect` is followed by one. */
  onRecover?(serverId: string): void | Promise<void>;
  /** Another leader than before; `null` when the lease was released or its object is gone. */
  onNewLeader?(leaderId: string | null): void | Promise<void>;
  /** A problem has lasted for two attempts, has become another one, or ends the elector: what `status().error` says, with the
   * store's HTTP status and code. Or another callback threw: `EDGELECT_CALLBACK`, once until
   * it ends well. Given, it takes the place of the warning. */
  onError?(error: EdgelectError): void | Promise<void>;
  /** The role, the leader, the term, what is waited for or the error has changed. It hears no mere passing of time. */
  onStatus?(status: Status): void | Promise<void>;
  /** Shows each problem that `onError` would hear, its end, and the wait of a new group, as one line on standard error. Default
   * true, unless `onError` is given. */
  warn?: boolean;
  /** How these lines are written; as `json` each is one object with `time`, `level`, `group`, `event`, `message` and perhaps `term`. Default
   * `text`. */
  log?: 'text' | 'json';
  /** Which lines are shown, whatever `warn` says: what ends the elector; problems too; terms and slots too; each new leader too. */
  logLevel?: 'error' | 'warn' | 'info' | 'debug';
}

/** The settings in force, complete but for `peerSecret`, which is not shown; `serverId` is empty where none was set. */
export type Config = Required<Omit<TimingOptions, 'sustain' | 'heartbeat' | 'insecurePeers' | 'peerSecret'>> & {
  sustain: number | null;
  heartbeat: number | null;
  insecurePeers: boolean | null;
  lockfilePath: string;
  serverId: string;
};

/** Who asks and why, at most 200 characters each, for `status()` of every member. After the signal nobody knows whether the
 * request was written. */
export interface OperatorOptions {
  by?: string;
  why?: string;
  signal?: AbortSignal;
}

/** What was asked of whom. */
export interface OperatorReceipt {
  /** False where a group was resumed that was not paused. */
  written: boolean;
  /** The `serverId` that led and its token; null where nobody did. */
  leaderId: string | null;
  term: number | null;
}

/** What a member waits for. */
export interface Waiting {
  /** `grace`: nobody leads a new group, or one whose lease object was unreadable, before its grace is over; for a group that never ran, `init` avoids the
   * wait. `lease`: another member's lease. `sittingOut`: the pause after a resignation. `store`: the store's next answer. `work`:
   * work of a lost term has not stopped. `paused`: the end of an operator's pause. `closed`: this member never claims the lease object as it is; `message` says what an
   * operator has to do. */
  reason: 'grace' | 'lease' | 'sittingOut' | 'store' | 'work' | 'paused' | 'closed';
  /** Until when, as far as is known, in milliseconds of this machine's clock since the Unix epoch. */
  untilMs: number | null;
  /** The same as a sentence, with the seconds that are left. */
  message: string;
}

export interface Status {
  role: 'leader' | 'follower' | 'candidate' | 'stopped';
  serverId: string | null;
  session: string | null;
  group: string;
  leaderId: string | null;
  leaderAddr: string | null;
  /** The own token with authority, else the newest one seen. */
  term: number | null;
  /** Milliseconds of own authority. */
  remainingMs: number | null;
  transitions: number | null;
  parked: boolean | null;
  /** When the newest record's term began, when it was renewed last, as its leader has told, and for how long that holds. In milliseconds, since 1970 the first two. */
  acquiredMs: number | null;
  renewedMs: number | null;
  leaseMs: number | null;
  /** Who has paused the group; times in milliseconds since the Unix epoch. */
  paused: { by: string; why: string; since: number | null; until: number | null } | null;
  /** What a member that runs and does not lead waits for. */
  waiting: Waiting | null;
  /** The last terms and slots before the newest record, at most eight and newest last, as that record tells them. */
  history: (PastTerm | PastSlot)[];
  /** The slot that the newest record shows; `open`: claimed, and its job not recorded as ended. */
  lastSlot: (Omit<PastSlot, 'outcome'> & { outcome: PastSlot['outcome'] | 'open' }) | null;
  requests: { read: number; write: number; peer: number };
  /** The newest problem, as a sentence that says what to do. What a callback threw stays until a later call of the same
   * callback has ended well, or until the next start. */
  error: string | null;
  /** There over a `Locker` only: no fencing tokens, and nobody is named who leads elsewhere. */
  unfenced?: true;
}

/** One member of one group. A process may have many, one for each of its groups (`lockfilePath`), over one storage. */
export class Elector<S extends AnyStorage = FencedStorage> implements AsyncDisposable {
  /** @throws EdgelectError with `code: 'EDGELECT_CONFIG'` and `field` for an option that breaks a rule. */
  constructor(options?: ElectorOptions<S>);
  readonly config: Config;
  /** Begins to compete, as a new session; stops when the signal fires. An elector that a `lead` has started goes on when that
   * `lead` is over, once this was called. On Workers start and stop within one event: what its `fetch` and timers bring
   * belongs to that event. While work of an earlier session of this elector still runs, nothing is claimed until it has
   * stopped: `status().error` says so, and `start` does not wait for it. One that comes while a session ends waits for that end, and
   * so for the work and the callbacks of its last term: do not `await` it in one of those. Otherwise it resolves when the store has answered, or
   * has failed once in a way that may pass; with `unref` at once. After two sessions in a row that the store has ended, the next
   * asks it a `frequentInterval` after that.
   *
   * Nobody has to wait for it where `onError` is given: what `onError` has heard, or a signal ended, is never an unhandled rejection. Without
   * `onError`, and without an `await` or a `catch`, Node, Deno and Bun end the process and show the error: this elector can
   * never lead.
   * @throws EdgelectError `EDGELECT_STORE` for a store that breaks a condition or, unless `failFast` is false, refuses for good;
   * `EDGELECT_STOPPED` after a signal. On Workers it resolves at once: `lead` and `runScheduled` reject there. */
  start(options?: { signal?: AbortSignal }): Promise<void>;
  /** Ends the authority, waits for the work to stop, releases the lease (or parks it for the same
   * `serverId`), and ends. Never longer than the lease and a few requests: work that still runs then is waited for by the
   * next session. Inside a callback or the work call
   * it before any `await` of your own, or do not wait for it (it waits for you), or call `term.resign()`, which ends the
   * authority at once: the others do when the callback has returned. The
   * signal ends the waiting, not the stop. With `release: false` nothing more is written, and the lease runs out.
   * @throws EdgelectError `EDGELECT_CONFIG` for a wrong option, which counts as not given: it stops first. */
  stop(options?: { park?: boolean; release?: boolean; signal?: AbortSignal }): Promise<void>;
  /** Stops this elector when the process gets one of these signals, SIGTERM and SIGINT unless others are named: the work's signal
   * fires, and once the work has stopped the lease is released, so that another member leads within one `frequentInterval` and half a second. A
   * slot whose job throws at its signal stays undone. The process then ends as soon as nothing else keeps it alive; a second signal, half a second
   * later or more (npm passes each on), ends it at once. From then on `lead` resolves to `undefined`, at once or as soon as nothing runs under a term, and `start` and
   * `runScheduled` reject with `EDGELECT_STOPPED`. Returns a function that takes this back.
   * @throws EdgelectError `EDGELECT_CONFIG` where no signal comes: on Workers, and in the worker threads of Node and Bun; for an empty
   * list, and for a name that is no signal of this machine. */
  stopOnSignals(signals?: string[]): () => void;
  /** As `stop`, but sits out for a lease and then competes again. @throws as `stop`. */
  resign(options?: { signal?: AbortSignal }): Promise<void>;
  /** Whether this session has authority now; computed, not remembered. On Workers also false for moments in which the clock
   * proves nothing, while the term goes on; whether a term has ended says its `signal`. */
  isLeader(): boolean;
  /** Who leads, as far as is known. */
  leaderId(): string | null;
  status(): Status;
  /** What monitors read at `GET /metrics`, in OpenMetrics: of this elector since it was made, with what `runScheduled` did. */
  metrics(): string;
  /** Takes effect with the next write. Over epochs and over a `Locker` a new `leaderTimeout` counts from the next term on: there a
   * renewal that is held up takes effect after a later one, so that all of one term ask for the same time. */
  updateConfig(changes: TimingOptions & { peerTls?: PeerTls }): void;
  /** Asks peers from now on. A text is the certificate (PEM) of the authority that has signed theirs, as `peerTls: { ca }`. */
  enablePeerMode(options?: string | (TimingOptions & { peerTls?: PeerTls })): void;
  /** Rejects when the signal fires, when the elector stops, or when the store can't be used. Work and callbacks must not wait
   * here once their own term has ended, nor for a `lead` of the same elector: no term is claimed before they have stopped,
   * so they would wait for themselves, until the signal or a stop ends it; `status().error` says that the work goes on. */
  waitForLeadership(options?: { signal?: AbortSignal }): Promise<TermOf<S>>;
  /** Runs the work as the leader: starts if need be, waits for leadership, and gives it up when the work
   * is done; it stops the elector if it had started it, and nobody called `start` meanwhile. The work's `term.signal` fires when the authority ends and when
   * `signal` does: then it leads on until the work has ended, so that the work can still write what it must, and work that never ends keeps the
   * lease. Where `signal` is given it fires also when the work has ended, for what it has left running. Work that returns or throws after
   * its term was lost or resigned runs again in the next term: what it returned then counts for nothing, because another
   * leader may have done the same. The elector claims no term while old work goes on, so stop at the signal: work that waits
   * for the next term, by `waitForLeadership` or by a `lead` within it, waits for itself.
   * Where a signal that `stopOnSignals` waits for came before the work was done, resolves to `undefined`, also if the work throws
   * since then, or to what it returned when it had stopped. After another `stop` it resolves to what the work returns or rejects with
   * what it throws, and rejects with `EDGELECT_STOPPED` where no work ran or its term was lost before; no later session runs it. Rejects when the work throws
   * under its term, and when the elector breaks down. */
  lead<T>(work: (term: TermOf<S>) => T | Promise<T>, options?: { signal?: AbortSignal }): Promise<T | undefined>;
  /** Runs the job of one cron slot: of all triggers for it, wherever and however often they fire, one runs it. `slot` is its
   * scheduled time, as a number in milliseconds since 1970; without one (a timer) `null`: the last multiple of `period` by the
   * store's clock, or the next one where that is at most `storeSkew` and a second ahead. Such a timer fires some minutes after a
   * multiple: of machines whose clocks differ, one that fires before it and one after it mean two slots.
   * Each call is a session of its own, so the elector must not be started. A job that throws gives the outcome
   * `failed`, and does not reject.
   * `stop`, `status` and the callbacks know nothing of it, but `onError` hears of a store that fails again and again; one that
   * fails for good rejects this call. Its `signal` ends it.
   * @throws EdgelectError `EDGELECT_CONFIG` for options, `EDGELECT_SLOT` for a slot ahead of the store's clock,
   * `EDGELECT_STORE` if the store can't be used, `EDGELECT_TRAP`; the signal's reason once that fired. */
  runScheduled<T>(
    slot: number | Date | null,
    job: (term: SlotTerm) => T | Promise<T>,
    options?: ScheduledOptions,
  ): Promise<ScheduledResult<T>>;
  /** Starts a new group without its waiting time: the operator's word that no member ran within `maxLease`.
   * Never in a start script. After its signal fired nobody knows whether the group was made.
   * @throws EdgelectError `EDGELECT_EXISTS` if there is a lease record; `EDGELECT_STORE` if the store failed, or something else
   * is there. */
  init(options?: { signal?: AbortSignal }): Promise<void>;
  /** Asks the leader, whichever member leads, to give up its term as `resign` does. Its next renewal meets the request, so
   * nobody's authority becomes shorter or longer by it; a later term is not asked. Whether this elector runs does not matter.
   * @throws EdgelectError `EDGELECT_NOBODY_LEADS`; `EDGELECT_UNKNOWN` if nobody knows whether the request was written;
   * `EDGELECT_STORE`; `EDGELECT_CONFIG` for options, and for a storage that can't carry a request: `EpochStorage`, a locker. */
  stepDown(options?: OperatorOptions): Promise<OperatorReceipt>;
  /** The same, and nobody claims the lease until `resume`, or until `until` by the store's clock; slots are skipped.
   * @throws EdgelectError as `stepDown`; `EDGELECT_NOBODY_LEADS` if there is no lease object. */
  pause(options?: OperatorOptions & { until?: Date | number }): Promise<OperatorReceipt>;
  /** Ends a pause. @throws EdgelectError as `pause`. */
  resume(options?: OperatorOptions): Promise<OperatorReceipt>;
  /** Judges the store by an object of its own beside the lease object, and deletes that one again where the store is an
   * `S3Storage` or an `EpochStorage` that lets it. Whether this elector runs does not matter. The finding is not thrown.
   * @throws EdgelectError `EDGELECT_CONFIG` for options; the signal's reason once that fired, which may leave the object. */
  doctor(options?: DoctorOptions): Promise<Diagnosis>;
  /** Answers `GET /health/leadership`, for peers, `GET /status.json` and with `page` `GET /`, for people, and `GET /metrics`, from any server that speaks `Request` and
   * `Response`: `Deno.serve`, `Bun.serve` (with `idleTimeout: 60`), Hono (`c.req.raw`), a Worker's `fetch`; Node's through `nodeHandler`. Anybody who reaches
   * that server may see all answers: a problem names the bucket. The second is `status()` without the session; a member without a
   * `serverId` is named there by the first eight characters of its session.
   * A peer's question may be held until the term is over (`peerWait`); the request's `signal` ends that. Where no session runs here,
   * or one that has read nothing yet or knows of another session of this `serverId` that leads, the stored record answers, read at
   * most once per `frequentInterval`, and names a leader only by this `serverId`; 503 with `Retry-After` where a process was asked for
   * more than 10,000 of them within that time, or where the store has not answered yet: on Workers nobody can wait for the read that
   * another request has begun. */
  handleRequest(request: Pick<Request, 'url' | 'method'> & { signal?: AbortSignal }): Promise<Response>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options that all groups of an `Electors` have in common, and what they may do together. Callbacks hear, after what an
 * `Elector`'s hear, of which group it is. */
export interface ElectorsOptions<S extends AnyStorage = FencedStorage>
  extends Omit<ElectorOptions<S>, 'lockfilePath' | 'onAcquireLeadership' | 'onLoseLeadership' | 'onNewLeader' | 'onSuspect' | 'onRecover' | 'onError' | 'onStatus'> {
  /** How many requests to the store may be under way at once, 2 to 10000; questions to peers are not counted. Default 64. Of these a quarter is kept free of reads, so that no
   * renewal waits for the answer to one. */
  maxConnections?: number;
  /** How many requests may leave in a second, a tenth of it more in a burst; 1 to 1000000. Renewals go first, the one whose
   * term would end first before the others, then claims and releases, then the reads of followers. Waiting counts as latency: every time limit holds. Default: no
   * limit. */
  maxRequestsPerSecond?: number;
  onAcquireLeadership?(term: TermOf<S>, group: string): void | Promise<void>;
  onLoseLeadership?(lost: LostLeadership<S>, group: string): void | Promise<void>;
  onNewLeader?(leaderId: string | null, group: string): void | Promise<void>;
  onSuspect?(serverId: string, group: string): void | Promise<void>;
  onRecover?(serverId: string, group: string): void | Promise<void>;
  onError?(error: EdgelectError, group: string): void | Promise<void>;
  onStatus?(status: Status, group: string): void | Promise<void>;
}

/** One group of an `Electors`: its own options come before the common ones, unless they are undefined or null. */
export type GroupOptions<S extends AnyStorage = FencedStorage> = Omit<ElectorOptions<S>, 'storage' | 'unref' | 'probe' | 'page' | 'lockfilePath'> & {
  lockfilePath: string;
};

/** What all groups do, and what each of them does. */
export interface ElectorsStatus {
  /** Requests that have left and are not answered. */
  underWay: number;
  /** Requests that wait to leave. */
  waiting: number;
  groups: Status[];
}

/** Up to 10000 groups in one process, over one storage: one timer (on Workers each group has its own), one budget of connections
 * and requests, one judgement of the store. A group begins to compete up to one `frequentInterval` late, so that the renewals of many spread
 * over it. One that fails does not touch the others. */
export class Electors<S extends AnyStorage = FencedStorage> implements AsyncDisposable, Iterable<Elector<S>> {
  /** @throws EdgelectError with `code: 'EDGELECT_CONFIG'` and `field` for an option that breaks a rule. */
  constructor(options?: ElectorsOptions<S>);
  /** How many groups there are. */
  readonly size: number;
  /** Adds a group by its `lockfilePath`, and gives its elector, which is yet to be started.
   * @throws EdgelectError `EDGELECT_CONFIG` for an option that breaks a rule, a group that is there already, and one too many
   * for `maxRequestsPerSecond`: each sends one request per `frequentInterval`. */
  add(group: string | GroupOptions<S>): Elector<S>;
  get(lockfilePath: string): Elector<S> | undefined;
  /** Stops the elector of a group, as its `stop` does, and takes the group off. False if there is none. One that is added again
   * claims nothing while work of the old one goes on. */
  remove(lockfilePath: string, options?: { park?: boolean; release?: boolean; signal?: AbortSignal }): Promise<boolean>;
  /** Stops all electors, those that lead 5 ms apart or as far as `maxRequestsPerSecond` demands, so that every lease is released;
   * the groups stay. Called inside a callback or the work of any of them it waits for nobody, as `stop` of an elector. */
  stop(options?: { park?: boolean; release?: boolean; signal?: AbortSignal }): Promise<void>;
  status(): ElectorsStatus;
  /** The metrics of all groups as one text. */
  metrics(): string;
  /** As `handleRequest` of an elector, for the one that `?group=LOCKFILE_PATH` names: 404 where there is none of that name. Without a
   * name `GET /status.json`, `/metrics` and `/` show all of them, and `GET /health/leadership` is 400 where there is more than one. */
  handleRequest(request: Request): Promise<Response>;
  [Symbol.iterator](): Iterator<Elector<S>>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of a `Shards`: those that its shards have in common, and its own. */
export interface ShardsOptions<S extends FencedStorage = FencedStorage>
  extends Omit<ElectorsOptions<S>, 'onAcquireLeadership' | 'onLoseLeadership'> {
  /** What the shards' `lockfilePath`s begin with: `PREFIX/0` and so on; beside them `PREFIX/seat`, a lease that a member takes while
   * it leads no shard yet. */
  prefix: string;
  /** How many shards there are, 1 to 1024: the same number for all members. */
  shards: number;
  /** The name of this member, which no other one has. Default: a random one for each start. */
  serverId?: string;
  /** A term of this shard began. Its promise is work of the term; if it throws or rejects, the shard is given up for a while. */
  onAcquire?(shard: number, term: Term): void | Promise<void>;
  /** The term ended. `resigned`: it was given to another member. When the returned promise settles, the work counts as
   * stopped, and the shard is released. */
  onLose?(shard: number, reason: LostReason): void | Promise<void>;
}

export interface ShardsStatus extends ElectorsStatus {
  /** The shards that this member leads now. */
  led: number[];
  /** Why it ended by itself; null while it runs and after a stop. */
  error: string | null;
}

/** One member's part in shards that the living members share out evenly, over any storage with versions. A member claims free
 * shards up to its share, gives back what is above it when others join, and takes over when others leave; while shares
 * differ by one at most, nothing moves. Each shard has a lease of its own, so that no two members lead one whatever they
 * believe of each other. */
export class Shards<S extends FencedStorage = FencedStorage> implements AsyncDisposable {
  /** @throws EdgelectError `EDGELECT_CONFIG` for an option that breaks a rule, and for a storage without versions. */
  constructor(options: ShardsOptions<S>);
  /** Begins to take part; resolves when the store has answered for each shard. Stops when the signal fires. Nobody has to wait for
   * it where `onError` is given, as with the `start` of an elector. */
  start(options?: { signal?: AbortSignal }): Promise<void>;
  /** Gives everything back: as `stop` of an elector. */
  stop(): Promise<void>;
  /** Starts, and runs the work for each shard in each of its terms: `term.signal` fires when the term ends. If the work
   * ends earlier, the shard is given up for a while. Resolves after the signal fired or a `stop`. A shard whose work outlives a
   * stop is not claimed again here before that work has ended.
   * @throws EdgelectError `EDGELECT_STORE` where the store can't be used; `EDGELECT_BUSY` if it is started already; the signal's
   * reason where that fired before it began. */
  lead(work: (shard: number, term: Term) => void | Promise<void>, options?: { signal?: AbortSignal }): Promise<void>;
  /** The shards that this member leads now. */
  led(): number[];
  status(): ShardsStatus;
  /** As that of an `Electors`. */
  handleRequest(request: Request): Promise<Response>;
  /** Starts the groups of all shards that never ran, without their waiting time: as `init` of an elector.
   * @throws EdgelectError `EDGELECT_EXISTS` if all of them have a lease object. */
  init(options?: { signal?: AbortSignal }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of an `Elector` that those of a shardcoordinator `Coordinator` mean, in milliseconds: `lockfilePath`, `serverId`,
 * `leaderTimeout`, `frequentInterval` and `storage`. The elector's `start`, `stop` and `isLeader` are the coordinator's.
 * @throws EdgelectError `EDGELECT_CONFIG` for an option that is missing or not one of these. */
export function coordinator<S extends AnyStorage>(options: {
  /** What is led. */
  shardId: string;
  /** The name of this process. */
  ownerId: string;
  /** How long a lease lasts without a renewal. */
  leaseDuration: number;
  /** How often it is renewed. */
  renewPeriod: number;
  /** Any storage, or an object with `tryAcquire`, `renew` and `release`. */
  locker: S;
}): Pick<ElectorOptions<S>, 'lockfilePath' | 'serverId' | 'leaderTimeout' | 'frequentInterval'> & { storage: S };
/** A listener for the servers of Node (`http.createServer(nodeHandler(elector))`) and Express (`app.use(nodeHandler(elector))`) that
 * answers by `elector.handleRequest`. What is not for it goes to `next`, or is answered 404. */
export function nodeHandler(elector: Pick<Elector<AnyStorage>, 'handleRequest'>): (
  incoming: { url?: string | undefined; method?: string | undefined },
  outgoing: object,
  next?: () => void,
) => Promise<void>;

/** The options of a cluster of two or more nodes with a durable lease of 30 s, as Celeriant has it: its key under a prefix of the
 * cluster's own, a renewal every third of it, followers who see a leader's end at once. `new Elector({ ...celeriant({ cluster }) })`.
 * @throws EdgelectError `EDGELECT_CONFIG` for an option that breaks a rule. */
export function celeriant(options: {
  /** The prefix of this cluster in the bucket, without a slash at its end; the lease is `CLUSTER/lease.json`. */
  cluster: string;
  /** Default 30000. */
  leaseDuration?: number;
  /** Whether followers send a heartbeat every 500 ms, and either side is suspected after 1500: `onSuspect`, `onRecover`. It needs
   * `serverAddr`, and a server there that answers by `handleRequest`. Default false. */
  heartbeat?: boolean;
}): Pick<ElectorOptions, 'lockfilePath' | 'leaderTimeout' | 'frequentInterval' | 'follow' | 'peerMode' | 'heartbeat'>;
export interface DoctorOptions {
  signal?: AbortSignal;
  /** How often the race is run, 1 to 1000, six requests each (eight over epochs). Default 20. */
  races?: number;
  /** For how many milliseconds the object is left alone before its conditions are broken once more: a store may keep them only
   * for what it has just written. 0 leaves these steps out, the most is 3600000. Default 1100. */
  age?: number;
  /** Hears the name of each step before it is taken, which does not wait for it. What it or `onStep` throws or rejects with ends the
   * probe: `doctor` rejects with it. What they return is waited for at the end, so that they must not wait for the diagnosis. */
  onBegin?(step: DiagnosedStep['step']): void | Promise<void>;
  /** Hears each step when it is done. */
  onStep?(step: DiagnosedStep): void | Promise<void>;
}

/** `unclear`: nothing can be concluded, as from a store that is busy or forbids it. */
export type Finding = 'holds' | 'unclear' | 'violated';

export interface DiagnosedStep {
  readonly step:
    | 'update of an absent object'
    | 'create'
    | 'create again'
    | 'update'
    | 'update with a stale version'
    | 'update with a nearly right version'
    | 'race'
    | 'read with a stale version'
    | 'create again, later'
    | 'update with a stale version, later'
    | 'clocks';
  readonly finding: Finding;
  /** What the store did, or why nothing can be concluded; `null` where it holds. */
  readonly why: string | null;
}

export interface Diagnosis {
  /** The name of the store, such as `S3 bucket "jobs" at https://…`. */
  store: string;
  /** `violated` if a step is: two could lead, or nobody after a crash; its `why` says which. `holds` if all do, whether or not the store tells its time: without, ages are
   * watched, which costs time and no safety. Otherwise `unclear`. */
  finding: Finding;
  /** Those that were done: a violation is the last, and so is what leaves the next ones nothing to stand on. */
  steps: DiagnosedStep[];
  /** Where the store refused for good and so nothing could be judged: the credentials, a right that they lack, a bucket or table
   * that is not there. The last step's `why` says what to do. `null` elsewhere. */
  refusal: { status: number | null; storeCode: string | null } | null;
  /** What to add to this machine's clock to have the store's, in milliseconds, and by how much that may be wrong either way;
   * `null` where the store's answers have no `Date`. No lease depends on it. */
  clockOffset: number | null;
  clockError: number | null;
}

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  /** When they expire; a provider is asked again a minute before. */
  expiration?: Date | string | number;
}

/** Gives credentials; with `forceRefresh` the store has refused those that it gave last, as the providers of the AWS SDK know it. */
export type CredentialsProvider =
  | (() => Credentials | Promise<Credentials>)
  | ((options?: { forceRefresh?: boolean }) => Credentials | Promise<Credentials>);

/** `native`: S3lect's document with more fields. `kubernetes`: `holderIdentity`, `leaseDuration`, `acquireTime`, `renewTime`,
 * `leaderTransitions`, and ours beside them. */
export type Format = 'native' | 'kubernetes';

export class S3Storage {
  #private;
  constructor(options: {
    /** `https://…`; `http://` on loopback only. Default: AWS in `region`. */
    endpoint?: string;
    bucket: string;
    /** Default `us-east-1`; `auto` for R2. */
    region?: string;
    /** A function is asked a minute before what it gave expires, and where the store calls the key expired or does not know it
     * (a rotated key), at most once in some seconds. An answer without both keys is refused by name and replaces nothing. */
    credentials: Credentials | CredentialsProvider;
    /** `endpoint/bucket/key` instead of `bucket.endpoint/key`. Default: true except on AWS. */
    pathStyle?: boolean;
    /** How the lease is written down, the same for all members. Default `native`. */
    format?: Format;
  });
}

/** Where a service is asked, and as whom. */
export interface ServiceOptions {
  /** `https://…`; `http://` on loopback only. Default: AWS. */
  endpoint?: string;
  credentials: Credentials | CredentialsProvider;
}

/** An item in a DynamoDB table, on shardcoordinator's layout (`pk = SHARD#{lockfilePath}`, `sk = LOCK`), beside whose members
 * it can run. The IAM policy allows `dynamodb:GetItem` and `dynamodb:PutItem` on the table. */
export class DynamoDBStorage {
  #private;
  constructor(
    options: ServiceOptions & {
      /** Its keys are `pk` and `sk`, both texts. */
      table: string;
      /** Default `us-east-1`. */
      region?: string;
    },
  );
}

/** A TXT record in a Route 53 zone, on shardcoordinator's layout (`{recordPrefix}.{lockfilePath}.{domainName}`). A zone takes
 * five changes a second, so leases are long and members few. The IAM policy allows `route53:ChangeResourceRecordSets` and
 * `route53:ListResourceRecordSets` on the zone. */
export class Route53Storage {
  #private;
  constructor(
    options: ServiceOptions & {
      /** Such as `Z1234567890ABC`. */
      hostedZoneId: string;
      /** What the record's name begins with, such as `lock`. */
      recordPrefix: string;
      /** What the record's name ends with: the zone's domain, or one below it. */
      domainName: string;
    },
  );
}

/** One object for each epoch in an S3-compatible bucket, for stores that know `If-None-Match: *` and not `If-Match`.
 * `lockfilePath` is what all their keys begin with. */
export class EpochStorage {
  #private;
  constructor(
    options: ServiceOptions & {
      bucket: string;
      /** Default `us-east-1`. */
      region?: string;
      /** `endpoint/bucket/key` instead of `bucket.endpoint/key`. Default: true except on AWS. */
      pathStyle?: boolean;
      /** How a record is written down. Default `native`. */
      format?: Format;
    },
  );
}

/** What is used of an R2 bucket binding: `R2Bucket` of @cloudflare/workers-types fits. */
export interface R2BucketBinding {
  head(key: string): Promise<object | null>;
  get(key: string): Promise<{
    readonly size: number;
    readonly httpEtag: string;
    readonly uploaded: Date;
    readonly body: object;
    arrayBuffer(): Promise<ArrayBuffer>;
  } | null>;
  /** `onlyIf` gets `Headers`, whose type is not the same everywhere. */
  put(
    key: string,
    value: Uint8Array,
    options: { onlyIf: any },
  ): Promise<{ readonly httpEtag: string } | null>;
}

/** An R2 bucket that the Worker is bound to (`[[r2_buckets]]` in wrangler.toml): no credentials. R2 tells no time
 * of its own here, so the age of a lease is watched: who takes over a dead leader's lease first sees it unchanged for a whole
 * lease. */
export class R2Storage implements Storage {
  #private;
  constructor(binding: R2BucketBinding, options?: { format?: Format });
  readonly format: Format;
  /** 1000: R2 takes one write a second of each object. */
  readonly writesApart: number;
  /** Of a body of more than 65,537 bytes only so many: no record is that long. */
  get(key: string, options?: { signal?: AbortSignal | null } | null): Promise<StoredObject | null>;
  putIfMatch(
    key: string,
    body: Uint8Array,
    etag: string | null,
    options?: { signal?: AbortSignal | null } | null,
  ): Promise<{ etag: string } | null>;
}

/** Keeps leases in this process: for tests and demonstrations. Share one instance among the members. */
export class MemoryStorage implements Storage {
  get(key: string): StoredObject | null;
  putIfMatch(key: string, body: Uint8Array, etag: string | null): { etag: string } | null;
}

export interface StoredObject {
  body: string | Uint8Array;
  /** Changes with every write; never empty. */
  etag: string;
  /** The storage's own time of this answer, in milliseconds since the Unix epoch. */
  date?: number;
  /** The storage's own time of the last change. */
  lastModified?: number;
}

/** A backend of your own that knows no versions: three calls, as in shardcoordinator's `Locker`. What it throws, what it answers
 * too late and what is neither true nor false counts as unknown, never as success or failure: a leader keeps its authority to
 * the fence and tries again, and `renew` tells whether an unknown call has taken effect.
 *
 * What holds as with every storage: authority ends by itself a margin before the lease, counted from before the call; a term
 * never resumes; the lock is released only after the work has stopped. What does not, for want of versions: fencing tokens
 * (`term.token` is `undefined`), the proof that a lease has run out, which is yours, and with them `checkpoint`,
 * `runScheduled`, `init`, `doctor`, `probe`, `peerMode` and `leaderId()` of others. `stop({ park: true })` releases.
 *
 * What it has to promise: each call is one indivisible step, and `ttl` counts from when it takes effect, by one clock for all
 * owners: the backend's (`SET … PX`, `now() + interval`), not the machine's that calls. Then a call that is held up cannot
 * shorten what a later one has granted, because all calls of one `ownerId` have the same `ttl`: a new `leaderTimeout` counts from
 * the next term on, which has an `ownerId` of its own and waits until the lock of the old one has run out. */
export interface Locker {
  /** Takes the lock for `ttl` milliseconds, rounded up to what the backend can count, if nobody holds it or what is held has
   * run out. False: somebody holds it, be it this very owner. `ownerId` is `serverId`, where one is set, the session's id and a count: unique
   * to one session, with nothing in it that `serverId` has not but letters, digits and dashes. Asked about once per
   * `frequentInterval`. The signal fires when the answer is no longer waited for. */
  tryAcquire(shardId: string, ownerId: string, ttl: number, options: { signal: AbortSignal }): boolean | Promise<boolean>;
  /** Lets the lock last for `ttl` milliseconds from now, if this owner holds it and it has not run out. False: it does not. */
  renew(shardId: string, ownerId: string, ttl: number, options: { signal: AbortSignal }): boolean | Promise<boolean>;
  /** Frees the lock if this owner holds it; otherwise nothing is to be done. */
  release(shardId: string, ownerId: string, options: { signal: AbortSignal }): void | Promise<void>;
}

/** A storage of your own. What it throws counts as an unknown outcome, never as success or failure. */
export interface Storage {
  /** How the lease is written down. Default `native`. */
  readonly format?: Format;
  /** The shortest time between two writes of one object that the storage takes, in milliseconds. Members that are told
   * of a release wait for so long before they claim. Default 0. */
  readonly writesApart?: number;
  /** `null` if there is no object. The signal fires when the answer is no longer waited for. */
  get(key: string, options: { signal: AbortSignal }): StoredObject | null | Promise<StoredObject | null>;
  /** Writes if the object still has this etag, or with `null` if there is none; `null` if it was refused. Check and write must be
   * one indivisible step, and each write must give an etag that never comes back: else two members lead. */
  putIfMatch(
    key: string,
    body: Uint8Array,
    etag: string | null,
    options: { signal: AbortSignal },
  ): { etag?: string } | null | Promise<{ etag?: string } | null>;
}

export class EdgelectError extends Error {
  constructor(
    message: string,
    details?: { code?: string; field?: string; status?: number; storeCode?: string; cause?: unknown },
  );
  /** `EDGELECT_CONFIG`, `EDGELECT_STORE`, `EDGELECT_STOPPED`, `EDGELECT_LOST`, `EDGELECT_EXISTS`, `EDGELECT_SLOT`,
   * `EDGELECT_TRAP`, `EDGELECT_RANDOMNESS`; for `onError` also `EDGELECT_CALLBACK`; of an operator's request also `EDGELECT_NOBODY_LEADS` and `EDGELECT_UNKNOWN`; of a checkpoint also `EDGELECT_FENCED`, `EDGELECT_UNKNOWN`, `EDGELECT_BUSY`; of `Shards` also `EDGELECT_BUSY`; of an
   * `objectStoreLock` also `EDGELECT_CONFLICT` and `EDGELECT_UNKNOWN`. */
  readonly code: string;
  /** The option that was refused. */
  readonly field?: string;
  /** The HTTP status and the store's own code (`NoSuchBucket`), where the store answered. */
  readonly status?: number;
  readonly storeCode?: string;
}
