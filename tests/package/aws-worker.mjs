import { Elector, MemoryStorage } from 'edgelect';
import { DynamoDBStorage } from 'edgelect/aws';

export default {
  async fetch() {
    const storage = new DynamoDBStorage({ table: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } });
    new Elector({ storage, lockfilePath: 'a' });
    const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });
    await elector.init();
    return Response.json({ led: await elector.lead((term) => term.token) });
  },
};
