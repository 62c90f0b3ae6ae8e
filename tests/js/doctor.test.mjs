// The probe on real stores and on ones that lie or can't be judged: as a call, at a start, and as `edgelect doctor`.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Elector, MemoryStorage, S3Storage } from 'edgelect';
import { EpochStorage } from 'edgelect/aws';
import { ownWasm } from '../../js/engine.js';
import { NODE_24, inRoot } from '../../js/tools/paths.mjs';
import { bucketOptions, credentials, freshKey, getObject, putObject } from './bucket.mjs';
import { doctor as command } from './command.mjs';
import { startDropping } from './dropping.mjs';
import { startFolder } from './folder.mjs';
import { startLiar } from './liar.mjs';
import { startAws } from './ministack.mjs';
import { startProxy } from './proxy.mjs';
import { until } from './until.mjs';

const STEPS = ['update of an absent object', 'create', 'create again', 'update', 'update with a stale version', 'race', 'read with a stale version',
  'create again, later', 'update with a stale version, later', 'clocks'];
/** Requests of a probe with one race at a start: ten for the steps before it, six for the race, a reading, one to clean up. */
const REQUESTS = 18;
/** The two steps that come later. */
const LATER_REQUESTS = 4;
// Of 600 probes of stores that look before they write, 598 found it in the first race and two in the second.
const RACES = 10;
const LOCAL = { bucket: 'jobs', region: 'us-east-1', credentials: { accessKeyId: 'the-id', secretAccessKey: 'the-secret' } };
// A probe at a start is given up after four times `requestTimeout`.
const PATIENT = { leaderTimeout: 60_000, requestTimeout: 10_000 };
const closing = [];
after(() => Promise.all(closing.map((close) => close())));

const kept = async (starting) => {
  const server = await starting;
  closing.push(() => server.close());
  return server;
};

const over = (options, more = {}) =>
  new Elector({ storage: new S3Storage({ ...LOCAL, ...options }), lockfilePath: freshKey('doctor'), leaderTimeout: 3_000, ...more });

const findings = ({ steps }) => steps.map(({ step, finding }) => `${step}: ${finding}`);
const ALL_HOLD = STEPS.map((step) => `${step}: holds`);
const CLOCKS_UNCLEAR = [...ALL_HOLD.slice(0, -1), 'clocks: unclear'];

const secrets = ({ accessKeyId, secretAccessKey }) => ({ EDGELECT_ACCESS_KEY_ID: accessKeyId, EDGELECT_SECRET_ACCESS_KEY: secretAccessKey });

test('c26 SeaweedFS is accepted, its clock is this machine\'s, and nothing is left of the probe', async () => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const lockfilePath = freshKey('doctor');
  const heard = [];
  const diagnosis = await over({ ...bucketOptions, endpoint: proxy.endpoint }, { lockfilePath })
    .doctor({ races: 3, onStep: (step) => heard.push(step) });
  assert.deepEqual(findings(diagnosis), ALL_HOLD);
  assert.deepEqual(heard, diagnosis.steps);
  assert.equal(diagnosis.finding, 'holds');
  assert.equal(diagnosis.store, `S3 bucket "${bucketOptions.bucket}" at ${proxy.endpoint}`);
  assert.ok(diagnosis.clockError <= 500 && Math.abs(diagnosis.clockOffset) <= diagnosis.clockError, JSON.stringify(diagnosis));
  assert.equal(proxy.seen.length, REQUESTS + 2 * 6 + LATER_REQUESTS);
  const keys = new Set(proxy.seen.map(({ url }) => url));
  assert.equal(keys.size, 1, 'one object, and not the lease');
  const [key] = keys;
  assert.ok(new RegExp(`/${lockfilePath}\\.probe-[0-9a-f]{32}$`).test(key), key);
  assert.equal(await getObject(key.split('/').slice(2).join('/')), null);
});

test('c26 the probes of two electors do not meet', async () => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const lockfilePath = freshKey('doctor');
  const all = await Promise.all([1, 2, 3].map(() => over({ ...bucketOptions, endpoint: proxy.endpoint }, { lockfilePath }).doctor({ races: 1 })));
  for (const diagnosis of all) assert.deepEqual(findings(diagnosis), ALL_HOLD);
  assert.equal(new Set(proxy.seen.map(({ url }) => url)).size, 3);
});

test('c09 c26 a proxy that drops the conditions is refused, and an elector over it does not lead', async () => {
  const proxy = await kept(startDropping(bucketOptions.endpoint, credentials));
  const elector = over({ ...bucketOptions, endpoint: proxy.endpoint });
  const diagnosis = await elector.doctor();
  assert.deepEqual(findings(diagnosis), ['update of an absent object: violated']);
  assert.equal(diagnosis.finding, 'violated');
  const message = `S3 bucket "${bucketOptions.bucket}" at ${proxy.endpoint}: probe step "update of an absent object": `
    + 'it took a write whose condition did not hold, so two could lead; leases need a store that keeps conditional writes';
  await assert.rejects(elector.lead(() => assert.fail('it leads')), { name: 'EdgelectError', code: 'EDGELECT_STORE', message });
  await elector.start();
  await assert.rejects(elector.waitForLeadership(), { code: 'EDGELECT_STORE', message });
  assert.equal(elector.status().error, message);
  assert.equal(elector.status().role, 'stopped');
  await elector.stop();
});

test('c09 c26 an elector of epochs does not lead where the conditions are dropped', async () => {
  const proxy = await kept(startDropping(bucketOptions.endpoint, credentials));
  const storage = new EpochStorage({ ...bucketOptions, endpoint: proxy.endpoint });
  const elector = new Elector({ storage, lockfilePath: freshKey('doctor'), leaderTimeout: 3_000 });
  const message = /^S3 bucket ".*: probe step "create again": it took a write whose condition did not hold, so two could lead/;
  await assert.rejects(elector.lead(() => assert.fail('it leads')), { code: 'EDGELECT_STORE', message });
});

test('c26 with `probe: false` nobody asks, whatever the store does', async () => {
  const liar = await kept(startLiar('racy'));
  const elector = over({ endpoint: liar.endpoint }, { probe: false });
  await elector.init();
  assert.ok((await elector.lead(({ token }) => token)) > 0);
  assert.equal(liar.seen.filter(({ url }) => url.includes('.probe-')).length, 0);
  assert.throws(() => over({ endpoint: liar.endpoint }, { probe: 'no' }), { code: 'EDGELECT_CONFIG', field: 'probe' });
});

for (const [name, start] of [['in memory', () => startLiar('racy')], ['over a folder', startFolder]]) {
  test(`c26 a store ${name} that looks before it writes is refused within ${RACES} races`, async () => {
    const store = await kept(start());
    const diagnosis = await over({ endpoint: store.endpoint }, PATIENT).doctor({ races: RACES });
    assert.equal(diagnosis.finding, 'violated', JSON.stringify(diagnosis));
    assert.equal(diagnosis.steps.at(-1).step, 'race');
    assert.match(diagnosis.steps.at(-1).why, /of five writes on one version, so two could lead/);
  });
}

test('c26 R2 as Wrangler has it locally is accepted by its S3 endpoint, without times of its own', async () => {
  const { accessKeyId, secretAccessKey } = LOCAL.credentials;
  const file = fileURLToPath(new URL('./local-r2.mjs', import.meta.url));
  const child = spawn(NODE_24, [file, LOCAL.bucket, accessKeyId, secretAccessKey], { stdio: ['pipe', 'pipe', 'inherit'] });
  closing.push(() => child.stdin.end());
  const [line] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)));
    child.stdout.once('data', (data) => resolve(String(data).split('\n')));
  });
  const diagnosis = await over({ endpoint: line, region: 'auto' }).doctor({ races: 3 });
  assert.deepEqual(findings(diagnosis), CLOCKS_UNCLEAR, JSON.stringify(diagnosis));
  assert.deepEqual([diagnosis.finding, diagnosis.clockOffset, diagnosis.clockError], ['holds', null, null]);
});

test('c26 ministack\'s S3 is accepted', async () => {
  const aws = await startAws();
  closing.push(aws.stop);
  await aws.createBucket(LOCAL.bucket);
  const { endpoint, credentials: own } = aws;
  const diagnosis = await over({ endpoint, credentials: own }).doctor({ races: 3 });
  assert.equal(diagnosis.finding, 'holds', JSON.stringify(diagnosis));
});

test('c26 a storage of one\'s own can be judged too', async () => {
  const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'leader.json' });
  assert.deepEqual(findings(await elector.doctor({ races: 2 })), ALL_HOLD);
  const storage = new MemoryStorage();
  const lying = { get: (key) => storage.get(key), putIfMatch: (key, body) => storage.putIfMatch(key, body, storage.get(key)?.etag ?? null) };
  const diagnosis = await new Elector({ storage: lying, lockfilePath: 'leader.json' }).doctor();
  assert.deepEqual(findings(diagnosis), ['update of an absent object: violated']);
});

for (const [manner, steps, why] of [
  ['unwell', ['update of an absent object: unclear'], /503 ServiceUnavailable/],
  ['forbids', ['update of an absent object: unclear', 'create: unclear'], /403 AccessDenied/],
]) {
  test(`c26 a store that ${manner === 'unwell' ? 'is unwell' : 'forbids the probe'} is unclear, and no violation`, async () => {
    const store = await kept(startLiar(manner));
    const diagnosis = await over({ endpoint: store.endpoint }).doctor();
    assert.deepEqual([findings(diagnosis), diagnosis.finding], [steps, 'unclear']);
    assert.match(diagnosis.steps.at(-1).why, why);
    assert.equal(store.seen.filter(({ method }) => method === 'DELETE').length, 0, 'there is nothing to clean up');
  });
}

test('c16 c26 without the right to list the probe asks for it', async () => {
  const store = await kept(startLiar('lists'));
  const diagnosis = await over({ endpoint: store.endpoint }).doctor({ races: 1 });
  assert.deepEqual(findings(diagnosis), ['update of an absent object: unclear']);
  assert.match(diagnosis.steps[0].why, /s3:ListBucket/);
  assert.equal(diagnosis.finding, 'unclear');
});

test('c26 a store that says nothing delays a start by two requests, and a stop ends the probe at once', async () => {
  const store = await kept(startLiar('silent'));
  const elector = over({ endpoint: store.endpoint }, { leaderTimeout: 9_000 });
  const { requestTimeout } = elector.config;
  const startMs = performance.now();
  await elector.start();
  const own = () => store.seen.filter(({ url }) => !url.includes('.probe-'));
  while (own().length === 0) {
    assert.ok(performance.now() - startMs < 2 * requestTimeout + 5_000, 'the elector itself asks');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(store.seen.length - own().length, 2);
  await elector.stop();
  await elector.start();
  const stopMs = performance.now();
  await elector.stop();
  assert.ok(performance.now() - stopMs < requestTimeout, 'the answer of the probe was not waited for');
  assert.equal(elector.status().role, 'stopped');
});

test('c26 a probe that waits does not go on for an elector that a trap has ended', async () => {
  const store = await kept(startLiar('unwell'));
  const elector = over({ endpoint: store.endpoint });
  await elector.start();
  await until(() => store.seen.length === 2);
  // Its pause begins when the second answer is in.
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.throws(() => ownWasm.call(() => { throw new Error('as a trap does'); }), { code: 'EDGELECT_TRAP' });
  await until(() => elector.status().role === 'stopped');
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.equal(store.seen.length, 2);
});

test('a start asks 18 times before it claims; a slot, `sustain` and a storage of one\'s own ask nothing', async () => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const probes = () => proxy.count('PUT', '.probe-') + proxy.count('GET', '.probe-') + proxy.count('DELETE', '.probe-');
  const made = (more) => over({ ...bucketOptions, endpoint: proxy.endpoint }, more);
  await made({ leaderTimeout: 15_000, sustain: 57_000 }).start({ signal: AbortSignal.timeout(500) });
  const elector = made();
  await elector.init();
  await elector.runScheduled(Date.now(), () => {});
  assert.ok(proxy.seen.length > 0);
  assert.equal(probes(), 0);
  const leader = made(PATIENT);
  await leader.init();
  await leader.lead(() => {});
  assert.equal(probes(), REQUESTS);
  const first = proxy.seen.findIndex(({ url }) => url.includes('.probe-'));
  const after = proxy.seen.slice(first).map(({ url }) => url.includes('.probe-'));
  assert.ok(after.lastIndexOf(true) < after.indexOf(false), 'nothing is asked of the lease before the probe has ended');
});

test('a bucket that does not exist is not made by the probe', async () => {
  const proxy = await kept(startProxy(bucketOptions.endpoint));
  const elector = over({ ...bucketOptions, endpoint: proxy.endpoint, bucket: 'there-is-no-such-bucket' });
  for (const _again of [1, 2]) {
    const diagnosis = await elector.doctor();
    assert.deepEqual(findings(diagnosis), ['update of an absent object: unclear']);
    assert.match(diagnosis.steps[0].why, /404 NoSuchBucket: create the bucket, or correct its name/);
  }
  assert.equal(proxy.seen.length, 4);
});

test('a key that is a folder of others cannot be created on SeaweedFS, and init says so where the doctor can\'t', async () => {
  const lockfilePath = freshKey('doctor').replace('.json', '');
  await putObject(`${lockfilePath}/cursor.json`, '{}');
  assert.equal(await getObject(lockfilePath), null);
  const elector = over(bucketOptions, { lockfilePath });
  assert.equal((await elector.doctor({ races: 1 })).finding, 'holds');
  await assert.rejects(elector.init(), { code: 'EDGELECT_STORE', message: /refused to create an absent object$/ });
});

test('bad options of `doctor` are named, and a signal ends it', async () => {
  const store = await kept(startLiar('silent'));
  const elector = over({ endpoint: store.endpoint });
  for (const [options, field] of [[{ races: 0 }, 'races'], [{ races: 1.5 }, 'races'], [{ age: -1 }, 'age'], [{ age: '5' }, 'age'], [{ age: 3_600_001 }, 'age'], [{ onStep: 1 }, 'onStep'], [{ signal: 1 }, 'signal']]) {
    await assert.rejects(elector.doctor(options), { code: 'EDGELECT_CONFIG', field });
  }
  await assert.rejects(elector.doctor({ signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' });
});

for (const at of STEPS) {
  test(`what onStep throws at "${at}" ends the probe and leaves nothing behind`, async () => {
    const store = await kept(startLiar('honest'));
    const thrown = new Error('no more of it');
    const onStep = ({ step }) => {
      if (step === at) throw thrown;
    };
    await assert.rejects(over({ endpoint: store.endpoint }).doctor({ races: 1, onStep }), thrown);
    assert.equal(store.objects.size, 0);
    const asked = store.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(store.seen.length, asked, 'nothing goes on');
  });
}

test('edgelect doctor tells each step and the clock, and its exit code is the finding', async () => {
  const flags = ['--endpoint', bucketOptions.endpoint, '--bucket', bucketOptions.bucket, '--region', 'us-east-1', '--path-style'];
  const fine = await command([...flags, '--races', '2', '--lockfile-path', freshKey('doctor')], secrets(credentials));
  assert.equal(fine.code, 0, fine.stdout + fine.stderr);
  for (const step of STEPS) assert.ok(new RegExp(`^  holds     ${step}`, 'm').test(fine.stdout), `${step} in ${fine.stdout}`);
  assert.match(fine.stdout, /race, 2 times/);
  assert.match(fine.stdout, /^The store's clock is \d+ ms (ahead of|behind) this machine's, give or take \d+ ms/m);
  assert.match(fine.stdout, /^The store keeps its conditions: S3 bucket/m);
  assert.doesNotMatch(fine.stdout, /\u001b/);
  const liar = await kept(startLiar('racy'));
  const racy = await command(['--endpoint', liar.endpoint, '--bucket', 'jobs', '--json'], secrets(LOCAL.credentials));
  assert.equal(racy.code, 1, racy.stdout + racy.stderr);
  assert.equal(JSON.parse(racy.stdout).steps.at(-1).step, 'race');
  assert.ok(liar.seen.every(({ url }) => url.startsWith('/jobs/leader.json.probe-')));
  const unwell = await kept(startLiar('unwell'));
  const down = await command([], { EDGELECT_ENDPOINT: unwell.endpoint, EDGELECT_BUCKET: 'jobs', ...secrets(LOCAL.credentials) });
  assert.equal(down.code, 3);
  assert.match(down.stdout, /^  unclear   update of an absent object.*\n +S3 bucket "jobs".*503/m);
  assert.match(down.stdout, /^It cannot be told/m);
});

test('edgelect doctor says what to do about a wrong bucket, a wrong secret and missing settings', async () => {
  const place = ['--endpoint', bucketOptions.endpoint, '--region', 'us-east-1'];
  const bucket = await command([...place, '--bucket', 'no-such-bucket'], secrets(credentials));
  assert.deepEqual([bucket.code, /NoSuchBucket/.test(bucket.stdout)], [3, true], bucket.stdout);
  const wrong = { ...credentials, secretAccessKey: 'not-the-secret' };
  const secret = await command([...place, '--bucket', bucketOptions.bucket], secrets(wrong));
  assert.deepEqual([secret.code, /SignatureDoesNotMatch/.test(secret.stdout)], [3, true], secret.stdout);
  assert.ok(!secret.stdout.includes('not-the-secret'));
  const nothing = await command([], {});
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /^edgelect: EDGELECT_BUCKET.*\nSet it by a flag or a variable/m);
  assert.doesNotMatch(nothing.stderr, /^ +at /m);
  const races = await command(['--races', 'many'], {});
  assert.deepEqual([races.code, /1 to 1000/.test(races.stderr)], [2, true], races.stderr);
  for (const args of [['--bukcet', 'jobs'], ['jobs']]) assert.equal((await command(args, {})).code, 2, 'not a finding');
  const long = ['--endpoint', bucketOptions.endpoint, '--bucket', 'jobs', '--lockfile-path', 'a'.repeat(1_000)];
  const unfit = await command(long, secrets(LOCAL.credentials));
  assert.deepEqual([unfit.code, /^edgelect: lockfilePath/.test(unfit.stderr)], [2, true], unfit.stderr);
  const help = await command(['--help'], {});
  for (const part of [/Exit code: 0/, /Secrets come by\nvariables only/, /--races <n>/, /npx edgelect doctor --bucket/]) assert.match(help.stdout, part);
  for (const name of ['SESSION_TOKEN', 'REGION', 'DEFAULT_REGION', 'ENDPOINT_URL', 'ENDPOINT_URL_S3', 'ENDPOINT_URL_DYNAMODB', 'ENDPOINT_URL_ROUTE_53']) {
    assert.match(help.stdout, new RegExp(`\\bAWS_${name}\\b`));
  }
  assert.match(help.stdout, /six requests each, eight\s+over epochs/);
  for (const store of ['epochs', 'dynamodb', 'route53']) assert.match(help.stdout, new RegExp(`^  npx edgelect doctor --store ${store} `, 'm'));
});

test('EDGELECT_FORMAT and --format are known to the command line, whatever the package itself knows', async () => {
  const place = ['--endpoint', bucketOptions.endpoint, '--bucket', bucketOptions.bucket, '--races', '1', '--age', '1', '--json'];
  const flag = [...place, '--format', 'kubernetes', '--lockfile-path', freshKey('doctor')];
  const variable = [...place, '--lockfile-path', freshKey('doctor')];
  for (const [args, more] of [[flag, {}], [variable, { EDGELECT_FORMAT: 'kubernetes' }], [variable, { EDGELECT_FORMAT: '' }]]) {
    const { code, stdout, stderr } = await command(args, { ...secrets(credentials), ...more });
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(findings(JSON.parse(stdout)), ALL_HOLD);
  }
  const unknown = await command(place, { ...secrets(credentials), EDGELECT_FORMAT: 'yaml' });
  assert.deepEqual([unknown.code, /^edgelect: EDGELECT_FORMAT = "yaml": must be native or kubernetes/.test(unknown.stderr)], [2, true], unknown.stderr);
});

test('a flag of another store, and a store without what it needs, are refused by name', async () => {
  const aws = { AWS_ACCESS_KEY_ID: 'the-id', AWS_SECRET_ACCESS_KEY: 'the-secret' };
  for (const [args, variables, sentence] of [
    [['--store', 'dynamo'], aws, /'--store <kind>' argument 'dynamo' is invalid.*dynamodb/],
    [['--bucket', 'jobs', '--table', 'locks'], aws, /^edgelect: --table: means nothing with --store s3/],
    [['--store', 'dynamodb', '--table', 'locks', '--bucket', 'jobs'], aws, /^edgelect: --bucket: means nothing with --store dynamodb/],
    [['--store', 'dynamodb'], aws, /^edgelect: --table = \(not set\): --store dynamodb needs --table/],
    [['--store', 'route53', '--zone', 'Z1'], aws, /^edgelect: --domain = \(not set\): --store route53 needs --zone and --domain/],
    [['--store', 'epochs'], aws, /^edgelect: EDGELECT_BUCKET = \(not set\)/],
    [['--store', 'dynamodb', '--table', 'locks'], secrets(LOCAL.credentials), /^edgelect: AWS_ACCESS_KEY_ID = \(not set\)/],
    [['--store', 'route53', '--zone', 'Z1', '--domain', 'example.com', '--lockfile-path', 'Jobs'], aws, /^edgelect: \w+ = "Jobs"/],
  ]) {
    const { code, stdout, stderr } = await command(args, variables);
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, sentence);
    assert.doesNotMatch(stderr, /^ +at |the-secret/m);
  }
});

test('edgelect doctor whose reader goes away never says that a store holds', { skip: !fs.existsSync('/bin/sh') && 'no shell' }, async () => {
  const liar = await kept(startLiar('racy', { windowMs: 20 }));
  const env = { ...process.env, EDGELECT_ENDPOINT: liar.endpoint, EDGELECT_BUCKET: 'jobs', ...secrets(LOCAL.credentials) };
  for (const [args, codes] of [['', [1, 3]], ['--json', [1]]]) {
    const script = `{ "${process.execPath}" "${inRoot('js/dist/cli.js')}" doctor ${args}; echo "exit $?" >&2; } | true`;
    const told = await new Promise((resolve) => {
      execFile('/bin/sh', ['-c', script], { env, timeout: 60_000 }, (_error, _stdout, stderr) => resolve(stderr));
    });
    const code = Number(/exit (\d+)/.exec(told)?.[1]);
    assert.ok(codes.includes(code), `${args}: ${told}`);
  }
});
