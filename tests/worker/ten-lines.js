// The README's Worker, word for word but for its work.
import { Elector, S3Storage } from '../../js/workerd.js';

// Made in the global scope, where Workers have neither randomness nor a clock.
const unused = new Elector({ storage: { get: () => null, putIfMatch: () => null }, lockfilePath: 'a' });

const led = [];

export default {
  async scheduled(event, env) {
    const credentials = { accessKeyId: env.KEY_ID, secretAccessKey: env.SECRET };
    const storage = new S3Storage({ endpoint: env.ENDPOINT, bucket: env.BUCKET, region: 'auto', credentials });
    const elector = new Elector({ storage, lockfilePath: env.LOCKFILE_PATH, serverId: 'my-worker' });
    const signal = AbortSignal.timeout(50_000);
    await elector.lead((term) => led.push({ token: term.token, remaining: term.remaining() }), { signal });
  },
  fetch: () => Response.json({ led, unused: unused.status().role }),
};
