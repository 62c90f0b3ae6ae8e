// The Worker's door: hands Cloudflare's events to the wasm, and replaces its instance when that has broken down.
import module from '../build/worker/edgelect_bg.wasm';
import * as wasm from '../build/worker/edgelect.js';

/** The turns that the wasm has asked for and that have not ended. An event that is ended from outside, because its CPU is used
 * up, unwinds nothing and drops what is queued: its isolate goes on, and the wasm would never move again. */
let turns = { open: 0 };
const MID_TURN = 'edgelect: an event was ended in mid-turn';
const queue = globalThis.queueMicrotask;
globalThis.queueMicrotask = (turn) => {
  const mine = turns;
  mine.open += 1;
  queue(() => {
    try {
      turn();
    } finally {
      mine.open -= 1;
    }
  });
};

const after = globalThis.setTimeout;
globalThis.setTimeout = (then, ms, ...given) => after(() => {
  // Each turn has ended before a timer fires; what waits in a replaced instance has ended, too.
  if (turns.open > 0) replace(new Error(MID_TURN));
  else then(...given);
}, ms);

wasm.initSync({ module });
// While the isolate starts, so that no event's CPU is spent on compiling.
wasm.rehearse();
/** What ends each event under way: none of a broken instance would ever end by itself. */
const events = new Set();

export default {
  fetch: (request, env, context) => handled(() => wasm.fetch(request, env, context)),
  scheduled: (event, env) => handled(() => wasm.scheduled(event, env)),
};

/** Says that the instance broke down in an event's first turn, when nothing but a read can have left. */
class NothingDone extends Error {}

/** Lets the wasm handle one event. One that meets a broken instance is begun anew once. */
async function handled(begin, again = true) {
  if (again && turns.open > 0) replace(new Error(MID_TURN));
  const { promise: broken, reject } = Promise.withResolvers();
  // Nobody waits for it any more where this event has been ended from outside.
  broken.catch(() => {});
  let first = true;
  const end = (cause) => reject(first ? new NothingDone('', { cause }) : cause);
  events.add(end);
  try {
    return await Promise.race([begun(begin, () => (first = false)), broken]);
  } catch (error) {
    if (!(error instanceof NothingDone)) throw error;
    if (again) return handled(begin, false);
    throw error.cause;
  } finally {
    events.delete(end);
  }
}

/** Begins an event; its first turn is the next microtask. */
function begun(begin, turned) {
  try {
    const ended = begin();
    if (turns.open === 0) {
      // An event that was ended while it asked for a turn: none is asked for any more.
      ended.catch(() => {});
      throw new Error(MID_TURN);
    }
    queue(turned);
    return ended;
  } catch (error) {
    replace(error);
    return new Promise(() => {});
  }
}

// Where a task of the wasm breaks down, in its turn or in a promise's callback, nobody else hears of it.
addEventListener('error', ({ error }) => isTrap(error) && replace(error));
addEventListener('unhandledrejection', ({ reason }) => isTrap(reason) && replace(reason));

/** A trap or an exhausted stack. What the glue throws at a late callback of a replaced instance is neither. */
const isTrap = (error) => error instanceof WebAssembly.RuntimeError || error instanceof RangeError;

// A trap leaves its instance half-changed: whatever is under way in it ends, and the next event gets a new one.
function replace(cause) {
  // It may be ended from outside as well: then the next event begins here again.
  turns.open += 1;
  console.error('edgelect: the wasm broke down; the next event gets a new instance');
  for (const end of [...events]) end(cause);
  events.clear();
  wasm.__wbg_reset_state();
  turns = { open: 0 };
}
