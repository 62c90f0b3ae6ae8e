// An operator's requests as commands, and what is refused of them as calls, whose effects are held in tests/faces. And `edgelect init`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { Elector, EpochStorage, MemoryStorage, S3Storage } from 'edgelect';
import { bucketOptions, variables } from './bucket.mjs';
import { edgelect, npmOnly } from './command.mjs';
import { FAST, leads, newGroup, recordIn, until } from './group.mjs';
import { kept, startLiar } from './servers.mjs';

test('what cannot be asked is refused by name', async () => {
  const elector = new Elector({ storage: await newGroup(), ...FAST });
  const epochs = new Elector({ storage: new EpochStorage(bucketOptions), lockfilePath: `operator/${crypto.randomUUID()}` });
  for (const [field, call, options, one = elector] of [
    ['until', 'pause', { until: 'tomorrow' }], ['until', 'pause', { until: new Date(Date.now() - 60_000) }], ['by', 'pause', { by: 7 }],
    ['why', 'pause', { why: 'x'.repeat(201) }], ['until', 'stepDown', { until: Date.now() }], ['storage', 'stepDown', {}, epochs],
  ]) await assert.rejects(one[call](options), { code: 'EDGELECT_CONFIG', field });
  await assert.rejects(new Elector({ storage: new MemoryStorage(), ...FAST }).pause(), { code: 'EDGELECT_NOBODY_LEADS', message: /edgelect init/ });
});

test('a pause may last until a Date of another realm', async () => {
  const [storage, untilMs] = [await newGroup(), Math.floor(Date.now() / 1_000) * 1_000 + 3_600_123];
  const { written } = await new Elector({ storage, ...FAST }).pause({ until: vm.runInNewContext(`new Date(${untilMs})`) });
  assert.equal(written, true);
  assert.ok(JSON.stringify(recordIn(storage)).includes(new Date(untilMs).toISOString()));
});

test('the commands ask a real store, and their exit codes say what came of it', async () => {
  const lockfilePath = `leader/${crypto.randomUUID()}.json`;
  const run = (command, ...args) => edgelect([command, '--lockfile-path', lockfilePath, ...args], { variables });
  assert.equal((await run('pause')).code, 3, 'there is no group');
  assert.equal((await run('init')).code, 0);
  const nobody = await run('step-down');
  assert.deepEqual([nobody.code, nobody.stderr], [3, 'edgelect: nobody leads, so that there is no term to end\n']);
  const paused = await run('pause', '--for', '2h', '--by', 'ada', '--why', 'a migration');
  assert.match(paused.stdout, /^The group is paused until \d{4}-.*\.\n$/);
  const elector = new Elector({ ...FAST, lockfilePath, storage: new S3Storage(bucketOptions), probe: false });
  await elector.start();
  await until(() => elector.status().paused);
  assert.equal(elector.status().paused.by, 'ada');
  assert.deepEqual(JSON.parse((await run('resume', '--json')).stdout), { written: true, leaderId: null, term: null });
  const { token } = await leads(elector);
  const { code, stdout } = await run('step-down');
  assert.deepEqual([code, stdout.includes(`is asked to end term ${token}`)], [0, true]);
  await until(() => !elector.isLeader());
  await elector.stop();
  for (const [args, says] of [
    [['--for', 'ever'], /It is a number and ms, s, m, h or d/],
    // A date alone is another time in another place, and a number is what nobody means by it.
    [['--until', '2030-01-01'], /It is a time, such as /],
    [['--until', '12'], /It is a time, such as /],
    [['--until', '2027-02-29T00:00:00Z'], /It is a time, such as /],
    [['--until', '2020-01-01T00:00:00Z'], /^edgelect: --until = 1577836800000: must lie ahead/],
  ]) {
    const { code: refused, stderr } = await run('pause', ...args);
    assert.deepEqual([refused, says.test(stderr)], [2, true], stderr);
  }
  assert.equal((await run('pause', '--for', '1h', '--until', '2030-01-01')).code, 2);
  assert.match((await edgelect(['pause', '--help'])).stdout, /edgelect pause --bucket .* --for 2h/);
});

test('init starts a group once only, and what is wrong is told apart', npmOnly, async () => {
  const lockfilePath = `leader/${crypto.randomUUID()}.json`;
  const init = (more, args = ['--lockfile-path', lockfilePath]) => edgelect(['init', ...args], { variables: more ?? variables });
  const forbids = await kept(startLiar('forbids'));
  assert.deepEqual(await init(), { code: 0, stdout: `The group ${lockfilePath} is started: its first member leads at once.\n`, stderr: '' });
  for (const [told, code, says] of [
    [init(), 3, /^edgelect: the lease object exists already: [^\n]*\n$/],
    [init(variables, []), 2, /^edgelect: --lockfile-path = \(not set\): name the group: [^\n]*\nSet it by a flag or a variable, credentials by a variable: edgelect init --help\.\n$/],
    [init({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }), 2, /EDGELECT_BUCKET.*\nSet it by a flag or a variable, credentials by a variable: edgelect init --help\.\n$/],
    [init({ ...variables, EDGELECT_ENDPOINT: 'http://127.0.0.1:9' }), 1, /^edgelect: S3 bucket .*: no answer: /],
    [init({ ...variables, EDGELECT_ENDPOINT: forbids.endpoint }), 2, /403 AccessDenied/],
    [edgelect(['pause', '--lockfile-path', lockfilePath], { variables: { ...variables, EDGELECT_SECRET_ACCESS_KEY: 'wrong' } }), 2, /^edgelect: S3 bucket .* was answered 403/],
  ]) {
    const { code: ended, stderr } = await told;
    assert.equal(ended, code, stderr);
    assert.match(stderr, says);
  }
});
