// What both runs stand on: how they are played.
import { PlainError } from '../../js/tools/run.mjs';

/** A process that starts on a busy machine takes its time; nothing is measured meanwhile. */
export const START_LIMIT_MS = 60_000;

export async function playThrough(run, everyMs = 10_000) {
  const timer = setInterval(() => console.log(run.now()), everyMs);
  let error;
  try {
    await run.open();
    await run.play();
  } catch (caught) {
    if (!(caught instanceof PlainError)) throw caught;
    error = caught.message;
  } finally {
    clearInterval(timer);
    await run.close();
  }
  return run.outcome(error);
}
