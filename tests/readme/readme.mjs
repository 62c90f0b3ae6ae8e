// The README's own lines: each snippet is run as it stands there, each command is one that a step runs.
import fs from 'node:fs';
import path from 'node:path';
import { cleanEnv, denoVariables, emptyFolder, runWell, uploadOf, withPacked } from '../../js/tools/pack.mjs';
import { HOST_NODE, NATIVE, inRoot } from '../../js/tools/paths.mjs';
import { PlainError, step } from '../../js/tools/run.mjs';
import { RAN_BEFORE } from '../examples/group.mjs';
import { devBlock } from './dev-block.mjs';

const MOST_LINES = 150;
const README = fs.readFileSync(inRoot('README.md'), 'utf8');
const REPORT = 'export const writeReport = ({ token, signal }) => console.log(`wrote as term ${token}, aborted: ${signal.aborted}`);\n';
const BUCKET = 'wrangler r2 bucket create edgelect';
const REPLAY = 'npm run prove -- --seed core:7';
const CARGO_ADD = ['cargo add edgelect --features native', 'cargo add tokio --features macros,rt'];
const DENO_RUN = 'deno run --allow-env --allow-net=ACCOUNT.r2.cloudflarestorage.com lead.mjs';
/** Every command in the README, and which step of `npm test` runs it. */
const COMMANDS = {
  'npx edgelect demo': 'node', 'npx edgelect doctor': 'node', 'npx edgelect new node reports': 'examples', 'npm start': 'demo', 'npm start -- --once': 'demo', 'npm test': 'all of them', [REPLAY]: 'readme',
  'npm install edgelect': 'package', 'node lead.mjs': 'readme', [DENO_RUN]: 'readme', [CARGO_ADD[0]]: 'readme', [CARGO_ADD[1]]: 'readme', 'bun add edgelect': 'package', 'bun lead.mjs': 'readme',
  'npm run dev': 'worker', 'wrangler dev': 'worker', 'npm run prove': 'readme', 'npm run test:long': 'none: it takes hours', 'npm run scenarios': 'scenarios', 'npm run live -- --slots 1000': 'slots', 'wrangler deploy': 'size', [BUCKET]: 'none: it needs an account; its name is held below', 'npm run figures -- NAME': 'figures',
};

const blocks = (kind) => [...README.matchAll(/^```(\w*)\n(.*?)^```$/gms)].filter(([, found]) => found === kind).map(([, , text]) => text);

/** Runs everything against a store; each snippet's term must have a higher token than the one before. */
export async function readme(store) {
  const lines = README.trimEnd().split('\n').length;
  if (lines > MOST_LINES) throw new PlainError(`README.md has ${lines} lines, at most ${MOST_LINES} are allowed`);
  commandsAreKnown();
  bucketIsTheOneBound();
  devBlock();
  await withPacked((packed) => runSnippets({ ...packed, env: environment(store) }));
  await replayed();
}

async function runSnippets(place) {
  const init = "import { Elector } from 'edgelect'; await new Elector({ lockfilePath: 'leader/report.json' }).init();";
  await runWell(HOST_NODE, ['--input-type=module', '-e', init], { cwd: place.users, env: place.env });
  const [node, deno, bun, worker, ...others] = blocks('js');
  if (others.length > 0) throw new PlainError('README.md has a JavaScript snippet that nothing runs');
  const snippets = {
    Node: () => onNode(place, node), Deno: () => onDeno(place, deno), Bun: () => onBun(place, bun),
    Workers: () => onWorkers(place, worker), Rust: () => inRust(place, blocks('rust')),
  };
  let last = 0;
  for (const [name, run] of Object.entries(snippets)) {
    const output = await step(`The README's snippet for ${name}`, run);
    const term = Number(/^wrote as term (\d+)(, aborted: false)?$/m.exec(output)?.[1]);
    if (!(term > last)) throw new PlainError(`${name}: no higher term than ${last}: ${output}`);
    last = term;
    console.log(`ok  ${name}: term ${term}`);
  }
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

function bucketIsTheOneBound() {
  const [, name] = /^bucket_name = "(.+)"$/m.exec(fs.readFileSync(inRoot('wrangler.toml'), 'utf8'));
  if (!BUCKET.endsWith(` ${name}`)) throw new PlainError(`README.md creates another bucket than ${name}, which wrangler.toml binds`);
}

const environment = ({ endpoint, bucket, credentials }) => ({
  ...cleanEnv(),
  EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: 'us-east-1', EDGELECT_PATH_STYLE: 'true',
  AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  EDGELECT_LOCKFILE_PATH: 'leader/report.json',
});

/** A folder below the one that has the package, where every runtime finds it; or, for Deno, beside it. */
function folderFor(place, name, snippet, above = place.users) {
  const folder = emptyFolder({ folder: above }, name);
  fs.writeFileSync(path.join(folder, 'lead.mjs'), snippet);
  fs.writeFileSync(path.join(folder, 'report.mjs'), REPORT);
  return folder;
}

const onNode = (place, snippet) => runWell(HOST_NODE, ['lead.mjs'], { cwd: folderFor(place, 'node', snippet), env: place.env });

const onBun = (place, snippet) => runWell(inRoot('node_modules/.bin/bun'), ['lead.mjs'], { cwd: folderFor(place, 'bun', snippet), env: place.env });

function onDeno(place, snippet) {
  const args = DENO_RUN.replace('ACCOUNT.r2.cloudflarestorage.com', '127.0.0.1').split(' ').slice(2);
  return runWell(inRoot('node_modules/.bin/deno'), ['run', '--quiet', '--no-prompt', ...args],
    { cwd: folderFor(place, 'deno', snippet, place.folder), env: { ...place.env, ...denoVariables(place) } });
}

async function onWorkers(place, snippet) {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const { bundleIn, fireCron, startWorkerd } = await import('../../js/tools/miniflare.mjs');
  const out = await uploadOf(folderFor(place, 'worker', snippet), { main: 'lead.mjs' });
  let logged = '';
  const worker = startWorkerd({ ...bundleIn(out), r2Buckets: ['BUCKET'], onLog: (text) => (logged += `${text}\n`) });
  try {
    // The first slot of a new group would be left out.
    await (await worker.getR2Bucket('BUCKET')).put('leader/report.json', JSON.stringify(RAN_BEFORE));
    const outcome = await fireCron(worker);
    if (outcome !== 'ok') throw new PlainError(`the trigger ended with ${outcome}: ${logged}`);
  } finally {
    await worker.dispose();
  }
  return logged;
}

/** The snippet as somebody pastes it: `main.rs` of an empty package, on the crates that the README's own commands add. */
async function inRust({ env }, [snippet, ...others]) {
  if (others.length > 0) throw new PlainError('README.md has a Rust snippet that nothing runs');
  const example = fs.readFileSync(inRoot('examples/native/ten_lines.rs'), 'utf8');
  if (example.replace(/^(\/\/!.*\n)+\n/, '') !== snippet) throw new PlainError('the Rust snippet of README.md is not what examples/native/ten_lines.rs says');
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
  const output = await step('The replay command', () => runWell('sh', ['-c', REPLAY], { cwd: inRoot(), env, limitMs: 600_000 }));
  if (!/^seed core:7: no violation$/m.test(output)) throw new PlainError(`the replay command ran no schedule:\n${output}`);
  const few = path.join(inRoot('target'), 'readme-prove.json');
  const proof = await step('A few schedules of npm run prove', () => runWell('sh', ['-c', `npm run prove -- --schedules 64 --record ${few} --fresh`], { cwd: inRoot(), env, limitMs: 600_000 }));
  if (!/^\| violations \| 0 \| 0 \|$/m.test(proof)) throw new PlainError(`npm run prove printed no summary:\n${proof}`);
  console.log('ok  the replay command, and npm run prove');
}
