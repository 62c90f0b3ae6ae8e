// examples/node-timer: three processes on one timer, one killed in the midst of its job.
import assert from 'node:assert/strict';
import path from 'node:path';
import { HOST_NODE } from '../../js/tools/paths.mjs';
import { runTool, runWell } from '../../js/tools/pack.mjs';
import { until } from '../js/until.mjs';
import { newGroup, variables } from './group.mjs';
import { helpAndRefusals, startExample, withProcesses } from './process.mjs';

// At most once a slot is lost whose claim a busy machine answers late, so the lease has room for that.
const LEASE_MS = 2_000;
const PERIOD_MS = 3_000;
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 500, follow: 'tight' };
const LIMIT_MS = 60_000;
const LINE = /^(\S+Z) (begins|is written) with token (\d+)$/;

export const nodeTimer = (place) => [
  ...['atMostOnce', 'atLeastOnce'].map((policy) => [
    `node-timer, ${policy}: three processes, one killed under the job`, () => threeProcesses(place, policy),
  ]),
  ['node-timer: its job is tried without a bucket', () => tried(place)],
  ['node-timer: --help, and options that are wrong', () => options(place)],
];

/** What a policy promises is held by the run of slots in tests/live. */
async function threeProcesses(place, policy) {
  const key = await newGroup(place, `node-timer-${policy}`, { leaderTimeout: LEASE_MS });
  const events = [];
  const command = [HOST_NODE, 'main.mjs', '--period', String(PERIOD_MS), '--policy', policy];
  const members = Object.fromEntries(['a', 'b', 'c'].map((who) => [who, startExample(command, {
    cwd: path.join(place.users, 'node-timer'),
    env: variables(place.store, key, { ...TIMING, serverId: who }),
    onLine: (line) => {
      const [, slot, what] = LINE.exec(line) ?? [];
      if (what) events.push({ who, slot: Date.parse(slot), what });
    },
  })]));
  let run;
  const slots = (what) => events.filter((event) => event.what === what).map(({ slot }) => slot);
  await withProcesses(members, async () => {
    await until(() => slots('is written').length >= 2, LIMIT_MS);
    const before = events.length;
    run = await until(() => events.slice(before).find(({ what }) => what === 'begins'), LIMIT_MS);
    await members[run.who].kill();
    await until(() => slots('is written').some((slot) => slot > run.slot), LIMIT_MS);
    for (const [who, member] of Object.entries(members)) {
      if (who === run.who) continue;
      assert.equal(await member.stop(), 0);
      assert.equal(member.lines.at(-1), 'stopped');
    }
  });
  const begun = slots('begins');
  assert.deepEqual(begun, [...begun].sort((a, b) => a - b), 'no slot after a later one');
  if (policy === 'atMostOnce') assert.equal(new Set(begun).size, begun.length, 'no slot runs twice');
  else assert.ok(slots('is written').includes(run.slot), 'what was ended under its job runs again');
}

async function tried({ users }) {
  const said = await runWell(HOST_NODE, ['try.mjs'], { cwd: path.join(users, 'node-timer') });
  assert.match(said, /^\S+Z begins with token (\d+)\n\S+Z is written with token \1\ndone taken\n$/);
}

async function options({ users, store }) {
  const cwd = path.join(users, 'node-timer');
  const run = (args, more = store) => runTool(HOST_NODE, ['main.mjs', ...args], { cwd, env: variables(more, 'unused', more === store ? {} : TIMING) });
  const nowhere = { ...store, bucket: 'no-such-bucket' };
  await helpAndRefusals(run, /--period MS .*--policy POLICY .*EDGELECT_BUCKET=jobs/s, [
    [['--period', '2s'], /^--period 2s: must be a whole number of milliseconds.*\nSee --help\.\n$/],
    [['--policy', 'once'], /^--policy once: must be atMostOnce or atLeastOnce/],
    [['--perod', '1'], /^Unknown option '--perod'/],
    [['--period', '1000'], /^period = 1000: must be from leaderTimeout \(15000 ms\)/],
    [['--period', String(PERIOD_MS)], /^S3 bucket "no-such-bucket" .* 404 NoSuchBucket: create the bucket/, nowhere],
  ]);
}
