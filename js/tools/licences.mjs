// Whether every crate and npm package may be used under a licence of these lists: a dependency that brings another one is named.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { build } from './build.mjs';
import { inRoot } from './paths.mjs';
import { PlainError } from './run.mjs';

/** What may be in a package of ours, or linked into a test: a notice is all that these ask for. */
const PERMISSIVE = [
  '0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BSL-1.0', 'CC0-1.0', 'CDLA-Permissive-2.0', 'ISC', 'MIT', 'Unicode-3.0', 'Unlicense', 'Zlib',
];
/** What a tool may have besides that runs here and goes into nothing of ours. */
const OF_TOOLS = ['BlueOak-1.0.0', 'CC-BY-3.0', 'LGPL-3.0-or-later', 'MPL-2.0', 'Python-2.0'];
const MANIFESTS = ['Cargo.toml', 'examples/native/Cargo.toml', 'examples/rust-worker/Cargo.toml', 'js/tools/bindgen/Cargo.toml'];

/** Refuses the first package with a licence that is on no list; counts them. */
export async function checkLicences() {
  const isAllowed = await loadJudge();
  const crates = MANIFESTS.flatMap(cratesOf);
  await build(['cli']);
  const bundled = bundledPackages();
  const packages = packagesOf(JSON.parse(fs.readFileSync(inRoot('package-lock.json'), 'utf8')));
  const lost = bundled.find((name) => !packages.some((one) => one.name === name));
  if (lost !== undefined) throw new PlainError(`js/dist contains ${lost}, which package-lock.json does not name`);
  const known = (list) => ({ licence }) => isAllowed(licence, list);
  const wrong = [
    ...crates.filter((one) => !known(PERMISSIVE)(one)),
    ...packages.filter((one) => !known(bundled.includes(one.name) ? PERMISSIVE : [...PERMISSIVE, ...OF_TOOLS])(one)),
  ];
  if (wrong.length > 0) {
    const lines = wrong.map(({ name, version, licence }) => `${name} ${version}: ${licence ?? 'no licence'}`);
    throw new PlainError(`licences that js/tools/licences.mjs does not allow:\n${[...new Set(lines)].join('\n')}`);
  }
  console.log(`${new Set(crates.map(({ name, version }) => `${name} ${version}`)).size} crates and ${packages.length} npm packages (${bundled.length} of them bundled) have licences of the lists`);
}

/** What says whether somebody may choose, of what an SPDX expression offers, licences of a list alone. */
export async function loadJudge() {
  // Loaded here: whoever lists the steps of a test has no packages yet.
  const { default: satisfies } = await import('spdx-satisfies');
  return (licence, list) => {
    if (licence === undefined || licence === null) return false;
    // Crates of before 2018 write a slash for OR; an exception only ever permits more.
    const expression = licence.replaceAll('/', ' OR ').replace(/ WITH [\w.-]+/g, '');
    try {
      return satisfies(expression, list);
    } catch {
      return false;
    }
  };
}

function cratesOf(manifest) {
  const args = ['metadata', '--locked', '--format-version', '1', '--manifest-path', inRoot(manifest)];
  const { packages } = JSON.parse(execFileSync('cargo', args, { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] }));
  // Those without a source are our own.
  return packages.filter(({ source }) => source !== null).map(({ name, version, license }) => ({ name, version, licence: license }));
}

/** The packages of a lock file, but for the folder itself. */
const packagesOf = ({ packages }) => Object.entries(packages).filter(([place]) => place !== '').map(([place, { version, license }]) =>
  ({ name: place.split('node_modules/').at(-1), version, licence: license }));

/** The packages whose text the build has put into the command line; it says so at the end of each file. */
const bundledPackages = () => ['main.js', 'demo-member.js'].flatMap((file) =>
  [...fs.readFileSync(inRoot('js/dist', file), 'utf8').matchAll(/^\/\*! Contains (\S+) /gm)].map(([, name]) => name));
