// The Worker, with what the tests change about it:
// - the header `x-env` has what is set instead in `env`: `null` for nothing, `{ bound }` for a binding of that name;
// - `/break` leaves nothing whole in the memory of the wasm;
import * as edgelect from '../../build/worker/edgelect.js';
import worker from '../../js/worker.js';

const changed = (env, changes) => {
  const own = { ...env };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete own[name];
    else own[name] = value.bound ? env[value.bound] : value;
  }
  return own;
};

export default {
  fetch: (request, env, ctx) => {
    if (!request.url.endsWith('/break')) return worker.fetch(request, changed(env, JSON.parse(request.headers.get('x-env') ?? '{}')), ctx);
    new Uint8Array(edgelect.initSync().memory.buffer).fill(0xff);
    return new Response('broken');
  },
  scheduled: (event, env, ctx) => worker.scheduled(event, env, ctx),
};
