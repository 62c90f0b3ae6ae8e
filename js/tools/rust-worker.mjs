// Builds the Rust Worker of examples/ and the parts of tests/rust-worker/ into build/rust-worker/, by cargo and
// wasm-bindgen's library alone: worker-build fetches tools of its own at each build.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bind, checkLinked } from './build.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { fail, run } from './run.mjs';
import { ensure } from './setup.mjs';
import { sizeLine } from './size.mjs';

const WORKERS = [
  { name: 'rust_worker', what: 'the Rust Worker', folder: 'examples/rust-worker' },
  { name: 'parts', what: 'its parts', folder: 'tests/rust-worker' },
];
// With the profile of the crate's own builds, most of what they compiled is there already.
const TARGET = inRoot('target');
const OUT = inRoot('build/rust-worker');

/** Builds both; cargo knows what has not changed. */
export async function buildRustWorkers() {
  fs.mkdirSync(OUT, { recursive: true });
  for (const { name, what, folder } of WORKERS) {
    const manifest = inRoot(folder, 'Cargo.toml');
    await run(`Checking the form of ${what}`, 'cargo', ['fmt', '--check', '--manifest-path', manifest]);
    await run(`Compiling ${what}`, 'cargo',
      ['build', '--locked', '--release', '--target', 'wasm32-unknown-unknown', '--manifest-path', manifest],
      { env: { ...process.env, CARGO_TARGET_DIR: TARGET } });
    const wasm = path.join(TARGET, `wasm32-unknown-unknown/release/${name}.wasm`);
    checkLinked(wasm);
    await bind(name, [wasm, OUT, name]);
  }
}

/** Says what the example weighs as it came, and as it would be uploaded. */
async function weigh() {
  const [wasm, small] = ['rust_worker_bg.wasm', 'rust_worker_small.wasm'].map((name) => path.join(OUT, name));
  await run('Shrinking the Rust Worker', NODE_24, [inRoot('node_modules/binaryen/bin/wasm-opt'), '-Oz', '--all-features', '--strip-debug', wasm, '-o', small]);
  for (const file of [wasm, small]) console.log(sizeLine('rust-worker', file));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  ensure(['bindgen', 'packages']).then(buildRustWorkers).then(weigh).catch(fail);
}
