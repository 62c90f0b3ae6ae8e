// Work that is split into shards, shared out over the processes that are alive.
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DynamoDBStorage, Shards } from 'edgelect';

const HELP = `node examples/shards/main.mjs [options]

Start it as often as you like, on one machine or on many. The processes share the shards out evenly, and each shard is led by
one of them at a time. Start one more: it gets its share from the others. End one: what it led goes to them.

  --shards N     how many shards there are (default 8); the same number everywhere
  --prefix NAME  what the shards' lockfilePaths begin with (default shards)
  --table NAME   keep the leases in this DynamoDB table instead of a bucket (EDGELECT_REGION or AWS_REGION, EDGELECT_ENDPOINT)
  --init         start the groups: once, before the first process ever runs, in no start script
  --help         this text

The bucket comes from variables (docs/options.md), as do the timing and the credentials, which are those of AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or of the same names that begin with EDGELECT_, which go first:
  EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \\
    node examples/shards/main.mjs --shards 8`;

const NAME = `${os.hostname()}-${process.pid}`;

const say = (event, more) => console.log(JSON.stringify({ event, by: NAME, ...more }));

const wholeNumber = (name, text) => {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0 && number <= 1_000) return number;
  throw new Error(`--${name} = ${JSON.stringify(text)}: must be a whole number from 1 to 1000`);
};

const read = () => {
  const { values } = parseArgs({
    options: {
      shards: { type: 'string', default: '8' },
      prefix: { type: 'string', default: 'shards' },
      table: { type: 'string' },
      init: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  return { ...values, shards: wholeNumber('shards', values.shards) };
};

/** The credentials of one family of variables: an id of the one never goes with a secret of the other. */
const credentials = ({ env }) => {
  const of = (prefix) => ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'SESSION_TOKEN'].map((name) => env[`${prefix}_${name}`] || undefined);
  const prefix = ['EDGELECT', 'AWS'].find((one) => of(one).slice(0, 2).some(Boolean)) ?? 'AWS';
  const [accessKeyId, secretAccessKey, sessionToken] = of(prefix);
  if (accessKeyId && secretAccessKey) return { accessKeyId, secretAccessKey, sessionToken };
  throw new Error(`${prefix}_${accessKeyId ? 'SECRET_ACCESS_KEY' : 'ACCESS_KEY_ID'} is not set`);
};

/** One storage for all shards: a table, or what the variables name. */
const storageOf = (table) => {
  if (table === undefined) return undefined;
  const { EDGELECT_ENDPOINT: endpoint, EDGELECT_REGION, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const region = EDGELECT_REGION || AWS_REGION || AWS_DEFAULT_REGION || undefined;
  return new DynamoDBStorage({ table, endpoint: endpoint || undefined, region, credentials: credentials(process) });
};

/** The work of one shard, in each of its terms. `term.signal` fires when it has to stop; `term.token` is for whatever it changes. */
const work = async (shard, term) => {
  say('leads', { shard, token: term.token });
  await sleep(2 ** 31 - 1, undefined, { signal: term.signal }).catch(() => {});
  say('lost', { shard, token: term.token });
};

const main = async () => {
  const { shards: count, prefix, table, init, help } = read();
  if (help) return console.log(HELP);
  const shards = new Shards({ storage: storageOf(table), prefix, shards: count, serverId: NAME });
  if (init) {
    await shards.init();
    return say('initialised', { shards: count });
  }
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => ending.abort());
  await shards.lead(work, { signal: ending.signal });
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
