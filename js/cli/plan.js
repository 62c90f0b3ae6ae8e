// `edgelect plan`: what a group does and costs, before there is one.
import { EXIT, commandOf } from './command.js';
import prices from './prices.json';
import { codeOf } from './store.js';
import { tableOf } from './table.js';

const MONTH_MS = 30 * 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const MILLION = 1e6;
/** Followers claim in turns within this time. */
const TURNS_MS = 500;
/** `Date` and `Last-Modified` have whole seconds. */
const SECONDS_MS = 2_000;
const HEAD = ['FOLLOW', 'CRASH', 'RELEASE', 'WRITES', 'READS', 'DOLLARS'];

export const plan = () => commandOf('plan').action(async (flags) => {
  process.exitCode = await calculate(flags);
});

async function calculate({ lease, members = 3, store = 's3', crons = 0, period = HOUR_MS, json }) {
  const { Elector, MemoryStorage } = await import('edgelect');
  let rows;
  try {
    if (members < 1 || period === 0) throw Object.assign(new Error(`--${members < 1 ? 'members' : 'period'} = 0: must be more`), { code: 'EDGELECT_CONFIG' });
    rows = ['tight', 'balanced', 'frugal'].map((follow) => {
      const { config } = new Elector({ storage: new MemoryStorage(), lockfilePath: 'plan', leaderTimeout: lease, follow });
      return rowOf(config, { follow, members, store, slots: (crons * MONTH_MS) / period });
    });
  } catch (error) {
    return codeOf(error, 'plan');
  }
  const { date, place } = prices;
  if (json) console.log(JSON.stringify({ store, members, crons, date, place, rows }));
  else console.log(`${tableOf(HEAD, rows.map(cellsOf), process.stdout.columns)}\n\nRequests and US dollars of a month, prices of ${date}, ${place}.`);
  return EXIT.done;
}

function rowOf({ leaderTimeout, frequentInterval, infrequentInterval, storeSkew }, { follow, members, store, slots }) {
  const everyMs = { tight: frequentInterval, balanced: leaderTimeout, frugal: infrequentInterval }[follow];
  const crashMs = leaderTimeout + { tight: TURNS_MS, balanced: storeSkew + SECONDS_MS + TURNS_MS, frugal: infrequentInterval + 2 * TURNS_MS }[follow];
  const writes = Math.round(MONTH_MS / frequentInterval + 2 * slots);
  const reads = Math.round(((members - 1) * MONTH_MS) / everyMs + members * slots);
  const { write, read, freeWrites = 0, freeReads = 0 } = prices.perMillion[store];
  const paid = (count, free, price) => (Math.max(count - free, 0) * price) / MILLION;
  const dollars = paid(writes, freeWrites, write) + paid(reads, freeReads, read);
  return { follow, crashMs, releaseMs: everyMs + TURNS_MS, writes, reads, dollars: Math.round(dollars * 100) / 100 };
}

const cellsOf = ({ follow, crashMs, releaseMs, writes, reads, dollars }) =>
  [follow, `${crashMs / 1_000}s`, `${releaseMs / 1_000}s`, writes.toLocaleString('en'), reads.toLocaleString('en'), dollars.toFixed(2)];
