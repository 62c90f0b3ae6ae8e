export class EdgelectError extends Error {
  constructor(message, { code, field, status, storeCode, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'EdgelectError';
    this.code = code;
    for (const [name, value] of Object.entries({ field, status, storeCode })) {
      if (value !== undefined && value !== null) this[name] = value;
    }
  }
}

export const wrongOption = (field, value, rule) =>
  new EdgelectError(`${field} = (${value === null ? 'null' : typeof value}): ${rule}`, { code: 'EDGELECT_CONFIG', field });

/** Refuses an option that a call does not have. One that is undefined or null counts as not given. */
export const checkNames = (options, names, taker) => {
  const unknown = Object.keys(options).find((name) => !names.includes(name) && options[name] !== undefined && options[name] !== null);
  if (unknown === undefined) return;
  const known = names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : names[0];
  throw new EdgelectError(`${unknown} = (not shown): no such option; ${taker} takes ${known}`, { code: 'EDGELECT_CONFIG', field: unknown });
};

/** The options of a call, which are these and no others. */
export const callOptions = (given, names, taker) => {
  const options = optionsOf(given ?? undefined, `${taker} takes an object, such as { signal }`);
  if (typeof options.throwIfAborted === 'function') throw wrongOption('options', options, 'an AbortSignal is given as { signal }');
  checkNames(options, names, taker);
  return options;
};

/** Those of every stop. */
export const STOP_OPTIONS = ['park', 'release', 'signal'];

/** As in src/lease.rs. */
const FORMATS = ['native', 'kubernetes'];

/** How a storage says that it keeps records, if it does. Anything else would break the wasm's glue, or the first request. */
export const checkFormat = (format) => {
  if (format === undefined || format === null || FORMATS.includes(format)) return format;
  const rule = 'must be native or kubernetes';
  if (typeof format !== 'string') throw wrongOption('format', format, rule);
  throw new EdgelectError(`format = ${JSON.stringify(format.slice(0, 60))}: ${rule}`, { code: 'EDGELECT_CONFIG', field: 'format' });
};

/** The shortest time between two writes that a storage says of itself. */
export const checkWritesApart = (ms) => {
  if (ms === undefined || ms === null || (typeof ms === 'number' && ms >= 0 && ms <= 60_000)) return ms;
  throw wrongOption('writesApart', ms, 'must be milliseconds from 0 to 60000: the shortest time between two writes of one object');
};

/** Options as an object: those that were given, none where they were left out. */
export const optionsOf = (given = {}, takes, field = 'options') => {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrongOption(field, given, takes);
  return given;
};

/** What somebody threw, as a text; they may throw anything. */
export const textOf = (thrown) => {
  try {
    return String(thrown?.message ?? thrown);
  } catch {
    return 'something that has no text';
  }
};

/** The time of a `Date`, of whatever realm; undefined for anything else. */
export const timeOf = (value) => {
  try {
    return Date.prototype.getTime.call(value);
  } catch {
    return undefined;
  }
};

/** Whether JSON would change this value or leave it out, in silence. */
export const isLost = (value) =>
  ['bigint', 'function', 'symbol'].includes(typeof value) || (typeof value === 'number' && !Number.isFinite(value));

/** JSON that does not lose a wrong value: what JSON would change (NaN, a function) arrives as an object that no
 * option accepts, and is refused by the option's name. */
export const toJson = (options) => {
  const unfit = (cause) => new EdgelectError('the options must be plain data', { code: 'EDGELECT_CONFIG', cause });
  let json;
  try {
    json = JSON.stringify(options, (_name, value) => {
      if (!isLost(value)) return value;
      const type = typeof value;
      return { 'not JSON': type === 'function' || type === 'symbol' ? type : String(value) };
    });
  } catch (cause) {
    throw unfit(cause);
  }
  if (typeof json !== 'string') throw unfit();
  return json;
};

/** Reads the options of a call that must begin whatever they are: what is wrong counts as not given, until `throwWrong`. */
export const lenient = () => {
  let wrong;
  const read = (check, otherwise) => {
    try {
      return check();
    } catch (error) {
      wrong ??= { error };
      return otherwise;
    }
  };
  const throwWrong = () => {
    if (wrong) throw wrong.error;
  };
  return { read, throwWrong };
};

/** The signal among the options of a call, if there is one. */
export const signalOf = (options) => {
  const signal = options?.signal ?? undefined;
  const methods = ['addEventListener', 'removeEventListener', 'throwIfAborted'];
  if (signal === undefined || methods.every((name) => typeof signal[name] === 'function')) return signal;
  throw wrongOption('signal', signal, 'must be an AbortSignal');
};

/** Waits for a promise, or for the signal to fire; what the promise stands for goes on. */
export const unlessAborted = async (promise, signal) => {
  if (!signal) return promise;
  let onAbort;
  const aborted = new Promise((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
};
