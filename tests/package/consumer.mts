import { Elector } from 'edgelect';
import { DynamoDBStorage } from 'edgelect/aws';
import type { Env } from 'edgelect/worker-env';
import * as glue from 'edgelect/edgelect.js';
import module from 'edgelect/edgelect_bg.wasm';
import { bound, elector, lead, led, table } from './consumer.cjs';

// Of one class, whichever way it came.
export const same: Elector = elector;
export const token: number | undefined = await led;
export const ofAws: DynamoDBStorage = table({ accessKeyId: 'a', secretAccessKey: 'b' });
export const overAws: Elector = lead(new DynamoDBStorage({ table: 'jobs', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } }));
const env: Env = { EDGELECT_GROUPS: 'reports,mail' };
export const unbound = bound(env) === undefined;
glue.initSync({ module });
