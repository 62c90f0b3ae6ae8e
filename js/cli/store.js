// The store that a command asks, as flags and variables name it.
import { Option } from 'commander';

const DEFAULT_PATH = 'leader.json';
const DEFAULT_PREFIX = 'lock';
/** The flags that stand for a variable; secrets have none, because others see a command's line. */
const VARIABLES = {
  endpoint: 'EDGELECT_ENDPOINT', bucket: 'EDGELECT_BUCKET', region: 'EDGELECT_REGION', lockfilePath: 'EDGELECT_LOCKFILE_PATH',
  pathStyle: 'EDGELECT_PATH_STYLE', format: 'EDGELECT_FORMAT',
};
const BUCKET_FLAGS = ['endpoint', 'bucket', 'region', 'pathStyle', 'format'];
/** What each store is set up by, and what it can't do without. */
const STORES = {
  s3: { flags: BUCKET_FLAGS, needed: [] },
  epochs: { flags: BUCKET_FLAGS, needed: [] },
  dynamodb: { flags: ['endpoint', 'region', 'table'], needed: ['table'], endpoint: 'AWS_ENDPOINT_URL_DYNAMODB' },
  route53: { flags: ['endpoint', 'zone', 'domain', 'prefix'], needed: ['zone', 'domain'], endpoint: 'AWS_ENDPOINT_URL_ROUTE_53' },
};
const FLAGS = {
  endpoint: ['--endpoint <url>', 'where the store is; AWS in the region if left out'],
  bucket: ['--bucket <name>', 's3, epochs: the bucket'],
  region: ['--region <name>', 'the region that signatures name; auto for R2'],
  pathStyle: ['--path-style', 's3, epochs: the bucket is the first part of the path'],
  format: ['--format <name>', 's3, epochs: how records are written, native or kubernetes'],
  table: ['--table <name>', 'dynamodb: the table'],
  zone: ['--zone <id>', 'route53: the hosted zone, such as Z1234567890ABC'],
  domain: ['--domain <name>', "route53: the zone's domain, or one below it"],
  prefix: ['--prefix <name>', `route53: what the record's name begins with (default: ${DEFAULT_PREFIX})`],
};
/** What names an S3 bucket, and nothing for a table or a zone. */
const OF_A_BUCKET = /^EDGELECT_(STORE|ENDPOINT|BUCKET|REGION|PATH_STYLE|FORMAT|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)$/;

/** For the help of a command that has these flags. */
export const STORE_HELP = `
--store says which store: s3, one object in a bucket; epochs, one object for
each term, for a store without If-Match; dynamodb, an item of a table; route53,
a TXT record of a zone.

For a bucket each flag stands for a variable: EDGELECT_ENDPOINT (or
AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), EDGELECT_BUCKET, EDGELECT_REGION (or
AWS_REGION, AWS_DEFAULT_REGION), EDGELECT_PATH_STYLE, EDGELECT_FORMAT, and for
every store EDGELECT_LOCKFILE_PATH. Secrets come by
variables only: EDGELECT_ACCESS_KEY_ID, EDGELECT_SECRET_ACCESS_KEY and, of
temporary credentials, EDGELECT_SESSION_TOKEN, or AWS_… in their place.

For a table and a zone, where EDGELECT_… names no store, they are
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. A table's region
may be AWS_REGION or AWS_DEFAULT_REGION, the address of either
AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL_ROUTE_53, or AWS_ENDPOINT_URL.`;

/** Gives a command the flags that name a store. */
export const withStore = (command) => {
  command.addOption(new Option('--store <kind>', 'which kind of store').choices(Object.keys(STORES)).default('s3'));
  for (const [flag, what] of Object.values(FLAGS)) command.option(flag, what);
  return command.option('--lockfile-path <key>', `the lease object, item or record, beside which the probe works (default: ${DEFAULT_PATH})`);
};

/** The options of `new Elector` for the store that flags and variables name.
 * @throws EdgelectError `EDGELECT_CONFIG` for what is missing or wrong. */
export const electorOptions = async ({ store, ...flags }, variables = process.env) => {
  const { flags: known, needed } = STORES[store];
  const { EdgelectError } = await import('edgelect');
  const refused = (message) => new EdgelectError(message, { code: 'EDGELECT_CONFIG' });
  const nameOf = (flag) => FLAGS[flag][0].split(' ')[0];
  const foreign = Object.keys(FLAGS).find((flag) => flags[flag] !== undefined && !known.includes(flag));
  // Left unheard it would have somebody else's store judged.
  if (foreign) throw refused(`${nameOf(foreign)}: means nothing with --store ${store}, which has ${known.map(nameOf).join(', ')}`);
  const lacking = needed.find((flag) => !flags[flag]);
  if (lacking) throw refused(`${nameOf(lacking)} = (not set): --store ${store} needs ${needed.map(nameOf).join(' and ')}`);
  const relevant = Object.fromEntries(Object.entries(variables).filter(([name]) => /^(EDGELECT|AWS)_/.test(name)));
  relevant.EDGELECT_LOCKFILE_PATH = flags.lockfilePath || relevant.EDGELECT_LOCKFILE_PATH || DEFAULT_PATH;
  return known === BUCKET_FLAGS ? inBucket(store, flags, relevant) : inService(store, flags, relevant, refused);
};

const inBucket = async (store, flags, variables) => {
  for (const [flag, variable] of Object.entries(VARIABLES)) if (flags[flag] !== undefined) variables[variable] = String(flags[flag]);
  const { S3Storage, EpochStorage } = await import('edgelect');
  const { settings, bucket, credentials } = await read(variables);
  return { ...settings, storage: new (store === 's3' ? S3Storage : EpochStorage)({ ...bucket, credentials }) };
};

const inService = async (store, flags, variables, refused) => {
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) {
    if (!variables[name]) throw refused(`${name} = (not set): --store ${store} takes the credentials from AWS_…`);
  }
  const others = Object.fromEntries(Object.entries(variables).filter(([name]) => !OF_A_BUCKET.test(name)));
  const { DynamoDBStorage, Route53Storage } = await import('edgelect');
  // There is no bucket, but variables are read with the one that they name.
  const { settings, credentials } = await read({ ...others, EDGELECT_BUCKET: 'none' });
  const options = { endpoint: flags.endpoint || variables[STORES[store].endpoint] || variables.AWS_ENDPOINT_URL || undefined, credentials };
  if (store === 'dynamodb') {
    const region = flags.region || variables.AWS_REGION || variables.AWS_DEFAULT_REGION || undefined;
    return { ...settings, storage: new DynamoDBStorage({ ...options, region, table: flags.table }) };
  }
  const { zone: hostedZoneId, domain: domainName, prefix: recordPrefix = DEFAULT_PREFIX } = flags;
  return { ...settings, storage: new Route53Storage({ ...options, hostedZoneId, domainName, recordPrefix }) };
};

// By a computed address, so that the bundle shares this module with the package; both files stand as deep in it.
const read = async (variables) => {
  const { readVariables } = await import(new URL('../engine.js', import.meta.url).href);
  return readVariables(variables);
};
