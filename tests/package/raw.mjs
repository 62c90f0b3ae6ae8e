// The glue and the wasm by themselves, for those who load them in their own way.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { checkSettings, initSync } from 'edgelect/edgelect.js';

initSync({ module: readFileSync(new URL(import.meta.resolve('edgelect/edgelect_bg.wasm'))) });
const { leaderTimeout } = JSON.parse(checkSettings('{"lockfilePath":"a"}'));
const required = createRequire(import.meta.url)('edgelect/edgelect.js');
if (required.checkSettings !== checkSettings) throw new Error('require gave another glue');
console.log(`led ${leaderTimeout}`);
