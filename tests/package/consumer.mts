import { Elector } from 'edgelect';
import * as glue from 'edgelect/edgelect.js';
import module from 'edgelect/edgelect_bg.wasm';
import { elector, led } from './consumer.cjs';

// Of one class, whichever way it came.
export const same: Elector = elector;
export const token: number = await led;
glue.initSync({ module });
