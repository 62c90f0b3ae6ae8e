// The examples of crons, and the README's Worker, with a job that throws what is no error: their very sources, on a storage in memory.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import util from 'node:util';
import { Elector, MemoryStorage } from 'edgelect';
import { inRoot } from '../../js/tools/paths.mjs';
import { FAST, putRecord, slotRecord, until, within } from './group.mjs';

const MINUTE = 60_000;
const EARLIER = Math.floor(Date.now() / MINUTE) * MINUTE - 5 * MINUTE;

/** Runs the source as the body of a function, which gets what it imports and the globals that it uses. */
const loaded = (source, modules, globals = {}) => {
  const body = source
    .replace(/^import (\{.*?\}) from '(.*?)';$/gm, (_line, names, from) => `const ${names.replaceAll(' as ', ': ')} = modules[${JSON.stringify(from)}];`)
    .replace(/^export default /m, 'return ');
  return new Function('modules', ...Object.keys(globals), body)(modules, ...Object.values(globals));
};

const read = (file) => fs.readFileSync(inRoot(file), 'utf8');

/** Whose groups have claimed their slots up to `EARLIER`. */
const library = () => {
  const storage = new MemoryStorage();
  for (const key of ['jobs/report.json', 'leader/report.json']) putRecord(storage, slotRecord(EARLIER), key);
  const R2Storage = function R2Storage() { return storage; };
  const Own = function Own(options) { return new Elector({ storage, ...FAST, lockfilePath: 'jobs/report.json', ...options }); };
  return { Elector: Own, R2Storage };
};

for (const [name, source] of [
  ['examples/js-worker', () => read('examples/js-worker/src/index.js')],
  ['the README\'s Worker', () => /^```js\n(import [^`]*?export default [^]*?)^```$/m.exec(read('README.md'))[1]],
]) {
  test(`${name}: a trigger whose job rejects without a value is a failed one, and one that was taken is none`, async () => {
    let thrown;
    const writeReport = () => Promise.reject(thrown);
    const worker = loaded(source(), { edgelect: library(), './report.js': { writeReport }, './report.mjs': { writeReport } }, { console: { log: () => {} } });
    const fire = (minute) => within(worker.scheduled({ scheduledTime: EARLIER + minute * MINUTE }, {}));
    await assert.rejects(fire(1), /the (slot's )?job failed/);
    thrown = 'text';
    await assert.rejects(fire(2), (error) => error === 'text');
    thrown = new Error('an error');
    await assert.rejects(fire(3), thrown);
    await fire(3);
  });
}

/** What each timer example says of a slot whose job throws a text. */
const TIMERS = {
  'examples/bun-cron/main.js': async (source, globals) => {
    let tick;
    // Its job does nothing but print.
    const console = { log: (...words) => {
      if (/is written/.test(words[0])) throw 'text';
      globals.console.log(...words);
    } };
    loaded(source, { edgelect: library() }, { ...globals, console, Bun: { cron: (_when, run) => (tick = run) } });
    await within(tick());
  },
  'examples/deno-cron/main.js': async (source, globals) => {
    let tick;
    const Deno = { cron: (_name, _when, _options, run) => (tick = run), addSignalListener: () => {} };
    loaded(source, { 'npm:edgelect': library(), './report.js': { writeReport: throwing }, 'node:util': utilities }, { ...globals, Deno });
    await within(tick());
  },
  'examples/node-timer/main.mjs': async (source, globals, lines) => {
    // The first slot is now, and there is no second.
    const waits = [undefined, new Promise(() => {})];
    const timers = { setTimeout: () => waits.shift() };
    const modules = { edgelect: library(), './report.mjs': { writeReport: throwing }, 'node:util': utilities, 'node:timers/promises': timers };
    loaded(source, modules, { ...globals, process: { once: () => {} } });
    await until(() => lines.length > 1);
  },
};
const throwing = () => { throw 'text'; };
const utilities = { parseArgs: (config) => util.parseArgs({ ...config, args: [] }) };

for (const [file, run] of Object.entries(TIMERS)) {
  test(`${file} says what its job threw, also where that is no error`, async () => {
    const lines = [];
    await run(read(file), { console: { log: (...words) => lines.push(words.slice(1).join(' ')), error: assert.fail } }, lines);
    assert.equal(lines.at(-1), 'failed: text');
  });
}
