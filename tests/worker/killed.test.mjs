// An event that the platform ends because its CPU is used up: V8 stops it wherever it is, and runs no `finally`. Node's `vm` does
// the same at its time limit, in a context that stands for the isolate.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { buildSync } from 'esbuild';
import { inRoot } from '../../js/tools/paths.mjs';

const CHILD = 'in-a-process-of-its-own';
/** What an event may compute: it ends only one that computes without end, or earlier where the machine is slow. */
const LIMIT_MS = 200;
/** Readings of the clock, and below 0 requests of a turn. */
const POINTS = [1, 2, 3, 4, 6, 8, 10, -1, -2, -3];
/** What the entry needs of a Worker's globals. No request is ever answered, and at the reading `killAt` of the clock it computes. */
const GLOBALS = `
  let clock = 1795244292000, readings = 0;
  globalThis.killAt = -1;
  const compute = () => { globalThis.reached = true; for (;;); };
  let asked = 0;
  globalThis.asks = () => { if (++asked === -killAt) compute(); };
  globalThis.Date = class extends Date { static now() { if (++readings === killAt) compute(); return clock; } };
  globalThis.setTimeout = () => 1;
  globalThis.clearTimeout = () => {};
  globalThis.listeners = {};
  globalThis.addEventListener = (name, listener) => (listeners[name] = listener);
  globalThis.queueMicrotask = (turn) => void Promise.resolve().then(turn).catch((error) => listeners.error({ error }));
  Promise.withResolvers ??= () => { const parts = {}; parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject })); return parts; };
  globalThis.crypto = { getRandomValues: (bytes) => bytes.fill(7) };
  globalThis.console = { log() {}, warn() {}, error() {} };
  globalThis.Headers = class { append() {} set() {} get() { return null; } };
  globalThis.AbortController = class { signal = {}; abort() {} };
  globalThis.Request = class { constructor(url) { Object.assign(this, { url, method: 'GET', headers: new Headers() }); } };
  globalThis.Response = class { constructor(body, { status }) { this.status = status; } };
  globalThis.fetch = () => new Promise(() => {});
  globalThis.env = { EDGELECT_LOCKFILE_PATH: 'leader.json', EDGELECT_ENDPOINT: 'https://s3.example', EDGELECT_BUCKET: 'jobs', EDGELECT_REGION: 'us-east-1',
    EDGELECT_ACCESS_KEY_ID: 'id', EDGELECT_SECRET_ACCESS_KEY: 'the-secret' };
`;
const built = buildSync({
  stdin: {
    contents: fs.readFileSync(inRoot('js/worker.js'), 'utf8').replace(/^import module .*$/m, 'const module = globalThis.wasm;').replace('export default', 'globalThis.entry ='),
    resolveDir: inRoot('js'),
  },
  bundle: true, format: 'iife', write: false, logLevel: 'silent',
}).outputFiles[0].text;
/** Where the wasm asks for a turn, before anybody has counted that. */
const ASKS = /(\{\s*)(queueMicrotask\(arg0\))/;
const ENTRY = built.replace(ASKS, '$1asks(); $2');
const WASM = fs.readFileSync(inRoot('build/worker/edgelect_bg.wasm'));

const newIsolate = () => {
  const context = vm.createContext({ bytes: WASM, TextDecoder, TextEncoder }, { microtaskMode: 'afterEvaluate' });
  const run = (code, limit) => vm.runInContext(code, context, limit);
  vm.runInContext(`${GLOBALS} globalThis.wasm = new WebAssembly.Module(bytes);`, context);
  vm.runInContext(ENTRY, context);
  return run;
};

/** What the isolate answers with after an event was ended at this reading of the clock, or where it asks for a turn the so many
 * times, if that is below 0; nothing where it hangs. */
const statusAfter = (reading) => {
  const run = newIsolate();
  run(`readings = asked = 0; killAt = ${reading};`);
  try {
    run("entry.scheduled({ cron: '* * * * *', scheduledTime: clock }, env)", { timeout: LIMIT_MS });
  } catch (error) {
    if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
  }
  run('killAt = 0');
  run("entry.fetch(new Request('https://worker.example/nothing'), env, { waitUntil() {} }).then(({ status }) => (globalThis.status = status))");
  return { killed: run('globalThis.reached'), status: run('globalThis.status') };
};

const WASM_OF_NPM = buildSync({ entryPoints: [inRoot('js/wasm.js')], bundle: true, format: 'iife', globalName: 'npm', write: false, logLevel: 'silent' }).outputFiles[0].text;

/** What calls into the npm package's wasm give after one was ended within it: in the same instant, and later, by an object of before. */
const callsAfter = (userAgent) => {
  const context = vm.createContext({ navigator: { userAgent } });
  const run = (code, limit) => vm.runInContext(code, context, limit);
  run(`${WASM_OF_NPM} let clock = 1795244292000, resets = 0;
    globalThis.Date = class extends Date { static now() { return clock; } };
    const wasm = new npm.Wasm({ __wbg_reset_state() { resets += 1; } });
    const told = (...call) => { try { return wasm.call(...call); } catch ({ code, cause }) { return [code, cause?.message ?? null]; } };`);
  try {
    run('wasm.call(() => { for (;;); }, 0)', { timeout: LIMIT_MS });
  } catch (error) {
    if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
  }
  const calls = ["told(() => 'at once')", "clock += 1, told(() => 'of before', 0)", "told(() => 'anew', 1)", 'told(() => told(() => 7))', '[resets, wasm.instance]'];
  return calls.map((call) => run(call));
};

// In a process of its own: Node's test runner does not survive an end that runs no `finally`.
if (process.argv[2] === CHILD) {
  const npm = ['Cloudflare-Workers', 'Node.js/24'].map(callsAfter);
  console.log(JSON.stringify({ ends: POINTS.map(statusAfter), npm }));
}
else {
  let told;
  const child = () => (told ??= JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), CHILD], { encoding: 'utf8', timeout: 120_000 })));

  test('the npm package on Workers has a new instance after an event was ended within the old one, and elsewhere no call is ended so', () => {
    const inside = ['EDGELECT_TRAP', 'called from inside the wasm'];
    assert.deepEqual(child().npm, [[inside, ['EDGELECT_TRAP', null], 'anew', inside, [1, 1]], [inside, inside, inside, inside, [0, 0]]]);
  });

  test('the isolate of an event that was ended in mid-turn answers the next one', () => {
    const { ends } = child();
    assert.match(built, ASKS);
    for (const sign of [1, -1]) assert.ok(ends.some(({ killed }, at) => killed && POINTS[at] * sign > 0), `none was killed: ${sign}`);
    assert.deepEqual(ends.map(({ status }) => status), POINTS.map(() => 404));
  });
}
