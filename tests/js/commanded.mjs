// Groups for commands: a store on loopback, and the variables that name a group in it.
import fs from 'node:fs';
import path from 'node:path';
import { Elector, S3Storage } from 'edgelect';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { begin } from './command.mjs';
import { atEnd, kept, startLiar } from './servers.mjs';

export const LEASE_MS = 2_000;
const KEYS = { accessKeyId: 'id', secretAccessKey: 'the-secret' };

export const folder = newFolder('command');
export const sh = (script) => ['--', 'sh', '-c', script];

export const store = await kept(startLiar('honest'));

/** A group of its own, by default one in which nobody has to wait out a grace; commands append to `file`, which is `$FILE`. */
export const newGroup = async ({ starts = true, leaseMs = LEASE_MS } = {}) => {
  const lockfilePath = `leader/${crypto.randomUUID()}`;
  const storage = new S3Storage({ endpoint: store.endpoint, bucket: 'jobs', credentials: KEYS });
  const elector = new Elector({ lockfilePath, serverId: 'beside', leaderTimeout: leaseMs, probe: false, storage });
  if (starts) await elector.init();
  atEnd(() => elector.stop());
  const file = path.join(folder, path.basename(lockfilePath));
  const record = () => JSON.parse(store.objects.get(`/jobs/${lockfilePath}`).body);
  const variables = (endpoint = store.endpoint) => ({
    EDGELECT_ENDPOINT: endpoint, EDGELECT_BUCKET: 'jobs', EDGELECT_ACCESS_KEY_ID: KEYS.accessKeyId, EDGELECT_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    EDGELECT_LOCKFILE_PATH: lockfilePath, EDGELECT_LEADER_TIMEOUT: String(leaseMs), FILE: file,
  });
  return {
    lockfilePath, elector, variables, record,
    put: (body) => store.objects.set(`/jobs/${lockfilePath}`, { body: Buffer.from(body), modified: new Date() }),
    run: (args, endpoint, how) => begin(['run', ...args], { variables: variables(endpoint), ...how }),
    isReleased: () => record().lastUpdated.startsWith('0001'),
    read: () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''),
  };
};
