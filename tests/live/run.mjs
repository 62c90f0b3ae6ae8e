// What both runs stand on: how they are played.
import { createLogUpdate } from 'log-update';
import { PlainError } from '../../js/tools/run.mjs';

/** A process that starts on a busy machine takes its time; nothing is measured meanwhile. */
export const START_LIMIT_MS = 60_000;

/** Opens a run, plays it and closes it, whatever happens, and gives its outcome. */
export async function playThrough(run, plainEveryMs = 10_000) {
  // One line that is drawn again each second on a terminal, a new one now and then elsewhere.
  const drawn = process.stdout.isTTY ? createLogUpdate(process.stdout, { showCursor: true }) : undefined;
  const timer = setInterval(() => (drawn ?? console.log)(run.now()), drawn ? 1_000 : plainEveryMs);
  let error;
  try {
    await run.open();
    await run.play();
  } catch (caught) {
    if (!(caught instanceof PlainError)) throw caught;
    error = caught.message;
  } finally {
    clearInterval(timer);
    drawn?.clear();
    await run.close();
  }
  return run.outcome(error);
}
