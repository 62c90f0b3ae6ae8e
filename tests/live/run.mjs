// What both runs stand on: how they are played.
import { PlainError } from '../../js/tools/run.mjs';
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
