// Many groups in one process. How requests share a budget, and when each group begins, is decided in src/electors/.
import { Elector } from './elector.js';
import { checkGroup, limitsOf, show } from './engine.js';
import { STOP_OPTIONS, callOptions, lenient, optionsOf, signalOf, toJson, unlessAborted, wrongOption } from './errors.js';
import { METRICS_PATH, PAGE_PATH, STATUS_PATH, showing, urlOf } from './health.js';
import { hasSingleClock, ownTimers } from './host.js';
import { CALLBACKS, HAS_PAGE, INSIDE, Judgement, REMOVED, Room, SAMPLES, SHARED, STOP_LATER, SharedBudget, SharedTimers, Work, callbacksOf } from './shared.js';

const TAKES = 'an Electors takes an object with storage and the options that its groups have in common';
/** The options that one runtime or one storage has, so that no group has others. */
const COMMON = ['storage', 'unref', 'probe', 'page'];
/** Between the releases of two leases, in milliseconds: those of a thousand at once would not be answered in time. */
const RELEASES_APART_MS = 5;

export class Electors {
  #options;
  /** JSON. */
  #limits;
  #timers;
  #budget;
  #judgement = new Judgement();
  #room;
  /** Each group's elector, and what it needs of the rate. */
  #groups = new Map();
  /** The work of each group, also of one that was removed, while it goes on. */
  #works;
  #need = 0;
  #added = 0;

  constructor(options) {
    const given = optionsOf(options, TAKES);
    const { storage, unref = false, releaseOnStop, probe, warn, log, logLevel, peerTls, page = false, ...rest } = given;
    for (const name of CALLBACKS) delete rest[name];
    // An elector says what `true` stands for.
    const { heartbeat, ...plain } = rest;
    const checked = typeof heartbeat === 'boolean' ? plain : rest;
    const { limits, settings, mostHeld } = limitsOf(toJson(checked), given[SHARED]?.names ?? []);
    if (settings.lockfilePath !== undefined) {
      throw wrongOption('lockfilePath', settings.lockfilePath, 'each group has its own: electors.add(lockfilePath)');
    }
    const callbacks = callbacksOf(given);
    this.#options = { storage, unref, releaseOnStop, probe, warn, log, logLevel, peerTls, page, heartbeat, ...settings, ...callbacks };
    // What is wrong with them is wrong for every group.
    this[HAS_PAGE] = new Elector(this.#optionsOf('check'))[HAS_PAGE];
    this.#works = given[SHARED]?.works ?? new Map();
    this.#limits = JSON.stringify(limits);
    this.#timers = timersOf(unref);
    this.#budget = new SharedBudget(this.#limits, this.#timers);
    this.#room = new Room(mostHeld, () => [...this].map(({ config }) => config.maxPeers));
  }

  add(group) {
    const own = typeof group === 'string' ? { lockfilePath: group } : optionsOf(group, 'a group is its lockfilePath, or options with one', 'group');
    const foreign = COMMON.find((name) => own[name] !== undefined);
    if (foreign) throw wrongOption(foreign, own[foreign], 'is one for all groups of an Electors');
    const { lockfilePath } = own;
    if (typeof lockfilePath !== 'string') throw wrongOption('lockfilePath', lockfilePath, 'must be a text: the key of the lease object');
    const [timers, budget, judgement, room] = [this.#timers, this.#budget, this.#judgement, this.#room];
    const work = this.#works.get(lockfilePath) ?? new Work();
    const shared = Object.assign(own[SHARED] ?? {}, { timers, unref: this.#options.unref, budget, judgement, room, work, delayMs: 0 });
    const elector = new Elector({ ...this.#optionsOf(lockfilePath), ...ofItsOwn(own), ...callbacksOf(own), [SHARED]: shared });
    const { frequentInterval } = elector.config;
    const there = this.#groups.get(lockfilePath);
    const found = this.#check(lockfilePath, there, frequentInterval, { groups: this.#groups.size, need: this.#need });
    shared.delayMs = found.delayMs;
    shared.agree = (interval) => this.#agree(lockfilePath, elector, interval);
    this.#need = found.need;
    this.#added += 1;
    this.#works.set(lockfilePath, work);
    this.#groups.set(lockfilePath, { elector, shared, need: found.own });
    this.#room.changed();
    return elector;
  }

  #check(lockfilePath, there, frequentInterval, before) {
    return checkGroup(this.#limits, lockfilePath, there !== undefined, frequentInterval, JSON.stringify({ ...before, added: this.#added }));
  }

  /** Whether the rate allows new settings of a group; what is returned takes note of them. */
  #agree(lockfilePath, elector, frequentInterval) {
    const group = this.#groups.get(lockfilePath);
    // One that was removed has no place among the others any more.
    if (group?.elector !== elector) return undefined;
    const others = { groups: this.#groups.size - 1, need: this.#need - group.need };
    const { need, own } = this.#check(lockfilePath, undefined, frequentInterval, others);
    return () => {
      this.#need = need;
      group.need = own;
    };
  }

  get(lockfilePath) {
    return this.#groups.get(lockfilePath)?.elector;
  }

  get size() {
    return this.#groups.size;
  }

  [Symbol.iterator]() {
    return [...this.#groups.values()].map(({ elector }) => elector)[Symbol.iterator]();
  }

  async remove(lockfilePath, options) {
    const group = this.#groups.get(lockfilePath);
    if (!group) return false;
    group.elector[REMOVED] = true;
    // One with a wrong option has stopped all the same.
    const wrong = await group.elector.stop(options).catch((error) => {
      if (error?.code === 'EDGELECT_CONFIG') return error;
      // It is still here.
      group.elector[REMOVED] = false;
      throw error;
    });
    if (this.#groups.get(lockfilePath) === group) {
      this.#groups.delete(lockfilePath);
      this.#need -= group.need;
      group.shared.work.after(() => this.#groups.has(lockfilePath) || this.#works.delete(lockfilePath));
      this.#room.changed();
    }
    if (wrong) throw wrong;
    return true;
  }

  async stop(options) {
    // Each elector begins to stop before it is said what is wrong with the options.
    const { read, throwWrong } = lenient();
    read(() => callOptions(options, STOP_OPTIONS, 'stop'));
    const signal = read(() => signalOf(options));
    // One listener for all of them.
    const ofEach = read(() => ({ park: options?.park, release: options?.release }));
    const { maxRequestsPerSecond: rate } = JSON.parse(this.#limits);
    const apartMs = Math.max(RELEASES_APART_MS, rate ? 1_000 / rate : 0);
    // Its own: with `unref` the shared one would let the process end before all leases are released.
    const timers = timersOf(false);
    let releases = 0;
    // One that is stopped from within is stopped first, so that its term is over when this resolves.
    const electors = [...this].sort((one, other) => other[INSIDE] - one[INSIDE]);
    const inside = electors[0]?.[INSIDE];
    const stops = electors.map((elector) => {
      const leads = elector.isLeader();
      const ms = leads ? releases * apartMs : 0;
      if (leads) releases += 1;
      const turn = ms > 0 ? new Promise((resolve) => timers.set(ms, resolve)) : undefined;
      return elector[STOP_LATER](turn, ofEach);
    });
    const all = Promise.allSettled(stops);
    const ending = inside ? Promise.allSettled([stops[0]]) : unlessAborted(all, signal);
    const failed = (await ending).find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
    throwWrong();
  }

  status() {
    return { ...this.#budget.load, groups: [...this].map((elector) => elector.status()) };
  }

  metrics() {
    return show(METRICS_PATH, this.#samples()).body;
  }

  #samples() {
    return [...this].flatMap((elector) => elector[SAMPLES]());
  }

  async handleRequest(request) {
    const { pathname, searchParams } = urlOf(request);
    const group = searchParams.get('group');
    const ofAll = group === null && request.method === 'GET';
    if (ofAll && (pathname === METRICS_PATH || (pathname === PAGE_PATH && this[HAS_PAGE]))) return showing(pathname, () => this.#samples());
    if (group !== null) return (this.get(group) ?? NONE).handleRequest(request);
    const [first, ...others] = this;
    if (pathname !== STATUS_PATH || request.method !== 'GET') {
      // Each of them answers 404 and 405 alike; with more than one, whose leadership is asked for has to be said.
      if (others.length === 0 || pathname !== '/health/leadership' || request.method !== 'GET') return (first ?? NONE).handleRequest(request);
      return answer(400, { error: 'which group? ask with ?group=LOCKFILE_PATH' });
    }
    const shown = await Promise.all([...this].map(async (elector) => (await elector.handleRequest(request)).json()));
    return answer(200, { ...this.#budget.load, groups: shown });
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  /** The common options, as one group has them: callbacks hear of which group it is. */
  #optionsOf(lockfilePath) {
    const options = { ...this.#options, lockfilePath };
    for (const name of CALLBACKS) {
      const callback = options[name];
      if (typeof callback === 'function') options[name] = (told) => callback(told, lockfilePath);
    }
    return options;
  }
}

/** The options that are there: undefined and null are no values of a group's own. */
const ofItsOwn = (own) => Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined && value !== null));

/** A heap goes by the clock. A single clock may be stepped back, which only timers of the runtime bring to light, and timers end with
 * their event, which must take no others with them. */
const timersOf = (unref) => (hasSingleClock() ? ownTimers(unref) : new SharedTimers(unref));

const answer = (status, body) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' } });

/** A group that is not here. */
const NONE = { handleRequest: async () => answer(404, { error: 'there is no such group here', leaderID: null }) };
