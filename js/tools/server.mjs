// A server of our own on loopback, a process in a folder of its own that goes with it: another port at each start.
import { randomInt } from 'node:crypto';
import net from 'node:net';
import { endProcess, keepPath, newFolder, removePath, spawnKept } from './cleanup.mjs';
import { PlainError, keepTail, lineReader } from './run.mjs';

export const HOST = '127.0.0.1';
const ATTEMPTS = 3;
const FIRST_PORT = 10_000;
const LAST_PORT = 31_999;
const PORT_TRIES = 1_000;
const TAIL_LINES = 30;

/**
 * Starts a server and resolves, once it is ready, to what `describe` has `given` and `stop`.
 * @param describe from `{ folder, ports }` to `{ command, args, env, given, isReady }`; and, where there are any, `left`: paths that it
 *   leaves elsewhere, and `masked`: what its output must not show
 */
export async function startServer({ name, portCount = 1, readyMs, describe }) {
  let lastError;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      return await startOnce({ name, portCount, readyMs, describe });
    } catch (error) {
      // Most often another process took a port between our look and its start.
      lastError = error;
    }
  }
  throw lastError;
}

async function startOnce({ name, portCount, readyMs, describe }) {
  const ports = await freePorts(portCount);
  const folder = newFolder(name.toLowerCase());
  const { command, args, env, given, isReady, left = [], masked } = describe({ folder, ports });
  for (const one of left) keepPath(one);
  // A bare environment: settings of somebody else's store must not reach this one.
  const child = spawnKept(command, args, { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const tail = keepTail(TAIL_LINES);
  const read = lineReader((line) => tail.push(masked === undefined ? line : line.replaceAll(masked, '[secret]')));
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.once('error', (error) => tail.push(error.message));
  const stop = async () => {
    // The data is thrown away, so there is nothing that a polite end would save.
    await endProcess(child);
    for (const one of [folder, ...left]) removePath(one);
  };
  try {
    await ready(child, { name, readyMs, isReady, tail });
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...given, stop };
}

async function ready(child, { name, readyMs, isReady, tail }) {
  const deadlineMs = Date.now() + readyMs;
  let answer = 'nothing answered';
  while (Date.now() < deadlineMs) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      throw new PlainError(`${name} ended while starting:\n${tail.shown()}`);
    }
    // An error is an answer that did not come.
    const status = await isReady().then((response) => response.status, () => undefined);
    if (status === 200) return;
    if (status !== undefined) answer = `it answered ${status}`;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new PlainError(`${name} was not ready within ${readyMs / 1000} s (${answer}):\n${tail.shown()}`);
}

/** Ports that are free now and differ. They lie below those that systems give to outgoing connections, so that none of
 * these takes one before the process that is to listen there. */
export async function freePorts(count) {
  const ports = new Set();
  for (let tries = 0; ports.size < count; tries += 1) {
    if (tries >= PORT_TRIES) throw new PlainError(`fewer than ${count} ports between ${FIRST_PORT} and ${LAST_PORT} are free on ${HOST}: end what listens there, then run it again`);
    const port = randomInt(FIRST_PORT, LAST_PORT + 1);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, HOST, () => server.close(() => resolve(true)));
  });
}
