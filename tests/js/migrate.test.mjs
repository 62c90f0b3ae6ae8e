// The two lines of docs/migrate.md by which a fleet goes from redlock to edgelect, with a stand-in for redlock.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Elector, MemoryStorage } from 'edgelect';
import { inRoot } from '../../js/tools/paths.mjs';

const RUNS = 3;
const BUSY_MS = 60;
const AsyncFunction = (async () => {}).constructor;

const page = fs.readFileSync(inRoot('docs/migrate.md'), 'utf8');
const [both, edgelectAlone, ...others] = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) =>
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
