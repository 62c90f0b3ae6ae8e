// examples/deno-cron and examples/bun-cron: two processes each, over one real minute boundary.
import assert from 'node:assert/strict';
import path from 'node:path';
import { inRoot } from '../../js/tools/paths.mjs';
import { denoVariables, runTool } from '../../js/tools/pack.mjs';
import { until } from '../js/until.mjs';
import { newGroup, variables } from './group.mjs';
import { helpAndRefusals, startExample, withProcesses } from './process.mjs';

const MINUTE_MS = 60_000;
/** From a group's making: its first seconds count as claimed, and the runtimes need some to start. */
const READY_MS = 20_000;
const FIRED_MS = 25_000;
const [BUN, DENO] = ['bun', 'deno'].map((name) => inRoot('node_modules/.bin', name));
const DENO_RUN = 'deno run --unstable-cron --allow-env --allow-net=HOST main.js';

export const minuteCron = (place) => {
  const args = DENO_RUN.replace('HOST', '127.0.0.1').split(' ').slice(2);
  const [cwd, env] = [path.join(place.folder, 'deno-cron'), denoVariables(place)];
  const command = [DENO, 'run', '--quiet', '--no-prompt'];
  const deno = (more = args) => ({ folder: 'deno-cron', cwd, env, command: [...command, ...more] });
  const bun = { folder: 'bun-cron', cwd: path.join(place.users, 'bun-cron'), command: [BUN, 'main.js'] };
  return [
    ['deno-cron: Deno.cron in two processes over a real minute', () => fired(place, deno(), 2, overTheMinute)],
    ['deno-cron: SIGTERM under the job', () => fired(place, deno(), 1, endedUnderTheJob)],
    ['bun-cron: Bun.cron in two processes over a real minute', () => fired(place, bun, 2, overTheMinute)],
    ['deno-cron: --help, and what is missing', () => missing(place, deno, args)],
  ];
};

async function overTheMinute(members, slot) {
  const name = new Date(slot).toISOString();
  const heard = (what) => members.flatMap(({ lines }) => lines.filter((line) => what.test(line)));
  await until(() => heard(/ (done|taken|failed|lost|skipped|unknown): /).length === 2, slot - Date.now() + FIRED_MS);
  assert.equal(heard(/ is written with token [1-9]\d*$/).length, 1, 'one of them runs the job, once');
  const outcomes = heard(/: /).map((line) => line.replace(/\d+ ms$/, 'MS')).sort();
  assert.deepEqual(outcomes, [`${name} done: MS`, `${name} taken: this slot, or a later one, was claimed before`]);
  assert.deepEqual(await Promise.all(members.map((member) => member.stop())), [0, 0]);
}

async function endedUnderTheJob([member], slot) {
  await until(() => member.lines.some((line) => / begins with token /.test(line)), slot - Date.now() + FIRED_MS);
  assert.equal(await member.stop(), 0);
  assert.equal(member.lines.at(-1), 'stopped');
  assert.ok(!member.lines.some((line) => / is written /.test(line)), 'the job has ended by its signal');
}

/** Hands over processes that have been started before a minute which their group counts as not claimed. */
async function fired(place, runtime, count, work) {
  const slot = Math.ceil((Date.now() + READY_MS) / MINUTE_MS) * MINUTE_MS;
  const key = await newGroup(place, runtime.folder);
  // Earlier than this a cron of the minute before the awaited one could still fire.
  await until(() => Date.now() >= slot - MINUTE_MS + 1_000, MINUTE_MS);
  const env = { ...variables(place.store, key), ...runtime.env };
  const members = Array.from({ length: count }, (_member, index) => startExample(runtime.command, {
    cwd: runtime.cwd, env: { ...env, EDGELECT_SERVER_ID: `${runtime.folder}-${index}` },
  }));
  await withProcesses(members, () => work(members, slot));
}

function missing({ store }, deno, args) {
  const run = (more) => {
    const { cwd, command: [program, ...rest], env } = deno(more[0] === '--help' ? [...args, ...more] : more);
    return runTool(program, rest, { cwd, env: { ...variables(store, 'unused'), ...env } });
  };
  return helpAndRefusals(run, new RegExp(`^${DENO_RUN}\n`), [
    [[...args, '--halp'], /^Unknown option '--halp'/],
    [args.filter((arg) => arg !== '--unstable-cron'), /^this Deno has no Deno\.cron: run it with --unstable-cron/],
    [args.filter((arg) => arg !== '--allow-env'), /\(in Deno: --allow-env\)/],
  ]);
}
