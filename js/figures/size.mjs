// What has to be uploaded and loaded, compressed as gzip -9 does it.
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from '../tools/build.mjs';
import { inRoot } from '../tools/paths.mjs';
import { BUDGETS } from '../tools/size.mjs';
import { withBundle } from '../tools/wrangler.mjs';
import { line } from './figure.mjs';

/** Measures what the build made; the limits are the same for a quick run. */
export async function measure() {
  await build(['npm', 'worker']);
  const compressed = (file) => gzipSync(fs.readFileSync(file), { level: 9 }).length;
  const npmWasm = compressed(inRoot('js/dist/edgelect_bg.wasm'));
  const workerWasm = compressed(inRoot('build/worker/edgelect_bg.wasm'));
  const bundle = await withBundle((_, files) => files.map((file) => ({ name: path.basename(file), bytes: compressed(file) })));
  const workerBundle = bundle.reduce((sum, { bytes }) => sum + bytes, 0);
  const row = (what, bytes, most, against, readme) => line({
    what, value: bytes, shown: kilobytes(bytes), most, limit: most === undefined ? '' : kilobytes(most), against, readme,
  });
  return {
    title: 'bytes after gzip -9',
    lines: [
      row('npm package, its wasm', npmWasm, BUDGETS.npm, '', true),
      row('Worker, its wasm', workerWasm, undefined, '', false),
      row('Worker, the whole bundle', workerBundle, BUDGETS.worker, "AWS SDK's S3 client alone 85.5 KB", true),
    ],
    notes: [`The bundle is what \`wrangler deploy\` uploads: ${bundle.map(({ name, bytes }) => `${name} ${kilobytes(bytes)}`).join(', ')}.`],
  };
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
