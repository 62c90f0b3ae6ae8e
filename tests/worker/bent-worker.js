// The Worker, with what the tests change about it:
// - the header `x-env` has what is set instead in `env`: `null` for nothing, `{ bound }` for a binding of that name;
// - `/reads` tells the reads of EDGELECT_R2 by their keys;
// - `/break` leaves nothing whole in the memory of the wasm;
// - under a trigger `THROWS` names a binding that throws at the first look, as nothing of ours does.
import * as edgelect from '../../build/worker/edgelect.js';
import worker from '../../js/worker.js';

const reads = {};

const counted = (bucket) => ({
  head: (key) => bucket.head(key),
  put: (...how) => bucket.put(...how),
  get: (key) => {
    reads[key] = (reads[key] ?? 0) + 1;
    return bucket.get(key);
  },
});

const changed = (env, changes) => {
  const own = { ...env, ...(env.EDGELECT_R2 && { EDGELECT_R2: counted(env.EDGELECT_R2) }) };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete own[name];
    else own[name] = value.bound ? env[value.bound] : value;
  }
  return own;
};

const broken = { get head() { throw new Error('a broken binding'); } };

export default {
  fetch: (request, env, ctx) => {
    if (request.url.endsWith('/reads')) return Response.json(reads);
    if (!request.url.endsWith('/break')) return worker.fetch(request, changed(env, JSON.parse(request.headers.get('x-env') ?? '{}')), ctx);
    new Uint8Array(edgelect.initSync().memory.buffer).fill(0xff);
    return new Response('broken');
  },
  scheduled: (event, { THROWS, ...env }, ctx) => worker.scheduled(event, THROWS ? { ...env, [THROWS]: broken } : env, ctx),
};
