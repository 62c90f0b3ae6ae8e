// What a cron's five fields say, for crontab and for Cloudflare, whose week begins with another number.
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const COMMON = [
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of the month', from: 1, to: 31 },
  { name: 'month', from: 1, to: 12, names: MONTHS },
];
const WEEK = { crontab: { name: 'day of the week', from: 0, to: 7, names: DAYS }, cloudflare: { name: 'day of the week', from: 1, to: 7, names: DAYS } };
/** What only Cloudflare knows: `LW`, `15W` and `L` for days of the month, `friL` and `MON#2` for those of the week. */
const SPECIAL = {
  'day of the month': /^(LW?|([1-9]|[12]\d|3[01])W)$/i,
  'day of the week': new RegExp(`^([1-7]|${DAYS.join('|')})(L|#[1-5])$`, 'i'),
};
const MINUTE_MS = 60_000;
/** Offsets of time zones are multiples of this. */
const ZONE_STEP_MINUTES = 15;

/** Reads a cron for `crontab` or `cloudflare`: its text with one blank between fields, and the minutes at which it fires.
 * @throws Error that says what is wrong with it. */
export function readCron(text, dialect) {
  const fields = text.split(/\s+/).filter(Boolean);
  const kinds = [...COMMON, WEEK[dialect]];
  if (fields.length !== kinds.length) {
    throw new Error(`has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, and a cron has five: minute, hour, day of the month, month, day of the week`);
  }
  const [minutes] = fields.map((field, index) => valuesOf(field, kinds[index], dialect));
  return { text: fields.join(' '), minutes };
}

/** The longest time of which all firings are multiples, in milliseconds, in whatever time zone the cron is read. */
export function periodOf({ minutes }) {
  return minutes.reduce(commonDivisor, ZONE_STEP_MINUTES) * MINUTE_MS;
}

function valuesOf(field, kind, dialect) {
  const { name, from, to, names = [] } = kind;
  const refuse = (part) => new Error(`names "${part}" as the ${name}, which is * or ${from} to ${to}${names.length > 0 ? ` or ${names[0]} to ${names.at(-1)}` : ''}, as in 1-5, */10 or 1,15`);
  const numberOf = (text, part) => {
    const named = names.indexOf(text.toUpperCase());
    const number = named >= 0 ? named + from : Number(text);
    if (named < 0 && !(/^\d+$/.test(text) && number >= from && number <= to)) throw refuse(part);
    return number;
  };
  return field.split(',').flatMap((part) => {
    if (dialect === 'cloudflare' && SPECIAL[name]?.test(part)) return [];
    const [, range, step = '1'] = /^([^/]+)(?:\/([1-9]\d?))?$/.exec(part) ?? [];
    const ends = range?.split('-') ?? [];
    if (ends.length === 0 || ends.length > 2 || (range !== '*' && ends.length === 1 && part !== range)) throw refuse(part);
    const [first, last = first] = range === '*' ? [from, to] : ends.map((end) => numberOf(end, part));
    if (first > last) throw refuse(part);
    return Array.from({ length: Math.floor((last - first) / Number(step)) + 1 }, (_value, index) => first + index * Number(step));
  });
}

function commonDivisor(a, b) {
  return b === 0 ? a : commonDivisor(b, a % b);
}
