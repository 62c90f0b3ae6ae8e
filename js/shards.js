// Shards that are shared out evenly over the members that are alive. Which of them this one asks for is decided in src/shards/.
import { Electors } from './electors.js';
import { newShards, shardPaths } from './engine.js';
import { EdgelectError, callOptions, optionsOf, signalOf, toJson, unlessAborted, wrongOption } from './errors.js';
import { isLocker, unfencedError } from './locker.js';
import { FAILED, FIXED, HAS_PAGE, INSIDE, Pace, SHARED, calledBack, callbacksOf } from './shared.js';

const OWN = ['prefix', 'shards', 'onAcquire', 'onLose'];
/** The timings decide how the shards are watched; the rest of an elector's options belongs to it. */
const ELECTOR_ONLY = ['peerTls', 'heartbeat', 'maxConnections', 'maxRequestsPerSecond', ...FIXED];
/** How many shards are initialized at once, at most. */
const MOST_INITS = 10;
/** And as many as have had their turn within so many seconds, of the ten that one request waits. */
const INIT_TURNS_S = 2;

export class Shards {
  #options;
  #paths;
  #stepMs;
  #onAcquire;
  #onLose;
  /** Whether a `lead` goes on. */
  #leads = false;
  /** That of each shard, by its path: what an earlier session left running keeps the next one from its shard. */
  #works = new Map();
  /** While it runs. */
  /** Answers while there is no session. */
  #idle;
  #session = null;
  /** Why the last session ended, if not by a stop. */
  #failure = null;
  /** The last one that ran, and while it ends, its end. */
  #last = null;
  #ending = null;
  /** How often `stop` was called: a start that waits gives way to a later stop. */
  #stops = 0;
  #pace = new Pace();
  /** What `onError` has heard. */
  #heard = new WeakSet();

  constructor(options) {
    const given = optionsOf(options, `a Shards takes an object with storage, ${OWN.join(', ')} and the options of an Electors`);
    const { prefix, shards, onAcquire, onLose, ...plainly } = given;
    const rest = { ...plainly, ...callbacksOf(given) };
    const { onError } = rest;
    if (typeof onError === 'function') {
      rest.onError = (error, group) => {
        this.#heard.add(error);
        return onError(error, group);
      };
    }
    if (typeof prefix !== 'string') throw wrongOption('prefix', prefix, 'must be a text: what the shards\' lockfilePaths begin with');
    if (typeof shards !== 'number') throw wrongOption('shards', shards, 'must be a whole number: the same for all members');
    for (const [name, callback] of Object.entries({ onAcquire, onLose })) {
      if (callback !== undefined && callback !== null && typeof callback !== 'function') throw wrongOption(name, callback, 'must be a function');
    }
    for (const [name, own] of [['onAcquireLeadership', 'onAcquire'], ['onLoseLeadership', 'onLose']]) {
      if (rest[name] !== undefined) throw wrongOption(name, rest[name], `a Shards has ${own}(shard, …)`);
    }
    if (isLocker(rest.storage)) throw unfencedError('Shards');
    // What is wrong with the options is told before anything is started, also that the rate has no room for all.
    const all = new Electors({ ...rest, [SHARED]: { names: OWN } });
    this[HAS_PAGE] = all[HAS_PAGE];
    const settings = Object.fromEntries(Object.entries(rest).filter(([name]) => !ELECTOR_ONLY.includes(name)));
    const { paths, stepMs } = shardPaths(toJson(settings), prefix, shards);
    [this.#options, this.#paths, this.#stepMs] = [rest, paths, stepMs];
    for (const path of paths) all.add(path);
    [this.#onAcquire, this.#onLose] = [onAcquire?.bind(given), onLose?.bind(given)];
  }

  start(options) {
    // As with an elector: whoever has heard of it by `onError` need not wait for the start as well.
    const markHandled = () => void Promise.resolve().then(() => started.catch(() => {}));
    const started = this.#start(options, markHandled).then(() => {});
    return started;
  }

  /** Gives the session that runs then, and undefined where a later stop had the last word. */
  async #start(options, markHandled, work) {
    const signal = signalOf(callOptions(options, ['signal'], 'start'));
    try {
      signal?.throwIfAborted();
      const stops = this.#stops;
      // One that has failed ends by itself, and is not joined.
      const dies = () => this.#session?.electors.some((elector) => elector[FAILED]);
      while (this.#ending || dies()) await unlessAborted(this.#ending ?? this.#session.ended.catch(() => {}), signal);
      signal?.throwIfAborted();
      if (stops !== this.#stops) return undefined;
      // Somebody may have started it meanwhile.
      if (work && this.#session) throw busyError();
      const running = this.#session;
      this.#session ??= this.#newSession(work);
      const session = this.#session;
      if (signal) this.#stopWith(session, signal);
      if (!running) {
        // Before any callback may ask for it.
        session.started = new Promise((resolve, reject) => {
          session.settle = (starts) => void Promise.all(starts).then(resolve, reject);
        });
        session.settle(session.electors.map((elector) => elector.start()));
        this.#watch(session);
      }
      await session.started.catch(async (error) => {
        // Also of a session that was stopped as soon as that was heard; counted once.
        if (!session.failed) this.#pace.failed();
        session.failed = true;
        await this.#fail(session, error);
        throw error;
      });
      return session;
    } catch (error) {
      const ended = signal?.aborted && error === signal.reason;
      if (this.#heard.has(error) || (ended && this.#options.onError)) markHandled();
      throw error;
    }
  }

  async stop() {
    this.#stops += 1;
    this.#failure = null;
    const session = this.#session ?? this.#last;
    const inside = session?.electors.some((elector) => elector[INSIDE]);
    const ended = this.#session ? this.#end(session, session.finish) : this.#ending;
    // Nobody waits for it then; what stops is told of by the electors.
    if (inside) void ended?.catch(() => {});
    else await ended;
  }

  /** Runs the work for each shard that this member leads, until the signal fires or it is stopped. */
  async lead(work, options) {
    if (typeof work !== 'function') throw wrongOption('work', work, 'must be a function');
    const signal = signalOf(callOptions(options, ['signal'], 'lead'));
    if (this.#session || this.#leads) throw busyError();
    this.#leads = true;
    try {
      const session = await this.#start({ signal }, () => {}, work);
      await session?.ended;
      if (session) await this.#ending;
    } finally {
      this.#leads = false;
    }
  }

  /** The numbers of the shards that this member leads now. */
  led() {
    const electors = this.#session?.electors.slice(0, -1) ?? [];
    return electors.flatMap((elector, shard) => (elector.isLeader() ? [shard] : []));
  }

  status() {
    const all = this.#session?.all.status() ?? { underWay: 0, waiting: 0, groups: [] };
    return { ...all, led: this.led(), error: this.#failure?.message ?? null };
  }

  async handleRequest(request) {
    // One for all questions: on Deno each has connections of its own.
    const all = this.#session?.all ?? (this.#idle ??= new Electors(this.#options));
    return all.handleRequest(request);
  }

  async init(options) {
    // Nobody else keeps the process for its turns.
    const all = new Electors({ ...this.#options, unref: false });
    const left = this.#paths.map((path) => all.add(path));
    const failed = [];
    const makes = async () => {
      for (let one = left.shift(); one; one = left.shift()) await one.init(options).catch((error) => failed.push(error));
    };
    // Not all at once: whoever waits too long for its turn fails.
    const { maxConnections, maxRequestsPerSecond } = this.#options;
    const inTime = Math.floor(INIT_TURNS_S * (maxRequestsPerSecond ?? Infinity));
    const most = Math.max(1, Math.min(maxConnections ?? MOST_INITS, MOST_INITS, inTime));
    await Promise.all(Array.from({ length: most }, makes));
    // A signal may fire with any reason at all.
    const worst = failed.findIndex((error) => error?.code !== 'EDGELECT_EXISTS');
    if (worst >= 0) throw failed[worst];
    if (failed.length === this.#paths.length) throw failed[0];
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  #newSession(work) {
    this.#failure = null;
    // The leases name the members, so that each has a name of its own.
    const serverId = this.#options.serverId ?? crypto.randomUUID();
    const all = new Electors({ ...this.#options, serverId, [SHARED]: { works: this.#works } });
    const session = { all, shared: [], electors: [], decides: null, stoppers: new Set(), forget: () => {} };
    session.ended = new Promise((resolve, reject) => Object.assign(session, { finish: resolve, fail: reject }));
    session.ended.catch(() => {});
    for (const [shard, lockfilePath] of this.#paths.entries()) {
      const shared = { competes: false };
      session.shared.push(shared);
      const seat = shard === this.#paths.length - 1;
      const own = seat ? { onNewLeader: unheard, onStatus: unheard } : this.#callbacksOf(shard, work, () => session.electors[shard]);
      const elector = all.add({ ...own, lockfilePath, [SHARED]: shared });
      session.electors.push(elector);
      shared.delayMs = Math.max(shared.delayMs, this.#pace.leftMs(elector.config.frequentInterval));
      this.#awaitOldWork(shared);
    }
    this.#pace.began(Math.max(...session.shared.map(({ delayMs }) => delayMs)));
    return session;
  }

  /** Work of an earlier session keeps this one from claiming the shard. */
  #awaitOldWork(shared) {
    shared.barred = shared.work.goesOn;
    if (!shared.barred) return;
    shared.forget = shared.work.after(() => {
      shared.barred = false;
      if (shared.claims) shared.engine.compete(true);
    });
  }

  #callbacksOf(shard, work, elector) {
    return {
      onAcquireLeadership: async (term) => {
        await this.#onAcquire?.(shard, term);
        // It may have ended while that took its time.
        if (!work || term.signal.aborted) return;
        await calledBack(elector(), () => work(shard, term));
        term.resign();
      },
      onLoseLeadership: ({ reason }) => this.#onLose?.(shard, reason),
    };
  }

  /** Stops this session when the signal fires. */
  #stopWith(session, signal) {
    const { stoppers, ended } = session;
    if (stoppers.has(signal)) return;
    stoppers.add(signal);
    const stop = () => {
      if (session === this.#session) this.stop().catch(() => {});
    };
    signal.addEventListener('abort', stop, { once: true });
    void ended.finally(() => signal.removeEventListener('abort', stop)).catch(() => {});
  }

  /** Looks at the leases again and again. */
  #watch(session) {
    if (this.#session !== session) return;
    const [{ timers }] = session.shared;
    session.forget = timers.set(this.#stepMs, () => {
      try {
        this.#look(session);
      } catch (error) {
        // A trap in the wasm, which this look was the first to meet.
        void this.#fail(session, error);
        return;
      }
      this.#watch(session);
    });
  }

  #look(session) {
    const engines = session.shared.map(({ engine }) => engine);
    if (engines.some((engine) => engine === undefined)) return;
    const dead = engines.findIndex((engine) => !engine.alive);
    if (dead >= 0) {
      // It has failed, and says why to who waits for it.
      void session.electors[dead].waitForLeadership().catch((error) => this.#fail(session, error));
      return;
    }
    session.decides ??= newShards(engines);
    const barred = session.shared.flatMap((shared, at) => (shared.barred ? [at] : []));
    for (const [at, what] of session.decides(barred)) {
      const shared = session.shared[at];
      if (what === 'give') void session.electors[at].resign().catch(() => {});
      else {
        shared.claims = what === 'claim';
        engines[at].compete(shared.claims && !shared.barred);
      }
    }
  }

  async #fail(session, error) {
    if (this.#session !== session) return;
    this.#failure = error;
    await this.#end(session, () => session.fail(error));
  }

  async #end(session, settle) {
    if (this.#session !== session) return;
    [this.#session, this.#last] = [null, session];
    session.forget();
    for (const { forget } of session.shared) forget?.();
    const { all } = session;
    // Again, because the first one waits for nobody where it is called from within the work.
    // There before any callback may start another session.
    let over;
    const ending = new Promise((resolve) => (over = resolve));
    this.#ending = ending;
    over(all.stop().then(() => all.stop()).finally(() => {
      this.#ending = null;
      settle();
    }));
    await ending;
  }
}

/** The seat is no shard, whose leader or status an application could mean. */
const unheard = () => {};

const busyError = () =>
  new EdgelectError('these shards are started already: make another Shards, or stop this one', { code: 'EDGELECT_BUSY' });
