// `edgelect status`, `watch`, `plan` and `completions`: what an operator reads.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { inRoot } from '../../js/tools/paths.mjs';
import { PROGRAM, begin, edgelect, forEachRow, npmOnly } from './command.mjs';
import { folder, newGroup, store } from './commanded.mjs';
import { started } from './group.mjs';
import { onTerminal } from './terminal.mjs';

/** The lines that a terminal of so many columns shows. */
const shownOn = async (columns, args, variables) => {
  const env = Object.entries(variables).map(([name, text]) => `${name}=${text}`);
  const command = ['env', '-i', `PATH=${process.env.PATH}`, ...env, 'sh', '-c', `stty rows 24 cols ${columns}; exec "$@"`, 'sh', ...PROGRAM, ...args];
  return (await onTerminal(command, 'nothing is asked', [])).shown.split('\n');
};

test('status names who leads, since when and for how long, as a table, as a list on 40 columns, and as JSON', async () => {
  const group = await newGroup();
  const { token } = await started(group.elector);
  const { code, stdout } = await edgelect(['status'], { variables: group.variables() });
  assert.equal(code, 0);
  const [head, row] = stdout.split('\n');
  assert.match(head, /^GROUP +LEADER +SINCE +TERM +LEFT +LAST-SLOT$/);
  assert.match(row, new RegExp(`^${group.lockfilePath} +beside +20\\d\\d-\\S+Z +${token} +[12]s +-$`));
  const json = JSON.parse((await edgelect(['status', '--json'], { variables: group.variables() })).stdout);
  assert.deepEqual([json.state, json.leaderId, json.term, json.why], ['led', 'beside', token, null]);
  const narrow = await shownOn(40, ['status'], group.variables());
  assert.ok(narrow.includes('LEADER     beside') && narrow.includes(`TERM       ${token}`), narrow.join('\n'));
  await group.elector.stop();
  const after = await edgelect(['status', group.lockfilePath, 'leader/none'], { variables: group.variables() });
  assert.equal(after.code, 3);
  assert.match(after.stdout, /nobody leads: "beside" released the lease and nobody has claimed it/);
  assert.match(after.stdout, /^leader\/none: nobody leads: there is no lease object of this name: .* or your group has another name/m);
});

test('what a record says moves no cursor, however hostile', async () => {
  const group = await newGroup();
  const hostile = '\u001b[2J\u202e\nroot leads';
  const past = Array.from({ length: 8 }, () => ({ term: 9e15, by: hostile, from: 1e300, to: -1, how: hostile }));
  group.put(JSON.stringify({
    leaderID: hostile, leaderAddr: hostile, lastUpdated: new Date().toISOString(), term: 5, session: 's', sequence: 1, leaseMs: 15_000,
    acquired: '9999-12-31T23:59:59Z', slot: 4e15, slotTerm: 5, slotDone: true, history: past,
  }));
  for (const body of [undefined, '{', '[]', '{"leaderID":7}', '{"leaderID":"a","format":99}', 'x'.repeat(70_000)]) {
    if (body !== undefined) group.put(body);
    await forEachRow([['status'], ['status', '--period', '1h'], ['status', '--json'], ['step-down'], ['pause', '--for', '1m']], async (args) => {
      const { code, stdout, stderr } = await edgelect(args, { variables: group.variables() });
      if (args[0] === 'status') assert.ok([0, 3, 4].includes(code), `${code}: ${stderr}`);
      assert.doesNotMatch(args[0] === 'status' ? stdout : stdout + stderr, /[\u001b\u202e]|^root/m, args.join(' '));
    });
  }
});

test('a store that fails is 1, one that refuses 2, and a reader that goes away hides neither', async () => {
  const { variables } = await newGroup();
  for (const [more, code] of [[{ EDGELECT_ENDPOINT: 'http://127.0.0.1:1' }, 1], [{ EDGELECT_ENDPOINT: 'ftp://x' }, 2], [{ EDGELECT_STORE: 'tape' }, 2], [{ EDGELECT_BUKCET: 'x' }, 2]]) {
    const told = await edgelect(['status'], { variables: { ...variables(), ...more } });
    assert.equal(told.code, code, told.stderr);
    assert.match(told.stderr, /^edgelect: [^\n]*\n([^\n]*\n)?$/);
  }
  const script = `{ ${PROGRAM.join(' ')} status --json none none none; echo "exit $?" >&2; } | true`;
  const { stderr } = await promisify(execFile)('/bin/sh', ['-c', script], { env: { PATH: process.env.PATH, ...variables() } });
  assert.equal(stderr, 'exit 3\n');
});

test('a throttled table is a store that fails, whatever its status says', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' });
    response.end('{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"busy"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${server.address().port}`;
  const variables = { EDGELECT_STORE: 'dynamodb', EDGELECT_TABLE: 'locks', EDGELECT_LOCKFILE_PATH: 'a', EDGELECT_ENDPOINT: endpoint, EDGELECT_REGION: 'us-east-1', EDGELECT_ACCESS_KEY_ID: 'key', EDGELECT_SECRET_ACCESS_KEY: 'hidden' };
  const told = await edgelect(['status'], { variables });
  assert.equal(told.code, 1, told.stderr);
  const watched = begin(['watch', '--interval', '250ms'], { variables });
  await watched.says(/busy/);
  watched.kill('SIGINT');
  assert.deepEqual(await watched.ended, { code: null, signal: 'SIGINT' });
  server.close();
});

test('watch prints each change once, with --json as an object a line, until a signal', async () => {
  const { elector, variables, lockfilePath } = await newGroup();
  const [plain, json] = [[], ['--json']].map((more) => begin(['watch', '--interval', '250ms', ...more], { variables: variables() }));
  await Promise.all([plain.says(/the group was started/), json.says(/the group was started/)]);
  await elector.start();
  await Promise.all([plain.says(/beside leads since/), json.says(/"state":"led"/)]);
  await elector.stop();
  await plain.says(/"beside" released the lease/);
  await json.says(/"state":"led".*\n.*"state":"released"/);
  const objects = json.shown.stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(objects.map(({ state }) => state), ['released', 'led', 'released']);
  assert.ok(objects.every(({ at, group }) => Date.parse(at) > 0 && group === lockfilePath));
  assert.equal(plain.shown.stdout.trim().split('\n').length, 3);
  for (const one of [plain, json]) one.kill('SIGINT');
  assert.deepEqual(await plain.ended, { code: null, signal: 'SIGINT' });
  const { code, stdout } = await edgelect(['watch', '/leader/a'], { variables: variables() });
  assert.deepEqual([code, stdout], [2, ''], 'what is wrong is no change of a group');
});

test('keys, the region and the endpoint come from a profile of AWS\'s files, where it is named or no variable has them', async () => {
  const group = await newGroup();
  const file = (name, text) => {
    fs.writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const files = {
    AWS_SHARED_CREDENTIALS_FILE: file('credentials', '[night]\naws_access_key_id = nightkey\naws_secret_access_key = hidden\n[half]\naws_access_key_id = x\n[place]\naws_access_key_id = placekey\naws_secret_access_key = hidden\nregion = eu-south-1\n[away]\naws_access_key_id = awaykey\naws_secret_access_key = hidden\n'),
    AWS_CONFIG_FILE: file('config', `[profile night]\nregion = eu-north-1\n[profile place]\nendpoint_url = ${store.endpoint}\ns3 =\n  endpoint_url = http://127.0.0.1:9\n[profile away]\nregion = eu-north-1\nendpoint_url = http://127.0.0.1:9\n[profile script]\ncredential_process = echo '{"Version":1,"AccessKeyId":"scriptkey","SecretAccessKey":"hidden"}'\n`),
  };
  const variables = { ...group.variables(), EDGELECT_ACCESS_KEY_ID: '', EDGELECT_SECRET_ACCESS_KEY: '', ...files };
  const signed = (key, region) => `Credential=${key}/${new Date().toISOString().slice(0, 10).replaceAll('-', '')}/${region}/s3/`;
  const otherKeys = (family) => ({ [`${family}_ACCESS_KEY_ID`]: 'otherkey', [`${family}_SECRET_ACCESS_KEY`]: 'hidden', [`${family}_SESSION_TOKEN`]: 'hidden' });
  for (const [args, more, code, found] of [
    [['--profile', 'night'], {}, 3, signed('nightkey', 'eu-north-1')],
    [['--profile', 'place'], { EDGELECT_ENDPOINT: '' }, 3, signed('placekey', 'eu-south-1')],
    [['--profile', 'away'], {}, 3, signed('awaykey', 'eu-north-1')],
    [['--profile', 'away'], { EDGELECT_ENDPOINT: '', AWS_ENDPOINT_URL: store.endpoint, AWS_DEFAULT_REGION: 'us-west-2' }, 3, signed('awaykey', 'us-west-2')],
    [[], { AWS_PROFILE: 'script' }, ...(npmOnly.skip ? [2, /^edgelect: profile "script": it has no aws_access_key_id/] : [3, 'Credential=scriptkey/'])],
    [['--profile', 'night'], { ...otherKeys('EDGELECT'), ...otherKeys('AWS') }, 3, signed('nightkey', 'eu-north-1')],
    [['--profile', 'none'], otherKeys('AWS'), 2, /^edgelect: profile "none": /],
    [['--profile', 'half'], {}, 2, /^edgelect: profile "half": /],
    [['--profile', 'none'], {}, 2, /^edgelect: profile "none": /],
    [[], {}, 2, /^edgelect: EDGELECT_ACCESS_KEY_ID = \(not set\)/],
  ]) {
    const before = store.signed.length;
    const { code: seen, stderr } = await edgelect(['status', ...args], { variables: { ...variables, ...more } });
    assert.equal(seen, code, stderr);
    if (typeof found !== 'string') assert.match(stderr, found);
    else assert.ok(store.signed.slice(before).some((one) => one.includes(group.lockfilePath) && one.includes(found)), found);
    assert.doesNotMatch(stderr, /hidden|^ +at /m);
  }
});

test('a bucket that wrangler.toml binds is reached as Wrangler keeps it on this machine', npmOnly, async () => {
  const cwd = path.join(folder, 'worker');
  fs.mkdirSync(cwd);
  const toml = 'name = "w"\ncompatibility_date = "2025-11-01"\n[[r2_buckets]]\nbinding = "BUCKET"\nbucket_name = "jobs"\n';
  fs.writeFileSync(path.join(cwd, 'wrangler.toml'), toml);
  const r2 = (command, ...args) => edgelect([command, '--store', 'r2', '--binding', 'BUCKET', '--lockfile-path', 'leader/a', ...args], { cwd });
  const without = await r2('status');
  assert.deepEqual([without.code, /has no wrangler: npm install -D wrangler/.test(without.stderr)], [2, true]);
  fs.symlinkSync(inRoot('node_modules'), path.join(cwd, 'node_modules'));
  assert.equal((await r2('init')).code, 0);
  const { code, stdout } = await r2('status');
  assert.equal(code, 3);
  assert.match(stdout, /^leader\/a: nobody leads: the group was started/m);
});

test('the help of each command shows exit codes and an example, and its options fit 40 columns', npmOnly, async () => {
  for (const { name } of JSON.parse(fs.readFileSync('src/cli/commands.json', 'utf8')).commands) {
    const { stdout } = await edgelect([name, '--help']);
    assert.match(stdout, /^Exit codes:\n[^]*^Examples:\n[^]*edgelect /m, name);
  }
  const shown = (await shownOn(40, ['run', '--help'], {})).join('\n').split('\nExamples:')[0].replace(/^Usage:.*/, '');
  assert.deepEqual(shown.split('\n').filter((line) => line.length > 40 && /\s\S+\s/.test(line.trim())), []);
});

test('plan counts what the documentation counts', npmOnly, async () => {
  const { rows } = JSON.parse((await edgelect(['plan', '--members', '3', '--json'])).stdout);
  assert.deepEqual(rows[0], { follow: 'tight', crashMs: 15_500, releaseMs: 5_500, writes: 518_400, reads: 1_036_800, dollars: 3.01 });
  const operations = fs.readFileSync('docs/operations.md', 'utf8');
  assert.match(operations, /^\| S3 \| 5\.00, 0\.40 \|.*\| 3\.01 \|$/m);
  const { code, stderr } = await edgelect(['plan', '--members', '0']);
  assert.deepEqual([code, stderr.split('\n')[0]], [2, 'edgelect: --members = 0: must be more']);
});

test('bash completes commands, options and what an option takes', npmOnly, async () => {
  const { stdout } = await edgelect(['completions', 'bash']);
  for (const [expected, ...words] of [
    ['status', 'sta'], ['--nonblock', 'run', '--non'], ['dynamodb', 'status', '--store', 'd'], ['r2 route53', 'plan', '--store', 'r'],
    // The shell completes files.
    ['', 'run', '--bucket', 'x'],
  ]) {
    const script = `${stdout}\nCOMP_WORDS=(edgelect ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _edgelect; echo "\${COMPREPLY[*]}"`;
    assert.equal((await promisify(execFile)('bash', ['-c', script])).stdout.trim(), expected, words.join(' '));
  }
});
