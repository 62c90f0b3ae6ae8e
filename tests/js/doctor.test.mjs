// The probe on real stores, on ones that lie and on ones that cannot be judged: as a call, at a start, and as `edgelect doctor`.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Elector, EpochStorage, S3Storage } from 'edgelect';
import { startMoto } from '../../js/tools/moto.mjs';
import { bucketOptions, credentials, freshKey, getObject } from './bucket.mjs';
import { doctor as command, forEachRow } from './command.mjs';
import { createZone, startAws } from './ministack.mjs';
import { atEnd, kept, startDropping, startLiar, startProxy } from './servers.mjs';

const STEPS = ['update of an absent object', 'create', 'create again', 'update', 'update with a stale version', 'race', 'read with a stale version',
  'create again, later', 'update with a stale version, later'];
const EPOCH_STEPS = STEPS.filter((step) => !['update of an absent object', 'create again, later'].includes(step));
/** Only an item's condition has several parts. */
const TABLE_STEPS = STEPS.toSpliced(5, 0, 'update with a nearly right version');
/** Requests of a probe with one race at a start: ten for the steps before it, six for the race, a reading, one to clean up. */
const REQUESTS = 18;
/** Over epochs a write that lands is two and one that does not one, a look two; then a listing and three epochs to delete. */
const EPOCH_REQUESTS = 28;
/** The two steps that come later. */
const LATER_REQUESTS = 4;
// Of 600 probes of stores that look before they write, 598 found it in the first race and two in the second.
const RACES = 10;
const LOCAL = { bucket: 'jobs', region: 'us-east-1', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } };
const MOTO = { accessKeyId: 'dev', secretAccessKey: 'devsecret' };
const DOMAIN = 'coordination.example.com';
// A probe at a start is given up after four times `requestTimeout`.
const PATIENT = { leaderTimeout: 60_000, requestTimeout: 10_000 };

let aws;
let moto;
before(async () => {
  [aws, moto] = await Promise.all([startAws(), startMoto()]);
  atEnd(() => moto.stop());
  await aws.createBucket(LOCAL.bucket);
});

const on = (storage, more = {}) => new Elector({ storage, lockfilePath: freshKey('doctor'), leaderTimeout: 3_000, ...more });
const proxied = (target = bucketOptions.endpoint) => kept(startProxy(target));
const isProbe = ({ url }) => url.includes('.probe-');
const deleted = ({ seen }) => seen.filter(({ method }) => method === 'DELETE');

const findings = ({ steps }) => steps.map(({ step, finding }) => `${step}: ${finding}`);
const holds = (steps, clocks) => [...steps.map((step) => `${step}: holds`), `clocks: ${clocks}`];
const ALL_HOLD = holds(STEPS, 'holds');

/** Over a bucket of this place, by default one where nobody's credentials are looked at. */
const over = ({ endpoint, ...place }, more) => on(new S3Storage({ ...LOCAL, endpoint, ...place }), more);

test('c26 SeaweedFS is accepted, its clock is this machine\'s, nothing is left of the probe, and two of them do not meet', async () => {
  const proxy = await proxied();
  const lockfilePath = freshKey('doctor');
  const heard = [];
  const elector = over({ ...bucketOptions, endpoint: proxy.endpoint }, { lockfilePath });
  const diagnosis = await elector.doctor({ races: 3, onStep: (step) => heard.push(step) });
  assert.deepEqual([findings(diagnosis), heard], [ALL_HOLD, diagnosis.steps]);
  assert.equal(diagnosis.store, `S3 bucket "${bucketOptions.bucket}" at ${proxy.endpoint}`);
  assert.ok(diagnosis.clockError <= 500 && Math.abs(diagnosis.clockOffset) <= diagnosis.clockError, JSON.stringify(diagnosis));
  assert.equal(proxy.seen.length, REQUESTS + 2 * 6 + LATER_REQUESTS);
  const keys = () => [...new Set(proxy.seen.map(({ url }) => url))];
  assert.equal(keys().length, 1, 'one object, and not the lease');
  const [key] = keys();
  assert.ok(new RegExp(`/${lockfilePath}\\.probe-[0-9a-f]{32}$`).test(key), key);
  assert.equal(await getObject(key.split('/').slice(2).join('/')), null);
  for (const other of await Promise.all([elector.doctor({ races: 1 }), elector.doctor({ races: 1 })])) assert.deepEqual(findings(other), ALL_HOLD);
  assert.equal(keys().length, 3);
});

test('c09 c26 a proxy that drops the conditions is refused, and an elector over it does not lead', async () => {
  const { endpoint } = await kept(startDropping(bucketOptions.endpoint, credentials));
  const elector = over({ ...bucketOptions, endpoint }, PATIENT);
  assert.deepEqual(findings(await elector.doctor()), ['update of an absent object: violated']);
  const message = `S3 bucket "${bucketOptions.bucket}" at ${endpoint}: probe step "update of an absent object": `
    + 'it took a write whose condition did not hold, so two could lead; leases need a store that keeps conditional writes';
  const work = () => assert.fail('it leads');
  for (const asked of [() => elector.lead(work), () => elector.start(), () => elector.waitForLeadership()]) {
    await assert.rejects(asked(), { name: 'EdgelectError', code: 'EDGELECT_STORE', message });
  }
  assert.deepEqual([elector.status().error, elector.status().role], [message, 'stopped']);
  const epochs = on(new EpochStorage({ ...bucketOptions, endpoint }), PATIENT);
  const onCreate = /^S3 bucket ".*: probe step "create again": it took a write whose condition did not hold, so two could lead/;
  await assert.rejects(epochs.lead(work), { code: 'EDGELECT_STORE', message: onCreate });
});

for (const [name, Storage, requests] of [['an object in a bucket', S3Storage, REQUESTS], ['epochs', EpochStorage, EPOCH_REQUESTS]]) {
  test(`c26 a start over ${name} asks first, and leaves nothing behind; a slot, \`sustain\` and \`probe: false\` ask nothing`, async () => {
    const proxy = await proxied(aws.endpoint);
    const lockfilePath = freshKey('started');
    const { region, credentials: keys } = aws;
    const made = (more) => on(new Storage({ region, credentials: keys, endpoint: proxy.endpoint, bucket: LOCAL.bucket }), { lockfilePath, ...more });
    await made().init();
    await made().runScheduled(Date.now(), () => {});
    await made({ lockfilePath: 'leader/ticks', leaderTimeout: 15_000, sustain: 57_000 }).start({ signal: AbortSignal.timeout(300) });
    assert.ok((await made({ probe: false }).lead(({ token }) => token)) > 0);
    assert.equal(proxy.seen.filter(isProbe).length, 0);
    const from = proxy.seen.length;
    assert.ok((await made(PATIENT).lead(({ token }) => token)) > 0);
    const asked = proxy.seen.slice(from).map(isProbe);
    assert.equal(asked.filter(Boolean).length, requests);
    assert.ok(asked.lastIndexOf(true) < asked.indexOf(false), 'nothing is asked of the lease before the probe has ended');
    assert.equal((await made(PATIENT).doctor({ races: 25 })).finding, 'holds');
    assert.deepEqual((await aws.keys(LOCAL.bucket)).filter((url) => isProbe({ url })), []);
  });
}

test('bad options of `doctor` are named; a signal ends it, and what onStep throws', async () => {
  const elector = over({ endpoint: (await kept(startLiar('silent'))).endpoint });
  for (const [name, ...values] of [['races', 0, 1.5, 1_001, '5', NaN, null], ['age', -1, '5', 3_600_001, NaN, null], ['onBegin', null], ['onStep', 1], ['signal', 1]]) {
    for (const value of values) await assert.rejects(elector.doctor({ [name]: value }), { code: 'EDGELECT_CONFIG', field: name }, `${name} ${value}`);
  }
  await assert.rejects(elector.doctor({ signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' });
  const store = await kept(startLiar('honest'));
  const onStep = ({ step }) => assert.notEqual(step, 'race', 'no more of it');
  await assert.rejects(over({ endpoint: store.endpoint }).doctor({ races: 1, onStep }), /no more of it/);
  assert.equal(store.objects.size, 0, 'what onStep throws ends the probe, which cleans up');
});

const secrets = ({ accessKeyId, secretAccessKey }) => ({ EDGELECT_ACCESS_KEY_ID: accessKeyId, EDGELECT_SECRET_ACCESS_KEY: secretAccessKey });
const awsSecrets = ({ accessKeyId, secretAccessKey }) => ({ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey });
const PLACE = ['--endpoint', bucketOptions.endpoint, '--region', 'us-east-1'];

test('c26 edgelect doctor judges each kind of store, and its exit code is the finding', async () => {
  await Promise.all([aws.createTable('commanded'), aws.createBucket('commanded')]);
  const zone = await aws.createZone(`commanded.${DOMAIN}`);
  const env = { ...awsSecrets(aws.credentials), AWS_REGION: aws.region };
  const s3 = [...PLACE, '--bucket', bucketOptions.bucket];
  const ofMoto = ['--store', 'route53', '--endpoint', moto.endpoint, '--zone', await createZone(moto.endpoint, MOTO, DOMAIN), '--domain', DOMAIN];
  const nowhere = { EDGELECT_ENDPOINT: 'http://127.0.0.1:1', EDGELECT_FORMAT: 'yaml' };
  const racy = await kept(startLiar('racy'));
  await forEachRow([
    [0, [...s3, '--format', 'kubernetes'], secrets(credentials), /^S3 bucket/, ALL_HOLD],
    [0, s3, { ...secrets(credentials), EDGELECT_FORMAT: 'kubernetes' }, /^S3 bucket/, ALL_HOLD],
    [0, ['--store', 'epochs', '--bucket', 'commanded', '--lockfile-path', 'leader/jobs'], { ...env, EDGELECT_ENDPOINT: aws.endpoint }, /^S3 bucket "commanded"/, holds(EPOCH_STEPS, 'holds')],
    [0, ['--store', 'epochs', '--bucket', 'commanded', '--endpoint', aws.endpoint, '--format', 'kubernetes'], env, /^S3 bucket "commanded"/, holds(EPOCH_STEPS, 'holds')],
    [0, ['--store', 'dynamodb', '--table', 'commanded', '--endpoint', aws.endpoint], env, /^DynamoDB table "commanded"/, holds(TABLE_STEPS, 'unclear')],
    // What names a bucket names no table.
    [0, ['--store', 'dynamodb', '--table', 'commanded'], { ...env, ...nowhere, AWS_ENDPOINT_URL_DYNAMODB: aws.endpoint }, /^DynamoDB table/, holds(TABLE_STEPS, 'unclear')],
    [0, ['--store', 'route53', '--zone', zone, '--domain', `commanded.${DOMAIN}`], { ...env, AWS_ENDPOINT_URL_ROUTE_53: aws.endpoint }, /^Route 53/, holds(STEPS, 'unclear')],
    [1, [...ofMoto, '--prefix', 'commanded'], awsSecrets(MOTO), /^Route 53/],
    [1, ['--endpoint', racy.endpoint, '--bucket', 'jobs', '--races', String(RACES)], secrets(LOCAL.credentials), /^S3 bucket "jobs"/],
  ], async ([code, args, variables, store, steps]) => {
    const what = args.join(' ');
    const told = await command(['--races', '1', '--age', '1', ...args, '--json'], variables);
    assert.match(told.stdout, /^\{/, `${what}: ${told.stderr}`);
    const diagnosis = JSON.parse(told.stdout);
    assert.equal(told.code, code, `${what}: ${told.stdout}`);
    if (steps) assert.deepEqual(findings(diagnosis), steps, what);
    if (code === 1) assert.match(findings(diagnosis).at(-1), store.source.startsWith('^S3') ? /^race: violated$/ : /: violated$/, what);
    assert.match(diagnosis.store, store);
  });
  assert.ok(racy.seen.every(({ url }) => url.startsWith('/jobs/leader.json.probe-')), 'without a path it is beside leader.json');
});

test('edgelect doctor tells each step and the clock, or why it cannot be told and what to do', async () => {
  const fine = await command([...PLACE, '--bucket', bucketOptions.bucket, '--path-style', '--races', '2', '--age', '3', '--lockfile-path', freshKey('doctor')], secrets(credentials));
  assert.equal(fine.code, 0, fine.stdout + fine.stderr);
  for (const step of [...STEPS, 'clocks']) assert.ok(new RegExp(`^  holds     ${step}`, 'm').test(fine.stdout), `${step} in ${fine.stdout}`);
  assert.match(fine.stdout, /race, 2 times/);
  assert.match(fine.stdout, /^The store's clock is \d+ ms (ahead of|behind) this machine's, give or take \d+ ms/m);
  assert.match(fine.stdout, /^The store keeps its conditions: S3 bucket/m);
  assert.doesNotMatch(fine.stdout, /\u001b/);
  // Shown while it is under way, because it takes more than two seconds.
  assert.match(fine.stdout, /^  …         create again, later +must be refused after 3 s\n  holds     create again, later +must be refused after 3 s$/m);
  assert.ok(fine.stdout.split('\n').filter((line) => /^  \S/.test(line)).every((line) => line.length < 80), 'a line fits a terminal');
  const unwell = await kept(startLiar('unwell'));
  const { code, stdout } = await command([], { EDGELECT_ENDPOINT: unwell.endpoint, EDGELECT_BUCKET: 'jobs', ...secrets(LOCAL.credentials) });
  assert.equal(code, 3, stdout);
  assert.match(stdout, /^  unclear   update of an absent object.*\n +S3 bucket "jobs".*503/m);
  assert.match(stdout, /^It cannot be told; see the step above, and try again: S3 bucket "jobs" at /m);
  assert.deepEqual(deleted(unwell), []);
});

test('c16 c26 edgelect doctor ends with 2 where the store refuses the credentials or has no such bucket, and asks for the right to list', async () => {
  const [forbids, lists] = await Promise.all(['forbids', 'lists'].map((manner) => kept(startLiar(manner))));
  const at = ({ endpoint }) => ['--endpoint', endpoint, '--bucket', 'jobs'];
  const own = [...PLACE, '--bucket', bucketOptions.bucket];
  const rights = (lease) => `These credentials may not use ${lease}.probe-*, which is beside the lease ${lease}. If they are for another lease, name\n`
    + 'it by --lockfile-path; otherwise allow them what the step above asks for (docs/stores.md#permissions).\n';
  await forEachRow([
    [[...PLACE, '--bucket', 'no-such-bucket'], credentials, '404 NoSuchBucket: create the bucket, or correct its name or the endpoint'],
    [own, { ...credentials, secretAccessKey: 'the-secret' }, '403 SignatureDoesNotMatch: check the secret access key and the region'],
    [own, { ...credentials, accessKeyId: 'nobody' }, '403 InvalidAccessKeyId: check the access key id'],
    [at(forbids), credentials, '403 AccessDenied: the credentials need s3:PutObject on the key', rights('leader.json')],
    [[...at(lists), '--lockfile-path', 'leader/mail'], credentials, '403 AccessDenied: the credentials need s3:GetObject on the key and s3:ListBucket', rights('leader/mail')],
  ], async ([args, keys, why, before = '']) => {
    const { code, stdout } = await command(args, secrets(keys));
    assert.equal(code, 2, stdout);
    const judged = `\n${before}The settings are wrong, so nothing was judged; see the step above: S3 bucket "`;
    for (const part of [`was answered ${why}`, judged]) assert.ok(stdout.includes(part), stdout);
    assert.equal(stdout.includes('--lockfile-path'), before !== '', stdout);
    assert.doesNotMatch(stdout, /the-secret|try again/);
    const told = await command([...args, '--json'], secrets(keys));
    const [status, storeCode] = why.split(/[ :]/);
    const diagnosis = JSON.parse(told.stdout);
    assert.deepEqual([told.code, diagnosis.finding, diagnosis.refusal], [2, 'unclear', { status: Number(status), storeCode }]);
  });
  assert.deepEqual([forbids, lists].flatMap(deleted), [], 'nothing is cleaned up where nothing was written');
});

test('edgelect doctor refuses by name what it cannot be given, and --help says what it can', async () => {
  const aws = awsSecrets(LOCAL.credentials);
  await forEachRow([
    [[], {}, /^edgelect: EDGELECT_BUCKET.*\nSet it by a flag or a variable, credentials by a variable/m],
    [['--endpoint', 'https://s3.example.com', '--bucket', 'jobs', '--lockfile-path', 'a'.repeat(1_000)], secrets(LOCAL.credentials), /^edgelect: --lockfile-path = /],
    [['--bucket', 'jobs'], { ...secrets(LOCAL.credentials), EDGELECT_FORMAT: 'yaml' }, /^edgelect: EDGELECT_FORMAT = "yaml": must be native or kubernetes/],
    [['--store', 'dynamo'], aws, /'--store <kind>' argument 'dynamo' is invalid.*dynamodb/],
    [['--bucket', 'jobs', '--table', 'locks'], aws, /^edgelect: --table: means nothing with --store s3/],
    [['--store', 'dynamodb'], aws, /^edgelect: EDGELECT_TABLE = \(not set\): name the table/],
    [['--store', 'dynamodb', '--table', 'locks'], secrets(LOCAL.credentials), /^edgelect: EDGELECT_ACCESS_KEY_ID = \(not set\)/],
    [['--store', 'route53', '--zone', 'Z1', '--domain', 'example.com', '--lockfile-path', 'Jobs'], aws, /^edgelect: --lockfile-path = "Jobs"/],
  ], async ([args, variables, sentence]) => {
    const { code, stdout, stderr } = await command(args, variables);
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, sentence);
    assert.doesNotMatch(stderr, /^ +at |the-secret/m);
  });
  const { stdout } = await command(['--help'], {});
  for (const part of [/--races <n>/, /^Secrets have no flags/m, /^Exit codes:\n {2}0 /m]) assert.match(stdout, part);
});
