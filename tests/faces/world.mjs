// The simulator's world, and the package in the state in which it is judged.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { inRoot } from '../../js/tools/paths.mjs';

const FOLDER = inRoot('build/faces');

/** Gives a function that makes a world. */
export const loadWorld = async () => {
  const { Faces, initSync } = await import(pathToFileURL(path.join(FOLDER, 'faces.js')));
  initSync({ module: fs.readFileSync(path.join(FOLDER, 'faces_bg.wasm')) });
  return (...how) => new Faces(...how);
};

const withResolvers = () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

/** The Worker's entry. Its runtime has what Node 20 has not, and imports a wasm. */
export const loadWorker = async () => {
  globalThis.addEventListener ??= () => {};
  Promise.withResolvers ??= withResolvers;
  const entry = inRoot('js/worker.js');
  const wasm = JSON.stringify(inRoot('build/worker/edgelect_bg.wasm'));
  const imported = "import module from '../build/worker/edgelect_bg.wasm';";
  const text = fs.readFileSync(entry, 'utf8');
  if (!text.includes(imported)) throw new Error(`js/worker.js does not have this: ${imported}`);
  const read = `import { readFileSync } from 'node:fs';\nconst module = new WebAssembly.Module(readFileSync(${wasm}));`;
  const place = path.join(FOLDER, 'entry', 'worker.mjs');
  fs.mkdirSync(path.dirname(place), { recursive: true });
  // Several processes write the same, and one may read it meanwhile.
  const own = `${place}-${process.pid}`;
  fs.writeFileSync(own, text.replace(imported, () => read).replace('../build/', '../../'));
  fs.renameSync(own, place);
  const [{ default: worker }, { __wbg_reset_state: reset }] = [await import(pathToFileURL(place)), await import(pathToFileURL(inRoot('build/worker/edgelect.js')))];
  return { ...worker, reset };
};

/** The package's modules; `mutant` changes one of its files in a copy, or has a copy of its own. */
export const loadPackage = async (mutant) => {
  const folder = mutant?.folder ?? (mutant ? mutated(mutant) : inRoot('js'));
  const load = (file) => import(pathToFileURL(path.join(folder, file)));
  const [{ Elector, Electors, R2Storage, S3Storage, Shards }, { ownWasm }] = [await load('entry/default.js'), await load('engine.js')];
  const { memory } = (await load('dist/edgelect.js')).initSync();
  return { Elector, Electors, R2Storage, S3Storage, Shards, ownWasm, memory };
};

/** A copy of the package that may be changed. */
export const changedCopy = (name) => {
  const folder = inRoot('build/faces/mutants', name);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(inRoot('js'), folder, { recursive: true, filter: (source) => !/[\\/](tools|cli|demo|figures)$/.test(source) });
  return folder;
};

const mutated = ({ name, file, from, to }) => {
  const folder = changedCopy(name);
  const place = path.join(folder, file);
  const text = fs.readFileSync(place, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`mutant ${name}: ${file} does not have this once: ${from}`);
  fs.writeFileSync(place, text.replace(from, () => to));
  return folder;
};
