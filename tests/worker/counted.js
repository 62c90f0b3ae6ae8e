// The Worker over a bucket that counts its reads: `/reads` tells them by key.
import worker from '../../js/worker.js';

const reads = {};
const counted = (bucket) => ({
  head: (key) => bucket.head(key),
  put: (...args) => bucket.put(...args),
  get: (key) => {
    reads[key] = (reads[key] ?? 0) + 1;
    return bucket.get(key);
  },
});

export default {
  fetch: (request, env, ctx) =>
    (request.url.endsWith('/reads') ? Response.json(reads) : worker.fetch(request, { ...env, EDGELECT_R2: counted(env.EDGELECT_R2) }, ctx)),
};
