// examples/route53 and examples/shards, over an AWS on loopback.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { inRoot } from '../../js/tools/paths.mjs';
import { run as runProgram, start as startProgram } from './example.mjs';
import { startAws } from './ministack.mjs';
import { kept, startProxy, until } from './servers.mjs';

const DOMAIN = 'coordination.example.com';
const TABLE = 'coordination-table';
const LONG_MS = 40_000;
const [ROUTE53, SHARDS] = ['route53', 'shards'].map((name) => inRoot('examples', name, 'main.mjs'));

let aws;
let zone;
before(async () => {
  aws = await startAws();
  zone = await aws.createZone(DOMAIN);
  await aws.createTable(TABLE);
});

const environment = ({ endpoint, credentials: { accessKeyId, secretAccessKey } } = aws) => ({
  AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey,
  EDGELECT_ENDPOINT: endpoint, EDGELECT_ACCESS_KEY_ID: accessKeyId, EDGELECT_SECRET_ACCESS_KEY: secretAccessKey,
});
const run = (main, args, variables) => runProgram([main, ...args], { env: { ...environment(), ...variables } });
const start = (main, args, variables) => startProgram([main, ...args], { env: { ...environment(), ...variables } });

const inZone = (...more) => ['--zone', zone, '--domain', DOMAIN, '--endpoint', aws.endpoint, '--lease', '6000', '--renew', '1000', ...more];

const endsBy = async ({ child, ended }, signal) => {
  child.kill(signal);
  assert.equal(await ended, 0);
};

test('both say what they do, and what is wrong with an option', () => {
  for (const [main, wrong] of [[ROUTE53, ['--zone', 'Z1']], [SHARDS, ['--shards', 'many']]]) {
    const help = run(main, ['--help']);
    assert.deepEqual([help.status, help.stderr], [0, '']);
    assert.match(help.stdout, /^node examples\/(route53|shards)\/main\.mjs/);
    const { status, stderr } = run(main, wrong);
    assert.equal(status, 1);
    assert.match(stderr, /--domain is not given|--shards = "many": must be a whole number/);
  }
});

test('Route 53: the check of the set-up writes, leads and gives back, or names what is missing', () => {
  const fine = run(ROUTE53, inZone('--check'));
  assert.equal(fine.status, 0, fine.stderr);
  const told = fine.stdout.trim().split('\n').map((line) => JSON.parse(line));
  const judged = told.filter(({ event }) => event === 'judged').map(({ step, finding }) => `${step}: ${finding}`);
  assert.equal(judged.length, 10);
  assert.deepEqual([judged[0], judged.at(-1)], ['update of an absent object: holds', 'clocks: unclear']);
  assert.deepEqual(told.slice(judged.length).map(({ event }) => event), ['written', 'led', 'fine']);
  const missing = run(ROUTE53, [...inZone('--check'), '--zone', 'Z0NOWHERE']);
  assert.equal(missing.status, 1);
  assert.match(missing.stderr, /NoSuchHostedZone/);
  assert.match(run(ROUTE53, inZone('--check', '--owner', 'worker 1')).stderr, /serverId.*no space/);
});

test('Route 53: one of two leads, the record names it, and after Ctrl-C the other one does', async () => {
  assert.equal(run(ROUTE53, inZone('--init')).status, 0);
  const [a, b] = ['a', 'b'].map((owner) => start(ROUTE53, inZone('--owner', owner)));
  const first = await until(() => [a, b].find((one) => one.all('leader').length > 0), LONG_MS);
  const second = first === a ? b : a;
  const { owner, token } = first.all('leader')[0];
  assert.match((await aws.txt(zone, `lock.example.${DOMAIN}`)).join(), new RegExp(`"${owner} \\d+"`));
  await endsBy(first, 'SIGINT');
  assert.deepEqual(first.all('follower').map(({ reason }) => reason), ['stopped']);
  assert.equal(first.heard.at(-1).event, 'ended');
  const [after] = await until(() => second.all('leader').length > 0 && second.all('leader'), LONG_MS);
  assert.ok(after.token > token);
  await endsBy(second, 'SIGTERM');
});

test('shards: the credentials of a table are those of one family of variables, EDGELECT_ before AWS_', () => {
  const init = (name, variables) => run(SHARDS, ['--table', TABLE, '--shards', '1', '--prefix', name, '--init'], variables);
  const [none, wrong] = [{ EDGELECT_ACCESS_KEY_ID: '', EDGELECT_SECRET_ACCESS_KEY: '' }, { AWS_ACCESS_KEY_ID: 'a\nb' }];
  assert.equal(init('aws', none).status, 0, 'those of AWS do');
  assert.equal(init('edgelect', wrong).status, 0, 'AWS_ is not looked at');
  assert.match(init('mixed', { EDGELECT_ACCESS_KEY_ID: '' }).stderr, /^EDGELECT_ACCESS_KEY_ID is not set/);
  assert.match(init('absent', { ...none, AWS_SECRET_ACCESS_KEY: '' }).stderr, /^AWS_SECRET_ACCESS_KEY is not set/);
  assert.match(run(SHARDS, ['--help']).stdout, /AWS_ACCESS_KEY_ID/);
});

test('shards: a second process gets half of them, and what the first one led goes to it when that ends', async () => {
  const args = ['--table', TABLE, '--shards', '6'];
  assert.equal(run(SHARDS, [...args, '--init']).status, 0);
  const first = start(SHARDS, args);
  await until(() => first.all('leads').length === 6, LONG_MS);
  const second = start(SHARDS, args);
  await until(() => second.all('leads').length === 3, LONG_MS);
  assert.equal(first.all('lost').length, 3);
  await endsBy(first, 'SIGTERM');
  assert.equal(first.all('lost').length, 6);
  await until(() => second.all('leads').length === 6, LONG_MS);
  for (const { shard, token } of second.all('leads')) assert.ok(token > first.all('leads').find((one) => one.shard === shard).token);
  await endsBy(second, 'SIGTERM');
});

test('shards: a process that cannot use the store of one of them ends, so that none is left to nobody in silence', async () => {
  const bucket = 'shards-of-all';
  await aws.createBucket(bucket);
  const proxy = await kept(startProxy(aws.endpoint));
  const body = '<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>';
  proxy.answerWith(({ url }) => (url.includes('shards/1') ? { status: 404, body } : undefined));
  const some = start(SHARDS, ['--shards', '2'], { EDGELECT_ENDPOINT: proxy.endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: aws.region });
  const late = new Promise((resolve) => setTimeout(resolve, LONG_MS, 'it goes on').unref());
  assert.equal(await Promise.race([some.ended, late]), 1);
});
