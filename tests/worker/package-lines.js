// Workers of somebody's own over the npm package: the README's, and what the tests ask of it beside. The store is the R2 binding
// JOBS, or else S3 by its variables.
import { Elector, R2Storage, S3Storage } from '../../js/entry/workerd.js';

// Made in the global scope, where Workers have neither randomness nor a clock.
const unused = new Elector({ storage: { get: () => null, putIfMatch: () => null }, lockfilePath: 'a' });

const led = [];

const made = (env) => {
  const credentials = { accessKeyId: env.KEY_ID, secretAccessKey: env.SECRET };
  const storage = env.JOBS ? new R2Storage(env.JOBS) : new S3Storage({ endpoint: env.ENDPOINT, bucket: env.BUCKET, region: 'auto', credentials });
  return new Elector({ storage, lockfilePath: env.LOCKFILE_PATH, serverId: 'my-worker' });
};

const ASKED = {
  '/': () => ({ led, unused: unused.status().role }),
  '/init': (env) => made(env).init().then(() => ({})),
};

export default {
  async scheduled(event, env) {
    const signal = AbortSignal.timeout(50_000);
    await made(env).lead((term) => led.push({ token: term.token, remaining: term.remaining() }), { signal });
  },
  fetch: async (request, env) => Response.json(await ASKED[new URL(request.url).pathname](env)),
};
