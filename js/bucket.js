// What a storage that a wasm carries is made of. The storages themselves show nothing of it.
import { expiryOf, keeper, plainCredentials } from './credentials.js';
import { toJson, wrongOption } from './errors.js';
import { Host } from './host.js';

const buckets = new WeakMap();

/** What the elector needs of a storage: `{ wasm, json, credentials }` or `{ wasm, json, provider }`; `{ wasm }` or undefined
 * for one that lives in JavaScript. Not for applications, because it holds the credentials. */
export const bucketOf = (storage) => buckets.get(storage);

/** Has the electors over a storage that lives in JavaScript live in `wasm`. */
export const keepIn = (storage, wasm) => void buckets.set(storage, { wasm });

/** Makes `storage` one that `wasm` carries. `kind` says which of its stores, where it has more than one. */
export const keepBucket = (storage, wasm, options, { takes, kind }) => {
  if (typeof options !== 'object' || options === null) throw wrongOption('options', options, takes);
  const { credentials, ...rest } = options;
  // Which store it is says the class; a kind among the options would make an S3Storage something else.
  if ('kind' in rest) throw wrongOption('kind', rest.kind, 'no such option');
  const bucket = { wasm, json: toJson({ ...rest, ...(kind && { kind }) }) };
  if (typeof credentials === 'function') bucket.provider = keeper(credentials);
  else {
    expiryOf(credentials);
    bucket.credentials = toJson(plainCredentials(credentials));
  }
  wasm.call(({ checkBucket }) => checkBucket(bucket.json, bucket.credentials, new Host()));
  buckets.set(storage, bucket);
};
