// Prints `led TOKEN`: the package works where this was imported or bundled for.
import { Elector, MemoryStorage } from 'edgelect';

const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });
await elector.init();
console.log(`led ${await elector.lead((term) => term.token)}`);
