import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';
import * as wasm from '../../build/worker/edgelect.js';
import { inRoot } from '../../js/tools/paths.mjs';
import { bucketOptions, getLease, putObject, until } from '../js/bucket.mjs';
import { kept, startProxy } from '../js/servers.mjs';
import { healthy, held, isolate, newGroup, outcomes, released, warm } from './isolate.mjs';

test('these tests run on Node 24', () => assert.equal(process.versions.node.split('.')[0], '24'));

/** A tick that still leads when a busy machine comes to disturb it. */
const LONG = { EDGELECT_SUSTAIN: '15000', EDGELECT_SUBREQUESTS: '10000' };

// Most of a tick is waiting.
describe('the Worker', { concurrency: 3 }, () => {
  test('c52 the wasm breaks down in mid-tick, while nobody asks: the tick fails at its next turn, and the next one leads in a later term', async () => {
    const group = { ...(await newGroup()), ...LONG };
    const worker = await warm(group, { entry: 'tests/worker/bent-worker.js' });
    const ticking = worker.tick();
    const { term } = await (await until(healthy(worker))).json();
    const brokenMs = performance.now();
    await (await worker.ask('/break')).text();
    assert.equal((await ticking).outcome, 'exception');
    // A tick that nobody ends goes on for as long as its `sustain`.
    assert.ok(performance.now() - brokenMs < 3_000, `${performance.now() - brokenMs} ms`);
    await until(() => /broke down/.test(worker.logged()));
    await worker.tick();
    await until(() => outcomes(worker).includes('led'));
    assert.ok((await getLease(group.EDGELECT_LOCKFILE_PATH)).term > term);
    // A question that meets the broken instance is begun anew.
    await (await worker.ask('/break')).text();
    const answer = await worker.ask();
    assert.notEqual(answer.status, 500, await answer.text());
  });

  test('a tick that leads nothing for a reason that a later one would meet is a failed one', async () => {
    const failing = async (problem, record, { answer, ...bindings } = {}) => {
      const group = { ...(await newGroup()), ...bindings };
      const proxy = await kept(startProxy(bucketOptions.endpoint));
      if (answer) proxy.answerWith(answer);
      const worker = await warm({ ...group, EDGELECT_ENDPOINT: proxy.endpoint });
      // The last of all: a name that nobody used for two leases is forgotten.
      await putObject(group.EDGELECT_LOCKFILE_PATH, record);
      do {
        const before = outcomes(worker).length;
        const { outcome } = await worker.tick();
        assert.equal(outcome, 'exception', `${problem}: ${worker.logged()}`);
        await until(() => outcomes(worker).length > before);
        // A late answer at the end is told in its place.
      } while (!problem.test(worker.logged()) && / no answer(:| within) .*$/.test(worker.logged()));
      assert.match(worker.logged(), problem);
    };
    await Promise.all([
      failing(/outcome=followed .*problem="a newer version of edgelect/, released({ format: 99 })),
      // Its lease can still be read, and is waited for.
      failing(/outcome=followed .*problem="the lease object /, held(7, { leaseMs: 3_600_000 })),
      failing(/outcome=followed .*problem="a member has a lease of 3600000 ms/, held('somebody', { leaseMs: 3_600_000 })),
      // A connection that breaks is told in its place, and the pauses between refusals grow.
      failing(/outcome=followed .*problem="(the store refuses every write|.* no answer: )/, released(), {
        answer: ({ method }) => method === 'PUT' && { status: 412 },
        EDGELECT_SUSTAIN: '12000',
      }),
      // A cache answers for ever: what is read proves nothing of now.
      failing(/outcome=followed .*problem="the lease object has not changed for more than two leases/, released(), {
        answer: () => ({ status: 200, headers: { etag: '"cached"', age: '3600' }, body: held('somebody') }),
        EDGELECT_SUSTAIN: '15000',
      }),
      // The bucket's name stands between quotation marks of its own.
      failing(/problem="S3 bucket (?:[^"\\]|\\.)+ was answered 503(?:[^"\\]|\\.)*"$/m, released(), { answer: () => ({ status: 503 }) }),
      // That one leads, and does not stop the other.
      failing(/outcome=\w+ .*problem="other software writes this lease/, held('the-worker', { session: undefined })),
    ]);
  });

  test('a tick whose term another member takes is a failed one and says how it lost it', async () => {
    const group = { ...(await newGroup()), ...LONG };
    const worker = await warm(group);
    const ticking = worker.tick();
    const { term } = await (await until(healthy(worker))).json();
    await putObject(group.EDGELECT_LOCKFILE_PATH, held('another', { term: term + 1, leaseMs: 20_000 }));
    assert.equal((await ticking).outcome, 'exception');
    await until(() => outcomes(worker).length > 0);
    assert.match(worker.logged(), new RegExp(`outcome=led term=${term} requests=\\d+ lost=overtaken`));
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
});

/** What workerd has no use for, or refuses, outside of an event. */
const REFUSED = [[globalThis, 'fetch'], [globalThis, 'setTimeout'], [globalThis.crypto, 'getRandomValues'], [Date, 'now']];

test('an isolate that starts rehearses a slot, without a clock, a timer, randomness or a request', () => {
  wasm.initSync({ module: fs.readFileSync(inRoot('build/worker/edgelect_bg.wasm')) });
  const own = REFUSED.map(([object, name]) => Object.getOwnPropertyDescriptor(object, name));
  const refuse = (name) => () => {
    throw new Error(`${name} is called`);
  };
  for (const [object, name] of REFUSED) Object.defineProperty(object, name, { configurable: true, value: refuse(name) });
  try {
    assert.equal(wasm.rehearse(), true);
  } finally {
    REFUSED.forEach(([object, name], index) => {
      if (own[index]) Object.defineProperty(object, name, own[index]);
      else delete object[name];
    });
  }
});
