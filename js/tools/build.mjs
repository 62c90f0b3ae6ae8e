// Builds the npm package's wasm into js/dist/ and the Worker's into build/worker/.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { keepPath, removePath } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { PlainError, fail, run, step } from './run.mjs';
import { ensure, wasmBindgenBin } from './setup.mjs';

const TARGETS = {
  npm: { folder: inRoot('js/dist'), files: ['edgelect.js', 'edgelect.d.ts', 'edgelect_bg.wasm', 'bytes.js'] },
  // The Worker's entry replaces an instance that has panicked; see js/worker.js.
  worker: { folder: inRoot('build/worker'), files: ['edgelect.js', 'edgelect_bg.wasm'], flags: ['--experimental-reset-state-function'] },
  // Signs one request at a time for `npm run figures`; built only when it asks, and in no package.
  figures: { folder: inRoot('build/figures/wasm'), files: ['edgelect.js', 'edgelect_bg.wasm'], byRequest: true },
};
const ALL = Object.keys(TARGETS).filter((name) => !TARGETS[name].byRequest);
const ARTIFACT = inRoot('target/wasm32-unknown-unknown/release/edgelect.wasm');
const INPUTS = ['src', 'Cargo.toml', 'Cargo.lock', 'rust-toolchain.toml', 'package-lock.json', 'js/tools/build.mjs'];
// Just the features that rustc's default wasm32 target declares, so that -Oz cannot reach for newer ones.
const WASM_FEATURES = ['bulk-memory', 'multivalue', 'mutable-globals', 'nontrapping-float-to-int', 'reference-types', 'sign-ext'];

/** Builds `npm`, `worker` or both, and does nothing for one whose inputs have not changed. */
export async function build(names = ALL) {
  if (names.every(isFresh)) return;
  await withLock(async () => {
    for (const name of names) {
      if (isFresh(name)) continue;
      const inputs = hashInputs();
      fs.rmSync(stampOf(name), { force: true });
      await buildOne(name, TARGETS[name]);
      // Written last: a build that was cut short leaves no stamp.
      fs.writeFileSync(stampOf(name), inputs);
    }
  });
}

const stampOf = (name) => inRoot(`build/${name}.stamp`);

function isFresh(name) {
  const { folder, files } = TARGETS[name];
  return files.every((file) => fs.existsSync(path.join(folder, file))) && readIfAny(stampOf(name)) === hashInputs();
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

async function buildOne(name, { folder, flags = [] }) {
  const partial = inRoot(`build/${name}.partial`);
  fs.rmSync(partial, { recursive: true, force: true });
  fs.mkdirSync(partial, { recursive: true });
  await run(`Compiling the ${name} wasm`, 'cargo',
    ['build', '--locked', '--release', '--lib', '--target', 'wasm32-unknown-unknown', '--features', name],
    { env: { ...process.env, CARGO_TARGET_DIR: inRoot('target') } });
  await run(`Binding the ${name} wasm`, path.join(wasmBindgenBin(), 'wasm-bindgen'),
    ['--target', 'web', '--out-dir', partial, '--out-name', 'edgelect', ...flags, ARTIFACT]);
  const wasm = path.join(partial, 'edgelect_bg.wasm');
  await run(`Shrinking the ${name} wasm`, NODE_24, [
    inRoot('node_modules/binaryen/bin/wasm-opt'), '-Oz', '--strip-debug', '--strip-producers', '--strip-target-features',
    ...WASM_FEATURES.map((feature) => `--enable-${feature}`), wasm, '-o', wasm,
  ]);
  const bytes = fs.readFileSync(wasm);
  if (name === 'npm') {
    fs.writeFileSync(path.join(partial, 'bytes.js'), `export default '${bytes.toString('base64')}';\n`);
  }
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  fs.renameSync(partial, folder);
  const kilobytes = (size) => `${(size / 1000).toFixed(1)} KB`;
  console.log(`${path.relative(inRoot(), wasm.replace(partial, folder))}: ${kilobytes(bytes.length)}, gzip -9 ${kilobytes(gzipSync(bytes, { level: 9 }).length)}`);
}

function hashInputs() {
  const hash = createHash('sha256');
  const add = (file) => {
    if (fs.statSync(file).isDirectory()) {
      for (const name of fs.readdirSync(file).sort()) add(path.join(file, name));
    } else {
      hash.update(`${path.relative(inRoot(), file)}\0`).update(createHash('sha256').update(fs.readFileSync(file)).digest());
    }
  };
  for (const input of INPUTS) add(inRoot(input));
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
