import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { readAll, serve } from '../../js/tools/serve.mjs';
import { until, variables } from '../js/bucket.mjs';
import { kept } from '../js/ending.mjs';
import { startWorkerd } from './isolates.mjs';

let workerd;
let server;
/** What came, from the beginning of the test: `{ request, response, body }`. */
let served = [];

const call = async (name, ...given) => {
  const answer = await workerd.isolates[0].ask(`/${name}`, { method: 'POST', body: JSON.stringify(given) });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${name}: ${text}\n${workerd.logged()}`);
  return text;
};

before(async () => {
  workerd = await startWorkerd({ entry: 'parts.js', wasm: 'parts', bindings: variables });
  const answers = {
    '/found': (response) => response.writeHead(200, { etag: '"v1"' }).end('body'),
    '/moved': (response) => response.writeHead(307, { location: '/found' }).end(),
    '/stalled': (response) => response.writeHead(200).write('x'),
    // Ten times what is asked for, and no end.
    '/endless': (response) => response.writeHead(200).write('x'.repeat(1_000_000)),
  };
  server = await kept(serve(async (request, response) => {
    const one = { request, response, body: undefined };
    served.push(one);
    one.body = String(await readAll(request));
    answers[request.url]?.(response);
  }));
});

const at = (path) => `${server.url}${path}`;

// An S3 bucket does natively; what the host's fetch makes of its requests is below.
test('an R2 binding conforms: every behaviour that a store must have', async () => {
  assert.equal(await call('conformR2', '$bucket'), '15');
});

test('a checkpoint lies beside the lease, as a native record whatever the lease is, over a binding and over S3', async () => {
  const said = /^Some\("\[1\]"\) Fenced true .*"\/cursor\.json"/;
  assert.match(await call('checkpoint', '$s3'), said);
  assert.match(await call('checkpoint', '$r2'), said);
});

test('what is in a bucket is judged: nothing, a record with its version and its time, and too much of it', async () => {
  const bucket = await workerd.bucket();
  assert.match(await call('readR2', '$bucket', 'none'), /^Answer { outcome: Missing, .*last_modified_ms: None/);
  const { httpEtag, uploaded } = await bucket.put('lease', JSON.stringify({ leaderID: 'a', leaseMs: 15_000 }));
  const found = await call('readR2', '$bucket', 'lease');
  assert.ok(found.includes(`Version(${JSON.stringify(httpEtag)})`) && found.includes('leader_id: "a"'), found);
  assert.ok(found.includes(`date_ms: None, last_modified_ms: Some(${uploaded.getTime()})`), found);
  await bucket.put('large', 'x'.repeat(10_000_000));
  assert.match(await call('readR2', '$bucket', 'large'), /Unreadable\(TooLarge, /);
  assert.match(await call('large'), /Unreadable\(TooLarge, .* true$/);
  assert.match(await call('failing'), /Unknown .*key \\?"a\\?": read: get: internal error \(10001\)/);
});

test('a request goes out as it is, once, and its answer comes back', async () => {
  served = [];
  assert.equal(await call('fetch', at('/found'), 'the body', 100), '200 4 false Some("\\"v1\\"") None');
  const [{ request, body }] = served;
  assert.deepEqual([request.method, request.headers['x-test'], request.headers['content-type'], body], ['PUT', 'as it is', undefined, 'the body']);
  assert.equal(await call('fetch', at('/moved'), '', 100), '307 0 false None Some("/found")');
  assert.deepEqual(served.map((one) => one.request.url), ['/found', '/moved'], 'no redirect is followed');
});

/** Calls a function whose event waits for us afterwards; its first connection must have ended by then. */
const endsConnection = async (name, ...given) => {
  served = [];
  const calling = call('thenWait', at('/wait'), name, ...given);
  const waiting = await until(() => served.find(({ request }) => request.url === '/wait'));
  await until(() => served.find(({ request }) => request.url !== '/wait').response.closed);
  waiting.response.end();
  return calling;
};

test('of a body without an end no more is read than was asked for, and its connection ends', async () => {
  assert.equal(await endsConnection('fetch', at('/endless'), '', 100_000), '200 100000 true None None');
});

test('a request that is dropped ends its connection, before its answer and within it', async () => {
  // Long enough for a busy machine to have sent it.
  for (const path of ['/silent', '/stalled']) assert.equal(await endsConnection('fetchFor', at(path), 2_000), 'false', path);
});

test('an error is short, and quotes neither an address nor a signature', async () => {
  const closed = await call('fetch', 'http://127.0.0.1:1/', '', 10);
  assert.ok(closed.length > 5 && closed.length <= 200 && !closed.includes('127.0.0.1'), closed);
  assert.equal(await call('refused', `broken ${'x'.repeat(1_000)}`), `broken ${'x'.repeat(193)}`);
  for (const text of ['Authorization: a', 'X-Amz-Signature', 'at https://bucket.example/key']) {
    assert.equal(await call('refused', text), 'an error whose text is not shown, because it quotes the request');
  }
});

test('a timer fires no earlier than asked, and one that is dropped is given back', async () => {
  const [, slept] = /^slept (\d+) false 0 0$/.exec(await call('countedSleep', 200, 60_000)) ?? [];
  assert.ok(slept >= 200 && slept < 30_000, slept);
  const [, dropped] = /^dropped (\d+) false 0 0$/.exec(await call('countedSleep', 60_000, 100)) ?? [];
  assert.ok(dropped >= 100 && dropped < 30_000, dropped);
});

test('a clock that stands at the due time of a pending timer is held, and one that it precedes has stepped back', async () => {
  assert.equal(await call('held'), 'false 0, false 0, true 0, false 0, false 1, false 1');
});

test('random bytes differ, and in the global scope there are none', async () => {
  const [one, other] = [await call('random'), await call('random')];
  assert.match(one, /^[0-9a-f]{32}$/);
  assert.notEqual(one, other);
  assert.match(await call('globalRandom'), /global scope/);
});
