// `edgelect/aws`: storages in a wasm of their own beside the package's, over an AWS on loopback.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EdgelectError, Elector, MemoryStorage } from 'edgelect';
import { DynamoDBStorage, EpochStorage, Route53Storage, S3Storage } from 'edgelect/aws';
import { initSync as initAws } from '../../js/dist/aws/edgelect.js';
import { fired, leads, stopAll, within } from './group.mjs';
import { startAws } from './ministack.mjs';
import { startProxy } from './proxy.mjs';
import { until } from './until.mjs';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

const TABLE = 'coordination-table';
// Python answers here, beside whatever else the machine does.
const PATIENT = { leaderTimeout: 6_000, frequentInterval: 600, requestTimeout: 1_000, storeSkew: 500, follow: 'tight' };

const BUCKET = 'epochs';
const DOMAIN = 'coordination.example.com';

let aws;
let hostedZoneId;
const made = [];
before(async () => {
  aws = await startAws();
  await aws.createTable(TABLE);
  await aws.createBucket(BUCKET);
  hostedZoneId = await aws.createZone(DOMAIN);
});
after(async () => {
  await Promise.all(made.map((elector) => within(elector.stop(), 30_000)));
  await stopAll();
  await aws?.stop();
  assert.deepEqual(unhandled, []);
});

const member = (storage, lockfilePath, options = {}) => {
  const elector = new Elector({ storage, lockfilePath, ...PATIENT, ...options });
  made.push(elector);
  return elector;
};

const overMemory = (options = {}) =>
  member(new MemoryStorage(), 'a', { leaderTimeout: 1_000, frequentInterval: 250, requestTimeout: undefined, storeSkew: undefined, ...options });

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

/** What each of these stores has to do, as its user meets it. */
const everyStore = (name, { storage, stored }) => {
  describe(name, () => {
    test('leads, hands over with a higher token, and shows nothing of its credentials', async () => {
      const shard = freshShard('lead');
      const own = storage();
      assert.deepEqual([Object.keys(own), JSON.stringify(own)], [[], '{}']);
      const first = member(own, shard, { serverId: 'a' });
      await first.init();
      await assert.rejects(first.init(), { code: 'EDGELECT_EXISTS' });
      const token = await first.lead(async (term) => {
        assert.ok(first.isLeader() && term.remaining() > 0);
        assert.ok(JSON.stringify(await stored(shard)).includes('a'), 'the store names who leads');
        return term.token;
      });
      const second = member(own, shard, { serverId: 'b' });
      assert.ok((await second.lead((term) => term.token)) > token);
    });

    test('of three members one leads, and another one after it has stopped', async () => {
      const shard = freshShard('three');
      const members = ['a', 'b', 'c'].map((serverId) => member(storage(), shard, { serverId }));
      await members[0].init();
      await Promise.all(members.map((elector) => elector.start()));
      const leader = await until(() => members.find((elector) => elector.isLeader()), 30_000);
      const { serverId } = leader.status();
      await until(() => members.every((elector) => elector.leaderId() === serverId), 30_000);
      assert.equal(members.filter((elector) => elector.isLeader()).length, 1);
      await leader.stop();
      const next = await until(() => members.find((elector) => elector.isLeader()), 30_000);
      assert.notEqual(next, leader);
      await Promise.all(members.map((elector) => elector.stop()));
    });
  });
};

everyStore('DynamoDB', { storage: () => table(), stored: (shard) => aws.getItem(TABLE, shard) });

everyStore('Route 53', { storage: () => zone(), stored: (shard) => aws.txt(hostedZoneId, `lock.${shard}.${DOMAIN}`) });

everyStore('epochs', { storage: () => epochs(), stored: async (shard) => (await aws.keys(BUCKET)).filter((key) => key.startsWith(shard)) });

test('a checkpoint is refused by name over storages that keep leases only, and nothing of it is sent', async () => {
  const storages = [
    ['table', table(), (shard) => aws.getItem(TABLE, shard)],
    ['zone', zone(), async (shard) => (await aws.txt(hostedZoneId, `lock.${shard}.${DOMAIN}`))[0]],
    ['epochs', epochs(), async (shard) => (await aws.keys(BUCKET)).find((key) => key.startsWith(shard))],
  ];
  for (const [name, storage, stored] of storages) {
    const elector = member(storage, freshShard('no-checkpoint'), { serverId: 'a' });
    await elector.init();
    await elector.lead(async (term) => {
      const key = freshShard('cursor');
      await assert.rejects(term.checkpoint(key), (error) => {
        assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', 'checkpoint'], `${name}: ${error.message}`);
        assert.match(error.message, /this storage keeps leases only/);
        return true;
      });
      assert.equal(await stored(key), undefined, name);
    });
  }
});

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

test('epochs that the credentials may not delete are told in the status, and cost no term', async () => {
  const proxy = await startProxy(aws.endpoint);
  const shard = freshShard('undeleted');
  try {
    const elector = () => member(epochs({ endpoint: proxy.endpoint }), shard, { serverId: 'a' });
    await elector().init();
    await elector().lead(() => undefined);
    const body = '<Error><Code>AccessDenied</Code></Error>';
    proxy.answerWith(({ method }) => method === 'DELETE' ? { status: 403, headers: { 'content-type': 'application/xml' }, body } : undefined);
    const leader = elector();
    const message = await leader.lead((term) => until(() => term.remaining() > 0 && leader.status().error, 20_000));
    assert.match(message, /^S3 bucket "epochs" at .*: DELETE "undeleted-.*\/lock_0000000001.json" was answered 403 AccessDenied: the credentials need s3:DeleteObject/);
  } finally {
    await proxy.close();
  }
});

test('fifty shards over one table in one process, each led by one of two sets of electors', async () => {
  const shards = Array.from({ length: 50 }, (_one, index) => `fifty-${index}`);
  const patient = { leaderTimeout: 60_000, frequentInterval: 10_000, requestTimeout: 8_000, serverId: 'worker' };
  const storage = table();
  const sets = [1, 2].map(() => shards.map((shard) => member(storage, shard, patient)));
  await Promise.all(sets[0].map((elector) => elector.init()));
  await Promise.all(sets[0].map((elector) => elector.start()));
  await until(() => sets[0].every((elector) => elector.isLeader()), 60_000);
  const { read, write } = sets[0][0].status().requests;
  assert.ok(read + write <= 4, `${read} reads and ${write} writes to lead one`);
  await Promise.all(sets[1].map((elector) => elector.start()));
  await until(() => sets[1].every((elector) => elector.leaderId() !== null), 60_000);
  assert.ok(!sets[1].some((elector) => elector.isLeader()), 'one name is not one session');
  await Promise.all(sets.flat().map((elector) => elector.stop()));
});

test('both entries in one process: a trap in one wasm is nothing to the other', async () => {
  const ours = overMemory({ leaderTimeout: 60_000, frequentInterval: 1_000 });
  await ours.init();
  await ours.start();
  const ourTerm = await leads(ours);
  const theirs = member(table(), freshShard('trap'));
  await theirs.init();
  await theirs.start();
  const theirTerm = await within(theirs.waitForLeadership(), 20_000);
  new Uint8Array(initAws().memory.buffer).fill(0xff);
  await within(fired(theirTerm.signal), 20_000);
  assert.match(theirs.status().error, /broke down/);
  assert.ok(ours.isLeader() && !ourTerm.signal.aborted);
  await theirs.start();
  assert.ok((await within(theirs.waitForLeadership(), 30_000)).token > theirTerm.token);
  assert.ok(ours.isLeader() && !ourTerm.signal.aborted);
  await Promise.all([ours.stop(), theirs.stop()]);
});

test('options are refused by their names, and a secret is in no error', () => {
  const refused = (options, field, rule, storage = table) => {
    assert.throws(() => storage(options), (error) => {
      assert.ok(error instanceof EdgelectError);
      assert.deepEqual([error.code, error.field], ['EDGELECT_CONFIG', field], error.message);
      assert.match(error.message, rule);
      assert.ok(!error.message.includes(aws.credentials.secretAccessKey));
      return true;
    });
  };
  refused({ table: 7 }, 'table', /must be a text/);
  refused({ table: '' }, 'table', /table = /);
  refused({ bucket: 'jobs' }, 'bucket', /no such option; a DynamoDBStorage has endpoint, region, table and credentials/);
  refused({ endpoint: 'http://example.com' }, 'endpoint', /endpoint = /);
  refused({ credentials: {} }, 'credentials.accessKeyId', /credentials are/);
  refused({ credentials: { ...aws.credentials, accessKeyId: '' } }, 'credentials.accessKeyId', /credentials are/);
  refused({ hostedZoneId: 'Z 1' }, 'hostedZoneId', /such as Z1234567890ABC/, zone);
  refused({ domainName: 7 }, 'domainName', /must be a text/, zone);
  refused({ table: 'a' }, 'table', /no such option; a Route53Storage has/, zone);
  refused({ bucket: 7 }, 'bucket', /must be a text/, epochs);
  refused({ table: 'a' }, 'table', /no such option; an EpochStorage has/, epochs);
  assert.throws(() => new S3Storage({ bucket: 'jobs', credentials: aws.credentials, kind: 'epochs' }), { code: 'EDGELECT_CONFIG', field: 'kind' });
  assert.throws(() => member(zone(), 'shard-1', { serverId: 'worker 1' }), { field: 'serverId', message: /has no space/ });
  assert.throws(() => member(zone(), 'Shard-1'), { field: 'lockfilePath' });
  assert.throws(() => new DynamoDBStorage(), /a DynamoDBStorage takes an object/);
});

test('a provider of credentials is asked, and what it throws is told', async () => {
  let asked = 0;
  const own = table({
    credentials: async () => {
      asked += 1;
      return { ...aws.credentials, expiration: new Date(Date.now() + 3_600_000) };
    },
  });
  const elector = member(own, freshShard('provider'));
  await elector.init();
  assert.equal(await elector.lead(() => 'led'), 'led');
  assert.equal(asked, 1);
  const failing = table({ credentials: () => Promise.reject(new Error('no vault')) });
  await assert.rejects(member(failing, freshShard('provider')).init(), (error) => {
    assert.equal(error.code, 'EDGELECT_STORE');
    assert.match(error.message, /DynamoDB.*the credentials provider failed: no vault/);
    return true;
  });
});

test('a zone that is not there is told by the service\'s own code', async () => {
  const elector = member(zone({ hostedZoneId: 'Z0NOWHERE' }), freshShard('missing'));
  await assert.rejects(elector.init(), /Z0NOWHERE.*NoSuchHostedZone/s);
});

test('a table that is not there is told by the service\'s own code', async () => {
  const elector = member(table({ table: 'nowhere' }), freshShard('missing'));
  await assert.rejects(elector.init(), /nowhere.*ResourceNotFoundException/s);
  await elector.start();
  const error = await elector.waitForLeadership().catch((thrown) => thrown);
  assert.deepEqual([error.code, error.storeCode], ['EDGELECT_STORE', 'ResourceNotFoundException']);
});
