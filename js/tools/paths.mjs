import { fileURLToPath } from 'node:url';
import path from 'node:path';

/** The repository's top folder, whatever folder the command was started in. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

export const inRoot = (...parts) => path.join(ROOT, ...parts);

/** Node 24 from npm: wrangler refuses the older Nodes on which everything else runs. */
export const NODE_24 = inRoot('node_modules/.bin/node');

/** The Node that the machine has: npm puts Node 24 in front of it on the PATH of its scripts. */
export const HOST_NODE = process.env.npm_node_execpath ?? process.execPath;

/** The folder of the programs of examples/native. */
export const NATIVE = inRoot('target/native/debug');

export const SEAWEED_VERSION = '4.48';
export const SEAWEED = inRoot(`.tools/seaweed-${SEAWEED_VERSION}/bin/weed`);

export const MINISTACK_VERSION = '1.5.33';
/** The folder of its Python packages. */
export const MINISTACK = inRoot(`.tools/ministack-${MINISTACK_VERSION}`);

export const MOTO_VERSION = '5.2.5';
/** The folder of its Python packages. */
export const MOTO = inRoot(`.tools/moto-${MOTO_VERSION}`);

export const AWSCLI_VERSION = '1.46.3';
/** The folder of its Python packages. */
export const AWSCLI = inRoot(`.tools/awscli-${AWSCLI_VERSION}`);

export const OPENMETRICS_VERSION = '0.26.0';
/** The folder of the Python package that parses OpenMetrics. */
export const OPENMETRICS = inRoot(`.tools/prometheus-client-${OPENMETRICS_VERSION}`);

/** The folder of a headless Chromium and the libraries that it needs. */
export const CHROMIUM = inRoot('.tools/chromium-147.0.0');

/** Prometheus's tool for rules, out of the package of Debian and Ubuntu. */
export const PROMTOOL = inRoot('.tools/promtool/usr/bin/promtool');
