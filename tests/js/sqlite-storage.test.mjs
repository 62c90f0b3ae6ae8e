// examples/sqlite-storage: processes on one file, as its README says. They run on Node 24, whichever runs this.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { NODE_24, inRoot } from '../../js/tools/paths.mjs';
import * as example from './example.mjs';
import { until } from './until.mjs';

const LED = /^(\S+) leads with token (\d+)$/;
const MAIN = inRoot('examples/sqlite-storage/main.mjs');

const newFile = () => `${newFolder('sqlite')}/shared.sqlite`;
const start = (args) => example.start(args, { node: NODE_24, read: (line) => line });
const run = (...args) => example.run(args, { node: NODE_24 });
const member = (file, name) => {
  const one = start([MAIN, '--file', file, '--name', name]);
  return { ...one, name, tokens: () => one.heard.flatMap((line) => LED.exec(line)?.[2] ?? []).map(Number) };
};

test('two processes elect over one SQLite file: one leads, and after its end and after its death the other one, with a greater token', async () => {
  const file = newFile();
  const [a, b] = [member(file, 'a'), member(file, 'b')];
  const leads = (one) => one.tokens().length > 0;
  const first = await until(() => [a, b].find(leads), 60_000);
  const second = first === a ? b : a;
  assert.deepEqual(second.tokens(), [], 'one leads');
  first.child.kill('SIGTERM');
  assert.equal(await first.ended, 0);
  assert.equal(first.heard.at(-1), `${first.name} has stopped its work`);
  await until(() => leads(second), 60_000);
  const third = member(file, 'c');
  second.child.kill('SIGKILL');
  await until(() => leads(third), 60_000);
  const tokens = [first, second, third].flatMap((one) => one.tokens());
  assert.deepEqual(tokens, [...new Set(tokens)].sort((one, other) => one - other), 'they grow');
});

test('--help says what it needs; a wrong option, and a Node without SQLite, is named', () => {
  // As every older Node has it.
  const old = '--no-experimental-sqlite';
  assert.match(run(old, MAIN, '--help').stdout, /^node main\.mjs .*Node 22\.13/s);
  for (const [args, what] of [[[MAIN, '--halp'], /^Unknown option '--halp'.*\nSee --help\.\n$/s], [[old, MAIN, '--file', newFile()], /^No such built-in module: node:sqlite\nSee --help\.\n$/]]) {
    const { status, stderr } = run(...args);
    assert.equal(status, 1);
    assert.match(stderr, what);
  }
});

test('processes that make a new file at the same moment all open it', async () => {
  for (let round = 0; round < 8; round += 1) {
    const script = `
      import { SqliteStorage } from ${JSON.stringify(inRoot('examples/sqlite-storage/sqlite-storage.mjs'))};
      while (Date.now() < ${Date.now() + 300});
      new SqliteStorage(${JSON.stringify(newFile())}, { busyTimeout: 20_000 }).close();`;
    const together = [1, 2, 3].map(() => start(['--no-warnings', '--input-type=module', '-e', script]).ended);
    assert.deepEqual(await Promise.all(together), [0, 0, 0]);
  }
});
