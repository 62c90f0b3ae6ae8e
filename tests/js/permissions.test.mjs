// The permissions of docs/stores.md on stores that carry them out: an AWS on loopback, and SeaweedFS.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { AwsClient } from 'aws4fetch';
import { Elector, EpochStorage, S3Storage } from 'edgelect';
import { startMoto } from '../../js/tools/moto.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { startSeaweed } from '../../js/tools/seaweed.mjs';
import { kept, startProxy, until } from './servers.mjs';

const BUCKET = 'jobs';
const REGION = 'us-east-1';
/** An S3 of moto's has no 403 for a missing key: that `s3:ListBucket` is needed for it is in tests/answers/s3.rs. */
const MISSING = 's3:ListBucket';
const clientOf = (credentials, more) => new AwsClient({ ...credentials, region: REGION, retries: 0, ...more });

const section = fs.readFileSync(inRoot('docs/stores.md'), 'utf8').split(/^## /m).find((text) => text.startsWith('Permissions\n'));
const [LEASE, PROBE, EPOCHS, ...others] = [...section.matchAll(/^```json\n(.*?)^```$/gms)].map(([, text]) => JSON.parse(text).Statement);
const [SEAWEED, SEAWEED_EPOCHS] = [...section.matchAll(/^"actions": (.*)$/gm)].map(([, text]) => JSON.parse(text));

let moto;
let proxy;
let admin;
before(async () => {
  moto = await startMoto();
  proxy = await kept(startProxy(moto.endpoint));
  const anybody = clientOf({ accessKeyId: 'dev', secretAccessKey: 'devsecret' });
  const made = await anybody.fetch(`${moto.endpoint}/${BUCKET}`, { method: 'PUT', aws: { service: 's3' } });
  assert.equal(made.status, 200);
  admin = clientOf(await user(anybody, [{ Effect: 'Allow', Action: '*', Resource: '*' }]));
  // From here on it looks at signatures and policies.
  await fetch(`${moto.endpoint}/moto-api/reset-auth`, { method: 'POST', body: '0' });
});
after(() => moto?.stop());

const iam = async (client, parameters) => {
  // moto signs what it makes of the form that it has read, in which a star is escaped.
  const body = new URLSearchParams({ Version: '2010-05-08', ...parameters }).toString().replaceAll('*', '%2A');
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const answer = await client.fetch(moto.endpoint, { method: 'POST', headers, body, aws: { service: 'iam' } });
  const text = await answer.text();
  assert.ok(answer.ok, text);
  return text;
};

/** The credentials of a new user who may do this much. */
const user = async (client, Statement) => {
  const UserName = crypto.randomUUID();
  await iam(client, { Action: 'CreateUser', UserName });
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
  await iam(client, { Action: 'PutUserPolicy', UserName, PolicyName: 'page', PolicyDocument });
  const key = await iam(client, { Action: 'CreateAccessKey', UserName });
  return { accessKeyId: /<AccessKeyId>(.*?)</.exec(key)[1], secretAccessKey: /<SecretAccessKey>(.*?)</.exec(key)[1] };
};

const keys = async () => {
  const answer = await admin.fetch(`${moto.endpoint}/${BUCKET}?list-type=2`, { aws: { service: 's3' } });
  return [...(await answer.text()).matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key);
};

const without = (statements, action) => statements.map((one) => ({ ...one, Action: [one.Action].flat().filter((name) => name !== action) }))
  .filter(({ Action }) => Action.length > 0);

const actions = (statements) => statements.flatMap(({ Action }) => Action);

const TIMING = { leaderTimeout: 60_000, frequentInterval: 300, requestTimeout: 10_000, storeSkew: 0 };
const elector = (Storage, lockfilePath, where, more) =>
  new Elector({ storage: new Storage({ region: REGION, ...where }), lockfilePath, ...TIMING, probe: false, ...more });

const member = async (Storage, lockfilePath, statements, more) =>
  elector(Storage, lockfilePath, { endpoint: proxy.endpoint, bucket: BUCKET, credentials: await user(admin, statements) }, more);

const ledOnce = (one, work) => one.lead(work, { signal: AbortSignal.timeout(60_000) });

/** Terms one after the other, whose tokens grow, each by another member and until its second renewal; the last token. */
const led = async (make, terms = 2) => {
  const tokens = [];
  for (let term = 0; term < terms; term += 1) {
    const one = await make();
    if (term === 0) await one.init();
    const work = async ({ token }) => {
      const claimed = one.status().requests.write;
      await until(() => one.status().requests.write >= claimed + 2);
      return token;
    };
    tokens.push(await ledOnce(one, work));
  }
  assert.ok(tokens.every((token, index) => index === 0 || token > tokens[index - 1]), String(tokens));
  return tokens.at(-1);
};

const holds = async (one) => assert.equal((await one.doctor({ races: 1 })).finding, 'holds');

test('with the policy of the lease members lead one after the other, also those that probe, and the doctor finds nothing out', async () => {
  const last = await led(() => member(S3Storage, 'leader/report.json', LEASE));
  const probing = await member(S3Storage, 'leader/report.json', LEASE, { probe: true });
  assert.ok(await ledOnce(probing, ({ token }) => token) > last);
  const { finding, steps } = await (await member(S3Storage, 'leader/report.json', LEASE)).doctor({ races: 1 });
  assert.equal(finding, 'unclear');
  assert.match(steps[0].why, /AccessDenied/);
  assert.deepEqual(await keys(), ['leader/report.json']);
});

test('with what the probe adds the doctor finds that the store holds, and leaves an object only without s3:DeleteObject', async () => {
  for (const [statements, left] of [[PROBE, 0], [without(PROBE, 's3:DeleteObject'), 1]]) {
    await holds(await member(S3Storage, 'leader/report.json', [...LEASE, ...statements]));
    assert.equal((await keys()).filter((key) => key.startsWith('leader/report.json.probe-')).length, left);
  }
});

test('with the policy of epochs members lead one after the other, clean up, and the doctor finds that the store holds', async () => {
  // An epoch stays for two leases and two seconds.
  const brief = () => member(EpochStorage, 'leader/my-group', EPOCHS, { leaderTimeout: 6_000, requestTimeout: 1_100 });
  await led(brief, 3);
  const epochs = async () => (await keys()).filter((key) => key.startsWith('leader/my-group/lock'));
  assert.equal((await epochs())[0], 'leader/my-group/lock_0000000001.json');
  await ledOnce(await brief(), () => until(async () => (await epochs()).length === 2));
  await holds(await member(EpochStorage, 'leader/my-group', EPOCHS));
  assert.ok(!(await keys()).some((key) => key.startsWith('leader/my-group.probe-')), 'nothing is left of it');
});

// That an error names the action that is missing is held in tests/answers/s3.rs.
test('each policy has the actions that were sent for its objects, and no others', () => {
  assert.equal(others.length, 0, 'one for the lease, what the probe adds to it, and one for epochs');
  const actionOf = ({ method, url }) => (url.includes('?list-type=2') ? MISSING : { GET: 's3:GetObject', PUT: 's3:PutObject', DELETE: 's3:DeleteObject' }[method]);
  const sent = (objects) => [...new Set(proxy.seen.filter(({ url }) => objects.test(url)).map(actionOf))].sort();
  const [lock, probe, list] = EPOCHS.map((statement) => actions([statement]).sort());
  assert.deepEqual([...sent(/\/report\.json$/), MISSING].sort(), actions(LEASE).sort());
  assert.deepEqual(sent(/\/report\.json\.probe-/), actions(PROBE).sort());
  assert.deepEqual([sent(/\/my-group\/lock/), sent(/\/my-group\.probe-/), sent(/\?list-type=2/)], [lock, probe, list]);
});

test('on SeaweedFS the identities of the page lead, find that the store holds and leave nothing; they make no bucket, and an Admin does', async () => {
  // The page's bucket stands for the one of this store.
  const of = (actions) => (bucket) => actions.map((action) => action.replace(`:${BUCKET}/`, `:${bucket}/`));
  const weed = await startSeaweed((bucket) => ({ lease: of(SEAWEED)(bucket), epochs: of(SEAWEED_EPOCHS)(bucket), nostar: [`Read:${bucket}/leader/report.json`] }));
  try {
    const { endpoint, bucket } = weed;
    const keysOf = (name) => ({ accessKeyId: name, secretAccessKey: weed.secretOf(name) });
    const by = (name, Storage, key) => elector(Storage, key, { endpoint, bucket, credentials: keysOf(name) });
    for (const [name, Storage, key] of [['lease', S3Storage, 'leader/report.json'], ['epochs', EpochStorage, 'leader/my-group']]) {
      await led(() => by(name, Storage, key));
      await holds(by(name, Storage, key));
    }
    const { accessKeyId, secretAccessKey } = weed;
    const root = clientOf({ accessKeyId, secretAccessKey }, { service: 's3' });
    const listed = await (await root.fetch(`${endpoint}/${bucket}?list-type=2`)).text();
    assert.ok(listed.includes('<Key>leader/report.json</Key>') && !listed.includes('report.json.probe-'), listed);
    await assert.rejects(by('lease', EpochStorage, 'leader/other').init(), /AccessDenied/);
    await assert.rejects(by('nostar', S3Storage, 'leader/report.json').init(), /AccessDenied/);
    const misspelt = `${endpoint}/misspelt/leader/report.json`;
    const made = async (client) => (await client.fetch(misspelt, { method: 'PUT', body: '{}' })).status;
    for (const name of ['lease', 'epochs']) assert.equal(await made(clientOf(keysOf(name), { service: 's3' })), 403);
    assert.equal((await root.fetch(misspelt)).status, 404);
    assert.equal(await made(root), 200);
  } finally {
    await weed.stop();
  }
});
