// Every store of the crate as the deployed Worker's, by its variables alone, over R2 with the record of Kubernetes members. Slots over a
// binding of R2 are run in tests/rust-worker.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DynamoDBStorage, Elector, EpochStorage, Route53Storage, S3Storage } from 'edgelect';
import { bucketOptions, freshKey, getLease, until, variables } from '../js/bucket.mjs';
import { startAws } from '../js/ministack.mjs';
import { healthy, isolate, newGroup, outcomes } from './isolate.mjs';

const DOMAIN = 'example.com';
const TABLE = 'leases';
// Python answers for AWS, beside whatever else the machine does.
const GROUP = {
  EDGELECT_SERVER_ID: 'the-worker',
  EDGELECT_LEADER_TIMEOUT: 4_000,
  EDGELECT_FREQUENT_INTERVAL: 500,
  EDGELECT_REQUEST_TIMEOUT: 700,
  EDGELECT_STORE_SKEW: 500,
  EDGELECT_SUSTAIN: 10_000,
  EDGELECT_SUBREQUESTS: 10_000,
};

let aws;

before(async () => {
  aws = await startAws();
  await aws.createTable(TABLE);
});

const secrets = () => ({ EDGELECT_ENDPOINT: aws.endpoint, EDGELECT_ACCESS_KEY_ID: aws.credentials.accessKeyId, EDGELECT_SECRET_ACCESS_KEY: aws.credentials.secretAccessKey });
const place = ({ endpoint, credentials } = aws) => ({ endpoint, credentials });
const inS3 = (name) => async () => ({ ...variables, EDGELECT_STORE: name, EDGELECT_LOCKFILE_PATH: freshKey(name) });

/** The variables of a group of this store, and its storage for the npm package, which `init`s it. */
const STORES = {
  s3: { open: inS3('s3'), storage: () => new S3Storage(bucketOptions) },
  epochs: { open: inS3('epochs'), storage: () => new EpochStorage(bucketOptions) },
  r2: { open: async () => ({ EDGELECT_STORE: 'r2', EDGELECT_FORMAT: 'kubernetes', EDGELECT_LOCKFILE_PATH: 'leader.json' }), more: { r2Buckets: ['EDGELECT_R2'] } },
  dynamodb: {
    open: async () => ({ ...secrets(), EDGELECT_STORE: 'dynamodb', EDGELECT_TABLE: TABLE, EDGELECT_LOCKFILE_PATH: `shard-${crypto.randomUUID()}` }),
    storage: () => new DynamoDBStorage({ ...place(), table: TABLE }),
  },
  route53: {
    open: async () => ({
      ...secrets(), EDGELECT_STORE: 'route53', EDGELECT_HOSTED_ZONE_ID: await aws.createZone(DOMAIN), EDGELECT_RECORD_PREFIX: 'lock',
      EDGELECT_DOMAIN_NAME: DOMAIN, EDGELECT_LOCKFILE_PATH: 'reports',
    }),
    storage: ({ EDGELECT_HOSTED_ZONE_ID: hostedZoneId }) => new Route53Storage({ ...place(), hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN }),
  },
};

/** What Kubernetes members left that had released their lease. */
const THEIRS = {
  holderIdentity: '', leaseDuration: 'PT4S', acquireTime: '2026-11-21T06:00:00.000Z', renewTime: '2026-11-21T06:00:00.000Z', leaderTransitions: 6,
};

const started = async ({ open, storage, more }) => {
  const group = { ...(await open()), ...GROUP };
  const { EDGELECT_LOCKFILE_PATH: lockfilePath, EDGELECT_STORE: store } = group;
  const worker = await isolate(group, more);
  if (store === 'r2') await (await worker.bucket()).put(lockfilePath, JSON.stringify(THEIRS));
  else await new Elector({ storage: storage(group), lockfilePath }).init();
  return { worker, group };
};

const terms = (worker) => [...worker.logged().matchAll(/ term[= ](\d+)/g)].map(([, term]) => Number(term));

describe('stores', { concurrency: 2 }, () => {
  for (const [name, store] of Object.entries(STORES)) {
    test(`c55 over ${name} a tick leads, answers and parks, and the next tick takes over with a higher token`, async () => {
      const { worker, group } = await started(store);
      const ticking = worker.tick();
      const answer = await until(healthy(worker));
      const body = await answer.json();
      assert.deepEqual([body.leaderID, body.group], ['the-worker', group.EDGELECT_LOCKFILE_PATH]);
      assert.deepEqual(['source', 'session'].filter((name) => name in body), [], 'it leads itself, and shows nobody its session');
      assert.ok(body.remainingMs > 0 && body.remainingMs <= 0.9 * GROUP.EDGELECT_LEADER_TIMEOUT, `${body.remainingMs} ms`);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      if (name === 's3' || name === 'r2') assert.ok(answer.headers.get('etag')?.length > 2);
      assert.equal((await ticking).outcome, 'ok', worker.logged());
      if (name === 'r2') {
        const parked = await (await (await worker.bucket()).get('leader.json')).json();
        assert.deepEqual([parked.holderIdentity, parked.leaseDuration, parked.leaderTransitions, parked.leaderID], ['the-worker', '4s', 7, undefined]);
        assert.deepEqual([parked.parked, parked.term], [true, body.term]);
        assert.match(parked.renewTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      }
      const startMs = Date.now();
      const next = worker.tick();
      await until(healthy(worker));
      // A lease that was not parked would have to be waited out.
      assert.ok(Date.now() - startMs < GROUP.EDGELECT_LEADER_TIMEOUT - 500, `led after ${Date.now() - startMs} ms`);
      await next;
      await until(() => terms(worker).length === 2);
      assert.deepEqual(outcomes(worker), ['led', 'led']);
      const [one, other] = terms(worker);
      assert.ok(other > one, `${other} after ${one}`);
    });
  }

  test('a tick whose store can\'t be used fails, and Cloudflare counts it; one behind its time asks it nothing', async () => {
    const group = await newGroup();
    const worker = await isolate({ ...group, EDGELECT_BUCKET: 'no-such-bucket' });
    assert.equal((await worker.tick()).outcome, 'exception');
    await until(() => /^edgelect: S3 bucket "no-such-bucket".*NoSuchBucket/m.test(worker.logged()));
    assert.equal((await getLease(group.EDGELECT_LOCKFILE_PATH)).leaderID === 'the-worker', false);
    await worker.tick(new Date(Date.now() - 3_600_000));
    await until(() => /outcome=late requests=0$/m.test(worker.logged()));
  });
});
