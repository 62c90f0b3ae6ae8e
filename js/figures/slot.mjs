// The CPU of one cron slot in the deployed Worker: claim, call of the job, close. Each process is a fresh isolate.
import { build } from '../tools/build.mjs';
import { NODE_24, inRoot } from '../tools/paths.mjs';
import { PlainError, ask, step } from '../tools/run.mjs';
import { withBundle } from '../tools/wrangler.mjs';
import { line, median, watchCpu } from './figure.mjs';

const ISOLATES = { full: 20, quick: 3 };
/** Those before have compiled what V8 compiles for good; a cron comes to a warm isolate for hours. */
const WARM_FROM = 50;
const SLOTS = 80;
// Cloudflare's free plan counts 10 ms: https://developers.cloudflare.com/workers/platform/limits/
const MOST_COLD_MS = 8;
const MOST_WARM_MS = 2;
const OF_A_SLOT = ['GET', 'PUT', 'POST', 'PUT'];

/** Measures fresh processes one after the other. */
export async function measure({ quick }) {
  await build(['worker']);
  const isolates = quick ? ISOLATES.quick : ISOLATES.full;
  const busy = watchCpu();
  const found = await withBundle((_, files) => step(`Running slots in ${isolates} fresh isolates`, async () => {
    const entry = files.find((file) => file.endsWith('.js'));
    // The record that the slots of earlier isolates have left.
    const { record } = run(entry, 10);
    return Array.from({ length: isolates }, () => run(entry, SLOTS, record));
  }));
  return report(found, busy());
}

function run(entry, count, ...record) {
  const args = [inRoot('js/figures/slot-isolate.mjs'), entry, String(count), ...record];
  const printed = ask(NODE_24, args);
  if (printed === undefined) throw new PlainError(`the Worker ran no slots: run \`node ${args.slice(0, 3).join(' ')}\``);
  const result = JSON.parse(printed);
  // The first slots of a group are none of these.
  if (record.length > 0 && !OF_A_SLOT.every((method, index) => result.requests[index] === method)) {
    throw new PlainError(`a slot made other requests than ${OF_A_SLOT.join(', ')}: ${result.requests.slice(0, 8).join(', ')}`);
  }
  return result;
}

function report(isolates, busy) {
  const ms = (value) => `${value.toFixed(1)} ms`;
  const values = (of) => isolates.map(of);
  const shown = (all) => `${ms(median(all))}, at most ${ms(Math.max(...all))}`;
  const cold = values(({ slotMs }) => slotMs[0]);
  const warm = values(({ slotMs }) => median(slotMs.slice(WARM_FROM)));
  const plain = median(values(({ plainMs }) => plainMs));
  const start = values(({ startMs }) => startMs);
  return {
    title: 'CPU of one cron slot in the deployed Worker, on the main thread of Node',
    lines: [
      line({
        what: "CPU of a fresh isolate's first slot", value: median(cold), shown: shown(cold), most: MOST_COLD_MS, limit: ms(MOST_COLD_MS),
        against: "Cloudflare's free plan: 10 ms", readme: true,
      }),
      line({
        what: 'CPU of a slot in a warm isolate', value: median(warm), shown: shown(warm), most: MOST_WARM_MS, limit: ms(MOST_WARM_MS),
        against: `as many plain requests ${ms(plain)}`, readme: true,
      }),
      line({ what: "CPU of the isolate's start", value: median(start), shown: shown(start) }),
    ],
    notes: [
      `Medians and worst of ${isolates.length} processes; \`fetch\` is replaced by a store in memory. A slot makes 1 GET, 1 claim, 1 call and 1 closing write.`,
      `Warm: the median of slots ${WARM_FROM + 1} to ${SLOTS} of each. The start compiles and instantiates the wasm; Cloudflare does not count it to an event.`,
      `All cores together were ${(busy * 100).toFixed(0)} % busy.`,
    ],
  };
}
