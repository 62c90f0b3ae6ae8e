import { bucketOf } from './bucket.js';
import { isHeard, publish } from './channels.js';
import { openCheckpoint } from './checkpoint.js';
import { Engine, addSample, checked, readVariables, show } from './engine.js';
import {
  EdgelectError, STOP_OPTIONS, callOptions, checkFormat, checkWritesApart, lenient, optionsOf, signalOf, textOf,
  timeOf, toJson, unlessAborted, wrongOption,
} from './errors.js';
import { Fence, inFull, lookingFirst } from './fence.js';
import { METRICS_PATH, PAGE_PATH, Questions, STATUS_PATH, healthOfStore, nobodyLeads, serves, showing, urlOf } from './health.js';
import { hasSingleClock, setTimer, unrefTimer } from './host.js';
import { LOCKER_METHODS, isLocker, unfencedError } from './locker.js';
import { Log } from './log.js';
import { fetchWith } from './peer-tls.js';
import { diagnose } from './probe.js';
import { checkNoBinding } from './r2.js';
import { CALLBACKS, FAILED, FIXED, HAS_PAGE, INSIDE, Pace, REMOVED, SAMPLES, SHARED, STOP_LATER, Work, calledBack } from './shared.js';
import { onSignals } from './signals.js';
import { SlotRuns } from './slots.js';
import { STORAGES } from './storage.js';

export { celeriant } from './celeriant.js';
export { coordinator } from './coordinator.js';
export { Electors } from './electors.js';
export { EdgelectError } from './errors.js';
export { nodeHandler } from './health.js';
export { Shards } from './shards.js';
export { DynamoDBStorage, EpochStorage, MemoryStorage, R2Storage, Route53Storage, S3Storage } from './storage.js';

/** Celeriant's. */
const HEARTBEAT_MS = 500;
/** The options of a call that has a signal alone. A resignation begins whatever it gets, as a stop does, and says what is wrong with it
 * in the end. */
const SIGNAL = ['signal'];
const PEERS_TAKE = 'enablePeerMode takes a certificate (a PEM text) or an object with timing options and peerTls';
const DOCTOR_OPTIONS = ['races', 'age', 'onBegin', 'onStep', 'signal'];
const SLOT_OPTIONS = ['policy', 'missed', 'period', 'attempts', 'budget', 'subrequests'];
// Seconds since 1970 that are taken for milliseconds lie before it for 3,000 years to come: 3 March 1973.
const EARLIEST_SLOT_MS = 1e11;
const OLD_WORK = 'work of an earlier session of this elector goes on: this session claims nothing until that work has stopped. '
  + 'End the work when its signal fires. Work that waits for the next term waits for itself';
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'];
// How long a stop may take beyond its own bounds: a runtime may forget timers, as Workers do after a request.
const FORGOTTEN_MS = 10_000;
const LONG_MS = 3_600_000;
/** How many sessions are remembered that do not lead any more: a record is of the last one or of the one before. */
const MOST_SESSIONS = 64;

/** Why each term ended, and which of the reasons are this member's own. */
const lossOf = new WeakMap();
const GIVEN_UP = ['resigned', 'stopped', 'stepDown', 'paused'];

/** What anybody may read of an error whose text is for the program alone. */
const shownOf = new WeakMap();

let noteEnd;
let endTerm;
/** The number by which the elector and its engine know a term; its token, where tokens are fences. */
let numberOf;

class Term {
  #number;
  #controller = new AbortController();
  /** The reason with which its signal fires, from the moment on at which it is over. */
  #loss;
  #fire;
  #fence;
  #resign;
  #checkpoint;

  static {
    noteEnd = (term, reason, cause) => {
      const name = term.token === undefined ? 'an unfenced term' : `term ${term.token}`;
      const message = `the authority of ${name} has ended: ${reason}`;
      if (!lossOf.has(term)) lossOf.set(term, reason);
      term.#loss ??= new EdgelectError(message, { code: 'EDGELECT_LOST', cause });
    };
    endTerm = (term, reason, cause) => {
      noteEnd(term, reason, cause);
      term.#fire(term.#loss);
    };
    numberOf = (term) => term?.#number;
  }

  constructor(number, { slot, unfenced, fence, resign, checkpoint }) {
    this.#number = number;
    // No number at all: whoever mistook one for a fence would trust it.
    this.token = unfenced ? undefined : number;
    if (slot !== undefined) this.slot = slot;
    this.#fence = fence;
    this.#resign = resign;
    this.#checkpoint = checkpoint;
    this.#fire = lookingFirst(this.#controller, () => {
      this.remaining();
      return this.#loss;
    });
    // Its own, so that they may be taken out of it; not enumerable, so that a copy of it can be sent.
    const own = {
      remaining: () => (this.#loss ? 0 : this.#fence.remaining),
      resign: () => {
        if (!this.#loss) this.#resign();
      },
      checkpoint: (key) => this.#checkpoint(this, key),
    };
    for (const [name, value] of Object.entries(own)) Object.defineProperty(this, name, { value });
    Object.freeze(this);
  }

  get signal() {
    // Who hands it on, to a fetch for one, hands on one that has fired if it has to.
    this.remaining();
    return this.#controller.signal;
  }
}

export class Elector {
  #storage;
  /** Whether the storage knows no versions. */
  #unfenced;
  /** JSON: nobody else can change it later. */
  #settings;
  /** The `lockfilePath`: known without the wasm, which may be broken. */
  #group;
  #callbacks = {};
  #unref;
  /** What it shares with the other groups of an `Electors`. */
  #shared;
  /** Whether a stop that says nothing of it leaves a tombstone. */
  #releaseOnStop;
  /** Whether a start judges the store; null where that is not said. */
  #probe;
  #engine = null;
  /** While this session waits for the work of an earlier one: what ends the waiting. */
  #goOn = null;
  /** Those of `runScheduled`, each for one call. */
  #slotEngines = new Set();
  #finished = null;
  #finish = null;
  #stopping = false;
  #stopsLater = false;
  /** The signals that stop this session. */
  #stoppers = new Set();
  /** Whether a signal has told the process to end: nothing is begun any more. */
  #ending = false;
  /** How often `stop` was called: a start that waits gives way to a later stop. */
  #stops = 0;
  #term = null;
  /** Whether the application was told that it has begun. */
  #begun = false;
  /** That of the term. */
  #fence = null;
  #waiters = new Set();
  /** That of this session and of earlier ones; in an `Electors` also of an elector that the group had before. */
  #work;
  /** The `lead` that are under way since the last stop: what was stopped is begun in no later session, and ends none. And whether one
   * of them began this session and nobody has called `start` since. */
  #leads = { count: 0 };
  #startedByLead = false;
  [INSIDE] = false;
  [REMOVED] = false;
  #resigning = [];
  #failure = null;
  #log;
  /** Whether one was told that is not over. */
  #troubled = false;
  /** Whom this session suspects, by `serverId`. */
  #suspects = new Set();
  /** What `onError` has heard. */
  #told = new WeakSet();
  /** The callbacks that threw when they were called last. */
  #thrown = new Set();
  /** Between sessions that the store ends. */
  #pace = new Pace();
  /** Whether a timer has fired since the last session began. */
  #turned = true;
  /** What `onStatus` heard last, as a text. */
  #statusTold = null;
  /** Those of `start` that wait for the store's first answer. */
  #starters = new Set();
  /** `{ call, message }` by the callback's name, the newest last; gone once a later call of the same one has ended well. */
  #callbackErrors = new Map();
  /** The last ones that ran, by their ids. */
  #sessions = [];
  /** Those of peers that wait for an answer. */
  #questions = new Questions();
  /** How peers are asked, where their certificates need more than the runtime's own `fetch`. */
  #peerFetch = (url, init) => fetch(url, init);
  #calls = 0;
  /** What engines that have ended have counted. */
  #counted;

  constructor(options = {}) {
    if (typeof options !== 'object' || options === null) {
      throw wrongOption('options', options, 'an Elector takes an object');
    }
    const { storage, unref = false, releaseOnStop = true, probe, warn, log, logLevel, peerTls, page = false, ...settings } = options;
    if (peerTls !== undefined && peerTls !== null) {
      this.#peerFetch = fetchWith(peerTls);
      settings.insecurePeers ??= false;
    }
    for (const name of CALLBACKS) {
      delete settings[name];
      // Not only own properties: an instance of a class has its methods elsewhere.
      const callback = options[name];
      if (callback === undefined || callback === null) continue;
      if (typeof callback !== 'function') throw wrongOption(name, callback, 'must be a function');
      this.#callbacks[name] = callback.bind(options);
    }
    const warns = warn === undefined ? !this.#callbacks.onError : flag('warn', warn);
    this.#log = new Log({ log, logLevel, warns });
    this.#unref = flag('unref', unref);
    this[HAS_PAGE] = flag('page', page);
    this.#shared = options[SHARED];
    this.#work = this.#shared?.work ?? new Work();
    this.#releaseOnStop = flag('releaseOnStop', releaseOnStop);
    this.#probe = probe === undefined ? null : flag('probe', probe);
    const fromEnvironment = storage === undefined || storage === null;
    const variables = fromEnvironment ? fromVariables() : null;
    this.#storage = fromEnvironment ? variables.storage : storage;
    this.#settings = toJson({ ...variables?.settings, ...beating(defined(settings)) });
    this.#group = byVariable(() => checked(this.#settings, bucketOf(this.#storage)), variables?.names, settings).lockfilePath;
    checkStorage(this.#storage);
    this.#unfenced = isLocker(this.#storage);
    if (this.#unfenced && this.config.peerMode) throw unfencedError('peerMode');
    if (this.#unfenced && this.#probe) throw unfencedError('probe');
  }

  get config() {
    return checked(this.#settings);
  }

  get [FAILED]() {
    return this.#failure !== null;
  }

  start(options) {
    // Whoever has heard of it by `onError` need not wait for the start as well: no process ends because nobody did.
    const started = this.#start(options, () => void Promise.resolve().then(() => started.catch(() => {})));
    return started;
  }

  async #start(options, markHandled) {
    let signal;
    try {
      signal = signalOf(callOptions(options, SIGNAL, 'start'));
      if (this.#ending) throw endingError();
      if (!await this.#started(signal)) return;
      if (this.#engine && signal) this.#stopWith(signal);
      await unlessAborted(this.#firstAnswer(), signal);
    } catch (error) {
      // Nor of what its own signal has ended, or one that ends the process.
      const ended = (signal?.aborted && error === signal.reason) || error.code === 'EDGELECT_STOPPED';
      if (this.#callbacks.onError && (this.#told.has(error) || ended)) markHandled();
      throw error;
    }
  }

  async stop(options) {
    return this[STOP_LATER](undefined, options);
  }

  /** Stops when its turn has come; until then it leads, and its work goes on. What starts it meanwhile begins a new session. */
  async [STOP_LATER](turn, options) {
    const { read, throwWrong } = lenient();
    read(() => callOptions(options, STOP_OPTIONS, 'stop'));
    const signal = read(() => signalOf(options));
    const parks = read(() => flag('park', options?.park ?? false), false);
    const byDefault = parks || this.#releaseOnStop;
    const release = read(() => flag('release', options?.release ?? byDefault), byDefault);
    this.#stops += 1;
    this.#leads = { count: 0 };
    const [engine, finished, inside] = [this.#engine, this.#finished, this[INSIDE]];
    if (!engine) return throwWrong();
    if (turn) {
      this.#stopsLater = true;
      await turn;
      if (engine !== this.#engine) return throwWrong();
    }
    // One that has run out unnoticed is none: its work is waited for here. A callback that hears of it may end this session and
    // begin another one, which is not the one to stop.
    const held = this.#fence !== null && this.#fence.remaining > 0;
    if (engine === this.#engine) {
      this.#stopping = true;
      // Parking is a write too.
      if (release) engine.stop(parks);
      else this.#leaveToRunOut(engine);
    }
    // Nor may one that it has begun meanwhile claim before old work has stopped.
    if (engine === this.#engine) this.#goOn?.();
    // Whoever stops from within a callback or the work is waited for, and must not wait for themselves.
    const end = async () => {
      await this.#end(engine, finished);
      // The engine has waited for the work of a term that it held, but where it was closed at once; work that never stops
      // is not waited for.
      if (!held || !release) await this.#workEnd();
    };
    if (!inside) await unlessAborted(end(), signal);
    return throwWrong();
  }

  /** Waits for the work of the last term, for as long as its lease may last. */
  async #workEnd() {
    let forget;
    let forgetTimer;
    await new Promise((resolve) => {
      forgetTimer = setTimer(this.config.leaderTimeout, resolve);
      forget = this.#work.after(resolve);
    });
    forgetTimer();
    forget();
  }

  async resign(options) {
    const { read, throwWrong } = lenient();
    read(() => callOptions(options, SIGNAL, 'resign'));
    const signal = read(() => signalOf(options));
    if (!this.#engine) return throwWrong();
    const inside = this[INSIDE];
    const given = new Promise((resolve) => this.#resigning.push(resolve));
    // A term that has run out unnoticed is none to resign.
    void this.#fence?.remaining;
    this.#engine?.resign();
    // One that does not run yet holds nothing.
    if (!inside && !this.#goOn) await this.#patiently(given, signal);
    return throwWrong();
  }

  /** Waits for what is bounded by the lease and a few requests, unless the runtime forgets them, and keeps the process for that. */
  async #patiently(given, signal) {
    let forget;
    const late = new Promise((resolve) => {
      forget = setTimer(2 * this.config.maxLease + FORGOTTEN_MS, resolve);
    });
    try {
      await unlessAborted(Promise.race([given, late]), signal);
    } finally {
      forget();
    }
  }

  isLeader() {
    return this.#fence?.leads === true;
  }

  leaderId() {
    return this.#asked((engine) => engine.status().leaderId) ?? null;
  }

  status() {
    return this.#statusBy((engine) => engine.status(), (error) => error?.message ?? null);
  }

  /** The status, as `ask` gets it of an engine; `tell` gives the text of an error of the elector's own, if there is one. */
  #statusBy(ask, tell) {
    const status = this.#asked(ask);
    const callbackError = tell([...this.#callbackErrors.values()].at(-1));
    if (status) {
      const waiting = this.#goOn ? { reason: 'work', untilMs: null, message: OLD_WORK } : status.waiting;
      return { ...status, waiting, error: status.error ?? (this.#goOn ? OLD_WORK : callbackError) };
    }
    const { serverId, lockfilePath } = this.config;
    const stopped = stoppedStatus(serverId, lockfilePath, tell(this.#failure) ?? callbackError);
    return this.#unfenced ? { ...stopped, unfenced: true } : stopped;
  }

  /** The status for anybody, or that of a slot that runs, where nothing else does. What a callback, a storage or a provider of
   * credentials threw is the application's text: it may name a password. */
  #publicStatus() {
    const ask = (engine) => engine.publicStatus();
    const tell = (error) => shownOf.get(error) ?? error?.message ?? null;
    const [slot] = this.#engine ? [] : this.#slotEngines;
    const { session: _, ...status } = (slot && this.#asked(ask, slot)) ?? this.#statusBy(ask, tell);
    return status;
  }

  metrics() {
    return show(METRICS_PATH, this[SAMPLES]()).body;
  }

  [SAMPLES]() {
    // What has ended and is not counted yet must not be missing meanwhile.
    const sampleOf = (engine) => this.#asked((one) => one.sample, engine) ?? (engine?.lastSample && addSample(undefined, engine.lastSample));
    const running = [this.#engine, ...this.#slotEngines].map(sampleOf);
    // The last one's error is the one that is told.
    const own = { group: this.#group, error: this.#publicStatus().error !== null };
    return [this.#counted, ...running, JSON.stringify(own)].filter(Boolean);
  }

  #keepCounts(engine) {
    try {
      if (engine?.lastSample) this.#counted = addSample(this.#counted, engine.lastSample);
    } catch {
      // The next one counts from nothing, as monitors expect of what was started anew.
    }
  }

  updateConfig(changes) {
    const { peerTls, ...timing } = optionsOf(changes ?? undefined, 'updateConfig takes an object with timing options');
    const fixed = FIXED.find((name) => timing[name] !== undefined);
    if (fixed) throw fixedError(fixed, timing[fixed]);
    const trusts = peerTls !== undefined && peerTls !== null;
    const peerFetch = trusts ? fetchWith(peerTls) : this.#peerFetch;
    this.#update({ ...(trusts && { insecurePeers: false }), ...timing });
    this.#peerFetch = peerFetch;
  }

  #update(changes) {
    const settings = toJson({ ...JSON.parse(this.#settings), ...JSON.parse(toJson(beating(defined(changes)))) });
    if (this.#unfenced && JSON.parse(settings).peerMode) throw unfencedError('peerMode');
    const next = checked(settings);
    const agreed = this.#shared?.agree(next.frequentInterval);
    if (this.#engine?.alive) this.#engine.configure(settings);
    else this.#checkSame(next);
    this.#settings = settings;
    agreed?.();
    this.#shared?.room.changed();
  }

  /** It is the same member of the same group, whether it runs or not. */
  #checkSame(settings) {
    const before = this.config;
    const changed = ['lockfilePath', 'serverId'].find((name) => settings[name] !== before[name]);
    if (changed) throw fixedError(changed, settings[changed]);
  }

  enablePeerMode(options) {
    const changes = typeof options === 'string' ? { peerTls: { ca: options } } : optionsOf(options ?? undefined, PEERS_TAKE);
    this.updateConfig({ ...changes, peerMode: true });
  }

  waitForLeadership(options) {
    const waiting = new Promise((resolve, reject) => {
      const signal = signalOf(callOptions(options, SIGNAL, 'waitForLeadership'));
      if (signal?.aborted) return reject(signal.reason);
      const givingUp = this.#stopping || this.#resigning.length > 0;
      if (this.#term && !givingUp && this.isLeader()) return resolve(this.#term);
      if (!this.#engine) return reject(this.#failure ?? stoppedError());
      const done = (settle) => (value) => {
        this.#waiters.delete(waiter);
        settle(value);
        signal?.removeEventListener('abort', onAbort);
      };
      const waiter = { resolve: done(resolve), reject: done(reject) };
      const onAbort = () => waiter.reject(signal.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
      // A term that goes on at a reading that proves nothing is handed out at the next one that does.
      if (!givingUp) this.#fence?.watch();
    });
    // Nobody has to catch that a stop ended a wait that nobody waits for any more.
    waiting.catch(() => {});
    return waiting;
  }

  async lead(work, options) {
    if (typeof work !== 'function') throw wrongOption('work', work, 'must be a function');
    const signal = signalOf(callOptions(options, SIGNAL, 'lead'));
    signal?.throwIfAborted();
    const leads = this.#leads;
    const goesOn = (term) => leads === this.#leads && this.#competesAfter(term);
    leads.count += 1;
    let session;
    try {
      if (this.#ending) return undefined;
      session = await this.#started(signal, { byLead: true });
      for (;;) {
        if (!session || leads !== this.#leads) {
          if (this.#ending) return undefined;
          throw stoppedError();
        }
        const term = await this.waitForLeadership({ signal }).catch((error) => {
          // The process ends as it was told to, and nothing has gone wrong.
          if (!this.#ending || this.#failure || signal?.aborted) throw error;
        });
        if (!term) return undefined;
        // It may have ended between the event and this turn.
        if (term.signal.aborted) continue;
        let value;
        try {
          value = await this.#run(work, term, signal);
        } catch (error) {
          signal?.throwIfAborted();
          if (goesOn(term)) {
            await anotherTurn(session.finished);
            continue;
          }
          // Work throws because its signal has fired: it ends as it was told to.
          if (this.#endsAsTold(term)) return undefined;
          throw error;
        }
        if (!term.signal.aborted) return value;
        // What work returns after a loss counts for nothing: somebody else may have done it since.
        const given = GIVEN_UP.includes(lossOf.get(term));
        if (!given) signal?.throwIfAborted();
        if (signal?.aborted) return value;
        if (goesOn(term)) {
          await anotherTurn(session.finished);
          continue;
        }
        if (given && !this.#failure) return value;
        if (this.#endsAsTold(term)) return undefined;
        // What ended the elector may be its own breakdown, and nobody knows what the work was worth then.
        throw this.#failure ?? stoppedError();
      }
    } finally {
      leads.count -= 1;
      // Whoever ends the process next has to find the lease released.
      if (leads.count === 0) await (leads === this.#leads ? this.#leadEnded(session) : session?.finished);
    }
  }

  async runScheduled(slot, job, options) {
    if (typeof job !== 'function') throw wrongOption('job', job, 'must be a function');
    const signal = signalOf(slotOptions(options));
    signal?.throwIfAborted();
    if (this.#engine) {
      const message = 'runScheduled needs an elector that is not started: this one competes for itself; make another one';
      throw new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'runScheduled' });
    }
    if (this.#unfenced) throw unfencedError('runScheduled');
    if (this[REMOVED]) throw removedError();
    if (this.#ending) throw endingError();
    const schedule = scheduleOf(slot, options);
    let engine;
    const checkpoint = (own, key) => this.#openCheckpoint(own, key, engine);
    const newTerm = (token, hooks) => new Term(token, { ...hooks, checkpoint });
    const runs = new SlotRuns({ job, newTerm, noteEnd, endTerm, signal });
    const open = (onEvent) => {
      let troubled = false;
      const hear = (event) => {
        troubled = this.#hearTrouble(event, troubled);
        onEvent(event);
      };
      engine = this.#newEngine(hear, { schedule, unref: false, onTurn: () => this.#questions.turn(engine) });
      this.#slotEngines.add(engine);
      this.#noteSession(engine);
      return engine;
    };
    try {
      const result = await runs.run(open);
      publish('slot', () => ({ group: this.#group, result }));
      this.#tellLog('info', 'slot', `slot ${result.slot}: ${[result.outcome, result.reason].filter(Boolean).join(', ')}`, result.term);
      return result;
    } finally {
      this.#slotEngines.delete(engine);
      engine?.close();
      this.#keepCounts(engine);
      this.#questions.turn(engine);
    }
  }

  stopOnSignals(signals = STOP_SIGNALS) {
    return onSignals(signals, () => {
      this.#ending = true;
      for (const engine of this.#slotEngines) engine.stop(false);
      this.stop().catch(() => {});
    });
  }

  async init(options) {
    const signal = signalOf(callOptions(options, SIGNAL, 'init'));
    signal?.throwIfAborted();
    if (this.#unfenced) throw unfencedError('init');
    let engine;
    const made = new Promise((resolve, reject) => {
      engine = this.#newEngine(({ error }) => (error ? reject(error) : resolve()), { unref: false });
      engine.init();
    });
    try {
      await unlessAborted(made, signal);
    } finally {
      engine?.close();
    }
  }

  async stepDown(options) {
    return this.#operate('stepDown', options, ['by', 'why', ...SIGNAL]);
  }

  async pause(options) {
    return this.#operate('pause', options, ['by', 'why', 'until', ...SIGNAL]);
  }

  async resume(options) {
    return this.#operate('resume', options, ['by', 'why', ...SIGNAL]);
  }

  /** Writes an operator's request into the lease object; whether this elector runs does not matter. */
  async #operate(ask, options, names) {
    const given = callOptions(options, names, ask);
    const signal = signalOf(given);
    signal?.throwIfAborted();
    if (this.#unfenced) throw unfencedError(ask);
    const order = { ask };
    for (const name of ['by', 'why']) {
      const text = given[name] ?? '';
      if (typeof text !== 'string') throw wrongOption(name, text, 'must be a text');
      order[name] = text;
    }
    const until = timeOf(given.until) ?? given.until ?? undefined;
    if (until !== undefined && (!Number.isSafeInteger(until) || until < 0)) {
      throw wrongOption('until', given.until, 'must be a Date, or whole milliseconds since 1970');
    }
    if (until !== undefined) order.until = until;
    let engine;
    let receipt;
    const asked = new Promise((resolve, reject) => {
      engine = this.#newEngine((event) => {
        if (event.type === 'asked') ({ receipt } = event);
        else if (event.type === 'finished') event.error ? reject(event.error) : resolve(receipt);
      }, { unref: false });
      engine.operate(JSON.stringify(order));
    });
    try {
      return await unlessAborted(asked, signal);
    } finally {
      engine?.close();
    }
  }

  async doctor(options) {
    if (this.#unfenced) throw unfencedError('doctor');
    const given = callOptions(options, DOCTOR_OPTIONS, 'doctor');
    const signal = signalOf(given);
    const { races, age, onBegin = () => {}, onStep = () => {} } = given;
    for (const [name, hear] of Object.entries({ onBegin, onStep })) {
      if (typeof hear !== 'function') throw wrongOption(name, hear, 'must be a function');
    }
    signal?.throwIfAborted();
    return diagnose((onEvent) => this.#newEngine(onEvent, { unref: false }), toJson({ races, age }), { onBegin, onStep, signal });
  }

  async handleRequest(request) {
    const { pathname, search } = urlOf(request);
    if (!serves(pathname, this[HAS_PAGE])) return respond(404, '{"error":"not found"}');
    if (request.method !== 'GET') return respond(405, '{"error":"use GET"}', { allow: 'GET' });
    if (pathname === METRICS_PATH || pathname === PAGE_PATH) return showing(pathname, () => this[SAMPLES]());
    if (pathname === STATUS_PATH) return respond(200, JSON.stringify(this.#publicStatus()));
    const { status, etag, body, proof, retryAfterS } = await this.#health(search.slice(1), request.signal);
    const headers = { etag, 'edgelect-proof': proof, 'retry-after': retryAfterS };
    return respond(status, body, Object.fromEntries(Object.entries(headers).filter(([, value]) => value)));
  }

  /** Of the session that leads, of any that runs, or of the stored record. */
  async #health(query, signal) {
    const alive = [this.#engine, ...this.#slotEngines].filter((engine) => engine?.alive);
    const leads = alive.find((engine) => this.#asked((one) => one.standing(), engine));
    const engine = leads ?? alive[0];
    const [unref, room] = [this.#unref, this.#shared?.room];
    const ask = async (one) => this.#questions.ask(one, query, { signal, unref, room }).catch(() => nobodyLeads);
    // Before the answer: it may hear of the store meanwhile.
    const before = this.#asked((one) => ({ heard: one.heard, status: one.status() }), engine);
    const answer = await this.#asked(ask, engine);
    // A locker shows no record.
    if (this.#unfenced) return answer ?? nobodyLeads;
    if (answer && !this.#mayLeadElsewhere(answer, before)) return answer;
    const sessions = alive.map((one) => this.#asked((it) => it.session, one)).filter(Boolean);
    const [storage, group, ended] = [this.#storage, this.#group, [...this.#sessions, ...sessions]];
    return healthOfStore((onEvent) => this.#newEngine(onEvent), { storage, group, query, ended });
  }

  /** Whether the session that gave this answer does not lead, and knows of one of the same `serverId` that is not here, or had heard
   * nothing of the store. One to which the store said no is not doubled by another read. */
  #mayLeadElsewhere({ status, body }, { heard, status: { error } }) {
    if (status !== 404 || error !== null) return false;
    const { leaderID } = JSON.parse(body);
    return leaderID === null ? !heard : leaderID === this.config.serverId;
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  /** A call that is waited for keeps the process alive whatever `unref` says. */
  #newEngine(onEvent, how) {
    return new Engine({ ...this.#place(), onEvent, ...how });
  }

  /** Where the group's objects are, and how they are reached. */
  #place() {
    const [settings, storage, unref, locker] = [this.#settings, this.#storage, this.#unref, this.#unfenced];
    const [peerFetch, shared] = [(url, init) => this.#peerFetch(url, init), this.#shared];
    return { settings, storage, bucket: bucketOf(storage), format: storage.format, writesApart: storage.writesApart, unref, locker, peerFetch, shared };
  }

  /** What the engine says, or undefined without one; one that breaks down over the question is none any more. */
  #asked(ask, engine = this.#engine) {
    try {
      return engine?.alive ? ask(engine) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Competes when this is over, unless the signal fires first; an earlier stop is waited for. Gives the session by its end, or
   * nothing where a later stop had the last word. */
  async #started(signal, { byLead = false } = {}) {
    signal?.throwIfAborted();
    if (this[REMOVED]) throw removedError();
    // Whoever else starts it wants it to go on after the last `lead` is over.
    if (!byLead) this.#startedByLead = false;
    const stops = this.#stops;
    const ends = () => this.#stopping || this.#stopsLater || this.#failure !== null || !this.#engine.alive;
    while (this.#engine && ends()) await unlessAborted(this.#finished, signal);
    signal?.throwIfAborted();
    // A stop that came meanwhile has the last word.
    if (stops !== this.#stops) return undefined;
    this.#startedByLead = byLead && (!this.#engine || this.#startedByLead);
    if (!this.#engine) this.#begin();
    return { finished: this.#finished };
  }

  #begin() {
    const engine = this.#newEngine((event) => this.#onEvent(engine, event), { onTurn: () => this.#onTurn(engine) });
    this.#engine = engine;
    this.#noteSession(engine);
    this.#troubled = false;
    this.#stoppers = new Set();
    [this.#stopping, this.#stopsLater] = [false, false];
    this.#failure = null;
    this.#callbackErrors.clear();
    this.#finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
    // A shard claims nothing before its `Shards` says so, which waits for that work itself and needs the view of it.
    if (this.#work.goesOn && this.#shared?.competes === undefined) void this.#runAfterWork(engine);
    else this.#runs(engine);
  }

  /** Whoever starts again as soon as it hears of a failure must not keep the process, and the store, busy with that. Nor must who starts
   * again and again over a storage that takes no time: between two sessions a timer fires. */
  #runs(engine) {
    const leftMs = this.#pace.counts ? this.#pace.leftMs(this.config.frequentInterval) : 0;
    const pauseMs = Math.max(leftMs, this.#turned ? 0 : 1);
    this.#pace.began(pauseMs);
    engine.run(this.#probe, pauseMs);
    this.#turned = false;
    setTimer(1, () => (this.#turned = true), true);
  }

  #noteSession(engine) {
    this.#sessions = [...this.#sessions.slice(1 - MOST_SESSIONS), engine.session];
  }

  /** Competes once the work of earlier sessions has stopped: this one's election knows nothing of it. */
  async #runAfterWork(engine) {
    // Nothing else of this session keeps the process alive.
    const alive = setInterval(() => {}, LONG_MS);
    if (this.#unref) unrefTimer(alive);
    let forget;
    await new Promise((resolve) => {
      this.#goOn = resolve;
      forget = this.#work.after(resolve);
    });
    clearInterval(alive);
    forget();
    if (engine !== this.#engine) return;
    this.#goOn = null;
    this.#runs(engine);
  }

  /** Waits until the store has answered, or has failed once: what it refuses for good is then known. */
  async #firstAnswer() {
    // On Workers a promise that belongs to another event never settles. One that waits for old work asks nobody yet, who starts from within a callback may wait for themselves, and what keeps no
    // process alive must not leave one with a promise that nothing settles.
    if (!this.#engine || this.#goOn || this[INSIDE] || this.#unref || this.#engine.isOnWorkers) return;
    // One that breaks down over the question says so at its end.
    if (this.#asked((engine) => engine.heard)) return;
    await new Promise((resolve, reject) => {
      this.#starters.add({ resolve, reject });
    });
  }

  /** Lets those of `start` go on. */
  #letStart(settle) {
    const starters = [...this.#starters];
    this.#starters.clear();
    for (const starter of starters) settle(starter);
    return starters.length > 0;
  }

  /** Something may have happened. */
  #onTurn(engine) {
    this.#questions.turn(engine);
    if (engine !== this.#engine) return;
    if (this.#starters.size > 0 && engine.heard) this.#letStart(({ resolve }) => resolve());
    this.#tellStatus();
  }

  /** Tells of the status where it has changed in more than its numbers. */
  #tellStatus() {
    if (!this.#callbacks.onStatus && !isHeard('status')) return;
    let status;
    try {
      status = this.status();
    } catch {
      // There is no room for another wasm: nobody can say.
      return;
    }
    const { role, leaderId, term, parked, error, waiting } = status;
    const told = JSON.stringify([role, leaderId, term, parked, error, waiting?.reason]);
    if (told === this.#statusTold) return;
    this.#statusTold = told;
    publish('status', () => status);
    if (this.#callbacks.onStatus) void this.#call('onStatus', status);
  }

  /** Tells of a problem that lasts. */
  #tellError(error, { shows = true } = {}) {
    // Known without the wasm, which may be broken.
    const group = this.#group;
    this.#told.add(error);
    // Known before anybody hears of it, who may start the elector again.
    const level = error === this.#failure ? 'error' : 'warn';
    publish('error', () => ({ group, error }));
    if (this.#callbacks.onError) void this.#call('onError', error);
    if (shows) this.#tellLog(level, 'problem', error.message);
  }

  #tellLog(level, event, message, term) {
    this.#log.tell(level, { group: this.#group, event, term, message });
  }

  /** Stops this session when the signal fires. */
  #stopWith(signal) {
    const [engine, stoppers] = [this.#engine, this.#stoppers];
    if (stoppers.has(signal)) return;
    stoppers.add(signal);
    const onAbort = () => {
      if (engine === this.#engine) this.stop().catch(() => {});
    };
    // The storage is asked within the start, and may be what fires it.
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void this.#finished.then(() => signal.removeEventListener('abort', onAbort));
  }

  /** Runs the work of one `lead`; its signal fires for the term's end and for the caller's. */
  async #run(work, term, signal) {
    const { token } = term;
    const remaining = () => term.remaining();
    const resign = () => term.resign();
    const checkpoint = (key) => term.checkpoint(key);
    const both = signal && bothSignals(term, signal);
    const view = {
      token,
      get signal() {
        // The term's own looks at its fence, and fires the other.
        const { signal: own } = term;
        return both?.signal ?? own;
      },
      remaining,
      resign,
      checkpoint,
    };
    const stopped = this.#work.begin();
    try {
      return await calledBack(this, () => work(Object.freeze(view)));
    } finally {
      // A part of it may go on: it hears that it is not to before the lease is given up.
      both?.end();
      stopped();
    }
  }

  /** Whether the work is to run again in the next term: its own was lost or resigned, and nobody has stopped the elector. */
  #competesAfter(term) {
    return term.signal.aborted && this.#engine !== null && !this.#stopping;
  }

  /** Whether work that is over was told to end by a signal to this process, and nothing has gone wrong. */
  #endsAsTold(term) {
    return this.#ending && !this.#failure && term.signal.aborted;
  }

  /** The last `lead` is over; it gives up what it took. */
  async #leadEnded(session) {
    // What was still waiting for an earlier stop does not come later, and is not waited for.
    if (!session) return;
    if (this.#startedByLead) await this.stop();
    else if (this.#term) await this.resign();
  }

  /** Ends this session and writes nothing more: the lease runs out. */
  #leaveToRunOut(engine) {
    engine.close();
    this.#onFinished(engine);
  }

  /** Waits for the end, which is bounded by the lease and a few requests unless the runtime forgot them. */
  async #end(engine, finished) {
    await this.#patiently(finished);
    if (engine !== this.#engine) return;
    engine.close();
    // The runtime forgot the work too.
    this.#work.forget();
    this.#onFinished(engine, brokenError());
  }

  #onEvent(engine, event) {
    if (engine !== this.#engine) return;
    if (event.type === 'acquired') this.#onAcquired(event.term);
    else if (event.type === 'lost') this.#onLost(event.term, event.reason);
    else if (event.type === 'newLeader') {
      this.#tellLog('debug', 'leader', event.leaderId === null ? 'nobody leads' : `${event.leaderId} leads`);
      this.#call('onNewLeader', event.leaderId);
    }
    else if (event.type === 'suspected') {
      this.#suspects.add(event.serverId);
      this.#call('onSuspect', event.serverId);
    }
    else if (event.type === 'recovered') this.#recover(event.serverId);
    else if (event.type === 'givenUp') for (const given of this.#resigning.splice(0)) given();
    else if (event.type === 'finished') this.#onFinished(engine, event.error);
    else if (event.type === 'failed') this.#fail(storeError(event));
    else this.#troubled = this.#hearTrouble(event, this.#troubled);
  }

  #recover(serverId) {
    if (this.#suspects.delete(serverId)) this.#call('onRecover', serverId);
  }

  /** Nobody is suspected by a session that is over, however it ended. */
  #recoverAll() {
    for (const serverId of this.#suspects) this.#recover(serverId);
  }

  /** Tells of a problem that lasts and of its end. Returns whether there is one that is not over. */
  #hearTrouble(event, before) {
    if (event.type === 'troubled') this.#tellError(storeError(event));
    if (event.type === 'inGrace') this.#tellLog('warn', 'grace', event.message);
    if (event.type === 'solved' && before) this.#tellLog('warn', 'solved', 'the problem is over');
    return event.type === 'troubled' || (before && event.type !== 'solved');
  }

  /** The store can't be used. */
  #fail(failure) {
    this.#failure = failure;
    this.#pace.failed();
    const waits = this.#waiters.size > 0;
    for (const waiter of [...this.#waiters]) waiter.reject(failure);
    const heard = this.#letStart(({ reject }) => reject(failure)) || waits;
    this.#tellError(failure, { shows: !heard });
  }

  /** Why an authority has ended by itself, where the store has failed. */
  #causeOf(engine, reason) {
    const problem = reason === 'expired' ? this.#asked((one) => one.problem(), engine) : undefined;
    return problem && storeError(problem);
  }

  async #openCheckpoint(term, key, engine) {
    if (this.#unfenced) throw unfencedError('a checkpoint');
    return openCheckpoint(term, key, () => ({ ...this.#place(), unref: false }), () => engine.status().session);
  }

  #onAcquired(number) {
    const engine = this.#engine;
    const holds = () => this.#term === term;
    const resign = () => {
      if (!holds()) return;
      // One that has run out unnoticed is none to resign.
      void fence.remaining;
      if (!holds()) return;
      engine.resign();
      // Within a callback the engine's own word comes later.
      if (holds()) this.#onLost(number, 'resigned');
    };
    const checkpoint = (own, key) => this.#openCheckpoint(own, key, engine);
    // Told before: nothing of an old term may go on under a new one.
    if (this.#term) this.#tellLost(numberOf(this.#term), 'expired');
    let refused = true;
    const fence = new Fence(engine, number, {
      onOver: (reason) => this.#onLost(number, reason),
      onSeen: (reason) => noteEnd(term, reason, this.#causeOf(engine, reason)),
      onProven: () => refused || this.#offer(),
      unref: true,
    });
    const term = new Term(number, { unfenced: this.#unfenced, fence, resign, checkpoint });
    this.#term = term;
    this.#begun = false;
    this.#fence = fence;
    publish('term', () => ({ group: this.#group, term: term.token, how: 'acquired' }));
    this.#tellLog('info', 'acquired', 'this member leads', term.token);
    // What hears of it may have held it up until it was over, or have ended it: then no work begins.
    if (!holds()) return;
    if (engine.standing() === undefined) {
      const asked = this.#stopping ? 'stopped' : this.#resigning.length > 0 && 'resigned';
      this.#tellLost(number, asked || (engine.alive ? 'expired' : 'trap'), engine);
      return;
    }
    this.#begun = true;
    const stopped = this.#work.begin();
    const { failed, fine } = this.#call('onAcquireLeadership', term);
    void fine.then((ok) => {
      stopped();
      if (!ok) resign();
    });
    refused = failed;
    fence.watch();
  }

  /** Hands the term to those who wait for it. */
  #offer() {
    if (this.#stopping || this.#resigning.length > 0) return;
    for (const waiter of [...this.#waiters]) waiter.resolve(this.#term);
  }

  #onLost(number, reason) {
    const engine = this.#engine;
    let told;
    const tell = () => {
      this.#tellLost(number, reason, engine);
      told?.();
    };
    inFull(tell, () => {
      if (!this.#term || numberOf(this.#term) !== number) return;
      noteEnd(this.#term, reason, this.#causeOf(engine, reason));
      // A session that begins in this turn waits for what is told in the next one.
      told = this.#work.begin();
    });
  }

  #tellLost(number, reason, engine = this.#engine) {
    const [term, fence, begun] = [this.#term, this.#fence, this.#begun];
    if (!term || numberOf(term) !== number) return;
    this.#term = null;
    this.#fence = null;
    noteEnd(term, reason, this.#causeOf(engine, reason));
    // What its listeners begin waits for what is told of its end.
    const stopped = this.#work.begin();
    try {
      fence.close();
      endTerm(term, reason);
    } catch {
      // The rest follows all the same: an election that never learns that the work has ended never competes again.
      void Promise.resolve().then(() => endTerm(term, reason));
    }
    // The signal came first: a log may take its time.
    publish('term', () => ({ group: this.#group, term: term.token, how: 'lost', reason }));
    this.#tellLog('info', 'lost', `this member does not lead any more: ${reason}`, term.token);
    // It may have been seen earlier than it is told.
    if (begun) void this.#call('onLoseLeadership', { term: term.token, reason: lossOf.get(term) }).fine.then(stopped);
    else stopped();
    this.#work.after(() => engine.workEnded(number));
  }

  #onFinished(engine, error) {
    this.#questions.turn(engine);
    if (engine !== this.#engine) return;
    if (this.#term) this.#onLost(numberOf(this.#term), error ? 'trap' : 'stopped');
    if (engine === this.#engine) this.#recoverAll();
    // A callback has ended this session itself, and may have begun another one.
    if (engine !== this.#engine) {
      if (error) this.#tellError(error);
      return;
    }
    if (error) this.#failure = error;
    this.#keepCounts(engine);
    this.#goOn?.();
    this.#goOn = null;
    this.#engine = null;
    [this.#stopping, this.#stopsLater] = [false, false];
    this.#finish();
    for (const given of this.#resigning.splice(0)) given();
    const waits = this.#waiters.size > 0;
    for (const waiter of [...this.#waiters]) waiter.reject(this.#failure ?? stoppedError());
    const heard = this.#letStart(({ resolve, reject }) => (error ? reject(error) : resolve())) || waits;
    if (error) this.#tellError(error, { shows: !heard });
    this.#tellStatus();
  }

  /** Calls back. `failed`: it threw at once; `fine` is false if it threw or rejected, and never rejects. */
  #call(name, argument) {
    this.#calls += 1;
    const call = this.#calls;
    // One that ends late says nothing of a later one.
    const forget = () => {
      if (!(this.#callbackErrors.get(name)?.call > call)) this.#callbackErrors.delete(name);
      return true;
    };
    const fine = () => {
      if (forget() && !this.#callbackErrors.has(name)) this.#thrown.delete(name);
      return true;
    };
    const note = (thrown) => {
      forget();
      if (this.#callbackErrors.has(name)) return false;
      const error = { call, message: `${name} threw: ${textOf(thrown)}` };
      shownOf.set(error, `${name} threw`);
      this.#callbackErrors.set(name, error);
      const told = new EdgelectError(error.message, { code: 'EDGELECT_CALLBACK', cause: thrown });
      // In a turn of its own, and once until it ends well: whoever hears of it may start or stop the elector, and so call it again.
      if (name !== 'onError' && !this.#thrown.has(name)) void Promise.resolve().then(() => this.#tellError(told));
      this.#thrown.add(name);
      return false;
    };
    try {
      const result = calledBack(this, () => this.#callbacks[name]?.(argument));
      const end = (async () => result)().then(fine, note);
      return { failed: false, fine: end };
    } catch (thrown) {
      return { failed: true, fine: Promise.resolve(note(thrown)) };
    }
  }
}

const slotOptions = (given) => {
  const options = optionsOf(given, 'runScheduled takes an object, such as { period, policy, signal }');
  if (typeof options.throwIfAborted === 'function') throw wrongOption('options', options, 'an AbortSignal is given as { signal }');
  return options;
};

const scheduleOf = (slot, options = {}) => {
  const slotMs = timeOf(slot) ?? slot;
  if (typeof slotMs === 'number' && slotMs > 0 && slotMs < EARLIEST_SLOT_MS) {
    const rule = 'is the scheduled time in milliseconds since 1970, and this lies before 1974: is it in seconds?';
    throw new EdgelectError(`slot = ${slotMs}: ${rule}`, { code: 'EDGELECT_CONFIG', field: 'slot' });
  }
  const { signal: _, ...own } = options;
  // Not only own properties: an instance of a class has its getters elsewhere.
  const named = Object.fromEntries(SLOT_OPTIONS.map((name) => [name, options[name]]));
  return toJson({ ...own, ...named, slot: slotMs });
};

const flag = (name, value) => {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string' && typeof value !== 'number') throw wrongOption(name, value, 'must be true or false');
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : value;
  throw new EdgelectError(`${name} = ${shown}: must be true or false`, { code: 'EDGELECT_CONFIG', field: name });
};

const defined = (options) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const fixedError = (name, value) => wrongOption(name, value, "can't change: make a new elector");

/** `heartbeat: true` is the usual one, and `false` none. */
const beating = (settings) => {
  const { heartbeat } = settings;
  if (heartbeat !== true && heartbeat !== false) return settings;
  return { ...settings, heartbeat: heartbeat ? HEARTBEAT_MS : null };
};

const respond = (status, body, headers = {}) =>
  new Response(body, {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  });

const storeError = ({ message, status, storeCode, cause, public: shown }) => {
  const error = new EdgelectError(message, { code: 'EDGELECT_STORE', status, storeCode, cause });
  if (shown) shownOf.set(error, shown);
  return error;
};

/** Lets timers and signals come: a storage that answers at once makes one turn of claims and work that never ends. */
const anotherTurn = async (finished) => {
  let forget;
  const turn = new Promise((resolve) => {
    forget = setTimer(0, resolve);
  });
  await Promise.race([turn, finished]);
  forget();
};

const stoppedError = () =>
  new EdgelectError('the elector is not running: it was not started, or has been stopped; start() begins again', { code: 'EDGELECT_STOPPED' });

const removedError = () =>
  new EdgelectError('the elector was removed from its Electors: add the group again', { code: 'EDGELECT_STOPPED' });

const endingError = () =>
  new EdgelectError('a signal has told this process to end, so that nothing is begun', { code: 'EDGELECT_STOPPED' });

const brokenError = () =>
  new EdgelectError('the runtime forgot the elector; start() makes a new one', { code: 'EDGELECT_TRAP' });

/** A signal that fires when the term's does or the caller's, which may be of any make and outlive many terms, or at `end`, when the
 * work has ended. */
const bothSignals = (term, other) => {
  const controller = new AbortController();
  const { signal: own } = term;
  const fire = lookingFirst(controller, () => own.reason ?? (other.aborted ? other.reason : undefined));
  const ends = (reason) => {
    own.removeEventListener('abort', onOwn);
    other.removeEventListener('abort', onOther);
    fire(reason);
  };
  const onOwn = () => ends(own.reason);
  const onOther = () => ends(other.reason);
  own.addEventListener('abort', onOwn, { once: true });
  other.addEventListener('abort', onOther, { once: true });
  if (own.aborted) onOwn();
  else if (other.aborted) onOther();
  const end = () => ends(new EdgelectError('the work under this signal has ended', { code: 'EDGELECT_LOST' }));
  return { signal: controller.signal, end };
};

/** What a storage of the application's has: either of these. */
const METHODS = { 'get and putIfMatch': ['get', 'putIfMatch'], 'tryAcquire, renew and release': LOCKER_METHODS };

const checkStorage = (storage) => {
  if (typeof storage !== 'object') {
    throw wrongOption('storage', storage, 'must be an S3Storage, a MemoryStorage or an object with get and putIfMatch');
  }
  checkNoBinding(storage);
  checkFormat(storage.format);
  checkWritesApart(storage.writesApart);
  if (bucketOf(storage) || isLocker(storage)) return;
  const lacks = ([, names]) => names.filter((name) => typeof storage[name] !== 'function');
  // Of the kind that it has most of.
  const [meant] = Object.entries(METHODS).sort((one, other) => lacks(one).length - lacks(other).length);
  const [missing] = lacks(meant);
  if (missing) throw wrongOption('storage', storage, `a storage needs the methods ${meant[0]}; it has no ${missing}`);
};

const stoppedStatus = (serverId, group, error) => ({
  role: 'stopped',
  serverId: serverId || null,
  session: null,
  group,
  leaderId: null,
  leaderAddr: null,
  term: null,
  remainingMs: null,
  transitions: null,
  parked: null,
  acquiredMs: null,
  renewedMs: null,
  leaseMs: null,
  paused: null,
  waiting: null,
  history: [],
  lastSlot: null,
  requests: { read: 0, write: 0, peer: 0 },
  error: error ?? null,
});

const fromVariables = () => {
  let relevant;
  try {
    const variables = globalThis.process?.env ?? globalThis.Deno?.env?.toObject() ?? {};
    relevant = Object.entries(variables).filter(([name]) => /^(EDGELECT|AWS)_/.test(name));
  } catch (cause) {
    const message = 'storage = (not set): give one, or let the variables be read that name it (in Deno: --allow-env)';
    throw new EdgelectError(message, { code: 'EDGELECT_CONFIG', field: 'storage', cause });
  }
  const { settings, kind, place, credentials, names } = readVariables(Object.fromEntries(relevant));
  return { settings, names, storage: byVariable(() => new STORAGES[kind]({ ...place, credentials }), names) };
};

/** Does what may refuse a setting. One that came from a variable is named by it in the error. */
const byVariable = (work, names = {}, options = {}) => {
  try {
    return work();
  } catch (error) {
    const { code, field, message } = error;
    const isSetting = code === 'EDGELECT_CONFIG' && message.startsWith(`${field} = `);
    const variable = isSetting && options[field] === undefined ? names[field] : undefined;
    if (!variable) throw error;
    throw new EdgelectError(variable + message.slice(field.length), { code, field: variable });
  }
};
