// A SeaweedFS of our own on loopback: other ports, another bucket and other credentials at each start.
import { createHash, createHmac, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { endProcess, keepPath, removePath, spawnKept } from './cleanup.mjs';
import { SEAWEED } from './paths.mjs';
import { PlainError, lineReader } from './run.mjs';

const HOST = '127.0.0.1';
const SHARED = 'EDGELECT_SHARED_STORE';
const READY_MS = 30_000;
const ATTEMPTS = 3;
const TAIL_LINES = 30;
const PORT_FLAGS = [
  'master.port', 'master.port.grpc', 'volume.port', 'volume.port.grpc', 'filer.port', 'filer.port.grpc',
  's3.port', 's3.port.grpc', 'admin.port', 'admin.port.grpc',
];

/** Starts a store and resolves once it answers to our own bucket and credentials. `actionsOf` gives, for the bucket, what
 * further identities may do; each has the secret that `secretOf` gives for its name. */
export async function startSeaweed(actionsOf) {
  let lastError;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      return await startOnce(actionsOf);
    } catch (error) {
      // Most often another process took one of the ports between our look and its start.
      lastError = error;
    }
  }
  throw lastError;
}

/** Runs the work beside a store, given to it as the variables that the tests read: a bucket of its own in the store that is
 * shared, or else a store of its own. */
export async function withStore(work, { own = false } = {}) {
  const shared = own ? undefined : process.env[SHARED];
  if (shared !== undefined) return work(variables(await newBucket(JSON.parse(shared))));
  const store = await startSeaweed();
  try {
    return await work(variables(store));
  } finally {
    await store.stop();
  }
}

/** Runs the work beside one store for all that `withStore` does in the processes which get these variables. */
export async function withSharedStore(work) {
  const { endpoint, accessKeyId, secretAccessKey, stop } = await startSeaweed();
  try {
    return await work({ [SHARED]: JSON.stringify({ endpoint, accessKeyId, secretAccessKey }) });
  } finally {
    await stop();
  }
}

const variables = ({ endpoint, bucket, accessKeyId, secretAccessKey }) => ({
  EDGELECT_TEST_ENDPOINT: endpoint,
  EDGELECT_TEST_BUCKET: bucket,
  EDGELECT_TEST_ACCESS_KEY_ID: accessKeyId,
  EDGELECT_TEST_SECRET_ACCESS_KEY: secretAccessKey,
});

const newName = () => `edgelect-${randomBytes(6).toString('hex')}`;

async function newBucket(shared) {
  const store = { ...shared, bucket: newName() };
  const url = new URL(`/${store.bucket}`, store.endpoint);
  const { status } = await fetch(url, { method: 'PUT', headers: sign('PUT', url, store), signal: AbortSignal.timeout(READY_MS) });
  if (status !== 200) throw new PlainError(`the shared SeaweedFS answered ${status} to a new bucket`);
  return store;
}

/** Ports that are free now, chosen together so that they differ. */
export async function freePorts(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, HOST, () => resolve(server));
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

async function startOnce(actionsOf) {
  const ports = await freePorts(PORT_FLAGS.length);
  const portOf = (flag) => ports[PORT_FLAGS.indexOf(flag)];
  const store = {
    endpoint: `http://${HOST}:${portOf('s3.port')}`,
    bucket: newName(),
    accessKeyId: `dev${randomBytes(6).toString('hex')}`,
    secretAccessKey: randomBytes(20).toString('hex'),
  };
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-seaweed-'));
  keepPath(folder);
  for (const socket of socketsOf(ports)) keepPath(socket);
  const config = actionsOf && writeIdentities(folder, store, actionsOf(store.bucket));
  const { child, tail } = launch(folder, store, ports, config);
  const stop = async () => {
    // The data is thrown away, so there is nothing that a polite end would save.
    await endProcess(child);
    for (const left of [folder, ...socketsOf(ports)]) removePath(left);
  };
  try {
    await ready(child, store, tail);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...store, secretOf: (name) => secretOf(store, name), stop };
}

const secretOf = (store, name) => createHash('sha256').update(`${store.secretAccessKey}${name}`).digest('hex');

function writeIdentities(folder, store, actions) {
  const identity = (name, accessKey, secretKey, may) => ({ name, credentials: [{ accessKey, secretKey }], actions: may });
  const identities = Object.entries(actions).map(([name, may]) => identity(name, name, secretOf(store, name), may));
  const file = path.join(folder, 's3.json');
  fs.writeFileSync(file, JSON.stringify({ identities: [identity('admin', store.accessKeyId, store.secretAccessKey, ['Admin']), ...identities] }));
  return file;
}

function launch(folder, store, ports, config) {
  const args = [
    'mini', `-dir=${folder}`, `-ip=${HOST}`, `-ip.bind=${HOST}`, `-bucket=${store.bucket}`,
    ...PORT_FLAGS.map((flag, index) => `-${flag}=${ports[index]}`),
    '-s3.port.iceberg=0', '-s3.port.lance=0', '-webdav=false', '-admin.ui=false', '-master.telemetry=false',
    ...(config ? [`-s3.config=${config}`] : []),
  ];
  // A bare environment: settings of somebody else's store must not reach this one.
  const env = {
    PATH: process.env.PATH, HOME: folder, AWS_ACCESS_KEY_ID: store.accessKeyId, AWS_SECRET_ACCESS_KEY: store.secretAccessKey,
  };
  const child = spawnKept(SEAWEED, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const tail = [];
  const read = lineReader((line) => {
    tail.push(line.replaceAll(store.secretAccessKey, '[secret]'));
    if (tail.length > TAIL_LINES) tail.shift();
  });
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.once('error', (error) => tail.push(error.message));
  return { child, tail };
}

async function ready(child, store, tail) {
  const deadlineMs = Date.now() + READY_MS;
  let answer = 'nothing answered';
  while (Date.now() < deadlineMs) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      throw new PlainError(`SeaweedFS ended while starting:\n${indent(tail)}`);
    }
    const status = await headBucket(store);
    if (status === 200) return;
    if (status !== undefined) answer = `${store.endpoint} answered ${status} for our bucket`;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new PlainError(`SeaweedFS was not ready within ${READY_MS / 1000} s (${answer}):\n${indent(tail)}`);
}

// Only the store that we started knows both the random bucket and the random key.
async function headBucket(store) {
  const url = new URL(`/${store.bucket}`, store.endpoint);
  try {
    const response = await fetch(url, { method: 'HEAD', headers: sign('HEAD', url, store), signal: AbortSignal.timeout(2_000) });
    return response.status;
  } catch {
    return undefined;
  }
}

// SigV4 in short, for this one request: the real signer is what is being tested, so it cannot vouch for the store.
function sign(method, url, { accessKeyId, secretAccessKey }) {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = `${stamp.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const emptyHash = createHash('sha256').digest('hex');
  const canonical = [
    method, url.pathname, '', `host:${url.host}`, `x-amz-content-sha256:${emptyHash}`, `x-amz-date:${stamp}`, '',
    'host;x-amz-content-sha256;x-amz-date', emptyHash,
  ].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', stamp, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
  const key = scope.split('/').reduce(hmac, `AWS4${secretAccessKey}`);
  return {
    'x-amz-date': stamp,
    'x-amz-content-sha256': emptyHash,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${hmac(key, toSign).toString('hex')}`,
  };
}

// SeaweedFS leaves its sockets in /tmp when it is killed.
function socketsOf(ports) {
  return PORT_FLAGS.map((flag, index) => {
    const name = flag.replace('.port', '').replace('.', '-');
    return `/tmp/seaweedfs-${name}-${ports[index]}.sock`;
  });
}

function indent(lines) {
  return lines.map((line) => `  ${line}`).join('\n');
}
