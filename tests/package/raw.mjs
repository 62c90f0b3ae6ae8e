// The glue and the wasm by themselves, for those who load them in their own way.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { check, initSync } from 'edgelect/edgelect.js';

initSync({ module: readFileSync(new URL(import.meta.resolve('edgelect/edgelect_bg.wasm'))) });
const { leaderTimeout } = JSON.parse(check('{"lockfilePath":"a"}', undefined, undefined, {}));
const required = createRequire(import.meta.url)('edgelect/edgelect.js');
if (required.check !== check) throw new Error('require gave another glue');
console.log(`led ${leaderTimeout}`);
