// `npm run test:long`: what takes too long for `npm test`. What has passed is not run again on the same code.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { endOf, newFolder, removePath, spawnKept } from './cleanup.mjs';
import { parsed, say } from './command.mjs';
import { Lanes } from './lanes.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { PlainError, ask, exit, fail, lineReader, seconds } from './run.mjs';
import { EVERYTHING, ensure } from './setup.mjs';

const HELP = `npm run test:long                  runs every part, for hours; interrupted, it goes on where it was
npm run test:long -- --only NAME   runs one part; repeat it for more
npm run test:long -- --fresh       begins anew
npm run test:long -- --list        lists the parts
What each part said is in build/long/NAME.log, the summary in build/long/summary.md. What passed is in tests/long.json: once that
is committed, no other machine runs it again on the same code.`;

const OPTIONS = {
  help: { type: 'boolean', short: 'h' }, list: { type: 'boolean' }, fresh: { type: 'boolean' }, only: { type: 'string', multiple: true },
  // One part in a process of its own, for the lanes.
  part: { type: 'string' },
};

const LOGS = inRoot('build/long');
/** Runs this program; the parts name it by this word, since it lies elsewhere on each machine. */
const NODE = 'node';
const node = (file, ...args) => [[NODE, file, ...args]];
const inFull = { EDGELECT_LONG: '1' };
/** What README and CONTRIBUTING tell people to run, each in a clone that nothing else was run in. */
const ALONE = [
  'npm run build', 'npm run scenarios', 'npm run check', 'npm run prove -- --seed core:7', 'npm run figures -- size', 'npm run live -- --seconds 10',
  'npm test -- --only native', 'npm test -- --only stores', 'EDGELECT_BUG=NoMargin cargo test --workspace --test all planted::', 'npm start -- --once',
];

/** The record of what passed, which is no part of the code. */
const RECORD = 'tests/long.json';
const without = (...names) => names.flatMap((name) => [`:(exclude)src/${name}`, `:(exclude)src/${name}.rs`]);
/** What the simulated worlds are made of; a list of seeds is no code. */
const RUST = [
  'Cargo.lock', 'Cargo.toml', 'rust-toolchain.toml', 'examples/prove', 'js/tools/prove.mjs', 'js/tools/cleanup.mjs', 'js/tools/paths.mjs',
  'js/tools/run.mjs', 'js/tools/setup.mjs', 'src', 'tests/Cargo.toml', 'tests/worlds.rs', 'tests/virtual_time', ':(glob)tests/sim/*.rs',
];
/** The same without what the native tests and `npm run prove` do not compile. */
const NATIVE = [...RUST, ...without('bucket', 'cli', 'custom', 'js', 'task', 'web', 'worker', 'workerd')];
/** The schedules and the model know one object in a bucket, and run no other store. */
const ONE_OBJECT = [...NATIVE, ...without('store/dynamodb', 'store/epochs', 'store/route53')];
/** Nor do they run shards, as some planted bugs do. */
const SIMULATOR = [...ONE_OBJECT, ...without('shards')];
const BUGS = ['tests/planted', 'tests/shards/play.rs'];
const EPOCHS = ['tests/epochs.rs', 'tests/epochs'];
/** What the npm package in the simulated world is made of. */
const PACKAGE = [
  ...RUST, ...without('cli'), 'js', 'package.json', 'package-lock.json', ':(glob)tests/faces/**', ':(exclude)tests/faces/failed.txt',
  ...['cli', 'demo', 'figures'].map((name) => `:(exclude)js/${name}`),
];
const EVERY_FILE = ['.', `:(exclude)${RECORD}`];
/** Everything but what people read. */
const CODE = [...EVERY_FILE, ':(exclude)docs', ':(exclude,glob)**/*.md'];
/** In so many parts run the schedules of the npm package, so that less is lost when they are interrupted. */
const FACES = [1, 2, 3, 4];
const EACH = 100_000 / FACES.length;

const PARTS = [
  { name: 'schedules', reads: SIMULATOR, lane: 'computes', what: 'a million schedules, and 20,000 with the real store code', commands: node('js/tools/prove.mjs', '--schedules', '1000000', '--store-schedules', '20000') },
  { name: 'shipped', reads: CODE, lane: 'computes', what: 'the same traces from a build without the feature that plants bugs', same: /^trace of /,
    commands: [['cargo', 'run', '--locked', '--quiet', '--manifest-path', 'tests/shipped/Cargo.toml'], ['cargo', 'test', '--locked', '--workspace', '--test', 'simulation', 'fifty', '--', '--nocapture']] },
  ...FACES.map((part) => ({ name: `faces-${part}`, reads: PACKAGE, lane: 'computes', what: `${EACH} of 100000 schedules of the npm package`,
    commands: node('tests/faces/run.mjs', '--first', String((part - 1) * EACH), '--schedules', String(EACH)) })),
  { name: 'model', reads: [...SIMULATOR, 'tests/model'], lane: 'computes', what: 'every interleaving, with more ticks', commands: node('js/tools/prove.mjs', 'model', '--long') },
  { name: 'mutants', reads: [...ONE_OBJECT, ...BUGS], lane: 'computes', what: 'each planted bug from 15 base seeds, but for those of epochs', commands: node('js/tools/prove.mjs', 'mutants', '--depth', 'core', '--depth', 'store', '--depth', 'shards') },
  { name: 'mutants-epochs', reads: [...NATIVE, ...BUGS, ...EPOCHS], lane: 'computes', what: 'each planted bug of epochs from 15 base seeds', commands: node('js/tools/prove.mjs', 'mutants', '--depth', 'epochs') },
  { name: 'epochs', reads: [...NATIVE, ...EPOCHS], lane: 'computes', what: '5,000 schedules against the layout of epochs', commands: [['cargo', 'test', '--locked', '--workspace', '--test', 'all', 'epochs::']], env: { EDGELECT_SCHEDULES: '5000' } },
  { name: 'fuzz', reads: CODE, lane: 'computes', what: 'every parser for a minute', commands: node('js/tools/fuzz.mjs'), needs: () => /nightly/.test(ask('rustup', ['toolchain', 'list']) ?? '') || 'no nightly toolchain' },
  { name: 'wasm', reads: CODE, lane: 'computes', what: 'conformance and all histories, in wasm', commands: node('js/tools/test.mjs', '--only', 'wasm'), env: inFull },
  ...ALONE.map((command, index) => ({ name: `alone-${index + 1}`, lane: 'computes', what: `\`${command}\` in a clone of its own`, commands: [['sh', '-c', command]], clone: true })),
  { name: 'live', reads: CODE, lane: 'waits', what: 'ten minutes of faults around real members', commands: node('tests/live/main.mjs', '--seconds', '600', '--seed', '5') },
  { name: 'slots', reads: CODE, lane: 'waits', what: '1,000 slots under each policy', commands: node('tests/live/main.mjs', '--slots', '1000', '--seed', '5') },
  { name: 'stores', reads: CODE, lane: 'waits', what: 'conformance and all histories, on real stores', commands: node('js/tools/test.mjs', '--only', 'stores'), env: inFull },
  // They measure, so nothing else may run.
  { name: 'figures', lane: 'waits', after: 'all', what: "the README's figures", commands: node('js/figures/index.mjs') },
];

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  if (values.list) return say(PARTS.map(({ name, what }) => `${name.padEnd(16)}${what}`).join('\n'));
  const wrong = values.only?.find((name) => !PARTS.some((part) => part.name === name));
  if (wrong !== undefined) throw new PlainError(`there is no part ${wrong}; see npm run test:long -- --list`);
  if (values.part !== undefined) return runPart(PARTS.find(({ name }) => name === values.part));
  await ensure(EVERYTHING);
  const parts = PARTS.filter(({ name }) => values.only?.includes(name) ?? true);
  const done = new Done(values.fresh ?? false);
  const results = new Map();
  for (const { name, needs = () => true } of parts) {
    const met = needs();
    if (met !== true) done.note(name, { outcome: `not run: ${met}`, tookMs: 0 });
    else if (done.passed(name)) console.log(`${name}: passed before, on the same code`);
    else continue;
    results.set(name, { passed: true, tookMs: 0 });
  }
  const ended = (name, { passed, tookMs }) => {
    done.note(name, { outcome: passed ? done.sameCode(name) : 'FAILED', tookMs });
    if (!passed) console.log(`${name} failed; its output is in ${path.relative(ROOT, logOf(name))}`);
  };
  const command = (name) => [process.execPath, 'js/tools/long.mjs', '--part', name];
  await new Lanes(parts, { keepGoing: true, env: process.env, logs: LOGS, command, results, ended }).run();
  const summary = summaryOf(parts, done);
  fs.writeFileSync(path.join(LOGS, 'summary.md'), summary);
  console.log(`\n${summary}`);
  return parts.every(({ name }) => done.fine(name)) ? 0 : 1;
}

const logOf = (name) => path.join(LOGS, `${name}.log`);

/** What became of the parts, each on the code that it reads. */
class Done {
  #file = inRoot(RECORD);
  #of = Object.fromEntries(PARTS.map((part) => [part.name, hashOf(part)]));
  #parts = {};
  commit = asked('rev-parse', '--short', 'HEAD').trim();

  constructor(fresh) {
    fs.mkdirSync(LOGS, { recursive: true });
    if (fresh || !fs.existsSync(this.#file)) return;
    const before = Object.entries(JSON.parse(fs.readFileSync(this.#file, 'utf8')));
    this.#parts = Object.fromEntries(before.filter(([name, { of }]) => of === this.#of[name]));
  }

  passed(name) {
    return this.#parts[name]?.outcome === 'passed';
  }

  fine(name) {
    return this.passed(name) || this.#parts[name]?.outcome.startsWith('not run');
  }

  get(name) {
    return this.#parts[name];
  }

  /** What to say of a part that has passed just now. */
  sameCode(name) {
    const now = hashOf(PARTS.find((part) => part.name === name));
    return now === this.#of[name] ? 'passed' : 'not counted: the code changed meanwhile';
  }

  note(name, what) {
    this.#parts[name] = { ...what, commit: this.commit, of: this.#of[name] };
    const partial = path.join(LOGS, 'long.json.partial');
    fs.writeFileSync(partial, `${JSON.stringify(this.#parts, undefined, 1)}\n`);
    fs.renameSync(partial, this.#file);
  }
}

/** Names the code that a part reads: its own lines above, and what git has of the files. */
function hashOf({ commands, env, clone = false, reads = EVERY_FILE }) {
  const hash = createHash('sha256').update(JSON.stringify({ commands, env, clone, reads }));
  const untracked = asked('ls-files', '--others', '--exclude-standard', '-z', '--', ...reads).split('\0').filter(Boolean);
  hash.update(asked('ls-files', '--stage', '--', ...reads)).update(asked('diff', '--', ...reads));
  for (const file of untracked) hash.update(file).update(fs.readFileSync(inRoot(file)));
  // A clone has what is committed and nothing else.
  if (clone) hash.update(asked('ls-tree', '-r', 'HEAD', '--', '.').split('\n').filter((line) => !line.endsWith(`\t${RECORD}`)).join('\n'));
  return hash.digest('hex');
}

function asked(...args) {
  const answer = ask('git', args);
  if (answer === undefined) throw new PlainError(`git ${args[0]} fails in ${ROOT}`);
  return answer;
}

async function runPart({ commands, env = {}, clone = false, same }) {
  const folder = clone ? newClone() : ROOT;
  const own = { ...process.env, ...(clone ? {} : { CARGO_TARGET_DIR: inRoot('target') }), ...env };
  const answers = new Set();
  try {
    for (const [program, ...args] of commands) {
      await told(program === NODE ? process.execPath : program, args, { cwd: folder, env: own }, (line) => {
        console.log(line);
        if (same?.test(line)) answers.add(line);
      });
    }
  } finally {
    if (clone) removePath(path.dirname(folder));
  }
  if (same && answers.size !== 1) throw new PlainError(`the commands print ${[...answers].join(' and ') || 'nothing to compare'}`);
  return 0;
}

async function told(program, args, options, onLine) {
  const child = spawnKept(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', lineReader(onLine));
  const code = await endOf(child);
  if (code !== 0) throw new PlainError(`${program} ended with ${code}`);
}

/** A clone of what is committed, with the installed tools, and without anything that was built. */
function newClone() {
  const folder = newFolder('alone');
  const clone = path.join(folder, 'edgelect');
  if (ask('git', ['clone', '--quiet', ROOT, clone]) === undefined) throw new PlainError(`git cannot clone ${ROOT}`);
  for (const name of ['.tools', 'node_modules']) fs.cpSync(inRoot(name), path.join(clone, name), { recursive: true, verbatimSymlinks: true });
  return clone;
}

function summaryOf(parts, done) {
  const table = parts.map(({ name, what }) => {
    const { outcome, commit, tookMs } = done.get(name);
    return `| ${name} | ${what} | ${outcome} | ${commit} | ${seconds(tookMs)} |`;
  });
  const details = parts.map(({ name }) => ({ name, rows: rowsOf(name) })).filter(({ rows }) => rows.length > 0);
  const head = [`# The long run of ${done.commit}, ${os.cpus().length} cores`, '', '| part | what | outcome | on | took |', '| --- | --- | --- | --- | ---: |'];
  return [...head, ...table, ...details.map(({ name, rows }) => `\n## ${name}\n\n${rows.join('\n')}`), ''].join('\n');
}

/** The rows of tables that a part has printed. */
function rowsOf(name) {
  if (!fs.existsSync(logOf(name))) return [];
  return fs.readFileSync(logOf(name), 'utf8').split('\n').filter((line) => line.startsWith('|'));
}

main(process.argv.slice(2)).then(exit, fail);
