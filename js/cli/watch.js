// `edgelect watch`: a line for each change of a group.
import { setTimeout as sleep } from 'node:timers/promises';
import { commandOf } from './command.js';
import { LONGEST_TIMER_MS } from './run.js';
import { codeOf, isRefusal, jsonOf, look, visible } from './store.js';
import { name, optionsOf, timeOf } from './status.js';

const INTERVAL_MS = 5_000;
const SHORTEST_MS = 250;

export const watch = () => commandOf('watch').action(async (groups, { interval = INTERVAL_MS, json, ...flags }) => {
  try {
    const all = await Promise.all(optionsOf(groups, flags));
    await Promise.all(all.map((options) => follow(options, Math.max(interval, SHORTEST_MS), json ? objectOf : lineOf)));
  } catch (error) {
    process.exitCode = codeOf(error, 'watch');
  }
});

async function follow(options, intervalMs, textOf) {
  let told;
  for (let first = true; ; first = false) {
    const shown = await look(options).catch((error) => {
      // What is refused at first is wrong, and not one change of many.
      if (error.code === 'EDGELECT_CONFIG' || (first && isRefusal(error))) throw error;
      return { group: options.lockfilePath, state: 'unknown', error: visible(error.message) };
    });
    const { state, leaderId, term, lastSlot, paused, error } = shown;
    const key = JSON.stringify([state, leaderId, term, lastSlot, paused, error]);
    if (key !== told) process.stdout.write(`${textOf(shown)}\n`);
    told = key;
    await sleep(Math.min(intervalMs, LONGEST_TIMER_MS));
  }
}

const objectOf = (shown) => jsonOf({ at: new Date().toISOString(), ...shown });

function lineOf({ group, state, leaderId, since, term, lastSlot, why, error }) {
  const slot = lastSlot ? `; slot ${timeOf(lastSlot.slot)} ${name(lastSlot.outcome)}` : '';
  const what = state === 'led' ? `${name(leaderId)} leads since ${timeOf(since)}, term ${term}${why ? `; ${visible(why)}` : ''}` : (error ?? `nobody leads: ${visible(why)}`);
  return `${timeOf(Date.now())}  ${name(group)}  ${what}${slot}`;
}
