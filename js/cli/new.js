// `edgelect new`: writes a starter project with the user's own values, which runs at once.
import fs from 'node:fs';
import path from 'node:path';
import { Option } from 'commander';
import { PlainCommand } from './command.js';
import { periodOf, readCron } from './cron.js';
import { Refusal, ask, completed, readChecker, valueOptions } from './values.js';

// Both this file and the bundle that it goes into stand as deep in the package.
const TEMPLATES = new URL('../cli/new/', import.meta.url);
const PACKAGE = new URL('../../package.json', import.meta.url);
/** A Worker's name is a part of a host name. */
const LONGEST_NAME = 63;
const MINUTE_MS = 60_000;

/** A program that runs on many machines. */
const onMachines = ({ manifest, install, start, ...more }) => ({
  values: ['bucket', 'endpoint', 'region', 'lockfilePath', 'serverId', 'cron'], dialect: 'crontab', install, start, ...more,
  files: {
    ...manifest, 'report.mjs': 'report.mjs', 'main.mjs': 'main.mjs', 'README.md': 'README.md', '.env.example': 'env.example', '.gitignore': 'gitignore',
  },
  before: 'Next, with your two keys put into .env in between; README.md has the rest:',
  next: (folder) => [`cd ${folder} && ${install} && cp .env.example .env`, start],
});
/** With `--always`: in place of what cron starts, what keeps running. */
const ALWAYS = { 'main.mjs': 'always.mjs', 'README.md': 'always.md' };
/** Each kind: the values that it has, its files with the template of each, and the two lines that come next. */
const KINDS = {
  worker: {
    title: 'a Cloudflare Worker', what: 'its cron does the work once for each scheduled time, over an R2 bucket',
    example: "reports --bucket jobs --cron '0 3 * * MON-FRI'",
    values: ['bucket', 'lockfilePath', 'serverId', 'cron'], dialect: 'cloudflare',
    files: {
      'package.json': 'worker/package.json', 'wrangler.toml': 'worker/wrangler.toml', 'src/index.js': 'worker/index.js', 'src/report.mjs': 'report.mjs',
      'README.md': 'worker/README.md', '.gitignore': 'gitignore',
    },
    before: 'Next, and README.md says how to fire its cron:',
    next: (folder) => [`cd ${folder} && npm install`, 'npm run dev'],
  },
  node: onMachines({
    title: 'a program for Node', what: 'cron starts it on many machines, and one does the work',
    example: "reports --bucket jobs --endpoint https://ACCOUNT.r2.cloudflarestorage.com --cron '*/5 * * * *'",
    manifest: { 'package.json': 'node/package.json' }, install: 'npm install', run: 'npm run', start: 'npm start',
  }),
  deno: onMachines({
    title: 'a program for Deno', what: 'the same, with the narrowest permissions',
    example: 'mailer --bucket jobs --region eu-central-1 --always',
    manifest: { 'deno.json': 'deno/deno.json' }, install: 'deno install', run: 'deno task', start: 'deno task start',
  }),
};

export const starter = () => {
  const command = new PlainCommand('new').description('write a starter project that runs at once');
  for (const kind of Object.keys(KINDS)) command.addCommand(commandOf(kind));
  return command.addHelpText('after', `
Each starter is a few short files with your own values in them: the work, which
you replace, what lets only one do it, and a README with three steps. Nothing is
ever overwritten.

Example:
  npx edgelect new node reports   asks for the bucket, the cron and the rest
  npx edgelect new worker reports --bucket jobs --cron '0 3 * * MON-FRI'

edgelect new KIND --help says more about one kind.`);
};

function commandOf(kind) {
  const { title, what, values, example } = KINDS[kind];
  const command = new PlainCommand(kind).summary(`${title}: ${what}`).description(`Writes ${title} into a new folder: ${what}.`)
    .argument('<dir>', kind === 'worker' ? "the new folder; its name is the Worker's" : 'the new folder');
  for (const option of valueOptions({ kind, values })) command.option(...option);
  if (kind !== 'worker') command.addOption(new Option('--always', 'a program that keeps running: one leads, and another takes over when it dies').conflicts('cron'));
  return command.addHelpText('after', `
What is left out is asked on a terminal, and Enter takes the default. Elsewhere
the default is taken. No secret is asked for, and none is written.

Exit code: 0 it is written; 2 a value is wrong, or DIR has files in it; 130 you
interrupted it. With 2 and 130 nothing is written.

Example:
  npx edgelect new ${kind} ${example}`)
    .action(async (dir, flags) => {
      process.exitCode = await make(kind, dir, flags);
    });
}

/** Resolves to the exit code. */
async function make(kind, dir, { always = false, ...given }) {
  try {
    const { values, dialect } = KINDS[kind];
    const place = { kind, name: nameFor(kind, dir), dialect, values: values.filter((value) => !(always && value === 'cron')) };
    refuseFiles(dir);
    const check = await readChecker(place);
    const wrong = check(given);
    if (wrong) throw new Refusal(wrong);
    const answers = process.stdin.isTTY && process.stdout.isTTY ? await ask(place, given, check) : given;
    write(dir, kind, always, completed(place, answers));
    return 0;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(`edgelect: ${error.message}`);
    return error.exitCode;
  }
}

/** The name that the folder gives the project. */
function nameFor(kind, dir) {
  const own = path.basename(path.resolve(dir));
  const plain = own.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, LONGEST_NAME).replace(/^-|-$/g, '') || 'starter';
  if (kind === 'worker' && plain !== own) {
    throw new Refusal(`DIR ${JSON.stringify(own)} names the Worker, and such a name has at most ${LONGEST_NAME} lower-case letters, digits and dashes: take ${JSON.stringify(plain)}, say`);
  }
  return plain;
}

/** A folder that `git init` has just made is as good as an empty one. */
function refuseFiles(dir) {
  const found = fs.statSync(dir, { throwIfNoEntry: false });
  if (found && !found.isDirectory()) throw new Refusal(`DIR ${JSON.stringify(dir)} is a file: name a new folder`);
  const [file] = found ? fs.readdirSync(dir).filter((name) => name !== '.git') : [];
  if (file) throw new Refusal(`DIR ${JSON.stringify(dir)} has ${JSON.stringify(file)} in it, and nothing is overwritten: name a new folder, or an empty one`);
}

function write(dir, kind, always, values) {
  const { files, title, before, next } = KINDS[kind];
  const texts = textsFor(kind, values);
  const written = Object.entries({ ...files, ...(always ? ALWAYS : {}) }).map(([file, template]) => [file, filled(template, texts)]);
  for (const [file, text] of written) {
    const target = path.join(dir, file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, text, { flag: 'wx' });
  }
  console.log(`Wrote ${title} into ${dir}: ${written.map(([file]) => file).join(', ')}`);
  console.log(before);
  for (const line of next(shellWord(dir))) console.log(`  ${line}`);
}

/** The text of a template. In one pass, so that nothing is replaced inside a value. */
function filled(template, texts) {
  return fs.readFileSync(new URL(template, TEMPLATES), 'utf8').replace(/__([A-Z_]+)__/g, (_all, name) => {
    if (texts[name] === undefined) throw new Error(`nothing is known to stand for __${name}__ in ${template}`);
    return texts[name];
  });
}

/** What stands for each `__NAME__` of a template. No value has a character that its place would have to escape: `readChecker`. */
function textsFor(kind, values) {
  const { install, run, start, dialect } = KINDS[kind];
  const { version, engines, devDependencies } = JSON.parse(fs.readFileSync(PACKAGE, 'utf8'));
  const shared = {
    NAME: values.name, BUCKET: values.bucket, ENDPOINT: values.endpoint, REGION: values.region, LOCKFILE: values.lockfilePath, SERVER_ID: values.serverId,
    HOST: hostOf(values), VERSION: version, ENGINES: engines.node, WRANGLER: devDependencies.wrangler, INSTALL: install, RUN: run, START: start,
  };
  if (values.cron === undefined) return shared;
  const cron = readCron(values.cron, dialect);
  return { ...shared, CRON: cron.text, CRON_QUERY: encodeURIComponent(cron.text), PERIOD_MINUTES: String(periodOf(cron) / MINUTE_MS) };
}

/** The one host that the store's requests go to: on AWS the bucket is in its name. */
function hostOf({ endpoint, bucket, region }) {
  if (endpoint === undefined) return undefined;
  const inHost = bucket.includes('.') ? '' : `${bucket}.`;
  if (endpoint === '') return `${inHost}s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
  const { host, hostname } = new URL(endpoint);
  return /^s3[\w.-]*\.amazonaws\.com(\.cn)?$/.test(hostname) ? `${inHost}${host}` : host;
}

function shellWord(text) {
  return /^[\w./@:+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
