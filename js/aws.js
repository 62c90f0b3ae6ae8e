import { decoded } from './decoded.js';
import bytes from './dist/aws/bytes.js';
import { initSync } from './dist/aws/edgelect.js';

initSync({ module: decoded(bytes) });

export * from './aws-storage.js';
