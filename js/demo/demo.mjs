// The main job, shown: members on five runtimes elect one leader over a real store, and it keeps failing.
import { Elector, S3Storage } from 'edgelect';
import { handleSignals } from '../tools/cleanup.mjs';
import { PlainError, showOn } from '../tools/run.mjs';
import { bucketOf, variablesOf } from '../tools/variables.mjs';
import { mustFind, pause } from '../tools/wait.mjs';
import { fleet } from './fleet.mjs';
import { ProcessMember } from './process-member.mjs';
import { Rules } from './rules.mjs';
import { Screen } from './screen.mjs';
import { WorkerMember } from './worker-member.mjs';

const LEASE_MS = 5_000;
const SUSTAIN_MS = 50_000;
const LOOK_MS = 50;
const PAUSE_MS = 2_000;
const STEP_LIMIT_MS = 90_000;
const TAKEOVER_LIMIT_MS = 20_000;
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 1_000, infrequentInterval: 10_000, follow: 'tight' };
const LOCKFILE_PATH = 'demo/leader.json';

/** Runs the demo and resolves to the exit code. `store` resolves to a store that has been started, `native` and `worker`
 * when those members have been built; the others begin without them. */
export async function demo({ once, store, native, worker }) {
  const rules = new Rules({ failoverLimitMs: 2 * LEASE_MS });
  const screen = new Screen({ title: 'edgelect: Node, Deno, Bun, Rust and a Worker elect one leader over SeaweedFS' });
  showOn(screen);
  const show = new Show({ rules, screen });
  let interrupted = false;
  const ended = new Promise((resolve) => handleSignals(() => {
    handleSignals(() => process.exit(1));
    interrupted = true;
    resolve();
  }));
  try {
    await Promise.race([show.play({ once, store, worker, descriptions: fleet({ native }) }), ended]);
  } catch (error) {
    if (!(error instanceof PlainError)) throw error;
    rules.broken.push(error.message);
  } finally {
    await show.stop();
  }
  if (once && interrupted) rules.broken.push('it was ended before the tour was over');
  else if (once) rules.everyRuntimeLed(show.members);
  return summary(rules, show, once);
}

function summary(rules, show, once) {
  for (const sentence of rules.broken) console.log(`BROKEN: ${sentence}`);
  if (rules.broken.length > 0) return 1;
  const count = (runtime) => rules.acquisitions.filter(({ member }) => show.runtimeOf(member) === runtime).length;
  const terms = [...new Set(show.members.map(({ runtime }) => runtime))].map((runtime) => `${count(runtime)} on ${runtime}`);
  const took = show.failovers.map(({ what, tookMs }) => `${what} ${(tookMs / 1000).toFixed(1)} s`).join(', ');
  console.log(`Terms: ${terms.join(', ')}.`);
  console.log(`${once ? 'Every runtime led, tokens' : 'Tokens'} only grew, and never did two members have authority.`);
  if (took !== '') console.log(`Leadership passed on after ${took}.`);
  return 0;
}

class Show {
  failovers = [];
  #store;
  #joined;
  #workerReady;

  constructor({ rules, screen }) {
    this.rules = rules;
    this.screen = screen;
    this.say = screen.say;
    this.processes = [];
    this.worker = undefined;
  }

  get members() {
    return this.worker === undefined ? this.processes : [...this.processes, this.worker];
  }

  runtimeOf(name) {
    return this.members.find((member) => member.name === name).runtime;
  }

  async play({ once, ...given }) {
    await this.#open(given);
    await this.#until(() => this.#leader(), 'a first leader');
    this.#workerReady = this.worker.start();
    // It is waited for when its turn comes.
    this.#workerReady.catch(() => {});
    await this.#until(() => this.processes.every(({ role }) => role !== 'starting'), 'every process to be up');
    await pause(PAUSE_MS);
    const killed = await this.#crash();
    await pause(PAUSE_MS);
    this.say(`${killed.title} is started again`);
    killed.start();
    await this.#until(() => killed.role !== 'starting', `${killed.title} to be back`);
    await this.#resignation();
    // What is still being compiled says on the screen how far it is.
    await this.#joined;
    await this.#until(() => this.processes.every(({ role }) => role !== 'starting'), 'every process to be up');
    await this.#turns();
    await this.#workerAlone();
    if (once) return;
    this.say('that was the tour; the others come back, and it goes on until Ctrl-C');
    for (const member of this.processes) member.start();
    await new Promise(() => {});
  }

  async stop() {
    this.screen.end();
    for (const member of this.processes) if (member.alive) member.kill();
    await this.worker?.stop();
    await this.#store?.stop();
  }

  async #open({ store, worker, descriptions }) {
    this.screen.draw();
    this.#store = await store;
    const { endpoint } = this.#store;
    await new Elector({ ...TIMING, storage: new S3Storage(bucketOf(this.#store)), lockfilePath: LOCKFILE_PATH }).init();
    this.say(`SeaweedFS on ${endpoint}, a new group at ${LOCKFILE_PATH}`);
    const env = variablesOf(this.#store, LOCKFILE_PATH, TIMING);
    const { rules, say } = this;
    this.processes = descriptions.map((member) => new ProcessMember({ ...member, env: { ...env, ...member.env }, rules, say }));
    // Renewals each second are more than Cloudflare's free plan allows; here nobody counts them.
    const workerEnv = { ...env, EDGELECT_SUSTAIN: String(SUSTAIN_MS), EDGELECT_SUBREQUESTS: '1000' };
    this.worker = new WorkerMember({ env: workerEnv, ready: worker, rules, say });
    this.screen.start(this.members);
    this.#joined = Promise.all(this.processes.map((member) => this.#join(member)));
    this.#joined.catch(() => {});
  }

  async #join(member) {
    await member.ready;
    member.start();
  }

  async #crash() {
    const leader = await this.#until(() => this.#leader(), 'a process to lead');
    const atMs = leader.kill();
    this.say(`${leader.title} is killed with SIGKILL while it leads`);
    await this.#passesOn('the crash', atMs);
    return leader;
  }

  async #resignation() {
    const leader = await this.#until(() => this.#leader(), 'a process to lead');
    const atMs = Date.now();
    leader.resign();
    this.say(`${leader.title} resigns`);
    await this.#passesOn('the resignation', atMs);
  }

  // Whoever has led makes room, so that the next leader is one whose runtime has not: until one process is left.
  async #turns() {
    for (;;) {
      const leader = await this.#until(() => this.#leader(), 'a process to lead');
      const others = this.processes.filter((member) => member.alive && member !== leader);
      await Promise.all(others.filter((member) => this.#hasLed(member)).map((member) => this.#stop(member)));
      await pause(PAUSE_MS);
      // On a slow machine the lease may have changed hands meanwhile.
      if (!leader.leads) continue;
      if (!others.some(({ alive }) => alive)) return;
      await this.#stopLeader(leader);
    }
  }

  // With every process stopped, only the Worker is left to lead, and its lease waits parked between two ticks.
  async #workerAlone() {
    const leader = await this.#until(() => this.#leader(), 'a process to lead');
    await this.#workerReady;
    this.worker.wake();
    await this.#until(() => this.worker.role === 'follower', 'the Worker to follow');
    await this.#stopLeader(leader);
    await this.#until(() => this.worker.leads, 'the Worker to lead');
    const { term } = this.worker;
    await this.#until(() => this.worker.tickStartMs === undefined, "the Worker's tick to end");
    await this.#until(() => this.worker.leads && this.worker.term > term, 'the next tick to take the parked lease over');
    this.say(`the next tick took its lease over within ${Date.now() - this.worker.tickStartMs} ms, with term ${this.worker.term}`);
  }

  async #stopLeader(leader) {
    const atMs = Date.now();
    await this.#stop(leader);
    await this.#passesOn('a stop', atMs);
  }

  #stop(member) {
    this.say(`${member.title} stops`);
    return member.stop();
  }

  #leader() {
    return this.processes.find(({ leads }) => leads);
  }

  #hasLed({ runtime }) {
    return this.rules.hasLed(runtime, this.members);
  }

  async #passesOn(what, sinceMs) {
    const left = this.members.filter(({ alive }) => alive).map(({ title }) => title).join(' or ');
    const found = () => this.rules.acquisitions.find(({ atMs }) => atMs > sinceMs);
    const next = await this.#until(found, `${left} to take over after ${what}`, TAKEOVER_LIMIT_MS);
    const tookMs = next.atMs - sinceMs;
    this.failovers.push({ what, tookMs });
    this.rules.failover(what, tookMs);
    const { title } = this.members.find(({ name }) => name === next.member);
    this.say(`${title} took over ${(tookMs / 1000).toFixed(1)} s after ${what}, with term ${next.term}`);
  }

  #until(condition, what, limitMs = STEP_LIMIT_MS) {
    return mustFind(limitMs, condition, what, { lookMs: LOOK_MS });
  }
}
