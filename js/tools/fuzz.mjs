// `npm run fuzz`: lets libFuzzer look for inputs that break the rules of tests/properties/rules. Not part of `npm test`: it
// needs a nightly toolchain, and what it finds is a matter of luck.
import fs from 'node:fs';
import path from 'node:path';
import { endOf, spawnKept } from './cleanup.mjs';
import { ROOT, inRoot } from './paths.mjs';
import { PlainError, ask, exit, fail, keepTail, lineReader, run, seconds, step } from './run.mjs';

const CARGO_FUZZ_VERSION = '0.13.2';
const CARGO_FUZZ = inRoot(`.tools/cargo-fuzz-${CARGO_FUZZ_VERSION}/bin/cargo-fuzz`);
const FUZZ = 'tests/fuzz';
// What libFuzzer adds to the corpus stays out of the repository.
const GROWTH = 'target/fuzz/corpus';
const MAX_SECONDS = 86_400;
// No input may take longer than this; all of them together take milliseconds.
const LIMITS = ['-timeout=10', '-rss_limit_mb=2048', '-print_final_stats=1'];
const TAIL_LINES = 60;

const TARGETS = new Map(fs.readdirSync(inRoot(FUZZ, 'fuzz_targets')).filter((name) => name.endsWith('.rs')).sort().map((name) => {
  const source = fs.readFileSync(inRoot(FUZZ, 'fuzz_targets', name), 'utf8');
  const lines = source.split('\n').filter((line) => line.startsWith('//! ')).map((line) => line.slice(4));
  return [name.slice(0, -3), lines.join(' ')];
}));

async function main() {
  const { Command, InvalidArgumentError } = await import('commander').catch(() => {
    throw new PlainError('the npm packages are missing: run `npm run setup`');
  });
  const count = (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= 1 && number <= MAX_SECONDS) return number;
    throw new InvalidArgumentError(`It must be a whole number of seconds from 1 to ${MAX_SECONDS}.`);
  };
  const target = (name, before = []) => {
    if (TARGETS.has(name)) return before.includes(name) ? before : [...before, name];
    throw new InvalidArgumentError(`There is no such target; there are ${[...TARGETS.keys()].join(', ')}.`);
  };
  const program = new Command('npm run fuzz --')
    .description('Lets libFuzzer look for inputs that break a rule of tests/properties/rules.\n'
      + `It begins with the seeds in ${FUZZ}/corpus; what it finds is kept in ${FUZZ}/artifacts.`)
    .option('--seconds <N>', 'how long each target runs', count, 60)
    .option('--target <NAME>', 'run this target only; repeat it for more', target)
    .option('--again <FILE>', 'run one finding or seed again instead; its folder names the target')
    .option('--list', 'list the targets and what their inputs are')
    .helpOption('--help', 'show this')
    .allowExcessArguments(false)
    .showHelpAfterError()
    .addHelpText('after', `
It needs a nightly toolchain and a C++ compiler, and installs cargo-fuzz ${CARGO_FUZZ_VERSION} under .tools/ by itself.
  npm run fuzz                                         every target, a minute each
  npm run fuzz -- --target records --seconds 3600      one target for an hour
  npm run fuzz -- --again ${FUZZ}/artifacts/records/crash-0123…`);
  const options = program.parse().opts();
  if (options.list) {
    for (const [name, what] of TARGETS) console.log(`${name.padEnd(12)}${what}`);
    return 0;
  }
  const again = options.again === undefined ? undefined : finding(options.again);
  if (again !== undefined && options.target !== undefined) {
    throw new PlainError('--again names its target by its folder: leave --target out');
  }
  needCompilers();
  await installCargoFuzz();
  const names = again === undefined ? options.target ?? [...TARGETS.keys()] : [again.target];
  for (const [place, name] of names.entries()) {
    await run(`Building ${name} (${place + 1} of ${names.length})`, CARGO_FUZZ, cargoFuzz('build', name), { env: env() });
  }
  return again === undefined ? fuzz(names, options.seconds) : repeat(again);
}

/** The target and the path of a finding or a seed. */
function finding(file) {
  const full = path.resolve(file);
  if (!fs.existsSync(full) || !fs.statSync(full).isFile()) {
    throw new PlainError(`--again ${file}: there is no such file; findings are in ${FUZZ}/artifacts, seeds in ${FUZZ}/corpus`);
  }
  const target = path.basename(path.dirname(full));
  if (TARGETS.has(target)) return { target, full };
  throw new PlainError(`--again ${file}: its folder, ${target}, is no target; there are ${[...TARGETS.keys()].join(', ')}`);
}

function needCompilers() {
  const toolchains = ask('rustup', ['toolchain', 'list']);
  if (toolchains === undefined) {
    throw new PlainError("nothing was fuzzed, because rustup is missing: run `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh`");
  }
  if (!toolchains.split('\n').some((line) => /^nightly(-(x86_64|aarch64)|\s|$)/.test(line))) {
    throw new PlainError('nothing was fuzzed, because there is no nightly toolchain: run `rustup toolchain install nightly --profile minimal`');
  }
  if (ask(process.env.CXX ?? 'c++', ['--version']) === undefined) {
    throw new PlainError('nothing was fuzzed, because there is no C++ compiler: install g++ or clang, or name one in CXX');
  }
}

async function installCargoFuzz() {
  if (ask(CARGO_FUZZ, ['--version'])?.trim() === `cargo-fuzz ${CARGO_FUZZ_VERSION}`) return;
  const folder = path.dirname(path.dirname(CARGO_FUZZ));
  const partial = `${folder}.partial`;
  fs.mkdirSync(inRoot('.tools'), { recursive: true });
  const target = inRoot('target/cargo-fuzz');
  await run(`Installing cargo-fuzz ${CARGO_FUZZ_VERSION} (about a minute, once)`, 'cargo',
    ['install', 'cargo-fuzz', '--version', CARGO_FUZZ_VERSION, '--locked', '--force', '--root', partial, '--target-dir', target]);
  // A folder has its final name only once it is complete.
  fs.rmSync(folder, { recursive: true, force: true });
  fs.renameSync(partial, folder);
  fs.rmSync(target, { recursive: true, force: true });
}

// The stack of a finding is libFuzzer's own; what matters is the rule that it broke.
function env() {
  return { ...process.env, RUSTUP_TOOLCHAIN: 'nightly', RUST_BACKTRACE: '0' };
}

// No sanitizer: there is no unsafe code in the crate, and without one an input takes a fraction of the time.
function cargoFuzz(command, target, ...more) {
  return [command, '--fuzz-dir', FUZZ, '--target-dir', 'target/fuzz', '--sanitizer', 'none', target, ...more];
}

async function fuzz(names, limitSeconds) {
  const results = [];
  for (const [place, name] of names.entries()) {
    const label = `Fuzzing ${name} for ${seconds(limitSeconds * 1000)} (${place + 1} of ${names.length})`;
    results.push(await step(label, (note) => fuzzOne(name, limitSeconds, note)));
  }
  const row = (...cells) => cells.map((cell, index) => (index === 0 ? cell.padEnd(12) : cell.padStart(12))).join('');
  console.log(`\n${row('target', 'executions', 'a second', 'edges', 'features', 'corpus')}  outcome`);
  for (const { name, stats, artifact, code } of results) {
    const cells = ['executions', 'perSecond', 'edges', 'features', 'corpus'].map((key) => stats[key] ?? '-');
    const outcome = code === 0 ? 'nothing found' : artifact === undefined ? 'FAILED' : 'FOUND';
    console.log(`${row(name, ...cells)}  ${outcome}`);
  }
  const failed = results.filter(({ code }) => code !== 0);
  for (const one of failed) tell(one);
  return failed.length === 0 ? 0 : 1;
}

function tell({ name, artifact, code, tail }) {
  console.error(`\n=== ${name} ended with ${code}\n${tail.map((line) => `  ${line}`).join('\n')}`);
  if (artifact === undefined) return;
  console.error(`\nRun it again:  npm run fuzz -- --again ${artifact}
Every run begins with it once it is copied to ${FUZZ}/corpus/${name}/ under a name that says what it is; a test beside the
code that it broke keeps it from coming back.`);
}

async function fuzzOne(name, limitSeconds, note) {
  const growth = `${GROWTH}/${name}`;
  fs.mkdirSync(inRoot(growth), { recursive: true });
  const { stats, ...ended } = await watch(
    cargoFuzz('run', name, growth, `${FUZZ}/corpus/${name}`, '--', `-max_total_time=${limitSeconds}`, ...LIMITS), note);
  return { name, stats, ...ended };
}

async function repeat({ target, full }) {
  const label = `Running ${path.relative(ROOT, full)}`;
  const { code, tail } = await step(label, (note) => watch(cargoFuzz('run', target, full, '--', ...LIMITS), note));
  console.log(code === 0 ? `${target}: the input breaks no rule` : `${tail.join('\n')}\n${target}: the input breaks a rule`);
  return code === 0 ? 0 : 1;
}

/** Runs libFuzzer and resolves to what it said: its counters, the file of a finding, its last lines. */
async function watch(args, note) {
  const stats = {};
  // The last lines; of a panic its message and nothing behind it.
  const { lines: tail, push } = keepTail(TAIL_LINES);
  let [panicked, told] = [false, false];
  let artifact;
  const child = spawnKept(CARGO_FUZZ, args, { cwd: ROOT, env: env(), stdio: ['ignore', 'pipe', 'pipe'] });
  const read = lineReader((line) => {
    const counters = /^#\d+\s.*cov: (\d+) ft: (\d+) corp: (\d+)\/.*exec\/s: (\d+)/.exec(line);
    if (counters !== null) {
      [, stats.edges, stats.features, stats.corpus] = counters;
      return note(line.replaceAll('\t', ' '));
    }
    const stat = /^stat::(\w+):\s+(\d+)/.exec(line);
    if (stat?.[1] === 'number_of_executed_units') stats.executions = stat[2];
    if (stat?.[1] === 'average_exec_per_sec') stats.perSecond = stat[2];
    const written = /Test unit written to (.+)$/.exec(line);
    if (written !== null) artifact = path.relative(ROOT, path.resolve(ROOT, written[1]));
    if (/^==\d+== ERROR/.test(line)) told ||= panicked;
    panicked ||= / panicked at /.test(line);
    if (told) return;
    if (/ panicked at /.test(line)) tail.length = 0;
    push(line);
  });
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  return { code: await endOf(child), stats, artifact, tail };
}

main().then(exit, fail);
