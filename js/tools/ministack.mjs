// An AWS of our own on loopback: ministack, which emulates S3, DynamoDB and Route 53. Empty at each start.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { endProcess, keepPath, removePath, spawnKept } from './cleanup.mjs';
import { MINISTACK } from './paths.mjs';
import { PlainError, lineReader } from './run.mjs';
import { freePorts } from './seaweed.mjs';

const HOST = '127.0.0.1';
const READY_MS = 30_000;
const ATTEMPTS = 3;
const TAIL_LINES = 30;

/** Starts it and resolves to `{ endpoint, accessKeyId, secretAccessKey, stop }` once it answers. */
export async function startMinistack() {
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

/** Runs the work beside one of its own, given to it as the variables that the tests read. */
export async function withMinistack(work) {
  const { endpoint, accessKeyId, secretAccessKey, stop } = await startMinistack();
  try {
    await work({
      EDGELECT_TEST_AWS_ENDPOINT: endpoint,
      EDGELECT_TEST_AWS_ACCESS_KEY_ID: accessKeyId,
      EDGELECT_TEST_AWS_SECRET_ACCESS_KEY: secretAccessKey,
    });
  } finally {
    await stop();
  }
}

async function startOnce() {
  const [port] = await freePorts(1);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-ministack-'));
  keepPath(folder);
  const stack = {
    endpoint: `http://${HOST}:${port}`,
    accessKeyId: `dev${randomBytes(6).toString('hex')}`,
    secretAccessKey: randomBytes(20).toString('hex'),
  };
  const { child, tail } = launch(folder, port);
  const stop = async () => {
    await endProcess(child);
    removePath(folder);
  };
  try {
    await ready(child, stack, tail);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...stack, stop };
}

function launch(folder, port) {
  // A bare environment, and nothing but what we ask of it: no other listener, no data of an earlier run.
  const env = {
    PATH: process.env.PATH, HOME: folder, TMPDIR: folder, PYTHONPATH: MINISTACK, PYTHONDONTWRITEBYTECODE: '1',
    GATEWAY_PORT: String(port), BIND_HOST: HOST, SERVICES: 's3,dynamodb,route53', IOT_MTLS_ENABLED: '0', SFTP_ENABLED: '0',
  };
  const child = spawnKept('python3', [path.join(MINISTACK, 'bin/ministack')], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
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

async function ready(child, { endpoint }, tail) {
  const deadlineMs = Date.now() + READY_MS;
  while (Date.now() < deadlineMs) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      throw new PlainError(`ministack ended while starting:\n${indent(tail)}`);
    }
    if (await answers(`${endpoint}/_ministack/health`)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new PlainError(`ministack was not ready within ${READY_MS / 1000} s:\n${indent(tail)}`);
}

async function answers(url) {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

function indent(lines) {
  return lines.map((line) => `  ${line}`).join('\n');
}
