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

/** JSON that does not lose a wrong value: NaN, Infinity and a bigint arrive as texts and are refused by name. */
export const toJson = (options) =>
  JSON.stringify(options, (_name, value) => {
    const lost = typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value));
    if (lost) return String(value);
    return typeof value === 'function' || typeof value === 'symbol' ? typeof value : value;
  });
