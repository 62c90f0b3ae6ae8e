// The objects of an `S3Storage`'s bucket, to the byte: what its elector does not need, and who looks at a record does.
import { Engine, checked } from './engine.js';
import { EdgelectError } from './errors.js';

/** The `get` and `putIfMatch` of a storage over one bucket, as `bucketOf` gives it. What is not known is thrown, with
 * `EDGELECT_UNKNOWN` where a write may have landed. */
export class Objects {
  #bucket;

  constructor({ json, ...bucket }) {
    // Bytes pass unchanged in this format alone, whatever the records of the group are written in.
    this.#bucket = { ...bucket, json: JSON.stringify({ ...JSON.parse(json), format: 'native' }) };
  }

  /** Refuses a key that no store would take. */
  check(key) {
    try {
      checked(JSON.stringify({ lockfilePath: key }), this.#bucket);
    } catch (error) {
      throw new EdgelectError(error.message.replace(/^lockfilePath/, 'key'), { code: error.code, field: 'key' });
    }
  }

  async get(key, { signal }) {
    const { outcome, version, message, heard } = await this.#perform(key, {}, signal);
    if (outcome === 'missing') return null;
    if (outcome === 'found') return { etag: version, body: heard.body };
    throw new EdgelectError(message, { code: 'EDGELECT_STORE' });
  }

  async putIfMatch(key, body, etag, { signal }) {
    const order = { body: new TextDecoder().decode(body), version: etag ?? undefined };
    const { outcome, message, heard, store } = await this.#perform(key, order, signal);
    if (outcome === 'refused') return null;
    if (outcome === 'written') return { etag: heard.headers.etag };
    const put = `${store}: PUT ${JSON.stringify(key)} was answered`;
    // A success that no store has to say alone, such as a web page's.
    const vague = `${put} with a success that names no version, so something else than the store may have said it; read the object`;
    const why = heard?.status === 409 ? 'another write was under way' : 'that does not say that its condition did not hold, and something else than the store may have said it';
    const doubtful = `${put} ${heard?.status}: ${why}; read the object`;
    throw new EdgelectError(message ?? (outcome === 'doubtful' ? doubtful : vague), { code: outcome === 'rejected' ? 'EDGELECT_STORE' : 'EDGELECT_UNKNOWN' });
  }

  /** One operation: what it came to, and `heard`, the answer that said so. */
  #perform(key, order, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      let answer;
      let heard;
      const onEvent = ({ type, error, ...rest }) => {
        if (type === 'answered') answer = rest;
        else {
          signal.removeEventListener('abort', onAbort);
          if (error) reject(error);
          else resolve({ ...answer, heard });
        }
      };
      // Of several, as where the store sent us to another address, the last one counts.
      const onAnswer = (one) => {
        heard = one;
      };
      const engine = new Engine({ settings: JSON.stringify({ lockfilePath: key }), bucket: this.#bucket, onEvent, onAnswer });
      const onAbort = () => {
        engine.close();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      engine.ask(order);
    });
  }
}
