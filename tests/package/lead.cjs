const { Elector, MemoryStorage } = require('edgelect');
const assert = require('node:assert/strict');

const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });

(async () => {
  const imported = await import('edgelect');
  // Two copies would have two wasm instances, and errors of the one would be no instances of the other's class.
  assert.equal(imported.Elector, Elector);
  await elector.init();
  console.log(`led ${await elector.lead((term) => term.token)}`);
})();
