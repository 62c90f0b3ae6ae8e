// What the builds may weigh, and whether they do.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { keepPath, removePath } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { PlainError, run } from './run.mjs';
import { QUIET_AND_OFFLINE, WRANGLER } from './wrangler.mjs';

/** Bytes after gzip -9. The Worker's holds for everything that is uploaded: wasm and JavaScript together. */
export const BUDGETS = { npm: 85_000, worker: 110_000 };

const gzipped = (file) => gzipSync(fs.readFileSync(file), { level: 9 }).length;
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;

/** A file's size, and its size after gzip -9 beside the budget that it counts to. */
export const sizeLine = (name, file) =>
  `${path.relative(inRoot(), file)}: ${kilobytes(fs.statSync(file).size)}, gzip -9 ${kilobytes(gzipped(file))} of ${kilobytes(BUDGETS[name])}`;

/** Weighs the npm package's wasm and the Worker's whole upload; throws if one exceeds its budget. */
export async function checkSizes() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-size-'));
  keepPath(folder);
  try {
    const bundle = path.join(folder, 'bundle');
    await run('Bundling the Worker', NODE_24, [WRANGLER, 'deploy', '--dry-run', '--outdir', bundle],
      { env: { ...process.env, ...QUIET_AND_OFFLINE, TMPDIR: folder, XDG_CONFIG_HOME: folder } });
    judge('npm', [inRoot('js/dist/edgelect_bg.wasm')]);
    // Beside what is uploaded, wrangler writes a map of the sources and a word about itself.
    const uploaded = fs.readdirSync(bundle).filter((name) => !/(\.map|^README\.md)$/.test(name));
    judge('worker', uploaded.map((name) => path.join(bundle, name)));
  } finally {
    removePath(folder);
  }
}

function judge(name, files) {
  const kinds = files.map((file) => path.extname(file).slice(1));
  if (!kinds.includes('wasm')) throw new PlainError(`there is no wasm among the files of ${name}`);
  const sizes = files.map(gzipped);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const parts = sizes.map((size, index) => `${kinds[index]} ${kilobytes(size)}`).join(', ');
  console.log(`${name}: gzip -9 ${total} of ${BUDGETS[name]} bytes (${parts})`);
  if (total <= BUDGETS[name]) return;
  throw new PlainError(`${name} exceeds its budget by ${total - BUDGETS[name]} bytes; see what grew with \`twiggy top\` on the wasm `
    + 'before wasm-opt, or raise BUDGETS in js/tools/size.mjs with a reason');
}
