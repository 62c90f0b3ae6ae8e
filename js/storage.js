import { expiryOf, keeper, plainCredentials } from './credentials.js';
import { checkedBucket } from './engine.js';
import { toJson, wrongOption } from './errors.js';

export { R2Storage } from './r2.js';

const buckets = new WeakMap();

/** What the elector needs of an `S3Storage`: `{ json, credentials }` or `{ json, provider }`; not for applications,
 * because it holds the credentials. */
export const bucketOf = (storage) => buckets.get(storage);

export class S3Storage {
  constructor(options) {
    if (typeof options !== 'object' || options === null) {
      throw wrongOption('options', options, 'an S3Storage takes an object with bucket and credentials');
    }
    const { credentials, ...rest } = options;
    const bucket = { json: toJson(rest) };
    if (typeof credentials === 'function') bucket.provider = keeper(credentials);
    else {
      expiryOf(credentials);
      bucket.credentials = toJson(plainCredentials(credentials));
    }
    checkedBucket(bucket.json, bucket.credentials);
    buckets.set(this, bucket);
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
