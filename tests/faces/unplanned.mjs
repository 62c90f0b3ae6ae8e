// `node tests/faces/unplanned.mjs`: bugs that nobody thought of. Each operator, condition and block of the package's own files is
// changed, one at a time, and the schedules that come by are to find it. What they do not find is listed.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parsed, say } from '../../js/tools/command.mjs';
import { buildFaces } from '../../js/tools/faces.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { exit, fail, run } from '../../js/tools/run.mjs';
import { virtual } from './runtime.mjs';
import { runSchedule } from './schedule.mjs';
import { changedCopy, loadPackage, loadWorker, loadWorld } from './world.mjs';

const HELP = `node tests/faces/unplanned.mjs              changes each place of the package's files, one at a time, and lists what no schedule finds
node tests/faces/unplanned.mjs --file NAME  of one file, such as elector.js; repeat it for more
node tests/faces/unplanned.mjs --every 10   each tenth change alone
Hours for all. Changed words of messages are left out.`;
const OPTIONS = { help: { type: 'boolean', short: 'h' }, file: { type: 'string', multiple: true }, every: { type: 'string' }, child: { type: 'boolean' } };
const FILES = ['elector.js', 'electors.js', 'engine.js', 'fence.js', 'host.js', 'shared.js', 'slots.js', 'shards.js', 'objects.js', 'storage.js', 'locker.js'];
const TOOL = '@stryker-mutator/instrumenter';
const TOOL_VERSION = '9.6.1';
const OUT = inRoot('build/faces/unplanned');
const NOT_CHANGED = ['StringLiteral', 'Regex'];
/** What is covered is found out by so many schedules, and a change is looked for by so many that come by. */
const [LOOKS, MOST] = [600, 50];
/** A change that computes without end is found by that. */
const LONGEST_MS = 120_000;

const silent = new Proxy({}, { get: (_, name) => (String(name).startsWith('is') ? () => false : () => {}) });

/** Writes the changed copy; gives the changes. */
async function instrumented(names) {
  const place = path.join(OUT, 'tool');
  const entry = path.join(place, 'node_modules', TOOL, 'dist/src/index.js');
  if (!fs.existsSync(entry)) {
    fs.mkdirSync(place, { recursive: true });
    await run('Installing what changes the code', 'npm', ['install', '--no-audit', '--no-fund', '--prefix', place, `${TOOL}@${TOOL_VERSION}`]);
  }
  const { Instrumenter } = await import(pathToFileURL(entry));
  // It does not know private names behind `?.`.
  const { allMutators } = await import(pathToFileURL(path.join(path.dirname(entry), 'mutators/index.js')));
  allMutators.splice(allMutators.findIndex(({ name }) => name === 'OptionalChaining'), 1);
  const files = names.map((name) => ({ name, mutate: true, content: fs.readFileSync(inRoot('js', name), 'utf8') }));
  const result = await new Instrumenter(silent).instrument(files, { plugins: null, excludedMutations: NOT_CHANGED, ignorers: [] });
  const folder = changedCopy(`unplanned-${process.pid}`);
  for (const { name, content } of result.files) fs.writeFileSync(path.join(folder, name), content);
  return { folder, changes: result.mutants.filter(({ status }) => status !== 'Ignored') };
}

/** In a process of its own: runs schedules with one change, and tells the first seed that fails. */
async function child() {
  globalThis.__stryker__ = {};
  const ns = globalThis.__stryker__;
  const answer = (message) => new Promise((resolve) => process.send(message, resolve));
  const [task] = await new Promise((resolve) => process.once('message', (message) => resolve([message])));
  if (task.change !== undefined) ns.activeMutant = task.change;
  const Request = globalThis.Request;
  const worker = await loadWorker();
  const [newWorld, pack] = [await loadWorld(), { ...(await loadPackage({ folder: task.folder })), worker, newRequest: (url, init) => new Request(url, init) }];
  virtual();
  for (const seed of task.seeds) {
    if (task.change === undefined) ns.currentTestId = String(seed);
    const { broken } = await runSchedule({ newWorld, pack, seed });
    if (!broken) continue;
    await answer({ seed, check: broken.check, text: broken.text.slice(0, 200) });
    process.exit(0);
  }
  if (task.change === undefined) {
    const seeds = {};
    for (const [seed, changes] of Object.entries(ns.mutantCoverage.perTest)) for (const id of Object.keys(changes)) (seeds[id] ??= []).push(Number(seed));
    await answer({ seeds, atStart: Object.keys(ns.mutantCoverage.static) });
  } else await answer({});
  process.exit(0);
}

const inChild = (task) => new Promise((resolve) => {
  const one = fork(fileURLToPath(import.meta.url), ['--child'], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const timer = task.change === undefined ? undefined : setTimeout(() => one.kill('SIGKILL'), LONGEST_MS);
  let told;
  one.on('message', (message) => (told = message));
  one.on('exit', (code, signal) => {
    clearTimeout(timer);
    resolve(told ?? { check: signal ? 'it computes without end' : `the process ended with ${code}` });
  });
  one.send(task);
});

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  if (values.child) return child();
  await buildFaces();
  const { folder, changes: all } = await instrumented(values.file ?? FILES);
  const changes = all.filter((_, at) => at % Number(values.every ?? 1) === 0);
  const { seeds, atStart, check, text } = await inChild({ folder, seeds: Array.from({ length: LOOKS }, (_, at) => at) });
  if (!seeds) throw new Error(`the unchanged package fails: ${check} ${text}`);
  say(`${changes.length} changes; ${changes.filter(({ id }) => !seeds[id]).length} where no schedule comes by`);
  const counts = { found: 0, missed: 0, unseen: 0 };
  for (const change of changes) {
    const { id, fileName, mutatorName, location: { start, end }, replacement } = change;
    const where = `${fileName}:${start.line + 1}:${start.column + 1}-${end.line + 1}:${end.column + 1} ${mutatorName} -> ${replacement.replace(/\s+/g, ' ').slice(0, 120)}`;
    const by = seeds[id] ?? (atStart.includes(id) ? Array.from({ length: MOST }, (_, at) => at) : undefined);
    if (!by) {
      counts.unseen += 1;
      say(`UNSEEN ${where}`);
      continue;
    }
    // Spread over all that come by: neighbours are alike.
    const step = Math.max(1, Math.floor(by.length / MOST));
    const found = await inChild({ folder, change: id, seeds: by.filter((_, at) => at % step === 0).slice(0, MOST) });
    if (found.check) counts.found += 1;
    else counts.missed += 1;
    say(found.check ? `found ${where} by ${found.seed}: ${found.check}` : `MISSED ${where} (${by.length} come by)`);
  }
  say(Object.entries(counts).map(([what, count]) => `${count} ${what}`).join(', '));
  return 0;
}

main(process.argv.slice(2)).then(exit, fail);
