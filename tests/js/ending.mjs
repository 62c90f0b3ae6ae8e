// What a test file has to end with: what it started is closed, the newest first, and nothing was left unhandled.
import assert from 'node:assert/strict';
import { after } from 'node:test';

const closing = [];
const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
process.on('uncaughtException', (error) => unhandled.push(error));

after(async () => {
  for (const close of closing.reverse()) await close();
  assert.deepEqual(unhandled, [], 'no path leaves a rejection or an exception unhandled');
});

export const atEnd = (close) => void closing.push(close);

/** Waits for what is being started, and closes it at the end of the file. */
export const kept = async (starting) => {
  const started = await starting;
  atEnd(() => started.close());
  return started;
};
