// What a storage that the wasm carries is made of. The storages themselves show nothing of it.
import { expiryOf, keeper, plainCredentials } from './credentials.js';
import { ownWasm } from './engine.js';
import { toJson, wrongOption } from './errors.js';
import { Host } from './host.js';

const buckets = new WeakMap();

/** What the elector needs of a storage: `{ json, credentials }` or `{ json, provider }`; undefined for one that lives in
 * JavaScript. Not for applications, because it holds the credentials. */
export const bucketOf = (storage) => buckets.get(storage);

/** Makes `storage` one that the wasm carries. `kind` says which of its stores; without one, an object in an S3 bucket. */
export const keepBucket = (storage, options, { takes, kind }) => {
  if (typeof options !== 'object' || options === null) throw wrongOption('options', options, takes);
  const { credentials, ...rest } = options;
  // Which store it is says the class; a kind among the options would make an S3Storage something else.
  if ('kind' in rest) throw wrongOption('kind', rest.kind, 'no such option');
  const bucket = { json: toJson({ ...rest, ...(kind && { kind }) }) };
  if (typeof credentials === 'function') bucket.provider = keeper(credentials);
  else {
    expiryOf(credentials);
    bucket.credentials = toJson(plainCredentials(credentials));
  }
  ownWasm.call(({ checkBucket }) => checkBucket(bucket.json, bucket.credentials, new Host()));
  buckets.set(storage, bucket);
};
