// What has to be uploaded and loaded, compressed as gzip -9 does it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from '../tools/build.mjs';
import { keepPath, removePath } from '../tools/cleanup.mjs';
import { NODE_24, inRoot } from '../tools/paths.mjs';
import { run } from '../tools/run.mjs';
import { line } from './figure.mjs';

const BUDGETS = { npm: 85_000, worker: 110_000 };
const QUIET_AND_OFFLINE = {
  CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false', WRANGLER_SEND_ERROR_REPORTS: 'false', WRANGLER_HIDE_BANNER: 'true',
};

/** Measures what the build made; the limits are the same for a quick run. */
export async function measure() {
  await build(['npm', 'worker']);
  const compressed = (file) => gzipSync(fs.readFileSync(file), { level: 9 }).length;
  const npmWasm = compressed(inRoot('js/dist/edgelect_bg.wasm'));
  const workerWasm = compressed(inRoot('build/worker/edgelect_bg.wasm'));
  const bundle = await bundleFiles((files) => files.map((file) => ({ name: path.basename(file), bytes: compressed(file) })));
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

async function bundleFiles(look) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-bundle-'));
  keepPath(folder);
  try {
    const out = path.join(folder, 'out');
    await run('Bundling the Worker', NODE_24, [inRoot('node_modules/wrangler/bin/wrangler.js'), 'deploy', '--dry-run', '--outdir', out], {
      env: { ...process.env, ...QUIET_AND_OFFLINE, TMPDIR: folder, XDG_CONFIG_HOME: folder },
    });
    // Neither is uploaded.
    return look(fs.readdirSync(out).filter((name) => name !== 'README.md' && !name.endsWith('.map')).map((name) => path.join(out, name)));
  } finally {
    removePath(folder);
  }
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
