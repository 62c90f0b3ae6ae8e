import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { endProcess, newFolder, spawnKept } from '../../js/tools/cleanup.mjs';
import { freePorts } from '../../js/tools/seaweed.mjs';
import { until } from '../js/until.mjs';
import { devBlock } from '../readme/dev-block.mjs';
import { root } from './isolate.mjs';

const READY_MS = 60_000;

/** What a clone has, if what was added is committed. Other steps may write at the same time whatever else lies here. */
const cloned = () => {
  const { status, stdout, stderr } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.split('\0').filter((name) => name !== '' && fs.existsSync(`${root}${name}`));
};

const clone = () => {
  const folder = newFolder('clone');
  for (const name of cloned()) fs.cpSync(`${root}${name}`, `${folder}/${name}`);
  // What setting it up would bring is lent, so that nothing is fetched.
  fs.mkdirSync(`${folder}/node_modules`);
  for (const name of fs.readdirSync(`${root}node_modules`)) {
    if (name !== '.edgelect-stamp') fs.symlinkSync(`${root}node_modules/${name}`, `${folder}/node_modules/${name}`);
  }
  const lock = createHash('sha256').update(fs.readFileSync(`${root}package-lock.json`)).digest('hex');
  fs.writeFileSync(`${folder}/node_modules/.edgelect-stamp`, `${lock} ${process.platform} ${process.arch}\n`);
  fs.symlinkSync(`${root}.tools`, `${folder}/.tools`);
  fs.mkdirSync(`${folder}/build`);
  for (const name of ['worker', 'worker.stamp']) fs.cpSync(`${root}build/${name}`, `${folder}/build/${name}`, { recursive: true });
  return folder;
};

/** Runs it until it is ready. Another process may take a port between our look and its start. */
const startDev = async (folder, env, attempts = 3) => {
  const [port, inspectorPort] = await freePorts(2);
  let output = '';
  const dev = spawnKept(process.execPath, ['js/tools/dev.mjs', '--port', port, '--inspector-port', inspectorPort], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [dev.stdout, dev.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  after(() => endProcess(dev, 5_000));
  await until(() => /Ready on/.test(output) || dev.exitCode !== null, READY_MS).catch(() => {});
  if (/Ready on/.test(output)) return { dev, port, said: () => output };
  await endProcess(dev, 5_000);
  if (attempts > 1 && /in use/.test(output)) return startDev(folder, env, attempts - 1);
  throw new Error(`it was not ready within ${READY_MS} ms; wrangler said:\n${output}`);
};

test('a clone runs by `npm run dev`, without account, variable or network: the cron fired, the Worker leads on its local R2', async () => {
  const folder = clone();
  const { scripts } = JSON.parse(fs.readFileSync(`${folder}/package.json`, 'utf8'));
  assert.equal(scripts.dev, 'node js/tools/dev.mjs');
  const nowhere = 'http://127.0.0.1:9';
  const env = {
    ...process.env, HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost', HOME: folder, XDG_CONFIG_HOME: folder,
    CARGO_HOME: process.env.CARGO_HOME ?? path.join(os.homedir(), '.cargo'), RUSTUP_HOME: process.env.RUSTUP_HOME ?? path.join(os.homedir(), '.rustup'),
  };
  for (const name of Object.keys(env)) if (/^(EDGELECT|AWS|CLOUDFLARE|WRANGLER|CI$)/.test(name)) delete env[name];
  const { dev, port, said } = await startDev(folder, env);
  try {
    const shown = devBlock();
    assert.equal(shown.port, '8787', 'where wrangler dev listens unless it is told otherwise');
    const [fire, ask] = [shown.fire, shown.ask].map((url) => url.replace(`:${shown.port}/`, `:${port}/`));
    assert.equal((await fetch(ask)).status, 404, 'nobody leads before the cron has fired');
    const firedMs = Date.now();
    const fired = fetch(fire).catch(() => {});
    const answer = await until(async () => {
      const one = await fetch(ask);
      return one.status === 200 ? one : void (await one.text());
    }, READY_MS);
    assert.ok(Date.now() - firedMs < shown.waitMs, `it led after ${Date.now() - firedMs} ms; the README waits ${shown.waitMs} ms`);
    const { leaderID, leaseMs, group, ...body } = await answer.json();
    assert.deepEqual({ leaderID, leaseMs, group }, shown.answer);
    assert.ok(body.remainingMs > 0, 'the isolate that leads has answered');
    await endProcess(dev, 5_000);
    await fired;
  } catch (error) {
    throw new Error(`${error.message}; wrangler said:\n${said()}`, { cause: error });
  }
  assert.doesNotMatch(said(), /[Ll]og ?in|account|Compiling/, 'nothing asked for an account, and the build of the clone was found fresh');
});
