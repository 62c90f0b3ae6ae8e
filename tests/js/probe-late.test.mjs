// Stores that keep their conditions at first sight only, in virtual time: what the doctor makes of each, and what a start does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualRuntime } from './virtual.mjs';

// Before the package, which must find the virtual clocks wherever it looks.
const runtime = virtualRuntime();
const { Elector, MemoryStorage, S3Storage } = await import('edgelect');

const CREDENTIALS = { accessKeyId: 'the-id', secretAccessKey: 'the-secret' };
const SECOND_MS = 1_000;

/** A bucket that does as `bend` says with what an honest one would answer. */
const bent = (bend) => {
  const bucket = runtime.bucket();
  const { port } = new URL(bucket.endpoint);
  const honest = runtime.bucket();
  const state = { changedMs: Date.now() };
  bucket.answerWith(async (url, init) => {
    const plain = async (more = init) => globalThis.fetch(url.replace(`:${port}`, `:${new URL(honest.endpoint).port}`), more);
    const answer = await bend({ init, plain, state });
    if (init.method === 'PUT' && answer.ok) state.changedMs = Date.now();
    return answer;
  });
  return new S3Storage({ endpoint: bucket.endpoint, bucket: 'jobs', credentials: CREDENTIALS });
};

const changed = (answer, headers) => new Response(answer.status === 304 ? null : answer.body, { status: answer.status, headers });

const headersOf = (answer, more) => {
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(more)) {
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
  }
  return headers;
};

/** Takes what it is given, whatever it asks, as soon as the object is older than this. */
const forgetsAfter = (ms) => bent(async ({ init, plain, state }) => {
  if (init.method !== 'PUT' || Date.now() - state.changedMs <= ms) return plain();
  const { etag } = Object.fromEntries((await plain({ method: 'GET', headers: {} })).headers);
  return plain({ ...init, headers: { 'if-match': etag } });
});

const answersOldEtag = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  const old = init.headers['if-match'];
  return init.method === 'PUT' && answer.ok && old ? changed(answer, headersOf(answer, { etag: old })) : answer;
});

const saysUnchanged = () => bent(async ({ init, plain }) => {
  const asked = init.method === 'GET' && init.headers['if-none-match'];
  return asked ? new Response(null, { status: 304, headers: { etag: asked } }) : plain();
});

const modifiedNow = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  const date = answer.headers.get('date');
  return init.method === 'GET' && answer.ok ? changed(answer, headersOf(answer, { 'last-modified': date })) : answer;
});

const namesNoVersion = () => bent(async ({ init, plain }) => {
  const answer = await plain();
  return init.method === 'PUT' ? changed(answer, headersOf(answer, { etag: undefined })) : answer;
});

const judged = async (storage, options) => {
  let diagnosis;
  const elector = new Elector({ storage, lockfilePath: 'a' });
  void elector.doctor({ races: 2, ...options }).then((one) => {
    diagnosis = one;
  });
  for (let tenths = 0; !diagnosis; tenths += 1) {
    assert.ok(tenths < 2_000, 'the probe does not end');
    await runtime.pass(100);
  }
  const { finding, steps } = diagnosis;
  return { finding, last: steps.at(-1).step, why: steps.at(-1).why };
};

for (const [name, make, options, last, why] of [
  ['keeps conditions for a minute', () => forgetsAfter(60 * SECOND_MS), { age: 61 * SECOND_MS }, 'create again, later', /a write whose condition did not hold/],
  ['keeps conditions for four seconds', () => forgetsAfter(4 * SECOND_MS), { age: 5 * SECOND_MS }, 'create again, later', /a write whose condition did not hold/],
  ['answers a write with the version before', answersOldEtag, {}, 'update', /each renewal would cost a term/],
  ['has a cache that calls an old version unchanged', saysUnchanged, {}, 'read with a stale version', /nothing has changed/],
  ['names the time of each reading as that of the last change', modifiedNow, {}, 'clocks', /another `Last-Modified`/],
]) {
  test(`c26 a store that ${name} is refused by the doctor`, async () => {
    const told = await judged(make(), options);
    assert.deepEqual([told.finding, told.last], ['violated', last], told.why);
    assert.match(told.why, why);
  });
}

test('c26 what keeps conditions for a minute is not found by a shorter wait, nor with none', async () => {
  for (const age of [0, 59 * SECOND_MS]) assert.equal((await judged(forgetsAfter(60 * SECOND_MS), { age })).finding, 'holds');
});

test('c26 a store that names no version of a write is judged by what it keeps', async () => {
  const { finding, why } = await judged(namesNoVersion());
  assert.equal(finding, 'holds', why);
});

test('c26 an honest store holds, over its S3 endpoint and as a storage of one\'s own', async () => {
  for (const storage of [bent(({ plain }) => plain()), new MemoryStorage()]) assert.equal((await judged(storage)).finding, 'holds');
});
