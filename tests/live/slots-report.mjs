// What a run of slots came to: one table for both policies, then what was broken with the lines of its slot.
import Table from 'cli-table3';
import { REQUEST_FAULTS } from './proxy.mjs';
import { FATES, MEMBERS } from './slots-plan.mjs';
import { seconds } from '../../js/tools/run.mjs';

/** Shorter runs may end before everything has happened. */
const COMPLETE_FROM = 100;
const MOST_VIOLATIONS = 10;
const MOST_LINES = 40;

export function reportSlots(outcomes, { slots, seed }) {
  console.log(tableOf(outcomes));
  const failures = failuresOf(outcomes, slots);
  for (const { rule, sentence, lines = [] } of failures.slice(0, MOST_VIOLATIONS)) console.error([`BROKEN ${rule}: ${sentence}`, ...lines].join('\n  '));
  if (failures.length > MOST_VIOLATIONS) console.error(`and ${failures.length - MOST_VIOLATIONS} more`);
  if (failures.length === 0) {
    console.log(`No violation: of ${slots} slots under each policy none was left out, none began twice at most once, none was lost at least once.`);
    return 0;
  }
  console.error(`Everything is in ${outcomes.map(({ file }) => file).join(' and ')}. The same draw again: npm run live -- --slots ${slots} --seed ${seed}`);
  return 1;
}

function tableOf(outcomes) {
  const table = new Table({ head: ['', ...outcomes.map(({ policy }) => policy)], style: { head: [], border: [] } });
  const columns = outcomes.map(({ tookMs, counts, happened, fired, repeated, violations }) => ({
    time: tookMs === undefined ? 'not to the end' : seconds(tookMs),
    triggers: counts.triggers, claims: counts.claims, 'of a slot again, by another session': counts.reruns,
    'jobs called': listed(counts.begun), 'of these refused by the token (zombies)': counts.refused,
    'killed (SIGKILL) at': moments(happened, 'kill'), 'stopped (SIGSTOP) at': moments(happened, 'stop'),
    'requests failed': listed(fired), "writes that a runtime's own fetch sent again": repeated, violations: violations.length,
  }));
  for (const what of Object.keys(columns[0])) table.push([what, ...columns.map((column) => String(column[what]))]);
  return table.toString();
}

const listed = (counts) => Object.entries(counts).map(([name, count]) => `${name}: ${count}`).join('\n');
const moments = (happened, kind) => FATES.filter((fate) => fate.kind === kind).map(({ at }) => `${at}: ${happened[`${kind} ${at}`] ?? 0}`).join(', ');

/** What of the outcomes fails the run: `[{ rule, sentence, lines }]`. */
export function failuresOf(outcomes, slots) {
  const failures = outcomes.flatMap(({ policy, error, broken, violations, entries }) => [
    ...violations.map(({ rule, slot, sentence }) => ({ rule, sentence: `${policy}: ${sentence}`, lines: around(entries, slot) })),
    ...broken.map((sentence) => ({ rule: 'member', sentence: `${policy}: ${sentence}` })),
    ...(error === undefined ? [] : [{ rule: 'end', sentence: `${policy}: ${error}` }]),
  ]);
  // What a run that was cut short did not come to is no news.
  if (slots < COMPLETE_FROM || outcomes.some(({ error }) => error !== undefined)) return failures;
  return [...failures, ...incomplete(outcomes).map((sentence) => ({ rule: 'complete', sentence }))];
}

/** What the policies together left out, so that nothing shows what it would have done. */
function incomplete(outcomes) {
  const sum = (countOf) => outcomes.reduce((all, outcome) => all + (countOf(outcome) ?? 0), 0);
  const missing = [
    ...Object.keys(REQUEST_FAULTS).map((kind) => [({ fired }) => fired[kind], `the fault "${kind}" never did its work`]),
    ...FATES.map(({ kind, at }) => [({ happened }) => happened[`${kind} ${at}`], `nobody met "${kind}" at "${at}"`]),
    ...MEMBERS.map((name) => [({ counts }) => counts.begun[name], `${name} never ran a slot`]),
    [({ counts }) => counts.refused, 'no zombie came to the endpoint, so nothing shows that it refuses them'],
    [({ counts }) => counts.reruns, 'no slot was run again'],
  ];
  return missing.filter(([countOf]) => sum(countOf) === 0).map(([_countOf, sentence]) => sentence);
}

/** What was written down of a slot, and what failed meanwhile. */
function around(entries, slot) {
  const isOf = (entry) => entry.event !== 'fault' && (entry.slot === slot || entry.runs?.some((run) => run.slot === slot));
  const [first, last] = [entries.findIndex(isOf), entries.findLastIndex(isOf)];
  const near = entries.filter((entry, index) => isOf(entry) || (entry.event === 'fault' && index >= first - 5 && index <= last));
  const lines = near.map((entry) => JSON.stringify(entry));
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), `(${lines.length - MOST_LINES} more)`];
}
