// Workers of somebody's own over the npm package: the README's, and what the tests ask of it beside. The store is the R2 binding
// JOBS, or else S3 by its variables.
import { Elector, R2Storage, S3Storage } from '../../js/entry/workerd.js';

// Made in the global scope, where Workers have neither randomness nor a clock.
const unused = new Elector({ storage: { get: () => null, putIfMatch: () => null }, lockfilePath: 'a' });

const led = [];

const made = (env, more) => {
  const credentials = { accessKeyId: env.KEY_ID, secretAccessKey: env.SECRET };
  const storage = env.JOBS ? new R2Storage(env.JOBS) : new S3Storage({ endpoint: env.ENDPOINT, bucket: env.BUCKET, region: 'auto', credentials });
  return new Elector({ storage, lockfilePath: env.LOCKFILE_PATH, serverId: 'my-worker', ...more });
};

/** A bucket that counts what is asked of it, and whose `put` leaves its condition out where it is told to. */
const watched = (bucket, counted, { forgetful }) => ({
  head: (key) => bucket.head(key),
  get: (key) => {
    counted.get += 1;
    return bucket.get(key);
  },
  put: (key, value, options) => {
    counted.put += 1;
    return bucket.put(key, value, forgetful ? {} : options);
  },
});

const judged = async (env, how) => {
  const counted = { get: 0, put: 0 };
  return { ...await made({ ...env, JOBS: watched(env.JOBS, counted, how) }).doctor({ races: 5 }), counted };
};

/** Reads a term for so long; resolves to how often, and to what it saw last of a term that is over. */
const looking = async (elector, term, ms) => {
  const endMs = Date.now() + ms;
  for (let looks = 1; ; looks += 1) {
    elector.isLeader();
    if (term.remaining() === 0 || term.signal.aborted) return { looks, reason: term.signal.reason?.message ?? 'nothing left' };
    if (Date.now() >= endMs) return { looks };
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};

const ASKED = {
  '/': () => ({ led, unused: unused.status().role }),
  '/init': (env) => made(env).init().then(() => ({})),
  '/doctor': (env) => judged(env, { forgetful: false }),
  '/forgetful': (env) => judged(env, { forgetful: true }),
  async '/look'(env) {
    const losses = [];
    const onLoseLeadership = ({ reason }) => losses.push(reason);
    const elector = made(env, { leaderTimeout: 3000, frequentInterval: 200, onLoseLeadership });
    await elector.init();
    const seen = await elector.lead(async (term) => ({ ...await looking(elector, term, 12_000), losses: [...losses] }));
    return { ...seen, terms: losses.length };
  },
};

export default {
  async scheduled(event, env) {
    const signal = AbortSignal.timeout(50_000);
    await made(env).lead((term) => led.push({ token: term.token, remaining: term.remaining() }), { signal });
  },
  fetch: async (request, env) => Response.json(await ASKED[new URL(request.url).pathname](env)),
};
