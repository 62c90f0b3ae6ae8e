// A process with a started elector and nothing else to do: `stay.mjs JSON`, with `unref` in the JSON or not.
import { Elector, MemoryStorage, S3Storage } from 'edgelect';

const { bucket, unref } = JSON.parse(globalThis.process.argv.at(-1));
const storage = bucket ? new S3Storage(bucket) : new MemoryStorage();
const timing = { leaderTimeout: 1500, frequentInterval: 300, follow: 'tight' };
const elector = new Elector({ storage, lockfilePath: `stay/${crypto.randomUUID()}`, unref, ...timing });
await elector.init();
await elector.start();
console.log('started');
