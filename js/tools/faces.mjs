// Builds the simulator's world for the members of the npm package (tests/faces) into build/faces/.
import fs from 'node:fs';
import path from 'node:path';
import { bind, build } from './build.mjs';
import { inRoot } from './paths.mjs';
import { run } from './run.mjs';

const MANIFEST = inRoot('tests/faces/Cargo.toml');
const TARGET = inRoot('target/faces');
const OUT = inRoot('build/faces');

/** And the package and the Worker themselves, which stand on their own wasm; cargo knows what has not changed. */
export async function buildFaces() {
  await build(['npm', 'worker']);
  await run('Compiling the simulated world to wasm (usually 1 min the first time)', 'cargo',
    ['build', '--locked', '--release', '--target', 'wasm32-unknown-unknown', '--manifest-path', MANIFEST],
    { env: { ...process.env, CARGO_TARGET_DIR: TARGET } });
  const wasm = path.join(TARGET, 'wasm32-unknown-unknown/release/faces.wasm');
  const bound = path.join(OUT, 'faces_bg.wasm');
  if (fs.existsSync(bound) && fs.statSync(bound).mtimeMs > fs.statSync(wasm).mtimeMs) return;
  fs.mkdirSync(OUT, { recursive: true });
  await bind('simulated world', [wasm, OUT, 'faces']);
}
