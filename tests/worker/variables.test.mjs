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

const JOB = { EDGELECT_JOB_URL: 'https://jobs.example.com/run' };
const { EDGELECT_BUCKET, ...AWS } = S3;
const DYNAMODB = { ...AWS, EDGELECT_STORE: 'dynamodb', EDGELECT_TABLE: 'leases' };
const ROUTE53 = { ...AWS, EDGELECT_STORE: 'route53', EDGELECT_HOSTED_ZONE_ID: 'Z1', EDGELECT_RECORD_PREFIX: 'lock', EDGELECT_DOMAIN_NAME: 'example.com' };
/** What is set beside the variables that mean something there alone. */
const BESIDE = [
  [S3, /^EDGELECT_(ENDPOINT|BUCKET|REGION|PATH_STYLE|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)$/],
  [DYNAMODB, /^EDGELECT_TABLE$/],
  [ROUTE53, /^EDGELECT_(HOSTED_ZONE_ID|RECORD_PREFIX|DOMAIN_NAME)$/],
  [JOB, /^EDGELECT_(JOB_SECRET|JOB_TIMEOUT|POLICY|MISSED|PERIOD|ATTEMPTS|BUDGET|SUBREQUESTS)$/],
];
const OTHERS = { EDGELECT_R2: ONLY_BINDING, EDGELECT_GROUPS: /must be names/ };

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

// Each rule of a text is in src/config.rs and src/config/, src/vars.rs and src/vars/, src/groups.rs and src/job.rs.
test('each variable that is no text is refused by its name, and an empty one is none', async () => {
  const all = [...fs.readFileSync(new URL('../../docs/options.md', import.meta.url), 'utf8').matchAll(/^\| `(EDGELECT_\w+)`/gm)].map(([, name]) => name);
  assert.ok(all.length > 45, all.join());
  for (const variable of all) {
    const [base] = BESIDE.find(([, names]) => names.test(variable)) ?? [{}];
    await refused({ ...base, [variable]: { a: HIDDEN } }, variable, OTHERS[variable] ?? TEXT);
    if (base === JOB || (base !== S3 && base !== DYNAMODB && base !== ROUTE53 && !/_(R2|LOCKFILE_PATH)$/.test(variable))) assert.equal((await asked({ ...base, [variable]: '' })).status, 404, variable);
  }
  for (const [env, variable, rule] of [
    [{ EDGELECT_LOCKFILE_PATH: '' }, 'EDGELECT_LOCKFILE_PATH', /./],
    [{ EDGELECT_R2: null }, 'EDGELECT_BUCKET', /\(not set\): name the bucket that keeps the lease, or bind an R2 bucket/],
    [{ EDGELECT_LEADER_TIMEOUT: 1e300 }, 'EDGELECT_LEADER_TIMEOUT', NUMBER],
    ...['edgelect', true, 1, { bound: 'KV' }].map((bound) => [{ EDGELECT_R2: bound }, 'EDGELECT_R2', ONLY_BINDING]),
    [{ ...S3, EDGELECT_SESSION_TOKEN: `${HIDDEN}\n` }, 'EDGELECT_SESSION_TOKEN', /\(not shown\): must be a text of one line/],
    [{ ...S3, EDGELECT_ACCESS_KEY_ID: '' }, 'EDGELECT_ACCESS_KEY_ID', /\(not set\): set it by `npx wrangler secret put EDGELECT_ACCESS_KEY_ID`$/],
    [{ EDGELECT_STATUS_TOKEN: 'short' }, 'EDGELECT_STATUS_TOKEN', /\(not shown\): must have at least 16 characters/],
    [{ EDGELECT_JOB_URL: 'https://u:p@a' }, 'EDGELECT_JOB_URL', /\(not shown\): must/],
    [{ EDGELECT_CRON: 'hourly' }, 'EDGELECT_CRON', /must be one of the triggers in `crons` of wrangler\.toml.*five fields/],
    [{ ...JOB, EDGELECT_CRON: '0 9-17 * * *', EDGELECT_MISSED: 'all' }, 'EDGELECT_MISSED', /has no one period.*set this to skip/],
    [{ EDGELECT_POLICY: 'atLeastOnce' }, 'EDGELECT_POLICY', /there is none: bind a service as JOB, or set EDGELECT_JOB_URL/],
    ...[{ a: 1 }, HIDDEN].map((JOB) => [{ JOB }, 'JOB', /must be a service binding/]),
  ]) await refused(env, variable, rule);
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
});

// What else there is of either kind is held in src/groups.rs, src/groups/share.rs, src/job.rs and src/cron.rs.
test('what one trigger can\'t do is refused with what to change; a group\'s own variable is told by its own name', async () => {
  const slow = { EDGELECT_LEADER_TIMEOUT: 120_000, EDGELECT_SUSTAIN: 300_000 };
  const groups = { EDGELECT_LOCKFILE_PATH: null, EDGELECT_GROUPS: 'reports,mail' };
  for (const [env, variable, rule] of [
    [{ EDGELECT_FREQUENT_INTERVAL: 500 }, 'EDGELECT_SUBREQUESTS', /^edgelect: EDGELECT_SUBREQUESTS = 50: a tick of this group makes 128 requests/],
    [{ ...slow, EDGELECT_CRON: '* * * * *' }, 'EDGELECT_LEADER_TIMEOUT', /= 120000: the trigger "\* \* \* \* \*" comes every 60000 ms, and a cron finer than the lease/],
    [{ ...JOB, EDGELECT_CRON: '0 * * * *', EDGELECT_PERIOD: 60_000, EDGELECT_POLICY: 'atLeastOnce' }, 'EDGELECT_PERIOD', /the trigger "0 \* \* \* \*" has a slot every 3600000 ms/],
    [{ ...groups, EDGELECT_LEADER_TIMEOUT__REPORTS: '15 s' }, 'EDGELECT_LEADER_TIMEOUT__REPORTS', NUMBER],
    [{ ...groups, EDGELECT_R2__REPORTS: { bound: 'KV' } }, 'EDGELECT_R2__REPORTS', ONLY_BINDING],
  ]) await refused(env, variable, rule);
  for (const good of [{ EDGELECT_CRON: '*/2 * * * *', ...slow, EDGELECT_SUBREQUESTS: 100 }, { ...groups, EDGELECT_LEADER_TIMEOUT__MAIL: '15 s' }]) {
    assert.equal((await asked(good)).status, 404, JSON.stringify(good));
  }
});
