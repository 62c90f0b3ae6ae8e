// Stores that JavaScript runs: Wrangler's local R2, and storages behind an S3 endpoint of the tests'.
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { endProcess, newFolder, removePath, spawnKept } from './cleanup.mjs';
import { NODE_24, ROOT } from './paths.mjs';
import { PlainError, lineReader } from './run.mjs';

const SERVE = 'tests/conformance/serve.mjs';
const READY_MS = 60_000;

/** Runs the work beside them, given to it as the variables that the tests read. Two processes share the SQLite file. */
export async function withJsStores(work) {
  const folder = newFolder('js-stores');
  const file = path.join(folder, 'shared.sqlite');
  const keys = [randomBytes(8).toString('hex'), randomBytes(20).toString('hex')];
  const started = [];
  try {
    started.push(await serve(folder, [file, ...keys]));
    started.push(await serve(folder, [file]));
    const [{ told }, { told: second }] = started;
    await work({
      EDGELECT_TEST_R2_ENDPOINT: told.r2,
      EDGELECT_TEST_R2_BUCKET: 'edgelect',
      EDGELECT_TEST_R2_ACCESS_KEY_ID: keys[0],
      EDGELECT_TEST_R2_SECRET_ACCESS_KEY: keys[1],
      EDGELECT_TEST_JS_ENDPOINT: told.storages,
      EDGELECT_TEST_JS_SECOND_ENDPOINT: second.storages,
    });
  } finally {
    for (const { child } of started) await endProcess(child);
    removePath(folder);
  }
}

async function serve(folder, args) {
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder };
  const child = spawnKept(NODE_24, [SERVE, ...args], { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'inherit'] });
  let timer;
  try {
    const line = await new Promise((resolve, reject) => {
      child.stdout.on('data', lineReader(resolve));
      child.once('close', () => reject(new PlainError(`${SERVE} ended while starting`)));
      timer = setTimeout(() => reject(new PlainError(`${SERVE} was not ready within ${READY_MS / 1000} s`)), READY_MS);
    });
    return { child, told: JSON.parse(line) };
  } catch (error) {
    await endProcess(child);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
