// The Worker's entry: hands Cloudflare's events to the wasm, which knows the rest.
import module from '../build/worker/edgelect_bg.wasm';
import * as edgelect from '../build/worker/edgelect.js';

edgelect.initSync({ module });

export default {
  fetch: (request, env, ctx) => sound().fetch(request, env, ctx),
  scheduled: (event, env, ctx) => sound().scheduled(event, env, ctx),
};

// A panic leaves its instance half-changed, so the next event in this isolate gets a new one. The flag is raised by
// the panic hook of the `worker` crate.
function sound() {
  const state = edgelect.__worker_init_state();
  if (state.criticalError) {
    edgelect.__wbg_reset_state();
    state.criticalError = false;
  }
  return edgelect;
}
