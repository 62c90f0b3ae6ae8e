import * as glue from './dist/edgelect.js';
import { EdgelectError, checkFormat, checkWritesApart, toJson } from './errors.js';
import { Host } from './host.js';
import { Wasm, endLater, trapError } from './wasm.js';

/** The one wasm, and every elector's. */
export const ownWasm = new Wasm(glue);

/** The settings in force, or the EdgelectError that names what is wrong with them. */
export const checked = (settings, { json, credentials } = {}) =>
  JSON.parse(ownWasm.call(({ check }) => check(settings, json, credentials, new Host())));

/** The options that those of a `LeaderElectionConfig` mean, and `warning`; `null` for what is left out. */
export const leaderElection = (options) => {
  const json = toJson(options);
  return JSON.parse(ownWasm.call((wasm) => wasm.leaderElection(json)));
};

/** The first number of a JSON text that JavaScript would write back as another one. */
export const unheldNumber = (text) => ownWasm.call((wasm) => wasm.unheldNumber(text));

/** Options of an `Electors`, JSON, as `{ limits, settings, mostHeld }`; `names` are others that somebody may have meant. */
export const limitsOf = (options, names) => JSON.parse(ownWasm.call(({ limits }) => limits(options, names)));

/** The `lockfilePath` of each shard, and the seat's at the end, and how often to look at them. */
export const shardPaths = (settings, prefix, shards) => JSON.parse(ownWasm.call((wasm) => wasm.shardPaths(settings, prefix, shards)));

/** What decides about the shards of these engines, the seat's at the end: called with the numbers of those that are left to
 * others, it gives what to do, a list of `[number, 'claim' | 'leave' | 'give']`. */
export const newShards = (engines) => {
  const raw = ownWasm.call(({ RawShards }) => new RawShards());
  for (const engine of engines) engine.use((elector) => raw.add(elector));
  return (barred) => JSON.parse(engines[0].use((elector) => raw.step(elector, Uint32Array.from(barred))));
};

/** What one group more needs: `{ need, own, delayMs }`; see src/js/many.rs. */
export const checkGroup = (...what) => JSON.parse(ownWasm.call((wasm) => wasm.checkGroup(...what)));

/** Settings, the kind of store, its place and its credentials out of an object of variables, and `names`, the variable of each
 * option that was set. */
export const readVariables = (variables) => {
  const json = toJson(variables);
  return JSON.parse(ownWasm.call(({ fromVariables }) => fromVariables(json)));
};

/** Adds the sample of an elector that has ended to those before it. */
export const addSample = (before, ended) => ownWasm.call((wasm) => wasm.addSample(before, ended));

/** The answer to `GET /metrics`, made of samples, or to `GET /`: `{ headers, body }`. */
export const show = (path, samples = []) => JSON.parse(ownWasm.call((wasm) => wasm.show(path, samples)));

/** One session: an election inside the wasm and the operations that it has begun outside. */
export class Engine {
  #raw;
  #host;
  #onEvent;
  #onTurn;
  #mayMove;
  /** What it shares with the other groups of an `Electors`. */
  #shared;
  /** Whether its first request waits for this group's place among many; a slot is late already. */
  #delays;
  /** Its part in the judgement of the store, which is one for all of them. */
  #judging = null;
  #events = [];
  #driving = false;
  #again = false;
  #ended = false;
  #instance;
  #breakDown = (error) => this.#end(error);
  /** What its metrics told at its end. */
  lastSample;

  /** `settings` is JSON, and so is `schedule`, for an engine that runs slots. `format` is
   * that of a storage's records and `writesApart` the shortest time between two of its writes, unless it is a bucket. `onEvent` hears each event; the last one is
   * `finished`, with `error` if something broke. `mayMove` is asked before each turn, and may close this engine instead.
   * `onAnswer` hears each answer of a `fetch`, before the wasm does; `onTurn` is called after the events of each turn; `shared` is what `js/electors.js` gives
   * each of its groups. */
  constructor({ settings, storage, bucket, schedule, format, writesApart, unref, onEvent, onTurn, onAnswer, locker, peerFetch, shared, mayMove = () => true }) {
    checkFormat(format);
    checkWritesApart(writesApart);
    this.#host = new Host({ settle: (how) => this.#tell(how), storage, credentials: bucket?.provider, unref, onAnswer, locker, peerFetch, shared });
    const { json, credentials } = bucket ?? {};
    this.#raw = ownWasm.call(({ RawElector }) => new RawElector(settings, json, credentials, schedule, format, writesApart, this.#host));
    this.#instance = ownWasm.instance;
    this.#onEvent = onEvent;
    this.#onTurn = onTurn;
    this.#mayMove = mayMove;
    this.#shared = shared;
    this.#delays = schedule === undefined;
    ownWasm.engines.add(this.#breakDown);
  }

  /** False as soon as nothing can be asked any more, which may be a moment before `finished` is told. */
  get alive() {
    return !this.#ended && !ownWasm.broken && this.#instance === ownWasm.instance;
  }

  /** With `judges` the store is judged first; null leaves it to the kind of store. Nothing is asked for so many milliseconds. */
  run(judges = false, pauseMs = 0) {
    if (!this.#shared) {
      this.#tell((raw) => raw.run(judges, pauseMs));
      return;
    }
    const { competes, judgement } = this.#shared;
    const delayMs = Math.max(pauseMs, this.#delays ? this.#shared.delayMs : 0);
    this.#shared.engine = this;
    if (competes === false) this.#attempt((raw) => raw.compete(false));
    const begin = (own) => this.alive && this.#attempt((raw) => raw.run(own, delayMs));
    this.#judging = judgement.join(judges, begin, () => this.#tell(() => {}));
    this.#judging.start();
  }

  /** Whether it may claim; what it holds it keeps. */
  compete(competes) {
    this.#tell((raw) => raw.compete(competes));
  }

  /** Asks something about its part in the wasm. */
  use(what) {
    return this.#ask(what);
  }

  get sharedTimers() {
    return this.#shared?.timers;
  }

  init() {
    this.#tell((raw) => raw.init());
  }

  /** Reads the record once; what it shows, or why not, is told as an event. */
  look({ periodMs, lateMs = 0 } = {}) {
    this.#tell((raw) => raw.look(periodMs, lateMs));
  }

  /** Asks something as an operator; `order` is JSON. What was asked of whom is told as the event `asked`. */
  operate(order) {
    this.#ask((raw) => raw.operate(order));
    this.#drive();
  }

  /** Opens or writes the checkpoint at `lockfilePath`; `order` is JSON. What is held then is told as an event. */
  checkpoint(order) {
    this.#ask((raw) => raw.checkpoint(order));
    this.#drive();
  }

  /** Writes `body` over `version` or over nothing at `lockfilePath`, or reads what is there; the answer is told as an event. */
  ask({ body, version }) {
    this.#tell((raw) => raw.ask(body, version));
  }

  /** Probes the store beside `lockfilePath`; `order` is JSON. Each step is told as an event, and then the diagnosis. */
  probe(order) {
    this.#ask((raw) => raw.probe(order));
    this.#drive();
  }

  tick() {
    this.#tell((raw) => raw.tick());
  }

  resign() {
    this.#tell((raw) => raw.resign());
  }

  stop(park) {
    this.#tell((raw) => raw.stop(park));
    // It has heard of the stop before it begins, so that it asks nobody.
    this.#judging?.now();
  }

  workEnded(term) {
    this.#tell((raw) => raw.workEnded(term));
  }

  /** Whether a job of this term that ends now, also after it was told to, has ended in time. */
  endsInTime(term) {
    return this.alive && this.#attempt((raw) => raw.endsInTime(term)) === true;
  }

  /** How the job of this term's slot has ended. */
  slotEnded(term, { done, failed, result, tookMs }) {
    this.#tell((raw) => raw.slotEnded(term, done, failed, result, tookMs));
  }

  /** New settings, as JSON; they are heard at the next turn. */
  configure(settings) {
    this.#ask((raw) => raw.configure(settings));
    Promise.resolve().then(() => this.#drive());
  }

  /** What is known of the own term now, undefined once it is over, or null where the stack has no room to ask. Without `proven` there is no
   * authority at this reading of a single clock, but the term goes on. */
  standing() {
    try {
      const found = this.alive ? this.#ask((raw) => raw.standing()) : undefined;
      return found && { term: found[0], remainingMs: found[1], proven: found[2] === 1 };
    } catch {
      return this.alive ? null : undefined;
    }
  }

  get isOnWorkers() {
    return this.#host.singleClock;
  }

  /** Whether the store has answered, or has failed in a way that may pass. */
  get heard() {
    return this.alive && this.#ask((raw) => raw.heard());
  }

  /** Why the last request to the store has failed, as `{ message, status, storeCode }`, or undefined. */
  problem() {
    const found = this.#ask((raw) => raw.problem());
    if (!found) return undefined;
    const problem = JSON.parse(found);
    return { ...problem, cause: this.#causeOf(problem.message) };
  }

  status() {
    return JSON.parse(this.#ask((raw) => raw.status()));
  }

  /** What its metrics tell now, a text for `show` and `addSample`. */
  get sample() {
    return this.#ask((raw) => raw.sample());
  }

  /** The session's random id. */
  get session() {
    return this.#ask((raw) => raw.session());
  }

  /** That for anybody who asks: without the session. */
  publicStatus() {
    return JSON.parse(this.#ask((raw) => raw.publicStatus()));
  }

  /** A question to `GET /health/leadership`: its answer, or `held`, its number, and `forMs`. None is held where the group is one of
   * many that are `full` together. */
  peerAsks(query, full) {
    const [chance] = crypto.getRandomValues(new Uint32Array(1));
    return JSON.parse(this.#ask((raw) => raw.peerAsks(query, chance, full)));
  }

  /** The answer to one that is held, undefined while there is nothing new to tell unless it is `due`. */
  peerAnswer(held, due) {
    const answer = this.#ask((raw) => raw.peerAnswer(held, due));
    return answer && JSON.parse(answer);
  }

  peerLeaves(held) {
    this.#ask((raw) => raw.peerLeaves(held));
  }

  /** The term that held questions are about. */
  get steadyTerm() {
    return this.#ask((raw) => raw.steadyTerm());
  }

  /** Answers a question from the stored record, which an event `health` tells. */
  healthOfStore(query, { place, bound, ended }) {
    this.#ask((raw) => raw.healthOfStore(query, place, bound, ended));
    this.#drive();
  }

  /** Ends at once, whatever is under way. */
  close() {
    if (this.#ended) return;
    this.#ended = true;
    ownWasm.engines.delete(this.#breakDown);
    this.#judging?.forget();
    if (!ownWasm.broken && this.#instance === ownWasm.instance) this.lastSample = this.#attempt((raw) => raw.sample());
    this.#host.close();
    // Looked at only now: the listeners of what was aborted may have broken it.
    if (!ownWasm.broken && this.#instance === ownWasm.instance) this.#attempt((raw) => raw.free());
    // What a trap left half-changed goes with its instance; the garbage collector must not touch it.
    else this.#raw.__destroy_into_raw();
  }

  #ask(what) {
    if (!this.alive) throw trapError();
    return ownWasm.call(() => what(this.#raw), this.#instance);
  }

  /** Nobody waits for what goes wrong here: a trap tells everybody by itself. */
  #attempt(what) {
    try {
      return ownWasm.call(() => what(this.#raw), this.#instance);
    } catch {
      return undefined;
    }
  }

  #tell(what) {
    if (this.#ended) return;
    if (!this.alive) {
      endLater(this.#breakDown);
      return;
    }
    this.#attempt(what);
    this.#drive();
  }

  #drive() {
    // A callback that calls the elector comes here while its event is being told.
    this.#again = true;
    if (this.#driving) return;
    // What an exhausted stack or an error of ours leaves undone is done at the next turn.
    Promise.resolve().then(() => this.#resume());
    this.#driving = true;
    try {
      while (this.#again && this.alive) {
        this.#again = false;
        if (!this.#mayMove()) break;
        const events = this.#attempt((raw) => raw.poll());
        if (events === undefined) break;
        this.#events.push(...JSON.parse(events));
        this.#tellEvents();
        if (this.alive) this.#onTurn?.();
        // What an event's listener has told comes first: it may cancel what was begun. A broken instance sends nothing more:
        // its write would bind a group to nobody.
        if (this.alive && !this.#again) this.#host.startAll();
      }
    } finally {
      this.#driving = false;
    }
  }

  #tellEvents() {
    while (this.#events.length > 0 && this.alive) {
      const event = this.#events.shift();
      if (event.type === 'finished') this.#end(event.error);
      else if (event.type === 'judged') this.#judging?.judged(event);
      else if (event.type === 'failed' || event.type === 'troubled') this.#onEvent({ ...event, cause: this.#causeOf(event.message) });
      else this.#onEvent(event);
    }
  }

  #resume() {
    if (this.#driving || !this.alive) return;
    if (this.#again || this.#events.length > 0 || this.#host.waits) {
      this.#tellEvents();
      this.#drive();
    }
  }

  #end(error) {
    if (this.#ended) return;
    this.close();
    const { code, field, message, status, storeCode } = error ?? {};
    const known = error === undefined || error instanceof EdgelectError;
    const cause = known ? undefined : this.#causeOf(message);
    this.#onEvent({ type: 'finished', error: known ? error : new EdgelectError(message, { code, field, status, storeCode, cause }) });
  }

  /** The failed operation that a message tells of, if it is one of ours. */
  #causeOf(message) {
    const { failure } = this.#host;
    return failure && message.includes(failure.message) ? failure : undefined;
  }
}
