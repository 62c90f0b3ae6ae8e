import { Elector, R2Storage } from 'edgelect';
import { writeReport } from './report.js';

const LEASE = { lockfilePath: 'leader/report.json', serverId: 'js-worker' };

export default {
  async scheduled(event, env) {
    const elector = new Elector({ ...LEASE, storage: new R2Storage(env.EDGELECT_R2) });
    const { outcome, reason, error, fault } = await elector.runScheduled(event.scheduledTime, (term) => writeReport(term, env));
    console.log(new Date(event.scheduledTime).toISOString(), outcome, reason ?? '');
    // Thrown on, so that Cloudflare counts this trigger as failed.
    if (outcome === 'failed' || outcome === 'lost') throw error ?? new Error(`the slot's job ${outcome}`);
    if (fault) throw fault;
  },

  async fetch(request, env) {
    const lease = await env.EDGELECT_R2.get(LEASE.lockfilePath);
    const { slot, slotDone, slotResult, slotTookMs, term } = (await lease?.json()) ?? {};
    return Response.json({ slot, slotDone, slotResult, slotTookMs, term }, { status: lease ? 200 : 404 });
  },
};
