// What the tests see of AWS's services, signed by another implementation than ours.
import { randomInt } from 'node:crypto';
import { AwsClient } from 'aws4fetch';
import { startMinistack } from '../../js/tools/ministack.mjs';
import { atEnd } from './ending.mjs';

// Python answers here, beside whatever else the machine does.
export const PATIENT = { leaderTimeout: 6_000, frequentInterval: 600, requestTimeout: 1_000, storeSkew: 500, follow: 'tight' };

export const createZone = async (endpoint, credentials, name) => {
  const client = new AwsClient({ ...credentials, service: 'route53', region: 'us-east-1', retries: 0 });
  const body = `<?xml version="1.0" encoding="UTF-8"?><CreateHostedZoneRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/">`
    + `<Name>${name}</Name><CallerReference>${crypto.randomUUID()}</CallerReference></CreateHostedZoneRequest>`;
  const response = await client.fetch(`${endpoint}/2013-04-01/hostedzone`, { method: 'POST', body });
  return /<Id>\/?(?:hostedzone\/)?([^<]+)<\/Id>/.exec(await response.text())[1];
};

/** The emulator that the step has started for all of its files, or one for this file alone. */
const startedAws = async () => {
  const { EDGELECT_TEST_AWS_ENDPOINT: endpoint, EDGELECT_TEST_AWS_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  return endpoint ? { endpoint, secretAccessKey, stop: async () => {} } : startMinistack();
};

/** An AWS account of the file's own, empty: `{ endpoint, credentials, dynamodb, … }`. It ends with the file. */
export const startAws = async () => {
  const { endpoint, secretAccessKey, stop } = await startedAws();
  atEnd(stop);
  // To ministack an access key of twelve digits is an account, and no account sees what another one has.
  const credentials = { accessKeyId: String(randomInt(1e11, 1e12 - 1)), secretAccessKey };
  const region = 'us-east-1';
  const signed = async (service, path, init) => {
    const client = new AwsClient({ ...credentials, service, region, retries: 0 });
    const response = await client.fetch(`${endpoint}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${service} ${init?.method ?? 'GET'} ${path}: ${response.status} ${text}`);
    return text;
  };
  const dynamodb = async (operation, body) =>
    JSON.parse(await signed('dynamodb', '/', {
      method: 'POST',
      headers: { 'x-amz-target': `DynamoDB_20120810.${operation}`, 'content-type': 'application/x-amz-json-1.0' },
      body: JSON.stringify(body),
    }));

  return {
    endpoint, credentials, region, dynamodb,

    /** A table as shardcoordinator's document makes it. */
    createTable: (TableName) =>
      dynamodb('CreateTable', {
        TableName,
        AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }, { AttributeName: 'sk', KeyType: 'RANGE' }],
        BillingMode: 'PAY_PER_REQUEST',
      }),

    createZone: (name) => createZone(endpoint, credentials, name),

    /** The values of a TXT record, as the API names them; nothing without one. */
    txt: async (zone, name) => {
      const text = await signed('route53', `/2013-04-01/hostedzone/${zone}/rrset`);
      const records = text.split('<ResourceRecordSet>').slice(1).filter((record) => record.includes(`<Name>${name}.</Name>`) && record.includes('<Type>TXT</Type>'));
      return records.flatMap((record) => [...record.matchAll(/<Value>([^<]*)<\/Value>/g)].map(([, value]) => value.replaceAll('&quot;', '"')));
    },

    createBucket: (name) => signed('s3', `/${name}`, { method: 'PUT' }),
    keys: async (bucket) => [...(await signed('s3', `/${bucket}?list-type=2`)).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key),
  };
};
