// `node tests/faces/run.mjs`: the npm package as it ships, in the simulator's world.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { parsed, say } from '../../js/tools/command.mjs';
import { buildFaces } from '../../js/tools/faces.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError, exit, fail } from '../../js/tools/run.mjs';
import { MUTANTS } from './mutants.mjs';
import { realNow, virtual } from './runtime.mjs';
import { runSchedule } from './schedule.mjs';
import { loadPackage, loadWorker, loadWorld } from './world.mjs';

const HELP = `node tests/faces/run.mjs --schedules 2000   members of the npm package beside Rust's, in the simulator's world
node tests/faces/run.mjs --first 5000       begins with another seed
node tests/faces/run.mjs --seed faces:7     one schedule, with its history
node tests/faces/run.mjs --mutants          plants each bug of tests/faces/mutants.mjs; each is to be found
node tests/faces/run.mjs --mutant NAME      plants one: ${MUTANTS.map(({ name }) => name).join(', ')}
Seeds that failed are kept in tests/faces/failed.txt and run first. Each processor runs schedules of its own.`;
const OPTIONS = {
  help: { type: 'boolean', short: 'h' }, schedules: { type: 'string' }, first: { type: 'string' }, seed: { type: 'string' },
  mutant: { type: 'string' }, mutants: { type: 'boolean' },
  // A process that does what another one asks for.
  child: { type: 'boolean' },
};
const FAILED = inRoot('tests/faces/failed.txt');
const PROGRESS_MS = 2_000;
const LONGEST_TEXT = 200;
/** What the package's wasm may grow to, however many electors it has had. */
const MOST_MB = 8;
/** Of so many schedules one is run again without the getters, and each that failed once. */
const ONE_UNREAD_IN = 25;

const failedBefore = () => {
  const lines = fs.readFileSync(FAILED, 'utf8').split('\n').filter((line) => line.startsWith('faces:'));
  return lines.map((line) => numberOf(line.split(' ')[0]));
};

const numberOf = (seed) => {
  const [, number] = /^faces:(\d{1,9})$/.exec(seed) ?? [];
  if (number === undefined) throw new PlainError(`there is no seed "${seed}": a seed is faces:NUMBER, as a failing run prints it`);
  return Number(number);
};

const whole = (name, text, otherwise) => {
  if (text !== undefined && !/^\d{1,9}$/.test(text)) throw new PlainError(`--${name} ${text}: must be a whole number`);
  return Number(text ?? otherwise);
};

/** Adds what a schedule counted. */
const add = (sums, counts) => {
  for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
};

/** As one schedule, and where a seed is chosen for that, a second time without the getters: both are the same. */
const runSeed = async (how) => {
  const ended = await runSchedule(how);
  // A term that a getter was the first to see over is lost later without it.
  const same = !ended.own['a getter saw the end'];
  const chosen = how.seed % ONE_UNREAD_IN === 0 || failedBefore().includes(how.seed);
  if (ended.broken || how.keep || !chosen || !same) return ended;
  const { trace } = await runSchedule({ ...how, reads: false });
  if (trace !== ended.trace) ended.broken = { atMs: 0, check: 'getters change nothing', text: `${ended.trace} became ${trace}` };
  return ended;
};

const tell = ({ lines, broken }, seed) => {
  say(lines.join('\n'));
  say(broken ? `seed faces:${seed}: at ${broken.atMs} ms: ${broken.check}: ${broken.text}` : `seed faces:${seed}: no violation`);
  say(`again: node tests/faces/run.mjs --seed faces:${seed}`);
};

const listed = (counts) => Object.entries(counts).filter(([, count]) => count > 0).sort().map(([what, count]) => `${what} ${count}`).join(', ');

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  if (values.child) return answers();
  const mutant = MUTANTS.find(({ name }) => name === values.mutant);
  if (values.mutant !== undefined && !mutant) throw new PlainError(`there is no mutant "${values.mutant}"; --help lists them`);
  const [first, count] = [whole('first', values.first, 0), whole('schedules', values.schedules, 2_000)];
  const seed = values.seed === undefined ? undefined : numberOf(values.seed);
  await buildFaces();
  if (seed !== undefined) {
    const ended = await runSeed({ ...(await loaded(mutant)), seed, keep: true });
    tell(ended, seed);
    return ended.broken ? 1 : 0;
  }
  if (mutant || values.mutants) return planted(mutant ? [mutant] : MUTANTS, { first, count });
  return many({ first, count });
}

/** The world, and the package in which `mutant` is planted, on virtual time. */
async function loaded(mutant) {
  const newRequest = newRequestOf(globalThis.Request);
  const worker = await loadWorker();
  const [newWorld, pack] = [await loadWorld(), { ...(await loadPackage(mutant)), worker, newRequest }];
  virtual();
  return { newWorld, pack };
}

/** Requests that reach a Worker are Node's own. */
const newRequestOf = (Request) => (url, init) => new Request(url, init);

/** The seeds of a run, those that failed once before all others. */
const seedsOf = (first, count) => [...new Set([...failedBefore(), ...Array.from({ length: count }, (_, at) => first + at)])];

/** Does what the parent asks for: one schedule, or those that are to find a bug. */
async function answers() {
  let how;
  const does = async ({ seed, mutant, first, count }) => {
    how ??= await loaded(mutant);
    if (mutant) return finds({ ...how, mutant, first, count });
    const { broken, counts, own, requests, terms, failovers } = await runSeed({ ...how, seed });
    return { seed, broken, counts, own, requests, terms, failovers, memoryMb: how.pack.memory.buffer.byteLength / 2 ** 20 };
  };
  const ended = new Promise((resolve) => process.once('disconnect', resolve));
  process.on('message', (task) => does(task).then((answer) => process.send(answer), fail));
  await ended;
  return 0;
}

/** Has each task done by one of as many processes as there are processors, and gives its answer to `told`. */
async function share(tasks, told, isNew = () => false) {
  const left = [...tasks];
  const works = async () => {
    let helper;
    for (let task = left.shift(); task; task = left.shift()) {
      if (helper && isNew(task)) helper.leave();
      if (!helper || isNew(task)) helper = newHelper();
      told(await helper.ask(task));
    }
    helper?.leave();
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, works));
}

function newHelper() {
  const child = fork(fileURLToPath(import.meta.url), ['--child']);
  let waits;
  child.on('message', (answer) => waits.resolve(answer));
  child.on('exit', (code, signal) => waits.reject(new PlainError(`a process that ran schedules ended with ${signal ?? code}`)));
  return {
    ask: (task) => new Promise((resolve, reject) => {
      waits = { resolve, reject };
      child.send(task);
    }),
    leave: () => child.connected && child.disconnect(),
  };
}

/** Runs schedules of a changed package until one breaks a rule. */
async function finds({ newWorld, pack, mutant, first, count }) {
  for (let runs = 0; runs < count; runs += 1) {
    const seed = (first || mutant.near || 0) + runs;
    const { broken } = await runSeed({ newWorld, pack, seed });
    if (!broken) continue;
    return { found: true, text: `${mutant.name}: found by schedule ${runs + 1}, faces:${seed}: ${broken.check}: ${broken.text.slice(0, LONGEST_TEXT)}` };
  }
  return { found: false, text: `${mutant.name}: not found in ${count} schedules` };
}

async function planted(mutants, how) {
  let missed = 0;
  // A package of its own is another process: what the one before has changed is not there.
  await share(mutants.map((mutant) => ({ mutant, ...how })), ({ found, text }) => {
    say(text);
    missed += found ? 0 : 1;
  }, () => true);
  return missed === 0 ? 0 : 1;
}

async function many({ first, count }) {
  const seeds = seedsOf(first, count);
  const [beganMs, faults, own, broken] = [realNow(), {}, {}, []];
  const sums = { requests: 0, terms: 0, failovers: 0 };
  let [done, toldMs, memoryMb] = [0, realNow(), 0];
  const pace = () => `${((done * 1_000) / (realNow() - beganMs)).toFixed(0)} a second`;
  await share(seeds.map((seed) => ({ seed })), (ended) => {
    done += 1;
    memoryMb = Math.max(memoryMb, ended.memoryMb);
    add(faults, ended.counts);
    add(own, ended.own);
    for (const name of Object.keys(sums)) sums[name] += ended[name];
    if (ended.broken) {
      const { seed, broken: { check, text } } = ended;
      broken.push(seed);
      say(`faces:${seed} ${check}: ${text}`);
      if (!failedBefore().includes(seed)) fs.appendFileSync(FAILED, `faces:${seed} ${check}\n`);
    }
    if (realNow() - toldMs < PROGRESS_MS) return;
    toldMs = realNow();
    say(`${done} of ${seeds.length} schedules, ${pace()}, ${broken.length} failed`);
  });
  say(`Faults: ${listed(faults)}.\n\nMembers of the package: ${listed(own)}.\n`);
  const counted = Object.entries(sums).map(([what, sum]) => `${sum} ${what}`).join(', ');
  say(`${done} schedules, ${pace()}: ${counted}, ${broken.length} failed`);
  say(`The package's wasm has ${memoryMb.toFixed(1)} MB, of at most ${MOST_MB}.`);
  if (broken.length === 0) return memoryMb <= MOST_MB ? 0 : 1;
  const [seed] = broken.sort((a, b) => a - b);
  tell(await runSeed({ ...(await loaded()), seed, keep: true }), seed);
  return 1;
}

main(process.argv.slice(2)).then(exit, fail);
