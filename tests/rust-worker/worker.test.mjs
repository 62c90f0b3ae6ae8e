import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unstable_readConfig } from 'wrangler';
import { inRoot } from '../../js/tools/paths.mjs';
import { serve } from '../../js/tools/serve.mjs';
import { kept, until } from '../js/servers.mjs';
import { startWorkerd } from './isolates.mjs';

const LEASE_MS = 3_000;

/** Takes reports, but none with a token below the highest seen. */
const openDesk = async () => {
  const reports = [];
  const waiting = [];
  let [highest, held] = [0, false];
  const { url } = await kept(serve((request, response) => {
    const [token, slot] = ['edgelect-token', 'edgelect-slot'].map((name) => Number(request.headers[name]));
    if (!(token >= highest)) return response.writeHead(409).end();
    highest = token;
    reports.push({ token, slot });
    if (held) waiting.push(response);
    // Long enough for another one to come in between, if nobody kept it out.
    else setTimeout(() => response.end(), 300);
  }));
  const go = () => {
    held = false;
    for (const response of waiting.splice(0)) response.end();
  };
  return { url, reports, refuse: () => (highest = Infinity), hold: () => (held = true), go };
};

const GROUP = {
  EDGELECT_LOCKFILE_PATH: 'leader/report.json',
  EDGELECT_SERVER_ID: 'the-worker',
  EDGELECT_LEADER_TIMEOUT: LEASE_MS,
  EDGELECT_FREQUENT_INTERVAL: 500,
  EDGELECT_STORE_SKEW: 500,
  EDGELECT_SUSTAIN: 8_000,
  // A job's variable, which a Worker without one refuses.
  EDGELECT_JOB_TIMEOUT: 12_000,
};

/** The record of a group whose slots were run until a minute ago. */
const record = () => JSON.stringify({
  leaderID: 'nobody', lastUpdated: '0001-01-01T00:00:00Z', session: 'before', sequence: 1, term: 1, leaseMs: LEASE_MS, format: 1,
  slot: Date.now() - 60_000, slotDone: true, acquired: '2026-11-21T06:00:00Z',
});

/** A group of these isolates, and the desk that takes its reports. */
const newGroup = async (names, variables = GROUP) => {
  const desk = await openDesk();
  const bindings = { ...variables, REPORT_URL: desk.url };
  const workerd = await startWorkerd({ entry: 'worker.js', wasm: 'rust_worker', names, bindings });
  await (await workerd.bucket()).put(variables.EDGELECT_LOCKFILE_PATH, record());
  return { ...workerd, desk, record: () => workerd.lease(variables.EDGELECT_LOCKFILE_PATH) };
};

const answered = async (asking, status) => {
  const answer = await asking;
  const body = await answer.text();
  assert.equal(answer.status, status, body);
  return { headers: answer.headers, body };
};

const released = ({ lastUpdated }) => lastUpdated === '0001-01-01T00:00:00Z';

// Most of a trigger is waiting.
describe('the Rust Worker', { concurrency: 4 }, () => {
  test("each slot's report is written once, with a token that grows, and the lease released", async () => {
    const { desk, ...workerd } = await newGroup(['one', 'other']);
    const slots = [3_000, 2_000].map((ms) => new Date(Date.now() - ms));
    for (const { tick } of workerd.isolates) for (const slot of slots) await tick(slot);
    assert.deepEqual(desk.reports.map(({ slot }) => slot), slots.map(Number));
    assert.ok(desk.reports[1].token > desk.reports[0].token);
    const { term, leaderID, slot, slotDone, ...left } = await workerd.record();
    assert.deepEqual([term, leaderID, slot, slotDone, released(left)], [desk.reports[1].token, 'the-worker', Number(slots[1]), true, true]);
    assert.equal(await workerd.outcomes(4), 'done done taken taken');
  });

  test('the isolate that leads answers its peers, another reads the store', async () => {
    const { desk, ...workerd } = await newGroup(['one', 'other']);
    const [one, other] = workerd.isolates;
    await answered(one.ask(), 404);
    desk.hold();
    const ticking = one.tick();
    await until(() => desk.reports.length === 1);
    const { body, headers } = await answered(one.ask(), 200);
    const { leaderID, term, remainingMs, source } = JSON.parse(body);
    assert.deepEqual([leaderID, term, source], ['the-worker', desk.reports[0].token, undefined]);
    assert.ok(remainingMs > 0 && remainingMs <= LEASE_MS * 0.9, remainingMs);
    assert.deepEqual([headers.get('cache-control'), headers.get('content-type')], ['no-store', 'application/json']);
    assert.match(headers.get('etag'), /^"[0-9a-f]{32}"$/);
    const told = JSON.parse((await answered(other.ask(), 200)).body);
    assert.deepEqual([told.source, told.remainingMs, told.term], ['store', undefined, term]);
    // Long enough for several renewals: the authority outlives its first lease.
    await until(async () => (await workerd.record()).sequence >= 6);
    await answered(one.ask(), 200);
    desk.go();
    await ticking;
    await answered(one.ask(), 404);
    assert.equal((await answered(one.ask('/health/leadership', { method: 'POST' }), 405)).headers.get('allow'), 'GET');
    await answered(one.ask('/health'), 404);
  });

  test('a report that is refused is logged as the failure that it is, and its slot not run again', async () => {
    const { desk, ...workerd } = await newGroup(['one']);
    desk.refuse();
    const slot = new Date();
    const counted = [await workerd.isolates[0].tick(slot), await workerd.isolates[0].tick(slot)];
    assert.deepEqual(counted, ['exception', 'ok'], 'Cloudflare counts what has failed');
    assert.equal(await workerd.outcomes(2), 'failed taken');
    assert.match(workerd.logged(), /outcome=failed .* cause="the report was refused with 409"/);
    assert.deepEqual([(await workerd.record()).slotDone, released(await workerd.record())], [false, true]);
  });

  test('the variables and the binding of its wrangler.toml are all that it needs', async () => {
    const { vars, r2_buckets: buckets, triggers } = unstable_readConfig({ config: inRoot('examples/rust-worker/wrangler.toml') });
    assert.deepEqual([buckets.map(({ binding }) => binding), triggers.crons], [['EDGELECT_R2'], ['* * * * *']]);
    const workerd = await newGroup(undefined, vars);
    await workerd.isolates[0].tick();
    assert.equal(await workerd.outcomes(1), 'done');
    assert.equal((await workerd.record()).leaderID, vars.EDGELECT_SERVER_ID);
  });
});
