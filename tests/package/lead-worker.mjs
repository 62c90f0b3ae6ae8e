import { settings } from './settings.mjs';
import { Elector, MemoryStorage } from 'edgelect';

export default {
  async fetch() {
    const elector = new Elector({ storage: new MemoryStorage(), ...settings });
    await elector.init();
    return Response.json({ led: await elector.lead((term) => term.token) });
  },
};
