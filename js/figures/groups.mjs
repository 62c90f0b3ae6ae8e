// What a thousand groups cost in one process, and whether anything grows while they are led.
import v8 from 'node:v8';
import vm from 'node:vm';
import { Elector, Electors } from 'edgelect';
import { build } from '../tools/build.mjs';
import { SEAWEED_VERSION } from '../tools/paths.mjs';
import { step } from '../tools/run.mjs';
import { line, sleep, watchCpu } from './figure.mjs';
import { storageOf, withStore } from './store.mjs';

const GROUPS = 1_000;
const INTERVAL_MS = 5_000;
const AT_ONCE = 32;
/** Each leads once its place in the interval has come; the code is compiled by then. */
const WARM_UP_MS = 30_000;
const MINUTE_MS = 60_000;
const [LONG_MIN, SHORT_MIN] = [10, 1];
// A leak of 10 bytes for each request would be more in ten minutes.
const MOST_HEAP_MB = 1;
const MOST_RSS_MB = 40;

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

/** Measures for so many minutes. */
export async function measure({ quick, minutes = quick ? SHORT_MIN : LONG_MIN }) {
  await build(['npm']);
  return withStore(async (store) => {
    const { storage, names } = await newGroups(store);
    const lost = [];
    const before = memory();
    const electors = new Electors({ storage, onLoseLeadership: ({ reason }, group) => lost.push([group, reason]) });
    await step(`Starting ${GROUPS} groups`, async () => {
      await Promise.all(names.map((name) => electors.add(name).start()));
      await sleep(WARM_UP_MS);
    });
    const leading = leaders(electors);
    const [cpuBusy, cpu, sent, fromMs] = [watchCpu(), process.cpuUsage(), requests(electors), performance.now()];
    const half = () => sleep((minutes * MINUTE_MS) / 2);
    await step(`Leading for ${minutes / 2} min`, half);
    // What the runtime's HTTP client keeps has been made by then.
    const first = memory();
    await step('Leading for as long again', half);
    const seconds = (performance.now() - fromMs) / 1_000;
    const used = process.cpuUsage(cpu);
    const busy = cpuBusy();
    const found = {
      minutes, leading, lost: lost.length, before, first, last: memory(), leads: leaders(electors),
      perSecond: (requests(electors) - sent) / seconds, cpu: (used.user + used.system) / 1e6 / seconds,
    };
    await step('Stopping them', () => electors.stop());
    return { ...report(found, quick), extra: { SeaweedFS: SEAWEED_VERSION, 'CPU busy': `${Math.round(busy * 100)} %` } };
  });
}

async function newGroups(store) {
  const storage = storageOf(store);
  // The store is new, and nobody else's.
  const names = Array.from({ length: GROUPS }, (_, index) => `groups/${index}`);
  const left = [...names];
  const some = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await new Elector({ storage, lockfilePath: name }).init();
  };
  await step(`Making ${GROUPS} groups`, () => Promise.all(Array.from({ length: AT_ONCE }, some)));
  return { storage, names };
}

function memory() {
  collect();
  const { rss, heapUsed } = process.memoryUsage();
  const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  return { rssMb: rss / 1e6, heapMb: heapUsed / 1e6, timers };
}

const leaders = (electors) => electors.status().groups.filter(({ role }) => role === 'leader').length;

const requests = (electors) => electors.status().groups.reduce((sum, { requests: { read, write } }) => sum + read + write, 0);

function report({ minutes, leading, leads, lost, before, first, last, perSecond, cpu }, quick) {
  const usual = GROUPS / (INTERVAL_MS / 1_000);
  const mb = (value) => `${value.toFixed(1)} MB`;
  const kb = ((first.heapMb - before.heapMb) * 1_000) / GROUPS;
  const lines = [
    line({ what: 'groups that are led, at the start and at the end', value: Math.min(leading, leads), shown: `${leading}, ${leads}`, least: GROUPS, limit: 'all' }),
    line({ what: 'terms that were lost meanwhile', value: lost, shown: `${lost}`, most: 0, limit: '0' }),
    line({
      what: `requests a second, ${GROUPS} groups in one process`, value: perSecond, shown: perSecond.toFixed(1), most: usual * 1.1, limit: `${usual}, one per group and interval`, readme: true,
    }),
    line({ what: `CPU of one core, ${GROUPS} groups`, value: cpu, shown: `${(cpu * 100).toFixed(1)} %`, readme: true }),
    line({ what: `resident memory at the end, ${GROUPS} groups`, value: last.rssMb, shown: mb(last.rssMb), readme: true }),
    line({ what: "JavaScript's heap for each group", value: kb, shown: `${kb.toFixed(1)} kB` }),
    line({ what: `growth of JavaScript's heap in the last ${minutes / 2} min, ${GROUPS} groups`, value: last.heapMb - first.heapMb, shown: mb(last.heapMb - first.heapMb), most: MOST_HEAP_MB, limit: `${MOST_HEAP_MB} MB`, readme: true }),
    line({ what: `growth of the resident memory in the last ${minutes / 2} min`, value: last.rssMb - first.rssMb, shown: mb(last.rssMb - first.rssMb), most: MOST_RSS_MB, limit: `${MOST_RSS_MB} MB` }),
    line({ what: 'timers more than before they were started', value: last.timers - before.timers, shown: `${last.timers - before.timers}`, most: 40, limit: 'one, and those of HTTP' }),
  ];
  return { title: `${GROUPS} groups in one process, led for ${minutes} min${quick ? ', in short' : ''}`, lines };
}
