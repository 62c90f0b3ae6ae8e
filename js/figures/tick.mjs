// One cron trigger a minute at the default settings, each in a fresh isolate: how long nobody may act between two ticks,
// whether anybody else takes the lease meanwhile, and what a tick asks of the store and of the processor.
import fs from 'node:fs';
import { Elector } from 'edgelect';
import { build } from '../tools/build.mjs';
import { ROOT, SEAWEED_VERSION, inRoot } from '../tools/paths.mjs';
import { fireCron, modulesOf, startWorkerd } from '../tools/miniflare.mjs';
import { step } from '../tools/run.mjs';
import { variablesOf } from '../tools/variables.mjs';
import { eventually, line, median, readIfAny, sleep, versionOf } from './figure.mjs';
import { newGroup, startCounter, storageOf, withStore } from './store.mjs';

const MINUTES = { full: 5, quick: 1 };
const PERIOD_MS = 60_000;
const SERVER_ID = 'worker';
// Cloudflare's free plan, per event: https://developers.cloudflare.com/workers/platform/limits/
const FREE_SUBREQUESTS = 50;
const FREE_CPU_MS = 10;
// The defaults: a tick parks a second before its 63 s are over, and renews every 5 s; a lease lasts 15 s.
const PARKED_AT_MS = 62_000;
const RENEWALS = 11;
const LEASE_MS = 15_000;
const LONG_LEASE_MS = 30_000;
// The start of the wasm and two round trips in a fresh isolate, as the figure `first-tick` limits them.
const START_MS = 500;
// Late triggers by milliseconds; a lease of 15 s is parked 2 s after the next trigger is due.
const LATE_MS = [5_000, 16_000, 17_000, 21_000];
// The handover that the project promises.
const MOST_GAP_MS = 1_000;
const WAYS = ['tight', 'balanced'];

// As many requests at the same times by plain JavaScript, unsigned: what workerd itself needs for them.
const PLAIN_WORKER = `export default {
  async scheduled(event, env) {
    const startMs = Date.now();
    const ask = async (init) => void (await (await fetch(env.EDGELECT_ENDPOINT + '/plain', init)).text());
    const at = (ms) => new Promise((resolve) => setTimeout(resolve, startMs + ms - Date.now()));
    const body = new Uint8Array(350);
    await ask();
    await ask({ method: 'PUT', body });
    for (let count = 1; count <= ${RENEWALS}; count += 1) {
      await at(count * 5_000);
      await ask({ method: 'PUT', body });
    }
    await at(${PARKED_AT_MS});
    await ask({ method: 'PUT', body });
  },
};`;

const IDLE_WORKER = `export default {
  scheduled: () => new Promise((resolve) => setTimeout(resolve, ${PARKED_AT_MS})),
};`;

/** Measures whole minutes one after the other, then triggers that come late. */
export async function measure({ quick }) {
  await build(['npm', 'worker']);
  const count = quick ? MINUTES.quick : MINUTES.full;
  return withStore(async (store) => {
    const minutes = await step(`Ticking for ${count} min and the start of the next`, () => tickFor(store, count));
    const late = quick ? [] : await step('Coming late', () => comeLate(store));
    return { ...report(minutes, late, count), extra: { SeaweedFS: SEAWEED_VERSION, workerd: versionOf('workerd') } };
  });
}

async function tickFor(store, count) {
  const lockfilePath = await newGroup(store, 'tick');
  const plainCounter = await startCounter(store);
  const kinds = {
    ours: async () => {
      const counter = await startCounter(store);
      return { ...await fresh(workerModules(), variablesOfWorker(store, counter, lockfilePath)), counter };
    },
    plain: () => fresh(oneModule('plain', PLAIN_WORKER), { EDGELECT_ENDPOINT: plainCounter.endpoint }),
    idle: () => fresh(oneModule('idle', IDLE_WORKER), {}),
  };
  const prepare = async (names) => {
    const isolates = {};
    // One after the other, because each looks which process is its own.
    for (const name of names) isolates[name] = await kinds[name]();
    return isolates;
  };
  const rounds = [];
  let watchers = [];
  let prepared = prepare(Object.keys(kinds));
  await prepared;
  const startMs = performance.now();
  for (let round = 0; round <= count; round += 1) {
    const last = round === count;
    const isolates = await prepared;
    await sleep(Math.max(0, startMs + round * PERIOD_MS - performance.now()));
    // In good time, so that the next trigger finds its workerd started.
    if (!last) prepared = sleep(PERIOD_MS / 2).then(() => prepare(round + 1 < count ? Object.keys(kinds) : ['ours']));
    const { counter } = isolates.ours;
    rounds.push(playRound(isolates, counter, last));
    // Not before the Worker leads: the record of a new group is free for everybody.
    await eventually(() => writesOf(counter)[0], PERIOD_MS, 'leadership');
    if (round === 0) watchers = await Promise.all(WAYS.map((follow) => watch(store, lockfilePath, { follow })));
  }
  const ticks = await Promise.all(rounds);
  await Promise.all(watchers.map(({ end }) => end()));
  await plainCounter.close();
  const tried = watchers.flatMap((one) => one.counter.seen).filter(({ method }) => method === 'PUT').length;
  // Each change of the leader's name is counted in the record, whoever wrote it.
  const changed = ticks.at(-1).claim.record.transitions - ticks[0].claim.record.transitions;
  return { ticks, tried, changed };
}

/** One trigger to its end, which is after the next one has come; the last is cut short once it leads. */
async function playRound(isolates, counter, last) {
  const firedMs = performance.now();
  const ends = Object.entries(isolates).map(async ([kind, isolate]) => [kind, await isolate.tick()]);
  // The last one is cut short, which is no error.
  const settled = Promise.allSettled(ends);
  const tick = { claim: await eventually(() => writesOf(counter)[0], PERIOD_MS, 'leadership') };
  if (!last) {
    await sleep(firedMs + START_MS - performance.now());
    tick.startCpuMs = Object.fromEntries(Object.entries(isolates).map(([kind, isolate]) => [kind, isolate.cpuMs()]));
    tick.cpuMs = Object.fromEntries(await Promise.all(ends));
    Object.assign(tick, { requests: counter.seen.length, park: writesOf(counter).at(-1) });
  }
  await Promise.all(Object.values(isolates).map((isolate) => isolate.end()));
  await settled;
  await counter.close();
  return tick;
}

/** The records that were written, in order. */
const writesOf = ({ seen }) =>
  seen.filter(({ written, answeredMs }) => written && answeredMs).map((one) => ({ ...one, record: JSON.parse(one.written) }));

const variablesOfWorker = (store, { endpoint }, lockfilePath, more = {}) =>
  variablesOf({ ...store, endpoint }, lockfilePath, { ...more, serverId: SERVER_ID });

/** Another member of the group, on a way of its own to the store. */
async function watch(store, lockfilePath, options) {
  const counter = await startCounter(store);
  // Its probe's writes would be counted as claims.
  const elector = new Elector({ ...options, probe: false, storage: storageOf(store, counter.endpoint), lockfilePath, serverId: options.follow });
  await elector.start();
  return { counter, end: () => elector.stop().then(counter.close) };
}

/** Parks a lease as a tick does and wakes the Worker so much later than its minute; each in a group of its own. */
async function comeLate(store) {
  const cases = [LEASE_MS, LONG_LEASE_MS].flatMap((maxLease) => LATE_MS.map((lateMs) => ({ maxLease, lateMs })));
  const isolates = [];
  for (const one of cases) {
    const [counter, lockfilePath] = [await startCounter(store), await newGroup(store, 'late')];
    const variables = variablesOfWorker(store, counter, lockfilePath, { maxLease: one.maxLease });
    isolates.push({ ...one, counter, lockfilePath, isolate: await fresh(workerModules(), variables) });
  }
  return Promise.all(isolates.map((one) => comeLateOnce(store, one)));
}

async function comeLateOnce(store, { maxLease, lateMs, counter, lockfilePath, isolate }) {
  const before = new Elector({ storage: storageOf(store), lockfilePath, serverId: SERVER_ID, maxLease });
  await before.start();
  await before.waitForLeadership();
  const watchers = await Promise.all(WAYS.map((follow) => watch(store, lockfilePath, { follow, maxLease })));
  // Until each of them knows the leader, and the tight one is in step with its renewals.
  await sleep(LEASE_MS);
  await before.stop({ park: true });
  const parkedMs = performance.now();
  await sleep(lateMs - (PARKED_AT_MS - PERIOD_MS));
  const tick = isolate.tick().catch(() => {});
  const claims = () => [counter, ...watchers.map((one) => one.counter)].flatMap((one) => writesOf(one));
  await eventually(() => claims().length > 0, PERIOD_MS, 'a next leader');
  const [first] = claims().sort((one, other) => one.answeredMs - other.answeredMs);
  await Promise.all([isolate.end(), ...watchers.map(({ end }) => end())]);
  await tick;
  await counter.close();
  return { maxLease, lateMs, kept: first.record.leaderID === SERVER_ID, by: first.record.leaderID, afterMs: first.answeredMs - parkedMs };
}

const oneModule = (name, contents) => [{ type: 'ESModule', path: inRoot(`${name}.js`), contents }];

/** The Worker's modules; Miniflare enters by the first. */
const workerModules = () => {
  const built = fs.readdirSync(inRoot('build/worker'), { recursive: true }).map((name) => `build/worker/${name}`);
  return modulesOf(['js/worker.js', ...built].map((name) => inRoot(name)));
};

/** A workerd of its own with one isolate in it, ready to be woken. */
async function fresh(modules, bindings) {
  const others = new Set(workerds());
  const miniflare = startWorkerd({ modules, modulesRoot: ROOT, bindings });
  await miniflare.ready;
  const pid = workerds().find((one) => !others.has(one));
  let startMs;
  return {
    /** Fires one cron event; gives the processor's time until its end in milliseconds. */
    tick: async () => {
      startMs = cpuMs(pid);
      await fireCron(miniflare);
      return cpuMs(pid) - startMs;
    },
    /** The same until now. */
    cpuMs: () => cpuMs(pid) - startMs,
    end: () => miniflare.dispose(),
  };
}

/** The processes of workerd that this one has started. */
const workerds = () => fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
  const [, name, parent] = /^\d+ \((.*)\) \S (\d+) /.exec(readIfAny(`/proc/${pid}/stat`)) ?? [];
  return name === 'workerd' && Number(parent) === process.pid;
});

/** What all threads of a process have computed, in milliseconds: the scheduler's own count, in nanoseconds. */
function cpuMs(pid) {
  const threads = pid === undefined ? [] : fs.readdirSync(`/proc/${pid}/task`);
  const of = (thread) => Number(readIfAny(`/proc/${pid}/task/${thread}/schedstat`)?.split(' ')[0] ?? 0);
  return threads.length === 0 ? NaN : threads.reduce((sum, thread) => sum + of(thread), 0) / 1e6;
}

function report({ ticks, tried, changed }, late, count) {
  const ms = (value) => `${value.toFixed(0)} ms`;
  const whole = ticks.slice(0, count);
  const gaps = whole.map(({ park }, index) => ticks[index + 1].claim.answeredMs - park.atMs);
  const gapMs = Math.max(...gaps);
  const requests = Math.max(...whole.map((tick) => tick.requests));
  const parked = whole.filter(({ park }) => park.record.parked).length;
  const cpu = (kind) => median(whole.map(({ cpuMs }) => cpuMs[kind]));
  const above = (kind, of) => whole.map((tick) => of(tick).ours - of(tick)[kind]);
  const total = above('plain', ({ cpuMs }) => cpuMs);
  const start = above('plain', ({ startCpuMs }) => startCpuMs);
  const perWrite = total.map((totalMs, index) => (totalMs - start[index]) / (RENEWALS + 1));
  // What Cloudflare counts is known to Cloudflare alone, so these have no limit of their own.
  const cpuLine = (what, values, more = {}) => line({
    what, value: Math.max(...values), shown: `${median(values).toFixed(1)} ms, at most ${Math.max(...values).toFixed(1)} ms`, ...more,
  });
  return {
    title: 'one cron trigger a minute at the default settings, each in a fresh isolate',
    lines: [
      line({
        what: 'without authority, from park to the next claim', value: gapMs, most: MOST_GAP_MS, readme: true,
        shown: `${ms(median(gaps))}, at most ${ms(gapMs)}: ${(gapMs / PERIOD_MS * 100).toFixed(1)} % of the minute`,
        limit: ms(MOST_GAP_MS),
      }),
      line({ what: 'ticks that parked', value: parked, shown: `${parked} of ${count}`, least: count, limit: 'all' }),
      line({
        what: 'claims by others, who watched all the time', value: tried + changed, most: 0, readme: true,
        shown: `${tried} tried, ${changed} led`, limit: '0', against: `${WAYS.length} members: ${WAYS.join(', ')}`,
      }),
      line({
        what: 'subrequests of a tick', value: requests, shown: String(requests), most: FREE_SUBREQUESTS, readme: true,
        limit: `${FREE_SUBREQUESTS}, the free plan's`, against: `2 GETs, 1 claim, ${RENEWALS} renewals, 1 park`,
      }),
      cpuLine("CPU of a tick: workerd's whole process above an idle one", above('idle', ({ cpuMs }) => cpuMs), {
        against: `idle ${cpu('idle').toFixed(1)} ms; as many plain requests ${(cpu('plain') - cpu('idle')).toFixed(1)} ms above that`,
      }),
      cpuLine('CPU of a tick above as many plain requests', total, { readme: true, against: `Cloudflare's free plan: ${FREE_CPU_MS} ms by its own count` }),
      cpuLine(`of that: the first ${START_MS / 1000} s, with the claim`, start),
      cpuLine('of that: each renewal', perWrite),
      ...late.map(lateLine),
    ],
    notes: [
      `${count} whole minutes and the start of the next; times as the store's side of the wire saw them, from the park's arrival to the claim's answer.`,
      'CPU is the time that all threads of a fresh workerd have computed, by the scheduler\'s own count, from the event to its end: compiling each function at its first call, garbage collection, caches that grew cold in 5 s; with an idle Worker subtracted also the HTTP stack, with plain requests only what it does more.',
    ],
  };
}

function lateLine({ maxLease, lateMs, kept, by, afterMs }) {
  const after = `${(afterMs / 1000).toFixed(1)} s after the park`;
  const dueMs = lateMs - (PARKED_AT_MS - PERIOD_MS);
  // Where both may win, a start and a round trip decide.
  const sure = dueMs + START_MS < maxLease;
  return line({
    what: `a trigger ${lateMs / 1000} s late, maxLease ${maxLease / 1000} s`, value: kept ? 1 : 0, shown: kept ? `kept, ${after}` : `taken by another, ${by}, ${after}`,
    ...(sure ? { least: 1, limit: `kept: ${dueMs / 1000} s < ${maxLease / 1000} s` } : {}),
  });
}
