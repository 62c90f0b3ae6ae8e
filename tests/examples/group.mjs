// The group that an example runs in: a lease object of its own, and the variables that name it.
import { cleanEnv } from '../../js/tools/pack.mjs';
import { variablesOf } from '../../js/tools/variables.mjs';

/** Makes a new group and gives its key. Slots up to some seconds from now count as claimed: nobody knows who ran them. */
export async function newGroup({ store: { endpoint, bucket, credentials } }, name, options) {
  // Loaded here: whoever lists the steps of a test has built nothing yet.
  const { Elector, S3Storage } = await import('edgelect');
  const lockfilePath = `${name}/${crypto.randomUUID()}.json`;
  const storage = new S3Storage({ endpoint, bucket, region: 'us-east-1', credentials });
  await new Elector({ storage, lockfilePath, ...options }).init();
  return lockfilePath;
}

/** The record of a group whose slots were claimed and done up to long ago. */
export const RAN_BEFORE = {
  leaderID: 'before', lastUpdated: '0001-01-01T00:00:00Z', term: 1, session: 'before', sequence: 1, leaseMs: 15000,
  acquired: '2026-01-01T00:00:00Z', slot: 1767225600000, slotDone: true, format: 1,
};

/** Puts a record where a lease object is, signed by another implementation than ours. */
export async function putRecord({ endpoint, bucket, credentials }, key, record) {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const { AwsClient } = await import('aws4fetch');
  const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1', retries: 0 });
  const url = `${endpoint}/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;
  const { ok, status } = await client.fetch(url, { method: 'PUT', body: JSON.stringify(record) });
  if (!ok) throw new Error(`PUT ${key}: ${status}`);
}

export const variables = ({ credentials, ...store }, key, options) => ({ ...cleanEnv(), ...variablesOf({ ...store, ...credentials }, key, options), NO_COLOR: '1' });
