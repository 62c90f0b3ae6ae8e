import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { until } from '../js/until.mjs';
import { isolate } from './isolate.mjs';

const HIDDEN = 'a-secret-that-nobody-may-see';
const GOOD = { EDGELECT_LOCKFILE_PATH: 'leader.json' };
// Nothing listens there: no question of these tests gets so far.
const S3 = { EDGELECT_R2: null, EDGELECT_ENDPOINT: 'http://127.0.0.1:9', EDGELECT_BUCKET: 'jobs', EDGELECT_ACCESS_KEY_ID: 'key', EDGELECT_SECRET_ACCESS_KEY: HIDDEN };

const NUMBER = /must be a whole number/;
const TEXT = /must be a text, a number or a flag/;
const OBJECT = [{ a: HIDDEN }, /= \(no text\): must be a text, a number or a flag$/];
const LIST = [[1, 2], TEXT];
const notNumbers = [['15 s', NUMBER], ['-1', NUMBER], [-1, NUMBER], ['1.5', NUMBER], [1.5, NUMBER], [1e300, NUMBER], ['99999999999999999999', NUMBER], [true, NUMBER], ['1\n2', NUMBER], ['0x10', NUMBER], ['+5', NUMBER], OBJECT, LIST];
const range = (rule, ...numbers) => [...notNumbers, ...numbers.map((number) => [number, rule])];
const lines = (rule) => [['a\nb', rule], ['a\u0000', rule], ['a\u007f', rule], OBJECT];
const ONLY_BINDING = /must be the binding of an R2 bucket: \[\[r2_buckets\]\] in wrangler\.toml$/;

/** What each variable can't be, and the rule that the log must name. `s3` ones are tried with a bucket over S3,
 * `job` ones with a job. */
const WRONG = {
  EDGELECT_LOCKFILE_PATH: [...lines(/is the key of the lease object/), ...['/a', 'a//b', 'a/../b', '.', 'x'.repeat(1025)].map((path) => [path, /is the key of the lease object: 1 to 1024 bytes/])],
  EDGELECT_SERVER_ID: [...lines(/must be 1 to 1024 bytes without control characters/), ['x'.repeat(1025), /1 to 1024 bytes/]],
  EDGELECT_SERVER_ADDR: [...lines(/must be a host or host:port/), ...['https://a', 'a/b', 'u@a', 'a:b', 'a:70000'].map((addr) => [addr, /must be a host or host:port/]), [`k:${HIDDEN}@a`, /= \(not shown\): must be a host/]],
  EDGELECT_LEADER_TIMEOUT: range(/from 1000 ms to one hour|whole number/, 0, 999, 3_600_001, 2 ** 53),
  EDGELECT_FREQUENT_INTERVAL: range(/./, 0, 49, 14_000, 15_000),
  EDGELECT_INFREQUENT_INTERVAL: range(/must be from frequentInterval/, 0, 4_999, 86_400_001),
  EDGELECT_FOLLOW: [...lines(/"tight", "balanced" or "frugal"/), ['loosely', /"tight", "balanced" or "frugal"/], [1, /"tight", "balanced" or "frugal"/]],
  EDGELECT_PEER_MODE: [['yes', /must be true or false/], [2, /must be true or false/], ['TRUE', /must be true or false/], OBJECT],
  EDGELECT_PEER_TIMEOUT: range(/from 50 ms to 10 minutes/, 0, 600_001),
  EDGELECT_MARGIN: range(/from 10 ms to half of leaderTimeout/, 0, 9, 7_501),
  EDGELECT_STORE_SKEW: range(/at most 10 minutes/, 600_001),
  EDGELECT_MAX_LEASE: range(/longest lease of the whole group/, 14_999, 3_600_001),
  EDGELECT_REQUEST_TIMEOUT: range(/at least 50 ms|S8/, 0, 49, 10_000),
  EDGELECT_RETRY_DELAYS: [...['1', '1,2,3', '-1,2', '+1,2', '1.5,2', 'a,b', '', ' '].filter(Boolean).map((list) => [list, /two whole numbers/]), ['0,1', /each pause lasts/], ['1,99999', /each pause lasts/], OBJECT, LIST],
  EDGELECT_TERM_FLOOR: range(/at most 2\^51|whole number/, 2 ** 51 + 1, 2 ** 53),
  EDGELECT_SUSTAIN: range(/a tick must outlast|15 minutes/, 0, 5_000, 900_001),
  EDGELECT_R2: [['edgelect', ONLY_BINDING], [true, ONLY_BINDING], ['true', ONLY_BINDING], [1, ONLY_BINDING], [{ a: 1 }, ONLY_BINDING], [{ bound: 'KV' }, ONLY_BINDING]],
  EDGELECT_ENDPOINT: { s3: [...lines(/is an address such as/), ...['example.com', 'http://example.com', 'https://', 'ftp://a', 'https://u:p@a'].map((url) => [url, /address|https|no user name/])] },
  EDGELECT_BUCKET: { s3: [...lines(/./), ['', /name the bucket/], ['a/b', /./], ['..', /./]] },
  EDGELECT_REGION: { s3: [...lines(/./), ['a/b', /./], ['x'.repeat(200), /./]] },
  EDGELECT_PATH_STYLE: { s3: [['yes', /must be true or false/], [2, /must be true or false/], OBJECT] },
  EDGELECT_FORMAT: [OBJECT, ...['yaml', 'Kubernetes', 1].map((format) => [format, /must be native or kubernetes/])],
  EDGELECT_ACCESS_KEY_ID: { s3: [['', /\(not set\): set it; on Workers: wrangler secret put EDGELECT_ACCESS_KEY_ID/], [`${HIDDEN}\n`, /\(not shown\): must be a text of one line/], OBJECT] },
  EDGELECT_SECRET_ACCESS_KEY: { s3: [['', /\(not set\): set it/], [`${HIDDEN}\n`, /\(not shown\): must be a text of one line/], OBJECT] },
  EDGELECT_SESSION_TOKEN: { s3: [[`${HIDDEN}\n`, /\(not shown\): must be a text of one line/], OBJECT] },
  EDGELECT_GROUPS: [['A', /lower-case letters/], [5, /must be names/], [{ a: 1 }, /must be names/], ['a,a', /two groups/]],
  EDGELECT_CRON: [OBJECT, ...['hourly', '0 * * *', '* * * * * *', '@daily', 5].map((cron) => [cron, /must be one of the triggers in `crons` of wrangler\.toml.*five fields/])],
  EDGELECT_JOB_URL: [OBJECT, ...['http://jobs.example.com', 'jobs.example.com', 'https://u:p@a', 'https://', 'ftp://a', 'https://a/#b', 'https://a b', 'https://b\u00fccher.example/'].map((url) => [url, /\(not shown\): must/])],
  EDGELECT_JOB_SECRET: { job: [OBJECT, ...['short', HIDDEN, `${'A'.repeat(32)}=`, `whsec_${'A'.repeat(35)}==`].map((secret) => [secret, /\(not shown\): must be Base64/])] },
  EDGELECT_JOB_TIMEOUT: { job: [OBJECT, ...['soon', 0, 999, 840_001, -1, 1.5, '+2000'].map((ms) => [ms, /from 1000 to 840000/]), [840_000, /at most 145000: a trigger of this group may make 50 requests/], [145_001, /at most 145000/]] },
  EDGELECT_POLICY: { job: [OBJECT, ['exactlyOnce', /"atMostOnce" or "atLeastOnce"/], [1, /"atMostOnce" or "atLeastOnce"/]] },
  EDGELECT_MISSED: { job: [OBJECT, ['some', /"skip", "latest" or "all"/], ['all', /known only by the period/]] },
  EDGELECT_PERIOD: { job: range(/from leaderTimeout/, 0, 14_999, 40_000_000_000) },
  EDGELECT_ATTEMPTS: { job: range(/from 1 to 100/, 0, 101) },
  EDGELECT_BUDGET: { job: range(/to 15 minutes/, 0, 25_699, 900_001) },
  EDGELECT_SUBREQUESTS: { job: range(/from 10 to 100000/, 0, 9, 100_001) },
};

let worker;

before(async () => {
  worker = await isolate(GOOD, { entry: 'tests/worker/any-env.js', r2Buckets: ['EDGELECT_R2'], kvNamespaces: ['KV'] });
});

/** The status, the answer's body, and what the log says of this question. */
const asked = async (env) => {
  const from = worker.logged().length;
  const answer = await worker.ask('/health/leadership', { headers: { 'x-env': JSON.stringify(env).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`) } });
  const body = await answer.text();
  if (answer.status === 500) await until(() => /edgelect: .+ = /.test(worker.logged().slice(from)));
  return { status: answer.status, body, log: worker.logged().slice(from) };
};

const refused = async (env, variable, rule) => {
  const { status, body, log } = await asked(env);
  const what = `${variable}: ${JSON.stringify(env[variable])?.slice(0, 60)}: ${status} ${body} ${log}`;
  assert.equal(status, 500, what);
  assert.deepEqual(JSON.parse(body), { error: 'edgelect is not configured', variable }, what);
  const said = log.split('\n').find((line) => line.startsWith(`edgelect: ${variable} = `));
  assert.ok(said, what);
  assert.match(said, rule, what);
  assert.ok(said.length < 600, `it is short: ${said}`);
  assert.ok(!log.includes(HIDDEN) && !/[\u0000-\u0009\u000b-\u001f\u007f]/.test(log), what);
};

for (const [variable, cases] of Object.entries(WRONG)) {
  test(`${variable}: each wrong value is refused with its rule, and an empty one is none`, async () => {
    const base = cases.s3 ? S3 : cases.job ? { EDGELECT_JOB_URL: 'https://jobs.example.com/run' } : {};
    for (const [value, rule] of cases.s3 ?? cases.job ?? cases) await refused({ ...base, [variable]: value }, variable, rule);
    const needed = ['EDGELECT_LOCKFILE_PATH', 'EDGELECT_BUCKET', 'EDGELECT_ACCESS_KEY_ID', 'EDGELECT_SECRET_ACCESS_KEY'].includes(variable);
    if (needed) return refused({ ...base, [variable]: '' }, variable, /./);
    if (variable === 'EDGELECT_R2' || variable === 'EDGELECT_ENDPOINT') return;
    if (!cases.s3) assert.equal((await asked({ ...base, [variable]: '' })).status, 404);
  });
}

test('the table above has every variable', async () => {
  const { default: fs } = await import('node:fs');
  const rows = [...fs.readFileSync(new URL('../../docs/options.md', import.meta.url), 'utf8').matchAll(/^\| `(EDGELECT_\w+)`/gm)].map(([, name]) => name);
  assert.deepEqual(Object.keys(WRONG).sort(), rows.sort());
});

test('an EDGELECT variable that nobody knows is a misspelt one; others are nobody\'s business', async () => {
  for (const name of ['EDGELECT_LEADER_TIMOUT', 'EDGELECT_', 'EDGELECT_edgelect', 'EDGELECT_R2_BUCKET']) {
    for (const value of [HIDDEN, '', { a: HIDDEN }, 5]) await refused({ [name]: value }, name, /= \(not shown\): no such variable; docs\/options\.md lists them$/);
  }
  await refused({ AWS_SECRET_ACCESS_KEY: { a: HIDDEN } }, 'AWS_SECRET_ACCESS_KEY', TEXT);
  assert.equal((await asked({ AWS_PROFILE: { a: 1 }, OTHER: 'x', edgelect: 'x' })).status, 404);
  for (const name of ['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3']) {
    await refused({ [name]: `https://k:${HIDDEN}@s3.example.com` }, name, /= \(not shown\): this is one store and the R2 binding/);
  }
  await refused({ JOB: { a: 1 } }, 'JOB', /must be a service binding/);
  await refused({ JOB: HIDDEN }, 'JOB', /must be a service binding/);
  await refused({ EDGELECT_POLICY: 'atLeastOnce' }, 'EDGELECT_POLICY', /there is none: bind a service as JOB, or set EDGELECT_JOB_URL/);
});

test('what one trigger can\'t do is refused with what to change', async () => {
  const job = { EDGELECT_JOB_URL: 'https://jobs.example.com/run' };
  await refused({ ...job, EDGELECT_SUBREQUESTS: 10_000, EDGELECT_JOB_TIMEOUT: 830_000 }, 'EDGELECT_JOB_TIMEOUT', /at most 826400: EDGELECT_BUDGET, the job, .*15 minutes/);
  await refused({ ...job, EDGELECT_SUBREQUESTS: 20 }, 'EDGELECT_SUBREQUESTS', /leaves none for renewals; lower EDGELECT_BUDGET/);
  await refused({ EDGELECT_SUBREQUESTS: 13 }, 'EDGELECT_SUBREQUESTS', /a tick of this group makes 14 requests/);
  await refused({ EDGELECT_FREQUENT_INTERVAL: 500 }, 'EDGELECT_SUBREQUESTS', /^edgelect: EDGELECT_SUBREQUESTS = 50: a tick of this group makes 115 requests/);
  const slow = { EDGELECT_LEADER_TIMEOUT: 120_000, EDGELECT_SUSTAIN: 300_000 };
  await refused({ ...slow, EDGELECT_CRON: '* * * * *' }, 'EDGELECT_LEADER_TIMEOUT', /= 120000: the trigger "\* \* \* \* \*" comes every 60000 ms, and a cron finer than the lease/);
  await refused({ ...job, EDGELECT_CRON: '0 * * * *', EDGELECT_PERIOD: 60_000, EDGELECT_POLICY: 'atLeastOnce' }, 'EDGELECT_PERIOD', /the trigger "0 \* \* \* \*" has a slot every 3600000 ms/);
  for (const good of [{ EDGELECT_SUBREQUESTS: 14 }, { EDGELECT_CRON: '*/2 * * * *', ...slow, EDGELECT_SUBREQUESTS: 100 }, { ...job, EDGELECT_CRON: '0 * * * *', EDGELECT_PERIOD: 3_600_000 }, { EDGELECT_JOB_URL: 'HTTPS://jobs.example.com/run' }]) {
    assert.equal((await asked(good)).status, 404, JSON.stringify(good));
  }
});

test('a group\'s own variable is told by its own name', async () => {
  const groups = { EDGELECT_LOCKFILE_PATH: null, EDGELECT_GROUPS: 'reports,mail' };
  await refused({ ...groups, EDGELECT_LEADER_TIMEOUT__REPORTS: '15 s' }, 'EDGELECT_LEADER_TIMEOUT__REPORTS', NUMBER);
  await refused({ ...groups, EDGELECT_LEADER_TIMOUT__REPORTS: HIDDEN }, 'EDGELECT_LEADER_TIMOUT__REPORTS', /no such variable/);
  await refused({ ...groups, EDGELECT_R2__REPORTS: { bound: 'KV' } }, 'EDGELECT_R2__REPORTS', ONLY_BINDING);
  await refused({ ...groups, EDGELECT_SUSTAIN__POST: '1' }, 'EDGELECT_SUSTAIN__POST', /__REPORTS, __MAIL/);
  await refused({ ...groups, EDGELECT_LOCKFILE_PATH: 'leader.json' }, 'EDGELECT_LOCKFILE_PATH', /a lease of its own/);
  assert.equal((await asked({ ...groups, EDGELECT_LEADER_TIMEOUT__MAIL: '15 s' })).status, 404, 'what is wrong with another group is not this one\'s');
});
