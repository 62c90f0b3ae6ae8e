// The Worker, whose wasm somebody can break: `/break` leaves nothing whole in its memory.
import * as edgelect from '../../build/worker/edgelect.js';
import worker from '../../js/worker.js';

export default {
  ...worker,
  fetch: (request, env, ctx) => {
    if (!request.url.endsWith('/break')) return worker.fetch(request, env, ctx);
    new Uint8Array(edgelect.initSync().memory.buffer).fill(0xff);
    return new Response('broken');
  },
};
