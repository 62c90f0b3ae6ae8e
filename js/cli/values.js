// What a starter has to know: its flags, their defaults, what may stand in them, and the questions on a terminal.
import { createInterface } from 'node:readline/promises';
import { readCron } from './cron.js';

const WRONG_VALUES = 2;
const INTERRUPTED = 130;
/** Characters that mean nothing special in JavaScript, TOML, JSON, Markdown, a shell, and any reader of `.env` files. */
const PLAIN = /^[\w./@:+=-]*$/;
/** Never sent: the elector that judges the values is not started. */
const NO_CREDENTIALS = { accessKeyId: 'none', secretAccessKey: 'none' };

/** Each value: its flag, the flag's help, the question, and what is taken without an answer. */
const VALUES = {
  bucket: { flag: '--bucket <name>', what: 'the bucket that has the lease', question: 'Bucket', otherwise: () => 'edgelect' },
  endpoint: {
    flag: '--endpoint <url>', what: "the store's address, such as https://ACCOUNT.r2.cloudflarestorage.com", question: 'Address of the store',
    otherwise: () => '', shown: 'Amazon S3',
  },
  region: {
    flag: '--region <name>', what: "the bucket's region", question: 'Region',
    otherwise: ({ endpoint }) => (/\.r2\.cloudflarestorage\.com\b/.test(endpoint) ? 'auto' : 'us-east-1'), inHelp: 'us-east-1, or auto for R2',
  },
  // With the project's name in it: two projects that share a bucket by default must not share a lease.
  lockfilePath: {
    flag: '--lockfile-path <key>', what: 'the lease object; those who share it are one group', question: 'Lease object in the bucket',
    otherwise: ({ name }) => `leader/${name}.json`,
  },
  serverId: {
    flag: '--server-id <name>', what: 'the name by which the lease shows this member', question: 'Name of this member',
    otherwise: ({ kind, name }) => (kind === 'worker' ? name : ''), shown: 'a random one at each start',
  },
  cron: { flag: '--cron <fields>', what: 'when the work is due, in quotes', question: 'Cron', otherwise: () => '* * * * *' },
};
/** Which value a field of the elector's own settings is. */
const OF_FIELD = { bucket: 'bucket', endpoint: 'endpoint', region: 'region', lockfilePath: 'lockfilePath', serverId: 'serverId' };

/** What a user can put right, told in one line. */
export class Refusal extends Error {
  constructor(message, exitCode = WRONG_VALUES) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The flags of a kind of project, each with its help. */
export const valueOptions = ({ kind, values }) => values.map((value) => {
  const { flag, what, otherwise, shown, inHelp } = VALUES[value];
  return [flag, `${what} (default: ${inHelp ?? (otherwise({ kind, name: 'DIR' }) || shown)})`];
});

/** All values of a project, with the defaults of those that nobody gave. */
export const completed = ({ kind, name, values: wanted }, given) => {
  const values = { kind, name };
  for (const value of wanted) values[value] = given[value] ?? VALUES[value].otherwise(values);
  return values;
};

/** Loads the library, and gives a function that says what is wrong with the values given so far, or `undefined`. */
export const readChecker = async (place) => {
  const { Elector, S3Storage } = await import('edgelect');
  return (given) => {
    const { bucket, endpoint, region, lockfilePath, serverId, cron } = completed(place, given);
    try {
      const storage = new S3Storage({ bucket, endpoint: endpoint || undefined, region, credentials: NO_CREDENTIALS });
      new Elector({ storage, lockfilePath, serverId: serverId || undefined });
    } catch (error) {
      if (!(error.field in OF_FIELD)) throw error;
      return `${nameOf(OF_FIELD[error.field])} ${error.message.replace(/^\w+ = /, '')}`;
    }
    if (place.kind === 'worker' && bucket.includes('.')) return `${nameOf('bucket')} ${JSON.stringify(bucket)}: R2 has no dots in a bucket's name: use dashes`;
    const special = Object.entries({ lockfilePath, serverId }).find(([, text]) => !PLAIN.test(text));
    if (special) return `${nameOf(special[0])} ${JSON.stringify(special[1])}: use letters, digits and . _ - / @ : + = here; another name can be written into the files later`;
    return cron === undefined ? undefined : wrongCron(cron, place.dialect);
  };
};

function wrongCron(cron, dialect) {
  try {
    readCron(cron, dialect);
    return undefined;
  } catch (error) {
    return `${nameOf('cron')} ${JSON.stringify(cron)}: ${error.message}`;
  }
}

const nameOf = (value) => VALUES[value].flag.split(' ')[0];

/** Asks on the terminal for what no flag gave, and again where an answer is wrong; gives all of them.
 * @throws Refusal for Ctrl-C and Ctrl-D. */
export const ask = async (place, given, check) => {
  const answers = { ...given };
  const left = place.values.filter((value) => given[value] === undefined);
  const screen = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new AbortController();
  screen.once('close', () => closed.abort());
  try {
    if (left.length > 0) console.log('Enter takes what stands in brackets.');
    for (const value of left) {
      const otherwise = completed(place, answers)[value];
      const { question, shown } = VALUES[value];
      let wrong;
      do {
        const answer = await screen.question(`  ${question} [${otherwise || shown}]: `, { signal: closed.signal });
        answers[value] = answer.trim() || otherwise;
        wrong = check(answers);
        if (wrong) console.log(`  ${wrong}`);
      } while (wrong);
    }
    return answers;
  } catch (error) {
    if (!closed.signal.aborted) throw error;
    console.log();
    throw new Refusal('nothing was written', INTERRUPTED);
  } finally {
    screen.close();
  }
};
