// Members of the npm package in a schedule: what they do is drawn, and what they are told is judged.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';
import { Heart } from './hearts.mjs';
import { LockWorld } from './locks.mjs';
import { Many, pace } from './many.mjs';
import { OwnStorage, newR2Storage } from './storage.mjs';

/** Within it the record is read for a peer's question: by nobody's session. */
const reading = new AsyncLocalStorage();
/** By their access key's id the world knows whose a request is. */
export const credentialsOf = (name) => ({ accessKeyId: name, secretAccessKey: 'wJalrXUtnFEMI', sessionToken: 'generation-0' });
/** Reasons that are the member's own, and those for which a job may still come to its end. */
const GIVEN_UP = ['resigned', 'stopped', 'stepDown', 'paused'];
const TOLD = ['stopped', 'stepDown', 'paused'];
/** How soon those who wait for the end of a term hear of it, while nothing blocks the process. */
const TOLD_WITHIN_MS = 20;
const BEGIN = ['start', 'lead'];
/** What each run of a slot tells, and what a result without one does. */
const RUN = ['slot', 'term', 'outcome', 'durationMs', 'recorded', 'previous'];
const NOT_RUN = ['outcome', 'slot', 'reason', 'previous'];
const REASON = /has ended: (\w+)/;
const WRONG = [
  [(elector) => elector.updateConfig({ leaderTimeout: 'soon' }), 'EDGELECT_CONFIG'],
  [(elector) => elector.updateConfig({ nothing: 1 }), 'EDGELECT_CONFIG'],
  [(elector) => elector.waitForLeadership({ signal: 5 }), 'EDGELECT_CONFIG'],
  [(elector) => elector.lead('work'), 'EDGELECT_CONFIG'],
  [(elector) => elector.lead(() => {}, { signal: {} }), 'EDGELECT_CONFIG'],
  [(elector) => elector.runScheduled(1_000, () => {}), 'EDGELECT_CONFIG'],
  [(elector) => elector.runScheduled(Date.now(), null), 'EDGELECT_CONFIG'],
  [(elector) => elector.stepDown({ by: 5 }), 'EDGELECT_CONFIG'],
  [(elector) => elector.pause({ until: 'soon' }), 'EDGELECT_CONFIG'],
];

/** What needs versions. */
const REFUSED = [
  (elector) => elector.stepDown(), (elector) => elector.pause(), (elector) => elector.resume(), (elector) => elector.init(),
  (elector) => elector.runScheduled(Date.now(), () => {}), (elector) => elector.enablePeerMode(), (elector) => elector.doctor(),
].map((calls) => [calls, 'EDGELECT_CONFIG']);

/** A signal of the caller's whose listeners are counted. */
export const newCaller = (caller) => {
  const controller = new AbortController();
  const { signal } = controller;
  for (const [method, step] of [['addEventListener', 1], ['removeEventListener', -1]]) {
    const own = signal[method].bind(signal);
    signal[method] = (...what) => {
      caller.listeners += step;
      return own(...what);
    };
  }
  return controller;
};

/** What all kinds of members share. */
export class Face {
  constructor(schedule, name, options) {
    const { world, runtime, chance, pack } = schedule;
    Object.assign(this, { schedule, world, runtime, chance, pack, name, options });
    /** Each term by its token, or its number where it has none: `{ session, term, over }`. */
    this.terms = new Map();
    this.numbers = new WeakMap();
    this.caller = { listeners: 0 };
    schedule.faces.set(name, this);
  }

  newElector(callbacks = {}) {
    const common = { storage: this.newStorage(), warn: false, probe: false };
    if (this.kind !== 'many') return new this.pack.Elector({ ...this.options, ...common, ...callbacks });
    this.many = new Many(this, this.options, common, callbacks);
    return this.many.elector;
  }

  newStorage() {
    if (this.kind === 'storage') return new OwnStorage(this.runtime, this.name);
    if (this.kind === 'r2') return newR2Storage(this.pack, this.runtime, this.name);
    if (this.kind === 'locker') return this.schedule.locks.storageOf(this);
    return new this.pack.S3Storage({ endpoint: 'https://s3.example.com', bucket: this.schedule.bucket, credentials: credentialsOf(this.name) });
  }

  numberOf(term) {
    return term.token ?? this.numbers.get(term);
  }

  broke(check, text) {
    this.world.broke(check, `${this.name}: ${text}`);
  }

  /** A term is handed out. */
  begins(session, term) {
    if (this.kind === 'locker') {
      this.numbers.set(term, this.terms.size + 1);
      if (term.token !== undefined) this.broke('where nothing is fenced no term has a token', `${term.token}`);
    }
    const token = this.numberOf(term);
    // After a deletion a number may come again, in another session: the world knows when.
    const known = this.terms.get(token);
    if (known && (!known.over || known.session === session)) this.broke('a term is told once', `term ${token} again`);
    this.terms.delete(token);
    const open = [...this.terms.values()].find(({ over }) => !over);
    if (open) this.broke('a term is over before the next', `${this.numberOf(open.term)} goes on when ${token} begins`);
    const told = { session, term, over: false, fired: false };
    this.terms.set(token, told);
    term.signal.addEventListener('abort', () => {
      told.fired = true;
    }, { once: true });
    this.world.acquired(session, token, term.remaining());
    return token;
  }

  /** It is over, and told so. */
  ends(token, reason) {
    const known = this.terms.get(token);
    if (!known || known.over) return this.broke('the end of a term is told once', `term ${token}, ${reason}`);
    Object.assign(known, { over: true, reason });
    this.world.lost(known.session, token, reason);
    if (!known.fired) this.broke('a signal has fired when the end is told', `term ${token}`);
    if (known.term.remaining() !== 0) this.broke('nothing remains of a term that is over', `term ${token}`);
    return known;
  }

  /** What code of the application reads of its term is what is true. */
  look(term, session, caller, signal = term.signal) {
    const token = this.numberOf(term);
    const leads = this.world.leads(session) === token;
    const { aborted } = signal;
    // One clock proves nothing at some readings, and at others shows that it was stepped, which nobody but its member sees.
    if (this.schedule.single) {
      if (term.remaining() > 0 && !leads) this.broke('what remains is true', `${term.remaining()} ms of term ${token}, which is over`);
      return;
    }
    if (aborted !== (!leads || caller?.aborted === true)) this.broke('a signal is true', `aborted ${aborted} in term ${token}, leads: ${leads}`);
    if ((term.remaining() > 0) !== leads) this.broke('what remains is true', `${term.remaining()} ms of term ${token}, leads: ${leads}`);
  }

  /** Says again where it stands, when that may have changed. */
  standsNow(stepped = false) {
    const { session, over, term } = [...this.terms.values()].at(-1) ?? { over: true };
    if (over || term.signal.aborted) return;
    const remainingMs = term.remaining();
    // Where one clock proves nothing the term goes on.
    if (remainingMs > 0 || !this.schedule.single) this.world.stands(session, this.numberOf(term), remainingMs, stepped);
  }

  /** Work of a drawn kind under a term. */
  async work(term, session, caller) {
    const { runtime, chance, world } = this;
    const { leaseMs } = this.schedule;
    const { signal } = term;
    const kinds = ['short', 'polls', 'polls', 'deaf', 'deaf', 'throws', 'blocks', 'blocks', 'computes', 'resigns', 'listens', 'silent', 'keeps', 'keeps'];
    const kind = this.schedule.healed ? this.healedKind : chance.pick(kinds);
    const span = () => 1 + chance.below(chance.below(leaseMs) + 1);
    this.schedule.count(`work ${kind}`);
    world.note(`${this.name} works in term ${this.numberOf(term)}: ${kind}`);
    if (kind === 'short') {
      await runtime.sleep(span());
      return 'short';
    }
    if (kind === 'throws') {
      if (chance.oneIn(2)) await runtime.sleep(span());
      throw new Error('the work failed');
    }
    if (kind === 'listens') {
      await new Promise((resolve) => {
        if (term.signal.aborted) resolve();
        term.signal.addEventListener('abort', resolve, { once: true });
        runtime.set(resolve, 3 * leaseMs, { own: true });
      });
      return 'listened';
    }
    if (kind === 'computes') {
      await runtime.sleep(span());
      if (!this.schedule.over) this.schedule.block(1 + chance.below(2 * leaseMs));
      return 'computed';
    }
    if (kind === 'keeps') return this.#keeps(term, span);
    if (kind === 'silent') {
      await runtime.sleep(span());
      // As much work does, it looks at nothing and comes to its end, whatever happened.
      await runtime.sleep(2 * span());
      return 'silent';
    }
    const untilMs = runtime.now + (this.schedule.healed ? Infinity : 3 * leaseMs);
    while (runtime.now < untilMs && !this.schedule.over) {
      await runtime.sleep(span());
      if (kind === 'blocks' && !this.schedule.over) {
        this.schedule.block(1 + chance.below(leaseMs / 2));
        const looks = [() => this.look(term, session, caller, signal), () => this.read?.()];
        for (const look of chance.oneIn(2) ? looks : looks.reverse()) look();
      }
      if (kind === 'resigns') {
        term.resign();
        if (!term.signal.aborted) this.broke('a resignation ends the term at once', `term ${this.numberOf(term)}`);
        await runtime.sleep(span());
        return 'resigned';
      }
      if (kind !== 'deaf') {
        this.look(term, session, caller);
        if (term.signal.aborted) return 'stopped';
      }
    }
    return kind;
  }

  /** Counts on in a checkpoint, until a call of it fails. */
  async #keeps(term, span) {
    const { runtime, schedule } = this;
    try {
      const state = await term.checkpoint('progress.json');
      while (!term.signal.aborted && !schedule.over) {
        const next = (state.value?.next ?? 0) + 1;
        await state.write({ next });
        schedule.count('checkpoint written');
        if (state.value.next !== next) this.broke('a checkpoint has what was written', `${state.value.next} for ${next}`);
        await runtime.sleep(span());
      }
    } catch (error) {
      const codes = this.kind === 'locker' ? ['EDGELECT_CONFIG'] : ['EDGELECT_FENCED', 'EDGELECT_UNKNOWN', 'EDGELECT_LOST', 'EDGELECT_STORE'];
      const known = codes.includes(error?.code) || (term.signal.aborted && this.kind !== 'locker');
      if (!known) this.broke('a call fails by a known error', `checkpoint: ${error?.stack ?? error}`);
      schedule.count(`checkpoint ${error?.code}`);
    }
    return 'kept';
  }

  /** Whether it has authority for its newest term, as far as the world knows. */
  get leadsNow() {
    const { session, term } = [...this.terms.values()].at(-1) ?? {};
    return term !== undefined && this.world.leads(session) === term.token;
  }

  healedKind = 'polls';
}

/** A member that competes. */
export class Member extends Face {
  #sessions = new Map();
  #asking;
  #running = new Map();
  /** Questions of peers that it has not answered, each with who reads the record for it. */
  #held = new Map();
  /** What is under way, and how many calls have begun a session or might have. */
  #calls = new Set();
  #begun = 0;

  /** `kind` is `storage` or `locker` for one of its own, `r2` for a binding, and `many` for one that leads other groups as well. */
  constructor(schedule, number, options, kind) {
    super(schedule, `M${number}`, options);
    this.kind = kind;
    if (kind) schedule.count(`member ${kind}`);
    if (kind === 'locker') this.world = new LockWorld(schedule, this);
    const { hearts } = schedule;
    if (options.peerMode && options.serverAddr && !kind) {
      this.options = { ...options, ...hearts.options(options.leaderTimeout) };
      this.heart = new Heart(this);
    }
    const told = (name, does) => (what) => {
      this.world.note(`${this.name} ${name}`);
      return does(what);
    };
    this.elector = this.newElector({
      onAcquireLeadership: told('onAcquireLeadership', (term) => this.#acquired(term)),
      onLoseLeadership: told('onLoseLeadership', ({ term, reason }) => this.#lost(term, reason)),
      onError: () => this.#hears('onError'),
      ...(this.heart && {
        onSuspect: told('onSuspect', (serverId) => this.heart.suspects(serverId)),
        onRecover: told('onRecover', (serverId) => this.heart.recovers(serverId)),
      }),
      ...(!schedule.single && { onNewLeader: told('onNewLeader', (leaderId) => this.#named(leaderId)) }),
      ...((schedule.afresh || (number === 0 && schedule.hearsStatus)) && { onStatus: (status) => this.#stands(status) }),
    });
  }

  /** The world's number of the session that sends this. Each begins with a read of the whole record. */
  asking(conditional) {
    const reader = reading.getStore();
    if (reader) {
      reader.session ??= this.world.join(JSON.stringify(this.options), '', this.kind);
      return reader.session;
    }
    if (!conditional || this.#asking === undefined) this.#asking = this.session;
    return this.#asking;
  }

  /** The world's number of the elector's session. */
  get session() {
    const { session } = this.elector.status();
    if (session === null) return undefined;
    if (!this.#sessions.has(session)) {
      this.leave();
      this.#sessions.set(session, this.world.join(JSON.stringify(this.options), session, this.kind));
    }
    return this.#sessions.get(session);
  }

  /** A session that is followed by another one, or by none, is over. */
  leave() {
    for (const session of this.#sessions.values()) this.world.gone(session);
  }

  /** Each leader is told once, and is who leads now. */
  #named(leaderId) {
    const { session, serverId, leaderId: shown } = this.elector.status();
    this.schedule.count(`onNewLeader ${leaderId === null ? 'nobody' : 'somebody'}`);
    // Its own term it may have given up in a callback before.
    if (shown !== leaderId && leaderId !== serverId) this.broke('the new leader is who leads', `told ${leaderId}, and leaderId() is ${shown}`);
    if (this.leader?.session === session && this.leader.leaderId === leaderId) this.broke('a new leader is another one', `${leaderId}`);
    this.leader = { session, leaderId };
  }

  #stands({ role, leaderId, term, parked, error, waiting }) {
    const told = JSON.stringify([role, leaderId, term, parked, error, waiting?.reason]);
    if (told === this.stood) this.broke('a status is told when it has changed', told);
    this.stood = told;
    this.#hears('onStatus', role);
  }

  /** Some applications begin anew as soon as they hear of something. */
  #hears(what, role) {
    const { afresh, healed, over } = this.schedule;
    this.schedule.count(what);
    if (!afresh || healed || over || !afresh.oneIn(role === 'stopped' ? 2 : 6)) return;
    this.schedule.count(`${what} begins anew`);
    if (role === 'stopped') void this.start();
    else void this.restart();
  }

  #acquired(term) {
    const { session, chance, schedule } = this;
    const token = this.begins(session, term);
    this.#alone(token);
    this.world.works(session, token, true);
    const ends = () => this.world.works(session, token, false);
    if (schedule.healed || !chance.oneIn(4)) return void ends();
    const kind = chance.pick(['resigns', 'throws', 'rejects', 'slow', 'stops', 'configures', 'blocks']);
    schedule.count(`onAcquireLeadership ${kind}`);
    const meddles = {
      resigns: () => {
        term.resign();
        if (!term.signal.aborted || this.elector.isLeader()) this.broke('a resignation ends the term at once', `term ${token}`);
      },
      throws: () => {
        throw new Error('the callback failed');
      },
      stops: () => this.stop(),
      configures: () => this.configure(),
      blocks: () => {
        const { signal } = term;
        schedule.block(chance.below(schedule.leaseMs));
        this.look(term, session, undefined, signal);
      },
    };
    if (meddles[kind]) {
      try {
        return void meddles[kind]();
      } finally {
        ends();
      }
    }
    return this.runtime.sleep(chance.below(schedule.leaseMs / 2)).then(() => {
      ends();
      if (kind === 'rejects') throw new Error('the callback rejects');
    });
  }

  #lost(told, reason) {
    const token = told ?? [...this.terms.keys()].at(-1);
    const known = this.ends(token, reason);
    if (!known) return undefined;
    if (this.elector.isLeader()) this.broke('a leader is told', `isLeader() in the loss of ${token}`);
    if (this.schedule.afresh) this.#hears('onLoseLeadership');
    // What is given up is told once it is written down.
    for (const question of GIVEN_UP.includes(reason) ? [] : this.#held.keys()) this.#toBeTold(question, token);
    const { session } = known;
    if (this.schedule.healed || !this.chance.oneIn(4)) return undefined;
    const kind = this.chance.pick(['throws', 'slow', 'resigns', 'starts', 'stops']);
    this.schedule.count(`onLoseLeadership ${kind}`);
    if (kind === 'throws') throw new Error('the callback failed');
    if (kind === 'resigns') void this.resign();
    if (kind === 'stops') void this.stop();
    if (kind === 'starts') void this.start();
    if (kind !== 'slow') return undefined;
    this.world.works(session, token, true);
    return this.runtime.sleep(this.chance.below(this.schedule.leaseMs / 2)).then(() => this.world.works(session, token, false));
  }

  /** Soon, or once the record is read: one question reads it for all. */
  #toBeTold(question, token) {
    const look = () => {
      if (!this.#held.has(question)) return;
      const reads = [...this.#held.values()].some(({ session }) => session !== undefined);
      if (reads) this.#toBeTold(question, token);
      else this.broke('who waits for the end of a term hears of it', `term ${token}`);
    };
    this.runtime.set(look, TOLD_WITHIN_MS, { own: true });
  }

  /** A peer asks. One who runs no session is not there. */
  async answers({ number, query }) {
    const { session, world, schedule, runtime, chance } = this;
    if (session === undefined) return world.answerPeer(number, undefined, 0, undefined, '', false);
    const led = world.leads(session) !== undefined;
    const controller = newCaller(this.caller);
    const leaves = chance.oneIn(6) && runtime.set(() => controller.abort(), chance.below(schedule.leaseMs), { own: true });
    const { response, reader } = await this.hear(query, controller);
    const body = await response.text();
    if (leaves) runtime.clear(leaves);
    if (schedule.over) return;
    // To answer a peer moves nothing of its own.
    runtime.note(this.name, response.status, false);
    schedule.count(`peer hears ${response.status}`);
    const gone = controller.signal.aborted ? undefined : session;
    const proof = response.headers.get('edgelect-proof') ?? undefined;
    world.answerPeer(number, gone, response.status, proof, body, !led && reader.session !== undefined);
  }

  /** Hears a question; where it led nothing it may have read the record for it. */
  async hear(query, controller = newCaller(this.caller)) {
    const reader = {};
    this.#held.set(controller, reader);
    const url = `http://localhost/health/leadership?${query}`;
    const response = await reading.run(reader, () => this.elector.handleRequest({ method: 'GET', url, signal: controller.signal }));
    if (reader.session !== undefined) {
      this.schedule.count('peer hears of the record');
      this.world.gone(reader.session);
    }
    this.#held.delete(controller);
    return { response, reader };
  }

  /** Waits for a call that may fail in one of these ways, and counts how it ended. */
  async call(name, calling, codes = ['EDGELECT_STOPPED', 'EDGELECT_STORE']) {
    const call = { name };
    this.#calls.add(call);
    if (BEGIN.includes(name)) this.#begun += 1;
    try {
      const value = await calling();
      this.schedule.count(`${name} resolves`);
      return value;
    } catch (error) {
      const known = codes.includes(error?.code) || ['the work failed', 'the caller ends it'].includes(error?.message);
      if (!known) this.broke('a call fails by a known error', `${name}: ${error?.stack ?? error}`);
      this.schedule.count(`${name} rejects`);
      return undefined;
    } finally {
      this.#calls.delete(call);
    }
  }

  start() {
    return this.call('start', () => this.elector.start());
  }

  stop(options = this.chance.pick([undefined, undefined, { park: true }, { release: false }])) {
    return this.call('stop', () => this.elector.stop(options));
  }

  /** Work that ignores its signal goes on under the new session. */
  restart() {
    void this.stop(this.chance.pick([{ release: false }, { release: false }, {}]));
    return this.start();
  }

  resign() {
    const { session } = this;
    if (session !== undefined) this.world.resigns(session);
    return this.call('resign', () => this.elector.resign());
  }

  configure() {
    const { chance, schedule, options } = this;
    const leaderTimeout = chance.pick(schedule.leases);
    const changes = {
      ...pace(leaderTimeout),
      // Rounded, so that one lease always has one margin: a third of 5000 is 1667, and floor(5000 / 1667) would be 2.
      margin: Math.ceil(leaderTimeout / Math.max(2, Math.round(options.leaderTimeout / options.margin))),
    };
    let refused = false;
    const { session } = this;
    // What the elector has begun in this turn leaves with the settings of before.
    void Promise.resolve().then(() => {
      if (refused) return;
      Object.assign(options, changes);
      if (session !== undefined) this.world.configured(session, JSON.stringify(options));
    });
    try {
      this.elector.updateConfig(changes);
      schedule.count('updateConfig');
    } catch (error) {
      refused = true;
      if (error?.code !== 'EDGELECT_CONFIG') this.broke('a call fails by a known error', `updateConfig: ${error?.stack}`);
    }
  }

  async lead() {
    const { chance, schedule, runtime } = this;
    const controller = newCaller(this.caller);
    const { signal } = controller;
    const alone = this.elector.status().role === 'stopped' && ![...this.#calls].some(({ name }) => BEGIN.includes(name));
    const begun = this.#begun;
    const ends = chance.oneIn(4) && runtime.set(() => controller.abort(new Error('the caller ends it')), chance.below(6 * schedule.leaseMs), { own: true });
    const token = await this.call('lead', () => this.elector.lead((term) => this.#leads(term, signal), { signal }));
    const { over, reason } = this.terms.get(token) ?? {};
    // A step of one clock may show itself only after the work has ended.
    const mayCount = [...GIVEN_UP, ...(schedule.single ? ['clock'] : [])];
    if (over && !mayCount.includes(reason)) this.broke('what lost work returns counts for nothing', `term ${token}, ${reason}`);
    if (ends) runtime.clear(ends);
    const { role } = this.elector.status();
    if (alone && begun + 1 === this.#begun && role !== 'stopped') this.broke('a lead that began a session ends it', role);
  }

  #alone(token) {
    const others = [...this.#running.keys()].filter((other) => other !== token && this.#running.get(other) > 0);
    if (others.length > 0) this.broke('work has ended before the next begins', `${others} goes on when ${token} begins`);
  }

  async #leads(view, caller) {
    if (this.kind === 'locker') this.numbers.set(view, [...this.terms.keys()].at(-1));
    const token = this.numberOf(view);
    const { session } = this.terms.get(token) ?? {};
    if (session === undefined) return this.broke('work runs under a term that was told', `term ${token}`);
    this.#alone(token);
    this.#running.set(token, (this.#running.get(token) ?? 0) + 1);
    this.world.works(session, token, true);
    try {
      await this.work(view, session, caller);
      return token;
    } finally {
      this.#running.set(token, this.#running.get(token) - 1);
      this.world.works(session, token, false);
    }
  }

  async wrong() {
    const [calls, code] = this.chance.pick(this.kind === 'locker' ? [...WRONG, ...REFUSED] : WRONG);
    try {
      await calls(this.elector);
      this.broke('a wrong value is refused', String(calls));
    } catch (error) {
      if (error?.code !== code) this.broke('a wrong value is refused', `${calls}: ${error?.stack ?? error}`);
    }
  }

  /** What the getters say is true. */
  read() {
    const { elector, world, schedule } = this;
    if (schedule.single) return this.many?.judgeSilence();
    const status = elector.status();
    // One that has asked for nothing yet is not known to the world, and is not made known by a getter.
    const session = this.#sessions.get(status.session);
    const leads = session !== undefined && world.leads(session) !== undefined;
    if (elector.isLeader() !== leads) this.broke('isLeader() is true', `${!leads}, and it is ${leads}`);
    if ((status.role === 'leader') !== leads) this.broke('a role is true', `${status.role}, leads: ${leads}`);
    const competes = status.role === 'follower' || status.role === 'candidate';
    if (competes && status.waiting === null && status.error === null) this.broke('who does not lead says what it waits for', status.role);
    if (leads && status.leaderId !== status.serverId) this.broke('a leader is named', `${status.leaderId} leads, and it is ${status.serverId}`);
    if (leads && this.kind !== 'locker' && status.term !== world.leads(session)) this.broke('the term of a leader is true', `${status.term}, not ${world.leads(session)}`);
    if ((status.remainingMs > 0) !== leads) this.broke('what remains is true', `${status.remainingMs} ms in status(), leads: ${leads}`);
    if (status.unfenced !== (this.kind === 'locker' ? true : undefined)) this.broke('who has no tokens says so', `${status.unfenced}`);
    const rival = this.many && [...schedule.faces.values()].find((face) => face !== this && face.many);
    this.many?.judge(rival?.many);
    schedule.count(`role ${status.role}`);
  }

  /** What it does until the faults are over. */
  async live() {
    const { chance, schedule, runtime } = this;
    await runtime.sleep(1 + chance.below(chance.pick([1, schedule.leaseMs])));
    while (!schedule.over) {
      if (schedule.healed || !chance.oneIn(3)) await this.lead();
      else {
        await this.start();
        await runtime.sleep(1 + chance.below(4 * schedule.leaseMs));
        if (schedule.over) return;
        if (chance.oneIn(2)) await this.lead();
        else await this.stop();
      }
      await runtime.sleep(1 + chance.below(schedule.leaseMs / 4));
    }
  }

  /** Calls that come from elsewhere meanwhile. */
  async meddle() {
    const { chance, schedule, runtime } = this;
    for (;;) {
      await runtime.sleep(1 + chance.below(6 * schedule.leaseMs));
      if (schedule.healed || schedule.over) return;
      const kind = chance.pick(['resign', 'stop', 'restart', 'restart', 'start', 'configure', 'configure', 'wrong', 'lead', 'wait']);
      this.world.note(`${this.name}: ${kind}`);
      if (kind === 'wait') void this.call('waitForLeadership', () => this.elector.waitForLeadership());
      else void this[kind]();
    }
  }

  /** Ends at once. */
  async close() {
    for (const controller of this.#held.keys()) controller.abort();
    this.many?.close();
    void this.stop({ release: false });
    this.leave();
  }
}

/** One trigger of a slot. */
export class Trigger extends Face {
  constructor(schedule, number, options) {
    super(schedule, `T${number}`, options);
    this.elector = this.newElector();
    this.controller = newCaller(this.caller);
    this.asking = () => this.session;
    this.ended = new Map();
    this.took = new Map();
  }

  async run({ number, slot, options }) {
    const { chance, schedule, runtime } = this;
    this.session = this.world.join(JSON.stringify(this.options), '', undefined, number);
    const { signal } = this.controller;
    if (!schedule.healed && chance.oneIn(10)) {
      runtime.set(() => {
        this.stopped = true;
        this.world.stopped(this.session);
        this.controller.abort(new Error('the caller ends it'));
      }, chance.below(2 * schedule.leaseMs), { own: true });
    }
    let result;
    try {
      result = await this.elector.runScheduled(slot ?? undefined, (term) => this.#job(term), { ...options, signal });
    } catch (error) {
      const known = ['EDGELECT_STORE', 'EDGELECT_SLOT'].includes(error?.code) || error?.message === 'the caller ends it';
      if (!known) this.broke('a call fails by a known error', `runScheduled: ${error?.stack ?? error}`);
      schedule.count('slot rejects');
      this.world.reports(this.session, 'an error', false, new Float64Array());
      return this.world.gone(this.session);
    }
    this.#judge(result);
    schedule.count(`slot ${result.outcome}`);
    const recorded = result.runs.filter((run) => run.recorded).map((run) => run.term);
    this.world.reports(this.session, result.outcome, /lease object is new/.test(result.reason ?? ''), new Float64Array(recorded));
    this.world.gone(this.session);
  }

  #judge(result) {
    for (const run of result.runs) {
      const { outcome, term } = run;
      const ended = this.ended.get(term);
      if (outcome === 'done' && ended !== 'done') this.broke('a slot is done when its job is', `term ${term} is ${ended}`);
      if (('value' in run) !== (outcome === 'done')) this.broke('a value is that of a job that is done', `${outcome}: ${run.value}`);
      if (('error' in run) !== (outcome !== 'done')) this.broke('an error is that of a job that is not done', `${outcome}: ${run.error}`);
      if (outcome === 'failed' && ended !== 'failed') this.broke('a slot has failed when its job has', `term ${term} is ${ended}`);
    }
    if (result.outcome !== 'done' && 'value' in result) this.broke('a value is that of a job that is done', result.outcome);
    this.#judgeShape(result);
  }

  /** What is told has what its type says, and nothing of the package's own. */
  #judgeShape({ leftOut, runs, fault, ...own }) {
    const has = (what, names) => {
      const told = Object.keys(what).sort().join();
      if (told !== [...names].sort().join()) this.broke('a result has what its type says', `${what.outcome}: ${told}`);
    };
    const ran = ({ outcome }) => [...RUN, outcome === 'done' ? 'value' : 'error'];
    for (const run of runs) {
      has(run, ran(run));
      const took = this.took.get(run.term);
      const ended = run.outcome === 'done' || run.outcome === 'failed';
      if (ended && Math.abs(run.durationMs - took) > 1) this.broke('a job took as long as is told', `${run.durationMs} ms, not ${took}`);
    }
    const mirrored = runs.findLast(({ slot }) => slot === own.slot);
    if (mirrored && !isDeepStrictEqual(own, mirrored)) this.broke('the result of a slot is that of its last run', JSON.stringify(own));
    if (!mirrored) has(own, own.outcome === 'taken' ? [...NOT_RUN, 'by', 'finished'] : NOT_RUN);
    if (own.outcome === 'taken' && (own.by !== null && typeof own.by !== 'string' || typeof own.finished !== 'boolean')) {
      this.broke('a result has what its type says', JSON.stringify(own));
    }
    if (!Number.isInteger(leftOut) || (fault !== undefined && fault.code !== 'EDGELECT_STORE')) this.broke('a result has what its type says', `${leftOut}, ${fault}`);
  }

  async #job(term) {
    const { session, world, schedule } = this;
    const { token } = term;
    this.begins(session, term);
    world.job(session, term.slot, token);
    world.works(session, token, true);
    schedule.world.trouble(6 * schedule.leaseMs);
    let told;
    term.signal.addEventListener('abort', () => {
      [, told] = REASON.exec(term.signal.reason.message);
      this.ends(token, told);
    }, { once: true });
    let ended = 'lost';
    const beganMs = performance.now();
    try {
      const value = await this.work(term, session);
      if (world.leads(session) === token || TOLD.includes(told)) ended = 'done';
      return value;
    } catch (error) {
      if (world.leads(session) === token) ended = 'failed';
      throw error;
    } finally {
      this.ended.set(token, ended);
      this.took.set(token, Math.max(0, Math.round(performance.now() - beganMs)));
      world.jobEnded(session, token, ended);
      world.works(session, token, false);
    }
  }

  healedKind = 'short';

  close() {
    this.controller.abort(new Error('the caller ends it'));
  }
}
