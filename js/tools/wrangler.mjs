import fs from 'node:fs';
import path from 'node:path';
import { newFolder, removePath } from './cleanup.mjs';
import { NODE_24, inRoot } from './paths.mjs';
import { run } from './run.mjs';

/** Wrangler's own program; it wants Node 24. */
export const WRANGLER = inRoot('node_modules/wrangler/bin/wrangler.js');

/** What keeps it from asking, reporting and calling home. */
export const QUIET_AND_OFFLINE = {
  CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false', WRANGLER_SEND_ERROR_REPORTS: 'false', WRANGLER_HIDE_BANNER: 'true',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
};

/** Bundles the Worker as `wrangler deploy` would upload it, and hands the folder and its files to the work; they are gone
 * afterwards. */
export async function withBundle(work) {
  const folder = newFolder('bundle');
  try {
    const out = path.join(folder, 'out');
    await run('Bundling the Worker', NODE_24, [WRANGLER, 'deploy', '--dry-run', '--outdir', out],
      { env: { ...process.env, ...QUIET_AND_OFFLINE, TMPDIR: folder, XDG_CONFIG_HOME: folder } });
    // Beside what is uploaded, wrangler writes a map of the sources and a word about itself.
    const files = fs.readdirSync(out).filter((name) => !/(\.map|^README\.md)$/.test(name));
    return await work(out, files.map((name) => path.join(out, name)));
  } finally {
    removePath(folder);
  }
}
