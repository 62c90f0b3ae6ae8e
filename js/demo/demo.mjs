// The main job, shown: three Node members and the Worker elect one leader over a real store, and it keeps failing.
import { Elector, S3Storage } from 'edgelect';
import { handleSignals } from '../tools/cleanup.mjs';
import { PlainError } from '../tools/run.mjs';
import { startSeaweed } from '../tools/seaweed.mjs';
import { NodeMember } from './node-member.mjs';
import { Rules } from './rules.mjs';
import { Screen } from './screen.mjs';
import { WorkerMember } from './worker-member.mjs';

const LEASE_MS = 6_000;
const SUSTAIN_MS = 50_000;
const LOOK_MS = 50;
const PAUSE_MS = 5_000;
// A tick must last for the hand-overs that the story still has to show in it.
const TICK_NEEDED_MS = 15_000;
const STEP_LIMIT_MS = 90_000;
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 2_000, infrequentInterval: 12_000, follow: 'tight' };
const LOCKFILE_PATH = 'demo/leader.json';

/** Runs the demo and resolves to the exit code. */
export async function demo({ once }) {
  const rules = new Rules({ failoverLimitMs: 2 * LEASE_MS });
  const screen = new Screen({ title: 'edgelect: one leader among three Node processes and a Worker, over SeaweedFS' });
  const show = new Show({ rules, screen });
  const ended = new Promise((resolve) => handleSignals(() => {
    handleSignals(() => process.exit(1));
    resolve('signal');
  }));
  try {
    await Promise.race([show.play({ once }), ended]);
  } catch (error) {
    if (!(error instanceof PlainError)) throw error;
    rules.broken.push(error.message);
  } finally {
    await show.stop();
  }
  return summary(rules, show, once);
}

function summary(rules, show, once) {
  const workerTerms = rules.acquisitions.filter(({ member }) => member === show.worker.name).length;
  if (once && workerTerms === 0) rules.broken.push('the Worker never led');
  for (const sentence of rules.broken) console.log(`BROKEN: ${sentence}`);
  if (rules.broken.length > 0) return 1;
  const took = show.failovers.map(({ what, tookMs }) => `${what} ${(tookMs / 1000).toFixed(1)} s`).join(', ');
  console.log(`Terms: ${rules.acquisitions.length}, of them the Worker's: ${workerTerms}. Tokens only grew, and never did two members have authority.`);
  if (took !== '') console.log(`Leadership passed on after ${took}.`);
  return 0;
}

class Show {
  failovers = [];
  #store;

  constructor({ rules, screen }) {
    this.rules = rules;
    this.screen = screen;
    this.say = screen.say;
    this.nodes = [];
    this.worker = { name: 'worker' };
  }

  async play({ once }) {
    await this.#open();
    await this.#until(() => this.#nodeLeader(), 'a first leader');
    await this.#pause();
    const killed = await this.#crash();
    await this.#pause();
    this.say(`${killed.name} is started again`);
    killed.start();
    await this.#until(() => killed.role !== 'starting', `${killed.name} to be back`);
    await this.#resignation();
    await this.#pause();
    await this.#workerAlone();
    if (once) return;
    this.say('that was the tour; the Node members come back, and it goes on until Ctrl-C');
    for (const node of this.nodes) node.start();
    await new Promise(() => {});
  }

  async stop() {
    this.screen.end();
    const nodes = this.nodes.filter(({ alive }) => alive).map((node) => node.kill());
    await Promise.all([...nodes, this.worker.stop?.()]);
    await this.#store?.stop();
  }

  async #open() {
    this.#store = await startSeaweed();
    const { endpoint, bucket, accessKeyId, secretAccessKey } = this.#store;
    await new Elector({
      ...TIMING,
      storage: new S3Storage({ endpoint, bucket, region: 'us-east-1', credentials: { accessKeyId, secretAccessKey }, pathStyle: true }),
      lockfilePath: LOCKFILE_PATH,
    }).init();
    this.say(`SeaweedFS on ${endpoint}, a new group at ${LOCKFILE_PATH}`);
    const env = {
      EDGELECT_ENDPOINT: endpoint,
      EDGELECT_BUCKET: bucket,
      EDGELECT_REGION: 'us-east-1',
      EDGELECT_ACCESS_KEY_ID: accessKeyId,
      EDGELECT_SECRET_ACCESS_KEY: secretAccessKey,
      EDGELECT_PATH_STYLE: 'true',
      EDGELECT_LOCKFILE_PATH: LOCKFILE_PATH,
      EDGELECT_LEADER_TIMEOUT: String(TIMING.leaderTimeout),
      EDGELECT_FREQUENT_INTERVAL: String(TIMING.frequentInterval),
      EDGELECT_INFREQUENT_INTERVAL: String(TIMING.infrequentInterval),
      EDGELECT_FOLLOW: TIMING.follow,
    };
    const { rules, say } = this;
    this.nodes = ['node-1', 'node-2', 'node-3'].map((name) => new NodeMember({ name, env, rules, say }));
    this.worker = new WorkerMember({ env: { ...env, EDGELECT_SUSTAIN: String(SUSTAIN_MS) }, rules, say });
    this.screen.start([...this.nodes, this.worker]);
    for (const node of this.nodes) node.start();
    await this.worker.start();
  }

  async #crash() {
    const leader = await this.#until(() => this.#nodeLeader(), 'a Node member to lead');
    const atMs = leader.kill();
    this.say(`${leader.name} is killed with SIGKILL while it leads`);
    await this.#passesOn('the crash', atMs);
    return leader;
  }

  async #resignation() {
    const leader = await this.#until(() => this.#nodeLeader(), 'a Node member to lead');
    const atMs = Date.now();
    leader.resign();
    this.say(`${leader.name} resigns`);
    await this.#passesOn('the resignation', atMs);
  }

  // With every Node member stopped, only the Worker is left to lead, and its lease waits parked between two ticks.
  async #workerAlone() {
    await this.#until(() => this.#tickLeftMs() > TICK_NEEDED_MS, 'a tick of the Worker');
    for (let left = this.nodes.length; left > 0; left -= 1) {
      const leader = await this.#until(() => this.#nodeLeader() ?? (this.worker.leads && this.nodes.find(({ alive }) => alive)), 'a leader');
      const led = leader.leads;
      const atMs = Date.now();
      this.say(`${leader.name} stops`);
      await leader.stop();
      if (led && this.#tickLeftMs() > 0) await this.#passesOn('a stop', atMs);
    }
    await this.#until(() => this.worker.leads, 'the Worker to lead');
    const { term } = this.worker;
    this.say(`the Worker leads with term ${term}`);
    await this.#until(() => this.worker.tickStartMs === undefined, "the Worker's tick to end");
    await this.#until(() => this.worker.leads && this.worker.term > term, 'the next tick to take the parked lease over');
    this.say(`the next tick took its lease over within ${Date.now() - this.worker.tickStartMs} ms, with term ${this.worker.term}`);
  }

  #nodeLeader() {
    return this.nodes.find(({ leads }) => leads);
  }

  #tickLeftMs() {
    return this.worker.tickStartMs === undefined ? 0 : this.worker.tickStartMs + SUSTAIN_MS - Date.now();
  }

  async #passesOn(what, sinceMs) {
    const next = await this.#until(() => this.rules.acquisitions.find(({ atMs }) => atMs > sinceMs), `a new leader after ${what}`);
    const tookMs = next.atMs - sinceMs;
    this.failovers.push({ what, tookMs });
    this.rules.failover(what, tookMs);
    this.say(`${next.member} took over ${(tookMs / 1000).toFixed(1)} s after ${what}, with term ${next.term}`);
  }

  #pause() {
    return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  async #until(condition, what) {
    const deadlineMs = Date.now() + STEP_LIMIT_MS;
    while (Date.now() < deadlineMs) {
      const found = condition();
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    throw new PlainError(`waited ${STEP_LIMIT_MS / 1000} s for ${what}`);
  }
}
