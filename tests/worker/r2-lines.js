// The README's Worker over an R2 binding; `/` starts the group, and then tells what was led.
import { Elector, R2Storage } from '../../js/workerd.js';

const led = [];
const made = (env) => new Elector({ storage: new R2Storage(env.JOBS), lockfilePath: 'leader/report.json', serverId: 'my-worker' });

export default {
  async fetch(_request, env) {
    if (led.length === 0) await made(env).init();
    return Response.json(led);
  },
  async scheduled(_event, env) {
    const work = (term) => led.push({ token: term.token, remaining: term.remaining() });
    await made(env).lead(work, { signal: AbortSignal.timeout(50_000) });
  },
};
