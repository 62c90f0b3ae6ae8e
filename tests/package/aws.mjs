// Prints `led TOKEN`; `edgelect/aws` is another name of the same module, imported or required.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as edgelect from 'edgelect';
import * as aws from 'edgelect/aws';

assert.deepEqual({ ...aws }, { ...edgelect });
assert.equal(createRequire(import.meta.url)('edgelect/aws').DynamoDBStorage, edgelect.DynamoDBStorage);
const { DynamoDBStorage, Elector, MemoryStorage } = aws;
const storage = new DynamoDBStorage({ table: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
new Elector({ storage, lockfilePath: 'a' });
const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });
await elector.init();
console.log(`led ${await elector.lead((term) => term.token)}`);
