// The doctor over the storages of `edgelect/aws`: an AWS on loopback is accepted, moto's Route 53 is refused.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AwsClient } from 'aws4fetch';
import { Elector } from 'edgelect';
import { DynamoDBStorage, EpochStorage, Route53Storage } from 'edgelect/aws';
import { startMoto } from '../../js/tools/moto.mjs';
import { doctor as command } from './command.mjs';
import { startAws } from './ministack.mjs';
import { startProxy } from './proxy.mjs';

const DOMAIN = 'coordination.example.com';
const STEPS = ['update of an absent object', 'create', 'create again', 'update', 'update with a stale version', 'race',
  'read with a stale version', 'create again, later', 'update with a stale version, later'];
const EPOCH_STEPS = STEPS.filter((step) => !['update of an absent object', 'create again, later'].includes(step));
/** Only an item's condition has several parts. */
const TABLE_STEPS = STEPS.toSpliced(5, 0, 'update with a nearly right version');

let aws;
let moto;
before(async () => {
  [aws, moto] = await Promise.all([startAws(), startMoto()]);
});
after(async () => {
  await Promise.all([aws?.stop(), moto?.stop()]);
});

const judged = async (storage, lockfilePath) => {
  const { finding, steps, store } = await new Elector({ storage, lockfilePath }).doctor({ races: 2 });
  return { finding, store, steps: steps.map((one) => `${one.step}: ${one.finding}`), why: steps.at(-1).why };
};

// As a call on one store; the command judges each of them below.
test('c26 DynamoDB is accepted; it has no times of its own', async () => {
  await aws.createTable('locks');
  const { endpoint, region, credentials } = aws;
  const { finding, steps, why } = await judged(new DynamoDBStorage({ endpoint, region, credentials, table: 'locks' }), 'jobs');
  assert.deepEqual(steps, [...TABLE_STEPS.map((step) => `${step}: holds`), 'clocks: unclear'], why);
  assert.equal(finding, 'holds');
});

/** Requests of a probe of epochs with one race: a write that lands is two and one that does not one, a look two; four writes and the
 * race with a look after each, then a listing and three epochs to delete. */
const EPOCH_REQUESTS = 28;

test('c26 a start over epochs asks first, and leaves nothing of it behind; a tick does not', async () => {
  await aws.createBucket('started');
  const proxy = await startProxy(aws.endpoint);
  try {
    const storage = new EpochStorage({ endpoint: proxy.endpoint, credentials: aws.credentials, bucket: 'started' });
    const made = (more) => new Elector({ storage, lockfilePath: 'leader/jobs', leaderTimeout: 3_000, ...more });
    // An epoch's key is its own, and in a listing a parameter.
    const isProbe = ({ url }) => url.includes('.probe-');
    await made().init();
    await made().runScheduled(Date.now(), () => {});
    await made({ lockfilePath: 'leader/ticks', leaderTimeout: 15_000, sustain: 57_000 }).start({ signal: AbortSignal.timeout(300) });
    await made({ probe: false }).lead(() => {});
    assert.equal(proxy.seen.filter(isProbe).length, 0);
    const from = proxy.seen.length;
    assert.ok((await made({ leaderTimeout: 60_000, requestTimeout: 10_000 }).lead(({ token }) => token)) > 0);
    const asked = proxy.seen.slice(from).map(isProbe);
    assert.equal(asked.filter(Boolean).length, EPOCH_REQUESTS);
    assert.ok(asked.lastIndexOf(true) < asked.indexOf(false), 'nothing is asked of the lease before the probe has ended');
    assert.deepEqual((await aws.keys('started')).filter((key) => key.includes('.probe-')), []);
  } finally {
    await proxy.close();
  }
});

test('c26 a probe of epochs with many races leaves nothing behind either', async () => {
  await aws.createBucket('many');
  const storage = new EpochStorage({ endpoint: aws.endpoint, credentials: aws.credentials, bucket: 'many' });
  assert.equal((await new Elector({ storage, lockfilePath: 'leader/jobs' }).doctor({ races: 25 })).finding, 'holds');
  assert.deepEqual(await aws.keys('many'), []);
});

const MOTO_CREDENTIALS = { accessKeyId: 'dev', secretAccessKey: 'devsecret' };

/** A zone of moto's; gives its id. */
const motoZone = async () => {
  const credentials = MOTO_CREDENTIALS;
  const client = new AwsClient({ ...credentials, service: 'route53', region: 'us-east-1', retries: 0 });
  const body = `<CreateHostedZoneRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Name>${DOMAIN}</Name>`
    + `<CallerReference>${crypto.randomUUID()}</CallerReference></CreateHostedZoneRequest>`;
  const made = await client.fetch(`${moto.endpoint}/2013-04-01/hostedzone`, { method: 'POST', body });
  return /<Id>\/?(?:hostedzone\/)?([^<]+)<\/Id>/.exec(await made.text())[1];
};

test('c26 moto\'s Route 53 is refused: it takes a second CREATE', async () => {
  const hostedZoneId = await motoZone();
  const storage = new Route53Storage({ endpoint: moto.endpoint, credentials: MOTO_CREDENTIALS, hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN });
  const { finding, store, steps, why } = await judged(storage, 'jobs');
  assert.equal(finding, 'violated', `${store}: ${steps}: ${why}`);
  assert.match(steps.at(-1), /^(?:create again|update of an absent object): violated$/);
  assert.match(why, /so two could lead/);
});

const variables = ({ accessKeyId, secretAccessKey }) => ({ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey });

/** What the command says of a store: its exit code and the steps. */
const commanded = async (args, env) => {
  const { code, stdout, stderr } = await command([...args, '--races', '1', '--age', '1', '--json'], env);
  assert.match(stdout, /^\{/, stderr);
  const { steps, store } = JSON.parse(stdout);
  return { code, store, steps: steps.map((one) => `${one.step}: ${one.finding}`) };
};

test('c26 edgelect doctor judges epochs, DynamoDB and Route 53', async () => {
  await Promise.all([aws.createTable('commanded'), aws.createBucket('commanded')]);
  const zone = await aws.createZone(`commanded.${DOMAIN}`);
  const env = { ...variables(aws.credentials), AWS_REGION: aws.region };
  const told = (steps, clocks) => [...steps.map((step) => `${step}: holds`), `clocks: ${clocks}`];
  for (const [args, more, store, steps] of [
    [['--store', 'epochs', '--bucket', 'commanded', '--lockfile-path', 'leader/jobs'], { EDGELECT_ENDPOINT: aws.endpoint }, /^S3 bucket "commanded"/, told(EPOCH_STEPS, 'holds')],
    [['--store', 'epochs', '--bucket', 'commanded', '--endpoint', aws.endpoint, '--format', 'kubernetes'], {}, /^S3 bucket "commanded"/, told(EPOCH_STEPS, 'holds')],
    [['--store', 'dynamodb', '--table', 'commanded', '--endpoint', aws.endpoint], {}, /^DynamoDB table "commanded"/, told(TABLE_STEPS, 'unclear')],
    // What names a bucket names no table.
    [['--store', 'dynamodb', '--table', 'commanded'], { AWS_ENDPOINT_URL_DYNAMODB: aws.endpoint, EDGELECT_ENDPOINT: 'http://127.0.0.1:1', EDGELECT_FORMAT: 'yaml' }, /^DynamoDB table/, told(TABLE_STEPS, 'unclear')],
    [['--store', 'route53', '--zone', zone, '--domain', `commanded.${DOMAIN}`], { AWS_ENDPOINT_URL_ROUTE_53: aws.endpoint }, /^Route 53/, told(STEPS, 'unclear')],
  ]) {
    const found = await commanded(args, { ...env, ...more });
    assert.deepEqual([found.code, found.steps], [0, steps], `${args.join(' ')}: ${found.store}`);
    assert.match(found.store, store);
  }
});

test('c26 edgelect doctor refuses moto\'s Route 53', async () => {
  const zone = await motoZone();
  const args = ['--store', 'route53', '--endpoint', moto.endpoint, '--zone', zone, '--domain', DOMAIN, '--prefix', 'commanded'];
  const { code, steps } = await commanded(args, variables(MOTO_CREDENTIALS));
  assert.equal(code, 1, steps.join());
  assert.match(steps.at(-1), /: violated$/);
});
