import { setTimeout as sleep } from 'node:timers/promises';

const WORK_MS = 500;

/** The work of one slot. It stops when its authority ends, and takes its token to what it changes. */
export const writeReport = async ({ slot, token, signal }) => {
  const name = new Date(slot).toISOString();
  console.log(`${name} begins with token ${token}`);
  await sleep(WORK_MS, undefined, { signal });
  console.log(`${name} is written with token ${token}`);
};
