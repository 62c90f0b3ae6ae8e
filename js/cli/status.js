// `edgelect status`: who leads, and why nobody does.
import { EXIT, commandOf } from './command.js';
import { codeOf, electorOptions, jsonOf, look, visible } from './store.js';
import { tableOf } from './table.js';

const LATE_MS = 60_000;
const HEAD = ['GROUP', 'LEADER', 'SINCE', 'TERM', 'LEFT', 'LAST-SLOT'];
const LONGEST_NAME = 60;

export const status = () => commandOf('status').action(async (groups, flags) => {
  process.exitCode = EXIT.failed;
  process.exitCode = await show(groups, flags);
});

async function show(groups, { period, late = LATE_MS, json, ...flags }) {
  let looks;
  try {
    if (period === 0) throw Object.assign(new Error('--period = 0: it is the time between two slots, such as 1h'), { code: 'EDGELECT_CONFIG' });
    const all = await Promise.all(optionsOf(groups, flags));
    looks = await Promise.all(all.map((options) => look(options, period && { periodMs: period, lateMs: late })));
  } catch (error) {
    return codeOf(error, 'status');
  }
  const code = Math.max(...looks.map(verdict));
  // Before the last words: a reader that goes away must not hide it.
  process.exitCode = code;
  const text = json ? looks.map((one) => jsonOf(one)).join('\n') : page(looks, process.stdout.columns);
  process.stdout.write(`${text}\n`);
  return code;
}

/** The options of an elector for each group. */
export const optionsOf = (groups, flags) =>
  (groups.length > 0 ? groups : [flags.lockfilePath]).map((lockfilePath) => electorOptions({ ...flags, lockfilePath }));

function verdict({ state, slotOverdue }) {
  if (slotOverdue) return EXIT.overdue;
  return state === 'led' || slotOverdue === false ? EXIT.done : EXIT.nobody;
}

/** The table, or where it does not fit a list for each group; then why nobody leads, and the last terms. */
function page(looks, columns = Infinity) {
  const rows = looks.map((one) => [
    name(one.group), one.state === 'led' ? name(one.leaderId) : '-', one.since ? timeOf(one.since) : '-', String(one.term ?? '-'),
    one.leftMs === null ? '-' : `${Math.ceil(one.leftMs / 1_000)}s`, one.lastSlot ? `${timeOf(one.lastSlot.slot)} ${name(one.lastSlot.outcome)}` : '-',
  ]);
  return [tableOf(HEAD, rows, columns), ...looks.flatMap(notes)].join('\n');
}

function notes({ group, state, why, slotOverdue, lastSlot, history }) {
  const terms = history.filter((past) => past.term).reverse().map(({ term, by, from, to, how }) =>
    `  ${term}  ${name(by)}  ${timeOf(from)} to ${timeOf(to)}  ${name(how)}`);
  return [
    ...(why ? [`${name(group)}: ${state === 'led' ? '' : 'nobody leads: '}${visible(why)}`] : []),
    ...(slotOverdue ? [`${name(group)}: the next slot is overdue; ${lastSlot ? `the last one was that of ${timeOf(lastSlot.slot)}` : 'none has run'}`] : []),
    ...(terms.length > 0 ? [`${name(group)}: terms before:`, ...terms] : []),
  ];
}

/** A name out of a record, which anybody may have written. */
export const name = (text) => visible(text, LONGEST_NAME);

/** A time to the second, in UTC. */
export const timeOf = (ms) => (Math.abs(ms ?? NaN) <= 8.64e15 ? new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z') : '?');
