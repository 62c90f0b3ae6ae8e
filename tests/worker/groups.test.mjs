import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { until } from '../js/until.mjs';
import { TIMES, healthy, isolate, released } from './isolate.mjs';

/** A Worker whose groups, at these keys, were there before it. */
const inGroups = async (keys, variables) => {
  const worker = await isolate({ ...TIMES, EDGELECT_GROUPS: 'reports,mail-out', ...variables }, { r2Buckets: ['EDGELECT_R2'] });
  const bucket = await worker.bucket();
  await Promise.all(keys.map((key) => bucket.put(key, released())));
  return worker;
};
const lines = (worker) => worker.logged().split('\n').filter((line) => line.startsWith('edgelect')).sort();
const asked = async (worker, path) => {
  const answer = await worker.ask(`/health/leadership${path === undefined ? '' : `?group=${encodeURIComponent(path)}`}`);
  return { status: answer.status, ...(await answer.json()) };
};

// Most of a tick is waiting.
describe('groups', { concurrency: 3 }, () => {
  test('one trigger leads both groups at once, each answers for itself, and each is a line of the log', async () => {
    const worker = await inGroups(['reports.json', 'leader/mail'], { EDGELECT_LOCKFILE_PATH__MAIL_OUT: 'leader/mail', EDGELECT_SERVER_ID__MAIL_OUT: 'postman' });
    const ticking = worker.tick();
    await Promise.all(['reports.json', 'leader/mail'].map((path) => until(healthy(worker, `/health/leadership?group=${path}`))));
    const [reports, mail, first, none] = await Promise.all(['reports.json', 'leader/mail', undefined, 'mail-out.json'].map((path) => asked(worker, path)));
    assert.deepEqual([reports.group, reports.leaderID, mail.group, mail.leaderID], ['reports.json', 'edgelect', 'leader/mail', 'postman']);
    assert.equal(first.group, 'reports.json', 'without a path the first group answers');
    assert.deepEqual(none, { status: 404, error: 'no such group' });
    await ticking;
    const found = await until(() => lines(worker).length >= 2 && lines(worker));
    const led = (group) => `edgelect tick: group=${group} outcome=led term=\\d+ requests=\\d+`;
    assert.match(found.join('\n'), new RegExp(`^${led('mail-out')}\n${led('reports')}$`));
  });

  test('a group that can\'t run hides no other, and is told by its name and its own variable', async () => {
    const worker = await inGroups(['mail-out.json'], { EDGELECT_SUSTAIN__REPORTS: 'long', EDGELECT_BUCKET__REPORTS: 'jobs' });
    const startMs = performance.now();
    assert.equal((await worker.tick()).outcome, 'exception', 'Cloudflare counts it as failed');
    assert.ok(performance.now() - startMs > TIMES.EDGELECT_SUSTAIN - 2_000, 'once the others have ended');
    await until(() => lines(worker).length === 2);
    const [failed, led] = lines(worker).sort((a, b) => a.length - b.length).reverse();
    assert.equal(failed, 'edgelect: group=reports EDGELECT_SUSTAIN__REPORTS = "long": must be a whole number, durations in milliseconds');
    assert.match(led, /^edgelect tick: group=mail-out outcome=led/);
    assert.deepEqual(await asked(worker, 'reports.json'), { status: 500, error: 'edgelect is not configured', variable: 'EDGELECT_SUSTAIN__REPORTS' });
  });

  test('a group runs on the trigger that it names, and a trigger that is nobody\'s says so', async () => {
    const worker = await inGroups(['reports.json', 'mail-out.json'], { EDGELECT_CRON__REPORTS: '0 * * * *', EDGELECT_CRON: '*/5 * * * *' });
    assert.equal((await worker.tick(new Date(), '1 1 1 1 1')).outcome, 'exception', 'its slots would never run, and no one would know');
    await until(() => /no group is for the trigger "1 1 1 1 1"; let EDGELECT_CRON name one of `crons`/.test(worker.logged()));
    await worker.tick(new Date(), '0 * * * *');
    await until(() => lines(worker).length === 2);
    await worker.tick(new Date(), '*/5 * * * *');
    await until(() => lines(worker).length === 3);
    const ticks = lines(worker).filter((line) => line.includes('tick:'));
    assert.deepEqual(ticks.map((line) => /group=(\S+) outcome=(\w+)/.exec(line).slice(1)), [['mail-out', 'led'], ['reports', 'led']]);
  });
});
