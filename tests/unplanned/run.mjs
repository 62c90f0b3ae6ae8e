// `node tests/unplanned/run.mjs`: bugs in Rust that nobody thought of. Each operator, condition, call and statement of the election and
// the stores is changed, one at a time, in one build; what no ring of the tests finds is listed.
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parsed, say } from '../../js/tools/command.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { PlainError, exit, fail, run, seconds } from '../../js/tools/run.mjs';

const HELP = `node tests/unplanned/run.mjs                changes each place, and says which ring of the tests finds it; for hours
node tests/unplanned/run.mjs --file NAME    of files whose path has this in it, such as clock; repeat it for more
node tests/unplanned/run.mjs --every 10     each tenth change alone
node tests/unplanned/run.mjs --fresh        begins anew; interrupted, it goes on where it was
What was found is in build/unplanned/found.jsonl, the table in build/unplanned/table.md. Why no test has to find a change is in
tests/unplanned/explained.json.`;
const OPTIONS = { help: { type: 'boolean', short: 'h' }, file: { type: 'string', multiple: true }, every: { type: 'string' }, fresh: { type: 'boolean' } };
const FILES = /^src\/(election|age|clock|slots|store\/(s3|dynamodb|epochs|route53|service|heard))\b.*\.rs$/;
const OUT = inRoot('build/unplanned');
const COPY = path.join(OUT, 'copy');
/** A test that takes longer is left to the schedules, or to the ring of slow tests. */
const QUICK_MS = 400;
const SLOW_MS = 5_000;
/** So many times what a ring takes with nothing changed, and so long at least: who computes longer does not end. */
const LONGEST = 3;
const LONGEST_AT_LEAST_MS = 20_000;
const RINGS = ['unit tests', 'quick tests', '530 schedules', '2,400 schedules', 'slow tests'];
/** Why no test has to find a change, by its file, what was there and what is there in its place. */
const EXPLAINED = inRoot('tests/unplanned/explained.json');
/** So many schedules of epochs, in place of 500. */
const FEW = { EDGELECT_SCHEDULES: '100' };

const asked = promisify(execFile);
const lines = (text) => text.split('\n').filter(Boolean);

/** Copies what git knows, with every change in it; gives the changes. A copy of the same is kept, since it is compiled. */
async function changed() {
  const { stdout } = await asked('git', ['ls-files'], { cwd: inRoot('.'), maxBuffer: 1 << 24 });
  const known = lines(stdout);
  const copied = known.filter((one) => /^(src|tests|examples|js\/scenarios|docs|Cargo|rust-toolchain)/.test(one) && !one.startsWith('tests/unplanned/'));
  const hash = createHash('sha256');
  const tools = known.filter((one) => /^tests\/unplanned\/.*\.(rs|toml|lock)$/.test(one));
  for (const name of [...copied, ...tools]) hash.update(name).update(fs.readFileSync(inRoot(name)));
  const [of, mark] = [hash.digest('hex'), path.join(COPY, 'of')];
  const changes = () => JSON.parse(fs.readFileSync(path.join(COPY, 'unplanned.json'), 'utf8'));
  if (fs.existsSync(mark) && fs.readFileSync(mark, 'utf8') === of) return changes();
  fs.rmSync(mark, { force: true });
  fs.rmSync(path.join(COPY, 'src'), { recursive: true, force: true });
  for (const name of copied) {
    const to = path.join(COPY, name);
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.copyFileSync(inRoot(name), to);
  }
  const own = (name) => inRoot('tests/unplanned', name);
  fs.copyFileSync(own('switch.rs'), path.join(COPY, 'src/unplanned.rs'));
  fs.copyFileSync(own('schedules.rs'), path.join(COPY, 'examples/unplanned.rs'));
  const edit = (name, from, to) => {
    const text = fs.readFileSync(path.join(COPY, name), 'utf8');
    if (!text.includes(from)) throw new PlainError(`${name} has no ${from}`);
    fs.writeFileSync(path.join(COPY, name), text.replace(from, to));
  };
  edit('src/lib.rs', 'pub mod age;', '#[doc(hidden)]\npub mod unplanned;\npub mod age;');
  edit('Cargo.toml', '[[example]]\nname = "prove"', '[[example]]\nname = "unplanned"\n\n[[example]]\nname = "prove"');
  const tool = ['run', '--quiet', '--release', '--locked', '--manifest-path', own('Cargo.toml'), '--target-dir', path.join(OUT, 'tool'), '--'];
  const files = known.filter((name) => FILES.test(name));
  const without = [];
  for (;;) {
    for (const name of files) fs.copyFileSync(inRoot(name), path.join(COPY, name));
    await run('Changing each place', 'cargo', [...tool, COPY, JSON.stringify(without), ...files]);
    const wrong = await wrongLines();
    if (wrong.length === 0) {
      fs.writeFileSync(mark, of);
      return changes();
    }
    if (wrong.every((line) => without.includes(line))) throw new PlainError(`the compiler refuses ${wrong.join(', ')}`);
    without.push(...wrong);
  }
}

const TARGET = ['--locked', '--target-dir', path.join(OUT, 'target')];

/** Where the compiler does not take a change: texts can't be subtracted. */
async function wrongLines() {
  const { stdout } = await asked('cargo', ['build', '--example', 'unplanned', '--message-format', 'json', ...TARGET], { cwd: COPY, maxBuffer: 1 << 28 }).catch((error) => error);
  const errors = lines(stdout).map((line) => JSON.parse(line).message).filter((message) => message?.level === 'error');
  return [...new Set(errors.flatMap(({ spans }) => spans.filter((span) => span.is_primary).map((span) => `${span.file_name}:${span.line_start}`)))];
}

async function built() {
  await run('Compiling the changed code (usually 10 min the first time)', 'cargo', ['test', '--workspace', '--lib', '--test', 'all', '--example', 'unplanned', '--no-run', ...TARGET], { cwd: COPY });
  const { stdout } = await asked('cargo', ['test', '--workspace', '--lib', '--test', 'all', '--no-run', '--message-format', 'json', ...TARGET], { cwd: COPY, maxBuffer: 1 << 28 });
  const programs = lines(stdout).map((line) => JSON.parse(line)).filter(({ executable }) => executable);
  const program = (name) => programs.find(({ target: { name: own } }) => own === name).executable;
  return { unit: program('edgelect'), all: program('all'), schedules: path.join(OUT, 'target/debug/examples/unplanned') };
}

/** Runs one program, for so long at most; gives what found the change, or null. */
const found = ([program, ...args], number, longestMs, more = {}) => new Promise((resolve) => {
  const env = { ...process.env, ...FEW, UNPLANNED: String(number), ...more };
  const child = spawn(program, args, { cwd: path.join(COPY, 'tests/suites'), env, stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  const timer = setTimeout(() => child.kill('SIGKILL'), longestMs);
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
    if (/^test .*FAILED/m.test(text)) child.kill('SIGKILL');
  });
  child.on('close', (code, signal) => {
    clearTimeout(timer);
    const by = /^test (\S+) .*FAILED/m.exec(text)?.[1] ?? /^found by (.*)/m.exec(text)?.[1];
    resolve(code === 0 ? null : by ?? (signal ? 'it computes without end' : `it ended with ${code}`));
  });
});

/** The tests of `all` that are quick here, and the slower ones. */
async function testsOf(all) {
  const { stdout } = await asked(all, ['--list'], { cwd: path.join(COPY, 'tests/suites'), maxBuffer: 1 << 24 });
  const [quick, slow] = [[], []];
  for (const name of lines(stdout).filter((line) => line.endsWith(': test')).map((line) => line.slice(0, -6))) {
    const beganMs = performance.now();
    const how = { cwd: path.join(COPY, 'tests/suites'), timeout: SLOW_MS, killSignal: 'SIGKILL', env: { ...process.env, ...FEW } };
    const fine = await asked(all, ['--quiet', '--exact', name], how).then(() => true, () => false);
    if (fine) (performance.now() - beganMs < QUICK_MS ? quick : slow).push(name);
  }
  return { quick, slow };
}

async function main(args) {
  const { values } = parsed(args, OPTIONS, HELP);
  if (values.help) return say(HELP);
  fs.mkdirSync(OUT, { recursive: true });
  const all = await changed();
  const programs = await built();
  const state = path.join(OUT, 'found.jsonl');
  const of = createHash('sha256').update(fs.readFileSync(path.join(COPY, 'unplanned.json'))).digest('hex');
  const before = fs.existsSync(state) && !values.fresh ? lines(fs.readFileSync(state, 'utf8')).map((line) => JSON.parse(line)) : [];
  const known = new Map(before.filter((one) => one.of === of).map((one) => [one.number, one]));
  if (known.size === 0) fs.rmSync(state, { force: true });
  const { quick, slow } = await testsOf(programs.all);
  const rings = [
    [programs.unit], [programs.all, '--exact', ...quick], [programs.schedules, '450', '80'], [programs.schedules, '2000', '400'],
    [programs.all, '--exact', ...slow],
  ];
  const [comesBy, longestMs] = [[], []];
  for (const [at, ring] of rings.entries()) {
    const file = path.join(OUT, `came-by-${at}`);
    fs.rmSync(file, { force: true });
    const beganMs = performance.now();
    const why = await found(ring, 0, 600_000, { UNPLANNED_CAME_BY: file });
    longestMs.push(Math.max(LONGEST_AT_LEAST_MS, LONGEST * (performance.now() - beganMs)));
    if (why) throw new PlainError(`the unchanged code fails: ${why}`);
    say(`${RINGS[at]}: ${seconds(performance.now() - beganMs)}`);
    comesBy.push(new Set(lines(fs.readFileSync(file, 'utf8')).map(Number)));
  }
  const chosen = all.filter(({ file }, at) => at % Number(values.every ?? 1) === 0 && (values.file ?? ['']).some((part) => file.includes(part)));
  const left = chosen.filter(({ number }) => !known.has(number));
  say(`${chosen.length} changes, ${left.length} of them not tried yet`);
  const explained = JSON.parse(fs.readFileSync(EXPLAINED, 'utf8'));
  const why = ({ file, was, is }) => explained.find((one) => one.file === file && one.was === was && one.is === is)?.why;
  const works = async () => {
    for (let change = left.shift(); change; change = left.shift()) {
      const came = comesBy.map((one) => one.has(change.first));
      let [by, ring] = [null, null];
      for (let at = 0; at < rings.length && !by; at += 1) {
        if (came[at]) [by, ring] = [await found(rings[at], change.number, longestMs[at]), at];
      }
      const one = { ...change, of, by, ring: by ? ring : null, seen: came.includes(true) };
      known.set(change.number, one);
      fs.appendFileSync(state, `${JSON.stringify(one)}\n`);
      if (!by && !why(one)) say(`${one.seen ? 'MISSED' : 'UNSEEN'} ${one.file}:${one.line} ${one.kind}: ${one.was} -> ${one.is || 'nothing'}`);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, works));
  const table = tableOf(chosen.map(({ number }) => known.get(number)), why);
  fs.writeFileSync(path.join(OUT, 'table.md'), table);
  return say(table);
}

function tableOf(results, why) {
  const files = [...new Set(results.map(({ file }) => file))];
  const row = (name, of) => {
    const counts = RINGS.map((_, at) => of.filter(({ ring }) => ring === at).length);
    const left = of.filter((one) => !one.by);
    const explained = left.filter(why).length;
    const [missed, unseen] = [true, false].map((seen) => left.filter((one) => !why(one) && one.seen === seen).length);
    return `| ${[name, of.length, ...counts, explained, missed, unseen].join(' | ')} |`;
  };
  const head = `| file | changes | ${RINGS.join(' | ')} | explained | missed | where none comes by |\n|---|${'---:|'.repeat(RINGS.length + 4)}`;
  return [head, ...files.map((file) => row(file, results.filter((one) => one.file === file))), row('all', results), ''].join('\n');
}

main(process.argv.slice(2)).then(exit, fail);
