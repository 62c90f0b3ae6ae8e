import { decoded } from './decoded.js';
import bytes from '../dist/bytes.js';
import { initSync } from '../dist/edgelect.js';

initSync({ module: decoded(bytes) });

export * from '../elector.js';
