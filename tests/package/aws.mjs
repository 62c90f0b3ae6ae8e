// Prints `led TOKEN` with both wasms in one process: a storage of the subpath is made in the second, and the first leads.
import { Elector, EdgelectError, MemoryStorage } from 'edgelect';
import { DynamoDBStorage } from 'edgelect/aws';

const storage = new DynamoDBStorage({ table: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
try {
  new Elector({ storage, lockfilePath: '' });
  throw new Error('the empty name of a group was taken');
} catch (error) {
  if (!(error instanceof EdgelectError) || error.field !== 'lockfilePath') throw error;
}
new Elector({ storage, lockfilePath: 'a' });
const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });
await elector.init();
console.log(`led ${await elector.lead((term) => term.token)}`);
