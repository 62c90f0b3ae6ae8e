// A fleet of one group on one store: many members in each of a few processes on several runtimes, with peers that hold questions,
// through crashes and resignations of its leaders.
//
// Every process notes by the wall clock of this machine, which must not step meanwhile.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { compileNative, fleet, scripted } from '../demo/fleet.mjs';
import { build } from '../tools/build.mjs';
import { endProcess, spawnKept } from '../tools/cleanup.mjs';
import { SEAWEED_VERSION } from '../tools/paths.mjs';
import { PlainError, ask, lineReader, step } from '../tools/run.mjs';
import { bucketOf, variablesOf } from '../tools/variables.mjs';
import { bundled, inWorkerd } from '../tools/workerd.mjs';
import { line, median, sleep, versionOf, watchCpu } from './figure.mjs';
import { newGroup, startCounter, withStore } from './store.mjs';

const MEMBER = fileURLToPath(new URL('fleet-member.mjs', import.meta.url));
const WORKER = fileURLToPath(new URL('fleet-workerd.mjs', import.meta.url));
const LONG = {
  timing: { leaderTimeout: 6_000, frequentInterval: 2_000, infrequentInterval: 6_000, peerTimeout: 2_000 },
  scripts: 2, each: 48, natives: 6, workers: 8, leases: 10, failovers: 10,
};
const SHORT = {
  timing: { leaderTimeout: 3_000, frequentInterval: 750, infrequentInterval: 3_000, peerTimeout: 1_000 },
  scripts: 1, each: 9, natives: 0, workers: 4, leases: 2, failovers: 2,
};
// Nothing is measured while processes start.
const START_LIMIT_MS = 90_000;
const LOOK_LIMIT_MS = 10_000;
const LOOK_MS = 200;
// Claims and their answers are over by then, and the next leader has not renewed yet.
const CLAIMS_MS = 500;
const MAX_STEP_MS = 20;
const MB = 1 << 20;

/** Measures one fleet: a while in which nothing happens, and then crashes and resignations by turns. */
export async function measure({ quick }) {
  const length = quick ? SHORT : LONG;
  await build(['npm']);
  if (length.natives > 0) await compileNative();
  return withStore(async (store) => {
    const [cpuBusy, stepped] = [watchCpu(), watchWallClock()];
    const blocked = monitorEventLoopDelay({ resolution: 5 });
    blocked.enable();
    const counter = await startCounter(store);
    const folder = mkdtempSync(path.join(tmpdir(), 'edgelect-fleet-'));
    const worker = { runtime: `workerd ${versionOf('workerd')}`, ...inWorkerd(WORKER, await bundled('js/figures/fleet-worker.js', folder), folder) };
    const group = new Group(counter, { ...store, endpoint: counter.endpoint }, await newGroup(store, 'fleet'), { ...length, worker });
    try {
      await step(`Starting ${group.size} members`, () => group.start());
      const calm = await step(`Counting requests over ${length.leases} leases`, () => group.rest());
      const ends = [];
      for (let round = 0; round < length.failovers; round += 1) {
        const way = round % 2 === 0 ? 'resignation' : 'crash';
        ends.push(await step(`Failover ${round + 1} of ${length.failovers}: ${way}`, () => group.failOver(way)));
      }
      if (stepped()) throw new PlainError('the wall clock of this machine stepped meanwhile, so nothing can be said of times');
      const extra = { SeaweedFS: SEAWEED_VERSION, 'CPU busy': `${Math.round(cpuBusy() * 100)} %` };
      return { ...report(group, calm, ends, { ...length, quick, blocked }), extra };
    } finally {
      blocked.disable();
      await group.end();
      await counter.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** Whether the wall clock has moved apart from the monotonic one. */
function watchWallClock() {
  const apart = () => Date.now() - performance.now();
  const before = apart();
  return () => Math.abs(apart() - before) > MAX_STEP_MS;
}

/** All members, and what they have told of who leads. */
class Group {
  #counter;
  #length;
  #processes;
  #worker;
  #onAcquired = () => {};
  /** By term: who led, and from when to when it said so. */
  terms = new Map();
  lost = [];

  constructor(counter, store, lockfilePath, length) {
    this.#counter = counter;
    this.#length = length;
    const options = { ...length.timing, peerMode: true, peerSecret: randomUUID() };
    const [node, , ...others] = scripted(MEMBER);
    const kinds = [node, node, ...Array.from({ length: length.scripts }, () => others).flat()];
    // A quick run is of 31 members on four runtimes.
    const scripts = length.natives > 0 ? kinds : [node, ...others];
    const spreadMs = options.leaderTimeout;
    const processOf = (kind, index, members) => new Process(kind, this, (names) => {
      const given = { ...options, lockfilePath, storage: bucketOf(store), names, spreadMs };
      // Not as an argument, which every user of the machine could read.
      return { env: kind.env, first: JSON.stringify(given) };
    }, Array.from({ length: members }, (_, member) => `${kind.runtime.split(' ')[0]}-${index + 1}-${member + 1}`));
    this.#processes = scripts.map((kind, index) => processOf(kind, index, length.each));
    this.#worker = processOf(length.worker, scripts.length, length.workers);
    this.#processes.push(this.#worker);
    for (let index = 0; index < length.natives; index += 1) {
      const kind = fleet({ native: undefined }).at(-1);
      this.#processes.push(new NativeProcess(kind, this, ([serverId]) => ({
        env: { ...kind.env, ...variablesOf(store, lockfilePath, { ...options, serverId }) },
      }), [`native-${index + 1}`]));
    }
  }

  get size() {
    return this.#processes.reduce((sum, { names }) => sum + names.length, 0);
  }

  get runtimes() {
    return [...new Set(this.#processes.map(({ runtime }) => runtime))];
  }

  /** Starts everybody and resolves once all know the same leader. */
  async start() {
    await Promise.all(this.#processes.map((one) => one.start()));
    for (;;) {
      const { leader, process } = await this.#agree();
      // Its members have no address, so that everybody would read the store.
      if (process !== this.#worker) return;
      const before = this.terms.size;
      process.say(`resign ${leader.name}`);
      while (this.terms.size === before) await sleep(LOOK_MS);
    }
  }

  end() {
    return Promise.all(this.#processes.map((one) => one.kill()));
  }

  /** A while in which nothing happens: the requests, and the memory of a member by its runtime at the end. */
  async rest() {
    // By then every question is one that is held.
    await sleep(this.#length.timing.leaderTimeout);
    const fromMs = performance.now();
    await sleep(this.#length.leases * this.#length.timing.leaderTimeout);
    const seen = this.#since(fromMs);
    const { leader } = await this.#agree();
    const looked = await Promise.all(this.#processes.map(async (one) => ({ runtime: one.runtime, each: await one.memoryOfOne() })));
    const memory = this.runtimes.map((runtime) => [runtime, median(looked.filter((one) => one.runtime === runtime).map(({ each }) => each))]);
    return { seen, memory, held: leader.held };
  }

  /** Ends the leader and waits for the next one; what came of it. Everybody is back afterwards. */
  async failOver(way) {
    const { leader, process } = await this.#agree();
    // Who has found the one before silent asks nobody for a lease; then a moment at random among renewals and questions.
    await sleep(this.#length.timing.leaderTimeout * (1 + Math.random()));
    const { held } = leader;
    const fromMs = performance.now();
    const atMs = Date.now();
    const acquired = new Promise((resolve) => (this.#onAcquired = resolve));
    const ended = way === 'crash' ? process.kill() : process.say(`resign ${leader.name}`);
    const late = sleep(3 * this.#length.timing.leaderTimeout + LOOK_LIMIT_MS);
    const next = await Promise.race([acquired, late]);
    if (next === undefined) throw new PlainError(`no leader after a ${way} of ${leader.name}`);
    await sleep(CLAIMS_MS);
    const seen = this.#since(fromMs);
    await ended;
    if (way === 'crash') await process.start();
    return { way, tookMs: next.firstMs - atMs, held, overMs: fromMs + next.firstMs - atMs, puts: countOf(seen, 'PUT'), gets: countOf(seen, 'GET'), from: process.runtime };
  }

  /** What a process tells. */
  hear({ event, name, term, atMs, held, reason }) {
    if (event === 'lost') this.lost.push({ name, term, reason });
    const known = this.terms.get(term);
    if (event === 'acquired' && !known) {
      const led = { name, term, firstMs: atMs, lastMs: atMs, held };
      this.terms.set(term, led);
      this.#onAcquired(led);
    }
    if (event === 'leads' && known) Object.assign(known, { lastMs: atMs, held });
  }

  /** How many terms surely began before one of an earlier number had ended. */
  overlaps() {
    const led = [...this.terms.values()].sort((a, b) => a.term - b.term);
    return led.slice(1).filter(({ firstMs }, index) => led.slice(0, index + 1).some(({ lastMs }) => lastMs > firstMs)).length;
  }

  /** How often the store was read in the lease after this. */
  readsAfter(fromMs) {
    return countOf(this.#since(fromMs).filter(({ atMs }) => atMs < fromMs + this.#length.timing.leaderTimeout), 'GET');
  }

  #since(fromMs) {
    return this.#counter.seen.filter(({ atMs }) => atMs >= fromMs);
  }

  async #agree() {
    const endMs = performance.now() + START_LIMIT_MS;
    for (;;) {
      const told = (await Promise.all(this.#processes.map((one) => one.leaders()))).flat();
      const [leaderId] = told;
      const leader = [...this.terms.values()].sort((a, b) => b.term - a.term).find(({ name }) => name === leaderId);
      if (leader && told.every((one) => one === leaderId)) {
        return { leader, process: this.#processes.find(({ names }) => names.includes(leaderId)) };
      }
      if (performance.now() > endMs) {
        const others = new Map(told.map((one) => [one, told.filter((other) => other === one).length]));
        throw new PlainError(`after ${START_LIMIT_MS / 1000} s members follow ${[...others].map(([name, count]) => `${name} (${count})`).join(', ')}`);
      }
      await sleep(LOOK_MS);
    }
  }
}

/** One process with members. */
class Process {
  #kind;
  #group;
  #setUp;
  #child;
  #answers = [];
  #ready;
  #before = 0;
  names;

  constructor(kind, group, setUp, names) {
    this.#kind = kind;
    this.#group = group;
    this.#setUp = setUp;
    this.names = names;
  }

  get runtime() {
    return this.#kind.runtime;
  }

  get pid() {
    return this.#child.pid;
  }

  start() {
    const { env, first } = this.#setUp(this.names);
    const child = spawnKept(this.#kind.command, this.#kind.args, { env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    // One that was killed takes no more words.
    child.stdin.on('error', () => {});
    if (first) child.stdin.write(`${first}\n`);
    child.stdout.on('data', lineReader((text) => this.hear(JSON.parse(text))));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new PlainError(`a process on ${this.runtime} did not start`)), START_LIMIT_MS);
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new PlainError(`a process on ${this.runtime} ended with ${signal ?? code}`)));
      this.#ready = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  hear(told) {
    if (told.event === 'error') console.error(`${this.runtime}: ${told.error}`);
    if (told.event === 'ready') {
      this.#before = told.before ?? 0;
      this.#ready();
    }
    if (told.event === 'looked') for (const answer of this.#answers.splice(0)) answer(told);
    this.#group.hear(told);
  }

  say(command) {
    this.#child.stdin.write(`${command}\n`);
  }

  kill() {
    return this.#child && endProcess(this.#child);
  }

  async leaders() {
    return (await this.#look()).leaders;
  }

  /** The memory of one member, in bytes: what the process has more than before they began, shared by them. */
  async memoryOfOne() {
    return ((await this.#look()).memory - this.#before) / this.names.length;
  }

  #look() {
    const answer = new Promise((resolve) => this.#answers.push(resolve));
    this.say('look');
    const late = sleep(START_LIMIT_MS).then(() => {
      throw new PlainError(`a process on ${this.runtime} does not answer`);
    });
    late.catch(() => {});
    return Promise.race([answer, late]);
  }
}

/** A member in a process of its own, which speaks the protocol of the demo's members. */
class NativeProcess extends Process {
  #leader = null;

  hear(told) {
    const [name] = this.names;
    if (told.event === 'status') {
      this.#leader = told.leaderId ?? null;
      super.hear({ event: 'ready' });
    }
    const leads = told.event === 'status' && told.role === 'leader';
    super.hear({ ...told, name, event: leads ? 'leads' : told.event });
  }

  say(command) {
    super.say(command.split(' ')[0]);
  }

  async leaders() {
    return [this.#leader];
  }

  async memoryOfOne() {
    return Number(ask('ps', ['-o', 'rss=', '-p', String(this.pid)])) * 1024;
  }
}

const countOf = (seen, wanted) => seen.filter(({ method }) => method === wanted).length;

function report(group, calm, ends, { timing, leases, quick, blocked }) {
  const { leaderTimeout: leaseMs, frequentInterval: frequentMs } = timing;
  const fleetOf = `${group.size} members, lease ${leaseMs / 1000} s`;
  // A stall of the machine is not the elector's.
  const roomMs = quick ? leaseMs : leaseMs / 2;
  const times = (way, mostMs, formula) => {
    const taken = ends.filter((end) => end.way === way).map(({ tookMs }) => tookMs);
    return line({
      what: `${way}, ${fleetOf}`, value: Math.max(...taken), most: mostMs, limit: `${seconds(mostMs)} s: ${formula}`, readme: true,
      shown: `median ${seconds(median(taken))}, slowest ${seconds(Math.max(...taken))} s of ${taken.length}`,
    });
  };
  const perLease = (method) => countOf(calm.seen, method) / leases;
  const reads = perLease('GET') / group.size;
  const renewals = leaseMs / frequentMs;
  const puts = ends.map((end) => end.puts);
  const overlaps = group.overlaps();
  return {
    title: 'a fleet with peers that hold questions, on one store',
    lines: [
      times('crash', leaseMs + 500 + roomMs, `lease + 0.5 s + ${quick ? 'lease' : 'half a lease'}`),
      times('resignation', frequentMs + roomMs, `frequentInterval + ${quick ? 'lease' : 'half a lease'}`),
      line({ what: 'terms that were led at the same moment', value: overlaps, shown: `${overlaps} of ${group.terms.size}`, most: 0, limit: '0' }),
      line({
        what: `reads per member and lease, ${fleetOf}`, value: reads, shown: reads.toFixed(3), most: quick ? 0.5 : 0.2,
        limit: 'one in ten leases, with room', against: 'S3lect 3', readme: true,
      }),
      line({
        what: `writes per lease, ${fleetOf}`, value: perLease('PUT'), shown: perLease('PUT').toFixed(2), most: renewals + 1,
        limit: `${renewals} renewals of the leader, with room`, readme: true,
      }),
      line({
        what: `PUTs per failover, ${fleetOf}`, shown: `median ${median(puts)}, most ${Math.max(...puts)}`, readme: true,
        // A busy machine lets all claim before they hear of a claim; not in each of two failovers.
        ...(quick
          ? { value: Math.min(...puts), most: group.size / 2, limit: 'in one of them at most half of the members' }
          : { value: median(puts), most: 5, limit: 'median at most 5' }),
      }),
      line({
        what: 'questions that the leader holds', value: calm.held ?? group.size, shown: String(calm.held ?? 'not told'),
        least: group.size / 2, limit: 'at least half of the members',
      }),
      ...calm.memory.map(([runtime, bytes]) => line({ what: `memory of a member, ${runtime}`, value: bytes, shown: `${(bytes / MB).toFixed(2)} MB` })),
    ],
    notes: [
      `${group.size} members on ${group.runtimes.join(', ')}; frequentInterval ${frequentMs / 1000} s. Counted over ${leases} leases at the store.`,
      'A crash is a SIGKILL of the process of the leader, with all the members that are in it. Memory is what a process has more than'
        + ' before its members began, by member; a native member has a process of its own.',
      `Reads of all members in a failover: ${ends.map(({ way, gets }) => `${gets} (${way})`).join(', ')};`
        + ` in the lease after it: ${ends.slice(0, -1).map(({ overMs }) => group.readsAfter(overMs)).join(', ')}.`,
      `Held when a leader ended: ${ends.map(({ held, from }) => `${held ?? 'not told'} (${from})`).join(', ')}.`,
      `Terms that ended otherwise: ${group.lost.filter(({ reason }) => !['resigned', 'stopped'].includes(reason)).map(({ name, reason }) => `${name} ${reason}`).join(', ') || 'none'}.`,
      `The measuring process was held up by ${(blocked.percentile(99) / 1e6).toFixed(0)} ms (p99), ${(blocked.max / 1e6).toFixed(0)} ms at most.`,
    ],
  };
}

const seconds = (ms) => (ms / 1000).toFixed(2);
