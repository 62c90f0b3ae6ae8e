// The Worker's entry: hands Cloudflare's events to the wasm, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import * as edgelect from '../build/worker/edgelect.js';
import { Host } from './host.js';

edgelect.initSync({ module });
let host = connected();

export default {
  fetch: (request, env, ctx) => sound().fetch(request, env, ctx),
  scheduled: (event, env, ctx) => sound().scheduled(event, env, ctx),
};

// What an instance has begun is settled in that instance or not at all.
function connected() {
  const own = new Host({ eager: true, settle: (...how) => own === host && edgelect.settle(...how) });
  edgelect.connect(own);
  return own;
}

// A panic leaves its instance half-changed, so the next event in this isolate gets a new one. The flag is raised by
// the panic hook of the `worker` crate.
function sound() {
  const state = edgelect.__worker_init_state();
  if (state.criticalError) {
    host.close();
    edgelect.__wbg_reset_state();
    state.criticalError = false;
    host = connected();
  }
  return edgelect;
}
