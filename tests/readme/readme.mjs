// The README's own lines: each snippet is run as it stands there, each command is one that a step runs.
import fs from 'node:fs';
import path from 'node:path';
import { cleanEnv, denoVariables, emptyFolder, runWell, uploadOf, withPacked } from '../../js/tools/pack.mjs';
import { HOST_NODE, NATIVE, inRoot } from '../../js/tools/paths.mjs';
import { PlainError, step } from '../../js/tools/run.mjs';
import { RAN_BEFORE, putRecord } from '../examples/group.mjs';
import { devBlock } from './dev-block.mjs';

const MOST_LINES = 125;
const README = fs.readFileSync(inRoot('README.md'), 'utf8');
const REPORT = 'export const writeReport = ({ token, signal }) => console.log(`wrote as term ${token}, aborted: ${signal.aborted}`);\n';
/** The same for a daemon, which then gets the signal that a deploy sends. */
const CONSUMED = REPORT.replace('=> console', '=> { console').replace(');\n', "); process.emit('SIGTERM'); };\n");
const DENO_RUN = ['run', '--quiet', '--no-prompt', '--allow-env', '--allow-net=127.0.0.1', 'lead.mjs'];
/** Every command in the README, and which step of `npm test` runs it. */
const COMMANDS = {
  'npx edgelect demo': 'node', 'npx edgelect doctor --lockfile-path leader/report.json': 'node', 'npx edgelect init --lockfile-path leader/report.json': 'node', 'npx edgelect new node my-job': 'examples', 
  'npx edgelect run --lockfile-path leader/a -- COMMAND': 'node', 'npx edgelect new worker my-job': 'examples',
  'npm start -- --once': 'demo', 'npm test': 'all of them', 'npm install edgelect': 'package', 
  'cargo add edgelect --features native': 'readme', 'npm run figures -- NAME': 'figures',
};
const CARGO_ADD = [...fs.readFileSync(inRoot('docs/native.md'), 'utf8').matchAll(/^cargo add .+$/gm)].map(([command]) => command);

const blocks = (kind) => [...README.matchAll(/^```(\w*)\n(.*?)^```$/gms)].filter(([, found]) => found === kind).map(([, , text]) => text);

/** Runs everything against a store; each snippet's term must have a higher token than the one before. */
export async function readme(store) {
  const lines = README.trimEnd().split('\n').length;
  if (lines > MOST_LINES) throw new PlainError(`README.md has ${lines} lines, at most ${MOST_LINES} are allowed`);
  commandsAreKnown();
  devBlock();
  const { endpoint, bucket, credentials } = store;
  const env = {
    ...cleanEnv(),
    EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: 'us-east-1', EDGELECT_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey, EDGELECT_LOCKFILE_PATH: 'leader/report.json',
  };
  await withPacked((packed) => runSnippets({ ...packed, env }, store));
  await replayed();
}

async function runSnippets(place, store) {
  const [nightly, worker, daemon, ...others] = blocks('js');
  if (others.length > 0) throw new PlainError('README.md has a JavaScript snippet that nothing runs');
  // The daemon's lines stand in the place of what follows `new Elector`.
  const [begin] = /^.*?new Elector\(.*?\n/s.exec(nightly);
  const lead = begin + daemon;
  // So that no slot is left out.
  await putRecord(store, 'leader/report.json', RAN_BEFORE);
  const snippets = {
    'cron on Node': () => onNode(place, 'nightly', nightly), 'a daemon on Node': () => onNode(place, 'lead', lead), 'a daemon on Deno': () => onDeno(place, lead),
    'a daemon on Bun': () => onBun(place, lead), Workers: () => onWorkers(place, worker), Rust: () => inRust(place),
  };
  let last = 0;
  for (const [name, run] of Object.entries(snippets)) {
    const output = await step(`The README's snippet for ${name}`, run);
    const term = Number(/^wrote as term (\d+)(, aborted: false)?$/m.exec(output)?.[1]);
    if (!(term > last)) throw new PlainError(`${name}: no higher term than ${last}: ${output}`);
    last = term;
    console.log(`ok  ${name}: term ${term}`);
  }
  const again = await runWell(HOST_NODE, ['nightly.mjs'], { cwd: path.join(place.users, 'node-nightly'), env: place.env });
  // It says nothing where another machine did it, so that cron sends no mail.
  if (again !== '') throw new PlainError(`the night ran twice: ${again}`);
}

function commandsAreKnown() {
  // Blocks without a language are commands or what they print; commands have no indentation.
  const inBlocks = blocks('').flatMap((text) => text.split('\n')).filter((line) => /^[A-Zn]\w*=?\S* \w/.test(line) && /\b(npm|npx|cargo|deno|bun|node)\b/.test(line));
  const inText = [...README.replace(/^```.*?^```$/gms, '').matchAll(/`((?:npm|npx|node|deno|bun|wrangler|cargo) [^`]+)`/g)].map(([, found]) => found);
  for (const command of [...inBlocks, ...inText]) {
    const known = Object.keys(COMMANDS).some((one) => command === one || (one.endsWith('NAME') && command.startsWith(one.slice(0, -4))));
    if (!known) throw new PlainError(`README.md names \`${command}\`, which no test runs`);
  }
  for (const command of Object.keys(COMMANDS)) {
    if (!README.includes(command.replace(/ NAME$/, ''))) throw new PlainError(`README.md does not name \`${command}\` any more`);
  }
}

/** A folder below the one that has the package, where every runtime finds it; or, for Deno, beside it. */
function folderFor(place, name, snippet, { above = place.users, main = 'lead' } = {}) {
  const folder = emptyFolder({ folder: above }, name);
  fs.writeFileSync(path.join(folder, `${main}.mjs`), snippet);
  fs.writeFileSync(path.join(folder, 'report.mjs'), main === 'lead' ? CONSUMED : REPORT);
  return folder;
}

const onNode = (place, main, snippet) =>
  runWell(HOST_NODE, [`${main}.mjs`], { cwd: folderFor(place, `node-${main}`, snippet, { main }), env: place.env });

const onBun = (place, snippet) => runWell(inRoot('node_modules/.bin/bun'), ['lead.mjs'], { cwd: folderFor(place, 'bun', snippet), env: place.env });

function onDeno(place, snippet) {
  const cwd = folderFor(place, 'deno', snippet.replace("'edgelect'", "'npm:edgelect'"), { above: place.folder });
  return runWell(inRoot('node_modules/.bin/deno'), DENO_RUN, { cwd, env: { ...place.env, ...denoVariables(place) } });
}

async function onWorkers(place, snippet) {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const { bundleIn, fireCron, startWorkerd } = await import('../../js/tools/miniflare.mjs');
  const out = await uploadOf(folderFor(place, 'worker', snippet, { main: 'worker' }), { main: 'worker.mjs' });
  let logged = '';
  const worker = startWorkerd({ ...bundleIn(out), r2Buckets: ['EDGELECT_R2'], onLog: (text) => (logged += `${text}\n`) });
  try {
    // The first slot of a new group would be left out.
    await (await worker.getR2Bucket('EDGELECT_R2')).put('leader/report.json', JSON.stringify(RAN_BEFORE));
    const outcome = await fireCron(worker);
    if (outcome !== 'ok') throw new PlainError(`the trigger ended with ${outcome}: ${logged}`);
  } finally {
    await worker.dispose();
  }
  return logged;
}

/** The program that the README names, as somebody pastes it: `main.rs` of an empty package, on the crates that docs/native.md adds. */
async function inRust({ env }) {
  if (!README.includes(CARGO_ADD[0])) throw new PlainError(`README.md does not add the crate by \`${CARGO_ADD[0]}\``);
  const snippet = fs.readFileSync(inRoot('examples/native/ten_lines.rs'), 'utf8');
  // Kept, so that the next run compiles nothing but what has changed.
  const folder = inRoot('target/readme-rust');
  fs.mkdirSync(path.join(folder, 'src'), { recursive: true });
  // The profile and the target folder of examples/native: most of what it stands on has been compiled for that.
  const [profile] = /^\[profile\.dev\]$.*/ms.exec(fs.readFileSync(inRoot('examples/native/Cargo.toml'), 'utf8'));
  fs.writeFileSync(path.join(folder, 'Cargo.toml'), `[package]\nname = "pasted"\nedition = "2024"\n\n[workspace]\n\n${profile}`);
  fs.writeFileSync(path.join(folder, 'src/main.rs'), snippet);
  fs.rmSync(path.join(folder, 'src/host.rs'), { force: true });
  // The versions that the repository is tested with.
  fs.copyFileSync(inRoot('examples/native/Cargo.lock'), path.join(folder, 'Cargo.lock'));
  const built = { ...process.env, CARGO_TARGET_DIR: inRoot('target/native') };
  for (const command of CARGO_ADD) {
    const [add, name, ...more] = command.split(' ').slice(1);
    const here = name === 'edgelect' ? ['--path', inRoot()] : [];
    await runWell('cargo', [add, name, '--offline', ...here, ...more], { cwd: folder, env: built });
  }
  await runWell('cargo', ['build', '--quiet', '--offline'], { cwd: folder, env: built, limitMs: 600_000 });
  return runWell(`${NATIVE}/pasted`, [], { env });
}

async function replayed() {
  const env = { ...process.env, CARGO_TARGET_DIR: inRoot('target') };
  for (const [what, args, expected] of [
    ['The replay command', '--seed core:7', /^seed core:7: no violation$/m],
    ['A few schedules of npm run prove', `--schedules 64 --record ${inRoot('target/readme-prove.json')} --fresh`, /^\| violations \| 0 \| 0 \|$/m],
  ]) {
    const output = await step(what, () => runWell('sh', ['-c', `npm run prove -- ${args}`], { cwd: inRoot(), env, limitMs: 600_000 }));
    if (!expected.test(output)) throw new PlainError(`${what} printed something else:\n${output}`);
  }
  console.log('ok  the replay command, and npm run prove');
}
