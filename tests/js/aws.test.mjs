// The storages of AWS's services, over an AWS on loopback.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { DynamoDBStorage, Elector, EpochStorage, Route53Storage, S3Storage } from 'edgelect';
import { atEnd } from './ending.mjs';
import { within } from './group.mjs';
import { PATIENT, startAws } from './ministack.mjs';

const TABLE = 'coordination-table';
const BUCKET = 'epochs';
const DOMAIN = 'coordination.example.com';

let aws;
let hostedZoneId;
before(async () => {
  aws = await startAws();
  await aws.createTable(TABLE);
  await aws.createBucket(BUCKET);
  hostedZoneId = await aws.createZone(DOMAIN);
});

const member = (storage, lockfilePath, options = {}) => {
  const elector = new Elector({ storage, lockfilePath, ...PATIENT, ...options });
  atEnd(() => within(elector.stop()));
  return elector;
};

const freshShard = (name) => `${name}-${crypto.randomUUID()}`;

const table = (options = {}) => {
  const { endpoint, region, credentials } = aws;
  return new DynamoDBStorage({ endpoint, region, credentials, table: TABLE, ...options });
};

const zone = (options = {}) => {
  const { endpoint, credentials } = aws;
  return new Route53Storage({ endpoint, credentials, hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN, ...options });
};

const epochs = (options = {}) => {
  const { endpoint, region, credentials } = aws;
  return new EpochStorage({ endpoint, region, credentials, bucket: BUCKET, ...options });
};

for (const [name, { storage, stored }] of Object.entries({
  'DynamoDB': { storage: () => table(), stored: (shard) => aws.getItem(TABLE, shard) },
  'Route 53': { storage: () => zone(), stored: (shard) => aws.txt(hostedZoneId, `lock.${shard}.${DOMAIN}`) },
  'epochs': { storage: () => epochs(), stored: async (shard) => (await aws.keys(BUCKET)).filter((key) => key.startsWith(shard)) },
})) {
  test(`${name} leads, hands over with a higher token, and shows nothing of its credentials`, async () => {
    const shard = freshShard('lead');
    const own = storage();
    assert.deepEqual([Object.keys(own), JSON.stringify(own)], [[], '{}']);
    const first = member(own, shard, { serverId: 'a' });
    await first.init();
    await assert.rejects(first.init(), { code: 'EDGELECT_EXISTS' });
    const token = await first.lead(async (term) => {
      assert.ok(first.isLeader() && term.remaining() > 0);
      assert.ok(JSON.stringify(await stored(shard)).includes('a'), 'the store names who leads');
      const keepsLeases = { code: 'EDGELECT_CONFIG', field: 'checkpoint', message: /this storage keeps leases only/ };
      await assert.rejects(term.checkpoint(`${shard}-state`), keepsLeases);
      return term.token;
    });
    const second = member(own, shard, { serverId: 'b' });
    assert.ok((await second.lead((term) => term.token)) > token);
  });
}

test('an object in a bucket, and epochs, as Kubernetes-style electors write them', async () => {
  const { endpoint, region, credentials } = aws;
  const holders = [];
  for (const storage of [new S3Storage({ endpoint, region, credentials, bucket: BUCKET, format: 'kubernetes' }), epochs({ format: 'kubernetes' })]) {
    const shard = freshShard('kubernetes');
    const elector = member(storage, shard, { serverId: 'a' });
    await elector.init();
    holders.push(await elector.lead(async () => {
      const key = (await aws.keys(BUCKET)).findLast((one) => one.startsWith(shard));
      return JSON.parse(await aws.object(BUCKET, key)).holderIdentity;
    }));
  }
  assert.deepEqual(holders, ['a', 'a']);
  assert.throws(() => epochs({ format: 'yaml' }), { field: 'format' });
});
