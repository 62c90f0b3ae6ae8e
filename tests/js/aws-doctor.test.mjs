// The doctor over the storages of `edgelect/aws`: an AWS on loopback is accepted, moto's Route 53 is refused.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Elector } from 'edgelect';
import { DynamoDBStorage, EpochStorage, Route53Storage } from 'edgelect/aws';
import { startMoto } from '../../js/tools/moto.mjs';
import { createZone, startAws } from './ministack.mjs';

const DOMAIN = 'coordination.example.com';
const STEPS = ['update of an absent object', 'create', 'create again', 'update', 'update with a stale version', 'race'];

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

test('c26 DynamoDB is accepted; it has no times of its own', async () => {
  await aws.createTable('locks');
  const { endpoint, region, credentials } = aws;
  const { finding, steps, why } = await judged(new DynamoDBStorage({ endpoint, region, credentials, table: 'locks' }), 'jobs');
  assert.deepEqual(steps, [...STEPS.map((step) => `${step}: holds`), 'clocks: unclear'], why);
  assert.equal(finding, 'holds');
});

test('c26 Route 53 is accepted; it has no times of its own', async () => {
  const { endpoint, credentials } = aws;
  const hostedZoneId = await aws.createZone(DOMAIN);
  const storage = new Route53Storage({ endpoint, credentials, hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN });
  const { finding, steps, why } = await judged(storage, 'jobs');
  assert.deepEqual(steps, [...STEPS.map((step) => `${step}: holds`), 'clocks: unclear'], why);
  assert.equal(finding, 'holds');
});

test('c26 epochs are accepted, without the step that means nothing there', async () => {
  await aws.createBucket('epochs');
  const { endpoint, credentials } = aws;
  const { finding, steps, why } = await judged(new EpochStorage({ endpoint, credentials, bucket: 'epochs' }), 'leader/jobs');
  assert.deepEqual(steps, [...STEPS.slice(1), 'clocks'].map((step) => `${step}: holds`), why);
  assert.equal(finding, 'holds');
});

test('c26 moto\'s Route 53 is refused: it takes a second CREATE', async () => {
  const credentials = { accessKeyId: 'dev', secretAccessKey: 'devsecret' };
  const hostedZoneId = await createZone(moto.endpoint, credentials, DOMAIN);
  const storage = new Route53Storage({ endpoint: moto.endpoint, credentials, hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN });
  const { finding, store, steps, why } = await judged(storage, 'jobs');
  assert.equal(finding, 'violated', `${store}: ${steps}: ${why}`);
  assert.match(steps.at(-1), /^(?:create again|update of an absent object): violated$/);
  assert.match(why, /so two could lead/);
});
