import { Elector } from 'edgelect';
import type { Env } from 'edgelect/worker-env';
import * as glue from 'edgelect/edgelect.js';
import module from 'edgelect/edgelect_bg.wasm';
import { bound, elector, led } from './consumer.cjs';

// Of one class, whichever way it came.
export const same: Elector = elector;
export const token: number = await led;
const env: Env = { EDGELECT_GROUPS: 'reports,mail' };
export const unbound = bound(env) === undefined;
glue.initSync({ module });
