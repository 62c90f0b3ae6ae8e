// The Worker as `wrangler deploy` would upload it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { keepPath, removePath } from '../tools/cleanup.mjs';
import { NODE_24, inRoot } from '../tools/paths.mjs';
import { run } from '../tools/run.mjs';

const QUIET_AND_OFFLINE = {
  CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false', WRANGLER_SEND_ERROR_REPORTS: 'false', WRANGLER_HIDE_BANNER: 'true',
};

/** Bundles the Worker, and hands the folder and its files to the work; they are gone afterwards. */
export async function withBundle(work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'edgelect-bundle-'));
  keepPath(folder);
  try {
    const out = path.join(folder, 'out');
    await run('Bundling the Worker', NODE_24, [inRoot('node_modules/wrangler/bin/wrangler.js'), 'deploy', '--dry-run', '--outdir', out], {
      env: { ...process.env, ...QUIET_AND_OFFLINE, TMPDIR: folder, XDG_CONFIG_HOME: folder },
    });
    // Neither is uploaded.
    const files = fs.readdirSync(out).filter((name) => name !== 'README.md' && !name.endsWith('.map'));
    return await work(out, files.map((name) => path.join(out, name)));
  } finally {
    removePath(folder);
  }
}
