// What has to be uploaded and loaded, compressed as gzip -9 does it.
import path from 'node:path';
import { build } from '../tools/build.mjs';
import { inRoot } from '../tools/paths.mjs';
import { BUDGETS, gzipped, kilobytes } from '../tools/size.mjs';
import { withBundle } from '../tools/wrangler.mjs';
import { line } from './figure.mjs';

/** Measures what the build made; the limits are the same for a quick run. */
export async function measure() {
  await build(['npm', 'worker']);
  const npmWasm = gzipped(inRoot('js/dist/edgelect_bg.wasm'));
  const workerWasm = gzipped(inRoot('build/worker/edgelect_bg.wasm'));
  const bundle = await withBundle((_, files) => files.map((file) => ({ name: path.basename(file), bytes: gzipped(file) })));
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
