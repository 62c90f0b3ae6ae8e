// What both runs stand on: how they are played, and how they write down what they see.
import fs from 'node:fs';
import path from 'node:path';
import { PlainError } from '../../js/tools/run.mjs';

/** A process that starts on a busy machine takes its time; nothing is measured meanwhile. */
export const START_LIMIT_MS = 60_000;

/** What is told goes into `file`, which is a new one, and into `entries`. */
export function openLog(file) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const log = fs.openSync(file, 'w');
  const entries = [];
  const tell = (entry) => {
    entries.push(entry);
    fs.writeSync(log, `${JSON.stringify(entry)}\n`);
  };
  return { entries, tell, close: () => fs.closeSync(log) };
}

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
