// A thousand cron slots over three deployed Workers and two Node members, a proxy that fails them, a real store; and what became
// of each slot.
import { AwsClient } from 'aws4fetch';
import { Elector, S3Storage } from 'edgelect';
import { ProcessMember } from '../../js/demo/process-member.mjs';
import { newFolder, removePath } from '../../js/tools/cleanup.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError, seconds as inSeconds } from '../../js/tools/run.mjs';
import { startSeaweed } from '../../js/tools/seaweed.mjs';
import { bucketOf, variablesOf } from '../../js/tools/variables.mjs';
import { findWithin, mustFind, pause } from '../../js/tools/wait.mjs';
import { bundled, inWorkerd } from '../../js/tools/workerd.mjs';
import { chance } from './plan.mjs';
import { startProxy } from './proxy.mjs';
import { START_LIMIT_MS, openLog, playThrough } from './run.mjs';
import { checkSlots } from './slots-checker.mjs';
import { startEndpoint } from './fenced.mjs';
import { MEMBERS, fates, jobOf, requestFaults, triggersOf, weather } from './slots-plan.mjs';
import { reportSlots } from './slots-report.mjs';

const POLICIES = ['atMostOnce', 'atLeastOnce'];
const LEASE_MS = 1_500;
const JOB_TIMEOUT_MS = 2_500;
const ATTEMPTS = 4;
const PERIOD_MS = 60_000;
/** Slots are labels: these lie in the past, so that none has to be waited for. */
const FIRST_MS = Date.UTC(2026, 0, 1);
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 250, storeSkew: 500 };
const SCHEDULE = { jobTimeout: JOB_TIMEOUT_MS, period: PERIOD_MS, missed: 'all', attempts: ATTEMPTS, budget: 6_000 };
/** One trigger makes up for at most 100 missed slots; the members are waited for long before. */
const MOST_BEHIND = 40;
const MOST_WAITING = 60;
const BEHIND_LIMIT_MS = 60_000;
/** What the last slot takes once nothing fails any more, and the last trigger. */
const HEALED_LIMIT_MS = 20 * LEASE_MS;
const TOLD_LIMIT_MS = 40_000;
const PROGRESS_MS = 2_000;

export async function slots({ slots: count, seed }) {
  const folder = newFolder('slots');
  const store = await startSeaweed();
  const outcomes = [];
  try {
    // The deployed Worker, as `wrangler deploy` bundles it.
    const worker = inWorkerd(inRoot('tests/live/slots-workerd.mjs'), await bundled('js/worker.js', folder), folder);
    for (const policy of POLICIES) outcomes.push(await playThrough(new Leg({ store, worker, policy, count, seed }), PROGRESS_MS));
  } finally {
    await store.stop();
    removePath(folder);
  }
  return reportSlots(outcomes, { slots: count, seed });
}

/** A member as its starter sees it: a process that takes triggers and reports them. */
class SlotMember extends ProcessMember {
  isStopped = false;
  /** The triggers that it has not reported. */
  waiting = new Set();

  /** `hear(message)` gets what it says, `broke(sentence)` what it should not have. */
  constructor(description, { hear, broke }) {
    const onMessage = (message) => {
      if (message.event === 'report') this.waiting.delete(message.id);
      hear(message);
    };
    const rules = { broken: { push: broke }, ended() {} };
    // How it ended is told already.
    super({ ...description, runtime: 'slots', rules, say: (text) => this.error ?? broke(text), onMessage });
  }

  /** Whether it can be reached, stopped or not. */
  get isUp() {
    return this.alive && this.role !== 'starting';
  }

  send(trigger) {
    this.waiting.add(trigger.id);
    this.tell(JSON.stringify(trigger));
  }

  /** SIGKILL: no handler runs, nothing is released. Returns the triggers that end with it. */
  kill() {
    this.isStopped = false;
    if (this.alive) super.kill();
    return [...this.waiting].filter((id) => this.waiting.delete(id));
  }

  hold(isStopped) {
    this.isStopped = isStopped;
    this.signal(isStopped ? 'SIGSTOP' : 'SIGCONT');
  }
}

/** One group under one policy. */
class Leg {
  #how;
  #seed;
  #group;
  #file;
  #log;
  #broken = [];
  #endpoint;
  #proxy;
  #members = new Map();
  #lanes = new Map();
  /** What happens at the next fitting moment. */
  #armed = [];
  #happened = {};
  /** Restarts and stops under way, which are waited for at the end. */
  #going = new Set();
  #share = 0;
  #trigger = 0;
  #due = 0;
  #late = [];
  #terms = new Set();
  #newest = { slot: 0, released: true };
  #startMs = Date.now();
  #tookMs;
  #closed = false;

  /** `{ store, worker, policy, count, seed }`. */
  constructor(how) {
    this.#how = how;
    this.#seed = `${how.seed} ${how.policy}`;
    this.#group = `slots/${how.policy}.json`;
    this.#file = inRoot(`build/live/slots-${how.policy}.jsonl`);
  }

  async open() {
    this.#log = openLog(this.#file);
    const config = await this.#begin();
    this.#proxy = startProxy(this.#how.store.endpoint, chance(this.#seed, 'proxy'), { requestTimeoutMs: config.requestTimeout, leaseMs: LEASE_MS });
    this.#endpoint = await startEndpoint({
      group: this.#group,
      jobOf: (slotMs, call) => jobOf(this.#seed, indexOf(slotMs), call, { leaseMs: LEASE_MS, timeoutMs: JOB_TIMEOUT_MS }),
      tell: (entry) => {
        this.#log.tell({ ...entry, slot: indexOf(entry.slot) });
        if (entry.event === 'begin' && entry.accepted) this.#moment('begin', entry.member);
      },
    });
    for (const name of MEMBERS) await this.#add(name);
    for (const member of this.#members.values()) member.start();
    await this.#allUp();
  }

  async play() {
    this.#startMs = Date.now();
    await this.#convey();
    await this.#heal();
    this.#tookMs = Date.now() - this.#startMs;
  }

  async close() {
    this.#closed = true;
    for (const member of this.#members.values()) member.kill();
    await this.#endpoint?.close();
    await this.#proxy?.close();
    this.#log?.close();
  }

  now() {
    const waiting = this.#waiting();
    const { kill = 0, stop = 0 } = this.#happened;
    const slotsNow = `${String(this.#newest.slot).padStart(4)} of ${this.#how.count} slots claimed, ${this.#due} due`;
    return `${this.#how.policy}: ${slotsNow}, ${waiting} triggers under way, ${kill} kills, ${stop} stops, ${inSeconds(Date.now() - this.#startMs)}`;
  }

  outcome(error) {
    const { entries = [] } = this.#log ?? {};
    const checked = checkSlots(entries, { policy: this.#how.policy, attempts: ATTEMPTS, last: this.#how.count });
    return {
      policy: this.#how.policy, error, broken: this.#broken, entries, file: this.#file, tookMs: this.#tookMs,
      happened: this.#happened, fired: this.#proxy?.fired ?? {}, repeated: this.#proxy?.repeated, ...checked,
    };
  }

  /** A new group whose slots up to the first one are done. */
  async #begin() {
    const { endpoint, bucket, accessKeyId, secretAccessKey } = this.#how.store;
    const elector = new Elector({ ...TIMING, storage: new S3Storage(bucketOf(this.#how.store)), lockfilePath: this.#group });
    await elector.init();
    const client = new AwsClient({ accessKeyId, secretAccessKey, service: 's3', region: 'us-east-1', retries: 0 });
    const url = `${endpoint}/${bucket}/${this.#group}`;
    const record = { ...(await (await client.fetch(url)).json()), slot: FIRST_MS, slotDone: true, acquired: '2026-11-21T06:00:00Z' };
    const answer = await client.fetch(url, { method: 'PUT', body: JSON.stringify(record) });
    if (!answer.ok) throw new PlainError(`the store answered ${answer.status} to the first record`);
    this.#log.tell({ event: 'write', member: 'init', session: '', term: record.term, slot: 0, done: true, released: true, etag: answer.headers.get('etag') });
    return elector.config;
  }

  async #add(name) {
    const lane = await this.#proxy.openLane({ onLanded: (write) => this.#landed(name, write) });
    const draws = requestFaults(this.#seed, name);
    lane.fault = (method) => draws.next().value(method, this.#share);
    this.#lanes.set(name, { lane, fault: lane.fault });
    const settings = { ...TIMING, ...SCHEDULE, serverId: name, policy: this.#how.policy, jobUrl: this.#endpoint.url };
    const node = { command: process.execPath, args: [inRoot('tests/live/slots-member.mjs')] };
    const { env, ...description } = name.startsWith('worker') ? this.#how.worker : node;
    const variables = { ...variablesOf({ ...this.#how.store, endpoint: lane.endpoint }, this.#group, settings), ...env };
    const hear = (message) => this.#heard(name, message);
    this.#members.set(name, new SlotMember({ name, ...description, env: variables }, { hear, broke: (sentence) => this.#broken.push(sentence) }));
  }

  #heard(member, { event, atMs, id, slot, outcome, reason, runs }) {
    if (event === 'look') return this.#moment('look', member);
    if (event !== 'report') return;
    const told = runs.map((run) => ({ ...run, slot: indexOf(run.slot) }));
    this.#log.tell({ event, id, member, slot: indexOf(slot), outcome, reason, runs: told, atMs });
  }

  /** A record that the store has taken; its sender does not know yet. */
  #landed(name, { url, condition, body, etag, sentMs }) {
    if (!url.endsWith(this.#group)) return;
    const { leaderID, session, term, sequence, slot, slotDone, slotFailures, slotResult, lastUpdated } = JSON.parse(body);
    const released = lastUpdated.startsWith('0001-');
    const write = {
      event: 'write', member: leaderID, session, term, sequence, slot: indexOf(slot), done: slotDone, failures: slotFailures,
      result: slotResult, released, condition, etag, sentMs, atMs: Date.now(),
    };
    this.#log.tell(write);
    this.#newest = write;
    const isClaim = !this.#terms.has(term);
    this.#terms.add(term);
    if (released || isClaim) this.#moment(released ? 'close' : 'claim', name);
  }

  /** Does what is to happen at such a moment, as long as somebody else lives on. */
  #moment(at, name) {
    const index = this.#armed.findIndex((fate) => fate.at === at);
    const others = [...this.#members.values()].filter((member) => member.name !== name && member.isUp && !member.isStopped);
    const member = this.#members.get(name);
    if (index === -1 || others.length < 2 || !member.isUp || member.isStopped) return;
    const [{ kind, share }] = this.#armed.splice(index, 1);
    this.#happened[kind] = (this.#happened[kind] ?? 0) + 1;
    this.#happened[`${kind} ${at}`] = (this.#happened[`${kind} ${at}`] ?? 0) + 1;
    this.#meanwhile(kind === 'kill' ? this.#kill(member, at, share) : this.#hold(member, at, share));
  }

  /** Waited for at the end; what goes wrong there fails the run. */
  #meanwhile(work) {
    const going = work.catch(({ message }) => this.#broken.push(message)).finally(() => this.#going.delete(going));
    this.#going.add(going);
  }

  async #kill(member, at, share) {
    const ended = member.kill();
    this.#log.tell({ event: 'fault', kind: 'kill', at, on: member.name, slot: this.#newest.slot, ended, atMs: Date.now() });
    await pause((0.3 + share) * LEASE_MS);
    if (this.#closed) return;
    member.start();
    await this.#within(START_LIMIT_MS, () => member.isUp, `${member.name} to be up again`);
  }

  async #hold(member, at, share) {
    const { term } = this.#newest;
    member.hold(true);
    this.#log.tell({ event: 'fault', kind: 'stop', at, on: member.name, slot: this.#newest.slot, atMs: Date.now() });
    await pause((1.3 + 0.7 * share) * LEASE_MS);
    // Somebody else is called before it goes on, so that it goes on as a zombie.
    await findWithin(2 * LEASE_MS, () => this.#endpoint.tokens.highest > term);
    if (this.#closed) return;
    member.hold(false);
    this.#log.tell({ event: 'fault', kind: 'go on', on: member.name, slot: this.#newest.slot, atMs: Date.now() });
  }

  /** Makes one slot after the other due. */
  async #convey() {
    const fate = fates(this.#seed);
    const sky = weather(this.#seed);
    let [fateAt, skyAt] = [0, 0];
    for (this.#due = 1; this.#due <= this.#how.count; this.#due += 1) {
      const slot = this.#due;
      if (slot >= fateAt) {
        const next = fate.next().value;
        this.#armed.push(next);
        fateAt = slot + next.slots;
      }
      if (slot >= skyAt) skyAt = slot + this.#turn(sky.next().value);
      const { haste, patienceMs, triggers } = triggersOf(this.#seed, slot);
      this.#late.push(...triggers.map((trigger) => ({ ...trigger, slot, at: slot + trigger.late })));
      const now = this.#late.filter(({ at }) => at <= slot);
      this.#late = this.#late.filter(({ at }) => at > slot);
      for (const trigger of now) setTimeout(() => this.#fire(trigger), trigger.afterMs);
      const isReady = ({ slot: newest, released }) => newest > slot || (newest === slot && (haste === 'begun' || released));
      await findWithin(patienceMs, () => haste === 'now' || isReady(this.#newest));
      await this.#within(BEHIND_LIMIT_MS, () => this.#waiting() < MOST_WAITING && this.#newest.slot > slot - MOST_BEHIND, 'the members to keep up');
    }
    this.#due = this.#how.count;
    for (const trigger of this.#late.splice(0)) this.#fire(trigger);
  }

  /** A cron fires nothing at a member that is dead. */
  #fire({ member: name, slot }) {
    const member = this.#members.get(name);
    if (!member.isUp) return;
    const id = (this.#trigger += 1);
    this.#log.tell({ event: 'trigger', id, member: name, slot, atMs: Date.now() });
    member.send({ id, slot: slotMs(slot) });
  }

  /** Another weather; gives for how many slots. */
  #turn({ kind, slots: count, share, ms }) {
    this.#share = kind === 'bad' ? share : 0;
    this.#log.tell({ event: 'fault', kind, share: this.#share, slot: this.#due, atMs: Date.now() });
    if (kind !== 'out') return count;
    for (const { lane } of this.#lanes.values()) lane.fault = 'cut';
    const reconnect = () => this.#lanes.forEach(({ lane, fault }) => (lane.fault = fault));
    this.#meanwhile(pause(ms).then(reconnect));
    return 1;
  }

  /** Nothing fails any more: the last slot comes to its end, and every trigger is reported. */
  async #heal() {
    this.#armed = [];
    this.#share = 0;
    await Promise.all(this.#going);
    await this.#allUp();
    this.#log.tell({ event: 'fault', kind: 'healed', slot: this.#due, atMs: Date.now() });
    const endMs = Date.now() + HEALED_LIMIT_MS;
    for (let turn = 0; !this.#isSettled() && Date.now() < endMs; turn += 1) {
      this.#fire({ member: MEMBERS[turn % MEMBERS.length], slot: this.#how.count });
      await findWithin(LEASE_MS / 2, () => this.#isSettled());
    }
    await findWithin(TOLD_LIMIT_MS, () => this.#waiting() === 0);
  }

  #isSettled() {
    const { slot, done, released, failures = 0 } = this.#newest;
    return slot === this.#how.count && released && (done || this.#how.policy === 'atMostOnce' || failures >= ATTEMPTS);
  }

  #waiting() {
    return [...this.#members.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  }

  #allUp() {
    return this.#within(START_LIMIT_MS, () => [...this.#members.values()].every(({ isUp }) => isUp), 'every member to be up');
  }

  #within(limitMs, holds, what) {
    return mustFind(limitMs, holds, what, { broken: this.#broken });
  }
}

const slotMs = (index) => FIRST_MS + index * PERIOD_MS;
const indexOf = (ms) => (ms - FIRST_MS) / PERIOD_MS;
