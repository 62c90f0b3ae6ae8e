import { EdgelectError, optionsOf, wrongOption } from './errors.js';

const TAKES = 'celeriant takes an object with cluster, leaseDuration and heartbeat';
const LEASE_MS = 30_000;
/** A renewal may fail twice before the lease is at its end. */
const RENEWALS = 3;

/** The timing of Celeriant's durable lease, and a key of its own for each cluster of one bucket; see docs/celeriant.md. */
export const celeriant = (options) => {
  const { cluster, leaseDuration = LEASE_MS, heartbeat = false, ...others } = optionsOf(options, TAKES);
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw wrongOption(unknown, others[unknown], TAKES);
  if (typeof heartbeat !== 'boolean') throw wrongOption('heartbeat', heartbeat, 'must be true or false');
  if (typeof cluster !== 'string' || cluster === '' || cluster.endsWith('/')) {
    throw wrongOption('cluster', cluster, 'must be a text without a slash at its end: the prefix of this cluster in the bucket');
  }
  if (!Number.isSafeInteger(leaseDuration) || leaseDuration <= 0) {
    throw new EdgelectError(`leaseDuration = ${String(leaseDuration)}: must be a whole number of milliseconds`, {
      code: 'EDGELECT_CONFIG', field: 'leaseDuration',
    });
  }
  return {
    lockfilePath: `${cluster}/lease.json`,
    leaderTimeout: leaseDuration,
    frequentInterval: Math.floor(leaseDuration / RENEWALS),
    follow: 'tight',
    ...(heartbeat && { peerMode: true, heartbeat: true }),
  };
};
