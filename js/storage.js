import { checkBucket } from './dist/edgelect.js';
import { toJson, translated, wrongOption } from './errors.js';

const buckets = new WeakMap();

/** What the elector needs of an `S3Storage`; not for applications, because it holds the credentials. */
export const bucketOf = (storage) => buckets.get(storage);

export class S3Storage {
  constructor(options) {
    if (typeof options !== 'object' || options === null) {
      throw wrongOption('options', options, 'an S3Storage takes an object with bucket and credentials');
    }
    const { credentials, ...rest } = options;
    const json = toJson(rest);
    translated(() => checkBucket(json, credentials));
    buckets.set(this, { json, credentials });
  }
}

export class MemoryStorage {
  #objects = new Map();
  #writes = 0;

  get(key) {
    const found = this.#objects.get(key);
    return found ? { ...found, date: Date.now() } : null;
  }

  putIfMatch(key, body, etag) {
    const found = this.#objects.get(key);
    if ((found?.etag ?? null) !== etag) return null;
    this.#writes += 1;
    // The body is copied: the caller may use its bytes again.
    const written = { body: body.slice(), etag: `"${this.#writes}"`, lastModified: Date.now() };
    this.#objects.set(key, written);
    return { etag: written.etag };
  }
}
