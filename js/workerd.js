// Workers compile no bytes at run time, so the module is imported.
import module from './dist/edgelect_bg.wasm';
import { initSync } from './dist/edgelect.js';

initSync({ module });

export * from './elector.js';
