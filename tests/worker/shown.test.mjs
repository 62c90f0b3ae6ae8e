// What the deployed Worker shows monitors and people, and to whom.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../js/ending.mjs';
import { until } from '../js/until.mjs';
import { TIMES, isolate, released } from './isolate.mjs';

const R2 = { r2Buckets: ['EDGELECT_R2'] };
const TOKEN = 'a-token-of-the-tests';
const SLOT = Date.UTC(2026, 10, 23, 11, 55);
const RECORD = released({
  leaderID: 'before', session: 'hidden-session', term: 5, transitions: 4,
  slot: SLOT, slotTerm: 5, slotDone: true, slotResult: 'ok', slotTookMs: 5, history: [{ term: 4, by: 'a', how: 'expired' }, { term: 3, by: 'a', how: 'odd' }],
});
const worker = async (variables, keys = ['leader.json']) => {
  const path = variables.EDGELECT_GROUPS ? {} : { EDGELECT_LOCKFILE_PATH: 'leader.json' };
  const made = await isolate({ ...path, ...TIMES, ...variables }, R2);
  const bucket = await made.bucket();
  await Promise.all(keys.map((key) => bucket.put(key, RECORD)));
  const get = async (path, token, more) => {
    const answer = await made.ask(path, { headers: token ? { authorization: `Bearer ${token}` } : {}, ...more });
    return { status: answer.status, type: answer.headers.get('content-type'), policy: answer.headers.get('content-security-policy'), text: await answer.text() };
  };
  const json = async (path, token) => JSON.parse((await get(path, token)).text);
  return { ...made, get, json, statuses: async (token) => Promise.all(['/', '/status.json', '/metrics'].map(async (path) => (await get(path, token)).status)) };
};

describe('what a Worker shows', { concurrency: 3 }, () => {
  test('nothing by default; with a token or to anybody as EDGELECT_PAGE says', async () => {
    const off = await worker({});
    assert.deepEqual(await off.statuses(TOKEN), [404, 404, 404]);
    const byToken = await worker({ EDGELECT_PAGE: 'token', EDGELECT_STATUS_TOKEN: TOKEN });
    assert.deepEqual([await byToken.statuses(), await byToken.statuses(`${TOKEN}x`), await byToken.statuses(TOKEN)], [[200, 401, 401], [200, 401, 401], [200, 200, 200]]);
    for (const wrong of ['Bearer ', `Basic ${TOKEN}`, TOKEN]) assert.equal((await byToken.ask('/status.json', { headers: { authorization: wrong } })).status, 401, wrong);
    const { lastSlot, ...status } = await byToken.json('/status.json', TOKEN);
    assert.deepEqual([lastSlot, status.role, 'session' in status], [{ slot: SLOT, outcome: 'ok', by: 'before' }, 'none', false]);
    const open = await worker({ EDGELECT_PAGE: 'public' });
    assert.deepEqual(await open.statuses(), [200, 200, 200]);
    const { type, policy, text } = await open.get('/');
    assert.equal(type, 'text/html; charset=utf-8');
    assert.match(policy, /default-src 'none'; script-src 'sha256-[^']+'; .*frame-ancestors 'none'/);
    assert.ok(text.startsWith('<!doctype html>') && !text.includes('leader.json'), 'it has no data');
    assert.equal((await open.get('/', undefined, { method: 'POST' })).status, 405);
    const locked = await worker({ EDGELECT_PAGE: 'token' });
    assert.deepEqual(await locked.json('/status.json'), { error: 'edgelect is not configured', variable: 'EDGELECT_STATUS_TOKEN' });
  });

  test('its metrics are those of the record, and while it leads they say so', async () => {
    const { get, tick } = await worker({ EDGELECT_PAGE: 'public' });
    const idle = (await get('/metrics')).text;
    for (const line of [
      'edgelect_record_leader{group="leader.json"} 0',
      'edgelect_transitions_total{group="leader.json"} 4',
      `edgelect_last_slot_timestamp_seconds{group="leader.json"} ${SLOT / 1000}.0`,
      'edgelect_history_terms{group="leader.json",end="expired"} 1',
      'edgelect_history_terms{group="leader.json",end="other"} 1',
    ]) assert.ok(idle.split('\n').includes(line), `${line} in ${idle}`);
    assert.ok(!/hidden-session|store_requests|authority/.test(idle));
    const ticking = tick();
    await until(async () => (await get('/metrics')).text.includes('edgelect_record_leader{group="leader.json"} 1'));
    await ticking;
  });

  test('of several groups it shows those that the token is for, and one that is wrong hides no other', async () => {
    const { get, json } = await worker({
      EDGELECT_GROUPS: 'one,two,three', EDGELECT_STATUS_TOKEN__ONE: TOKEN, EDGELECT_STATUS_TOKEN__TWO: TOKEN, EDGELECT_STATUS_TOKEN__THREE: `other-${TOKEN}`,
      EDGELECT_SUSTAIN__TWO: 'long',
    }, ['one.json', 'two.json', 'three.json']);
    const { groups } = await json('/status.json', TOKEN);
    assert.deepEqual(groups.map(({ group, error }) => [group, error]), [['one.json', null], ['two', 'edgelect is not configured: EDGELECT_SUSTAIN__TWO']]);
    const metrics = (await get('/metrics', TOKEN)).text;
    assert.ok(metrics.includes('edgelect_record_leader{group="one.json"} 0') && metrics.includes('edgelect_error{group="two"} 1') && !metrics.includes('three'));
    assert.equal((await json('/status.json?group=three.json', `other-${TOKEN}`)).group, 'three.json');
    assert.equal((await get('/status.json?group=three.json', TOKEN)).status, 401);
    const wrong = await worker({ EDGELECT_GROUPS: 'one,two', EDGELECT_STATUS_TOKEN__ONE: TOKEN, EDGELECT_PAGE__TWO: 'odd' }, ['one.json']);
    assert.deepEqual((await wrong.json('/status.json', TOKEN)).groups.map(({ group }) => group), ['one.json']);
  });

  test('who may not see all groups does not learn which there are', async () => {
    const { get } = await worker({ EDGELECT_GROUPS: 'one,two,three', EDGELECT_STATUS_TOKEN: TOKEN, EDGELECT_STATUS_TOKEN__TWO: `other-${TOKEN}`, EDGELECT_PAGE: 'token' }, ['one.json']);
    const answers = (group, token, more) => Promise.all(['/', '/status.json', '/metrics'].map((path) => get(`${path}?group=${group}`, token, more)));
    for (const [token, more] of [[undefined], [`${TOKEN}x`], [TOKEN], [undefined, { method: 'POST' }]]) {
      const known = await answers('two.json', token, more);
      assert.deepEqual(await answers('none.json', token, more), known, `${token} ${JSON.stringify(more)}`);
      assert.deepEqual(known.map(({ status }) => status), more ? [405, 405, 405] : [200, 401, 401]);
    }
    const alone = await worker({ EDGELECT_STATUS_TOKEN: TOKEN });
    assert.deepEqual(await alone.json('/status.json?group=none.json', TOKEN), { error: 'no such group' });
  });

  test('its log lines are JSON where that is wished', async () => {
    const { tick, logged } = await worker({ EDGELECT_LOG: 'json' });
    await tick();
    const line = JSON.parse(await until(() => logged().split('\n').find((one) => one.startsWith('{'))));
    assert.deepEqual([line.level, line.group, line.event], ['info', 'leader.json', 'trigger']);
    assert.match(`${line.time} ${line.message}`, /^20\d\d-.+Z outcome=led term=\d+ requests=\d+$/);
  });

  test('whoever hangs up keeps nobody else from the answer', async () => {
    // A store whose answers take their time; Miniflare's own requests do not hang up as a client on the network does.
    let reads = 0;
    const store = http.createServer(async (request, response) => {
      reads += 1;
      await sleep(300);
      response.writeHead(200, { etag: '"abc"', date: new Date().toUTCString(), 'last-modified': new Date().toUTCString() });
      response.end(released({ leaderID: 'the-worker', lastUpdated: new Date().toISOString(), session: 'of another' }));
    });
    await new Promise((resolve) => store.listen(0, '127.0.0.1', resolve));
    atEnd(() => store.close());
    const { url, ask } = await isolate({
      EDGELECT_ENDPOINT: `http://127.0.0.1:${store.address().port}`, EDGELECT_BUCKET: 'jobs', EDGELECT_LOCKFILE_PATH: 'leader.json',
      EDGELECT_SERVER_ID: 'the-worker', EDGELECT_ACCESS_KEY_ID: 'a', EDGELECT_SECRET_ACCESS_KEY: 'b',
    });
    const socket = net.connect(url.port, url.hostname);
    socket.on('error', () => {});
    socket.write(`GET /health/leadership HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
    await until(() => reads === 1);
    socket.resetAndDestroy();
    await sleep(350);
    const answer = await ask();
    assert.equal(answer.status, 200, `its read goes on, and answers others: ${await answer.text()}`);
  });
});
