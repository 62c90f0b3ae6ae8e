import { checkFormat, checkNames, optionsOf, wrongOption } from './errors.js';

/** One byte more than a record may have. What is larger is read no further: it is cut there, and known by it. */
const LIMIT = 65_537;
const METHODS = ['head', 'get', 'put'];

const bindings = new WeakMap();

/** The binding under an `R2Storage`: events that each make a storage anew have it in common. */
export const bindingOf = (storage) => bindings.get(storage);

/** Whether a binding is an R2 bucket. A service binding seems to have every method, and one that no bucket has. */
export const isR2Bucket = (binding) =>
  typeof binding === 'object' && binding !== null && METHODS.every((name) => typeof binding[name] === 'function') && typeof binding.fetch !== 'function';

/** Refuses the bucket itself where a storage over it is wanted. */
export const checkNoBinding = (storage) => {
  if (!isR2Bucket(storage) || typeof storage.putIfMatch === 'function') return;
  throw wrongOption('storage', storage, 'this is an R2 bucket binding, which a storage has to wrap: new R2Storage(env.BUCKET)');
};

export class R2Storage {
  #bucket;

  constructor(binding, options) {
    if (!isR2Bucket(binding)) {
      throw wrongOption('binding', binding, 'an R2Storage takes an R2 bucket binding, such as env.EDGELECT_R2: [[r2_buckets]] in wrangler.toml binds one');
    }
    const { format = 'native' } = optionsOf(options, 'an R2Storage takes a binding and an object with format');
    checkNames(options ?? {}, ['format'], 'an R2Storage');
    this.#bucket = binding;
    bindings.set(this, binding);
    /** How the lease is written down; the elector asks for it. */
    this.format = checkFormat(format);
    /** R2 takes one write a second of each object, in milliseconds. */
    this.writesApart = 1_000;
  }

  // No `date`: R2 tells when an object was written and not what time it is there, and nobody else's clock may stand in for
  // that. What the binding throws is thrown on: nobody knows then what it did.
  async get(key, options) {
    options?.signal?.throwIfAborted();
    const found = await this.#bucket.get(key);
    if (found === null) return null;
    return { body: await bodyOf(found), etag: found.httpEtag, lastModified: found.uploaded.getTime() };
  }

  async putIfMatch(key, body, etag, options) {
    options?.signal?.throwIfAborted();
    const written = await this.#bucket.put(key, body, { onlyIf: conditionOf(etag) });
    return written === null ? null : { etag: written.httpEtag };
  }
}

/** As headers: in the other form, `{ etagDoesNotMatch: '*' }`, a runtime of 2024 or before takes the star for an etag that no
 * object has, and overwrites (workerd issue 2572). A star in place of an etag would be any object at all. */
const conditionOf = (etag) => {
  if (etag === null) return new Headers({ 'if-none-match': '*' });
  if (!/^"[^"*,\s]+"$/.test(etag)) throw wrongOption('etag', etag, 'must be null or the etag of an earlier answer, with its quotes');
  return new Headers({ 'if-match': etag });
};

const bodyOf = async (found) => {
  if (found.size <= LIMIT) return new Uint8Array(await found.arrayBuffer());
  const body = new Uint8Array(LIMIT);
  const reader = found.body.getReader();
  for (let at = 0; at < LIMIT;) {
    const { done, value } = await reader.read();
    if (done) throw new Error('the body of an R2 object ended before its size');
    body.set(value.subarray(0, LIMIT - at), at);
    at += value.length;
  }
  await reader.cancel();
  return body;
};
