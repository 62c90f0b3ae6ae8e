// `edgelect new`: what it writes, what it refuses and what it asks. What it writes is installed and run, by the lines that it ends
// with, in tests/examples/starters.mjs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { periodOf, readCron } from '../../js/cli/cron.js';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { CLI, edgelect, forEachRow } from './command.mjs';
import { onTerminal } from './terminal.mjs';

const folder = newFolder('new');

const starter = (...args) => edgelect(['new', ...args], { cwd: folder });
const read = (...names) => fs.readFileSync(path.join(folder, ...names), 'utf8');
const listed = (name) => fs.readdirSync(path.join(folder, name), { recursive: true }).sort();

test('each starter has its files, the values that were given, and the two lines to run next', async () => {
  const flags = ['--bucket', 'jobs', '--endpoint', 'https://abc.r2.cloudflarestorage.com', '--server-id', 'host-1', '--cron', '*/10  *  * * *'];
  // A folder that `git init` has made counts as empty.
  fs.mkdirSync(path.join(folder, 'mail/.git'), { recursive: true });
  const [node, deno, worker] = await Promise.all([
    starter('node', 'Mail Reports', ...flags),
    starter('deno', 'deep/mail', '--always', '--bucket', 'jobs', '--region', 'eu-central-1', '--lockfile-path', 'leader/other.json'),
    starter('worker', 'mail', '--bucket', 'jobs', '--cron', '59 23 LW * MON#2,friL'),
  ]);
  for (const { code, stderr } of [node, deno, worker]) assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(listed('Mail Reports'), ['.env.example', '.gitignore', 'README.md', 'main.mjs', 'package.json', 'report.mjs']);
  assert.match(node.stdout, /^ {2}cd 'Mail Reports' && npm install /m);
  const settings = read('Mail Reports', '.env.example').split('\n').filter((line) => line.startsWith('EDGELECT_'));
  assert.deepEqual(settings, [
    'EDGELECT_BUCKET=jobs', 'EDGELECT_ENDPOINT=https://abc.r2.cloudflarestorage.com', 'EDGELECT_REGION=auto', 'EDGELECT_LOCKFILE_PATH=leader/mail-reports.json',
    'EDGELECT_SERVER_ID=host-1', 'EDGELECT_ACCESS_KEY_ID=', 'EDGELECT_SECRET_ACCESS_KEY=',
  ]);
  assert.match(read('Mail Reports', 'main.mjs'), /^const PERIOD_MS = 5 \* 60_000;$/m);
  assert.match(read('Mail Reports', 'README.md'), /^ +\*\/10 \* \* \* \* cd \/opt\/mail-reports && npm start$/m);
  assert.match(read('Mail Reports', '.gitignore'), /^\.env$/m);

  assert.deepEqual(listed('deep/mail'), ['.env.example', '.gitignore', 'README.md', 'deno.json', 'main.mjs', 'report.mjs']);
  const hosts = { '': 'jobs.s3.eu-central-1.amazonaws.com', 'https://s3.dualstack.eu-west-1.amazonaws.com': 'jobs.s3.dualstack.eu-west-1.amazonaws.com', 'http://[::1]:8333/prefix': '[::1]:8333' };
  for (const [index, [endpoint, host]] of Object.entries(hosts).entries()) {
    assert.equal((await starter('deno', `host-${index}`, '--bucket', 'jobs', '--region', 'eu-central-1', '--endpoint', endpoint)).code, 0);
    assert.ok(JSON.parse(read(`host-${index}`, 'deno.json')).tasks.start.includes(` --allow-net=${host} `), host);
  }
  assert.match(read('deep/mail', 'main.mjs'), /elector\.lead\(/);
  assert.match(read('deep/mail', 'README.md'), /all the time/);

  assert.deepEqual(listed('mail'), ['.git', '.gitignore', 'README.md', 'package.json', 'src', 'src/index.js', 'src/report.mjs', 'wrangler.toml']);
  assert.match(read('mail', 'wrangler.toml'), /^name = "mail"\n.*^crons = \["59 23 LW \* MON#2,friL"\]\n.*^bucket_name = "jobs"$/ms);
  assert.match(read('mail', 'src/index.js'), /\{ lockfilePath: 'leader\/mail\.json', serverId: 'mail' \}/);
  // A bare # would cut the address off.
  assert.match(read('mail', 'README.md'), /\?cron=59%2023%20LW%20\*%20MON%232%2CfriL&time=\$1"/);
  for (const name of ['Mail Reports', 'deep/mail', 'mail']) assert.match(read(name, 'README.md'), /because nobody knows (what ran|who led) before it/);
});

test('no secret of the variables is written', async () => {
  const variables = { EDGELECT_ACCESS_KEY_ID: 'the-id', EDGELECT_SECRET_ACCESS_KEY: 'the-secret', AWS_SECRET_ACCESS_KEY: 'the-secret' };
  assert.equal((await edgelect(['new', 'node', 'secrets'], { cwd: folder, variables })).code, 0);
  for (const file of listed('secrets')) assert.doesNotMatch(read('secrets', file), /the-(id|secret)/, file);
});

const BUCKET_RULE = 'is 3 to 63 lower-case letters, digits, dashes and single dots, with a letter or digit at both ends';
const PLAIN_RULE = 'use letters, digits and . _ - / @ : + = here; another name can be written into the files later';
const NAME_RULE = 'names the Worker, and such a name has at most 63 lower-case letters, digits and dashes';
/** What is refused, and by which line. */
const REFUSED = [
  [['node', 'a', '--bucket', 'Jobs'], `--bucket "Jobs": ${BUCKET_RULE}`],
  [['worker', 'a', '--bucket', 'my.jobs'], '--bucket "my.jobs": R2 has no dots in a bucket\'s name: use dashes'],
  [['node', 'a', '--endpoint', 'http://s3.example.com'], '--endpoint "http://s3.example.com": must begin with https://; http:// is for loopback addresses only, because a lease that somebody on the way can change protects nothing; for a store on a private network see docs/options.md#a-store-on-a-private-network'],
  [['deno', 'a', '--endpoint', 'https://id:secret@s3.example.com'], '--endpoint "(not shown)": has no user name and no password: credentials are an option of their own'],
  [['node', 'a', '--lockfile-path', '/leader.json'], '--lockfile-path "/leader.json": is the key of the lease object: 1 to 1024 bytes, without a leading slash, empty or dot segments, or control characters, such as "leader/my-group.json"'],
  [['worker', 'a', '--lockfile-path', "a'b"], `--lockfile-path "a'b": ${PLAIN_RULE}`],
  [['node', 'a', '--server-id', 'a\nEDGELECT_BUCKET=b'], '--server-id "a\\nEDGELECT_BUCKET=b": must be 1 to 1024 bytes without control characters'],
  [['node', 'a', '--cron', '* * * *'], '--cron "* * * *": has 4 fields, and a cron has five: minute, hour, day of the month, month, day of the week'],
  [['worker', 'a', '--cron', '0 3 * * 0'], '--cron "0 3 * * 0": names "0" as the day of the week, which is * or 1 to 7 or SUN to SAT, as in 1-5, */10 or 1,15'],
  [['worker', 'Mail_Reports'], `DIR "Mail_Reports" ${NAME_RULE}: take "mail-reports", say`],
  [['worker', 'a'.repeat(64)], `DIR "${'a'.repeat(64)}" ${NAME_RULE}: take "${'a'.repeat(63)}", say`],
  [['node', 'full'], 'DIR "full" has "kept.txt" in it, and nothing is overwritten: name a new folder, or an empty one'],
  [['node', 'full/kept.txt'], 'DIR "full/kept.txt" is a file: name a new folder'],
  [['node', 'a', '--always', '--cron', '* * * * *'], "option '--always' cannot be used with option '--cron <fields>'\nSee edgelect new node --help."],
  [['deno'], "missing required argument 'dir'\nSee edgelect new deno --help."],
];

test('what is wrong is refused with what to do, and nothing is written', async () => {
  fs.mkdirSync(path.join(folder, 'full'));
  fs.writeFileSync(path.join(folder, 'full/kept.txt'), 'kept');
  await forEachRow(REFUSED, async ([args, line]) => {
    assert.deepEqual(await starter(...args), { code: 2, stdout: '', stderr: `edgelect: ${line}\n` }, args.join(' '));
  });
  assert.deepEqual(listed('full'), ['kept.txt']);
  assert.equal(read('full/kept.txt'), 'kept');
  assert.ok(!fs.existsSync(path.join(folder, 'a')));
});

test('on a terminal what is left out is asked, a wrong answer again; Enter takes the default, Ctrl-C writes nothing', async () => {
  const ask = (args, answers) => onTerminal([process.execPath, CLI, 'new', ...args], ']: ', answers, folder);
  const { code, shown } = await ask(['node', 'asked', '--server-id', 'me'],
    ['Jobs\r', 'jobs\r', 'https://abc.r2.cloudflarestorage.com\r', '\r', '\r', 'daily\r', '0 3 * * *\r']);
  assert.equal(code, 0, shown);
  const questions = [...shown.matchAll(/^ {2}([A-Z][^[\n]*\[.*?\]): /gm)].map(([, question]) => question);
  assert.deepEqual(questions, [
    'Bucket [edgelect]', 'Bucket [edgelect]', 'Address of the store [Amazon S3]', 'Region [auto]', 'Lease object in the bucket [leader/asked.json]',
    'Cron [* * * * *]', 'Cron [* * * * *]',
  ]);
  assert.match(shown, /^ {2}--bucket "Jobs": is 3 to 63 /m);
  assert.match(shown, /^ {2}--cron "daily": has 1 field, /m);
  assert.match(read('asked', '.env.example'), /^EDGELECT_BUCKET=jobs\n.*^EDGELECT_REGION=auto\n.*^EDGELECT_SERVER_ID=me$/ms);
  assert.match(read('asked', 'main.mjs'), /^const PERIOD_MS = 15 \* 60_000;$/m);

  const left = await ask(['worker', 'left'], ['jobs\r', '\u0003']);
  assert.equal(left.code, 130, left.shown);
  assert.match(left.shown, /\nedgelect: nothing was written\n$/);
  assert.ok(!fs.existsSync(path.join(folder, 'left')));

  const all = await ask(['deno', 'always', '--always', '--bucket', 'jobs', '--endpoint', '', '--region', 'us-east-1', '--lockfile-path', 'l', '--server-id', ''], []);
  assert.equal(all.code, 0, all.shown);
  assert.doesNotMatch(all.shown, /\]: /, 'nothing is left to ask, and a program that keeps running has no cron');
});

test('all times of a cron are multiples of its period, in every time zone', () => {
  for (const [cron, minutes] of [
    ['* * * * *', 1], ['*/5 * * * *', 5], ['*/10 * * * *', 5], ['*/20 * * * *', 5], ['0 * * * *', 15], ['0 3 * * 1-5', 15], ['30 9 1 jan,JUL sun', 15],
    ['7 * * * *', 1], ['3-59/6 * * * *', 3], ['5,25 * * * *', 5], ['12,30 * * * *', 3],
  ]) assert.equal(periodOf(readCron(cron, 'crontab')), minutes * 60_000, cron);
});

test('what a cron may say is what crontab and Cloudflare read', () => {
  const taken = (cron, dialect) => {
    try {
      return readCron(cron, dialect).text;
    } catch {
      return false;
    }
  };
  for (const dialect of ['crontab', 'cloudflare']) assert.equal(taken(' 0-59/15 0,12 1-15 1-6 MON-FRI ', dialect), '0-59/15 0,12 1-15 1-6 MON-FRI');
  const [both, neither] = [[true, true], [false, false]];
  for (const [cron, expected] of [
    ['* * * * 0', [true, false]], ['* * LW * *', [false, true]], ['* * 15W * *', [false, true]], ['* * * * 6L', [false, true]], ['* * * * MON#2', [false, true]],
    ['* * * * 1-7', both], ['@daily', neither], ['', neither], ['* * * * * *', neither], ['24 24 * * *', neither], ['* * 0 * *', neither], ['* * * 13 *', neither],
    ['5-1 * * * *', neither], ['5/10 * * * *', neither], ['*/0 * * * *', neither], ['1-2-3 * * * *', neither], ['1, * * * *', neither], ['-5 * * * *', neither],
    ['1.5 * * * *', neither], ['"* * * *', neither], ['* * * FOO *', neither], ['* * * * MON#6', neither], ['* * * * FOO#2', neither],
  ]) assert.deepEqual(['crontab', 'cloudflare'].map((dialect) => taken(cron, dialect) !== false), expected, cron);
});
