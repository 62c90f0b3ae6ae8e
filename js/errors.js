export class EdgelectError extends Error {
  constructor(message, { code, field, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'EdgelectError';
    this.code = code;
    if (field !== undefined) this.field = field;
  }
}

/** An error that came out of wasm as the package's own class; anything else as it is. */
export const translate = (error) => {
  const ours = typeof error?.code === 'string' && error.code.startsWith('EDGELECT_');
  if (!ours || error instanceof EdgelectError) return error;
  return new EdgelectError(error.message, { code: error.code, field: error.field });
};

export const translated = (call) => {
  try {
    return call();
  } catch (error) {
    throw translate(error);
  }
};

export const wrongOption = (field, value, rule) =>
  new EdgelectError(`${field} = (${value === null ? 'null' : typeof value}): ${rule}`, { code: 'EDGELECT_CONFIG', field });

/** What somebody threw, as a text; they may throw anything. */
export const textOf = (thrown) => {
  try {
    return String(thrown?.message ?? thrown);
  } catch {
    return 'something that has no text';
  }
};

/** JSON that does not lose a wrong value: what JSON would change (NaN, a function) arrives as an object that no
 * option accepts, and is refused by the option's name. */
export const toJson = (options) => {
  try {
    return JSON.stringify(options, (_name, value) => {
      const type = typeof value;
      if (type === 'function' || type === 'symbol') return { 'not JSON': type };
      const lost = type === 'bigint' || (type === 'number' && !Number.isFinite(value));
      return lost ? { 'not JSON': String(value) } : value;
    });
  } catch (cause) {
    throw new EdgelectError('the options must be plain data', { code: 'EDGELECT_CONFIG', cause });
  }
};
