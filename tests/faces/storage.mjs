// A storage of an application's own: the world's store by `get` and `putIfMatch`.

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

  async putIfMatch(key, body, etag, { signal }) {
    const condition = etag === null ? { 'if-none-match': '*' } : { 'if-match': etag };
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
