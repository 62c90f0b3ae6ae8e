// Prints how many milliseconds this runtime takes to compile and instantiate the package's wasm.
import { readFileSync } from 'node:fs';
import { initSync } from '../dist/edgelect.js';

const module = readFileSync(new URL('../dist/edgelect_bg.wasm', import.meta.url));
const startMs = performance.now();
initSync({ module });
console.log(performance.now() - startMs);
