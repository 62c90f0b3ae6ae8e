// Compiled by `tsc`, never run: the object-store lock, the formats and the preset.
import { Elector, MemoryStorage, S3Storage, celeriant } from 'edgelect';
import { leaderElectionOptions, objectStoreLock } from 'edgelect/object-store-lock';

const storage = new MemoryStorage();
const lock = objectStoreLock({ storage, key: 'ha/leader', identity: 'a' });
export const holder = async (): Promise<string | null | undefined> => (await lock.get())?.record.holderIdentity;
const leaderCallbacks = { onStartLeading: ({ token }: { token: number }) => void token, onNewLeader: (id: string) => void id };
export const elector = new Elector({ storage, ...leaderElectionOptions({ leaseDuration: '45s', retryPeriod: 15_000, leaderCallbacks }) });
export const cluster = new Elector({ storage, ...celeriant({ cluster: 'eu/prod' }) });
void elector.stop({ release: false });
const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
new S3Storage({ bucket: 'jobs', credentials, format: 'kubernetes' });

// @ts-expect-error: no such format
new S3Storage({ bucket: 'jobs', credentials, format: 'yaml' });
// @ts-expect-error: an S3Storage shows no objects
objectStoreLock({ storage: new S3Storage({ bucket: 'jobs', credentials }), key: 'k', identity: 'a' });
// @ts-expect-error: a cluster is needed
celeriant({});
// @ts-expect-error: no such option
leaderElectionOptions({ bucketName: 'b' });
