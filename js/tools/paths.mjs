import { fileURLToPath } from 'node:url';
import path from 'node:path';

/** The repository's top folder, whatever folder the command was started in. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

export const inRoot = (...parts) => path.join(ROOT, ...parts);

/** Node 24 from npm: wrangler refuses the older Nodes on which everything else runs. */
export const NODE_24 = inRoot('node_modules/.bin/node');

export const SEAWEED_VERSION = '4.48';
export const SEAWEED = inRoot(`.tools/seaweed-${SEAWEED_VERSION}/bin/weed`);
