// How a Worker becomes a process: bundled as its users bundle it, run by Miniflare.
import path from 'node:path';
import { build } from 'esbuild';
import { NODE_24, ROOT } from './paths.mjs';
import { QUIET_AND_OFFLINE } from './wrangler.mjs';

/** Bundles a Worker; gives the folder of its modules. */
export async function bundled(entry, folder) {
  const outdir = path.join(folder, 'worker');
  await build({
    absWorkingDir: ROOT, entryPoints: [entry], outdir, bundle: true, conditions: ['workerd'],
    loader: { '.wasm': 'copy' }, platform: 'neutral', format: 'esm', logLevel: 'warning',
  });
  return outdir;
}

/** A process that runs a bundled Worker in workerd by this script; on Node 24, which Miniflare wants. */
export const inWorkerd = (script, bundle, folder) => ({
  command: NODE_24,
  args: [script, bundle],
  // One that is killed leaves its temporary files to us.
  env: { ...QUIET_AND_OFFLINE, HOME: folder, TMPDIR: folder, XDG_CONFIG_HOME: folder },
});
