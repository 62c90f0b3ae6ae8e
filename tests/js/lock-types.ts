// Compiled by `tsc`, never run: the object-store lock, the formats and the preset.
import { Elector, MemoryStorage, S3Storage, celeriant } from 'edgelect';
import { DynamoDBStorage, S3Storage as AwsS3Storage } from 'edgelect/aws';
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
for (const bucket of [new S3Storage({ bucket: 'jobs', credentials }), new AwsS3Storage({ bucket: 'jobs', credentials, format: 'kubernetes' })]) {
  objectStoreLock({ storage: bucket, key: 'k', identity: 'a' });
}
// @ts-expect-error: a class of its own
export const own: S3Storage = new AwsS3Storage({ bucket: 'jobs', credentials });
// @ts-expect-error: a record there is no object at the key
objectStoreLock({ storage: new DynamoDBStorage({ table: 'jobs', credentials }), key: 'k', identity: 'a' });
// @ts-expect-error: a cluster is needed
celeriant({});
// @ts-expect-error: no such option
leaderElectionOptions({ bucketName: 'b' });
