// The store that a command asks, as flags, variables and profiles name it.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import spec from '../../src/cli/commands.json';
import { EXIT } from './command.js';

const DEFAULTS = { EDGELECT_STORE: 's3', EDGELECT_LOCKFILE_PATH: 'leader.json' };
/** What only one of the stores has. */
const STORE_DEFAULTS = { route53: { EDGELECT_RECORD_PREFIX: 'lock' } };
const FLAGS = [...spec.sets.store.options, ...spec.sets.member.options].map((flag) => ({
  ...flag, name: flag.long.replace(/-(\w)/g, (_all, letter) => letter.toUpperCase()),
}));
const PLACES = { s3: 'bucket', epochs: 'bucket', dynamodb: 'table', route53: 'zone', r2: 'binding' };
/** What says where a store is, and the keys to it. */
const OF_A_PLACE = /^EDGELECT_(ENDPOINT|BUCKET|REGION|PATH_STYLE|FORMAT|TABLE|HOSTED_ZONE_ID|DOMAIN_NAME|RECORD_PREFIX|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)$/;
const KEYS = ['EDGELECT', 'AWS'].flatMap((family) => [`${family}_ACCESS_KEY_ID`, `${family}_SECRET_ACCESS_KEY`]);
const SECRETS = [...KEYS, 'EDGELECT_SESSION_TOKEN', 'AWS_SESSION_TOKEN'];

/** The options of `new Elector` for the store that flags and variables name.
 * @throws EdgelectError `EDGELECT_CONFIG` for what is missing or wrong. */
export const electorOptions = async (flags, environment = process.env) => {
  const { EdgelectError } = await import('edgelect');
  const refused = (message) => new EdgelectError(message, { code: 'EDGELECT_CONFIG' });
  const variables = variablesOf(flags, environment, refused);
  if (variables.EDGELECT_STORE === 'r2') return inBinding(variables, flags.binding, refused);
  // A flag wins over variables: an operator who names a profile means its account.
  if (flags.profile) for (const name of SECRETS) delete variables[name];
  const keys = KEYS.some((name) => variables[name]) ? undefined : await profileOf(variables, flags.profile, refused);
  const { readVariables } = await ours('engine.js');
  const { STORAGES } = await ours('storage.js');
  const { settings, kind, place, credentials } = readVariables({ ...variables, ...keys?.variables });
  return { ...settings, storage: new STORAGES[kind]({ ...place, credentials: keys?.provider ?? credentials }) };
};

/** As `electorOptions`, for a command that writes: two jobs that shared a default would be one group, and one of them would
 * never run.
 * @throws EdgelectError `EDGELECT_CONFIG` also where nobody has named the group. */
export const namedOptions = async (flags) => {
  if (flags.lockfilePath || process.env.EDGELECT_LOCKFILE_PATH) return electorOptions(flags);
  const { EdgelectError } = await import('edgelect');
  throw new EdgelectError('--lockfile-path = (not set): name the group: a key of its own for each job', { code: 'EDGELECT_CONFIG' });
};

/** Options that have a flag. */
const FLAG_OF = {
  leaderTimeout: '--lease', lockfilePath: '--lockfile-path', serverId: '--server-id', period: '--period', budget: '--budget', races: '--races',
  by: '--by', why: '--why', until: '--until',
};

/** Tells on standard error what a command has failed of; gives its exit code. */
export const codeOf = (error, name) => {
  const { code, message } = error;
  const plain = visible(message.replace(/^\w+(?= = )/, (option) => FLAG_OF[option] ?? option));
  const hint = code === 'EDGELECT_CONFIG' ? `\nSet it by a flag or a variable, credentials by a variable: edgelect ${name} --help.` : '';
  console.error(`edgelect: ${plain}${hint}`);
  return exitOf(error);
};

/** Codes of AWS's services that come with a 400 and say that a later request may be taken. */
const PASSING = /Throttl|LimitExceeded|ThroughputExceeded|TooManyRequests|PriorRequestNotComplete|RequestTimeout$|Transaction|Conflict/;

/** Whether a store has refused, and will go on refusing: what is wrong is here. */
export const isRefusal = ({ code, status, storeCode }) =>
  code === 'EDGELECT_STORE' && status >= 400 && status < 500 && ![408, 409, 412, 429].includes(status) && !PASSING.test(storeCode);

/** The exit code of an error. */
export const exitOf = (error) => (error.code === 'EDGELECT_CONFIG' || isRefusal(error) ? EXIT.settings : EXIT.failed);

/** A text of a store or a record on one line, in which nothing moves a cursor. */
export const visible = (text, most = 500) => String(text).slice(0, most).replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');

/** One line of JSON in which nothing moves a cursor either. */
export const jsonOf = (value) =>
  JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (one) => one.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''));

/** What one read of the stored record shows; `due` is `{ periodMs, lateMs }`. A `signal` ends it, and leaves nothing under way.
 * @throws EdgelectError `EDGELECT_STORE` for a store that does not answer, or refuses. */
export const look = async ({ storage, ...settings }, due, signal) => {
  const [{ Engine }, { bucketOf }, { EdgelectError }] = await Promise.all([ours('engine.js'), ours('bucket.js'), import('edgelect')]);
  signal?.throwIfAborted();
  let told;
  await new Promise((resolve) => {
    const onEvent = (event) => {
      if (event.type === 'finished') resolve();
      else told = event;
    };
    const engine = new Engine({ settings: JSON.stringify(settings), storage, bucket: bucketOf(storage), format: storage.format, onEvent });
    const onAbort = () => {
      engine.close();
      resolve();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    engine.look(due);
  });
  if (told?.type === 'looked') return told.shown;
  const { message, status, storeCode, cause } = told ?? {};
  throw new EdgelectError(message ?? 'the read broke down', { code: 'EDGELECT_STORE', status, storeCode, cause });
};

/** The variables that the flags stand for, and those that were set before. */
const variablesOf = (flags, environment, refused) => {
  const variables = Object.fromEntries(Object.entries(environment).filter(([name, text]) => /^(EDGELECT|AWS)_/.test(name) && text !== ''));
  const store = flags.store ?? variables.EDGELECT_STORE ?? DEFAULTS.EDGELECT_STORE;
  if (PLACES[store] !== PLACES[variables.EDGELECT_STORE ?? DEFAULTS.EDGELECT_STORE]) {
    for (const name of Object.keys(variables)) if (OF_A_PLACE.test(name)) delete variables[name];
  }
  for (const { name, long, of = [store], variable } of FLAGS) {
    if (flags[name] === undefined) continue;
    if (!of.includes(store)) {
      const known = FLAGS.filter((flag) => !flag.of || flag.of.includes(store)).map((flag) => `--${flag.long}`);
      throw refused(`--${long}: means nothing with --store ${store}, which has ${known.join(', ')}`);
    }
    if (variable) variables[variable] = String(flags[name]);
  }
  return { ...DEFAULTS, ...STORE_DEFAULTS[store], ...variables };
};

/** What has to be closed before the process can end. */
const open = [];
export const closeStores = () => Promise.all(open.splice(0).map((close) => close()));

/** A bucket that wrangler.toml of this folder binds, as Wrangler keeps it on this machine. */
const inBinding = async (variables, binding = 'EDGELECT_R2', refused) => {
  const require = createRequire(path.join(process.cwd(), 'package.json'));
  let wrangler;
  try {
    wrangler = await import(pathToFileURL(require.resolve('wrangler')).href);
  } catch {
    throw refused('--store r2: this folder has no wrangler: npm install -D wrangler, or take --store s3 and the S3 endpoint of R2');
  }
  const { env, dispose } = await wrangler.getPlatformProxy();
  open.push(dispose);
  console.error('edgelect: this is the R2 of Wrangler, on this machine: unless wrangler.toml says remote = true, nothing at Cloudflare is read or changed');
  const { R2Storage } = await import('edgelect');
  if (typeof env[binding]?.put !== 'function') throw refused(`--binding = ${JSON.stringify(binding)}: wrangler.toml of this folder binds no such bucket`);
  const { readVariables } = await ours('engine.js');
  // Variables are read with the bucket that they name.
  const { settings, place } = readVariables({ ...variables, EDGELECT_STORE: 's3', EDGELECT_BUCKET: 'none', AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' });
  return { ...settings, storage: new R2Storage(env[binding], { format: place.format }) };
};

/** The keys and the region of a profile, as variables that readVariables takes, and what gives the keys anew. */
const profileOf = async (variables, named, refused) => {
  // In a file of its own: most never load it, and it is larger than all the rest.
  const { readProfile } = await import(new URL('./profile.js', import.meta.url).href);
  const profile = named ?? variables.AWS_PROFILE;
  try {
    return await readProfile(profile, variables);
  } catch (error) {
    // Without a profile the missing variable is what to tell.
    if (profile === undefined) return undefined;
    // Its command line may have a secret in it.
    const why = /Command failed/.test(error.message) ? 'its credential_process has failed' : error.message.split('\n')[0];
    throw refused(`profile ${JSON.stringify(profile)}: ${why}`);
  }
};

// By a computed address, so that the bundle shares the modules with the package; both folders stand as deep in it.
const ours = (file) => import(new URL(`../${file}`, import.meta.url).href);
