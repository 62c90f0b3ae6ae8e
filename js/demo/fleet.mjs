// Who takes part beside the Worker: each a process of its own that speaks the protocol of member.mjs.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NATIVE, inRoot } from '../tools/paths.mjs';
import { run } from '../tools/run.mjs';
import { ensure } from '../tools/setup.mjs';

const MEMBER = fileURLToPath(new URL('member.mjs', import.meta.url));

/** The members: `{ name, runtime, command, args, env, ready }`; `ready` resolves when a member has been compiled. */
export function fleet({ native }) {
  return [...scripted(MEMBER), { name: 'rust', runtime: 'native Rust', command: `${NATIVE}/native`, args: [], env: {}, ready: native }];
}

/** Compiles the programs of examples/native. */
export async function compileNative(options) {
  await ensure(['rust']);
  await run('Compiling the native member (usually 2 min the first time)', 'cargo', ['build', '--locked', '--manifest-path', 'examples/native/Cargo.toml'], {
    env: { ...process.env, CARGO_TARGET_DIR: inRoot('target/native') }, ...options,
  });
}

/** Those that run a script, which speaks the protocol of member.mjs. */
export function scripted(script) {
  const nodes = ['node-1', 'node-2'].map((name) => ({
    name, runtime: `Node ${process.versions.node}`, command: process.execPath, args: [script], env: {},
  }));
  return [...nodes, deno(script), bun(script)];
}

function deno(script) {
  return {
    name: 'deno',
    runtime: `Deno ${versionOf('deno')}`,
    command: inRoot('node_modules/.bin/deno'),
    // Its own modules need no permission to be read, and nothing else on the disk is read.
    args: [
      // The signal of a request then fires only where nobody waits for its answer any more.
      'run', '--unstable-no-legacy-abort', '--no-prompt', '--no-remote', '--no-lock', '--allow-net=127.0.0.1',
      '--allow-env=EDGELECT_*,LIVE_*,AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY', script,
    ],
    env: { DENO_DIR: inRoot('.tools/deno-cache'), DENO_NO_UPDATE_CHECK: '1' },
  };
}

function bun(script) {
  return {
    name: 'bun',
    runtime: `Bun ${versionOf('bun')}`,
    command: inRoot('node_modules/.bin/bun'),
    // Unasked it would fetch what it misses and read a .env file that is about another store.
    args: ['run', '--no-install', '--no-env-file', script],
    env: { DO_NOT_TRACK: '1', BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' },
  };
}

function versionOf(name) {
  return JSON.parse(fs.readFileSync(inRoot(`node_modules/${name}/package.json`), 'utf8')).version;
}
