// The world's store by other ways than requests of S3: a storage of an application's own, and the binding of an R2 bucket.

const BUCKET = 'https://s3.example.com/jobs/';
const PLAIN = /^(?!W\/|\*)/;

export class OwnStorage {
  #runtime;
  #name;

  constructor(runtime, name) {
    this.#runtime = runtime;
    this.#name = name;
  }

  async get(key, { signal }) {
    const { status, headers, text } = await this.#ask(key, 'GET', {}, undefined, signal);
    if (status === 404 && text.includes('NoSuchKey')) return null;
    const etag = headers.get('etag');
    if (status !== 200 || text.startsWith('<?xml') || !etag || !PLAIN.test(etag)) throw new Error(`the storage failed: ${status}`);
    // Whoever stands between tells of a time that is not the store's.
    const told = (name) => (headers.get('via') ? undefined : Date.parse(headers.get(name) ?? ''));
    return { etag, body: text, date: told('date'), lastModified: told('last-modified') };
  }

  putIfMatch(key, body, etag, { signal }) {
    return this.put(key, body, etag === null ? { 'if-none-match': '*' } : { 'if-match': etag }, signal);
  }

  async put(key, body, condition, signal) {
    const { status, headers, text } = await this.#ask(key, 'PUT', condition, body, signal);
    if ([404, 409, 412].includes(status)) return null;
    if (status !== 200 || text.startsWith('<?xml')) throw new Error(`the storage failed: ${status}`);
    const made = headers.get('etag');
    return made && PLAIN.test(made) ? { etag: made } : {};
  }

  async #ask(key, method, more, body, signal) {
    const date = new Date(this.#runtime.wall).toISOString().replace(/[-:]|\.\d+/g, '');
    const headers = { authorization: `AWS4-HMAC-SHA256 Credential=${this.#name}/`, 'x-amz-date': date, ...more };
    const answer = await this.#runtime.fetch(BUCKET + key, { method, headers, body, signal });
    const { value } = await answer.body.getReader().read();
    return { status: answer.status, headers: answer.headers, text: new TextDecoder().decode(value ?? new Uint8Array()) };
  }
}

/** What a Worker has in `env`. A binding takes no signal: what is given up goes on, and this tells the world so. */
class Bucket {
  #own;
  signal;

  constructor(own) {
    this.#own = own;
  }

  head() {}

  async get(key) {
    const found = await this.#own.get(key, this);
    if (found === null) return null;
    // A binding always says when an object was written.
    if (!(found.lastModified > 0)) throw new Error('get: we encountered an internal error (10001)');
    const bytes = new TextEncoder().encode(found.body);
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(bytes);
        stream.close();
      },
    });
    return { httpEtag: found.etag, uploaded: new Date(found.lastModified), size: bytes.length, arrayBuffer: async () => bytes.buffer, body };
  }

  async put(key, body, { onlyIf }) {
    const written = await this.#own.put(key, body, Object.fromEntries(onlyIf), this.signal);
    if (written === null) return null;
    if (written.etag === undefined) throw new Error('put: we encountered an internal error (10001)');
    return { httpEtag: written.etag };
  }
}

/** The package's storage over a binding. */
export const newR2Storage = ({ R2Storage }, runtime, name) => {
  const bucket = new Bucket(new OwnStorage(runtime, name));
  return new (class extends R2Storage {
    get(key, options) {
      bucket.signal = options.signal;
      return super.get(key, options);
    }

    putIfMatch(key, body, etag, options) {
      bucket.signal = options.signal;
      return super.putIfMatch(key, body, etag, options);
    }
  })(bucket);
};
