import { wrongOption } from './errors.js';

/** How long before their expiry credentials are asked for again. */
const EARLY_MS = 60_000;
/** How long a provider may take before it is asked again: one that hangs once must not starve the elector. */
const PATIENCE_MS = 10_000;

/** The fields that the wasm reads. What is no text is left out, and then refused by its name. */
export const plainCredentials = (given) => {
  const { accessKeyId, secretAccessKey, sessionToken } = given ?? {};
  return { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? undefined };
};

/** When credentials expire, in milliseconds since the Unix epoch; Infinity for never. */
export const expiryOf = (given) => {
  const expiration = given?.expiration ?? null;
  if (expiration === null) return Infinity;
  // A Date of another realm, a number and an ISO text all make a date.
  const ms = new Date(expiration).getTime();
  if (Number.isNaN(ms)) throw wrongOption('credentials.expiration', expiration, 'must be a Date, or what makes one');
  return ms;
};

/** A provider of credentials, asked no more often than need be: `(fresh) => credentials`. `fresh` says that the ones
 * given last were refused. */
export const keeper = (provider) => {
  let newest;
  let asking;
  let askedMs;
  const ask = () => {
    if (asking && Date.now() - askedMs < PATIENCE_MS) return asking;
    askedMs = Date.now();
    const asked = (async () => {
      const given = await provider();
      return { ...plainCredentials(given), expiresMs: expiryOf(given) };
    })();
    asking = asked;
    const answered = () => {
      if (asking === asked) asking = undefined;
    };
    // What it gives is kept even if nobody waits any more.
    asked.then((given) => {
      newest = given;
      answered();
    }, answered);
    return asked;
  };
  return async (fresh) => {
    const leftMs = newest ? newest.expiresMs - Date.now() : 0;
    if (fresh || leftMs <= 0) return ask();
    // They are good for this request; the next ones come meanwhile.
    if (leftMs < EARLY_MS) ask();
    return newest;
  };
};
