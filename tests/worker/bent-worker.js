// The Worker, with what the tests change about it:
// - the header `x-env` has what is set instead in `env`: `null` for nothing, `{ bound }` for a binding of that name;
// - `/reads` tells the reads of EDGELECT_R2 by their keys;
// - `/break` leaves nothing whole in the memory of the wasm;
import * as edgelect from '../../build/worker/edgelect.js';
import worker from '../../js/worker.js';

const reads = {};

/** As a bucket is known: by the name of its class. */
class R2Bucket {
  #bucket;

  constructor(bucket) {
    this.#bucket = bucket;
  }

  put(...how) {
    return this.#bucket.put(...how);
  }

  get(key, ...how) {
    reads[key] = (reads[key] ?? 0) + 1;
    return this.#bucket.get(key, ...how);
  }
}

const changed = (env, changes) => {
  const own = { ...env, ...(env.EDGELECT_R2 && { EDGELECT_R2: new R2Bucket(env.EDGELECT_R2) }) };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete own[name];
    else own[name] = value.bound ? env[value.bound] : value;
  }
  return own;
};

export default {
  fetch: (request, env, ctx) => {
    if (request.url.endsWith('/reads')) return Response.json(reads);
    if (!request.url.endsWith('/break')) return worker.fetch(request, changed(env, JSON.parse(request.headers.get('x-env') ?? '{}')), ctx);
    new Uint8Array(edgelect.initSync().memory.buffer).fill(0xff);
    return new Response('broken');
  },
  scheduled: (event, env, ctx) => worker.scheduled(event, env, ctx),
};
