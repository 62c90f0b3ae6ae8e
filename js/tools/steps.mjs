import fs from 'node:fs';
import path from 'node:path';
import { examples } from '../../tests/examples/examples.mjs';
import { readme } from '../../tests/readme/readme.mjs';
import { compileNative } from '../demo/fleet.mjs';
import { build } from './build.mjs';
import { runBounded } from './cleanup.mjs';
import { withJsStores } from './js-stores.mjs';
import { checkLicences } from './licences.mjs';
import { withMinistack } from './ministack.mjs';
import { FILE_LIMIT, LIVE, programFlags, recordNode, recordPassed } from './outcomes.mjs';
import { packageChecks } from './package.mjs';
import { HOST_NODE, NODE_24, ROOT, inRoot } from './paths.mjs';
import { PlainError, seconds } from './run.mjs';
import { buildRustWorkers } from './rust-worker.mjs';
import { runtimes } from './runtimes.mjs';
import { scenarios } from './scenarios.mjs';
import { withStore } from './seaweed.mjs';
import { bindgenBin, ensure } from './setup.mjs';
import { checkSizes } from './size.mjs';

const STEP_LIMIT_MS = 45 * 60_000;
// One file after another, on any number of cores: most of them start processes of their own.
const TESTS = ['--test', FILE_LIMIT, '--test-concurrency=1'];
const WASM = ['--target', 'wasm32-unknown-unknown'];
// These suites of tests/all.rs have a step of their own.
const OWN_STEP = ['planted::'];

/** The steps of `npm test`, in the order in which each lane takes them. One begins when those that it names in `after` have
 * passed: what mostly waits compiles nothing, and so is not kept from its leases by a compiler. */
export const STEPS = [
  { name: 'fmt', lane: 'computes', what: 'the formatting of the Rust code', run: fmt },
  { name: 'build', lane: 'computes', what: 'the wasm of the npm package and of the Worker', run: () => build() },
  { name: 'compile', lane: 'computes', what: 'every Rust test and example of this machine', run: compile },
  { name: 'rust-worker-build', lane: 'computes', after: ['build'], what: 'the example of a Rust Worker', run: buildRustWorkers },
  { name: 'native', lane: 'computes', after: ['compile'], what: 'the Rust tests but the simulation', run: native },
  { name: 'simulation', lane: 'computes', after: ['compile'], what: '20,000 seeded schedules, and 2,000 with the real store code', run: () => cargoTests(['simulation'], ['--nocapture']) },
  { name: 'planted', lane: 'computes', after: ['compile'], what: 'the planted bugs, each to be found by the simulator', run: () => cargoTests(['all'], ['planted::', '--nocapture']) },
  { name: 'faces', lane: 'computes', after: ['build'], what: 'the npm package in the simulated world: 2,000 schedules, and bugs planted in it, each to be found', run: faces },
  { name: 'model', lane: 'computes', after: ['compile'], what: 'every interleaving of two and three sessions, also with planted bugs', run: () => cargoTests(['model'], ['--nocapture']) },
  { name: 'wasm', lane: 'computes', after: ['build'], what: "the stores' conformance list and random histories, in wasm", run: wasm },
  { name: 'clippy', lane: 'computes', what: 'lints, natively and for each wasm build', run: clippy },
  { name: 'docs', lane: 'computes', what: "the documentation of the crate, with its examples, and of the package's types", run: docs },
  { name: 'tsc', lane: 'computes', after: ['build'], what: 'the types', run: () => command(NODE_24, [inRoot('node_modules/typescript/bin/tsc'), '--noEmit', '-p', 'js/tsconfig.json']) },
  { name: 'size', lane: 'computes', after: ['build'], what: 'the builds against their budgets', run: () => build().then(checkSizes) },
  { name: 'crate', lane: 'computes', after: ['compile'], what: 'the crate as crates.io gets it', run: crate },
  { name: 'licences', lane: 'computes', after: ['build'], what: 'the licences of all crates and npm packages', run: checkLicences },
  { name: 'node', lane: 'waits', after: ['build'], what: "the npm package on this machine's Node", run: () => withMinistack((env) => nodeTests(HOST_NODE, 'tests/js', { atOnce: 4, env })) },
  { name: 'worker', lane: 'waits', after: ['build'], what: 'the Worker in workerd', run: () => withMinistack((env) => nodeTests(NODE_24, 'tests/worker', { atOnce: 2, env })) },
  { name: 'package', lane: 'waits', after: ['build'], what: 'the package as it is installed: checkers, import, require, bundles, unref, providers', run: () => onPacked(packageChecks) },
  { name: 'stores', lane: 'waits', after: ['compile'], what: "the stores' conformance list, random histories and wrong set-ups, on real stores", run: stores },
  { name: 'rust', lane: 'waits', after: ['build', 'compile'], what: 'the native host, the native example beside a Node member, and the native command line', run: rust },
  { name: 'live', lane: 'waits', after: ['build'], what: 'one minute of kills, stops and a failing network around real members and a real store', run: live },
  { name: 'slots', lane: 'waits', after: ['build'], what: 'cron slots over three Workers and two Node members, each run as its policy says', run: slots },
  { name: 'rust-worker', lane: 'waits', after: ['rust-worker-build'], what: 'the example of a Rust Worker, and what it stands on, in workerd', run: rustWorker },
  { name: 'runtimes', lane: 'waits', after: ['build'], what: 'one suite on Node, Node 24, Deno, Bun and workerd', run: () => onPacked(runtimes) },
  { name: 'examples', lane: 'waits', after: ['build'], what: 'the examples: a Worker of somebody\'s own, Deno.cron, Bun.cron, a timer on Node, peers by TLS; what `edgelect new` writes', run: () => onPacked(examples) },
  { name: 'readme', lane: 'waits', after: ['build', 'compile'], what: 'the snippets and commands of README.md', run: () => onPacked(readme) },
  { name: 'figures', lane: 'waits', after: ['build'], what: "the limits of the README's figures, held in short", run: figures },
  { name: 'demo', lane: 'waits', after: ['build', 'compile'], what: 'npm start -- --once', run: () => command(process.execPath, ['js/tools/start.mjs', '--once']) },
  { name: 'scenarios', lane: 'waits', after: 'all', what: 'each numbered case has a test that passed', run: () => scenarios() },
];

/** Runs a command with its output shown; it fails after three quarters of an hour, so that nothing hangs for ever. */
async function command(program, args, more = {}) {
  const options = { cwd: ROOT, env: { ...process.env, ...more }, stdio: ['ignore', 'inherit', 'inherit'], limitMs: STEP_LIMIT_MS, graceMs: 5_000 };
  const { code, late } = await runBounded(program, args, options);
  if (code === 0) return;
  const why = late ? `was ended after ${seconds(STEP_LIMIT_MS)}` : `ended with ${code}`;
  throw new PlainError(`\`${[path.basename(program), ...args].join(' ')}\` ${why}`);
}

function cargo(args, more = {}) {
  return command('cargo', args, { CARGO_TARGET_DIR: inRoot('target'), ...more });
}

/** Runs Rust tests on this machine, and records those that carry a scenario's number. */
async function cargoTests(programs, libtestArgs = [], env = {}) {
  await cargo(['test', '--locked', '--workspace', ...programs.flatMap(programFlags), ...(libtestArgs.length > 0 ? ['--', ...libtestArgs] : [])], env);
  recordPassed(programs, libtestArgs);
}

/** Builds the native command line. */
const COMMAND_LINE = ['build', '--locked', '--bins', '--features', 'cli'];
/** For what waits, or is over at once: compiling takes longer. */
const UNOPTIMISED = { CARGO_PROFILE_DEV_OPT_LEVEL: '0' };
/** What computes next to nothing. */
const UNITS = ['lib', 'layers'];
/** The tests of what both command lines do; they take the native one where a variable names it. */
const BOTH_COMMAND_LINES = ['run', 'slot-command', 'status', 'operator'].map((name) => `tests/js/${name}.test.mjs`);

/** Packages of their own beside the crate; those in wasm have a step that builds them. */
const BESIDE = ['examples/native/Cargo.toml', 'js/tools/bindgen/Cargo.toml', 'tests/faces/Cargo.toml', 'tests/unplanned/Cargo.toml'];

async function fmt() {
  for (const manifest of ['Cargo.toml', ...BESIDE]) await cargo(['fmt', '--all', '--check', '--manifest-path', manifest]);
}

async function clippy() {
  await cargo(['clippy', '--locked', '--workspace', '--all-targets', '--features', 'cli', '--', '-D', 'warnings']);
  // Both builds that ship at once; each by itself is compiled by step build.
  await cargo(['clippy', '--locked', ...WASM, '--features', 'figures,worker', '--', '-D', 'warnings']);
}

async function compile() {
  for (const [programs, env] of [[['all', 'real', 'model', 'simulation'], {}], [UNITS, UNOPTIMISED]]) {
    await cargo(['test', '--locked', '--workspace', '--no-run', ...programs.flatMap(programFlags)], env);
  }
  await cargo(COMMAND_LINE, UNOPTIMISED);
  await compileNative();
}

async function native() {
  await cargoTests(UNITS, [], UNOPTIMISED);
  await cargoTests(['all'], OWN_STEP.flatMap((suite) => ['--skip', suite]));
  await cargoTests(['real'], ['stores::']);
}

async function faces() {
  const runner = 'tests/faces/run.mjs';
  await command(NODE_24, [runner, '--schedules', '2000']);
  await command(NODE_24, [runner, '--mutants']);
}

async function docs() {
  await cargo(['test', '--locked', '--doc']);
  for (const more of [[], ['--features', 'native'], [...WASM, '--features', 'workerd']]) {
    await cargo(['doc', '--locked', '--no-deps', ...more], { RUSTDOCFLAGS: '-D warnings' });
  }
  await command(NODE_24, ['js/tools/typedoc.mjs']);
}

// As `cargo publish --dry-run` does it, but without a network; it says that no tests are packed, which is meant.
function crate() {
  return cargo(['package', '--locked', '--offline', '--no-verify', '--allow-dirty', '--quiet']);
}

// All of them at once, on however few cores: most of it is waiting for answers. The histories load a store that is their own.
function stores() {
  return withStore((s3) => withMinistack((aws) => withJsStores((js) =>
    cargoTests(['real'], [`${LIVE}::`, '--nocapture', '--test-threads=16'], { ...s3, ...aws, ...js }))), { own: true });
}

async function wasm() {
  // The package's own storages stand on its wasm.
  await ensure(['runner'], () => build(['npm']));
  await withStore((s3) => cargo(['test', '--locked', ...WASM, '--features', 'js', '--test', 'wasm'], {
    ...s3,
    // Its histories are checked by computing, the more slowly the less it is optimised.
    CARGO_PROFILE_DEV_OPT_LEVEL: '1',
    // The runner takes the first Node that it finds, and Miniflare wants Node 24.
    PATH: `${path.dirname(NODE_24)}${path.delimiter}${process.env.PATH}`,
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER: bindgenBin('runner'),
  }), { own: true });
}

async function nodeTests(node, folder, { atOnce, env }) {
  const files = testsIn(folder);
  await build(folder === 'tests/worker' ? ['npm', 'worker'] : ['npm']);
  await withStore((store) => recordNode(command, node, files, { atOnce, env: { ...env, ...store } }));
}

function testsIn(folder) {
  const files = fs.readdirSync(inRoot(folder)).filter((name) => name.endsWith('.test.mjs')).map((name) => `${folder}/${name}`);
  if (files.length === 0) throw new PlainError(`there is no ${folder}/*.test.mjs to run`);
  return files;
}

async function onPacked(work) {
  await build(['npm']);
  await withStore((env) => work({
    endpoint: env.EDGELECT_TEST_ENDPOINT,
    bucket: env.EDGELECT_TEST_BUCKET,
    credentials: { accessKeyId: env.EDGELECT_TEST_ACCESS_KEY_ID, secretAccessKey: env.EDGELECT_TEST_SECRET_ACCESS_KEY },
  }));
}

async function rust() {
  await compileNative();
  await cargo(COMMAND_LINE, UNOPTIMISED);
  await build(['npm']);
  await withStore(async (env) => {
    await cargoTests(['real'], ['native::'], env);
    const files = [...testsIn('tests/native'), ...BOTH_COMMAND_LINES];
    await command(process.execPath, [...TESTS, ...files], { ...env, NATIVE_COMMAND_LINE: inRoot('target/debug/edgelect') });
  });
}

async function rustWorker() {
  await buildRustWorkers();
  await withStore((env) => command(NODE_24, [...TESTS, ...testsIn('tests/rust-worker')], env));
}

// Those that can break without another step seeing it, and that a busy machine measures well enough.
function figures() {
  return command(process.execPath, ['js/figures/index.mjs', '--quick', 'requests', 'failover', 'signature', 'fleet']);
}

async function live() {
  await build(['npm']);
  await command(process.execPath, [...TESTS, ...testsIn('tests/live')]);
  await command(process.execPath, ['tests/live/main.mjs']);
}

// What is drawn is the same each time, so that two runs that differ differ in what they met.
async function slots() {
  await build(['npm', 'worker']);
  await command(process.execPath, ['tests/live/main.mjs', '--slots', '100', '--seed', '5']);
}
