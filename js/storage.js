import { keepBucket } from './bucket.js';

export { R2Storage } from './r2.js';

export class S3Storage {
  constructor(options) {
    keepBucket(this, options, { takes: 'an S3Storage takes an object with bucket and credentials' });
  }
}

export class EpochStorage {
  constructor(options) {
    keepBucket(this, options, { kind: 'epochs', takes: 'an EpochStorage takes an object with bucket and credentials' });
  }
}

export class DynamoDBStorage {
  constructor(options) {
    keepBucket(this, options, { kind: 'dynamodb', takes: 'a DynamoDBStorage takes an object with table and credentials' });
  }
}

export class Route53Storage {
  constructor(options) {
    const takes = 'a Route53Storage takes an object with hostedZoneId, recordPrefix, domainName and credentials';
    keepBucket(this, options, { kind: 'route53', takes });
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

/** By their names in `EDGELECT_STORE`. */
export const STORAGES = { s3: S3Storage, epochs: EpochStorage, dynamodb: DynamoDBStorage, route53: Route53Storage };
