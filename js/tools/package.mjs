// The package as its users get it: checked, packed, installed into an empty folder, imported, required and bundled.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { endProcess, spawnKept } from './cleanup.mjs';
import { cleanEnv, denoVariables, emptyFolder, importsWasm, runTool, runWell, withPacked } from './pack.mjs';
import { HOST_NODE, NODE_24, inRoot } from './paths.mjs';
import { PlainError, step } from './run.mjs';

const [BUN, DENO, ESBUILD] = ['bun', 'deno', 'esbuild'].map((name) => inRoot('node_modules/.bin', name));
const TSC = inRoot('node_modules/typescript/bin/tsc');
/** How long a process that has to stay is watched, in milliseconds; the pauses of its elector are a tenth of this. */
const STAY_MS = 3_000;
/** Within what a process has to end, on a machine that is busy with the others. */
const ENDS_MS = 60_000;

/** Each check is a line of the output; the first that fails ends the step. */
export async function packageChecks(store) {
  await withPacked(async (packed) => {
    fs.cpSync(inRoot('tests/package'), packed.users, { recursive: true });
    const place = { ...packed, store, runtimes: await runtimesOf(packed) };
    for (const [what, check] of [...linted(place), ...imported(place), ...bundled(place), ...unreffed(place), ...provided(place)]) {
      await step(what, check);
      console.log(`ok  ${what}`);
    }
  });
}

/** The runtimes that have processes, each with its command up to the file. */
const runtimesOf = async (packed) => [
  { name: `Node ${await versionOf(HOST_NODE)}`, node: true, command: [HOST_NODE] },
  { name: `Node ${await versionOf(NODE_24)}`, node: true, command: [NODE_24] },
  // The installed folder as it is, without a registry.
  { name: `Deno ${await versionOf(DENO)}`, command: [DENO, 'run', '--quiet', '--no-prompt', '--node-modules-dir=manual', '-A'], env: denoVariables(packed) },
  { name: `Bun ${await versionOf(BUN)}`, command: [BUN] },
];

const versionOf = async (program) => /\d+\.\d+\.\d+/.exec(await runWell(program, ['--version']))[0];

const inRuntime = ({ users }, { command: [program, ...args], env }, file, ...rest) =>
  runWell(program, [...args, file, ...rest], { cwd: users, env: { ...cleanEnv(), ...env } });

const led = (output) => {
  if (!/^led [1-9]\d*$/m.test(output)) throw new PlainError(`no term was led: ${output}`);
};

const linted = ({ tarball, users }) => [
  ['each link of its pages leads to a file of it, and to a heading that is there', () => linksLead(path.join(users, 'node_modules/edgelect'))],
  ['the crate has its sources, its README and its licence, and no other folder\'s', async () => {
    const listed = await runWell('cargo', ['package', '--list', '--allow-dirty', '--offline'], { cwd: inRoot(), env: process.env });
    const other = listed.trim().split('\n').find((name) => !/^(src\/.+|\.cargo_vcs_info\.json|Cargo\.(lock|toml|toml\.orig)|LICENSE|README\.md)$/.test(name));
    if (other) throw new PlainError(`it has ${other}`);
  }],
  ['its repository is the crate\'s', () => {
    const [, url] = /^repository = "(.*)"$/m.exec(fs.readFileSync(inRoot('Cargo.toml'), 'utf8'));
    const { repository } = JSON.parse(fs.readFileSync(path.join(users, 'node_modules/edgelect/package.json'), 'utf8'));
    if (repository?.url !== `git+${url}.git`) throw new PlainError(`it names ${repository?.url}`);
  }],
  ['publint finds nothing', () => runWell(NODE_24, [inRoot('node_modules/publint/src/cli.js'), tarball, '--strict'])],
  ['attw finds nothing', () => runWell(NODE_24, [inRoot('node_modules/@arethetypeswrong/cli/dist/index.js'), tarball, '--format', 'ascii'])],
  ['the types fit import and require', async () => {
    const args = ['--noEmit', '--strict', '--target', 'es2024', '--lib', 'es2022,dom', '--exactOptionalPropertyTypes', 'consumer.cts', 'consumer.mts'];
    for (const module of ['node16', 'nodenext']) await runWell(NODE_24, [TSC, ...args, '--module', module], { cwd: users });
  }],
];

function linksLead(folder) {
  const pages = fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.md')).map((name) => path.join(folder, name));
  const anchors = (page) => [...fs.readFileSync(page, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-'));
  for (const page of pages) {
    const links = [...fs.readFileSync(page, 'utf8').matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    for (const [link, file, anchor] of links) {
      const target = path.resolve(path.dirname(page), file || page);
      const leads = target.startsWith(folder) && fs.existsSync(target) && (anchor === undefined || anchors(target).includes(anchor));
      if (!leads) throw new PlainError(`${path.relative(folder, page)} has a link that leads nowhere in the package: ${link}`);
    }
  }
}

/** Each file of tests/package that a runtime runs as it is, and what it shows. */
const FILES = {
  'lead.mjs': 'imported', 'lead.cjs': 'required, with the classes that import gives',
  'aws.mjs': 'edgelect/aws, which is another name of it',
  'raw.mjs': 'the glue and the wasm by themselves',
};

const imported = (place) => [
  ...Object.entries(FILES).flatMap(([file, what]) =>
    place.runtimes.map((runtime) => [`${what}, in ${runtime.name}`, async () => led(await inRuntime(place, runtime, file))])),
  ['imported by Deno as npm:edgelect, with no permission at all', async () => {
    const lines = fs.readFileSync(path.join(place.users, 'lead.mjs'), 'utf8').replace("'edgelect'", "'npm:edgelect'");
    const alone = emptyFolder(place, 'deno-npm');
    fs.writeFileSync(path.join(alone, 'lead.mjs'), lines);
    led(await runWell(DENO, ['run', '--quiet', '--no-prompt', 'lead.mjs'], { cwd: alone, env: { ...cleanEnv(), ...denoVariables(place) } }));
  }],
];

const bundled = (place) => [
  ...[
    ...place.runtimes.map((runtime) => ['lead.mjs', 'esm', runtime]),
    // As an old bundler makes it.
    ['lead.cjs', 'cjs', place.runtimes[0]],
  ].map(([file, format, runtime], index) => [`${file} bundled as ${format} for ${runtime.name}`, async () => {
    const alone = emptyFolder(place, `bundle-${index}`);
    const bundle = `bundle.${format === 'cjs' ? 'cjs' : 'mjs'}`;
    const platform = runtime.node ? 'node' : 'neutral';
    await esbuild(place, file, [`--platform=${platform}`, `--format=${format}`, '--external:node:*', `--outfile=${path.join(alone, bundle)}`]);
    led(await inRuntime({ users: alone }, runtime, bundle));
  }]),
  ['bundled for workerd', async () => {
    const alone = emptyFolder(place, 'bundle-workerd');
    const args = ['--conditions=workerd', '--loader:.wasm=copy', '--platform=neutral', '--format=esm', `--outdir=${alone}`];
    await esbuild(place, 'lead-worker.mjs', args);
    importsWasm(alone);
    const output = await runWell(NODE_24, [inRoot('tests/runtimes/in-workerd.mjs'), alone, '{}'], { cwd: alone });
    led(`led ${JSON.parse(output).answers[0].led}`);
  }],
];

const esbuild = ({ users }, file, args) => runWell(ESBUILD, [file, '--bundle', '--log-level=warning', ...args], { cwd: users });

const unreffed = (place) => [['unref: a process with a started elector ends by itself, and stays without it, in all four', async () => {
  const deno = place.runtimes.find(({ name }) => name.startsWith('Deno'));
  const users = emptyFolder(place, 'bundle-stay');
  await esbuild(place, 'stay.mjs', ['--platform=neutral', '--format=esm', `--outfile=${path.join(users, 'stay.mjs')}`]);
  fs.copyFileSync(inRoot('tests/package/old-deno.mjs'), path.join(users, 'old-deno.mjs'));
  const all = [...place.runtimes.map((runtime) => ({ ...runtime, users: place.users })), { ...deno, name: 'Deno before 2.8', users, file: 'old-deno.mjs' }];
  await Promise.all(all.flatMap((runtime) => [undefined, bucketOf(place.store)].flatMap((bucket) => {
    const [unref, stay] = [true, false].map((flag) => JSON.stringify({ bucket, unref: flag }));
    return [ends(runtime, unref), stays(runtime, stay)];
  })));
}]];

const bucketOf = ({ endpoint, bucket, credentials }) => ({ endpoint, bucket, region: 'us-east-1', credentials });

async function ends({ users, name, command: [program, ...args], env, file = 'stay.mjs' }, json) {
  const { code, output, errors, late } = await runTool(program, [...args, file, json], { cwd: users, env: { ...cleanEnv(), ...env }, limitMs: ENDS_MS });
  if (code !== 0) throw new PlainError(`${name}: with unref the process ${late ? 'did not end' : `ended with ${code}`}: ${json}\n${output}${errors}`);
}

/** Fails if a process that has a started elector ends. */
async function stays({ users, name, command: [program, ...args], env, file = 'stay.mjs' }, json) {
  const child = spawnKept(program, [...args, file, json], { cwd: users, env: { ...cleanEnv(), ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('close', () => resolve('ended')));
  const started = new Promise((resolve) => child.stdout.once('data', () => resolve('started')));
  if ((await Promise.race([started, ended])) !== 'started') throw new PlainError(`${name}: the process ended before its elector had started`);
  let timer;
  const end = await Promise.race([ended, new Promise((resolve) => (timer = setTimeout(resolve, STAY_MS, 'stayed')))]);
  clearTimeout(timer);
  if (end !== 'stayed') throw new PlainError(`${name}: without unref the process ended by itself with ${child.exitCode}: ${json}`);
  await endProcess(child);
}

const provided = (place) => place.runtimes.map((runtime) => [`the AWS SDK's providers in ${runtime.name}`, async () => {
  const { accessKeyId, secretAccessKey } = place.store.credentials;
  const filepath = path.join(place.users, 'aws-profiles');
  fs.writeFileSync(filepath, `[jobs]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`);
  const { credentials, ...bucket } = bucketOf(place.store);
  const sdk = pathToFileURL(inRoot('node_modules/@aws-sdk/credential-providers/dist-cjs/index.js')).href;
  const env = { ...runtime.env, AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey };
  led(await inRuntime(place, { ...runtime, env }, 'providers.mjs', sdk, JSON.stringify({ ...bucket, profile: 'jobs', filepath })));
}]);
