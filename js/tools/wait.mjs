import { PlainError, seconds } from './run.mjs';

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for a condition and gives what it found, or undefined where it found nothing within this time. */
export async function findWithin(limitMs, find, lookMs = 10) {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const found = find();
    if (found) return found;
    if (performance.now() >= endMs) return undefined;
    await pause(lookMs);
  }
}

/** The same, where it must be found; `broken` are sentences that may say why it is not. */
export async function mustFind(limitMs, find, what, { lookMs, broken = [] } = {}) {
  const found = await findWithin(limitMs, find, lookMs);
  if (found === undefined) throw new PlainError([`waited ${seconds(limitMs)} for ${what}`, ...broken].join('\n'));
  return found;
}
