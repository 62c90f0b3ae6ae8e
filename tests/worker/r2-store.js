// R2Storage over a real binding, inside workerd: what the tests ask of it, and what it read of a body on the way.
import { R2Storage } from '../../js/r2.js';

const text = (body) => new TextDecoder().decode(body);
const bytes = (value) => new TextEncoder().encode(value);

/** A bucket whose bodies count what is read of them, and which breaks where it is told to. */
const watched = (bucket, { counts = { whole: [], read: 0 }, breaks } = {}) => new Proxy(bucket, {
  get: (_, name) => ['head', 'get', 'put'].includes(name) && (async (...args) => {
    const before = breaks?.[name];
    if (before === 'before') throw new Error(`${name}: We encountered an internal error. Please try again. (10001)`);
    const found = await bucket[name](...args);
    if (before === 'after') throw new Error(`${name}: Network connection lost.`);
    if (name !== 'get' || found === null) return found;
    return new Proxy(found, {
      get: (_target, field) => {
        if (field === 'arrayBuffer') return () => { counts.whole.push(found.size); return found.arrayBuffer(); };
        if (field !== 'body') return found[field];
        return { getReader: () => {
          const reader = found.body.getReader();
          const read = async () => { const piece = await reader.read(); counts.read += (piece.value?.length ?? 0); return piece; };
          return { read, cancel: () => { counts.cancelled = true; return reader.cancel(); } };
        } };
      },
    });
  }),
});

const STEPS = {
  async large(bucket) {
    const counts = { whole: [], read: 0 };
    const storage = new R2Storage(watched(bucket, { counts }));
    await bucket.put('large', new Uint8Array(10 * 1024 * 1024).fill(7));
    const { body, etag } = await storage.get('large');
    const healed = await storage.putIfMatch('large', bytes('small'), etag);
    return { length: body.length, sevens: body.every((byte) => byte === 7), counts, healed, after: text((await storage.get('large')).body) };
  },
  async broken(bucket) {
    const tried = async (breaks, work) => work(new R2Storage(watched(bucket, { breaks }))).then((value) => ({ value }), (error) => ({ threw: error.message }));
    const put = (storage) => storage.putIfMatch('broken', bytes('a'), null);
    return {
      before: await tried({ put: 'before' }, put),
      absent: await tried({}, (storage) => storage.get('broken')),
      after: await tried({ put: 'after' }, put),
      there: text((await new R2Storage(bucket).get('broken')).body),
      get: await tried({ get: 'before' }, (storage) => storage.get('broken')),
    };
  },
  async others(_, { F, K }) {
    const tried = (binding) => { try { return String(new R2Storage(binding)); } catch (error) { return error.message; } };
    return { service: tried(F), names: typeof F.head, kv: tried(K) };
  },
};

export default {
  fetch: async (request, env) => Response.json(await STEPS[new URL(request.url).pathname.slice(1)](env.EDGELECT_R2, env)),
};
