// moto's emulation of AWS on loopback. Its Route 53 takes a second CREATE of a name that has a value: a store that the probe must
// refuse. Its IAM carries policies out. Empty at each start.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { endProcess, keepPath, removePath, spawnKept } from './cleanup.mjs';
import { MOTO } from './paths.mjs';
import { PlainError, lineReader } from './run.mjs';
import { freePorts } from './seaweed.mjs';

const HOST = '127.0.0.1';
// It is Python that compiles some hundred modules; a busy machine takes 15 s.
const READY_MS = 90_000;
const ATTEMPTS = 3;
const TAIL_LINES = 30;

/** Starts it and resolves to `{ endpoint, stop }` once it answers. It looks at no signature and no policy until `/moto-api/reset-auth`
 * says how many requests from now on it lets pass without. */
export async function startMoto() {
  let lastError;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      return await startOnce();
    } catch (error) {
      // Most often another process took the port between our look and its start.
      lastError = error;
    }
  }
  throw lastError;
}

async function startOnce() {
  const [port] = await freePorts(1);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-moto-'));
  keepPath(folder);
  const { child, tail } = launch(folder, port);
  const endpoint = `http://${HOST}:${port}`;
  const stop = async () => {
    await endProcess(child);
    removePath(folder);
  };
  try {
    await ready(child, endpoint, tail);
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint, stop };
}

function launch(folder, port) {
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, PYTHONPATH: MOTO };
  // -S: what the machine has of the same packages is not meant.
  const child = spawnKept('python3', ['-S', '-m', 'moto.server', '-H', HOST, '-p', String(port)], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const tail = [];
  const read = lineReader((line) => {
    tail.push(line);
    if (tail.length > TAIL_LINES) tail.shift();
  });
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.once('error', (error) => tail.push(error.message));
  return { child, tail };
}

async function ready(child, endpoint, tail) {
  const deadlineMs = Date.now() + READY_MS;
  const told = () => tail.map((line) => `  ${line}`).join('\n');
  while (Date.now() < deadlineMs) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      throw new PlainError(`moto ended while starting:\n${told()}`);
    }
    if (await answers(`${endpoint}/moto-api/`)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new PlainError(`moto was not ready within ${READY_MS / 1000} s:\n${told()}`);
}

async function answers(url) {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}
