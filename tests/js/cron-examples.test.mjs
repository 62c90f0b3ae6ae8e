// The examples of crons, and the README's Worker, with a job that throws what is no error: their very sources, on a storage in memory.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { Elector, MemoryStorage } from 'edgelect';
import { inRoot } from '../../js/tools/paths.mjs';
import { FAST, putRecord, slotRecord, within } from './group.mjs';

const MINUTE = 60_000;
const EARLIER = Math.floor(Date.now() / MINUTE) * MINUTE - 5 * MINUTE;

const AsyncFunction = (async () => {}).constructor;

const read = (file) => fs.readFileSync(inRoot(file), 'utf8');

/** What the source of a Worker exports, with these modules in the place of what it imports. */
const loaded = (source, modules) => {
  const body = source
    .replace(/^import (\{.*?\}) from '(.*?)';$/gm, (_line, names, from) => `const ${names} = modules[${JSON.stringify(from)}];`)
    .replace(/^export default /m, 'return ');
  return new Function('modules', 'console', body)(modules, { log: () => {} });
};

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
    const worker = loaded(source(), { edgelect: library(), './report.js': { writeReport }, './report.mjs': { writeReport } });
    const fire = (minute) => within(worker.scheduled({ scheduledTime: EARLIER + minute * MINUTE }, {}));
    await assert.rejects(fire(1), /the (slot's )?job failed/);
    thrown = 'text';
    await assert.rejects(fire(2), (error) => error === 'text');
    thrown = new Error('an error');
    await assert.rejects(fire(3), thrown);
    await fire(3);
  });
}

for (const file of ['examples/bun-cron/main.js', 'examples/deno-cron/main.js', 'examples/node-timer/main.mjs']) {
  test(`${file} says what its job threw, also where that is no error`, async () => {
    const [ofEachSlot] = /^ *const result = await elector\.runScheduled[^]*?^ *console\.log\(.*\);$/m.exec(read(file));
    const lines = [];
    const given = {
      elector: new (library().Elector)(), writeReport: () => { throw 'text'; }, period: MINUTE, policy: 'atMostOnce', signal: undefined,
      console: { log: (...words) => lines.push(words.slice(1).join(' ')) },
    };
    await within(new AsyncFunction(...Object.keys(given), ofEachSlot)(...Object.values(given)));
    assert.deepEqual(lines, ['failed: text']);
  });
}
