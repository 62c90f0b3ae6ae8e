import type * as glue from '../dist/edgelect.js' with { 'resolution-mode': 'import' };
declare const api: typeof glue;
export = api;
