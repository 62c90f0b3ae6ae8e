// The native command line where the other one has nothing like it, or is tested by other tests: what both do is in tests/js.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import spec from '../../src/cli/commands.json' with { type: 'json' };
import { edgelect } from '../js/command.mjs';
import { newGroup, store } from '../js/commanded.mjs';
import { kept, startDropping, until } from '../js/servers.mjs';

const HERE = spec.commands.filter(({ only }) => only !== 'npm');

test('--help of each command has every option, text and exit code of the one file', async () => {
  for (const { name, options = [], sets, details, exit } of HERE) {
    const { code, stdout } = await edgelect([name, '--help']);
    assert.equal(code, 0);
    const shown = stdout.replace(/\s+/g, ' ');
    const used = sets.map((set) => spec.sets[set]);
    for (const { long, only, help } of [...options, ...used.flatMap((set) => set.options)]) {
      assert.equal(shown.includes(` --${long} `) && shown.includes(help), only !== 'npm', `${name} --${long}`);
    }
    const codes = (exit ?? used[0].exit).map(([code, means]) => `${code} ${means}`);
    const texts = [...details, ...used.flatMap((set) => [...(set.details ?? []), ...(set.native ?? [])]), ...codes];
    assert.deepEqual(texts.filter((text) => !shown.includes(text)), [], name);
  }
});

test('a duration has a unit or is in seconds', async () => {
  const wait = (text) => edgelect(['run', `--wait=${text}`, '--grace', '1h', '--bucket', 'jobs', '--lockfile-path', 'leader/job', '--', 'true'], {
    variables: { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'the-secret' },
  });
  for (const text of ['90', '1.5s', '250ms', '366d']) assert.match((await wait(text)).stderr, /^edgelect: --grace = 3600000 ms/, text);
  for (const text of ['', 's', '-1', '+1', '1e3', '.5s', '1.', '1.2.3', '1w', '367d', '1 s', 'inf']) {
    assert.match((await wait(text)).stderr, /^edgelect: .*--wait <duration>/, text);
  }
});

test('a process that has left the group ends before the lease is released', { skip: process.platform !== 'linux' && 'only Linux shows it' }, async () => {
  for (const [then, code] of [['exit 6', 6], ['sleep 100', 76]]) {
    const { run, read, isReleased, elector } = await newGroup();
    const daemon = 'trap "" TERM; echo $$ > "$FILE"; while :; do sleep 0.05; done';
    const leader = run(['--', 'sh', '-c', `(setsid sh -c '${daemon}' &); while ! test -s "$FILE"; do sleep 0.02; done; ${then}`]);
    await until(() => read() !== '');
    if (code === 76) await elector.stepDown();
    assert.deepEqual(await leader.ended, { code, signal: null });
    assert.ok(!fs.existsSync(`/proc/${read().trim()}`) && isReleased());
  }
});

test('doctor tells a store that keeps its conditions from one that does not; init starts a group once', async () => {
  const { variables } = await newGroup({ starts: false });
  const args = ['doctor', '--races', '1', '--age', '0'];
  const held = await edgelect(args, { variables: variables() });
  assert.equal(held.code, 0, held.stdout + held.stderr);
  assert.match(held.stdout, /^ {2}holds {5}race, 1 time .*five at once: one may land$/m);
  const dropping = await kept(startDropping(store.endpoint, { accessKeyId: 'id', secretAccessKey: 'the-secret' }));
  const { code, stdout } = await edgelect([...args, '--json'], { variables: variables(dropping.endpoint) });
  assert.deepEqual([code, JSON.parse(stdout).finding], [1, 'violated']);
  for (const expected of [0, 3]) assert.equal((await edgelect(['init'], { variables: variables() })).code, expected);
});
