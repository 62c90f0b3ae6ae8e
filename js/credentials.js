import { EdgelectError, wrongOption } from './errors.js';

/** How long before their expiry credentials are asked for again. */
const EARLY_MS = 60_000;
/** How long what a provider gave because the store refused its last word is not asked for again. */
const REFUSED_MS = 5_000;
/** How long a provider may take before it is asked again: one that hangs once must not starve the elector. */
const PATIENCE_MS = 10_000;

/** The fields that the wasm reads. What is no text is left out, and then refused by its name. */
export const plainCredentials = (given) => {
  const { accessKeyId, secretAccessKey, sessionToken } = given ?? {};
  return { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? undefined };
};

// As in src/vars.rs.
const ONE_LINE = 'must be a text of one line without control characters; what was read from a file often ends with a newline: remove it';
const RULE = 'a provider gives { accessKeyId, secretAccessKey, sessionToken? }, each a text that is not empty';

/** The same of what a provider gave, which must be whole, and of one line each, before it takes the place of what is good. */
const wholeCredentials = (given) => {
  const plain = plainCredentials(given);
  const isText = (value) => typeof value === 'string' && value !== '';
  for (const name of ['accessKeyId', 'secretAccessKey']) {
    if (!isText(plain[name])) throw wrongOption(`credentials.${name}`, plain[name], RULE);
  }
  if (plain.sessionToken !== undefined && typeof plain.sessionToken !== 'string') throw wrongOption('credentials.sessionToken', plain.sessionToken, RULE);
  const broken = Object.keys(plain).find((name) => /\p{Cc}/u.test(plain[name] ?? ''));
  if (broken === undefined) return plain;
  throw new EdgelectError(`credentials.${broken} = (not shown): ${ONE_LINE}`, { code: 'EDGELECT_CONFIG', field: `credentials.${broken}` });
};

/** A Date of another realm, a number and an ISO text all make a date; a bigint and a Symbol throw instead. */
const dateOf = (value) => {
  try {
    return new Date(value).getTime();
  } catch {
    return NaN;
  }
};

/** When credentials expire, in milliseconds since the Unix epoch; Infinity for never. */
export const expiryOf = (given) => {
  const expiration = given?.expiration ?? null;
  if (expiration === null) return Infinity;
  const ms = dateOf(expiration);
  if (Number.isNaN(ms)) throw wrongOption('credentials.expiration', expiration, 'must be a Date, or what makes one');
  return ms;
};

/** Whether less than `ms` have passed. Not by the wall clock, which may step back; where a single clock did, they count as passed. */
const isWithin = (ms, sinceMs) => {
  const passedMs = performance.now() - sinceMs;
  return passedMs >= 0 && passedMs < ms;
};

/** A provider of credentials, asked no more often than need be: `(fresh) => credentials`. `fresh` says that the ones
 * given last were refused; while that was answered a moment ago, by another elector's question perhaps, what was given
 * then is given again. */
export const keeper = (provider) => {
  let newest;
  let asking;
  let count = 0;
  let refusedMs = -Infinity;
  const ask = (fresh = false) => {
    if (asking && isWithin(PATIENCE_MS, asking.sinceMs)) return asking.given;
    count += 1;
    const number = count;
    const given = (async () => {
      // Those of the AWS SDK keep what they gave, and give it again unless they are told otherwise.
      const credentials = await (fresh ? provider({ forceRefresh: true }) : provider());
      return { ...wholeCredentials(credentials), expiresMs: expiryOf(credentials), number };
    })();
    asking = { given, sinceMs: performance.now() };
    const answered = () => {
      if (asking?.given === given) asking = undefined;
    };
    // What it gives is kept even if nobody waits any more, but not over what a later question brought.
    given.then((credentials) => {
      const { expiresMs } = credentials;
      // Nor do expired ones take the place of better ones.
      const worse = expiresMs <= Date.now() && newest?.expiresMs > expiresMs;
      if (!(newest?.number > number) && !worse) newest = credentials;
      answered();
    }, answered);
    return given;
  };
  return async (fresh) => {
    const leftMs = newest ? newest.expiresMs - Date.now() : 0;
    if (leftMs <= 0) return ask();
    if (fresh && !isWithin(REFUSED_MS, refusedMs)) {
      refusedMs = performance.now();
      return ask(true);
    }
    // They are good for this request; the next ones come meanwhile.
    if (leftMs < EARLY_MS) ask();
    return newest;
  };
};
