// The code of docs/fencing.md, each block in a file of the name that it gives itself, as a reader pastes it; and the two lines of
// docs/migrate.md by which a fleet goes from redlock to edgelect, with a stand-in for redlock.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { before, test } from 'node:test';
import { Elector, MemoryStorage, S3Storage } from 'edgelect';
import { endProcess, keepPath, spawnKept } from '../../js/tools/cleanup.mjs';
import { NODE_24, inRoot } from '../../js/tools/paths.mjs';
import { freePorts } from '../../js/tools/seaweed.mjs';
import { bucketOptions, freshKey, getObject, variables } from './bucket.mjs';
import { run } from './example.mjs';
import { atEnd, until } from './servers.mjs';

// tests/worker/package.test.mjs runs the one for R2, in workerd.
const FILES = ['fenced-object.mjs', 'fenced-r2.mjs', 'fenced-sql.mjs', 'api.mjs', 'job.mjs'];
const group = freshKey('fencing');

let folder;
let port;
before(async () => {
  [port] = await freePorts(1);
  // Below the root, so that the packages are found from there.
  folder = fs.mkdtempSync(inRoot('build/fencing-'));
  keepPath(folder);
  const page = fs.readFileSync(inRoot('docs/fencing.md'), 'utf8');
  const blocks = [...page.matchAll(/^```js\n(\/\/ (\S+)\n.*?)^```$/gms)];
  assert.deepEqual(blocks.map(([, , name]) => name), FILES);
  assert.equal(page.match(/^```js$/gm).length, FILES.length, 'each block is run');
  const placed = (code) => code.replace('8080', port).replace('leader/report.json', group);
  for (const [, code, name] of blocks) fs.writeFileSync(path.join(folder, name), placed(code));
});

test('c44 c45 an S3 object: a later leader is not overwritten, whenever the late write leaves', async (t) => {
  const { accessKeyId, secretAccessKey } = bucketOptions.credentials;
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_REGION: bucketOptions.region });
  const { writeFenced } = await import(pathToFileURL(path.join(folder, 'fenced-object.mjs')));
  const key = freshKey('fenced');
  const url = `${bucketOptions.endpoint}/${bucketOptions.bucket}/${key}`;
  const stored = async () => {
    const { token, value } = JSON.parse((await getObject(key)).text);
    return [token, value];
  };
  await writeFenced(url, 5, 'a');
  await writeFenced(url, 5, 'b');
  await writeFenced(url, 7, 'c');
  await assert.rejects(writeFenced(url, 5, 'd'), /^Error: fenced: token 7 has written$/);
  assert.deepEqual(await stored(), [7, 'c']);

  const sent = globalThis.fetch;
  t.after(() => { globalThis.fetch = sent; });
  const held = async (meanwhile) => {
    globalThis.fetch = async (request) => {
      if (request.method !== 'PUT') return sent(request);
      globalThis.fetch = sent;
      await meanwhile();
      return sent(request);
    };
    await assert.rejects(writeFenced(url, 7, 'late'), /^Error: PUT .*: 412$/);
    return stored();
  };
  assert.deepEqual(await held(() => writeFenced(url, 9, 'e')), [9, 'e']);
  await assert.rejects(held(() => {}), /token 9 has written/);

  const { etag } = await getObject(key);
  await writeFenced(url, 9, 'e');
  assert.notEqual((await getObject(key)).etag, etag, 'the same value has another version');
});

/** The server of the page, and the status of its answer to a report with this token. */
const startApi = async () => {
  const child = spawnKept(NODE_24, ['api.mjs'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  atEnd(() => endProcess(child));
  const report = async (token) => {
    // A connection that is kept would be to a server that has ended.
    const headers = { connection: 'close', ...(token !== undefined && { 'edgelect-token': String(token) }) };
    return (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: `by ${token}`, headers })).status;
  };
  await until(() => report().catch(() => false));
  return { report, stop: () => endProcess(child) };
};

const reports = () => {
  const code = `const database = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(path.join(folder, 'jobs.sqlite'))});
    console.log(JSON.stringify(database.prepare('select text from reports').all().map(({ text }) => text)));`;
  return JSON.parse(run(['-e', code], { node: NODE_24 }).stdout);
};

test('c44 c45 SQL and an HTTP API: a lower token changes nothing, also after a restart, and a job sends its own', async () => {
  const first = await startApi();
  const answers = [];
  for (const token of [5, 5, 7, 5, undefined, '', 0, 'x']) answers.push(await first.report(token));
  assert.deepEqual(answers, [200, 200, 200, 409, 500, 500, 500, 500]);
  await first.stop();
  const second = await startApi();
  assert.deepEqual([await second.report(6), await second.report(8)], [409, 200]);
  assert.deepEqual(reports(), ['by 5', 'by 5', 'by 7', 'by 8']);

  await new Elector({ storage: new S3Storage(bucketOptions), lockfilePath: group }).init();
  const { status, stderr } = run([path.join(folder, 'job.mjs')], { env: variables });
  assert.equal(status, 0, stderr);
  assert.equal(reports().at(-1), 'done');
  assert.equal(await second.report(9), 409, "the job's token is higher");
});

const RUNS = 3;
const BUSY_MS = 60;
const AsyncFunction = (async () => {}).constructor;

const migrating = fs.readFileSync(inRoot('docs/migrate.md'), 'utf8');
const [both, edgelectAlone, ...others] = [...migrating.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) =>
  new AsyncFunction('redlock', 'elector', 'writeReport', block));
const redlockAlone = (redlock, _elector, writeReport) => redlock.using(['report'], 15_000, (signal) => writeReport({ signal }));

/** One lock, waited for in turn; `using` has the arguments of redlock's. */
const standIn = () => {
  let done = Promise.resolve();
  return { using: (_resources, _duration, routine) => (done = done.then(() => routine(new AbortController().signal))) };
};

/** How many members worked at one time, at most. */
const mostAtOnce = async (...versions) => {
  const [redlock, storage] = [standIn(), new MemoryStorage()];
  const newElector = () => new Elector({ storage, lockfilePath: 'leader/report.json', leaderTimeout: 1000, frequentInterval: 100 });
  await newElector().init();
  let [now, most, runs] = [0, 0, 0];
  const writeReport = async () => {
    now += 1;
    most = Math.max(most, now);
    await sleep(BUSY_MS);
    [now, runs] = [now - 1, runs + 1];
  };
  const member = async (version) => {
    const elector = newElector();
    for (let run = 0; run < RUNS; run += 1) await version(redlock, elector, writeReport);
  };
  await Promise.all(versions.map(member));
  assert.equal(runs, versions.length * RUNS, 'each member had its turns');
  return most;
};

test('docs/migrate.md: from redlock by way of both locks one member works at a time, and without that step two do', async () => {
  assert.equal(others.length, 0);
  assert.equal(await mostAtOnce(redlockAlone, redlockAlone, both, both), 1);
  assert.equal(await mostAtOnce(both, both, edgelectAlone, edgelectAlone), 1);
  assert.equal(await mostAtOnce(redlockAlone, edgelectAlone), 2);
});
