import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Elector, S3Storage } from 'edgelect';
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { bucketOptions, credentials, freshKey, getLease, until } from '../js/bucket.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The modules of the package that an entry brings along. */
const modulesOf = (name, found = new Set()) => {
  if (found.has(name)) return found;
  found.add(name);
  const text = fs.readFileSync(`${root}${name}`, 'utf8');
  for (const [, imported] of text.matchAll(/^(?:import|export) (?:[^;]*?from )?'(\.{1,2}\/[^']+\.js)';$/gms)) modulesOf(path.join(path.dirname(name), imported), found);
  return found;
};

const started = (entry, more) => new Miniflare(convertV4MiniflareOptions({
  modules: [
    ...[...modulesOf(entry)].map((name) => ({ type: 'ESModule', path: `${root}${name}` })),
    ...['js/dist', 'js/dist/aws', 'build/worker'].map((folder) => ({ type: 'CompiledWasm', path: `${root}${folder}/edgelect_bg.wasm` })),
  ],
  modulesRoot: root,
  compatibilityDate: '2026-11-01',
  ...more,
}));

test('the README\'s Worker runs the npm package in workerd: each trigger leads once and releases', async () => {
  const lockfilePath = freshKey('ten-lines');
  await new Elector({ storage: new S3Storage(bucketOptions), lockfilePath }).init();
  const worker = started('tests/worker/ten-lines.js', {
    bindings: {
      ENDPOINT: bucketOptions.endpoint,
      BUCKET: bucketOptions.bucket,
      KEY_ID: credentials.accessKeyId,
      SECRET: credentials.secretAccessKey,
      LOCKFILE_PATH: lockfilePath,
    },
  });
  try {
    for (const scheduledTime of [new Date(), new Date()]) {
      await (await worker.getWorker()).scheduled({ cron: '* * * * *', scheduledTime });
    }
    const { led, unused } = await (await worker.dispatchFetch('http://worker/')).json();
    assert.equal(unused, 'stopped');
    assert.equal(led.length, 2);
    assert.ok(led[1].token > led[0].token && led.every(({ remaining }) => remaining > 0));
    const lease = await getLease(lockfilePath);
    assert.deepEqual([lease.term, lease.lastUpdated], [led[1].token, '0001-01-01T00:00:00Z']);
  } finally {
    await worker.dispose();
  }
});

test('the npm package leads over an R2 binding in workerd, with no credentials', async () => {
  const worker = started('tests/worker/r2-lines.js', { r2Buckets: ['JOBS'] });
  try {
    const asked = async () => (await worker.dispatchFetch('http://worker/')).json();
    assert.deepEqual(await asked(), []);
    for (let trigger = 0; trigger < 2; trigger += 1) await (await worker.getWorker()).scheduled({ cron: '* * * * *', scheduledTime: new Date() });
    const led = await asked();
    assert.equal(led.length, 2);
    assert.ok(led[1].token > led[0].token && led.every(({ remaining }) => remaining > 0));
    const lease = await (await (await worker.getR2Bucket('JOBS')).get('leader/report.json')).json();
    assert.deepEqual([lease.term, lease.lastUpdated, lease.leaderID], [led[1].token, '0001-01-01T00:00:00Z', 'my-worker']);
  } finally {
    await worker.dispose();
  }
});

test('the doctor over an R2 binding: its conditions hold, its clocks are not told, and a `put` without them is found out', async () => {
  const worker = started('tests/worker/doctor-lines.js', { r2Buckets: ['JOBS'] });
  try {
    const asked = async (path = '') => (await worker.dispatchFetch(`http://worker/${path}`)).json();
    const { finding, steps, clockOffset, counted } = await asked();
    const findings = steps.map((step) => `${step.step}: ${step.finding}`);
    assert.deepEqual(findings, [
      'update of an absent object: holds', 'create: holds', 'create again: holds', 'update: holds', 'update with a stale version: holds',
      'race: holds', 'read with a stale version: holds', 'create again, later: holds', 'update with a stale version, later: holds',
      'clocks: unclear',
    ]);
    assert.deepEqual([finding, clockOffset], ['holds', null]);
    assert.equal(counted.get + counted.put, 45);
    const { objects } = await (await worker.getR2Bucket('JOBS')).list();
    assert.deepEqual(objects.map(({ key, size }) => key.startsWith('leader/report.json.probe-') && size < 1000), [true]);
    const forgetful = await asked('forgetful');
    assert.deepEqual([forgetful.finding, forgetful.steps.map(({ step }) => step)], ['violated', ['update of an absent object']]);
  } finally {
    await worker.dispose();
  }
});

test('a checkpoint over an R2 binding: the second trigger reads what the first wrote, and a late write of the older term is refused', async () => {
  const worker = started('tests/worker/checkpoint-lines.js', { r2Buckets: ['JOBS'] });
  try {
    const asked = async () => (await worker.dispatchFetch('http://worker/')).json();
    const trigger = async () => (await worker.getWorker()).scheduled({ cron: '* * * * *', scheduledTime: new Date() });
    const first = trigger();
    await until(async () => (await asked()).cut);
    const [{ outcome }] = await Promise.all([trigger(), first]);
    const told = await asked();
    assert.equal(outcome, 'ok', JSON.stringify(told));
    assert.deepEqual(told.read, { next: 1 });
    assert.ok(['EDGELECT_LOST', 'EDGELECT_UNKNOWN'].includes(told.error), `the older term heard ${told.error}`);
    assert.ok(told.second > told.first && told.late.every((answer) => answer === 'refused'), JSON.stringify(told));
    const state = await (await (await worker.getR2Bucket('JOBS')).get('reports/cursor.json')).json();
    assert.deepEqual([state.value, state.term], [{ next: 2 }, told.second]);
  } finally {
    await worker.dispose();
  }
});

test('c41 over an R2 binding in workerd a term is read at every millisecond and lost by none of these', async () => {
  const worker = started('tests/worker/look-lines.js', { r2Buckets: ['JOBS'] });
  try {
    const { looks, reason, losses, terms } = await (await worker.dispatchFetch('http://worker/')).json();
    assert.deepEqual([reason, losses, terms], [undefined, [], 1], `after ${looks} looks`);
    assert.ok(looks > 1_000, `${looks} looks`);
  } finally {
    await worker.dispose();
  }
});

for (const [entry, flags] of ['workerd', 'aws-workerd', 'worker'].flatMap((name) => [[name, []], [name, ['no_global_navigator']]])) {
  test(`c41 js/${entry}.js knows that it is on Workers, which have one clock, with the flags [${flags}]`, async () => {
    const worker = started(`tests/worker/one-clock-${entry}.js`, { compatibilityFlags: flags });
    try {
      const told = await (await worker.dispatchFetch('http://worker/')).json();
      assert.deepEqual(told, { singleClock: true, named: flags.length === 0 });
    } finally {
      await worker.dispose();
    }
  });
}
