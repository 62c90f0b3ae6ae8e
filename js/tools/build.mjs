// Builds the npm package's wasm and its command line into js/dist/, and the Worker's wasm into build/worker/.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepPath, removePath } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { PlainError, fail, report, run, step } from './run.mjs';
import { bindgenBin, ensure, toTheirEnd } from './setup.mjs';
import { sizeLine } from './size.mjs';

const RUST = ['src', 'Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml'];
const TOOLS = ['package-lock.json', 'js/tools/build.mjs', 'js/tools/bindgen/Cargo.lock', 'js/tools/bindgen/src'];
const PACKAGED = ['edgelect.js', 'edgelect.d.ts', 'edgelect_bg.wasm', 'bytes.js'];
/** Files of the command line that are loaded by themselves. */
const CLI_ENTRIES = ['main', 'demo-member', 'guard', 'profile'];
const TARGETS = {
  npm: { folder: inRoot('js/dist'), files: PACKAGED, inputs: [...RUST, ...TOOLS], make: bindAndShrink, feature: 'js' },
  cli: {
    folder: inRoot('js/dist'), files: ['cli.js', ...CLI_ENTRIES.map((name) => `${name}.js`)],
    inputs: ['js/cli', 'js/demo/rules.mjs', 'src/cli', ...TOOLS],
    make: bundleCli, withNpm: true,
  },
  worker: {
    folder: inRoot('build/worker'), files: ['edgelect.js', 'edgelect_bg.wasm'], inputs: [...RUST, ...TOOLS],
    make: bindAndShrink,
  },
  // Signs one request at a time for `npm run figures`; built only when it asks, and in no package.
  figures: {
    folder: inRoot('build/figures/wasm'), files: ['edgelect.js', 'edgelect_bg.wasm'], inputs: [...RUST, ...TOOLS],
    make: bindAndShrink, byRequest: true,
  },
};
const ALL = Object.keys(TARGETS).filter((name) => !TARGETS[name].byRequest);
const LOCK = inRoot('build/lock');
const ARTIFACT = inRoot('target/wasm32-unknown-unknown/release/edgelect.wasm');
// Just the features that rustc's default wasm32 target declares, so that -Oz cannot reach for newer ones.
const WASM_FEATURES = ['bulk-memory', 'multivalue', 'mutable-globals', 'nontrapping-float-to-int', 'reference-types', 'sign-ext'];

/** Builds what is named, the whole package with every `npm`, and does nothing for one whose inputs have not changed. */
export async function build(wanted = ALL) {
  const names = Object.keys(TARGETS).filter((name) => wanted.includes(name) || (TARGETS[name].withNpm && wanted.includes('npm')));
  await toTheirEnd(Object.values(buildEach(names)));
}

/** Builds just these and gives a promise for each: one is made small while the next compiles, the patient ones with the
 * processor time that nobody else wants. */
export function buildEach(names, { patient = [] } = {}) {
  const ends = Object.fromEntries(names.map((name) => [name, Promise.resolve()]));
  const stale = names.filter((name) => !isFresh(name));
  if (stale.length === 0) return ends;
  const lock = takenLock();
  let turn = lock;
  for (const name of stale) {
    const options = { patient: patient.includes(name) };
    const compiled = turn.then(async () => (isFresh(name) ? undefined : { name, options, inputs: hashInputs(name), wasm: await compile(name, options) }));
    ends[name] = compiled.then(finish);
    turn = compiled;
  }
  Promise.allSettled(Object.values(ends)).then(() => removePath(LOCK));
  return ends;
}

async function finish(compiled) {
  // Another process was faster.
  if (compiled === undefined) return;
  const { name, inputs } = compiled;
  fs.rmSync(stampOf(name), { force: true });
  await TARGETS[name].make(compiled);
  // Written last: a build that was cut short leaves no stamp.
  fs.writeFileSync(stampOf(name), inputs);
}

const stampOf = (name) => inRoot(`build/${name}.stamp`);

function isFresh(name) {
  const { folder, files } = TARGETS[name];
  return files.every((file) => fs.existsSync(path.join(folder, file))) && readIfAny(stampOf(name)) === hashInputs(name);
}

// The builds leave their wasm at the same path, so another process would take the wrong file.
async function takenLock() {
  fs.mkdirSync(path.dirname(LOCK), { recursive: true });
  await step('Waiting for another build', async () => {
    while (!takeLock(LOCK)) await new Promise((resolve) => setTimeout(resolve, 200));
  });
  keepPath(LOCK);
}

function takeLock(lock) {
  try {
    fs.writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const owner = Number(readIfAny(lock));
  try {
    // A file still empty is one that its owner is about to fill.
    if (owner > 0) process.kill(owner, 0);
  } catch {
    fs.rmSync(lock, { force: true });
  }
  return false;
}

/** Compiles a wasm, if there is one in this target, and puts it where the next will not overwrite it. */
async function compile(name, { patient }) {
  if (TARGETS[name].make !== bindAndShrink) return undefined;
  await ensure(['rust']);
  await run(`Compiling the ${name} wasm (usually 20 s, ${name === 'worker' ? 2 : 1} min the first time)`, 'cargo',
    // The cdylib alone: beside an rlib, cargo leaves link-time optimisation out without a word.
    ['rustc', '--locked', '--release', '--lib', '--crate-type', 'cdylib', '--target', 'wasm32-unknown-unknown', '--features', TARGETS[name].feature ?? name],
    { env: { ...process.env, CARGO_TARGET_DIR: inRoot('target') }, patient });
  checkLinked(ARTIFACT);
  const wasm = inRoot(`build/${name}.wasm`);
  fs.copyFileSync(ARTIFACT, wasm);
  return wasm;
}

/** Refuses a wasm that parses URLs as browsers do: 65 KB of tables for international names, of which nothing here needs one. */
export function checkLinked(wasm) {
  if (!fs.readFileSync(wasm).includes('4idna')) return;
  throw new PlainError(`${path.relative(inRoot(), wasm)} contains crate idna: something parses a Url, such as Request::url() of crate worker`);
}

async function bindAndShrink({ name, wasm: compiled, options }) {
  const { folder } = TARGETS[name];
  const partial = inRoot(`build/${name}.partial`);
  fs.rmSync(partial, { recursive: true, force: true });
  fs.mkdirSync(partial, { recursive: true });
  // An instance that has trapped is replaced; see js/wasm.js and js/worker.js.
  await bind(name, [compiled, partial, 'edgelect', 'typescript', 'reset-state'], options);
  const wasm = path.join(partial, 'edgelect_bg.wasm');
  await ensure(['packages']);
  await run(`Shrinking the ${name} wasm (usually 10 s)`, NODE_24, [
    inRoot('node_modules/binaryen/bin/wasm-opt'), '-Oz',
    '--strip-debug', '--strip-producers', '--strip-target-features',
    ...WASM_FEATURES.map((feature) => `--enable-${feature}`), wasm, '-o', wasm,
  ], options);
  const bytes = fs.readFileSync(wasm);
  if (TARGETS[name].files.includes('bytes.js')) {
    fs.writeFileSync(path.join(partial, 'bytes.js'), `export default '${bytes.toString('base64')}';\n`);
  }
  fs.mkdirSync(folder, { recursive: true });
  // File by file: the folder of npm's has those of other targets as well.
  for (const file of fs.readdirSync(partial)) {
    fs.rmSync(path.join(folder, file), { recursive: true, force: true });
    fs.renameSync(path.join(partial, file), path.join(folder, file));
  }
  fs.rmdirSync(partial);
  fs.rmSync(compiled);
  report(sizeLine(name, wasm.replace(partial, folder)));
}

/** Runs `bind` of js/tools/bindgen. */
export async function bind(what, args, options) {
  await ensure(['bindgen']);
  await run(`Binding the ${what} wasm`, bindgenBin('bind'), args, options);
}

// Bundled, so that the package itself depends on nothing.
async function bundleCli() {
  await ensure(['packages']);
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const esbuild = await import('esbuild');
  const { folder } = TARGETS.cli;
  const bundled = await Promise.all(CLI_ENTRIES.map(async (name) => {
    const { metafile } = await esbuild.build({
      absWorkingDir: inRoot(),
      entryPoints: [`js/cli/${name}.js`],
      outdir: folder,
      bundle: true, platform: 'node', format: 'esm', target: 'node20', external: ['edgelect'],
      // Hardly a line of it is ours, and it is larger than all the rest.
      minify: name === 'profile',
      // commander asks for Node's modules by require(), which a module does not have.
      banner: { js: "import { createRequire as requireBeside } from 'node:module';\nconst require = requireBeside(import.meta.url);" },
      metafile: true, logLevel: 'warning',
    });
    return metafile.outputs;
  }));
  for (const [file, { inputs }] of bundled.flatMap(Object.entries)) {
    const packages = new Set(Object.keys(inputs).flatMap((input) => /.*(?:^|\/)(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []));
    const licences = new Map();
    for (const { name, text } of [...packages].map(licenceOf)) licences.set(text, [...(licences.get(text) ?? []), name]);
    for (const [text, names] of licences) fs.appendFileSync(inRoot(file), `\n/*! Contains ${names.join(', ')}.\n\n${text}\n*/\n`);
  }
  fs.copyFileSync(inRoot('js/cli/cli.js'), path.join(folder, 'cli.js'));
  fs.chmodSync(path.join(folder, 'cli.js'), 0o755);
}

// Their licences ask for their text to go where the code goes.
function licenceOf(folder) {
  const { name, version, license } = JSON.parse(fs.readFileSync(inRoot(folder, 'package.json'), 'utf8'));
  const file = fs.readdirSync(inRoot(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  // Ours is the same text.
  const from = file ? inRoot(folder, file) : license === 'Apache-2.0' && inRoot('LICENSE');
  if (!from) throw new PlainError(`${name} ${version} has no licence file, so it cannot be bundled`);
  return { name: `${name} ${version}`, text: fs.readFileSync(from, 'utf8').trim() };
}

function hashInputs(target) {
  const hash = createHash('sha256');
  const add = (file) => {
    if (fs.statSync(file).isDirectory()) {
      for (const name of fs.readdirSync(file).sort()) add(path.join(file, name));
    } else {
      hash.update(`${path.relative(inRoot(), file)}\0`).update(createHash('sha256').update(fs.readFileSync(file)).digest());
    }
  };
  for (const input of TARGETS[target].inputs) add(inRoot(input));
  return `${hash.digest('hex')}\n`;
}

function readIfAny(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

async function main(targets) {
  const unknown = targets.find((target) => !(target in TARGETS));
  if (unknown !== undefined) {
    throw new PlainError(`there is no build "${unknown}": name some of ${Object.keys(TARGETS).join(', ')}, or none for all`);
  }
  await ensure(['bindgen', 'packages'], () => build(targets.length > 0 ? targets : undefined));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2)).catch(fail);
