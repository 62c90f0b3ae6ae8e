// The tests that carry a scenario's number, and what became of them: recorded by the steps of the same run, or got by
// running just these. A test that was skipped, ignored or never started has not passed.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { newFolder, removePath, runBounded } from './cleanup.mjs';
import { withJsStores } from './js-stores.mjs';
import { withMinistack } from './ministack.mjs';
import { HOST_NODE, NODE_24, ROOT, inRoot } from './paths.mjs';
import { PlainError, lineReader, seconds, step } from './run.mjs';
import { withStore } from './seaweed.mjs';

const REPORTER = fileURLToPath(new URL('outcomes-reporter.mjs', import.meta.url));
/** The suite of `tests/real.rs` that needs every store. */
export const LIVE = 'conformance_live';
const RECORD = 'EDGELECT_OUTCOMES';
const SUITE_LIMIT_MS = 5 * 60_000;
/** A file that hangs is ended and named, long before its step is. */
export const FILE_LIMIT = `--test-timeout=${10 * 60_000}`;
/** Cargo.toml's test programs whose suites are no modules of their own, and the suites of `tests/real.rs`; all others are of `tests/all.rs`. */
const PROGRAMS = ['layers', 'model', 'simulation', 'wasm'];
const REAL = [LIVE, 'native', 'stores'];
const NUMBERS = /^(?:c\d\d[_ ])+/;
const RUST_TEST = /#\[(?:\w+::)*test\](?:\s*#\[[^\]]*\])*\s*(?:pub )?(?:async )?fn (c\d\d_\w+)/g;
const NODE_TEST = /\btest\(\s*(['"`])(c\d\d (?:\\.|(?!\1).)*)\1/g;

/** What the steps of this run have recorded, each in its own process: the file, the name, and `passed`, `failed` or `skipped`. */
export const recorded = () => readLines(process.env[RECORD]);

/** Begins the record of a run anew. */
export function newRecord(file) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '');
  process.env[RECORD] = file;
}

function record(outcomes) {
  const file = process.env[RECORD];
  if (file !== undefined) fs.appendFileSync(file, outcomes.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

/** Every test whose name begins with a scenario's number, read from the source: none is run. */
export function numberedTests(root = ROOT) {
  const files = ['src', 'tests'].flatMap((folder) => fs.readdirSync(path.join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`));
  return files.sort().flatMap((file) => {
    if (/\.rs$/.test(file)) return named(root, file, RUST_TEST, 1);
    return /\.test\.mjs$/.test(file) ? named(root, file, NODE_TEST, 2) : [];
  });
}

function named(root, file, pattern, group) {
  const found = [...fs.readFileSync(path.join(root, file), 'utf8').matchAll(pattern)].map((match) => match[group]);
  const runs = /^(src\/.+|tests\/[^/]+\.rs|tests\/(js|worker)\/[^/]+)$/.test(file) || isModule(root, file);
  if (found.length > 0 && !runs) {
    throw new PlainError(`${file} has the scenario test ${found[0]}, and no suite of its own that could run it: move the test to src/, tests/NAME.rs, tests/js/ or tests/worker/`);
  }
  return found.map((name) => ({ file, name: name.replace(/\\(.)/g, '$1'), cases: casesOf(name) }));
}

// `tests/NAME/*.rs` are the modules of one suite where `tests/NAME.rs` is there; `tests/sim` is a world, and none.
const isModule = (root, file) => /^tests\/[^/]+\/[^/]+\.rs$/.test(file) && fs.existsSync(path.join(root, `${path.dirname(file)}.rs`));

/** The numbers that a test's name begins with: `c07_c08_…` has two. */
export function casesOf(name) {
  const numbers = NUMBERS.exec(name)?.[0] ?? '';
  return [...numbers.matchAll(/\d\d/g)].map(([number]) => Number(number));
}

/** Runs `node --test` through `command`, so many files at once, shows what it always shows, and records what became of each test. */
export async function recordNode(command, node, files, { atOnce, env }) {
  const { file, remove } = destination();
  try {
    await command(node, ['--test', FILE_LIMIT, `--test-concurrency=${atOnce}`, ...reporters(await usualReporter(node), file), ...files], env);
  } finally {
    record(readOutcomes(file));
    remove();
  }
}

function destination() {
  const folder = newFolder('outcomes');
  return { file: path.join(folder, 'outcomes.jsonl'), remove: () => removePath(folder) };
}

// Naming one reporter turns off the one that Node would have chosen.
function usualReporter(node) {
  const { stdout } = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' });
  return process.stdout.isTTY || Number(stdout.split('.')[0]) >= 23 ? 'spec' : 'tap';
}

const reporters = (shown, file) => [
  `--test-reporter=${shown}`, '--test-reporter-destination=stdout', `--test-reporter=${REPORTER}`, `--test-reporter-destination=${file}`,
];

function readLines(file) {
  if (file === undefined || !fs.existsSync(file)) return [];
  return fs.readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
}

function readOutcomes(file) {
  return readLines(file).map((one) => ({ ...one, file: path.relative(ROOT, one.file).split(path.sep).join('/') }));
}

/**
 * Records the scenario tests of Rust programs that have just passed as a whole: stable libtest tells the outcome of a single
 * test in text alone, but its exit code says that each test passed that was neither ignored nor filtered out.
 */
export function recordPassed(programs, libtestArgs) {
  const tests = numberedTests().filter(({ file }) => programs.includes(programOf(file)));
  const used = programs.filter((program) => tests.some(({ file }) => programOf(file) === program));
  if (used.length === 0) return;
  const all = listed(used, libtestArgs);
  const ignored = listed(used, [...libtestArgs, '--ignored']);
  const isIn = (list, { file, name }) => (list.get(programOf(file)) ?? []).some((one) => isTest(file, name, one));
  const run = tests.filter((test) => isIn(all, test));
  record(run.map((test) => ({ file: test.file, name: test.name, outcome: isIn(ignored, test) ? 'skipped' : 'passed' })));
}

/** The names of the tests in each program. */
function listed(programs, libtestArgs) {
  const args = [...cargoTest(programs), '--', ...libtestArgs, '--list', '--format', 'terse'];
  // Into one place, because cargo says on one stream whose names follow on the other.
  const { file, remove } = destination();
  const output = fs.openSync(file, 'w+');
  try {
    const env = { ...process.env, CARGO_TERM_COLOR: 'never' };
    const { status } = spawnSync('cargo', args, { cwd: ROOT, env, stdio: ['ignore', output, output] });
    const text = fs.readFileSync(file, 'utf8');
    if (status !== 0) throw new PlainError(`\`cargo ${args.join(' ')}\` failed:\n${text}`);
    return readList(text);
  } finally {
    fs.closeSync(output);
    remove();
  }
}

/** What `cargo test … -- --list` says, by program. */
export function readList(text) {
  const lists = new Map();
  let names;
  for (const line of text.split('\n')) {
    // Cargo names them from their package, and that of most suites is a folder of tests/.
    const program = /^\s*Running (?:unittests src\/(lib)\.rs|(?:tests|\.\.)\/(\S+)\.rs) \(/.exec(line);
    if (program !== null) lists.set(program[1] ?? program[2], (names = []));
    else names?.push(...(/^(\S+): test$/.exec(line)?.slice(1) ?? []));
  }
  return lists;
}

const cargoTest = (programs) => ['test', '--locked', '--workspace', '--target-dir', inRoot('target'), ...programs.flatMap(programFlags)];

/** The flags with which cargo runs a test program: `lib`, or one of Cargo.toml's. */
export const programFlags = (program) => (program === 'lib' ? ['--lib'] : ['--test', program]);

/** The test program that a Rust file is part of; a Node test file is its own. */
function programOf(file) {
  if (file.startsWith('src/')) return 'lib';
  if (!file.endsWith('.rs')) return file;
  const suite = /^tests\/([^/.]+)/.exec(file)[1];
  if (PROGRAMS.includes(suite)) return suite;
  return REAL.includes(suite) ? 'real' : 'all';
}

/** Whether libtest's full name is this function of this file. */
function isTest(file, name, full) {
  const path = file.replace(/^(src|tests)\/|\.rs$/g, '');
  const module = path === programOf(file) ? '' : `${path.replace(/\/mod$/, '').replaceAll('/', '::')}::`;
  return full.split('::').at(-1) === name && full.startsWith(module);
}

/** Runs these tests and nothing beside them; resolves to what became of each. */
export async function runTests(tests) {
  const programs = groupBy(tests, ({ file }) => programOf(file));
  const [cargo, node] = [true, false].map((rust) => [...programs].filter(([, [{ file }]]) => file.endsWith('.rs') === rust));
  const outcomes = [];
  if (tests.length === 0) return outcomes;
  if (node.length > 0) await build(node.some(([file]) => file.startsWith('tests/worker/')) ? ['npm', 'worker'] : ['npm']);
  const all = async (env) => {
    for (const [program, own] of cargo) outcomes.push(...await runProgram(program, own, env));
    for (const [file, own] of node) outcomes.push(...await runFile(file, own, env));
  };
  const live = tests.some(({ file }) => file.startsWith(`tests/${LIVE}`));
  await withStore((s3) => live ? withMinistack((aws) => withJsStores((js) => all({ ...s3, ...aws, ...js }))) : all(s3));
  return outcomes;
}

// Node 20 has no Map.groupBy.
function groupBy(list, keyOf) {
  const groups = new Map();
  for (const one of list) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}

async function runProgram(program, tests, env) {
  const args = [...cargoTest([program]), '--', ...tests.map(({ name }) => name)];
  const { code, output, errors } = await captured(`cargo test ${programFlags(program).join(' ')}`, 'cargo', args, { ...process.env, ...env });
  const outcomes = readLibtest(output);
  if (outcomes === undefined) throw new PlainError(`\`cargo test ${programFlags(program).join(' ')}\` ended with ${code} and without a result:\n${errors}${output}`);
  if (code !== 0) console.error(output);
  return tests.flatMap(({ file, name }) => {
    const own = outcomes.filter((one) => isTest(file, name, one.name));
    return own.map(({ outcome }) => ({ file, name, outcome }));
  });
}

/** What libtest's text says of each test; undefined where the lines and the sums below them disagree. */
export function readLibtest(output) {
  const words = { ok: 'passed', FAILED: 'failed', ignored: 'skipped' };
  const line = /^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*)?$/gm;
  const outcomes = [...output.matchAll(line)].map(([, name, word]) => ({ name, outcome: words[word] }));
  const sums = /^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;/m.exec(output)?.slice(1).map(Number);
  const count = (outcome) => outcomes.filter((one) => one.outcome === outcome).length;
  const agree = sums !== undefined && ['passed', 'failed', 'skipped'].every((outcome, index) => count(outcome) === sums[index]);
  return agree ? outcomes : undefined;
}

async function runFile(file, tests, env) {
  const told = destination();
  const pattern = `^(?:${tests.map(({ name }) => name.split('${')[0].replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|')})`;
  const args = ['--test', `--test-name-pattern=${pattern}`, ...reporters('spec', told.file), file];
  try {
    const node = file.startsWith('tests/worker/') ? NODE_24 : HOST_NODE;
    const { code, output } = await captured(file, node, args, { ...process.env, ...env });
    if (code !== 0) console.error(output);
    return readOutcomes(told.file).filter(({ name }) => tests.some((test) => name.startsWith(test.name.split('${')[0])));
  } finally {
    told.remove();
  }
}

/** Runs a command quietly under a label, whatever it ends with. */
function captured(label, program, args, env) {
  return step(label, async (note) => {
    const options = { cwd: ROOT, env, limitMs: SUITE_LIMIT_MS, graceMs: 5_000, onText: lineReader(note) };
    const { code, output, errors, late } = await runBounded(program, args, options);
    if (late) throw new PlainError(`${label} was ended after ${seconds(SUITE_LIMIT_MS)}:\n${errors}${output}`);
    return { code, output, errors };
  });
}
