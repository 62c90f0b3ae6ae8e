// Runs the steps of `npm test`, and the parts of the long run, in two lanes: what computes goes one step after the other and
// gives way, what mostly waits goes beside it; where nothing waits, two compute. Each step is a process of its own, whose output
// is kept and shown only where it fails.
import fs from 'node:fs';
import path from 'node:path';
import { endOf, endProcess, spawnKept } from './cleanup.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { lineReader, seconds, step } from './run.mjs';

const LOGS = inRoot('build/test');
const commandOf = (name) => [process.execPath, 'js/tools/test.mjs', '--step', name];
// Two at once fill the pauses of each other; with more, short leases would run out for want of a processor.
const WIDTH = { computes: 1, waits: 2 };
// Leases and timers of the steps that wait need a processor when they need it.
const GIVES_WAY = 10;

/** Runs the steps, each once those that it names in `after` have passed, and resolves to the exit code. */
export async function runLanes(steps, { keepGoing = false, env = process.env, logs = LOGS, command = commandOf } = {}) {
  fs.rmSync(logs, { recursive: true, force: true });
  fs.mkdirSync(logs, { recursive: true });
  const startMs = Date.now();
  const lanes = new Lanes(steps, { keepGoing, env, logs, command });
  await lanes.run();
  return report(steps, lanes.results, { tookMs: Date.now() - startMs, logs });
}

export class Lanes {
  #steps;
  #options;
  #running = new Map();
  #children = new Set();

  /** `results` says what became of each step: `{ passed, tookMs }`. What is there at the beginning is not run again; `ended` is
   * called as each comes in. */
  constructor(steps, { results = new Map(), ended = () => {}, ...options }) {
    this.#steps = steps;
    this.results = results;
    this.#options = { ...options, ended };
  }

  async run() {
    for (;;) {
      for (const one of this.#ready()) this.#running.set(one.name, this.#start(one));
      if (this.#running.size === 0) return;
      const name = await Promise.race(this.#running.values());
      this.#running.delete(name);
      if (this.#stops()) for (const child of this.#children) void endProcess(child, 5_000);
    }
  }

  #stops() {
    return !this.#options.keepGoing && [...this.results.values()].some(({ passed }) => !passed);
  }

  /** The steps that can start now. */
  #ready() {
    if (this.#stops()) return [];
    const ready = this.#steps.filter((one) => this.#isReady(one));
    const free = { ...WIDTH };
    for (const { name, lane } of this.#steps) if (this.#running.has(name)) free[lane] -= 1;
    // Whoever links or plays schedules keeps one processor busy: where nothing waits beside it, another step computes.
    const waits = ({ lane, name }) => lane === 'waits' && (ready.some((one) => one.name === name) || this.#running.has(name));
    if (!this.#steps.some(waits)) free.computes += 1;
    return ready.filter(({ lane }) => (free[lane] -= 1) >= 0);
  }

  #isReady({ name, after = [] }) {
    if (this.results.has(name) || this.#running.has(name)) return false;
    const waitsFor = this.#steps.filter((one) => after === 'all' ? one.name !== name : after.includes(one.name));
    return waitsFor.every((one) => this.results.get(one.name)?.passed || (after === 'all' && this.results.has(one.name)));
  }

  async #start({ name, what, lane }) {
    const { env, logs, command } = this.#options;
    const log = fs.openSync(logOf(logs, name), 'w');
    const [program, ...args] = command(name);
    const nice = lane === 'computes' ? GIVES_WAY : 0;
    const child = spawnKept(program, args, { cwd: ROOT, env, nice, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children.add(child);
    const startMs = Date.now();
    try {
      await step(`${name}: ${what}`, async (note) => {
        const read = lineReader(note);
        for (const stream of [child.stdout, child.stderr]) {
          stream.on('data', (chunk) => {
            fs.writeSync(log, chunk);
            read(chunk.toString());
          });
        }
        const code = await endOf(child);
        if (code !== 0) throw new Error(String(code));
      });
      this.#end(name, { passed: true, tookMs: Date.now() - startMs });
    } catch {
      // Whatever was ended because another step failed has not failed itself.
      if (!this.#stops()) this.#end(name, { passed: false, tookMs: Date.now() - startMs });
    } finally {
      this.#children.delete(child);
      fs.closeSync(log);
    }
    return name;
  }

  #end(name, result) {
    this.results.set(name, result);
    this.#options.ended(name, result);
  }
}

const logOf = (logs, name) => path.join(logs, `${name}.log`);

/** What its last line says of it. */
function processorOf(logs, name) {
  const [, time] = /\nprocessor: (\d+ s)\n$/.exec(`\n${fs.readFileSync(logOf(logs, name), 'utf8')}`) ?? [];
  return time === undefined ? '' : `, ${time} of a processor`;
}

function report(steps, results, { tookMs, logs }) {
  const failed = steps.filter(({ name }) => results.get(name)?.passed === false);
  console.log('');
  for (const { name } of steps) {
    const result = results.get(name);
    const outcome = result === undefined ? 'not run' : `${result.passed ? 'passed' : 'FAILED'}  ${seconds(result.tookMs)}${processorOf(logs, name)}`;
    console.log(`${name.padEnd(18)}${outcome}`);
  }
  console.log(`${[...results.values()].filter(({ passed }) => passed).length} passed, ${failed.length} failed in ${seconds(tookMs)}`);
  for (const { name } of failed) {
    const log = logOf(logs, name);
    console.log(`\n=== ${name} failed; its output, kept in ${path.relative(ROOT, log)}:\n\n${fs.readFileSync(log, 'utf8')}`);
  }
  const done = results.size === steps.length && failed.length === 0;
  return done ? 0 : 1;
}
