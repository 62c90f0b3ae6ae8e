// The first cron tick of a fresh isolate: each one in a workerd process of its own, on a lease parked for it.
import path from 'node:path';
import { Elector } from 'edgelect';
import { build } from '../tools/build.mjs';
import { bundleIn, startWorkerd } from '../tools/miniflare.mjs';
import { PlainError, ask, step } from '../tools/run.mjs';
import { NODE_24, ROOT, SEAWEED_VERSION, inRoot } from '../tools/paths.mjs';
import { withBundle } from '../tools/wrangler.mjs';
import { variablesOf } from '../tools/variables.mjs';
import { eventually, line, median, versionOf } from './figure.mjs';
import { newGroup, startCounter, storageOf, withStore } from './store.mjs';

const ISOLATES = { full: 10, quick: 3 };
const SERVER_ID = 'worker';
// A start of the isolate's code and two round trips, with room for a busy machine; without parking it were a lease.
const MOST_MS = 500;
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
  const found = await withBundle((root) => withStore((store) => step(`Waking ${isolates} fresh isolates`, async () => {
    const counter = await startCounter(store);
    const [ours, idle] = [[], []];
    for (let round = 0; round < isolates; round += 1) {
      const nothing = { modulesRoot: ROOT, modules: [{ type: 'ESModule', path: inRoot('idle.js'), contents: IDLE_WORKER }] };
      idle.push(await wake(counter, nothing, { EDGELECT_ENDPOINT: counter.endpoint }));
      const lockfilePath = await parked(store);
      const variables = variablesOf({ ...store, endpoint: counter.endpoint }, lockfilePath, { serverId: SERVER_ID });
      ours.push(await wake(counter, bundleIn(root), variables));
    }
    await counter.close();
    return { ours, idle };
  })));
  const starts = await step('Starting the wasm in Node, Deno and Bun', async () =>
    Object.fromEntries(Object.keys(RUNTIMES).map((name) => [name, startTimes(name)])));
  return { ...report(found, starts, isolates), extra: { SeaweedFS: SEAWEED_VERSION, workerd: versionOf('workerd'), Deno: versionOf('deno'), Bun: versionOf('bun') } };
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

/** Starts one workerd and fires one cron event in it; gives milliseconds. */
async function wake(counter, worker, bindings) {
  const bornMs = performance.now();
  const isolate = startWorkerd({ ...worker, bindings });
  try {
    await isolate.ready;
    const handle = await isolate.getWorker();
    const firedMs = performance.now();
    const before = counter.seen.length;
    // A tick lasts for its sustain; it is cut short once it leads.
    handle.scheduled({ cron: '* * * * *', scheduledTime: new Date() }).catch(() => {});
    const first = await eventually(() => counter.seen[before], LEASE_MS, 'a first request');
    const claimed = ({ method, status, answeredMs }) => method === 'PUT' && status === 200 && answeredMs;
    const claim = bindings.EDGELECT_SERVER_ID === undefined ? first
      : await eventually(() => counter.seen.slice(before).find(claimed), LEASE_MS, 'leadership');
    const requests = claim === first ? 1 : counter.seen.indexOf(claim) - before + 1;
    return { startMs: firedMs - bornMs, firstMs: first.atMs - firedMs, leadsMs: claim.answeredMs - firedMs, requests };
  } finally {
    await isolate.dispose();
  }
}

// Each start in a process of its own: the second one in a process finds the code compiled.
function startTimes(name) {
  const [program, args] = RUNTIMES[name];
  const printed = Array.from({ length: STARTS }, () => ask(program, [...args, inRoot('js/figures/start-wasm.mjs')]));
  if (printed.includes(undefined)) {
    throw new PlainError(`the wasm did not start: run \`${path.relative(ROOT, program)} ${args.join(' ')} js/figures/start-wasm.mjs\``);
  }
  return median(printed.map(Number));
}

function report({ ours, idle }, starts, isolates) {
  const of = (all, name) => median(all.map((one) => one[name]));
  const ms = (value) => `${value.toFixed(0)} ms`;
  const leads = of(ours, 'leadsMs');
  const slowest = Math.max(...ours.map(({ leadsMs }) => leadsMs));
  const requests = Math.max(...ours.map((one) => one.requests));
  const beside = (what, name) => line({
    what, value: of(ours, name), shown: ms(of(ours, name)), against: `a Worker without wasm ${ms(of(idle, name))}`,
  });
  return {
    title: 'the first cron tick of a fresh isolate, its lease parked by the tick before',
    lines: [
      beside('process and isolate ready', 'startMs'),
      beside('event to first request', 'firstMs'),
      line({
        what: 'first tick, event to leadership', value: slowest, shown: `${ms(leads)}, at most ${ms(slowest)}`, most: MOST_MS,
        limit: `${MOST_MS} ms`, against: `waiting the lease out: ${LEASE_MS / 1000} s`, readme: true,
      }),
      line({ what: 'requests until then', value: requests, shown: String(requests), most: 2, limit: '1 GET, 1 PUT' }),
      ...Object.entries(starts).map(([name, took]) => line({
        what: `starting the wasm in ${name}`, value: took, shown: `${took.toFixed(1)} ms`, readme: name === 'Node',
      })),
    ],
    notes: [
      `Medians of ${isolates} isolates, each in a workerd of its own; leadership is when the store has answered the claim.`,
      `Starting is compiling and instantiating the npm package's wasm: medians of ${STARTS} processes each.`,
    ],
  };
}
