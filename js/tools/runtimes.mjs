// One suite in five runtimes, on the packed package; and whatever is a matter of one runtime's own.
import fs from 'node:fs';
import path from 'node:path';
import { startRig } from '../../tests/runtimes/rig.mjs';
import { cleanEnv, denoVariables, emptyFolder, runTool, runWell, uploadOf, withPacked } from './pack.mjs';
import { HOST_NODE, NODE_24, inRoot } from './paths.mjs';
import { PlainError, step } from './run.mjs';

const LIMIT_MS = 300_000;
const BIN = inRoot('node_modules/.bin');
const SUITE = ['suite.mjs', 'bad-input.mjs', 'harness.mjs', 'using.mjs'];

/** Runs everything against the store that the variables name. */
export async function runtimes(store) {
  const rig = await startRig(store.endpoint);
  try {
    await withPacked(async (place) => {
      const runners = await prepare(place);
      const context = { ...store, rigUrl: rig.url };
      const results = await step('The suite in five runtimes', () => Promise.all(runners.map((runner) => runOne(runner, context))));
      for (const { name, passed } of results) if (passed) console.log(`${name}: ${passed.length} tests passed`);
      compare(results);
    });
  } finally {
    await rig.close();
  }
}

/** Lays out one folder for those who take packages from `node_modules`, one for Deno, and says how each runs. */
async function prepare(place) {
  const { users, registry } = place;
  copy([...SUITE, 'node.mjs', 'workerd.mjs'], users);
  const lowered = ['--target=node20', '--log-level=warning', `--outfile=${path.join(users, 'using.node20.mjs')}`];
  await runWell(path.join(BIN, 'esbuild'), [path.join(users, 'using.mjs'), ...lowered]);
  const deno = emptyFolder(place, 'deno');
  copy([...SUITE, 'deno.mjs'], deno);
  fs.writeFileSync(path.join(deno, 'deno.json'), JSON.stringify({ imports: { edgelect: `npm:edgelect@${registry.version}` } }));
  const worker = await uploadOf(users, { main: 'workerd.mjs' });
  const installed = fs.realpathSync(path.join(users, 'node_modules/edgelect/js/entry/default.js'));
  const fetched = `${fs.realpathSync(place.folder)}/deno-dir/npm/`;
  return [
    { name: 'Node', program: HOST_NODE, args: ['node.mjs'], after: ['./using.node20.mjs'], cwd: users, from: installed },
    { name: 'Node', program: NODE_24, args: ['node.mjs'], after: ['./using.mjs'], cwd: users, from: installed, major: '24' },
    {
      name: 'Deno', program: path.join(BIN, 'deno'), args: ['run', '--quiet', '--no-prompt', '--allow-net=127.0.0.1', 'deno.mjs'],
      cwd: deno, env: denoVariables(place), from: fetched,
    },
    { name: 'Bun', program: path.join(BIN, 'bun'), args: ['node.mjs'], after: ['./using.mjs'], cwd: users, from: installed },
    {
      name: 'workerd', program: NODE_24, args: [inRoot('tests/runtimes/in-workerd.mjs'), worker], cwd: users, shares: 2,
      // It logs each failed handshake by itself.
      quiet: /^(e = .*: TLS handshake failed: .*|stack: .*workerd@.*)\n/gm,
    },
  ];
}

const copy = (names, folder) => names.forEach((name) => fs.copyFileSync(inRoot('tests/runtimes', name), path.join(folder, name)));

/** Runs one runtime to its end and takes the last line that it printed for its result; `problems` are beside its tests. */
async function runOne({ name, program, args, after = [], cwd, env, from, major, shares, quiet = /^$/g }, context) {
  const options = { cwd, env: { ...cleanEnv(), ...env }, limitMs: LIMIT_MS };
  // One isolate serves many events at once, and none may lean on what is another's.
  const contexts = shares ? Array.from({ length: shares }, (_share, index) => ({ ...context, share: [index, shares] })) : [context];
  const json = contexts.map((one) => JSON.stringify(one));
  const { code, output, errors, late } = await runTool(program, [...args, ...json, ...after], options);
  const last = output.trim().split('\n').at(-1);
  if (!last?.startsWith('{')) return { name, problems: [`gave no result and ended with ${code}:\n${output}${errors}`] };
  const result = { ...together(JSON.parse(last)), problems: [] };
  const { problems, version } = result;
  if (late) problems.push('did not end after its tests: something still holds a connection or a timer');
  else if (code !== 0) problems.push(`ended with ${code}`);
  if (errors.replace(quiet, '').trim() !== '') problems.push(`wrote to stderr:\n${errors}`);
  if (from !== undefined && !result.from.startsWith(from)) problems.push(`took edgelect from ${result.from}, not ${from}`);
  if (major !== undefined && !version.startsWith(`${major}.`)) problems.push(`is not ${major}`);
  return { ...result, name: `${name} ${version}` };
}

/** One result out of those of several shares. */
const together = ({ answers, ...result }) => {
  if (answers === undefined) return result;
  // Each share ends with the test that no rejection is left.
  const passed = [...new Set(answers.flatMap((answer) => answer.passed))];
  return { ...result, passed, failed: answers.flatMap(({ failed }) => failed), table: Object.assign({}, ...answers.map(({ table }) => table)) };
};

/** Fails with every failed test of every runtime, then with every error that is not the same everywhere. */
function compare(results) {
  const failures = results.flatMap(({ name, problems, failed = [] }) =>
    [...problems.map((problem) => `${name} ${problem}`), ...failed.map((one) => `${name}: ${one.name}\n${one.why}`)]);
  const [first, ...others] = results.filter(({ table }) => table !== undefined);
  for (const { name, passed, table } of others) {
    for (const key of new Set([...Object.keys(first.table), ...Object.keys(table)])) {
      const [one, other] = [first.table[key], table[key]].map((row) => JSON.stringify(row));
      if (one !== other) failures.push(`bad input "${key}" differs:\n  ${first.name}: ${one}\n  ${name}: ${other}`);
    }
    if (passed.length !== first.passed.length) failures.push(`${name} passed ${passed.length} tests, ${first.name} ${first.passed.length}`);
  }
  if (failures.length > 0) throw new PlainError(`the runtimes' suite failed:\n${failures.join('\n\n')}`);
}
