import { Elector, MemoryStorage } from 'edgelect';

export default {
  async fetch() {
    const elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a', leaderTimeout: 1000, frequentInterval: 250 });
    await elector.init();
    return Response.json({ led: await elector.lead((term) => term.token) });
  },
};
