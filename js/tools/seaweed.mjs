// A SeaweedFS of our own on loopback: other ports, another bucket and other credentials at each start.
import { createHash, createHmac, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { SEAWEED } from './paths.mjs';
import { PlainError } from './run.mjs';
import { HOST, startServer } from './server.mjs';

export { freePorts } from './server.mjs';

const SHARED = 'EDGELECT_SHARED_STORE';
const READY_MS = 30_000;
const PORT_FLAGS = [
  'master.port', 'master.port.grpc', 'volume.port', 'volume.port.grpc', 'filer.port', 'filer.port.grpc',
  's3.port', 's3.port.grpc', 'admin.port', 'admin.port.grpc',
];

/** Starts a store and resolves once it answers to our own bucket and credentials. `actionsOf` gives, for the bucket, what
 * further identities may do; each has the secret that `secretOf` gives for its name. */
export const startSeaweed = (actionsOf) =>
  startServer({ name: 'SeaweedFS', portCount: PORT_FLAGS.length, readyMs: READY_MS, describe: (place) => describe(place, actionsOf) });

function describe({ folder, ports }, actionsOf) {
  const store = {
    endpoint: `http://${HOST}:${ports[PORT_FLAGS.indexOf('s3.port')]}`,
    bucket: newName(),
    accessKeyId: `dev${randomBytes(6).toString('hex')}`,
    secretAccessKey: randomBytes(20).toString('hex'),
  };
  const config = actionsOf && writeIdentities(folder, store, actionsOf(store.bucket));
  return {
    command: SEAWEED,
    args: [
      'mini', `-dir=${folder}`, `-ip=${HOST}`, `-ip.bind=${HOST}`, `-bucket=${store.bucket}`,
      ...PORT_FLAGS.map((flag, index) => `-${flag}=${ports[index]}`),
      '-s3.port.iceberg=0', '-s3.port.lance=0', '-webdav=false', '-admin.ui=false', '-master.telemetry=false',
      // Each bucket takes eight volumes. By default there are as many as would fit on the disk when they are full, so that 13 GB
      // hold 12 buckets, and the first object of the next one gets a 500.
      '-volume.max=10000',
      ...(config ? [`-s3.config=${config}`] : []),
    ],
    env: { AWS_ACCESS_KEY_ID: store.accessKeyId, AWS_SECRET_ACCESS_KEY: store.secretAccessKey },
    given: { ...store, secretOf: (name) => secretOf(store, name) },
    // Only the store that we started knows both the random bucket and the random key.
    isReady: () => ask('HEAD', store, 2_000),
    left: socketsOf(ports),
    masked: store.secretAccessKey,
  };
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
  const { status } = await ask('PUT', store, READY_MS);
  if (status !== 200) throw new PlainError(`the shared SeaweedFS answered ${status} to a new bucket`);
  return store;
}

function ask(method, store, limitMs) {
  const url = new URL(`/${store.bucket}`, store.endpoint);
  return fetch(url, { method, headers: sign(method, url, store), signal: AbortSignal.timeout(limitMs) });
}

const secretOf = (store, name) => createHash('sha256').update(`${store.secretAccessKey}${name}`).digest('hex');

function writeIdentities(folder, store, actions) {
  const identity = (name, accessKey, secretKey, may) => ({ name, credentials: [{ accessKey, secretKey }], actions: may });
  const identities = Object.entries(actions).map(([name, may]) => identity(name, name, secretOf(store, name), may));
  const file = path.join(folder, 's3.json');
  fs.writeFileSync(file, JSON.stringify({ identities: [identity('admin', store.accessKeyId, store.secretAccessKey, ['Admin']), ...identities] }));
  return file;
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
