// The group that an example runs in: a lease object of its own, and the variables that name it.
import { cleanEnv } from '../../js/tools/pack.mjs';

export const bucketOf = ({ endpoint, bucket, credentials }) => ({ endpoint, bucket, region: 'us-east-1', credentials });

/** Makes a new group and gives its key. Slots up to some seconds from now count as claimed: nobody knows who ran them. */
export async function newGroup({ store }, name, options) {
  // Loaded here: whoever lists the steps of a test has built nothing yet.
  const { Elector, S3Storage } = await import('edgelect');
  const lockfilePath = `${name}/${crypto.randomUUID()}.json`;
  await new Elector({ storage: new S3Storage(bucketOf(store)), lockfilePath, ...options }).init();
  return lockfilePath;
}

export const variables = ({ endpoint, bucket, credentials }, key) => ({
  ...cleanEnv(),
  EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: 'us-east-1', EDGELECT_PATH_STYLE: 'true',
  EDGELECT_ACCESS_KEY_ID: credentials.accessKeyId, EDGELECT_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  EDGELECT_LOCKFILE_PATH: key, NO_COLOR: '1',
});
