import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bucketOptions, credentials, getLease, until } from '../js/bucket.mjs';
import { startProxy } from '../js/proxy.mjs';
import { healthy, isolate, newGroup } from './isolate.mjs';

// Most of a tick is waiting.
describe('the Worker', { concurrency: 3 }, () => {
  test('c55 a tick leads, parks at its end, and the next tick takes over at once in a new isolate', async () => {
    const long = { EDGELECT_LEADER_TIMEOUT: '6000', EDGELECT_REQUEST_TIMEOUT: '500', EDGELECT_SUSTAIN: '10500' };
    const bindings = { ...(await newGroup()), ...long };
    const key = bindings.EDGELECT_LOCKFILE_PATH;
    const [first, second] = [await isolate(bindings), await isolate(bindings)];
    // How long the wasm takes to start is no part of it.
    for (const worker of [first, second]) assert.equal((await worker.ask('/health')).status, 404);
    const ticking = first.tick();
    const answer = await until(healthy(first));
    const body = await answer.json();
    assert.equal(body.leaderID, 'the-worker');
    assert.equal(body.group, key);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('etag')?.length > 2, true);
    await ticking;
    const parked = await getLease(key);
    assert.deepEqual([parked.parked, parked.term, parked.leaderID], [true, body.term, 'the-worker']);
    await until(() => /edgelect tick: outcome=led term=\d+ requests=\d+/.test(first.logged()));
    const startMs = Date.now();
    const next = second.tick().catch(() => {});
    const taken = await until(async () => {
      const lease = await getLease(key);
      return lease.parked ? null : lease;
    });
    // A lease of six seconds would have had to be waited out by anybody else.
    assert.ok(Date.now() - startMs < 5000, `taken after ${Date.now() - startMs} ms`);
    assert.ok(taken.term > parked.term);
    assert.notEqual(taken.session, parked.session);
    await second.kill();
    await next;
  });

  test('an isolate without the session answers from the store, another serverId does not', async () => {
    const bindings = await newGroup();
    const [leading, idle, other] = await Promise.all([
      isolate(bindings),
      isolate(bindings),
      isolate({ ...bindings, EDGELECT_SERVER_ID: 'somebody-else' }),
    ]);
    const ticking = leading.tick().catch(() => {});
    const own = await (await until(healthy(leading))).json();
    const answer = await until(healthy(idle));
    const body = await answer.json();
    assert.equal(body.source, 'store');
    assert.equal('remainingMs' in body, false);
    assert.equal(body.term, own.term);
    assert.deepEqual([body, own].filter((one) => 'session' in one), [], 'nobody is shown the session');
    assert.ok(own.remainingMs > 0 && own.remainingMs <= 2250);
    assert.equal('source' in own, false);
    assert.equal((await other.ask()).status, 404);
    await leading.kill();
    await ticking;
  });

  test('two isolates woken by one trigger: one leads, the other follows to its end', async () => {
    const bindings = await newGroup();
    const pair = await Promise.all([isolate(bindings), isolate(bindings)]);
    await Promise.all(pair.map((worker) => worker.tick()));
    const ended = await Promise.all(pair.map((worker) => until(() => /outcome=(\w+) term=(\w+)/.exec(worker.logged()))));
    const outcomes = ended.map(([, outcome]) => outcome);
    // The second may find the lease parked by the first within its own budget, and then leads too, after it.
    assert.ok(outcomes.includes('led'), outcomes.join());
    const terms = ended.map(([, , term]) => term);
    assert.notEqual(terms[0], terms[1]);
  });

  test('404 while nobody leads, 405 with Allow to another method, 404 elsewhere', async () => {
    const worker = await isolate(await newGroup());
    const answer = await worker.ask();
    assert.equal(answer.status, 404, await answer.clone().text());
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    const wrong = await worker.ask('/health/leadership', { method: 'POST', body: 'x' });
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
    assert.equal((await worker.ask('/health')).status, 404);
  });

  test('a missing or wrong variable is named, in the log and in a 500 that shows no value', async () => {
    const good = await newGroup();
    for (const [changes, name] of [
      [{ EDGELECT_BUCKET: '' }, 'EDGELECT_BUCKET'],
      [{ EDGELECT_SECRET_ACCESS_KEY: '' }, 'EDGELECT_SECRET_ACCESS_KEY'],
      [{ EDGELECT_LOCKFILE_PATH: '' }, 'EDGELECT_LOCKFILE_PATH'],
      [{ EDGELECT_LEADER_TIMEOUT: '15 s' }, 'EDGELECT_LEADER_TIMEOUT'],
      [{ EDGELECT_SUSTAIN: 2000 }, 'EDGELECT_SUSTAIN'],
      [{ EDGELECT_MAX_LEASE: 1000 }, 'EDGELECT_MAX_LEASE'],
      [{ EDGELECT_PEER_MODE: 'perhaps' }, 'EDGELECT_PEER_MODE'],
      [{ EDGELECT_SERVER_ID: { name: 'a' } }, 'EDGELECT_SERVER_ID'],
      [{ EDGELECT_ENDPOINT: 'http://example.com' }, 'EDGELECT_ENDPOINT'],
    ]) {
      const worker = await isolate({ ...good, ...changes });
      const answer = await worker.ask();
      assert.equal(answer.status, 500, name);
      assert.deepEqual(await answer.json(), { error: 'edgelect is not configured', variable: name });
      await worker.tick();
      await until(() => worker.logged().includes(`edgelect: ${name} = `));
      assert.equal(worker.logged().includes(credentials.secretAccessKey), false);
    }
  });

  test('an instance of the wasm that broke down is replaced for the next event', async () => {
    const worker = await isolate(await newGroup(), { entry: 'tests/worker/trap.js' });
    assert.equal((await worker.ask()).status, 404);
    assert.equal(await (await worker.ask('/break')).text(), 'broken');
    const answer = await worker.ask();
    assert.equal(answer.status, 404, await answer.clone().text());
    assert.deepEqual(await answer.json(), { error: 'not the leader' });
    await until(() => /broke down/.test(worker.logged()));
    await worker.tick();
    await until(() => /edgelect tick: outcome=led/.test(worker.logged()));
  });

  test('questions from peers cost one read, however many come and whatever it brings', async () => {
    const group = await newGroup();
    const proxy = await startProxy(bucketOptions.endpoint);
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
    await proxy.close();
  });

  test('a tick asks for the lease object alone: no probe', async () => {
    const group = await newGroup();
    const proxy = await startProxy(bucketOptions.endpoint);
    const worker = await isolate({ ...group, EDGELECT_ENDPOINT: proxy.endpoint });
    await worker.tick();
    assert.ok(proxy.seen.length > 2);
    for (const { url } of proxy.seen) assert.equal(url, `/${bucketOptions.bucket}/${group.EDGELECT_LOCKFILE_PATH}`);
    await proxy.close();
  });

  test('an answer out of a cache proves no leader', async () => {
    const group = await newGroup();
    const proxy = await startProxy(bucketOptions.endpoint);
    const worker = await isolate({ ...group, EDGELECT_ENDPOINT: proxy.endpoint });
    const record = { leaderID: 'the-worker', session: 's', sequence: 1, term: 5, leaseMs: 2000, acquired: '2026-11-21T06:00:00Z', lastUpdated: '2026-11-21T06:00:00Z' };
    const [modified, date] = [0, 1000].map((ms) => new Date(Date.now() - 3_600_000 + ms).toUTCString());
    const headers = { etag: '"1"', date, 'last-modified': modified, 'content-type': 'application/json' };
    proxy.answerWith(() => ({ status: 200, headers: { ...headers, age: '3599' }, body: JSON.stringify(record) }));
    assert.equal((await worker.ask()).status, 404);
    await proxy.close();
  });

  test('a secret that is no text is refused by name before any request', async () => {
    const worker = await isolate({ ...(await newGroup()), EDGELECT_SECRET_ACCESS_KEY: { get: 'hidden' } });
    const answer = await worker.ask();
    assert.deepEqual([answer.status, (await answer.json()).variable], [500, 'EDGELECT_SECRET_ACCESS_KEY']);
  });
});
