// How long a group is without a leader after a crash and after a resignation.
//
// The first leader of each group is a process of its own and dies by SIGKILL; the two that follow it live in this
// process, which measures from the kill to the `onAcquireLeadership` of one of them, by one clock.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { Elector } from 'edgelect';
import { build } from '../tools/build.mjs';
import { endProcess, spawnKept } from '../tools/cleanup.mjs';
import { SEAWEED_VERSION } from '../tools/paths.mjs';
import { PlainError, lineReader, step } from '../tools/run.mjs';
import { variablesOf } from '../tools/variables.mjs';
import { line, median, quantile, sleep, watchCpu } from './figure.mjs';
import { newGroup, storageOf, withStore } from './store.mjs';

const MEMBER = fileURLToPath(new URL('../demo/member.mjs', import.meta.url));
const ROUNDS = 20;
const AT_ONCE = 4;
const WAYS = ['tight', 'balanced'];
const STORE_SKEW_MS = 2_000;
// The spread of claimants, as the elector draws it, at most a thirtieth of the lease.
const spreadOf = (leaseMs) => Math.min(500, leaseMs / 30);
// Two round trips to a store on the same machine, with room for its hard disk.
const ROUND_TRIPS_MS = 250;
const FULL = { leaderTimeout: 15_000, frequentInterval: 5_000, infrequentInterval: 30_000 };
// On a busy machine a lease of 1.5 s runs out by itself.
const QUICK = { leaderTimeout: 3_000, frequentInterval: 600, infrequentInterval: 6_000 };
const TENTH = { leaderTimeout: 1_500, frequentInterval: 500, infrequentInterval: 3_000 };
// A process that starts on a busy machine takes its time; nothing is measured meanwhile.
const START_LIMIT_MS = 60_000;

/** Measures both ways of following at both lengths of the lease. */
export async function measure({ quick }) {
  await build(['npm']);
  return withStore(async (store) => {
    const cpuBusy = watchCpu();
    const blocked = monitorEventLoopDelay({ resolution: 5 });
    blocked.enable();
    const found = [];
    // The long leases cost the store little, so both ways run at once; the short ones one after the other.
    const waves = quick ? [[QUICK, WAYS]] : [[FULL, WAYS], ...WAYS.map((way) => [TENTH, [way]])];
    for (const [timing, ways] of waves) found.push(...(await wave(store, timing, ways, quick ? 1 : ROUNDS)));
    blocked.disable();
    const extra = { SeaweedFS: SEAWEED_VERSION, 'CPU busy': `${Math.round(cpuBusy() * 100)} %` };
    return { ...report(found, quick, blocked), extra };
  });
}

async function wave(store, timing, ways, rounds) {
  const kept = [];
  const label = `Rounds of a crash and a resignation: ${rounds}, ${ways.join(' and ')}, lease ${timing.leaderTimeout / 1000} s`;
  try {
    return await step(label, async () => {
      const groups = ways.flatMap((follow) => Array.from({ length: rounds }, () => new Group(store, { ...timing, follow }, kept)));
      // A few at a time, because each starts a Node process.
      for (let from = 0; from < groups.length; from += AT_ONCE) {
        await Promise.all(groups.slice(from, from + AT_ONCE).map((group) => group.start()));
      }
      const results = await Promise.all(groups.map((group) => group.play()));
      return ways.map((follow) => ({ follow, timing, results: results.filter((_, index) => groups[index].follow === follow) }));
    });
  } finally {
    await Promise.all(kept.map((end) => end()));
  }
}

/** One group through one crash and one resignation. */
class Group {
  #store;
  #options;
  #kept;
  #lockfilePath;
  #first;
  #electors = new Set();
  #onAcquired = () => {};

  constructor(store, options, kept) {
    this.#store = store;
    this.#options = options;
    this.#kept = kept;
  }

  get follow() {
    return this.#options.follow;
  }

  /** Starts the first leader in its own process. */
  async start() {
    this.#lockfilePath = await newGroup(this.#store, 'failover');
    const variables = variablesOf(this.#store, this.#lockfilePath, { ...this.#options, serverId: 'first' });
    const child = spawnKept(process.execPath, [MEMBER], { env: { PATH: process.env.PATH, ...variables }, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#first = child;
    this.#kept.push(() => endProcess(child));
    await heard(child, 'acquired');
  }

  async #startFollower(serverId) {
    // A follower that started with its leader would look at the best of moments, just behind each renewal.
    await sleep(Math.random() * this.#options.frequentInterval);
    const elector = new Elector({
      ...this.#options,
      serverId,
      storage: storageOf(this.#store),
      lockfilePath: this.#lockfilePath,
      onAcquireLeadership: () => this.#onAcquired(elector, performance.now()),
    });
    this.#electors.add(elector);
    this.#kept.push(() => elector.stop());
    await elector.start();
  }

  /** How long, in milliseconds, the group was without a leader after a crash and after a resignation. */
  async play() {
    await Promise.all(['second', 'third'].map((serverId) => this.#startFollower(serverId)));
    await this.#settle();
    if ([...this.#electors].some((elector) => elector.isLeader())) {
      throw new PlainError('the first leader lost its lease before it was killed: this machine is too busy to measure on');
    }
    const crash = await this.#nextAfter(() => process.kill(this.#first.pid, 'SIGKILL'));
    await this.#settle();
    const graceful = await this.#nextAfter(() => crash.leader.stop());
    return { crashMs: crash.tookMs, gracefulMs: graceful.tookMs };
  }

  // Long enough that every follower knows the leader, and then a moment at random among renewals and looks.
  #settle() {
    const { leaderTimeout } = this.#options;
    return sleep(leaderTimeout + Math.random() * leaderTimeout);
  }

  #nextAfter(end) {
    const limitMs = 3 * this.#options.leaderTimeout + 10_000;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new PlainError(`no leader within ${limitMs / 1000} s (${this.follow})`)), limitMs);
      const startMs = performance.now();
      this.#onAcquired = (leader, atMs) => {
        clearTimeout(timer);
        resolve({ leader, tookMs: atMs - startMs });
      };
      end();
    });
  }
}

function heard(child, wanted) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new PlainError(`a member did not lead within ${START_LIMIT_MS / 1000} s`)), START_LIMIT_MS);
    child.once('exit', (code, signal) => reject(new PlainError(`a member ended with ${signal ?? code}`)));
    child.stdout.on('data', lineReader((text) => {
      if (JSON.parse(text).event !== wanted) return;
      clearTimeout(timer);
      resolve();
    }));
  });
}

function report(found, quick, blocked) {
  const lines = found.flatMap(({ follow, timing, results }) => {
    const { leaderTimeout: leaseMs, frequentInterval: frequentMs } = timing;
    const tight = follow === 'tight';
    const row = (what, taken, limitMs, formula, against = '') => {
      // A stall of the machine is neither the elector's nor what a quick run is after.
      const mostMs = quick ? limitMs + leaseMs : limitMs;
      const [least, middle, greatest] = [Math.min(...taken), median(taken), quantile(taken, 0.99)];
      const inLeases = [least, middle, greatest].map((ms) => (ms / leaseMs).toFixed(2)).join(', ');
      return line({
        what: `${what}, \`${follow}\`, lease ${leaseMs / 1000} s`,
        value: greatest,
        shown: `min ${seconds(least)}, median ${seconds(middle)}, p99 ${seconds(greatest)} s (${inLeases} leases)`,
        most: mostMs,
        limit: `${seconds(mostMs)} s: ${formula}${quick ? ' + lease' : ''}`,
        against,
        readme: true,
      });
    };
    const crashMs = tight ? leaseMs + 500 + ROUND_TRIPS_MS : leaseMs + STORE_SKEW_MS + 2_000;
    const gracefulMs = (tight ? frequentMs : leaseMs) + spreadOf(leaseMs) + ROUND_TRIPS_MS;
    return [
      row('crash', results.map((one) => one.crashMs), crashMs,
        tight ? 'lease + 0.5 s + round trips' : 'lease + storeSkew + 2 s',
        timing === FULL ? 'S3lect 11-15 s, at worst 30 s' : undefined),
      row('resignation', results.map((one) => one.gracefulMs), gracefulMs,
        `${tight ? 'frequentInterval' : 'lease'} + spread + round trips`),
    ];
  });
  return {
    title: 'from the end of a leader to the acquisition by the next one',
    lines,
    notes: [
      `Rounds: ${quick ? 1 : ROUNDS} each, every one in a group of its own with two followers, at a random moment between renewals.`,
      'Of so few the p99 is the slowest.',
      `The limits count ${ROUND_TRIPS_MS} ms of round trips to a store on this machine;`
        + ' the spread of claimants is a thirtieth of the lease, 0.5 s at most.',
      `The measuring process was held up by ${(blocked.percentile(99) / 1e6).toFixed(0)} ms (p99), ${(blocked.max / 1e6).toFixed(0)} ms at most.`,
    ],
  };
}

const seconds = (ms) => (ms / 1000).toFixed(ms < 10_000 ? 2 : 1);
