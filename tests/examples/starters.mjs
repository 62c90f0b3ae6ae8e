// What `edgelect new` writes, as somebody uses it: made by the installed package, then installed and started by the lines that
// it ends with.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { cleanEnv, denoVariables, runTool, runWell, uploadOf } from '../../js/tools/pack.mjs';
import { HOST_NODE, inRoot } from '../../js/tools/paths.mjs';
import { until } from '../js/until.mjs';
import { RAN_BEFORE, putRecord } from './group.mjs';
import { startExample, withProcesses } from './process.mjs';

const QUARTER_MS = 15 * 60_000;
const RUNS_MS = 30_000;
const LEADS_MS = 60_000;
const NEXT = 'Next, with your two keys put into .env in between; README.md has the rest:';
/** A key with all characters that a starter takes. */
const LOCKFILE = 'a@b:c+d=e_f-g.h/I9.json';
const REPORT = /^the report: \{"writtenAt":"[^"]+","token":[1-9]\d*\}$/;
const OUTCOME = /^\S+Z (\w+)(: .*)?$/;

export const starters = (place) => [
  ...['node', 'deno'].flatMap((kind) => [
    [`edgelect new ${kind}: of three runs for one time one does the work`, () => scheduled(place, kind)],
    [`edgelect new ${kind} --always: one leads, and the next when it ends`, () => always(place, kind)],
  ]),
  ['edgelect new worker: of three triggers for one time one does the work', () => worker(place)],
];

async function scheduled(place, kind) {
  const project = await installed(place, kind, `${kind}-cron`, ['--cron', '30 9 * * MON-FRI']);
  const unfilled = await project.run(project.start);
  assert.equal(unfilled.code, 1);
  assert.match(unfilled.errors, /^EDGELECT_ACCESS_KEY_ID = \(not set\): set it/m);
  project.fill();
  const { code, output, errors } = await project.run(project.doctor);
  assert.equal(code, 0, `${output}${errors}`);
  // Before and after a multiple of its period two runs mean two times.
  await until(() => Date.now() % QUARTER_MS < QUARTER_MS - RUNS_MS, 2 * RUNS_MS);
  await putRecord(place.store, project.lockfile, RAN_BEFORE);
  const runs = await Promise.all([project.run(project.start), project.run(project.start)]);
  runs.push(await project.run(project.start));
  onceOf(runs.flatMap((run) => run.output.split('\n')));
  for (const run of runs) {
    assert.equal(run.code, 0, `${run.output}${run.errors}`);
    assert.match(run.output, /^\d{4}-\d\d-\d\dT\d\d:(00|15|30|45):00\.000Z /m);
  }
}

async function always(place, kind) {
  const project = await installed(place, kind, `${kind}-always`, ['--always']);
  project.fill();
  await putRecord(place.store, project.lockfile, RAN_BEFORE);
  const started = () => startExample(['sh', '-c', `exec ${project.script}`], { cwd: project.folder, env: project.env });
  const tokenOf = ({ lines }) => Number(lines.map((line) => /^leads with token (\d+)$/.exec(line)?.[1]).find(Boolean));
  const first = started();
  const members = { first };
  await withProcesses(members, async () => {
    const token = await until(() => tokenOf(first), LEADS_MS);
    const second = (members.second = started());
    await until(() => second.lines.includes('waits until it leads'), LEADS_MS);
    assert.equal(await first.stop(), 0);
    assert.deepEqual([first.lines.filter((line) => REPORT.test(line)).length, first.lines.at(-1)], [1, 'stopped']);
    assert.ok((await until(() => tokenOf(second), LEADS_MS)) > token);
    assert.equal(await second.stop(), 0);
  });
}

async function worker(place) {
  const cron = '*/5 8-18 * * MON-FRI';
  const { folder, lines } = await made(place, 'worker', 'cron-worker', ['--cron', cron, '--lockfile-path', LOCKFILE, '--bucket', 'jobs']);
  assert.deepEqual(lines, ['Next, and README.md says how to fire its cron:', 'cd cron-worker && npm install', 'npm run dev']);
  const { dependencies, devDependencies, engines } = JSON.parse(read(folder, 'package.json'));
  const ours = JSON.parse(read(inRoot(), 'package.json'));
  const { version: wrangler, engines: wants } = JSON.parse(read(inRoot('node_modules/wrangler'), 'package.json'));
  assert.deepEqual([dependencies, devDependencies, engines], [{ edgelect: `^${ours.version}` }, { wrangler }, { node: wants.node }]);
  // As `npm install` would, but for wrangler.
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(path.join(place.users, 'node_modules/edgelect'), path.join(folder, 'node_modules/edgelect'));
  const fired = await inWorkerd(folder, async (fire, logged) => {
    await fire(Date.now());
    assert.match(logged.join('\n'), /^\S+Z skipped: the lease object is new, [^\n]+$/, 'the first time of a new group');
    logged.length = 0;
    const now = Date.now();
    await Promise.all([fire(now), fire(now)]);
    await fire(now);
    return logged;
  });
  onceOf(fired);
}

/** Runs the Worker as it would be uploaded; `fire` asks the address that its README shows. */
async function inWorkerd(folder, work) {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const { bundleIn, COMPATIBILITY_DATE, startWorkerd } = await import('../../js/tools/miniflare.mjs');
  const toml = read(folder, 'wrangler.toml');
  for (const line of [`name = "${path.basename(folder)}"`, `compatibility_date = "${COMPATIBILITY_DATE}"`, 'crons = ["*/5 8-18 * * MON-FRI"]', 'bucket_name = "jobs"']) {
    assert.ok(toml.split('\n').includes(line), `${line} in\n${toml}`);
  }
  const [, address] = /curl "http:\/\/127\.0\.0\.1:8787(\/[^"$]+)\$1"/.exec(read(folder, 'README.md'));
  const logged = [];
  const workerd = startWorkerd({ ...bundleIn(await uploadOf(folder, {})), r2Buckets: ['EDGELECT_R2'], unsafeTriggerHandlers: true, onLog: (text) => logged.push(text) });
  const fire = async (time) => {
    const answer = await workerd.dispatchFetch(`http://worker${address}${time}`);
    assert.deepEqual([answer.status, await answer.text()], [200, 'ok'], logged.join('\n'));
  };
  try {
    return await work(fire, logged);
  } finally {
    await workerd.dispose();
  }
}

/** Of three members one did the work, and the others say who did. */
function onceOf(lines) {
  assert.equal(lines.filter((line) => REPORT.test(line)).length, 1, lines.join('\n'));
  const outcomes = lines.map((line) => OUTCOME.exec(line)).filter(Boolean).map(([, outcome, reason = '']) => `${outcome}${reason}`);
  const taken = 'taken: this slot, or a later one, was claimed before';
  assert.deepEqual(outcomes.sort(), ['done', taken, taken]);
}

/** Makes a project and hands over its folder and its last three lines of output. Nothing in it is left to replace. */
async function made({ folder, users }, kind, name, flags) {
  const cwd = path.join(folder, 'starters');
  fs.mkdirSync(cwd, { recursive: true });
  const cli = path.join(users, 'node_modules/edgelect/js/dist/cli.js');
  const output = await runWell(HOST_NODE, [cli, 'new', kind, name, ...flags], { cwd });
  const project = path.join(cwd, name);
  for (const file of fs.readdirSync(project, { recursive: true }).filter((one) => fs.statSync(path.join(project, one)).isFile())) {
    assert.doesNotMatch(read(project, file), /__[A-Z]/, file);
  }
  return { cwd, folder: project, lines: output.trimEnd().split('\n').slice(-3).map((line) => line.trim()) };
}

/** Makes a project for Node or Deno, and installs it by its own line. `run` runs a command in it, `fill` gives it the keys. */
async function installed(place, kind, name, flags) {
  const { bucket, endpoint, credentials } = place.store;
  const lockfile = `${name}/${LOCKFILE}`;
  const { cwd, folder, lines } = await made(place, kind, name, [...flags, '--bucket', bucket, '--endpoint', endpoint, '--lockfile-path', lockfile]);
  const env = {
    ...cleanEnv(), ...denoVariables(place), npm_config_cache: path.join(place.folder, 'starters-cache'),
    PATH: [path.dirname(HOST_NODE), inRoot('node_modules/.bin'), process.env.PATH].join(path.delimiter),
  };
  const [next, install, start] = lines;
  assert.deepEqual([next, start], [NEXT, { node: 'npm start', deno: 'deno task start' }[kind]]);
  await runWell('sh', ['-c', install], { cwd, env });
  const run = (command) => runTool('sh', ['-c', command], { cwd: folder, env });
  const keys = { EDGELECT_ACCESS_KEY_ID: credentials.accessKeyId, EDGELECT_SECRET_ACCESS_KEY: credentials.secretAccessKey };
  const filled = () => read(folder, '.env').replace(/^(\w+_KEY(?:_ID)?)=$/gm, (line, key) => line + keys[key]);
  const fill = () => fs.writeFileSync(path.join(folder, '.env'), filled());
  const { scripts, tasks } = JSON.parse(read(folder, kind === 'node' ? 'package.json' : 'deno.json'));
  const script = (scripts ?? tasks).start;
  if (kind === 'deno') assert.equal(script, `deno run --env-file=.env --allow-env --allow-net=${new URL(endpoint).host} main.mjs`);
  const doctor = kind === 'node' ? 'npm run doctor -- --age 0 --races 1' : 'deno task doctor --age 0 --races 1';
  return { folder, env, lockfile, start, script, doctor, run, fill };
}

const read = (folder, file) => fs.readFileSync(path.join(folder, file), 'utf8');
