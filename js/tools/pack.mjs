// The package as its users get it: packed, installed into an empty folder, and served by a registry of our own.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { newFolder, removePath, runBounded } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { PlainError } from './run.mjs';
import { serve } from './serve.mjs';
import { QUIET_AND_OFFLINE, WRANGLER } from './wrangler.mjs';

/** The settings of the npm that runs us must not reach the one that we run. */
export const cleanEnv = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm|NODE_OPTIONS|EDGELECT|AWS)_?/i.test(name)));

/** Runs a command to its end, within a bound, and tells how it ended and what it wrote. */
export const runTool = (program, args, { cwd, env = cleanEnv(), limitMs = 120_000 } = {}) => runBounded(program, args, { cwd, env, limitMs });

/** As `runTool`, for a command that must end well; gives what it wrote to its output. */
export async function runWell(program, args, options) {
  const { code, output, errors, late } = await runTool(program, args, options);
  if (code === 0) return output;
  const shown = [path.basename(program), ...args].join(' ');
  throw new PlainError(`\`${shown}\` ${late ? 'took too long' : `ended with ${code}`}\n${output}${errors}`);
}

/** Packs the package, installs it into an empty folder and serves it; `work({ folder, users, tarball, registry })` finds it in
 * `users`, and Deno by the registry. All of it goes when the work ends. */
export async function withPacked(work) {
  const folder = newFolder('package');
  const tarball = await pack(folder);
  const registry = await startRegistry(tarball);
  try {
    const users = path.join(folder, 'users');
    await install(tarball, users);
    return await work({ folder, users, tarball, registry });
  } finally {
    await registry.close();
    removePath(folder);
  }
}

/** A folder beside the one that has the package, where nothing can be imported but what is put there. */
export function emptyFolder({ folder }, name) {
  const empty = path.join(folder, name);
  fs.mkdirSync(empty);
  return empty;
}

/** What Deno needs to take the package from the registry, and nothing from anywhere else. */
export const denoVariables = ({ folder, registry }) => ({
  NPM_CONFIG_REGISTRY: registry.url, DENO_DIR: path.join(folder, 'deno-dir'), NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1',
});

/** What `wrangler deploy` would upload of a Worker: bundles it and gives the folder. Without `main`, as its own wrangler.toml says. */
export async function uploadOf(cwd, { main, env = { HOME: cwd } }) {
  if (main !== undefined) {
    fs.writeFileSync(path.join(cwd, 'wrangler.toml'), `name = "tested"\nmain = "${main}"\ncompatibility_date = "2026-11-01"\n`);
  }
  await runWell(NODE_24, [WRANGLER, 'deploy', '--dry-run', '--outdir', 'uploaded'], { cwd, env: { ...cleanEnv(), ...QUIET_AND_OFFLINE, ...env } });
  const out = path.join(cwd, 'uploaded');
  importsWasm(out);
  return out;
}

async function pack(folder) {
  const output = await runWell('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: inRoot() });
  // A name for each package since npm 12, a list before.
  const [{ filename }] = Object.values(JSON.parse(output));
  return path.join(folder, filename);
}

/** Installs the tarball into a new empty folder, without any registry. */
async function install(tarball, folder) {
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const args = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--cache', path.join(folder, '../npm-cache'), tarball];
  await runWell('npm', args, { cwd: folder });
  const installed = fs.readdirSync(path.join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  if (installed.join() !== 'edgelect') throw new PlainError(`installing edgelect brought ${installed.join(', ')}`);
}

/** Fails where a bundle for workerd carries the bytes of the default entry: its script would be twice as large, and since
 * it may compile them only while it starts, older compatibility dates refuse it. */
export function importsWasm(folder) {
  const names = fs.readdirSync(folder);
  const base64 = names.filter((name) => name.endsWith('.js')).some((name) => fs.readFileSync(path.join(folder, name), 'utf8').includes('AGFzbQ'));
  if (base64 || !names.some((name) => name.endsWith('.wasm'))) throw new PlainError(`the bundle for workerd does not import the wasm: ${names.join(', ')}`);
}

/** A registry on loopback with this one package in it: `npm:edgelect` needs one. */
async function startRegistry(tarball) {
  const bytes = fs.readFileSync(tarball);
  const manifest = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  const { name, version } = manifest;
  const { url, close } = await serve((request, response) => {
    if (request.url === `/${name}.tgz`) return response.end(bytes);
    if (request.url !== `/${name}`) return response.writeHead(404).end('{}');
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const dist = { tarball: `http://${request.headers.host}/${name}.tgz`, integrity };
    const shown = { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } };
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(shown));
  });
  return { url: `${url}/`, version, close };
}
