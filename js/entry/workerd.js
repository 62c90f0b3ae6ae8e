// Workers compile no bytes at run time, so the module is imported.
import module from '../dist/edgelect_bg.wasm';
import { initSync } from '../dist/edgelect.js';
import { thisIsWorkers } from '../host.js';

thisIsWorkers();
initSync({ module });

export * from '../elector.js';
