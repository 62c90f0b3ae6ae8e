import assert from 'node:assert/strict';
import fs from 'node:fs';
import { before, test } from 'node:test';
import { until } from '../js/until.mjs';
import { isolate } from './isolate.mjs';

const HIDDEN = 'a-secret-that-nobody-may-see';
const GOOD = { EDGELECT_LOCKFILE_PATH: 'leader.json' };
// Nothing listens there: no question of these tests gets so far.
const S3 = { EDGELECT_R2: null, EDGELECT_ENDPOINT: 'http://127.0.0.1:9', EDGELECT_BUCKET: 'jobs', EDGELECT_ACCESS_KEY_ID: 'key', EDGELECT_SECRET_ACCESS_KEY: HIDDEN };

const NUMBER = /must be a whole number/;
const TEXT = /must be a text, a number or a flag/;
const ONLY_BINDING = /must be the binding of an R2 bucket: \[\[r2_buckets\]\] in wrangler\.toml$/;
/** What no variable can be but a binding. */
const OBJECT = [/= \(no text\): must be a text, a number or a flag$/, { a: HIDDEN }];
const NUMBERS = [OBJECT, [TEXT, [1, 2]], [NUMBER, '15 s', -1, '1.5', 1e300, true, '1\n2']];
const UNSEEN = [/\(not shown\): must be a text of one line/, `${HIDDEN}\n`];

/** What each variable can't be: the rule that the log must name, and values that break it; every value is in src/config.rs and
 * src/config/, src/vars.rs and src/vars/, and src/job.rs. Those of `S3`, `DYNAMODB` and `ROUTE53` are tried with that store, those of `JOB` with a job. */
const WRONG = {
  EDGELECT_LOCKFILE_PATH: [OBJECT, [/is the key of the lease object: 1 to 1024 bytes/, '/a', 'a\u0000', 'x'.repeat(1025)]],
  EDGELECT_SERVER_ID: [OBJECT, [/must be 1 to 1024 bytes without control characters/, 'a\u007f', 'x'.repeat(1025)]],
  EDGELECT_SERVER_ADDR: [OBJECT, [/must be a host or host:port/, 'https://a', 'a\nb'], [/= \(not shown\): must be a host/, `k:${HIDDEN}@a`]],
  EDGELECT_LEADER_TIMEOUT: [...NUMBERS, [/from 1000 ms to one hour|whole number/, 999, 3_600_001, 2 ** 53]],
  EDGELECT_FREQUENT_INTERVAL: [...NUMBERS, [/./, 49, 15_000]],
  EDGELECT_INFREQUENT_INTERVAL: [...NUMBERS, [/must be from EDGELECT_FREQUENT_INTERVAL/, 4_999, 86_400_001]],
  EDGELECT_FOLLOW: [OBJECT, [/"tight", "balanced" or "frugal"/, 'loosely', 1]],
  EDGELECT_PEER_MODE: [OBJECT, [/must be true or false/, 'yes', 2]],
  EDGELECT_FAIL_FAST: [OBJECT, [/must be true or false/, 'yes', 2]],
  EDGELECT_PEER_TIMEOUT: [...NUMBERS, [/from 50 ms to 10 minutes/, 0, 600_001]],
  EDGELECT_PEER_WAIT: [...NUMBERS, [/up to 55000 ms/, 55_001]],
  EDGELECT_PEER_SECRET: [OBJECT, [/= \(not shown\): must be one secret/, 'short', `${HIDDEN} b`, `${HIDDEN},${HIDDEN},${HIDDEN}`]],
  EDGELECT_INSECURE_PEERS: [OBJECT, [/must be true or false/, 'yes', 2]],
  EDGELECT_PEER_HOSTS: [OBJECT, [/must be host names/, 'https://a', 'a:80', '10.0.0.0/33']],
  EDGELECT_PEER_TRUST: [OBJECT, [/"edgelect" or "s3lect"/, 'anybody', 1]],
  EDGELECT_MAX_PEERS: [...NUMBERS, [/at most 1000000/, 1_000_001]],
  EDGELECT_HEARTBEAT: [...NUMBERS, [/from 100 ms to a minute|set EDGELECT_PEER_MODE too/, 99, 60_001, 500]],
  EDGELECT_SUSPECT_AFTER: [...NUMBERS, [/from two heartbeats/, 199, 3_600_001]],
  EDGELECT_MARGIN: [...NUMBERS, [/from 10 ms to half of EDGELECT_LEADER_TIMEOUT/, 9, 7_501]],
  EDGELECT_STORE_SKEW: [...NUMBERS, [/at most 10 minutes/, 600_001]],
  EDGELECT_MAX_LEASE: [...NUMBERS, [/longest lease of the whole group/, 14_999]],
  EDGELECT_REQUEST_TIMEOUT: [...NUMBERS, [/at least 50 ms|S8/, 49, 10_000]],
  EDGELECT_RETRY_DELAYS: [OBJECT, [/two whole numbers/, '1', '1,2,3', 'a,b'], [/each pause lasts/, '0,1', '1,99999']],
  EDGELECT_TERM_FLOOR: [...NUMBERS, [/at most 2\^51|whole number/, 2 ** 51 + 1]],
  EDGELECT_SUSTAIN: [...NUMBERS, [/a tick must outlast|15 minutes/, 5_000, 900_001]],
  EDGELECT_STORE: [OBJECT, [/must be s3, r2, epochs, dynamodb or route53$/, 'S3', 'memory', 1]],
  EDGELECT_TABLE: { DYNAMODB: [OBJECT, [/name the table/, ''], [/is a table's name/, 't', 'a b']] },
  EDGELECT_HOSTED_ZONE_ID: { ROUTE53: [OBJECT, [/\(not set\): give the hosted zone's id/, ''], [/is the id of a hosted zone/, 'a/b']] },
  EDGELECT_RECORD_PREFIX: { ROUTE53: [OBJECT, [/begins with/, ''], [/labels of 1 to 63/, '..', 'a b']] },
  EDGELECT_DOMAIN_NAME: { ROUTE53: [OBJECT, [/the zone's domain/, ''], [/labels of 1 to 63/, 'a..b', 'a b']] },
  EDGELECT_R2: [[ONLY_BINDING, 'edgelect', true, 1, { a: 1 }, { bound: 'KV' }]],
  EDGELECT_ENDPOINT: { S3: [OBJECT, [/is an address such as|https|no user name/, 'example.com', 'http://example.com', 'https://u:p@a']] },
  EDGELECT_BUCKET: { S3: [OBJECT, [/name the bucket/, ''], [/./, 'a/b', '..']] },
  EDGELECT_REGION: { S3: [OBJECT, [/./, 'a/b', 'x'.repeat(200)]] },
  EDGELECT_PATH_STYLE: { S3: [OBJECT, [/must be true or false/, 'yes']] },
  EDGELECT_FORMAT: [OBJECT, [/must be native or kubernetes/, 'yaml', 'Kubernetes', 1]],
  EDGELECT_ACCESS_KEY_ID: { S3: [OBJECT, UNSEEN, [/\(not set\): set it by `npx wrangler secret put EDGELECT_ACCESS_KEY_ID`$/, '']] },
  EDGELECT_SECRET_ACCESS_KEY: { S3: [OBJECT, UNSEEN, [/\(not set\): set it by `npx wrangler secret put EDGELECT_SECRET_ACCESS_KEY`$/, '']] },
  EDGELECT_SESSION_TOKEN: { S3: [OBJECT, UNSEEN] },
  EDGELECT_GROUPS: [[/lower-case letters/, 'A'], [/must be names/, 5, { a: 1 }], [/two groups/, 'a,a']],
  EDGELECT_PAGE: [[/must be off, token or public/, 'on', true]],
  EDGELECT_LOG: [[/must be text or json/, 'JSON', 1]],
  EDGELECT_STATUS_TOKEN: [[/\(not shown\): must have at least 16 characters/, 'short']],
  EDGELECT_CRON: [OBJECT, [/must be one of the triggers in `crons` of wrangler\.toml.*five fields/, 'hourly', '0 * * *', 5]],
  EDGELECT_JOB_URL: [OBJECT, [/\(not shown\): must/, 'http://jobs.example.com', 'https://u:p@a', 'https://b\u00fccher.example/']],
  EDGELECT_JOB_SECRET: { JOB: [OBJECT, [/\(not shown\): must be Base64/, 'short', HIDDEN]] },
  EDGELECT_JOB_TIMEOUT: { JOB: [OBJECT, [/from 1000 to 840000/, 'soon', 999, '+2000'], [/at most 140000: a trigger of this group may make 50 requests/, 840_000]] },
  EDGELECT_POLICY: { JOB: [OBJECT, [/"atMostOnce" or "atLeastOnce"/, 'exactlyOnce', 1]] },
  EDGELECT_MISSED: { JOB: [OBJECT, [/"skip", "latest" or "all"/, 'some'], [/known only by the period/, 'all']] },
  EDGELECT_PERIOD: { JOB: [...NUMBERS, [/from leaderTimeout/, 14_999, 40_000_000_000]] },
  EDGELECT_ATTEMPTS: { JOB: [...NUMBERS, [/from 1 to 100/, 0, 101]] },
  EDGELECT_BUDGET: { JOB: [...NUMBERS, [/to 15 minutes/, 25_699, 900_001]] },
  EDGELECT_SUBREQUESTS: { JOB: [...NUMBERS, [/from 10 to 100000/, 9, 100_001]] },
};
const JOB = { EDGELECT_JOB_URL: 'https://jobs.example.com/run' };
const { EDGELECT_BUCKET, ...AWS } = S3;
const DYNAMODB = { ...AWS, EDGELECT_STORE: 'dynamodb', EDGELECT_TABLE: 'leases' };
const ROUTE53 = { ...AWS, EDGELECT_STORE: 'route53', EDGELECT_HOSTED_ZONE_ID: 'Z1', EDGELECT_RECORD_PREFIX: 'lock', EDGELECT_DOMAIN_NAME: 'example.com' };
/** What is set beside. */
const BASES = { S3, JOB, DYNAMODB, ROUTE53 };

let worker;

before(async () => {
  worker = await isolate(GOOD, { entry: 'tests/worker/bent-worker.js', r2Buckets: ['EDGELECT_R2'], kvNamespaces: ['KV'] });
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
    const [kind] = Array.isArray(cases) ? [] : Object.keys(cases);
    const base = BASES[kind] ?? {};
    for (const [rule, ...values] of cases[kind] ?? cases) {
      for (const value of values) await refused({ ...base, [variable]: value }, variable, rule);
    }
    if (variable === 'EDGELECT_LOCKFILE_PATH') return refused({ [variable]: '' }, variable, /./);
    if ((kind === undefined || kind === 'JOB') && variable !== 'EDGELECT_R2') assert.equal((await asked({ ...base, [variable]: '' })).status, 404);
  });
}

test('the table above has every variable', () => {
  const rows = [...fs.readFileSync(new URL('../../docs/options.md', import.meta.url), 'utf8').matchAll(/^\| `(EDGELECT_\w+)`/gm)].map(([, name]) => name);
  assert.deepEqual(Object.keys(WRONG).sort(), rows.sort());
});

test('an EDGELECT variable that nobody knows is a misspelt one; others are nobody\'s business', async () => {
  for (const [name, meant] of [['EDGELECT_LEADER_TIMOUT', ': did you mean EDGELECT_LEADER_TIMEOUT\\?'], ['EDGELECT_', ';'], ['EDGELECT_edgelect', ';'], ['EDGELECT_R2_BUCKET', ': did you mean EDGELECT_BUCKET\\?']]) {
    const rule = new RegExp(`= \\(not shown\\): no such variable${meant} docs/options\\.md lists them$`);
    for (const value of [HIDDEN, '', { a: HIDDEN }, 5]) await refused({ [name]: value }, name, rule);
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
  await refused({ ...JOB, EDGELECT_SUBREQUESTS: 20 }, 'EDGELECT_SUBREQUESTS', /leaves none for renewals; lower EDGELECT_BUDGET/);
  await refused({ EDGELECT_FREQUENT_INTERVAL: 500 }, 'EDGELECT_SUBREQUESTS', /^edgelect: EDGELECT_SUBREQUESTS = 50: a tick of this group makes 128 requests/);
  const slow = { EDGELECT_LEADER_TIMEOUT: 120_000, EDGELECT_SUSTAIN: 300_000 };
  await refused({ ...slow, EDGELECT_CRON: '* * * * *' }, 'EDGELECT_LEADER_TIMEOUT', /= 120000: the trigger "\* \* \* \* \*" comes every 60000 ms, and a cron finer than the lease/);
  await refused({ ...JOB, EDGELECT_CRON: '0 * * * *', EDGELECT_PERIOD: 60_000, EDGELECT_POLICY: 'atLeastOnce' }, 'EDGELECT_PERIOD', /the trigger "0 \* \* \* \*" has a slot every 3600000 ms/);
  for (const good of [{ EDGELECT_SUBREQUESTS: 16 }, { EDGELECT_CRON: '*/2 * * * *', ...slow, EDGELECT_SUBREQUESTS: 100 }, { ...JOB, EDGELECT_CRON: '0 * * * *', EDGELECT_PERIOD: 3_600_000 }]) {
    assert.equal((await asked(good)).status, 404, JSON.stringify(good));
  }
});

test('a group\'s own variable is told by its own name', async () => {
  const groups = { EDGELECT_LOCKFILE_PATH: null, EDGELECT_GROUPS: 'reports,mail' };
  for (const [variable, value, rule] of [
    ['EDGELECT_LEADER_TIMEOUT__REPORTS', '15 s', NUMBER],
    ['EDGELECT_LEADER_TIMOUT__REPORTS', HIDDEN, /no such variable: did you mean EDGELECT_LEADER_TIMEOUT\?/],
    ['EDGELECT_R2__REPORTS', { bound: 'KV' }, ONLY_BINDING],
    ['EDGELECT_SUSTAIN__POST', '1', /__REPORTS, __MAIL/],
    ['EDGELECT_LOCKFILE_PATH', 'leader.json', /a lease of its own/],
  ]) await refused({ ...groups, [variable]: value }, variable, rule);
  assert.equal((await asked({ ...groups, EDGELECT_LEADER_TIMEOUT__MAIL: '15 s' })).status, 404, 'what is wrong with another group is not this one\'s');
});
