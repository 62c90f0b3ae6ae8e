const { Elector, MemoryStorage } = require('edgelect');
const { DynamoDBStorage } = require('edgelect/aws');
const assert = require('node:assert/strict');

const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });

(async () => {
  const imported = await import('edgelect/aws');
  // Two copies would have two wasm instances, and storages of the one would be none of the other's.
  assert.equal(imported.DynamoDBStorage, DynamoDBStorage);
  const storage = new DynamoDBStorage({ table: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
  new Elector({ storage, lockfilePath: 'a' });
  await elector.init();
  console.log(`led ${await elector.lead((term) => term.token)}`);
})();
