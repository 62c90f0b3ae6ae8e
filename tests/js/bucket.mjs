// What the tests see of the store, signed by another implementation than ours.
import { AwsClient } from 'aws4fetch';
import { Elector, S3Storage } from 'edgelect';

export { until } from './until.mjs';

const { EDGELECT_TEST_ENDPOINT: endpoint, EDGELECT_TEST_BUCKET: bucket } = process.env;
if (!endpoint || !bucket) {
  throw new Error('EDGELECT_TEST_ENDPOINT and EDGELECT_TEST_BUCKET are not set: run these tests by `npm test -- --only node`');
}

const { EDGELECT_TEST_ACCESS_KEY_ID: accessKeyId, EDGELECT_TEST_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
export const credentials = { accessKeyId, secretAccessKey };
export const bucketOptions = { endpoint, bucket, region: 'us-east-1', credentials };
export const variables = {
  EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: bucketOptions.region,
  EDGELECT_ACCESS_KEY_ID: accessKeyId, EDGELECT_SECRET_ACCESS_KEY: secretAccessKey,
};

const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1', retries: 0 });
const url = (key) => `${endpoint}/${bucket}/${key}`;

export const freshKey = (name) => `${name}/${crypto.randomUUID()}.json`;

export const newGroup = async (name, options) => {
  const lockfilePath = freshKey(name);
  await new Elector({ storage: new S3Storage(bucketOptions), lockfilePath, ...options }).init();
  return lockfilePath;
};

export const getObject = async (key) => {
  const response = await client.fetch(url(key));
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`GET ${key}: ${response.status}`);
  return { etag: response.headers.get('etag'), text: await response.text() };
};

export const getLease = async (key) => JSON.parse((await getObject(key)).text);

export const putObject = async (key, body) => {
  const response = await client.fetch(url(key), { method: 'PUT', body });
  if (!response.ok) throw new Error(`PUT ${key}: ${response.status}`);
};
