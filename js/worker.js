// The Worker's entry: hands Cloudflare's events to the wasm, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import * as edgelect from '../build/worker/edgelect.js';
import { Host } from './host.js';

edgelect.initSync({ module });
/** The flag that the panic hook of the `worker` crate raises; kept here, because a broken instance can't be asked. */
let state = edgelect.__worker_init_state();
let host = connected();

export default {
  fetch: (...event) => handed('fetch', event),
  scheduled: (...event) => handed('scheduled', event),
};

// A call that throws at once has broken the instance before it did anything, so the event is handed to a new one.
function handed(name, event) {
  if (state.criticalError) replace();
  try {
    return edgelect[name](...event);
  } catch {
    replace();
    return edgelect[name](...event);
  }
}

// What an instance has begun is settled in that instance or not at all.
function connected() {
  const settle = (...how) => {
    if (own !== host || state.criticalError) return;
    try {
      edgelect.settle(...how);
    } catch {
      replace();
    }
  };
  const own = new Host({ eager: true, settle });
  edgelect.connect(own);
  return own;
}

// A panic or a trap leaves its instance half-changed.
function replace() {
  host.close();
  edgelect.__wbg_reset_state();
  state = edgelect.__worker_init_state();
  state.criticalError = false;
  host = connected();
}
