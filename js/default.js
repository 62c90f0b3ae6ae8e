import bytes from './dist/bytes.js';
import { initSync } from './dist/edgelect.js';

// A plain loop: a mapping callback takes five times as long for this many bytes.
const text = atob(bytes);
const module = new Uint8Array(text.length);
for (let index = 0; index < text.length; index += 1) module[index] = text.charCodeAt(index);
initSync({ module });

export * from './elector.js';
