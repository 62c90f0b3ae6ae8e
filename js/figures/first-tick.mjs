// The first cron tick of a fresh isolate: each one in a workerd process of its own, on a lease parked for it.
import fs from 'node:fs';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { Elector } from 'edgelect';
import { build } from '../tools/build.mjs';
import { ask, step } from '../tools/run.mjs';
import { NODE_24, ROOT, SEAWEED_VERSION, inRoot } from '../tools/paths.mjs';
import { line, median } from './figure.mjs';
import { newGroup, startCounter, storageOf, variablesOf, withStore } from './store.mjs';

const ISOLATES = { full: 10, quick: 3 };
const SERVER_ID = 'worker';
const COMPATIBILITY_DATE = '2026-11-01';
// On the free plan an event may use 10 ms of CPU; the rest of this is two round trips.
const MOST_MS = 250;
const LEASE_MS = 15_000;
const RUNTIMES = {
  Node: [NODE_24, []],
  Deno: [inRoot('node_modules/.bin/deno'), ['run', '--allow-read', '--no-lock']],
  Bun: [inRoot('node_modules/.bin/bun'), ['run']],
};
const STARTS = 5;

// Does nothing but one request, so that what it takes is workerd's and the network's.
const IDLE_WORKER = `export default {
  scheduled: async (event, env) => void (await (await fetch(env.EDGELECT_ENDPOINT + '/idle')).text()),
};`;

/** Measures fresh isolates one after the other, ours and an idle one in turns. */
export async function measure({ quick }) {
  await build(['npm', 'worker']);
  const isolates = quick ? ISOLATES.quick : ISOLATES.full;
  const found = await withStore((store) => step(`Waking ${isolates} fresh isolates`, async () => {
    const counter = await startCounter(store);
    const [ours, idle] = [[], []];
    for (let round = 0; round < isolates; round += 1) {
      idle.push(await wake(counter, [{ type: 'ESModule', path: inRoot('idle.js'), contents: IDLE_WORKER }], { EDGELECT_ENDPOINT: counter.endpoint }));
      const lockfilePath = await parked(store);
      ours.push(await wake(counter, [{ type: 'ESModule', path: inRoot('js/worker.js') }, ...built()], {
        ...variablesOf({ ...store, endpoint: counter.endpoint }, lockfilePath),
        EDGELECT_SERVER_ID: SERVER_ID,
      }));
    }
    await counter.close();
    return { ours, idle };
  }));
  const starts = await step('Starting the wasm in Node, Deno and Bun', async () => Object.fromEntries(Object.keys(RUNTIMES).map((name) => [name, startTimes(name)])));
  return { ...report(found, starts, isolates), extra: { SeaweedFS: SEAWEED_VERSION, ...versions() } };
}

/** A group whose lease waits for the Worker, as the tick before leaves it. */
async function parked(store) {
  const lockfilePath = await newGroup(store, 'first-tick');
  const elector = new Elector({ storage: storageOf(store), lockfilePath, serverId: SERVER_ID });
  await elector.start();
  await elector.waitForLeadership();
  await elector.stop({ park: true });
  return lockfilePath;
}

/** What the build made: the wasm, its glue, and the snippets that the glue imports. */
const built = () => fs.readdirSync(inRoot('build/worker'), { recursive: true })
  .filter((name) => /(\.js|\.wasm)$/.test(name))
  .map((name) => ({ type: name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule', path: inRoot('build/worker', name) }));

/** Starts one workerd and fires one cron event in it; gives milliseconds. */
async function wake(counter, modules, bindings) {
  const bornMs = performance.now();
  const isolate = new Miniflare(convertV4MiniflareOptions({
    modules, modulesRoot: ROOT, compatibilityDate: COMPATIBILITY_DATE, bindings, handleStructuredLogs: () => {},
  }));
  try {
    await isolate.ready;
    const worker = await isolate.getWorker();
    const firedMs = performance.now();
    const before = counter.seen.length;
    // A tick lasts for its sustain; it is cut short once it leads.
    worker.scheduled({ cron: '* * * * *', scheduledTime: new Date() }).catch(() => {});
    const first = await eventually(() => counter.seen[before], 'a first request');
    const claim = bindings.EDGELECT_SERVER_ID === undefined ? first
      : await eventually(() => counter.seen.slice(before).find(({ method, status, answeredMs }) => method === 'PUT' && status === 200 && answeredMs), 'leadership');
    const requests = claim === first ? 1 : counter.seen.indexOf(claim) - before + 1;
    return { startMs: firedMs - bornMs, firstMs: first.atMs - firedMs, leadsMs: claim.answeredMs - firedMs, requests };
  } finally {
    await isolate.dispose();
  }
}

async function eventually(find, what) {
  const endMs = performance.now() + LEASE_MS;
  while (performance.now() < endMs) {
    const found = find();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error(`a fresh isolate came to ${what} not within ${LEASE_MS} ms`);
}

// Each start in a process of its own: the second one in a process finds the code compiled.
function startTimes(name) {
  const [program, args] = RUNTIMES[name];
  const times = Array.from({ length: STARTS }, () => Number(ask(program, [...args, inRoot('js/figures/start-wasm.mjs')])));
  return median(times);
}

function versions() {
  const of = (name) => JSON.parse(fs.readFileSync(inRoot(`node_modules/${name}/package.json`), 'utf8')).version;
  return { workerd: of('workerd'), Deno: of('deno'), Bun: of('bun') };
}

function report({ ours, idle }, starts, isolates) {
  const of = (all, name) => median(all.map((one) => one[name]));
  const ms = (value) => `${value.toFixed(0)} ms`;
  const leads = of(ours, 'leadsMs');
  const slowest = Math.max(...ours.map(({ leadsMs }) => leadsMs));
  const requests = Math.max(...ours.map((one) => one.requests));
  return {
    title: 'the first cron tick of a fresh isolate, its lease parked by the tick before',
    lines: [
      line({ what: 'isolate and process ready', value: of(ours, 'startMs'), shown: ms(of(ours, 'startMs')), against: `a Worker without wasm ${ms(of(idle, 'startMs'))}` }),
      line({ what: 'event to first request', value: of(ours, 'firstMs'), shown: `${of(ours, 'firstMs').toFixed(1)} ms`, against: `a Worker without wasm ${of(idle, 'firstMs').toFixed(1)} ms` }),
      line({
        what: 'first tick, event to leadership', value: slowest, shown: `${ms(leads)}, at most ${ms(slowest)}`, most: MOST_MS,
        limit: `${MOST_MS} ms`, against: `waiting the lease out: ${LEASE_MS / 1000} s`, readme: true,
      }),
      line({ what: 'requests until then', value: requests, shown: String(requests), most: 2, limit: '1 GET, 1 PUT' }),
      ...Object.entries(starts).map(([name, took]) => line({ what: `starting the wasm in ${name}`, value: took, shown: `${took.toFixed(1)} ms`, readme: name === 'Node' })),
    ],
    notes: [`Medians of ${isolates} isolates, each in a workerd of its own, and of ${STARTS} processes of each other runtime (compiling and instantiating js/dist/edgelect_bg.wasm).`],
  };
}
