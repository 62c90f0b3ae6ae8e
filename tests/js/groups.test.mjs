import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused, groupAt, groupsFor, groupsOf } from '../../js/groups.js';

const refused = (env, variable, pattern, of = groupsOf) => assert.throws(() => of(env), (error) => {
  assert.ok(error instanceof Refused, String(error));
  assert.equal(error.variable, variable);
  assert.match(error.message, pattern);
  assert.ok(error.message.startsWith(`${variable} = `), error.message);
  return true;
}, `${JSON.stringify(env)} is refused`);

test('without EDGELECT_GROUPS there is one group, with what it needs of the variables and nothing else', () => {
  for (const none of [undefined, null, '']) {
    const [group, ...more] = groupsOf({ EDGELECT_GROUPS: none, EDGELECT_LOCKFILE_PATH: 'a', AWS_REGION: 'b', JOB: 1, OTHER: 2 });
    assert.deepEqual([group.name, group.env, more], [undefined, { EDGELECT_LOCKFILE_PATH: 'a', AWS_REGION: 'b', JOB: 1 }, []]);
    assert.equal(group.source('EDGELECT_LOCKFILE_PATH'), 'EDGELECT_LOCKFILE_PATH');
  }
  assert.equal('EDGELECT_LOCKFILE_PATH' in groupsOf({})[0].env, false, 'the path of one group is asked for, not made up');
});

test('each group has what is common and what is its own, and a path of its own', () => {
  const [bound, other] = [{ bucket: 1 }, { bucket: 2 }];
  const [reports, mail] = groupsOf({
    EDGELECT_GROUPS: ' reports , mail-out',
    EDGELECT_R2: bound,
    EDGELECT_R2__MAIL_OUT: other,
    EDGELECT_SUSTAIN: '30000',
    EDGELECT_SUSTAIN__REPORTS: '40000',
    EDGELECT_MARGIN__MAIL_OUT: '100',
    EDGELECT_FOLLOW: 'tight',
    EDGELECT_FOLLOW__REPORTS: '',
    JOB__REPORTS: 'a binding',
  });
  assert.deepEqual(reports.env, { EDGELECT_R2: bound, EDGELECT_SUSTAIN: '40000', EDGELECT_FOLLOW: 'tight', JOB: 'a binding', EDGELECT_LOCKFILE_PATH: 'reports.json' });
  assert.deepEqual(mail.env, { EDGELECT_R2: other, EDGELECT_SUSTAIN: '30000', EDGELECT_MARGIN: '100', EDGELECT_FOLLOW: 'tight', EDGELECT_LOCKFILE_PATH: 'mail-out.json' });
  assert.deepEqual([reports.source('EDGELECT_SUSTAIN'), mail.source('EDGELECT_SUSTAIN'), mail.source('EDGELECT_MARGIN')],
    ['EDGELECT_SUSTAIN__REPORTS', 'EDGELECT_SUSTAIN', 'EDGELECT_MARGIN__MAIL_OUT']);
});

test('names that are none, double or too many are refused', () => {
  const list = (names) => ({ EDGELECT_GROUPS: names });
  for (const names of ['Reports', 'a b', 'a,', ',a', 'a,,b', ',', ' ', 'a_b', 'é', 'a.b', 'x'.repeat(33), 'a\nb', 'a;b']) {
    refused(list(names), 'EDGELECT_GROUPS', /1 to 32 lower-case letters, digits and dashes/);
  }
  refused(list('a,b,a'), 'EDGELECT_GROUPS', /two groups of the name a/);
  refused(list(Array.from({ length: 17 }, (_, index) => `g${index}`).join()), 'EDGELECT_GROUPS', /at most 16 groups, these are 17/);
  for (const none of [5, true, ['a'], { a: 1 }]) refused(list(none), 'EDGELECT_GROUPS', /must be names with commas/);
  assert.equal(groupsOf(list(Array.from({ length: 16 }, (_, index) => `g${index}`).join())).length, 16);
  assert.equal(groupsOf(list(`${'x'.repeat(32)},-,1,a--b`)).length, 4);
});

test('an ending is for a group that there is, and says which there are', () => {
  const groups = { EDGELECT_GROUPS: 'reports,mail-out' };
  for (const name of ['EDGELECT_SUSTAIN__MAIL', 'EDGELECT_SUSTAIN__reports', 'EDGELECT_SUSTAIN__', 'EDGELECT_NOTHING__X', 'JOB__MAIL']) {
    refused({ ...groups, [name]: 'hidden' }, name, /^\w+ = \(not shown\): it is for none of the groups in EDGELECT_GROUPS: those have the endings __REPORTS, __MAIL_OUT$/);
  }
  refused({ EDGELECT_SUSTAIN__REPORTS: 'hidden' }, 'EDGELECT_SUSTAIN__REPORTS', /EDGELECT_GROUPS is not set/);
  refused({ ...groups, EDGELECT_GROUPS__REPORTS: 'a' }, 'EDGELECT_GROUPS__REPORTS', /one for the whole Worker/);
});

test('a name whose ending could be read as another\'s is read as its own', () => {
  const groups = groupsOf({ EDGELECT_GROUPS: 'b,a--b,-b', EDGELECT_MARGIN__B: '1', EDGELECT_MARGIN__A__B: '2', EDGELECT_MARGIN___B: '3' });
  assert.deepEqual(groups.map(({ env }) => env.EDGELECT_MARGIN), ['1', '2', '3']);
});

test('two groups with one path are one group, and refused', () => {
  const groups = { EDGELECT_GROUPS: 'reports,mail' };
  refused({ ...groups, EDGELECT_LOCKFILE_PATH: 'leader.json' }, 'EDGELECT_LOCKFILE_PATH', /"leader.json": with EDGELECT_GROUPS each group has a lease of its own: remove/);
  refused({ ...groups, EDGELECT_LOCKFILE_PATH__MAIL: 'reports.json' }, 'EDGELECT_LOCKFILE_PATH__MAIL', /the groups reports and mail would have one lease/);
  refused({ ...groups, EDGELECT_LOCKFILE_PATH__REPORTS: 'mail.json' }, 'EDGELECT_LOCKFILE_PATH__REPORTS', /one lease/);
  refused({ ...groups, EDGELECT_LOCKFILE_PATH__REPORTS: 'a', EDGELECT_LOCKFILE_PATH__MAIL: 'a' }, 'EDGELECT_LOCKFILE_PATH__MAIL', /one lease/);
  assert.equal(groupsOf({ ...groups, EDGELECT_LOCKFILE_PATH__REPORTS: 'mail.json', EDGELECT_LOCKFILE_PATH__MAIL: 'reports.json' }).length, 2);
});

test('a question is for the group of its path, by default for the first', () => {
  const env = { EDGELECT_GROUPS: 'reports,mail', EDGELECT_LOCKFILE_PATH__MAIL: 'leader/mail' };
  const name = (path) => groupAt(env, path)?.name;
  assert.deepEqual([null, 'reports.json', 'leader/mail', 'mail.json', ''].map(name), ['reports', 'reports', 'mail', undefined, undefined]);
});

test('a trigger is for those that name it, and for those that name none', () => {
  const env = { EDGELECT_GROUPS: 'reports,mail,all', EDGELECT_CRON__REPORTS: ' 0  * * * * ', EDGELECT_CRON__MAIL: '*/5 * * * *' };
  const run = (cron) => groupsFor(env, cron).map(({ name }) => name);
  assert.deepEqual([run('0 * * * *'), run('*/5 * * * *'), run('* * * * *')], [['reports', 'all'], ['mail', 'all'], ['all']]);
});

test('a text that is no trigger is for all of them, where it is refused', () => {
  for (const cron of ['hourly', '0 * * *', '* * * * * *', 5, '*/5 * * * é', '*/5 * * * 1;2']) {
    assert.deepEqual(groupsFor({ EDGELECT_GROUPS: 'a,b', EDGELECT_CRON__A: cron }, '*/5 * * * *').map(({ name }) => name), ['a', 'b'], String(cron));
  }
});

test('the groups of one trigger share its requests, those of another do not', () => {
  const shares = (env, cron = '* * * * *') => groupsFor(env, cron).map(({ env: { EDGELECT_SUBREQUESTS: share } }) => share);
  assert.deepEqual(shares({}), [undefined], 'one group has them all');
  assert.deepEqual(shares({ EDGELECT_GROUPS: 'a,b' }), ['25', '25']);
  assert.deepEqual(shares({ EDGELECT_GROUPS: 'a,b,c', EDGELECT_SUBREQUESTS: '10000' }), ['3333', '3333', '3333']);
  assert.deepEqual(shares({ EDGELECT_GROUPS: 'a,b,c', EDGELECT_SUBREQUESTS__B: 20 }), ['15', 20, '15'], 'one\'s own is its share');
  const apart = { EDGELECT_GROUPS: 'a,b,c', EDGELECT_CRON__A: '0 * * * *', EDGELECT_CRON__B: '*/5 * * * *', EDGELECT_CRON__C: '*/5 * * * *' };
  assert.deepEqual([shares(apart, '0 * * * *'), shares(apart, '*/5 * * * *')], [[undefined], ['25', '25']]);
  const asked = (env, path) => groupAt(env, path).env.EDGELECT_SUBREQUESTS;
  assert.deepEqual(['a.json', 'b.json'].map((path) => asked(apart, path)), [undefined, '25']);
  assert.equal(asked({ ...apart, EDGELECT_GROUPS: 'a,b,c,all' }, 'all.json'), '16', 'that of the fullest trigger');
  for (const wrong of ['many', '', '9', '100001', { a: 1 }, true, '0x20', '1e3']) {
    const expected = wrong === '' ? '25' : wrong;
    assert.deepEqual(shares({ EDGELECT_GROUPS: 'a,b', EDGELECT_SUBREQUESTS: wrong }), [expected, expected], 'what is wrong is told as it was set');
  }
});

test('more groups than one trigger has requests for are refused, with what to do', () => {
  const names = Array.from({ length: 16 }, (_, index) => `g${index}`).join();
  const run = (env) => groupsFor(env, '* * * * *');
  const rule = /^EDGELECT_SUBREQUESTS = 50: 16 groups share what one trigger may make \(the default\), and 3 requests are too few for each: .*EDGELECT_CRON.*paid plan set this to 10000$/;
  refused({ EDGELECT_GROUPS: names }, 'EDGELECT_SUBREQUESTS', rule, run);
  refused({ EDGELECT_GROUPS: names }, 'EDGELECT_SUBREQUESTS', rule, (env) => groupAt(env, null));
  refused({ EDGELECT_GROUPS: 'a,b', EDGELECT_SUBREQUESTS__A: '10000' }, 'EDGELECT_SUBREQUESTS', /50: one group has what the others leave of what one trigger may make \(the default\), and 0 requests are too few for it: /, run);
  refused({ EDGELECT_GROUPS: 'a,b', EDGELECT_SUBREQUESTS: '12' }, 'EDGELECT_SUBREQUESTS', /^EDGELECT_SUBREQUESTS = 12: 2 groups share what one trigger may make, and 6 requests/, run);
  assert.equal(run({ EDGELECT_GROUPS: names, EDGELECT_SUBREQUESTS: '10000' }).length, 16);
  const own = { EDGELECT_GROUPS: 'a,b', EDGELECT_SUBREQUESTS__A: '30', EDGELECT_SUBREQUESTS__B: 21 };
  refused(own, 'EDGELECT_SUBREQUESTS', /^EDGELECT_SUBREQUESTS = 50: the shares of its groups are 51 requests together, more than one trigger may make \(the default\): .*paid plan set this to 10000$/, run);
  refused(own, 'EDGELECT_SUBREQUESTS', /51 requests together/, (env) => groupAt(env, 'b.json'));
  assert.equal(run({ ...own, EDGELECT_SUBREQUESTS__B: 20 }).length, 2);
  assert.equal(run({ ...own, EDGELECT_SUBREQUESTS: 51 }).length, 2);
  assert.equal(run({ ...own, EDGELECT_CRON__A: '0 * * * *' }).length, 1, 'they share no trigger');
});

test('more than five groups that call a URL on one trigger are refused by name: no renewal of theirs could leave', () => {
  const jobs = { EDGELECT_GROUPS: 'a,b,c,d,e,f,g', EDGELECT_SUBREQUESTS: '10000', EDGELECT_JOB_URL__A: 'https://hidden' };
  const all = { ...jobs, EDGELECT_JOB_URL: 'https://hidden' };
  const run = (env) => groupsFor(env, '* * * * *');
  const rule = /^EDGELECT_JOB_URL = \(not shown\): the groups a, b, c, d, e, f, g .*at most 5.*EDGELECT_CRON__F/;
  refused(all, 'EDGELECT_JOB_URL', rule, run);
  refused(all, 'EDGELECT_JOB_URL', rule, (env) => groupAt(env, null));
  refused(all, 'EDGELECT_JOB_URL', rule, (env) => groupAt(env, 'g.json'));
  const six = Object.fromEntries([...'ABCDEF'].map((name) => [`EDGELECT_JOB_URL__${name}`, 'https://hidden']));
  refused({ ...jobs, ...six }, 'EDGELECT_JOB_URL__F', /: the groups a, b, c, d, e, f call a URL/, run);
  const five = { ...jobs, ...six, EDGELECT_JOB_URL__F: '' };
  assert.equal(run(five).length, 7, 'the others lead, or have a bound job');
  assert.equal(run({ ...all, JOB__F: {}, JOB__G: {} }).length, 7, 'a binding of a group\'s own takes the place of the common URL');
  const apart = { ...all, EDGELECT_CRON__F: '0 * * * *', EDGELECT_CRON__G: '0 * * * *' };
  assert.equal(run(apart).length, 5);
  refused(apart, 'EDGELECT_JOB_URL', rule, (env) => groupsFor(env, '0 * * * *'));
  refused(apart, 'EDGELECT_JOB_URL', rule, (env) => groupAt(env, 'a.json'));
});

test('a group\'s own binding takes the place of the common address', () => {
  const [reports, mail] = groupsOf({
    EDGELECT_GROUPS: 'reports,mail', EDGELECT_ENDPOINT: 'https://a', EDGELECT_BUCKET: 'b', EDGELECT_R2__MAIL: { own: 1 },
    EDGELECT_JOB_URL: 'https://job', JOB__MAIL: { own: 2 }, AWS_ACCESS_KEY_ID: 'common', AWS_ACCESS_KEY_ID__REPORTS: 'own',
  });
  assert.deepEqual(['EDGELECT_ENDPOINT', 'EDGELECT_BUCKET', 'EDGELECT_JOB_URL'].filter((name) => name in mail.env), []);
  assert.deepEqual([mail.env.EDGELECT_R2.own, mail.env.JOB.own, mail.env.AWS_ACCESS_KEY_ID], [1, 2, 'common']);
  assert.deepEqual([reports.env.EDGELECT_ENDPOINT, reports.env.EDGELECT_JOB_URL, reports.env.AWS_ACCESS_KEY_ID], ['https://a', 'https://job', 'own']);
});
