// The native command line where the other one has nothing like it, or is tested by other tests: what both do is in tests/js.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import spec from '../../src/cli/commands.json' with { type: 'json' };
import { begin, edgelect } from '../js/command.mjs';
import { folder, newGroup, store } from '../js/commanded.mjs';
import { pause } from '../js/group.mjs';
import { kept, startDropping, until } from '../js/servers.mjs';

const isRunning = (pid) => {
  try {
    const [state, ...fields] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return state !== 'Z' || Number(fields[16]) > 1;
  } catch {
    return false;
  }
};

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

const linux = { skip: process.platform !== 'linux' && 'only Linux shows it' };
const canBeRoot = process.getuid() === 0 && fs.existsSync('/usr/bin/setpriv');
const root = { skip: linux.skip || (!canBeRoot && 'only root, by setpriv, can make a command that runs as root') };

/** A program whose first thread ends, while another one goes on for 20 s. */
const HEADLESS = `import ctypes, os, threading, time
def works():
  time.sleep(0.3)
  open(os.environ["FILE"], "w").write(str(os.getpid()) + "\\n")
  for _ in range(400): time.sleep(0.05)
threading.Thread(target=works).start()
ctypes.CDLL(None).pthread_exit(None)`;

test('a program whose first thread has ended ends before the lease is released', linux, async () => {
  for (const [then, code] of [['exit 6', 6], ['wait', 76]]) {
    const { run, read, isReleased, elector } = await newGroup();
    const leader = run(['--', 'bash', '-c', `python3 -c '${HEADLESS}' & while ! test -s "$FILE"; do sleep 0.02; done; ${then}`]);
    await until(() => read() !== '');
    if (code === 76) await elector.stepDown();
    assert.deepEqual(await leader.ended, { code, signal: null });
    assert.ok(!isRunning(read().trim()) && isReleased());
  }
});

test('the lease is not released while a command that runs as another user goes on', root, async () => {
  const { run } = await newGroup();
  const own = path.join(folder, 'setpriv');
  fs.copyFileSync('/usr/bin/setpriv', own);
  fs.chmodSync(own, 0o4755);
  fs.chmodSync(folder, 0o755);
  const leader = run(['--json', '--', 'sh', '-c', `${own} --reuid=0 sleep 5 & sleep 100`], undefined, { uid: 65_534 });
  await leader.says(/"began"/);
  await pause(500);
  for (const _ of Array(2)) leader.kill('SIGTERM');
  await leader.says(/does not die: the lease is not released/);
  await leader.ended;
  assert.equal(leader.shown.stderr.match(/another user/g).length, 1);
});

test('what a script had started before it became edgelect goes on', linux, async () => {
  const { run, read } = await newGroup();
  const script = '(while :; do sleep 0.05; done) & echo $! > "$FILE"; exec "$@"';
  assert.equal((await run(['--', 'sh', '-c', 'exit 3'], undefined, { script: `${script} > /dev/null 2>&1`, heard: false }).ended).code, 3);
  assert.ok(isRunning(read().trim()));
  process.kill(Number(read()));
});

test('what has left the group and hides its variables ends soon after edgelect was killed', linux, async () => {
  const { run, read } = await newGroup();
  const daemon = 'echo $$ > "$0"; while :; do sleep 0.05; done';
  const leader = run(['--', 'sh', '-c', `(env -i setsid sh -c '${daemon}' "$FILE" &); sleep 100`]);
  await until(() => read() !== '');
  // The guard looks once a second.
  await pause(1_500);
  leader.kill('SIGKILL');
  await until(() => !isRunning(read().trim()));
});

test('a signal that whoever started it has it ignore is ignored', linux, async () => {
  const { run, read } = await newGroup();
  const leader = run(['--', 'sh', '-c', 'echo $$ > "$FILE"; sleep 100'], undefined, { script: 'trap "" HUP INT; exec "$@"' });
  await until(() => read() !== '');
  for (const signal of ['SIGHUP', 'SIGINT']) leader.kill(signal);
  await pause(300);
  assert.ok(isRunning(read().trim()));
  leader.kill('SIGTERM');
  assert.equal((await leader.ended).code, 143);
});

test('an answer that can\'t be written is an error', { skip: !fs.existsSync('/dev/full') && 'there is no /dev/full' }, async () => {
  const { variables } = await newGroup();
  for (const args of [['watch'], ['status'], ['status', '--json']]) {
    const told = begin(args, { variables: variables(), script: 'exec "$@" > /dev/full' });
    assert.equal((await told.ended).code, 1, args.join(' '));
    assert.match(told.shown.stderr, /^edgelect: standard output: No space left/);
  }
});

test('arguments may be any bytes to a command, and no panic to edgelect; an empty value is refused', async () => {
  const { run, variables } = await newGroup();
  const script = (rest) => `exec "$@" ${rest}`;
  assert.equal((await run(['--', 'test', 'a', '!='], undefined, { script: script("$'\\xff'") }).ended).code, 0);
  assert.equal((await begin([], { script: script("$'\\xff'") }).ended).code, 2);
  const told = await edgelect(['status', '--endpoint', ''], { variables: variables() });
  assert.equal(told.code, 2);
  assert.match(told.stderr, /--endpoint/);
});

test('a process that has left the group ends before the lease is released', linux, async () => {
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
