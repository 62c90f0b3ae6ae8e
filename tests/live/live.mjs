// Real members on four runtimes, a proxy that fails them one by one, a real store; and the log of what the leaders did.
import path from 'node:path';
import { Elector, S3Storage } from 'edgelect';
import { scripted } from '../../js/demo/fleet.mjs';
import { ProcessMember } from '../../js/demo/process-member.mjs';
import { newFolder, removePath } from '../../js/tools/cleanup.mjs';
import { ROOT, inRoot } from '../../js/tools/paths.mjs';
import { startSeaweed } from '../../js/tools/seaweed.mjs';
import { bucketOf, variablesOf } from '../../js/tools/variables.mjs';
import { findWithin, mustFind, pause } from '../../js/tools/wait.mjs';
import { bundled, inWorkerd } from '../../js/tools/workerd.mjs';
import { check } from './checker.mjs';
import { chance, networkPhases, processPhases } from './plan.mjs';
import { FAULTS, startProxy } from './proxy.mjs';
import { startResource } from './fenced.mjs';
import { COMPLETE_FROM_S, report } from './report.mjs';
import { START_LIMIT_MS, openLog, playThrough } from './run.mjs';

const LEASE_MS = 2_500;
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 500, infrequentInterval: LEASE_MS, follow: 'tight' };
const LOCKFILE_PATH = 'live/leader.json';
const LOG = inRoot('build/live/acts.jsonl');
/** A tick of the Worker, which is woken again half a second later. */
const SUSTAIN_MS = 10_000;
/** One member goes on acting when it should not, so that each run sees how it is refused. */
const HEEDLESS = { name: 'node-2', ms: 2 * LEASE_MS };
/** A pause that doubles up to a lease, a lease that is watched, a few requests; and as much again for a busy machine. */
const HEALED_LEASES = 4;
/** How long a fault that hit nobody is kept up, for everyone. */
const PROLONGED_MS = 4 * LEASE_MS;
/** How often each runtime is brought to lead: left to chance, a Worker would lead once in ten minutes. */
const ROUND_MS = 60_000;
/** How long a run goes on past its end for what has not happened yet, on a machine that is too busy for it. */
const MOST_LATE_MS = 2 * ROUND_MS;
const STORY_LINES = 40;

export const live = async ({ seconds, seed }) => report(await playThrough(new Run({ seconds, seed })));

class Run {
  #seconds;
  #seed;
  #opened = [];
  #store;
  #log;
  #resource;
  #proxy;
  #members = [];
  #lanes = new Map();
  #killed = 0;
  #stopped = 0;
  #held = new Set();
  /** The runtimes that have led in this round. */
  #led = new Set();
  #everLed = new Set();
  /** Acts that were refused although their member had authority when it looked. */
  #zombies = 0;
  #roundMs = Date.now();
  /** The newest accepted act of somebody who had authority. */
  #newest;
  #attempts = { accepted: 0, refused: 0 };
  #overMs = Infinity;
  #startMs;
  #healedMs;
  #story = [];
  /** What ProcessMember tells; what a report says of authority is not judged here, because a stopped member's is old. */
  #rules = { broken: [], acquired() {}, proven() {}, ended() {} };

  constructor({ seconds, seed }) {
    this.#seconds = seconds;
    this.#seed = seed;
  }

  async open() {
    const folder = newFolder('live');
    this.#opened.push(() => removePath(folder));
    const store = this.#store = await this.#kept(startSeaweed(), 'stop');
    const elector = new Elector({ ...TIMING, storage: new S3Storage(bucketOf(store)), lockfilePath: LOCKFILE_PATH });
    await elector.init();
    this.config = elector.config;
    this.#log = await this.#kept(openLog(LOG), 'close');
    this.#resource = await this.#kept(startResource({ tell: this.#log.tell, onAct: (act) => this.#acted(act) }), 'close');
    this.#proxy = await this.#kept(startProxy(store.endpoint, chance(this.#seed, 'requests'), {
      requestTimeoutMs: this.config.requestTimeout, leaseMs: LEASE_MS,
    }), 'close');
    const worker = { name: 'worker', runtime: 'workerd', ...inWorkerd(inRoot('tests/live/workerd.mjs'), await bundled('tests/live/worker.mjs', folder), folder) };
    for (const description of [...scripted(inRoot('tests/live/member.mjs')), worker]) await this.#add(description);
    this.#opened.push(() => this.#members.forEach((member) => member.alive && member.kill()));
    for (const member of this.#members) member.start();
    await this.#allUp();
    await mustFind(START_LIMIT_MS, () => this.#newest, 'a first act');
  }

  async play() {
    this.#startMs = this.#roundMs = Date.now();
    this.#overMs = this.#startMs + this.#seconds * 1_000;
    await Promise.all([this.#failNetwork(), this.#failProcesses()]);
    await this.#heal();
    await Promise.all(this.#members.filter(({ alive }) => alive).map((member) => member.stop()));
  }

  async close() {
    for (const close of this.#opened.splice(0).reverse()) await close();
  }

  now() {
    if (this.#startMs === undefined) return 'starting the store and the members';
    const { accepted, refused } = this.#attempts;
    const network = new Set([...this.#lanes.values()].map(({ fault = 'calm' }) => fault));
    const gone = this.#members.filter((member) => !member.alive || this.#held.has(member)).map(({ name }) => `${name} is away`);
    return [
      this.#over() ? 'healing and stopping' : `${Math.round((Date.now() - this.#startMs) / 1000)} of ${this.#seconds} s`,
      `${this.#newest.member} acted last, with token ${this.#newest.token}`, `network: ${[...network]}`, ...gone, `${accepted} acts, ${refused} refused`,
    ].join('; ');
  }

  outcome(error) {
    const { entries = [] } = this.#log ?? {};
    const result = check(entries);
    const log = JSON.stringify(entries);
    const { secretAccessKey = '(none)' } = this.#store ?? {};
    const masked = (text) => text.replaceAll(secretAccessKey, '[secret]');
    const runtimeOf = new Map(this.#members.map(({ name, runtime }) => [name, runtime]));
    const termsOn = (runtime) => result.terms.filter(({ member }) => runtimeOf.get(member) === runtime).length;
    return {
      error, ...result,
      seconds: this.#seconds, seed: this.#seed, config: this.config, log: path.relative(ROOT, LOG),
      leaked: log.includes(secretAccessKey) || /AWS4-HMAC|Signature=/.test(log),
      repeated: this.#proxy?.repeated,
      fired: { ...this.#proxy?.fired, kill: this.#killed, stop: this.#stopped },
      runtimes: [...new Set(runtimeOf.values())].map((runtime) => ({ runtime, terms: termsOn(runtime) })),
      healedMs: this.#healedMs, healLimitMs: HEALED_LEASES * LEASE_MS,
      broken: this.#rules.broken.map(masked), story: this.#story.map(masked),
      stderr: this.#members.flatMap(({ title, tail }) => tail.map((line) => masked(`${title}: ${line}`))),
    };
  }

  async #kept(starting, close) {
    const started = await starting;
    this.#opened.push(() => started[close]());
    return started;
  }

  async #add({ name, env, ...description }) {
    const lane = await this.#proxy.openLane();
    this.#lanes.set(name, lane);
    const variables = {
      ...variablesOf({ ...this.#store, endpoint: lane.endpoint }, LOCKFILE_PATH, { ...TIMING, sustain: SUSTAIN_MS }),
      LIVE_RESOURCE: this.#resource.url,
      ...(name === HEEDLESS.name && { LIVE_HEEDLESS_MS: String(HEEDLESS.ms) }),
    };
    const say = (text) => {
      this.#story.push(`${new Date().toISOString()} ${text}`);
      if (this.#story.length > STORY_LINES) this.#story.shift();
    };
    this.#members.push(new ProcessMember({ name, ...description, env: { ...variables, ...env }, rules: this.#rules, say }));
  }

  #acted(act) {
    this.#attempts[act.accepted ? 'accepted' : 'refused'] += 1;
    if (!act.accepted && act.remainingMs > 0) this.#zombies += 1;
    if (!act.accepted || act.remainingMs <= 0) return;
    this.#newest = act;
    if (Date.now() > this.#roundMs + ROUND_MS) {
      this.#roundMs = Date.now();
      this.#led.clear();
    }
    const { runtime } = this.#members.find(({ name }) => name === act.member);
    this.#led.add(runtime);
    this.#everLed.add(runtime);
  }

  async #failNetwork() {
    for (const { kind, victims, share, calmMs, lastsMs } of networkPhases(this.#seed, LEASE_MS)) {
      await this.#pause(calmMs);
      if (this.#over()) return;
      const before = this.#proxy.fired[kind];
      const fired = () => this.#proxy.fired[kind] > before;
      const names = [...this.#lanes.keys()];
      const first = Math.floor(share * names.length);
      this.#fail(kind, { leader: [this.#newest.member], everyone: names, some: [...names, ...names].slice(first, first + 3) }[victims]);
      await findWithin(lastsMs, () => {
        // A fault of the leader is one of the next leader too, as long as it lasts.
        const { member } = this.#newest;
        if (victims === 'leader' && this.#lanes.get(member).fault === undefined) this.#fail(kind, [member]);
        return this.#over();
      });
      if (!fired()) this.#fail(kind);
      await findWithin(PROLONGED_MS, () => fired() || this.#over());
      this.#fail(undefined);
    }
  }

  #fail(kind, names = [...this.#lanes.keys()]) {
    this.#note(kind === undefined ? { healed: names } : { kind, on: names });
    for (const name of names) this.#lanes.get(name).fault = kind;
  }

  async #failProcesses() {
    for (const { kind, calmMs, lastsMs } of processPhases(this.#seed, LEASE_MS)) {
      await this.#pause(calmMs);
      await findWithin(Infinity, () => this.#leader() !== undefined || this.#over());
      if (this.#over()) return;
      const leader = this.#leader();
      await (kind === 'kill' ? this.#kill(leader) : this.#hold(leader, lastsMs));
      for (const member of this.#members) if (!member.alive && !this.#makesRoom(member)) member.start();
    }
  }

  #note(about) {
    this.#log.tell({ event: 'fault', atMs: Date.now(), ...about });
  }

  async #kill(leader) {
    const killed = this.#members.filter((member) => member === leader || (member.alive && this.#makesRoom(member)));
    this.#note({ kind: 'kill', on: killed.map(({ name }) => name) });
    for (const member of killed) member.kill();
    this.#killed += killed.length;
    const { token } = this.#newest;
    await findWithin(Infinity, () => this.#newest.token > token || this.#over());
  }

  async #hold(leader, ms) {
    this.#note({ kind: 'stop', on: [leader.name] });
    leader.signal('SIGSTOP');
    this.#held.add(leader);
    const { token } = this.#newest;
    await this.#pause(ms);
    // Somebody else acts before it goes on, so that it goes on as a zombie.
    await findWithin(2 * LEASE_MS, () => this.#newest.token > token || this.#over());
    leader.signal('SIGCONT');
    this.#held.delete(leader);
    this.#stopped += 1;
  }

  /** Whoever runs on what has led is killed with the leader and stays away until each runtime has led: chance alone would leave
   * one out too often. */
  #makesRoom({ runtime }) {
    return this.#led.has(runtime) && this.#members.some((other) => other.alive && !this.#led.has(other.runtime));
  }

  /** Nobody has authority when the last fault ends, so that somebody has to take over. */
  async #heal() {
    for (const member of this.#members) if (!member.alive) member.start();
    await this.#allUp();
    this.#fail('cut');
    await pause(1.5 * LEASE_MS);
    this.#fail(undefined);
    const healedMs = Date.now();
    await findWithin(2 * HEALED_LEASES * LEASE_MS, () => this.#newest.atMs > healedMs);
    if (this.#newest.atMs > healedMs) this.#healedMs = this.#newest.atMs - healedMs;
  }

  #leader() {
    const recent = this.#newest.atMs > Date.now() - LEASE_MS;
    return recent ? this.#members.find(({ name, alive }) => alive && name === this.#newest.member) : undefined;
  }

  #over() {
    const lateMs = Date.now() - this.#overMs;
    return lateMs >= 0 && (this.#complete() || lateMs >= MOST_LATE_MS);
  }

  /** Whether everything has happened that the report wants to have seen. */
  #complete() {
    if (this.#seconds < COMPLETE_FROM_S) return true;
    const fired = Object.keys(FAULTS).every((kind) => this.#proxy.fired[kind] > 0);
    const led = this.#members.every(({ runtime }) => this.#everLed.has(runtime));
    return fired && led && this.#killed > 0 && this.#stopped > 0 && this.#zombies > 0;
  }

  #allUp() {
    return mustFind(START_LIMIT_MS, () => this.#members.every(({ role }) => role !== 'starting'), 'every member to be up');
  }

  #pause(ms) {
    return findWithin(ms, () => this.#over());
  }
}
