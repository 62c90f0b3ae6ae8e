// What a live run came to: figures, then what was broken with the entries that show it.
import { FAULTS } from './proxy.mjs';

/** Shorter runs may end before each runtime's turn, or before each fault's. */
export const COMPLETE_FROM_S = 60;
const KINDS = { ...FAULTS, kill: 'leaders killed, and who made room (SIGKILL)', stop: 'leaders stopped and continued (SIGSTOP, SIGCONT)' };

export function report(outcome) {
  const failures = failuresOf(outcome);
  if (outcome.healedMs !== undefined) for (const [what, value] of figures(outcome)) console.log(`${what.padEnd(64)}${value}`);
  for (const { sentence, entries = [] } of failures) console.error([`BROKEN: ${sentence}`, ...entries.map((entry) => JSON.stringify(entry))].join('\n  '));
  if (failures.length === 0) {
    console.log('No violation: acts in the order of their tokens, one session for each, and never two with authority.');
    return 0;
  }
  const { story, stderr, log, seconds, seed } = outcome;
  console.error(['What the members said:', ...story, 'Their stderr:', ...stderr].join('\n  '));
  console.error(`All acts are in ${log}. The same plan again: npm run live -- --seconds ${seconds} --seed ${seed}`);
  return 1;
}

function figures({ config, terms, accepted, refused, zombies, failovers, longestGapMs, nearestMs, violations, ...run }) {
  const { seconds, seed, runtimes, fired, repeated, healedMs, healLimitMs } = run;
  return [
    ['seconds, seed', `${seconds}, ${seed}`],
    ['lease, margin, request timeout', `${config.leaderTimeout}, ${config.margin}, ${config.requestTimeout} ms`],
    ['acts accepted', accepted],
    ['acts refused, of these by zombies (authority at the look)', `${refused}, ${zombies}`],
    ['terms, failovers', `${terms.length}, ${failovers}`],
    ['terms on each runtime', runtimes.map((one) => `${one.runtime}: ${one.terms}`).join(', ')],
    ...Object.entries(KINDS).map(([kind, what]) => [`${kind}: ${what}`, fired[kind]]),
    ["writes that a runtime's own fetch sent again", repeated],
    ['longest time without an accepted act', `${longestGapMs} ms`],
    ['least time between the authority of two sessions', `${nearestMs} ms`],
    ['first act after the last fault, limit', `${healedMs} ms, ${healLimitMs} ms`],
    ['violations', violations.length],
  ];
}

/** What of an outcome fails the run: `[{ sentence, entries }]`. */
export function failuresOf({ error, violations, broken, leaked, healedMs, healLimitMs, seconds, fired, runtimes, zombies }) {
  const failures = [...violations, ...broken.map((sentence) => ({ sentence }))];
  const add = (holds, sentence) => holds || failures.push({ sentence });
  add(error === undefined, error);
  add(!leaked, 'a secret or a signature is in the log');
  // What a run that was cut short did not come to is no news.
  if (error !== undefined) return failures;
  const when = healedMs === undefined ? 'nor in twice that time' : `${healedMs} ms`;
  add(healedMs <= healLimitMs, `nobody acted within ${healLimitMs} ms after the last fault: ${when}`);
  if (seconds < COMPLETE_FROM_S) return failures;
  for (const kind of Object.keys(KINDS)) add(fired[kind] > 0, `the fault "${kind}" never did its work`);
  for (const one of runtimes) add(one.terms > 0, `${one.runtime} never led`);
  add(zombies > 0, 'no zombie came to the resource, so nothing shows that it refuses them');
  return failures;
}
