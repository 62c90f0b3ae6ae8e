// Cloudflare may fire a cron twice, late, or on two machines at once. The work runs once for each scheduled time.
import { Elector, R2Storage } from 'edgelect';
import { writeReport } from './report.mjs';

// All Workers that name the same object in the same bucket are one group.
const LEASE = { lockfilePath: '__LOCKFILE__', serverId: '__SERVER_ID__' };

export default {
  async scheduled(event, env) {
    const elector = new Elector({ ...LEASE, storage: new R2Storage(env.EDGELECT_R2) });
    const { outcome, reason, error, fault } = await elector.runScheduled(event.scheduledTime, (term) => writeReport(term, env));
    // done: here. taken: another trigger does it, or has done it. skipped, unknown: not here, and the reason says why.
    console.log(new Date(event.scheduledTime).toISOString(), reason ? `${outcome}: ${reason}` : outcome);
    // Thrown on, so that Cloudflare counts this trigger as failed.
    if (outcome === 'failed' || outcome === 'lost') throw error ?? new Error(`the work ${outcome}`);
    if (fault) throw fault;
  },
};
