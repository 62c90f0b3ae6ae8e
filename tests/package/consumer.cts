// Compiled, never run: what `require` gives has the types that `import` gives.
import { EdgelectError, Elector, MemoryStorage, S3Storage } from 'edgelect';
import type { Config, Credentials, ElectorOptions, LostLeadership, LostReason, Status, Storage, StoredObject, Term, TimingOptions } from 'edgelect';
import glue = require('edgelect/edgelect.js');

export const elector: Elector = new Elector({ storage: new MemoryStorage(), lockfilePath: 'a' });
export const status: Status = elector.status();
export const config: Config = elector.config;
export const work = (term: Term): number => term.token;
export const error: EdgelectError = new EdgelectError('x', { code: 'EDGELECT_CONFIG' });
export const led: Promise<number> = elector.lead(work);
export const bucket = (credentials: Credentials): S3Storage => new S3Storage({ bucket: 'jobs', credentials });
export type All = [ElectorOptions, LostLeadership, LostReason, Storage, StoredObject, TimingOptions];
glue.initSync({ module: new Uint8Array() });
