import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, describe, test } from 'node:test';
import { bucketOptions, getLease, putObject, until } from '../js/bucket.mjs';
import { startProxy } from '../js/proxy.mjs';
import { isolate, newGroup } from './isolate.mjs';

const MINUTE = 60_000;
const FIRST = Date.UTC(2026, 10, 21, 12);
const slot = (minute) => new Date(FIRST + minute * MINUTE);
const servers = [];

after(() => Promise.all(servers.map((server) => server.close() && server.closeAllConnections())));

/** A group whose slots up to `FIRST` were claimed and done, so that tests need not wait for the clock. */
const slotGroup = async (more = {}) => {
  const group = { ...(await newGroup()), EDGELECT_FREQUENT_INTERVAL: '300', EDGELECT_BUDGET: '20000', EDGELECT_SUBREQUESTS: '10000', ...more };
  const key = group.EDGELECT_LOCKFILE_PATH;
  const record = { ...(await getLease(key)), slot: FIRST, slotDone: true, acquired: '2026-11-21T06:00:00Z' };
  await putObject(key, JSON.stringify(record));
  return group;
};

/** A server that keeps what it was asked, and answers as `answer(request, response, count)` says. */
const jobServer = async (answer = (_request, response) => response.end('fine')) => {
  const asked = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    asked.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    answer(request, response, asked.length);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { asked, url: `http://127.0.0.1:${server.address().port}/run?a=b` };
};

const found = (worker) => [...worker.logged().matchAll(/outcome=(\w+)/g)].map(([, outcome]) => outcome);

/** What the log says of each trigger, once it says so: it comes on its own way. */
const outcomes = (worker, count) => until(() => found(worker).length >= count && found(worker));

// Most of a job is waiting.
describe('jobs', { concurrency: 3 }, () => {
  test('c54 a slot calls its job once, with slot and token, whatever number of triggers and isolates', async () => {
    const { asked, url } = await jobServer();
    const secret = randomBytes(32).toString('base64');
    const group = await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_JOB_SECRET: `whsec_${secret}` });
    const pair = await Promise.all([isolate(group), isolate(group)]);
    await Promise.all([...pair, ...pair].map((worker) => worker.tick(slot(1))));
    await pair[1].tick(slot(1));
    assert.equal(asked.length, 1);
    const [{ method, url: path, headers, body }] = asked;
    const lease = await getLease(group.EDGELECT_LOCKFILE_PATH);
    assert.deepEqual([method, path, headers['content-type']], ['POST', '/run?a=b', 'application/json']);
    const expected = { group: group.EDGELECT_LOCKFILE_PATH, slot: slot(1).getTime(), term: lease.term, serverId: 'the-worker' };
    assert.deepEqual(JSON.parse(body), expected);
    assert.equal(headers['edgelect-token'], String(lease.term));
    const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = headers;
    const mac = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${id}.${time}.${body}`).digest('base64');
    assert.equal(signature, `v1,${mac}`);
    assert.ok(Math.abs(Date.now() / 1000 - Number(time)) < 60);
    assert.deepEqual([lease.slot, lease.slotDone, lease.slotResult], [slot(1).getTime(), true, 'ok 200']);
    assert.deepEqual([...(await outcomes(pair[0], 2)), ...(await outcomes(pair[1], 3))].sort(), ['done', 'taken', 'taken', 'taken', 'taken']);
    assert.equal(pair.some((worker) => worker.logged().includes(secret)), false);
  });

  test('the check that docs/crons.md shows takes a genuine call, and none that was changed or is old', async () => {
    const page = readFileSync(new URL('../../docs/crons.md', import.meta.url), 'utf8');
    const [, snippet] = /```js\n(const verified = .*?)```/s.exec(page);
    const { verified } = await import(`data:text/javascript,${encodeURIComponent(`export ${snippet}`)}`);
    const { asked, url } = await jobServer();
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const worker = await isolate(await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_JOB_SECRET: secret }));
    await worker.tick(slot(1));
    const [{ headers, body }] = asked;
    const sent = (more = {}, text = body) => new Request(url, { method: 'POST', body: text, headers: { ...headers, ...more } });
    assert.equal((await verified(sent(), secret)).slot, slot(1).getTime());
    const old = String(Number(headers['webhook-timestamp']) - 301);
    for (const [request, key] of [
      [sent({}, body.replace('"term":', '"term":1')), secret],
      [sent({ 'webhook-id': 'slot_1_1' }), secret],
      [sent({ 'webhook-timestamp': old }), secret],
      [sent(), `whsec_${randomBytes(32).toString('base64')}`],
    ]) await assert.rejects(verified(request, key), /not from edgelect/);
  });

  test('a job behind a service binding is called the same way', async () => {
    const asked = [];
    const JOB = async (request) => {
      asked.push({ token: request.headers.get('edgelect-token'), body: await request.json() });
      return new Response(null, { status: 204 });
    };
    const worker = await isolate(await slotGroup(), { serviceBindings: { JOB } });
    await worker.tick(slot(1));
    await worker.tick(slot(1));
    assert.equal(asked.length, 1);
    assert.deepEqual([asked[0].body.slot, asked[0].token], [slot(1).getTime(), String(asked[0].body.term)]);
    assert.deepEqual(await outcomes(worker, 2), ['done', 'taken']);
  });

  test('a job that answers 500, elsewhere, nothing, or without end: bounded, recorded, and told', async () => {
    const endless = (_request, response) => {
      response.writeHead(200);
      const more = () => !response.destroyed && response.write(Buffer.alloc(1 << 20), () => setImmediate(more));
      more();
    };
    for (const [answer, result, done] of [
      [(_request, response) => response.writeHead(500).end('no'), 'failed 500', false],
      [(_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(), 'failed 307 redirect', false],
      [(request) => request.socket.destroy(), 'unknown: no answer', false],
      [() => {}, 'unknown: no answer in time', false],
      [endless, 'ok 200', true],
    ]) {
      const { asked, url } = await jobServer(answer);
      const group = await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_JOB_TIMEOUT: '1500' });
      const worker = await isolate(group);
      const startedMs = Date.now();
      assert.equal((await worker.tick(slot(1))).outcome, done ? 'ok' : 'exception', 'Cloudflare counts it as failed, or not');
      assert.ok(Date.now() - startedMs < 15_000, `${result}: ${Date.now() - startedMs} ms`);
      const lease = await getLease(group.EDGELECT_LOCKFILE_PATH);
      assert.deepEqual([lease.slotResult, lease.slotDone, lease.slotFailures], [result, done, done ? undefined : 1]);
      assert.equal(lease.lastUpdated, '0001-01-01T00:00:00Z');
      assert.deepEqual([asked.length, await outcomes(worker, 1)], [1, [done ? 'done' : 'failed']], worker.logged());
    }
  });

  test('a job behind a service binding that answers 500, elsewhere, nothing, or 10 MiB: bounded, recorded, and told', async () => {
    const secret = randomBytes(32).toString('base64');
    for (const [answer, result, done] of [
      [() => new Response('no', { status: 500 }), 'failed 500', false],
      [() => new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/' } }), 'failed 307 redirect', false],
      [() => { throw new Error('a broken job'); }, 'failed 500', false],
      [() => new Promise(() => {}), 'unknown: no answer in time', false],
      [() => new Response(new Uint8Array(10 << 20)), 'ok 200', true],
    ]) {
      const asked = [];
      const JOB = async (request) => {
        asked.push({ url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() });
        return answer();
      };
      const group = await slotGroup({ EDGELECT_JOB_SECRET: secret, EDGELECT_JOB_TIMEOUT: '1500' });
      const worker = await isolate(group, { serviceBindings: { JOB } });
      const startedMs = Date.now();
      assert.equal((await worker.tick(slot(1))).outcome, done ? 'ok' : 'exception', result);
      assert.ok(Date.now() - startedMs < 15_000, `${result}: ${Date.now() - startedMs} ms`);
      const lease = await getLease(group.EDGELECT_LOCKFILE_PATH);
      assert.deepEqual([lease.slotResult, lease.slotDone, asked.length], [result, done, 1], worker.logged());
      const [{ url, headers, body }] = asked;
      assert.equal(url, 'https://job.edgelect.internal/');
      const mac = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64');
      assert.equal(headers['webhook-signature'], `v1,${mac}`);
      assert.equal(worker.logged().includes(secret) || worker.logged().includes(mac), false);
    }
  });

  test('a store that hangs under a running job: its connection is closed by the fence, and nothing is recorded', async () => {
    const proxy = await startProxy(bucketOptions.endpoint);
    const leaseMs = 4_000;
    let closedMs;
    const { asked, url } = await jobServer((request) => request.socket.on('close', () => (closedMs = Date.now())));
    // A margin so wide that what a busy machine is late still ends before the lease.
    const wide = { EDGELECT_LEADER_TIMEOUT: String(leaseMs), EDGELECT_MARGIN: '2000', EDGELECT_BUDGET: '9000', EDGELECT_SUSTAIN: '9000' };
    const group = await slotGroup({ ...wide, EDGELECT_JOB_URL: url, EDGELECT_ENDPOINT: proxy.endpoint });
    const worker = await isolate(group);
    const ticking = worker.tick(slot(1));
    await until(() => asked.length === 1);
    const hungMs = Date.now();
    proxy.answerWith(() => 'hang');
    await until(() => closedMs !== undefined);
    // Authority ends a margin before the lease; the rest is the timer's own.
    assert.ok(closedMs - hungMs < leaseMs, `closed after ${closedMs - hungMs} ms`);
    const lease = await getLease(group.EDGELECT_LOCKFILE_PATH);
    assert.deepEqual([lease.slot, lease.slotDone, lease.slotResult], [slot(1).getTime(), false, undefined]);
    assert.equal((await ticking).outcome, 'exception');
    assert.deepEqual(await outcomes(worker, 1), ['lost']);
    assert.equal((await getLease(group.EDGELECT_LOCKFILE_PATH)).slotResult, undefined);
    await proxy.close();
  });

  test('two groups, one with a job behind a binding and one with a URL: each calls its own', async () => {
    const bound = [];
    const JOB__REPORTS = async (request) => new Response(null, { status: bound.push(await request.json()) && 204 });
    const { asked, url } = await jobServer();
    const [reports, mail] = [await slotGroup(), await slotGroup()];
    const { EDGELECT_LOCKFILE_PATH: path, ...common } = reports;
    const worker = await isolate({
      ...common, EDGELECT_GROUPS: 'reports,mail', EDGELECT_JOB_URL__MAIL: url,
      EDGELECT_LOCKFILE_PATH__REPORTS: path, EDGELECT_LOCKFILE_PATH__MAIL: mail.EDGELECT_LOCKFILE_PATH,
    }, { serviceBindings: { JOB__REPORTS } });
    for (const minute of [1, 1, 2]) assert.equal((await worker.tick(slot(minute))).outcome, 'ok');
    const calls = [bound, asked.map(({ body }) => JSON.parse(body))];
    assert.deepEqual(calls.map((own) => own.map(({ slot: at }) => (at - FIRST) / MINUTE)), [[1, 2], [1, 2]]);
    assert.deepEqual(calls.map((own) => [...new Set(own.map(({ group }) => group))]), [[path], [mail.EDGELECT_LOCKFILE_PATH]]);
  });

  test('two groups that catch up in one trigger stay under its 50 requests together', async () => {
    const proxy = await startProxy(bucketOptions.endpoint);
    const { asked, url } = await jobServer();
    const [one, two] = [await slotGroup(), await slotGroup()];
    const usual = { EDGELECT_LEADER_TIMEOUT: '', EDGELECT_FREQUENT_INTERVAL: '', EDGELECT_STORE_SKEW: '', EDGELECT_SUSTAIN: '', EDGELECT_BUDGET: '', EDGELECT_SUBREQUESTS: '' };
    const worker = await isolate({
      ...one, ...usual, EDGELECT_ENDPOINT: proxy.endpoint, EDGELECT_JOB_URL: url, EDGELECT_POLICY: 'atLeastOnce', EDGELECT_PERIOD: MINUTE, EDGELECT_JOB_TIMEOUT: 4000,
      EDGELECT_GROUPS: 'one,two', EDGELECT_LOCKFILE_PATH: '', EDGELECT_LOCKFILE_PATH__ONE: one.EDGELECT_LOCKFILE_PATH, EDGELECT_LOCKFILE_PATH__TWO: two.EDGELECT_LOCKFILE_PATH,
    });
    await worker.tick(slot(30));
    const made = proxy.seen.length + asked.length;
    assert.ok(asked.length >= 4 && made <= 50, `${made} requests for ${asked.length} slots`);
    await proxy.close();
  });

  test('a failed job is called again by the next trigger at least once, before its own slot, and not at most once', async () => {
    for (const [policy, slots] of [['atLeastOnce', [1, 1, 2]], ['atMostOnce', [1, 2]]]) {
      const { asked, url } = await jobServer((_request, response, count) => response.writeHead(count === 1 ? 503 : 200).end());
      const worker = await isolate(await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_POLICY: policy }));
      await worker.tick(slot(1));
      await worker.tick(slot(2));
      assert.deepEqual(asked.map(({ body }) => (JSON.parse(body).slot - FIRST) / MINUTE), slots, worker.logged());
      const tokens = asked.map(({ headers }) => Number(headers['edgelect-token']));
      assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b));
    }
  });

  test('at least once a trigger makes up for the slots of its own period that no trigger came for, where none is named', async () => {
    const { asked, url } = await jobServer();
    const worker = await isolate(await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_POLICY: 'atLeastOnce' }));
    for (const minute of [1, 4]) await worker.tick(slot(minute));
    assert.deepEqual(asked.map(({ body }) => (JSON.parse(body).slot - FIRST) / MINUTE), [1, 2, 3, 4], worker.logged());
    const uneven = await jobServer();
    const other = await isolate(await slotGroup({ EDGELECT_JOB_URL: uneven.url, EDGELECT_POLICY: 'atLeastOnce' }));
    for (const minute of [1, 10]) await other.tick(slot(minute), '0 9,17 * * 1-5');
    assert.deepEqual(uneven.asked.map(({ body }) => (JSON.parse(body).slot - FIRST) / MINUTE), [1, 10], other.logged());
  });

  test('at least once a second trigger of one group is refused, until the operator names it or has nothing made up for', async () => {
    const { asked, url } = await jobServer();
    const group = await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_POLICY: 'atLeastOnce' });
    const [fives, hours] = ['*/5 * * * *', '0 * * * *'];
    const worker = await isolate(group);
    assert.equal((await worker.tick(slot(5), fives)).outcome, 'ok');
    assert.equal((await worker.tick(slot(60), hours)).outcome, 'exception');
    await until(() => /outcome=skipped why=otherCron conflict="[^"]*\*\/5 \* \* \* \*.*EDGELECT_CRON/.test(worker.logged()));
    assert.equal((await worker.tick(slot(60), fives)).outcome, 'ok');
    const minutes = () => asked.map(({ body }) => (JSON.parse(body).slot - FIRST) / MINUTE);
    const each = Array.from({ length: 12 }, (_, index) => 5 * (index + 1));
    assert.deepEqual(minutes(), each, 'none is lost');
    // A group that makes up for nothing may have both, and one whose operator names the other goes on with that.
    const skipping = await isolate({ ...group, EDGELECT_MISSED: 'skip' });
    assert.equal((await skipping.tick(slot(120), hours)).outcome, 'ok');
    const named = await isolate({ ...group, EDGELECT_CRON: hours });
    assert.equal((await named.tick(slot(240), hours)).outcome, 'ok');
    assert.deepEqual(minutes(), [...each, 120, 180, 240]);
    assert.equal((await getLease(group.EDGELECT_LOCKFILE_PATH)).slotCron, hours);
    assert.equal((await worker.tick(slot(245), fives)).outcome, 'exception');
  });

  test('a trigger that names no time has a slot by the period alone', async () => {
    const { asked, url } = await jobServer();
    const group = await slotGroup({ EDGELECT_JOB_URL: url });
    const worker = await isolate(group);
    assert.equal((await worker.tick(new Date(0))).outcome, 'exception');
    await until(() => /slot = \(not set\): .*period/.test(worker.logged()));
    assert.equal(asked.length, 0);
    const periodic = await isolate({ ...group, EDGELECT_PERIOD: '86400000' });
    await Promise.all([periodic.tick(new Date(0)), periodic.tick(new Date(0))]);
    assert.deepEqual(asked.map(({ body }) => JSON.parse(body).slot % 86_400_000), [0]);
  });

  test('c56 an isolate that vanishes under its job: the slot is run again only at least once', async () => {
    for (const [policy, slots] of [['atLeastOnce', [1, 1, 2]], ['atMostOnce', [1, 2]]]) {
      const { asked, url } = await jobServer((_request, response, count) => count > 1 && response.end());
      const group = await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_POLICY: policy });
      const dying = await isolate(group);
      const dead = dying.tick(slot(1)).catch(() => {});
      await until(() => asked.length === 1);
      await dying.kill();
      await dead;
      const worker = await isolate(group);
      await worker.tick(slot(2));
      assert.deepEqual(asked.map(({ body }) => (JSON.parse(body).slot - FIRST) / MINUTE), slots, worker.logged());
    }
  });

  test('a job longer than its lease is called once, and its lease renewed meanwhile', async () => {
    const { asked, url } = await jobServer((_request, response) => setTimeout(() => response.end(), 4000));
    const group = await slotGroup({ EDGELECT_JOB_URL: url });
    const [worker, other] = await Promise.all([isolate(group), isolate(group)]);
    const running = worker.tick(slot(1));
    await until(() => asked.length === 1);
    await other.tick(slot(1));
    await running;
    assert.deepEqual([asked.length, await outcomes(worker, 1), await outcomes(other, 1)], [1, ['done'], ['taken']]);
    assert.ok((await getLease(group.EDGELECT_LOCKFILE_PATH)).slotTookMs >= 4000);
  });

  test('a wrong variable of the job is named, and nothing of its value is shown', async () => {
    const { url } = await jobServer();
    const good = await slotGroup({ EDGELECT_JOB_URL: url });
    for (const [changes, name] of [
      [{ EDGELECT_JOB_URL: 'http://jobs.example.com/hidden' }, 'EDGELECT_JOB_URL'],
      [{ EDGELECT_JOB_URL: 'hidden' }, 'EDGELECT_JOB_URL'],
      [{ EDGELECT_JOB_SECRET: 'hidden' }, 'EDGELECT_JOB_SECRET'],
      [{ EDGELECT_JOB_TIMEOUT: '1h' }, 'EDGELECT_JOB_TIMEOUT'],
      [{ EDGELECT_POLICY: 'exactlyOnce' }, 'EDGELECT_POLICY'],
      [{ EDGELECT_MISSED: 'all' }, 'EDGELECT_MISSED'],
      [{ EDGELECT_PERIOD: '1000' }, 'EDGELECT_PERIOD'],
      [{ EDGELECT_ATTEMPTS: '0' }, 'EDGELECT_ATTEMPTS'],
      [{ EDGELECT_BUDGET: '1' }, 'EDGELECT_BUDGET'],
    ]) {
      const worker = await isolate({ ...good, ...changes });
      const answer = await worker.ask();
      assert.deepEqual([answer.status, (await answer.json()).variable], [500, name]);
      assert.equal((await worker.tick(slot(1))).outcome, 'exception');
      await until(() => worker.logged().includes(`edgelect: ${name} = `));
      assert.equal(worker.logged().includes('hidden'), false);
    }
  });
});
