// What the pages about AWS print: their commands are run as they stand by AWS's own command line, and their policies have the
// actions that a whole life sends, no more and no less.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { DynamoDBStorage, Elector, Route53Storage } from 'edgelect';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { AWSCLI, inRoot } from '../../js/tools/paths.mjs';
import { PATIENT, startAws } from './ministack.mjs';
import { kept, startProxy, until } from './servers.mjs';

const DOMAIN = 'coordination.example.com';
const LONG_MS = 40_000;

const folder = newFolder('aws');
let aws;
let proxy;
before(async () => {
  assert.ok(fs.existsSync(AWSCLI), `the AWS CLI is not in ${AWSCLI}: run \`npm run setup\``);
  aws = await startAws();
  proxy = await kept(startProxy(aws.endpoint));
  // -S: what the machine has of the same packages is not meant.
  fs.writeFileSync(path.join(folder, 'aws'), `#!/bin/sh\nexec python3 -S '${AWSCLI}/bin/aws' "$@"\n`, { mode: 0o755 });
});

const place = () => ({ endpoint: proxy.endpoint, credentials: aws.credentials });

const page = (name) => fs.readFileSync(inRoot('docs', name), 'utf8');
const blocks = (name) => [...page(name).matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, block]) => block);

/** The only block of a page that has commands of AWS's command line. */
const commands = (name) => {
  const [block, ...others] = blocks(name).filter((one) => one.startsWith('aws '));
  assert.deepEqual(others, []);
  return block;
};

/** Runs a block as a reader pastes it; what it prints. */
const pasted = async (block) => {
  const env = {
    PATH: `${folder}${path.delimiter}${process.env.PATH}`, HOME: folder, PYTHONPATH: AWSCLI,
    AWS_ENDPOINT_URL: aws.endpoint, AWS_DEFAULT_REGION: aws.region, AWS_PAGER: '', AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ACCESS_KEY_ID: aws.credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: aws.credentials.secretAccessKey,
  };
  const { stdout } = await promisify(execFile)('sh', ['-e', '-c', block], { env, timeout: 4 * LONG_MS }).catch((error) => {
    throw new Error(`${block}\n${error.stderr}`);
  });
  return stdout;
};

/** All that members do to a store: they judge it, start a group, lead, follow, hand over and stop. */
const wholeLife = async (storage, lockfilePath) => {
  const [first, second] = ['a', 'b'].map((serverId) => new Elector({ storage, lockfilePath, serverId, ...PATIENT }));
  assert.equal((await first.doctor({ races: 1 })).finding, 'holds');
  await first.init();
  await assert.rejects(first.init(), { code: 'EDGELECT_EXISTS' });
  await first.start();
  const term = await first.waitForLeadership();
  const keepsLeases = { code: 'EDGELECT_CONFIG', field: 'checkpoint', message: /this storage keeps leases only/ };
  await assert.rejects(term.checkpoint('state'), keepsLeases);
  assert.deepEqual([Object.keys(storage), JSON.stringify(storage)], [[], '{}'], 'its credentials are not shown');
  await second.start();
  await until(() => second.leaderId() === 'a' && first.status().requests.write >= 3, LONG_MS);
  await first.stop();
  await second.waitForLeadership({ signal: AbortSignal.timeout(LONG_MS) });
  await second.stop();
};

/** What `life` has sent, by the names of IAM; `name` gives that of a request. */
const sent = async (life, name) => {
  const from = proxy.seen.length;
  await life();
  return [...new Set(proxy.seen.slice(from).map(name))].sort();
};

const policies = (name) => {
  const found = blocks(name).filter((block) => block.includes('"Statement"'));
  return found.map((block) => [...new Set(JSON.parse(block).Statement.flatMap(({ Action }) => Action))].sort());
};

test('docs/dynamodb.md: its commands make a table with TTL that members lead by, with no more rights than its policy gives', async () => {
  await pasted(commands('dynamodb.md'));
  const { Table } = await aws.dynamodb('DescribeTable', { TableName: 'coordination-table' });
  assert.deepEqual([Table.TableStatus, Table.BillingModeSummary?.BillingMode], ['ACTIVE', 'PAY_PER_REQUEST']);
  const { TimeToLiveDescription } = await aws.dynamodb('DescribeTimeToLive', { TableName: 'coordination-table' });
  assert.deepEqual([TimeToLiveDescription.TimeToLiveStatus, TimeToLiveDescription.AttributeName], ['ENABLED', 'ttl']);
  const storage = new DynamoDBStorage({ ...place(), region: aws.region, table: 'coordination-table' });
  const actions = await sent(() => wholeLife(storage, 'batch-processor'), ({ headers }) =>
    headers['x-amz-target'].replace('DynamoDB_20120810.', 'dynamodb:'));
  assert.deepEqual(policies('dynamodb.md'), [actions]);
});

test('docs/route53.md: its command makes a zone that members lead by, with no more rights than its policy gives', async () => {
  const block = commands('route53.md');
  const { HostedZone } = JSON.parse(await pasted(block));
  assert.match(HostedZone.Id, /^\/hostedzone\/\w+$/);
  const help = fs.readFileSync(inRoot('examples/route53/main.mjs'), 'utf8');
  assert.ok(help.includes(block.trim().replaceAll('"', '')), 'the example prints the same command');
  const hostedZoneId = HostedZone.Id.split('/').at(-1);
  const storage = new Route53Storage({ ...place(), hostedZoneId, recordPrefix: 'lock', domainName: DOMAIN });
  const actions = await sent(() => wholeLife(storage, 'batch-processor'), ({ method, url }) => {
    const [, rest] = /^\/2013-04-01\/hostedzone\/\w+\/(\w+)\/?(?:\?.*)?$/.exec(url) ?? [];
    return { 'POST rrset': 'route53:ChangeResourceRecordSets', 'GET rrset': 'route53:ListResourceRecordSets' }[`${method} ${rest}`] ?? `${method} ${url}`;
  });
  assert.deepEqual(policies('route53.md'), [actions]);
});

test('docs/route53.md: the command that asks Route 53 for the answer has no option that there is not', async () => {
  const [, command] = /`(aws route53 test-dns-answer [^`]+)`/.exec(page('route53.md'));
  const [id, name] = ['Z0000000000000', `lock.batch-processor.${DOMAIN}`];
  // No emulator knows it, so what is seen is that it was sent.
  const { message } = await pasted(command.replace('…', id).replace('…', name)).then(() => ({}), (error) => error);
  assert.match(message ?? '', /An error occurred \(\w+\) when calling the TestDNSAnswer operation/);
});
