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

export const variables = ({ credentials, ...store }, key, options) => ({ ...cleanEnv(), ...variablesOf({ ...store, ...credentials }, key, options), NO_COLOR: '1' });
