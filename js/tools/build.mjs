// Builds the npm package's two wasms and its command line into js/dist/, and the Worker's wasm into build/worker/.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepPath, removePath } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { PlainError, fail, run, step } from './run.mjs';
import { ensure, wasmBindgenBin } from './setup.mjs';
import { sizeLine } from './size.mjs';

const RUST = ['src', 'Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml'];
const TOOLS = ['package-lock.json', 'js/tools/build.mjs'];
const PACKAGED = ['edgelect.js', 'edgelect.d.ts', 'edgelect_bg.wasm', 'bytes.js'];
// In this order: a new wasm replaces its whole folder, and what else is in there is then missing and built again.
const TARGETS = {
  npm: { folder: inRoot('js/dist'), files: PACKAGED, inputs: [...RUST, ...TOOLS], make: () => buildWasm('npm') },
  // The less common stores, as `edgelect/aws`.
  aws: {
    folder: inRoot('js/dist/aws'), files: PACKAGED, inputs: [...RUST, ...TOOLS], make: () => buildWasm('aws'), withNpm: true,
  },
  cli: {
    folder: inRoot('js/dist'), files: ['cli.js', 'demo-member.js'], inputs: ['js/cli', 'js/demo/rules.mjs', ...TOOLS],
    make: bundleCli, withNpm: true,
  },
  worker: {
    folder: inRoot('build/worker'), files: ['edgelect.js', 'edgelect_bg.wasm'], inputs: [...RUST, ...TOOLS],
    make: () => buildWasm('worker'),
  },
  // Signs one request at a time for `npm run figures`; built only when it asks, and in no package.
  figures: {
    folder: inRoot('build/figures/wasm'), files: ['edgelect.js', 'edgelect_bg.wasm'], inputs: [...RUST, ...TOOLS],
    make: () => buildWasm('figures'), byRequest: true,
  },
};
const ALL = Object.keys(TARGETS).filter((name) => !TARGETS[name].byRequest);
const ARTIFACT = inRoot('target/wasm32-unknown-unknown/release/edgelect.wasm');
// Just the features that rustc's default wasm32 target declares, so that -Oz cannot reach for newer ones.
const WASM_FEATURES = ['bulk-memory', 'multivalue', 'mutable-globals', 'nontrapping-float-to-int', 'reference-types', 'sign-ext'];

/** Builds what is named, the whole package with every `npm`, and does nothing for one whose inputs have not changed. */
export async function build(wanted = ALL) {
  const names = Object.keys(TARGETS).filter((name) => wanted.includes(name) || (TARGETS[name].withNpm && wanted.includes('npm')));
  if (names.every(isFresh)) return;
  await withLock(async () => {
    for (const name of names) {
      if (isFresh(name)) continue;
      const inputs = hashInputs(name);
      fs.rmSync(stampOf(name), { force: true });
      await TARGETS[name].make();
      // Written last: a build that was cut short leaves no stamp.
      fs.writeFileSync(stampOf(name), inputs);
    }
  });
}

const stampOf = (name) => inRoot(`build/${name}.stamp`);

function isFresh(name) {
  const { folder, files } = TARGETS[name];
  return files.every((file) => fs.existsSync(path.join(folder, file))) && readIfAny(stampOf(name)) === hashInputs(name);
}

// Both builds leave their wasm at the same path, so a second one at the same time would take the wrong file.
async function withLock(work) {
  const lock = inRoot('build/lock');
  fs.mkdirSync(path.dirname(lock), { recursive: true });
  await step('Waiting for another build', async () => {
    while (!takeLock(lock)) await new Promise((resolve) => setTimeout(resolve, 200));
  });
  keepPath(lock);
  try {
    await work();
  } finally {
    removePath(lock);
  }
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

async function buildWasm(name) {
  const { folder } = TARGETS[name];
  const partial = inRoot(`build/${name}.partial`);
  fs.rmSync(partial, { recursive: true, force: true });
  fs.mkdirSync(partial, { recursive: true });
  await run(`Compiling the ${name} wasm`, 'cargo',
    // The cdylib alone: beside an rlib, cargo leaves link-time optimisation out without a word.
    ['rustc', '--locked', '--release', '--lib', '--crate-type', 'cdylib', '--target', 'wasm32-unknown-unknown',
      '--no-default-features', '--features', name],
    { env: { ...process.env, CARGO_TARGET_DIR: inRoot('target') } });
  await run(`Binding the ${name} wasm`, path.join(wasmBindgenBin(), 'wasm-bindgen'),
    // An instance that has trapped is replaced; see js/engine.js and js/worker.js.
    ['--target', 'web', '--experimental-reset-state-function', '--out-dir', partial, '--out-name', 'edgelect', ARTIFACT]);
  const wasm = path.join(partial, 'edgelect_bg.wasm');
  await run(`Shrinking the ${name} wasm`, NODE_24, [
    // Twice, with the control flow made anew between: 0.5 KB less after gzip -9 than once. The lowest kilobyte is the far
    // end of the stack, and whoever gets there traps the sooner for it: 0.4 KB less.
    inRoot('node_modules/binaryen/bin/wasm-opt'), '--low-memory-unused', '-Oz', '--flatten', '--rereloop', '-Oz',
    '--strip-debug', '--strip-producers', '--strip-target-features',
    ...WASM_FEATURES.map((feature) => `--enable-${feature}`), wasm, '-o', wasm,
  ]);
  const bytes = fs.readFileSync(wasm);
  if (TARGETS[name].files.includes('bytes.js')) {
    fs.writeFileSync(path.join(partial, 'bytes.js'), `export default '${bytes.toString('base64')}';\n`);
  }
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  fs.renameSync(partial, folder);
  console.log(sizeLine(name, wasm.replace(partial, folder)));
}

// Bundled, so that the package itself depends on nothing.
async function bundleCli() {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const esbuild = await import('esbuild');
  const { folder } = TARGETS.cli;
  const { metafile } = await esbuild.build({
    absWorkingDir: inRoot(),
    entryPoints: { cli: 'js/cli/main.js', 'demo-member': 'js/cli/demo-member.js' },
    outdir: folder,
    bundle: true, platform: 'node', format: 'esm', target: 'node20', external: ['edgelect'],
    // commander asks for Node's modules by require(), which a module does not have.
    banner: { js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);" },
    metafile: true, logLevel: 'warning',
  });
  for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
    const packages = new Set(Object.keys(inputs).flatMap((input) => /.*(?:^|\/)(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []));
    for (const name of packages) fs.appendFileSync(inRoot(file), licenceOf(name));
  }
  fs.chmodSync(path.join(folder, 'cli.js'), 0o755);
}

// Their licences ask for their text to go where the code goes.
function licenceOf(folder) {
  const { name, version } = JSON.parse(fs.readFileSync(inRoot(folder, 'package.json'), 'utf8'));
  const file = fs.readdirSync(inRoot(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new PlainError(`${name} ${version} has no licence file, so it cannot be bundled`);
  return `\n/*! Contains ${name} ${version}.\n\n${fs.readFileSync(inRoot(folder, file), 'utf8').trim()}\n*/\n`;
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

async function main(argument = 'all') {
  if (argument !== 'all' && !(argument in TARGETS)) {
    throw new PlainError(`there is no build "${argument}": use ${Object.keys(TARGETS).join(', ')} or all`);
  }
  await ensure({ seaweed: false });
  await build(argument === 'all' ? undefined : [argument]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv[2]).catch(fail);
