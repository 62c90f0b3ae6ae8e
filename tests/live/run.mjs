// What both runs stand on: how they are played, and how a Worker becomes a member.
import path from 'node:path';
import { build } from 'esbuild';
import { NODE_24, ROOT, inRoot } from '../../js/tools/paths.mjs';
import { PlainError } from '../../js/tools/run.mjs';
import { QUIET_AND_OFFLINE } from '../../js/tools/wrangler.mjs';
import { Progress } from './progress.mjs';

/** A process that starts on a busy machine takes its time; nothing is measured meanwhile. */
export const START_LIMIT_MS = 60_000;

/** Opens a run, plays it and closes it, whatever happens, and gives its outcome. */
export async function playThrough(run, progressMs) {
  const progress = new Progress(() => run.now(), progressMs);
  let error;
  try {
    progress.start();
    await run.open();
    await run.play();
  } catch (caught) {
    if (!(caught instanceof PlainError)) throw caught;
    error = caught.message;
  } finally {
    progress.end();
    await run.close();
  }
  return run.outcome(error);
}

/** A Worker, bundled as its users bundle it. */
export async function bundled(entry, folder) {
  const outdir = path.join(folder, 'worker');
  await build({
    absWorkingDir: ROOT, entryPoints: [entry], outdir, bundle: true, conditions: ['workerd'],
    loader: { '.wasm': 'copy' }, platform: 'neutral', format: 'esm', logLevel: 'warning',
  });
  return outdir;
}

/** A process that runs a bundled Worker in workerd; on Node 24, which Miniflare wants. */
export const inWorkerd = (script, bundle, folder) => ({
  command: NODE_24,
  args: [inRoot('tests/live', script), bundle],
  // One that is killed leaves its temporary files to us.
  env: { ...QUIET_AND_OFFLINE, HOME: folder, TMPDIR: folder, XDG_CONFIG_HOME: folder },
});
