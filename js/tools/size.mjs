// What the builds may weigh, and whether they do.
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { inRoot } from './paths.mjs';
import { PlainError } from './run.mjs';
import { withBundle } from './wrangler.mjs';

/** Bytes after gzip -9. The Worker's holds for everything that is uploaded: wasm and JavaScript together. They are there to
 * show a jump, not to leave a library out or a sentence that helps: the free plan takes 3 MB. */
export const BUDGETS = { npm: 400_000, worker: 400_000 };

export const gzipped = (file) => gzipSync(fs.readFileSync(file), { level: 9 }).length;
export const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;

/** A file's size, and its size after gzip -9 beside the budget that it counts to, if there is one. */
export const sizeLine = (name, file) => {
  const budget = name in BUDGETS ? ` of ${kilobytes(BUDGETS[name])}` : '';
  return `${path.relative(inRoot(), file)}: ${kilobytes(fs.statSync(file).size)}, gzip -9 ${kilobytes(gzipped(file))}${budget}`;
};

/** Weighs the npm package's wasms and the Worker's whole upload; throws if one exceeds its budget. */
export async function checkSizes() {
  judge('npm', [inRoot('js/dist/edgelect_bg.wasm')]);
  await withBundle((_, files) => judge('worker', files));
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
