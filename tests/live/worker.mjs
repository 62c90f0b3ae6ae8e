// A Worker with the package in it, which leads in its cron ticks and parks its lease between them.
import { Elector, S3Storage } from 'edgelect';
import { act } from './acting.mjs';

const LOOK_MS = 100;
let stopping = false;

export default {
  /** Ends the tick, and the ticks to come. */
  async fetch() {
    stopping = true;
    return new Response();
  },

  async scheduled(_event, env) {
    const number = (name) => Number(env[`EDGELECT_${name}`]);
    const { EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: bucket, EDGELECT_REGION: region } = env;
    const { EDGELECT_ACCESS_KEY_ID: accessKeyId, EDGELECT_SECRET_ACCESS_KEY: secretAccessKey } = env;
    const elector = new Elector({
      storage: new S3Storage({ endpoint, bucket, region, credentials: { accessKeyId, secretAccessKey } }),
      lockfilePath: env.EDGELECT_LOCKFILE_PATH,
      serverId: env.EDGELECT_SERVER_ID,
      leaderTimeout: number('LEADER_TIMEOUT'),
      frequentInterval: number('FREQUENT_INTERVAL'),
      infrequentInterval: number('INFREQUENT_INTERVAL'),
      sustain: number('SUSTAIN'),
      follow: env.EDGELECT_FOLLOW,
    });
    const acting = act(elector, { member: env.EDGELECT_SERVER_ID, resource: env.LIVE_RESOURCE });
    const endMs = Date.now() + number('SUSTAIN');
    while (!stopping && Date.now() < endMs) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    await elector.stop({ park: true });
    await acting;
  },
};
