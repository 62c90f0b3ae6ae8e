// `edgelect run`: real processes, a store on loopback that a test can silence, leases of 1.5 to 2 s.
import assert from 'node:assert/strict';
import { execFile, execFileSync, fork, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import { MARK, QUIET, isAlive, killGroup, marked, nowMs, signalMarked } from '../../js/cli/group.js';
import { inRoot } from '../../js/tools/paths.mjs';
import { forward } from '../../js/tools/serve.mjs';
import { LEASE_MS, folder, newGroup, sh, store } from './commanded.mjs';
import { PROGRAM, begin, edgelect, forEachRow, npmOnly } from './command.mjs';
import { atEnd } from './ending.mjs';
import { pause, replaced, started } from './group.mjs';
import { serve } from './loopback.mjs';
import { kept, startLiar, startProxy, until } from './servers.mjs';

/** What a busy machine may add to a wait that ends at once. */
const BUSY_MS = 5_000;
/** A shell that ignores SIGTERM, as its child does, and writes the time again and again. */
const STUBBORN = 'trap "" TERM; while :; do date +%s%3N >> "$FILE"; sleep 0.03; done';
/** Nothing is asserted to be exact here: it ended soon. */
const soon = (startMs) => assert.ok(performance.now() - startMs < BUSY_MS, `${performance.now() - startMs} ms`);
const onLinux = { skip: process.platform !== 'linux' && 'only Linux has /proc' };
const isGone = (pid) => !fs.existsSync(`/proc/${pid}`) || fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');

test('the exit code is the command\'s own, its token is that of the term, and the lease is released', async () => {
  // No exit code depends on how long a lease is, and a busy machine may be slow to answer a short one.
  const group = await newGroup({ leaseMs: 15_000 });
  for (const [args, code, stderr] of [
    [sh('echo "$EDGELECT_TOKEN" > "$FILE"'), 0, /^$/],
    [sh('exit 7'), 7, /^$/],
    [sh('kill -TERM $$'), 143, /^$/],
    // Node reports no end by a real-time signal; the help says so.
    [sh('echo "$EDGELECT_TOKEN" > "$FILE"; kill -34 $$'), npmOnly.skip ? 162 : 0, /^$/],
    [['--', 'there-is-no-such-command'], 127, /^edgelect: there-is-no-such-command: there is no such command\n$/],
    [['--', folder], 126, /can't be executed\n$/],
    [['--', `${process.execPath}/there`], 127, /ENOTDIR|no such command/],
    [['--shell', '--', 'exit $((3 + 2))'], 5, /^$/],
    // EDGELECT_TOKEN is no misspelt variable to another program of ours.
    [['--', ...PROGRAM, 'status', 'leader/none'], 3, /^$/],
    [['--wait', '30d', ...sh('exit 6')], 6, /^$/],
    // A command without -- keeps its own flags.
    [['sh', '-c', 'exit 4'], 4, /^$/],
  ]) {
    const told = await edgelect(['run', '-n', ...args], { variables: group.variables() });
    assert.equal(told.code, code, `${args.join(' ')}: ${told.stderr}`);
    assert.match(told.stderr, stderr);
    assert.ok(group.isReleased(), args.join(' '));
    if (code === 0) assert.equal(group.read(), `${group.record().term}\n`);
  }
});

test('where nobody has run yet -n ends with 75 and says so, and the calls after it wait out the grace together', async () => {
  const { run, record } = await newGroup({ starts: false });
  const first = run(['-n', ...sh('true')]);
  assert.deepEqual(await first.ended, { code: 75, signal: null });
  assert.match(first.shown.stderr, /^edgelect: (group \S+: )?waiting out the grace of a new group, \d+ s left; `init` avoids this[^\n]*\n$/);
  assert.ok(record(), 'what it wrote stays');
  await until(async () => (await run(['-n', ...sh('true')]).ended).code === 0, 60_000);
});

test('-n takes over from a leader that has died, also where no clock of the store\'s proves that', async () => {
  const { elector, run, read, record } = await newGroup();
  await started(elector);
  await elector.stop({ release: false });
  const { storeSkew } = elector.config;
  // A `Date` has whole seconds.
  await until(() => Date.now() > Date.parse(record().lastUpdated) + LEASE_MS + storeSkew + 1_000, 20_000);
  // What a cache may have kept proves no age.
  const cache = await kept(serve(async (request, response, body) => {
    const { status, headers, bytes } = await forward(store.endpoint, request, body);
    response.writeHead(status, { ...headers, via: '1.1 cache' }).end(bytes);
  }));
  assert.deepEqual(await run(['-n', ...sh('echo ran >> "$FILE"')], cache.endpoint).ended, { code: 0, signal: null });
  assert.equal(read(), 'ran\n');
});

test('where another leads -n and --wait end with 75, and a signal ends the wait; the command is never begun', async () => {
  const { elector, run, read } = await newGroup();
  await started(elector);
  const command = sh('echo begun >> "$FILE"');
  for (const [args, expected] of [[['-n'], 75], [['-n', '--conflict-exit-code', '9'], 9], [['--wait', '0'], 75], [['--wait', '5s'], 75]]) {
    const waiting = run(['--json', ...args, ...command]);
    await waiting.says(/leads; its lease/);
    const startMs = performance.now();
    assert.deepEqual(await waiting.ended, { code: expected, signal: null }, args.join(' '));
    // Where it is not told how long to wait it gives up after 10 s.
    assert.ok(performance.now() - startMs < 9_000, args.join(' '));
  }
  for (const [signal, code] of [['SIGTERM', 143], ['SIGINT', 130], ['SIGHUP', 129]]) {
    const waiting = run(['--json', ...command]);
    await waiting.says(/"waits"/);
    waiting.kill(signal);
    assert.deepEqual(await waiting.ended, { code, signal: null });
    assert.match(waiting.shown.stderr, /this member holds no lease/);
  }
  assert.equal(read(), '');
});

test('--wait 0 is -n: who can lead at once does, however slow the store is', async () => {
  const { run } = await newGroup();
  const slow = await kept(startProxy(store.endpoint));
  slow.answerWith(() => pause(300));
  assert.deepEqual(await run(['--wait', '0', '--lease', '15s', ...sh('exit 6')], slow.endpoint).ended, { code: 6, signal: null });
});

test('after a signal a store that does not answer is waited for but for a moment', async () => {
  const { elector, run } = await newGroup();
  await started(elector);
  const proxy = await kept(startProxy(store.endpoint));
  const waiting = run(['--json', ...sh('exit 6')], proxy.endpoint);
  await waiting.says(/"waits"/);
  proxy.answerWith(() => 'hang');
  const startMs = performance.now();
  waiting.kill('SIGTERM');
  assert.deepEqual(await waiting.ended, { code: 143, signal: null });
  soon(startMs);
  assert.match(waiting.shown.stderr, /a lease that this member may hold runs out within 2000 ms/);
});

test('three of them run one at a time', async () => {
  const { run, read } = await newGroup();
  const all = [1, 2, 3].map(() => run(sh('echo begin >> "$FILE"; sleep 0.3; echo end >> "$FILE"')));
  for (const { ended } of all) assert.deepEqual(await ended, { code: 0, signal: null });
  assert.equal(read(), 'begin\nend\n'.repeat(3));
});

test('a command that ignores SIGTERM is dead with its group before the authority ends', async () => {
  const { run, read, elector } = await newGroup();
  const proxy = await kept(startProxy(store.endpoint));
  const leader = run(['--grace', '300ms', ...sh(`${STUBBORN} & ${STUBBORN}`)], proxy.endpoint);
  await until(() => read().length > 100);
  proxy.answerWith(() => 'hang');
  const { token } = await started(elector);
  const ledMs = Date.now();
  assert.deepEqual(await leader.ended, { code: 76, signal: null });
  assert.match(leader.shown.stderr, /the authority was lost, so the command was ended/);
  const last = Math.max(...read().trim().split('\n').map(Number));
  const renewedMs = performance.timeOrigin + proxy.seen.findLast(({ method, passed }) => method === 'PUT' && passed).atMs;
  assert.ok(last < renewedMs + LEASE_MS, `its last act was ${last - renewedMs} ms after its last renewal left`);
  assert.ok(last < ledMs && token > 0, 'nothing of it is left when the next one leads');
});

/** The guards of a process. One in JavaScript has no name of its own before it listens. */
const guardsOf = ({ pid }) => execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(pid)], { encoding: 'utf8' })
  .split('\n').filter((line) => /guard(?!\.js)/.test(line)).map((line) => Number.parseInt(line, 10));

for (const [signal, what] of [['SIGKILL', 'killed'], ['SIGSTOP', 'stopped'], ['SIGKILL', 'killed after its guard']]) {
  test(`when edgelect itself is ${what}, nothing of its command outlives the lease`, async () => {
    const { run, read, elector } = await newGroup();
    const leader = run(sh(STUBBORN));
    await until(() => read().length > 0);
    if (what.endsWith('guard')) {
      const [first] = guardsOf(leader);
      process.kill(first, 'SIGKILL');
      await until(() => guardsOf(leader).some((pid) => pid !== first));
      // The new one has heard of the command by now.
      await pause(1_000);
    }
    leader.kill(signal);
    await started(elector);
    const { length } = read();
    await pause(300);
    assert.equal(read().length, length);
    leader.kill('SIGKILL');
    await leader.ended;
  });
}

test('when edgelect is killed just as its command begins, nothing of that outlives the lease, in the group or out of it', async () => {
  const groups = await Promise.all(Array.from({ length: 6 }, () => newGroup()));
  const startMs = performance.now();
  // The command is often faster than whatever follows its start. What outlives edgelect keeps its pipes open.
  const runs = groups.map(({ run }) => run(sh('setsid sleep 30 & kill -KILL $PPID; sleep 30')).ended);
  for (const ended of runs) assert.deepEqual(await ended, { code: null, signal: 'SIGKILL' });
  assert.ok(performance.now() - startMs < LEASE_MS + 2 * BUSY_MS, `${performance.now() - startMs} ms`);
});

/** A process with this mark and outside any group of ours that begins one program after the other for some seconds. The more variables
 * it has, the longer Linux shows none of them. */
const startBeginner = (mark) => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`V${at}`, '']));
  const child = spawn('env', [...Array(3_000).fill('env'), 'true'], { env: { ...process.env, ...many, [MARK]: mark }, detached: true, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', (_code, signal) => resolve(signal)));
  atEnd(() => child.kill('SIGKILL'));
  return { pid: child.pid, ended };
};

/** The number of no process. Descendants of an owner that is there count as the command's. */
const GONE = '0';

/** Tells a guard of its own of a group that is no more, and then that its owner has ended; resolves once the guard has done its work. */
const guardTold = (mark) => {
  const laterMs = 60_000;
  const group = 2 ** 22;
  const guard = npmOnly.skip
    ? spawn(PROGRAM[0], ['__guard', mark, GONE], { stdio: ['pipe', 'ignore', 'inherit'] })
    : fork(inRoot('js/dist/guard.js'), [mark], { execArgv: [] });
  if (npmOnly.skip) guard.stdin.end(`${group} ${nowMs() + laterMs} ${Date.now() + laterMs}\n`);
  else guard.once('message', () => guard.send({ group, untilMs: nowMs() + laterMs, untilWallMs: Date.now() + laterMs }, () => guard.disconnect()));
  return new Promise((resolve) => guard.on('exit', resolve));
};

test('a guard misses no process that is just beginning another program, which shows no mark then', onLinux, async () => {
  await forEachRow(Array.from({ length: 60 }), async () => {
    const mark = crypto.randomUUID();
    const { ended } = startBeginner(mark);
    await guardTold(mark);
    assert.equal(await ended, 'SIGKILL');
  });
});

test('who looks for a process that begins one program after the other finds it, or is told to look again', { ...npmOnly, ...(npmOnly.skip ? {} : onLinux) }, async () => {
  const mark = crypto.randomUUID();
  const { pid } = startBeginner(mark);
  let looks = 0;
  for (let quiet = 0; ; looks += 1) {
    const { ids, isClear } = marked(mark);
    if (isGone(pid)) break;
    quiet = ids.includes(String(pid)) || !isClear ? 0 : quiet + 1;
    assert.ok(quiet < QUIET, `after ${looks} looks`);
    // The store is served by this process, too.
    await new Promise(setImmediate);
  }
  assert.ok(looks > 50, `only ${looks} looks`);
});

test('signals pass on to the command, which ends as it likes', async () => {
  const { run, read, isReleased } = await newGroup();
  const leader = run(sh('trap "echo usr1 >> $FILE" USR1; trap "echo hup >> $FILE" HUP; trap "echo term >> $FILE; exit 3" TERM; echo ready >> $FILE; while :; do sleep 0.05; done'));
  for (const [signal, shown] of [[undefined, 'ready'], ['SIGUSR1', 'usr1'], ['SIGHUP', 'hup'], ['SIGTERM', 'term']]) {
    if (signal) leader.kill(signal);
    await until(() => read().endsWith(`${shown}\n`));
  }
  assert.deepEqual(await leader.ended, { code: 3, signal: null });
  assert.match(leader.shown.stderr, /^edgelect: SIGTERM: this member holds no lease$/m);
  assert.ok(isReleased());
});

test('a command that ignores SIGTERM gets SIGKILL after --kill-after or at the second SIGTERM, and then the lease is released', async () => {
  for (const [args, times] of [[['--kill-after', '200ms'], 1], [[], 2]]) {
    const { run, read, isReleased } = await newGroup();
    const leader = run([...args, ...sh(STUBBORN)]);
    await until(() => read().length > 0);
    for (let left = times; left > 0; left -= 1) {
      leader.kill('SIGTERM');
      await pause(700);
    }
    const startMs = performance.now();
    assert.deepEqual(await leader.ended, { code: 137, signal: null });
    soon(startMs);
    assert.ok(isReleased());
  }
});

test('a signal that comes twice at once, as npm passes Ctrl-C on, is one: the command has its time', async () => {
  const { run, read, isReleased } = await newGroup();
  const leader = run(sh('trap "sleep 0.5; exit 7" INT; echo > "$FILE"; while :; do sleep 0.05; done'));
  await until(() => read().length > 0);
  leader.kill('SIGINT');
  await pause(50);
  leader.kill('SIGINT');
  assert.deepEqual(await leader.ended, { code: 7, signal: null });
  assert.ok(isReleased());
});

test('what a command leaves behind ends before the lease is released, on Linux also out of its group', async () => {
  const begins = (how) => `${how} sh -c 'trap "" TERM; echo $$ > "$FILE"; while :; do sleep 0.05; done'`;
  const isLinux = process.platform === 'linux';
  for (const [script, signal, code] of [
    [`${begins('')} & until test -s "$FILE"; do sleep 0.05; done; exit 6`, undefined, 6],
    ...(isLinux ? [[`${begins('setsid')} & until test -s "$FILE"; do sleep 0.05; done; exit 6`, undefined, 6]] : []),
    // It makes a group of its own, and does not pass on what ends the shell.
    ...(isLinux ? [[`${begins('timeout 100')}; echo next`, 'SIGTERM', 143]] : []),
  ]) {
    const { run, read, isReleased } = await newGroup();
    const leader = run(sh(script));
    await until(() => read().length > 0);
    if (signal) leader.kill(signal);
    assert.deepEqual(await leader.ended, { code, signal: null }, script);
    assert.ok(isGone(Number(read())) && isReleased(), script);
  }
});

test('a command hears once that it is to end, and then has its grace', async () => {
  const { run, read, elector } = await newGroup();
  const counts = "process.on('SIGTERM', () => fs.appendFileSync(process.env.FILE, 'term\\n')); setInterval(() => {}, 1000); fs.writeFileSync(process.env.FILE, 'ready\\n')";
  const leader = run(['--', process.execPath, '-e', counts]);
  await until(() => read() === 'ready\n');
  await elector.stepDown({ by: 'ada' });
  assert.deepEqual(await leader.ended, { code: 76, signal: null });
  assert.equal(read(), 'ready\nterm\n');
});

test('an operator who asks the leader to step down leaves the command its grace; a paused group runs nothing', async () => {
  const { run, read, elector, isReleased, variables } = await newGroup();
  const leader = run(sh('trap "sleep 0.1; echo ended >> $FILE; exit 0" TERM; echo ready >> $FILE; while :; do sleep 0.05; done'));
  await until(() => read() === 'ready\n');
  await elector.stepDown({ by: 'ada' });
  assert.deepEqual(await leader.ended, { code: 76, signal: null });
  assert.ok(read() === 'ready\nended\n' && isReleased());
  await elector.pause({ by: 'ada', why: 'a migration' });
  assert.deepEqual(await run(['-n', ...sh('echo begun >> "$FILE"')]).ended, { code: 75, signal: null });
  assert.equal(read(), 'ready\nended\n');
  const { code, stdout } = await edgelect(['status'], { variables: variables() });
  assert.equal(code, 3);
  assert.match(stdout, /nobody leads: "ada" has paused the group until somebody resumes it: "a migration"/);
});

test('when the wall clock passes the end of the lease the command gets SIGKILL, whatever is left of its grace: another may lead', async () => {
  const preloaded = path.join(folder, 'jumping-clock.so');
  execFileSync('cc', ['-shared', '-fPIC', '-o', preloaded, inRoot('tests/js/jumping-clock.c')]);
  for (const inGrace of [false, true]) {
    const { variables, read, elector } = await newGroup(inGrace ? { leaseMs: 9_000 } : {});
    const jumped = path.join(folder, `jumped-${inGrace}`);
    const command = sh(`trap "echo term >> $FILE${inGrace ? '' : '; exit 0'}" TERM; echo ready >> $FILE; while :; do sleep 0.05; done`);
    const options = { variables: { ...variables(), LD_PRELOAD: preloaded, JUMPED: jumped } };
    const leader = begin(['run', ...(inGrace ? ['--grace', '2s'] : []), ...command], options);
    await until(() => read() === 'ready\n');
    if (inGrace) await elector.stepDown();
    await until(() => !inGrace || read() === 'ready\nterm\n');
    const began = performance.now();
    fs.writeFileSync(jumped, '');
    assert.deepEqual(await leader.ended, { code: 76, signal: null });
    assert.ok(!inGrace || performance.now() - began < 1_500, 'its grace is not waited for');
    assert.equal(read(), inGrace ? 'ready\nterm\n' : 'ready\n');
  }
});

test('--restart runs a command that fails again in the same term, and after a lost term in the next one', async () => {
  const { run, read, elector, record } = await newGroup();
  const leader = run(['--restart', ...sh('echo "$EDGELECT_TOKEN" >> "$FILE"; test $(wc -l < "$FILE") = 2 && sleep 100; test $(wc -l < "$FILE") = 3')]);
  const tokens = () => read().trim().split('\n');
  await until(() => tokens().length === 2);
  assert.equal(tokens()[0], tokens()[1]);
  store.objects.delete(`/jobs/${elector.config.lockfilePath}`);
  assert.deepEqual(await leader.ended, { code: 0, signal: null });
  assert.ok(tokens().length === 3 && Number(tokens()[2]) > Number(tokens()[1]));
  assert.equal(record().term, Number(tokens()[2]));
});

test('a command that has ended by itself while edgelect stood still has ended, though the lease is over', async () => {
  const { run, read, elector } = await newGroup();
  const leader = run(['--restart', ...sh('echo ran >> "$FILE"; sleep 0.3')]);
  await until(() => read() === 'ran\n');
  leader.kill('SIGSTOP');
  await started(elector);
  leader.kill('SIGCONT');
  assert.deepEqual(await leader.ended, { code: 0, signal: null });
  assert.equal(read(), 'ran\n');
});

test('a signal while the lease is released lets that go on', async () => {
  const { run, isReleased, variables } = await newGroup();
  const proxy = await kept(startProxy(store.endpoint));
  const leader = run(['--json', ...sh('until test -e "$FILE.told"; do sleep 0.05; done; exit 6')], proxy.endpoint);
  await leader.says(/"began"/);
  proxy.answerWith(() => pause(1_000));
  fs.writeFileSync(`${variables().FILE}.told`, '');
  await leader.says(/"ended"/);
  leader.kill('SIGTERM');
  assert.deepEqual(await leader.ended, { code: 6, signal: null });
  assert.ok(isReleased());
});

test('-n is about the wait alone: a store that stumbles under the command ends no restarts', async () => {
  const { run, read, variables } = await newGroup();
  const proxy = await kept(startProxy(store.endpoint));
  // On a busy machine a request takes long, and no first one may be late.
  const leader = run(['-n', '--lease', '6s', '--restart', ...sh('echo ran >> "$FILE"; test $(wc -l < "$FILE") = 2 && exit 0; until test -e "$FILE.told"; do sleep 0.05; done; exit 1')], proxy.endpoint);
  await until(() => read() === 'ran\n');
  let left = 2;
  proxy.answerWith(() => (left-- > 0 ? { status: 503 } : undefined));
  await leader.says(/503/);
  fs.writeFileSync(`${variables().FILE}.told`, '');
  assert.deepEqual(await leader.ended, { code: 0, signal: null });
  assert.equal(read(), 'ran\nran\n');
});

test('what is wrong is one line, or two with a hint, and 2; a store that fails is 1', async () => {
  const { variables } = await newGroup();
  const own = variables();
  await forEachRow([
    [[], {}, 2, /(missing required argument 'command'|arguments were not provided: <command>)/],
    ...(npmOnly.skip ? [[['--nonblok', '--', 'true'], {}, 2, /'--nonblok' .*'--nonblock'/]] : []),
    [['--wait', 'soon', '--', 'true'], {}, 2, /'soon'.* It is a number and ms, s, m, h or d/],
    [['--conflict-exit-code', '256', '--', 'true'], {}, 2, /from 0 to 255/],
    [['--', ''], {}, 2, /name a program/],
    [['--shell', '--', ''], {}, 2, /name a program/],
    [['--lease', '10ms', '--', 'true'], {}, 2, /^edgelect: --lease = 10: /],
    [['--lease', '15s', '--grace', '20s', '--', 'true'], {}, 2, /^edgelect: --grace = 20000 ms: at most \d+ ms/],
    [['--', 'true'], { EDGELECT_LOCKFILE_PATH: '' }, 2, /^edgelect: --lockfile-path = \(not set\): name the group/],
    [['--endpoint', 'no url', '--', 'true'], {}, 2, /endpoint/],
    [['--profile', 'nobody', '--', 'true'], { EDGELECT_ACCESS_KEY_ID: '', EDGELECT_SECRET_ACCESS_KEY: '' }, 2, /^edgelect: profile "nobody": /],
    [['-n', '--', 'true'], { EDGELECT_ENDPOINT: 'http://127.0.0.1:1' }, 1, /no answer/],
  ], async ([args, more, code, stderr]) => {
    const told = await edgelect(['run', ...args], { variables: { ...own, ...more } });
    assert.equal(told.code, code, `${args.join(' ')}: ${told.stderr}`);
    assert.match(told.stderr, stderr);
    assert.ok(told.stderr.trim().split('\n').length <= 2, told.stderr);
    assert.doesNotMatch(told.stderr, /^ +at |secret/m);
  });
});

test('who gives up on a store that refuses all writes says why', async () => {
  const { endpoint } = await kept(startLiar('forbids'));
  const { variables } = await newGroup({ starts: false });
  let last;
  for (const wait of ['300ms', '900ms', '3s']) {
    const { code, stderr } = await edgelect(['run', '--wait', wait, '--', 'true'], { variables: variables(endpoint) });
    last = `${code} ${stderr}`;
    // Between two writes it waits for its turn; a busy machine may have heard nothing yet.
    assert.match(last, /^(1 edgelect: [^\n]*403 AccessDenied[^\n]*\n|75 (edgelect: waiting [^\n]*\n)?)$/);
  }
  assert.match(last, /403 AccessDenied|waiting/);
});

test('a reader of its messages that has stopped reading keeps nobody waiting', { skip: process.platform !== 'linux' && 'only Linux opens a pipe anew' }, async () => {
  const { run, read, variables, isReleased } = await newGroup();
  const full = 'mkfifo "$FILE.pipe"; exec 9<>"$FILE.pipe"; head -c 65536 /dev/zero >&9; exec "$@" 2>&9';
  const leader = run(['--json', ...sh('echo $$ > "$FILE"; sleep 30')], undefined, { script: full, variables: variables() });
  await until(() => read().length > 0);
  const startMs = performance.now();
  leader.kill('SIGTERM');
  assert.deepEqual(await leader.ended, { code: 143, signal: null });
  soon(startMs);
  assert.ok(isGone(Number(read())) && isReleased());
});

test('a reader of its messages that goes away ends nothing', async () => {
  const { variables, read } = await newGroup();
  const script = `{ ${PROGRAM.join(' ')} run --json -- sh -c 'sleep 1; echo done > "$FILE"'; } 2>&1 | true`;
  await promisify(execFile)('/bin/sh', ['-c', script], { env: { PATH: process.env.PATH, ...variables() } });
  await until(() => read() === 'done\n');
});

test('the guard hears of no fence later than the true one, however long this process is held while it looks', npmOnly, async () => {
  const outfile = path.join(folder, 'child.mjs');
  const banner = { js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);" };
  buildSync({ entryPoints: [inRoot('js/cli/child.js')], bundle: true, platform: 'node', format: 'esm', banner, outfile });
  const { Child } = await import(outfile);
  const fenceMs = nowMs() + 60_000;
  const leftMs = () => {
    const left = fenceMs - nowMs();
    for (const endMs = nowMs() + 50; nowMs() < endMs;);
    return left;
  };
  const told = [];
  const guard = { mark: 'none', tell: ({ untilMs = 0 }) => told.push(untilMs) };
  const child = new Child({ command: ['true'], times: { graceMs: 100, killMs: 0 }, killAfterMs: 1_000, leftMs, guard });
  await child.end();
  assert.ok(told.length >= 2 && Math.max(...told) <= fenceMs, `${Math.max(...told) - fenceMs} ms late`);
});

test('a group counts as alive where /proc cannot be read', onLinux, async () => {
  const child = spawn('sleep', ['100'], { detached: true, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const judged = (method, code) => replaced(fs, method, () => { throw Object.assign(new Error(code), { code }); }, () => [isAlive(child.pid), signalMarked('nobody', 'SIGKILL').ids.length > 0]);
  try {
    for (const [method, code] of [['readdirSync', 'ENOENT'], ['readdirSync', 'EMFILE'], ['readFileSync', 'EMFILE']]) {
      assert.deepEqual(await judged(method, code), [true, false], `${method} ${code}`);
    }
    assert.equal((await judged('readFileSync', 'ENOENT'))[0], false, 'each process has ended since /proc was listed');
  } finally {
    killGroup(child.pid, 'SIGKILL');
    await ended;
  }
});
