// examples/node-timer: three processes on one timer, one killed in the midst of its job, one stopped in the midst of another.
import assert from 'node:assert/strict';
import path from 'node:path';
import { HOST_NODE } from '../../js/tools/paths.mjs';
import { runTool } from '../../js/tools/pack.mjs';
import { until } from '../js/until.mjs';
import { newGroup, variables } from './group.mjs';
import { startExample, withProcesses } from './process.mjs';

// At most once a slot is lost whose claim a busy machine answers late, so the lease has room for that.
const LEASE_MS = 2_000;
const PERIOD_MS = 3_000;
const TIMING = { leaderTimeout: LEASE_MS, frequentInterval: 500, follow: 'tight' };
const LIMIT_MS = 60_000;
const LINE = /^(\S+Z) (begins|is written) with token (\d+)$/;

export const nodeTimer = (place) => [
  ...['atMostOnce', 'atLeastOnce'].map((policy) => [
    `node-timer, ${policy}: three processes, one killed and one stopped under the job`, () => threeProcesses(place, policy),
  ]),
  ['node-timer: --help, and options that are wrong', () => options(place)],
];

async function threeProcesses(place, policy) {
  const group = { place, policy, key: await newGroup(place, `node-timer-${policy}`, { leaderTimeout: LEASE_MS }), events: [] };
  const members = Object.fromEntries(['a', 'b', 'c'].map((who) => [who, start(group, who)]));
  await withProcesses(members, async () => {
    await writtenSlots(group, 2);
    const killed = await endedUnderTheJob(group, members, (member) => member.kill());
    await writtenSlots(group, 5);
    const stopped = await endedUnderTheJob(group, members, async (member) => {
      assert.equal(await member.stop(), 0);
      assert.equal(member.lines.at(-1), 'stopped');
    });
    await writtenSlots(group, 7);
    const last = Object.keys(members).find((who) => who !== killed.who && who !== stopped.who);
    assert.equal(await members[last].stop(), 0);
    hold(group, [killed, stopped]);
    const taken = Object.values(members).flatMap(({ lines }) => lines.filter((line) => / taken: .*claimed before/.test(line)));
    assert.ok(taken.length > 0, 'those who come second say so');
  });
}

function start({ place, policy, key, events }, who) {
  const onLine = (line) => {
    const [, slot, what, token] = LINE.exec(line) ?? [];
    if (what) events.push({ who, slot: Date.parse(slot), what, token: Number(token) });
  };
  const command = [HOST_NODE, 'main.mjs', '--period', String(PERIOD_MS), '--policy', policy];
  const env = variables(place.store, key, { ...TIMING, serverId: who });
  return startExample(command, { cwd: path.join(place.users, 'node-timer'), env, onLine });
}

const slotsOf = (events, what) => new Set(events.filter((event) => event.what === what).map(({ slot }) => slot));

const writtenSlots = ({ events }, count) => until(() => slotsOf(events, 'is written').size >= count, LIMIT_MS);

/** Ends whoever begins a job next, before the job has ended; on a machine too busy for that it starts them anew. */
async function endedUnderTheJob(group, members, end) {
  for (;;) {
    const run = await nextRun(group);
    await end(members[run.who]);
    if (!group.events.some(({ what, token }) => what === 'is written' && token === run.token)) return run;
    members[run.who] = start(group, run.who);
  }
}

/** The next job that begins, at once. */
function nextRun({ events }) {
  const before = events.length;
  return until(() => events.slice(before).find(({ what }) => what === 'begins'), LIMIT_MS);
}

/** What the policy promises, of every job that began. */
function hold({ events, policy }, ended) {
  const begun = events.filter(({ what }) => what === 'begins');
  for (const who of ['a', 'b', 'c']) {
    const tokens = begun.filter((event) => event.who === who).map(({ token }) => token);
    assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b), `the tokens of ${who} grow`);
  }
  const runs = [...begun].sort((a, b) => a.token - b.token);
  assert.equal(new Set(runs.map(({ token }) => token)).size, runs.length, 'each run has a token of its own');
  const slots = runs.map(({ slot }) => slot);
  assert.deepEqual(slots, [...slots].sort((a, b) => a - b), 'no slot after a later one');
  const written = slotsOf(events, 'is written');
  if (policy === 'atMostOnce') {
    assert.equal(new Set(slots).size, slots.length, 'no slot runs twice');
    for (const { slot } of ended) assert.ok(!written.has(slot), 'what was ended under its job stays undone');
    return;
  }
  for (const { slot } of ended) {
    assert.ok(slots.filter((one) => one === slot).length >= 2, 'what was ended under its job runs again');
  }
  for (let slot = slots[0]; slot <= Math.max(...written); slot += PERIOD_MS) {
    assert.ok(written.has(slot), `slot ${slot} is lost`);
  }
}

async function options({ users, store }) {
  const cwd = path.join(users, 'node-timer');
  const run = (args, more = store) => runTool(HOST_NODE, ['main.mjs', ...args], { cwd, env: variables(more, 'unused', more === store ? {} : TIMING) });
  const nowhere = { ...store, bucket: 'no-such-bucket' };
  const help = await run(['--help']);
  assert.equal(help.code, 0);
  assert.match(help.output, /--period MS .*--policy POLICY .*EDGELECT_BUCKET=jobs/s);
  const wrong = [
    [['--period', '2s'], /^--period 2s: must be a whole number of milliseconds/],
    [['--policy', 'once'], /^--policy once: must be atMostOnce or atLeastOnce/],
    [['--perod', '1'], /^Unknown option '--perod'/],
    [['--period', '1000'], /^period = 1000: must be from leaderTimeout \(15000 ms\)/],
    [['--period', String(PERIOD_MS)], /^S3 bucket "no-such-bucket" .* 404 NoSuchBucket: create the bucket/, nowhere],
  ];
  for (const [args, expected, more] of wrong) {
    const { code, errors } = await run(args, more);
    assert.equal(code, 1, args.join(' '));
    assert.match(errors, expected);
    assert.match(errors, /\nSee --help\.\n$/);
  }
}
