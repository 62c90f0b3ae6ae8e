// The job that the deployed Worker calls. That a slot whose isolate vanishes runs again as its policy says is held by tests/live and
// tests/slots/once.rs.
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { bucketOptions, getLease, putObject, until } from '../js/bucket.mjs';
import { kept, serve, startProxy } from '../js/servers.mjs';
import { isolate, newGroup, outcomes as found } from './isolate.mjs';

const FIRST = Date.UTC(2026, 10, 21, 12);
/** The slot after those that the group has done. */
const SLOT = new Date(FIRST + 60_000);
/** A group whose slots up to `FIRST` were claimed and done, so that tests need not wait for the clock, and its lease. */
const slotGroup = async (more = {}) => {
  const group = { ...(await newGroup()), EDGELECT_FREQUENT_INTERVAL: '300', EDGELECT_BUDGET: '20000', EDGELECT_SUBREQUESTS: '10000', ...more };
  const lease = () => getLease(group.EDGELECT_LOCKFILE_PATH);
  const record = { ...(await lease()), slot: FIRST, slotDone: true, acquired: '2026-11-21T06:00:00Z' };
  await putObject(group.EDGELECT_LOCKFILE_PATH, JSON.stringify(record));
  return { group, lease };
};

/** A server that keeps what it was asked, and answers as `answer(request, response, count)` says. */
const jobServer = async (answer = (_request, response) => response.end('fine')) => {
  const asked = [];
  const { endpoint } = await kept(serve((request, response, body) => {
    const { method, url, headers } = request;
    asked.push({ method, url, headers, body: String(body) });
    answer(request, response, asked.length);
  }));
  return { asked, url: `${endpoint}/run?a=b` };
};

const signed = (secret, { headers, body }) =>
  createHmac('sha256', Buffer.from(secret, 'base64')).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64');

/** What the log says of each trigger, once it says so: it comes on its own way. */
const outcomes = (worker, count) => until(() => found(worker).length >= count && found(worker));

// Most of a job is waiting.
describe('jobs', { concurrency: 3 }, () => {
  test('c54 a slot calls its job once, with slot and token, whatever number of triggers and isolates', async () => {
    const { asked, url } = await jobServer();
    const secret = randomBytes(32).toString('base64');
    const { group, lease } = await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_JOB_SECRET: `whsec_${secret}` });
    const pair = await Promise.all([isolate(group), isolate(group)]);
    await Promise.all([...pair, ...pair].map((worker) => worker.tick(SLOT)));
    await pair[1].tick(SLOT);
    assert.equal(asked.length, 1);
    const [{ method, url: path, headers, body }] = asked;
    const { term, slot, slotDone, slotResult } = await lease();
    assert.deepEqual([slot, slotDone, slotResult], [SLOT.getTime(), true, 'ok 200']);
    assert.deepEqual([method, path, headers['content-type'], headers['edgelect-token']], ['POST', '/run?a=b', 'application/json', String(term)]);
    assert.deepEqual(JSON.parse(body), { group: group.EDGELECT_LOCKFILE_PATH, slot, term, serverId: 'the-worker' });
    assert.equal(headers['webhook-signature'], `v1,${signed(secret, asked[0])}`);
    assert.ok(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) < 60);
    assert.deepEqual([...(await outcomes(pair[0], 2)), ...(await outcomes(pair[1], 3))].sort(), ['done', 'taken', 'taken', 'taken', 'taken']);
    assert.equal(pair.some((worker) => worker.logged().includes(secret)), false);
    assert.match(pair[1].logged(), /outcome=taken slot=\d+ by="the-worker" finished=true/);
  });

  test('the check that docs/worker.md shows takes a genuine call, and none that was changed or is old', async () => {
    const page = readFileSync(new URL('../../docs/worker.md', import.meta.url), 'utf8');
    const [, snippet] = /```js\n(const verified = .*?)```/s.exec(page);
    const { verified } = await import(`data:text/javascript,${encodeURIComponent(`export ${snippet}`)}`);
    const { asked, url } = await jobServer();
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const worker = await isolate((await slotGroup({ EDGELECT_JOB_URL: url, EDGELECT_JOB_SECRET: secret })).group);
    await worker.tick(SLOT);
    const [{ headers, body }] = asked;
    const sent = (more = {}, text = body) => new Request(url, { method: 'POST', body: text, headers: { ...headers, ...more } });
    assert.equal((await verified(sent(), secret)).slot, SLOT.getTime());
    const old = String(Number(headers['webhook-timestamp']) - 301);
    for (const [request, key] of [
      [sent({}, body.replace('"term":', '"term":1')), secret],
      [sent({ 'webhook-id': 'slot_1_1' }), secret],
      [sent({ 'webhook-timestamp': old }), secret],
      [sent(), `whsec_${randomBytes(32).toString('base64')}`],
    ]) await assert.rejects(verified(request, key), /not from edgelect/);
  });

  const endless = (_request, response) => {
    response.writeHead(200);
    const more = () => !response.destroyed && response.write(Buffer.alloc(1 << 20), () => setImmediate(more));
    more();
  };
  /** What a job may answer by its URL, and what one behind a binding; what is recorded then, and whether the slot is done. */
  for (const [what, byUrl, byBinding, result, done] of [
    ['204', (_request, response) => response.writeHead(204).end(), () => new Response(null, { status: 204 }), 'ok 204', true],
    ['500', (_request, response) => response.writeHead(500).end('no'), () => new Response('no', { status: 500 }), 'failed 500', false],
    ['a redirect', (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
      () => new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/' } }), 'failed 307 redirect', false],
    ['nothing', () => {}, () => new Promise(() => {}), 'unknown: no answer in time', false],
    ['without end', endless, () => new Response(new Uint8Array(10 << 20)), 'ok 200', true],
    ['by closing the connection', (request) => request.socket.destroy(), undefined, 'unknown: no answer', false],
    ['by an exception', undefined, () => { throw new Error('a broken job'); }, 'failed 500', false],
  ]) {
    test(`a job that answers ${what}, by its URL or a service binding: bounded, recorded, and told`, async () => {
      const secret = randomBytes(32).toString('base64');
      for (const way of ['url', 'binding'].filter((one) => (one === 'url' ? byUrl : byBinding))) {
        const { asked, url } = await jobServer(byUrl);
        const JOB = async (request) => {
          asked.push({ url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() });
          return byBinding();
        };
        // What answers does so in time, however busy the machine is.
        const EDGELECT_JOB_TIMEOUT = what === 'nothing' ? '1500' : '8000';
        const where = way === 'url' ? { EDGELECT_JOB_URL: url } : {};
        const { group, lease } = await slotGroup({ EDGELECT_JOB_SECRET: secret, EDGELECT_JOB_TIMEOUT, ...where });
        const worker = await isolate(group, way === 'url' ? {} : { serviceBindings: { JOB } });
        const startedMs = Date.now();
        assert.equal((await worker.tick(SLOT)).outcome, done ? 'ok' : 'exception', `${way}: Cloudflare counts it as failed, or not`);
        assert.ok(Date.now() - startedMs < 15_000, `${way}: ${Date.now() - startedMs} ms`);
        const { term, slotResult, slotDone, slotFailures, lastUpdated } = await lease();
        assert.deepEqual([slotResult, slotDone, slotFailures, asked.length], [result, done, done ? undefined : 1, 1], way);
        assert.equal(lastUpdated, '0001-01-01T00:00:00Z', way);
        assert.deepEqual(await outcomes(worker, 1), [done ? 'done' : 'failed'], worker.logged());
        const [call] = asked;
        if (way === 'binding') assert.equal(call.url, 'https://job.edgelect.internal/');
        assert.deepEqual([JSON.parse(call.body).slot, call.headers['edgelect-token']], [SLOT.getTime(), String(term)], way);
        assert.equal(call.headers['webhook-signature'], `v1,${signed(secret, call)}`, way);
        assert.equal(worker.logged().includes(secret) || worker.logged().includes(signed(secret, call)), false, way);
      }
    });
  }

  test('a store that hangs under a running job: its connection is closed by the fence, and nothing is recorded', async () => {
    const proxy = await kept(startProxy(bucketOptions.endpoint));
    const leaseMs = 4_000;
    let closedMs;
    const { asked, url } = await jobServer((request) => request.socket.on('close', () => (closedMs = Date.now())));
    // A margin so wide that what a busy machine is late still ends before the lease.
    const wide = { EDGELECT_LEADER_TIMEOUT: String(leaseMs), EDGELECT_MARGIN: '2000', EDGELECT_BUDGET: '9000', EDGELECT_SUSTAIN: '9000' };
    const { group, lease } = await slotGroup({ ...wide, EDGELECT_JOB_URL: url, EDGELECT_ENDPOINT: proxy.endpoint });
    const worker = await isolate(group);
    const ticking = worker.tick(SLOT);
    await until(() => asked.length === 1);
    const hungMs = Date.now();
    proxy.answerWith(() => 'hang');
    await until(() => closedMs !== undefined);
    // Authority ends a margin before the lease; the rest is the timer's own.
    assert.ok(closedMs - hungMs < leaseMs, `closed after ${closedMs - hungMs} ms`);
    assert.equal((await ticking).outcome, 'exception');
    assert.deepEqual(await outcomes(worker, 1), ['lost']);
    const { slot, slotDone, slotResult } = await lease();
    assert.deepEqual([slot, slotDone, slotResult], [SLOT.getTime(), false, undefined]);
  });

  test('a trigger that names no time has a slot by the period alone', async () => {
    const { asked, url } = await jobServer();
    const { group } = await slotGroup({ EDGELECT_JOB_URL: url });
    const worker = await isolate(group);
    assert.equal((await worker.tick(new Date(0))).outcome, 'exception');
    await until(() => /slot = \(not set\): .*period/.test(worker.logged()));
    assert.equal(asked.length, 0);
    const periodic = await isolate({ ...group, EDGELECT_PERIOD: '86400000' });
    await Promise.all([periodic.tick(new Date(0)), periodic.tick(new Date(0))]);
    assert.deepEqual(asked.map(({ body }) => JSON.parse(body).slot % 86_400_000), [0]);
  });
});
