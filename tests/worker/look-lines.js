// A leader and a job over an R2 binding that read their terms at every millisecond.
import { Elector, R2Storage } from '../../js/workerd.js';

const made = (env, lockfilePath, more) =>
  new Elector({ storage: new R2Storage(env.JOBS), lockfilePath, leaderTimeout: 3000, frequentInterval: 200, ...more });

/** Reads a term for so long; resolves to how often, and to what it saw last of a term that is over. */
const looking = async (term, ms, isLeader = () => {}) => {
  const endMs = Date.now() + ms;
  for (let looks = 1; ; looks += 1) {
    isLeader();
    if (term.remaining() === 0 || term.signal.aborted) return { looks, reason: term.signal.reason?.message ?? 'nothing left' };
    if (Date.now() >= endMs) return { looks };
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};

export default {
  async fetch(_request, env) {
    const losses = [];
    const onLoseLeadership = ({ reason }) => losses.push(reason);
    const elector = made(env, 'leader.json', { onLoseLeadership });
    await elector.init();
    const led = await elector.lead(async (term) => ({ ...await looking(term, 12_000, () => elector.isLeader()), losses: [...losses] }));
    return Response.json({ ...led, terms: losses.length });
  },
};
