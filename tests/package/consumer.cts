// Compiled, never run: what `require` gives has the types that `import` gives.
import { EdgelectError, Elector, MemoryStorage, R2Storage, S3Storage } from 'edgelect';
import type { Config, Credentials, ElectorOptions, LostLeadership, LostReason, Status, Storage, StoredObject, Term, TimingOptions } from 'edgelect';
import { DynamoDBStorage, EpochStorage, Route53Storage } from 'edgelect/aws';
import type { Env } from 'edgelect/worker-env';
import glue = require('edgelect/edgelect.js');

export const elector: Elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a' });
export const status: Status = elector.status();
export const config: Config = elector.config;
export const work = (term: Term): number => term.token;
export const error: EdgelectError = new EdgelectError('x', { code: 'EDGELECT_CONFIG' });
export const led: Promise<number | undefined> = elector.lead(work);
export const bucket = (credentials: Credentials): S3Storage => new S3Storage({ bucket: 'jobs', credentials });
export const table = (credentials: Credentials): DynamoDBStorage => new DynamoDBStorage({ table: 'jobs', credentials });
export const lead = (storage: DynamoDBStorage | EpochStorage | Route53Storage): Elector => new Elector({ storage, lockfilePath: 'a' });
export const bound = ({ EDGELECT_R2 }: Env): R2Storage | undefined => EDGELECT_R2 && new R2Storage(EDGELECT_R2);
export type All = [ElectorOptions, LostLeadership, LostReason, Storage, StoredObject, TimingOptions];
glue.initSync({ module: new Uint8Array() });
