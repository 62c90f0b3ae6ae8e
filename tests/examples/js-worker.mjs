// examples/js-worker: its own tests in workerd by the vitest plugin, and what `wrangler deploy` would upload of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { cleanEnv, runWell, uploadOf } from '../../js/tools/pack.mjs';
import { NODE_24, inRoot } from '../../js/tools/paths.mjs';
import { QUIET_AND_OFFLINE } from '../../js/tools/wrangler.mjs';

export const jsWorker = ({ users, folder }) => {
  const cwd = path.join(users, 'js-worker');
  const own = { HOME: folder, TMPDIR: folder, PWD: cwd };
  return [
    ['js-worker: its tests in workerd', () => itsTests(cwd, own)],
    ['js-worker: bundled as wrangler deploy would, with the wasm imported', () => uploadOf(cwd, { env: own })],
    ['js-worker: asks for the versions that are tested here', sameVersions],
  ];
};

async function itsTests(cwd, own) {
  // As npm would lay them out: two of the names in its package.json, and edgelect one folder above.
  fs.mkdirSync(path.join(cwd, 'node_modules/@cloudflare'), { recursive: true });
  for (const name of ['vitest', '@cloudflare/vitest-plugin']) {
    fs.symlinkSync(inRoot('node_modules', name), path.join(cwd, 'node_modules', name));
  }
  const vitest = inRoot('node_modules/vitest/vitest.mjs');
  const output = await runWell(NODE_24, [vitest, 'run'], { cwd, env: { ...cleanEnv(), ...QUIET_AND_OFFLINE, ...own } });
  const count = fs.readFileSync(path.join(cwd, 'test/worker.test.js'), 'utf8').match(/^test\(/gm).length;
  assert.match(output, new RegExp(`^ +Tests +${count} passed \\(${count}\\)$`, 'm'), output);
}

function sameVersions() {
  const read = (file) => JSON.parse(fs.readFileSync(inRoot(file), 'utf8'));
  const [own, ours] = [read('examples/js-worker/package.json'), read('package.json')];
  assert.equal(own.dependencies.edgelect, `^${ours.version}`);
  for (const [name, version] of Object.entries(own.devDependencies)) assert.equal(version, ours.devDependencies[name], name);
}
