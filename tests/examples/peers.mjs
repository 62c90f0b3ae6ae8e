// examples/peers: a member on Node and one on Deno, by TLS that only their own authority has signed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { HOST_NODE, inRoot } from '../../js/tools/paths.mjs';
import { denoVariables, runTool } from '../../js/tools/pack.mjs';
import { freePorts } from '../../js/tools/seaweed.mjs';
import { until } from '../js/until.mjs';
import { newGroup, variables } from './group.mjs';
import { helpAndRefusals, startExample, withProcesses } from './process.mjs';

/** A follower that nobody tells of a resignation looks once in this time. */
const FREQUENT_MS = 15_000;
const TIMING = { leaderTimeout: 45_000, frequentInterval: FREQUENT_MS };
// Without the flag about aborts it warns that `request.signal` fires after each answer.
const FLAGS = ['--quiet', '--no-prompt', '--unstable-no-legacy-abort', '--allow-env', '--allow-net', '--allow-read'];
const DENO = [inRoot('node_modules/.bin/deno'), 'run', ...FLAGS];

export const peers = (place) => [
  ['peers: a member on Node and one on Deno, and a resignation that is told at once', () => nodeAndDeno(place)],
  ['peers: --help, and options that are wrong', () => options(place)],
];

async function nodeAndDeno(place) {
  const cwd = path.join(place.users, 'peers');
  // By the very lines of the README.
  const [, lines] = /^```\n(openssl .*?)^```$/ms.exec(fs.readFileSync(path.join(cwd, 'README.md'), 'utf8'));
  const made = spawnSync('sh', ['-ec', lines], { cwd, encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  const key = await newGroup(place, 'peers', TIMING);
  const env = { ...variables(place.store, key, { ...TIMING, peerSecret: 'a-secret-of-both-members' }), ...denoVariables(place) };
  const [one, other] = await freePorts(2);
  const start = (runtime, name, port) => startExample([...runtime, 'main.mjs', '--name', name, '--addr', `127.0.0.1:${port}`], { cwd, env });
  const members = { a: start([HOST_NODE], 'a', one) };
  const leads = (name) => members[name].lines.some((line) => line.startsWith(`${name} leads with token `));
  await withProcesses(members, async () => {
    await handOver('a', 'b', () => start(DENO, 'b', other));
    await handOver('b', 'c', () => start([HOST_NODE], 'c', one));
    assert.equal(await members.c.stop(), 0);
  });

  /** Who leads holds the question of the member that is started, and tells it at once when it resigns. */
  async function handOver(leader, follower, startFollower) {
    await until(() => leads(leader));
    members[follower] = startFollower();
    await until(() => members[leader].lines.includes(`${leader} holds a question`));
    const startMs = performance.now();
    const stopped = members[leader].stop();
    await until(() => leads(follower));
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < FREQUENT_MS / 3, `${follower} leads ${tookMs} ms after the signal to ${leader}`);
    assert.equal(await stopped, 0);
    assert.equal(members[leader].lines.at(-1), `${leader} has stopped`);
  }
}

async function options({ users, store }) {
  const cwd = path.join(users, 'peers');
  const run = (args) => runTool(HOST_NODE, ['main.mjs', ...args], { cwd, env: variables(store, 'unused') });
  await helpAndRefusals(run, /--name NAME .*--ca FILE .*EDGELECT_PEER_SECRET/s, [
    [['--addr', '127.0.0.1:8443'], /^--name: /],
    [['--name', 'a', '--addr', 'nowhere'], /^--addr nowhere: must be HOST:PORT/],
    [['--name', 'a', '--addr', '127.0.0.1:1', '--ca', 'no-such.pem'], /no-such\.pem/],
    [['--nam', 'a'], /^Unknown option '--nam'/],
  ]);
}
