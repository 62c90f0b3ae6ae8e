// The package as its users get it: packed, installed into an empty folder, and served by a registry of our own.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { keepPath, removePath, runBounded } from './cleanup.mjs';
import { inRoot } from './paths.mjs';
import { PlainError } from './run.mjs';

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

/** A folder for one command; it goes when the command ends. */
export function newFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-package-'));
  keepPath(folder);
  return { folder, remove: () => removePath(folder) };
}

/** Packs the package into a folder and gives the tarball's path. */
export async function pack(folder) {
  const output = await runWell('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: inRoot() });
  // A name for each package since npm 12, a list before.
  const [{ filename }] = Object.values(JSON.parse(output));
  return path.join(folder, filename);
}

/** Installs the tarball into a new empty folder, without any registry. */
export async function install(tarball, folder) {
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
export async function startRegistry(tarball) {
  const bytes = fs.readFileSync(tarball);
  const manifest = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  const { name, version } = manifest;
  const server = http.createServer((request, response) => {
    if (request.url === `/${name}.tgz`) return response.end(bytes);
    if (request.url !== `/${name}`) return response.writeHead(404).end('{}');
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const dist = { tarball: `http://${request.headers.host}/${name}.tgz`, integrity };
    const shown = { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } };
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(shown));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, version, close };
}
