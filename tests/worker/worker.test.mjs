import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bucketOptions, until } from '../js/bucket.mjs';
import { kept } from '../js/ending.mjs';
import { startProxy } from '../js/proxy.mjs';
import { isolate, newGroup, outcomes } from './isolate.mjs';

// Most of a tick is waiting.
describe('the Worker', { concurrency: 3 }, () => {
  test('404 while nobody leads, 405 with Allow to another method, 404 elsewhere', async () => {
    const worker = await isolate(await newGroup());
    const answer = await worker.ask();
    assert.equal(answer.status, 404, await answer.clone().text());
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    const wrong = await worker.ask('/health/leadership', { method: 'POST', body: 'x' });
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
    assert.equal((await worker.ask('/health')).status, 404);
  });

  test('an instance of the wasm that broke down is replaced for the next event', async () => {
    const worker = await isolate(await newGroup(), { entry: 'tests/worker/bent-worker.js' });
    assert.equal((await worker.ask()).status, 404);
    assert.equal(await (await worker.ask('/break')).text(), 'broken');
    const answer = await worker.ask();
    assert.equal(answer.status, 404, await answer.clone().text());
    assert.deepEqual(await answer.json(), { error: 'no leader is known', leaderID: null });
    await until(() => /broke down/.test(worker.logged()));
    await worker.tick();
    await until(() => outcomes(worker).includes('led'));
  });

  test('questions from peers cost one read, however many come and whatever it brings', async () => {
    const group = await newGroup();
    const proxy = await kept(startProxy(bucketOptions.endpoint));
    // The usual ones: an answer out of the store is good for five seconds.
    const usual = { EDGELECT_LEADER_TIMEOUT: '15000', EDGELECT_FREQUENT_INTERVAL: '5000', EDGELECT_SUSTAIN: '57000' };
    const worker = await isolate({ ...group, ...usual, EDGELECT_ENDPOINT: proxy.endpoint });
    const ask = async () => (await worker.ask()).text();
    await Promise.all(Array.from({ length: 40 }, ask));
    assert.equal(proxy.seen.length, 1);
    proxy.answerWith(() => ({ status: 403, body: '<Error><Code>AccessDenied</Code></Error>' }));
    const sick = await isolate({ ...group, ...usual, EDGELECT_ENDPOINT: proxy.endpoint });
    const startMs = performance.now();
    for (let count = 0; count < 10; count += 1) await (await sick.ask()).text();
    // A failure answers for a second.
    const most = 1 + Math.floor((performance.now() - startMs) / 1_000);
    assert.ok(proxy.seen.length - 1 <= most, `${proxy.seen.length - 1} reads for ten questions, ${most} would do`);
  });

  test('a tick asks for the lease object alone: no probe', async () => {
    const group = await newGroup();
    const proxy = await kept(startProxy(bucketOptions.endpoint));
    const worker = await isolate({ ...group, EDGELECT_ENDPOINT: proxy.endpoint });
    await worker.tick();
    assert.ok(proxy.seen.length > 2);
    for (const { url } of proxy.seen) assert.equal(url, `/${bucketOptions.bucket}/${group.EDGELECT_LOCKFILE_PATH}`);
  });

  test('an answer out of a cache proves no leader', async () => {
    const group = await newGroup();
    const proxy = await kept(startProxy(bucketOptions.endpoint));
    const worker = await isolate({ ...group, EDGELECT_ENDPOINT: proxy.endpoint });
    const record = { leaderID: 'the-worker', session: 's', sequence: 1, term: 5, leaseMs: 2000, acquired: '2026-11-21T06:00:00Z', lastUpdated: '2026-11-21T06:00:00Z' };
    const [modified, date] = [0, 1000].map((ms) => new Date(Date.now() - 3_600_000 + ms).toUTCString());
    const headers = { etag: '"1"', date, 'last-modified': modified, 'content-type': 'application/json' };
    proxy.answerWith(() => ({ status: 200, headers: { ...headers, age: '3599' }, body: JSON.stringify(record) }));
    assert.equal((await worker.ask()).status, 404);
  });
});
