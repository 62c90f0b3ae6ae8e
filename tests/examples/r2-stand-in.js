// Stands in for the package's own R2Storage until that is merged.
export class R2Storage {
  #bucket;

  constructor(bucket) {
    this.#bucket = bucket;
  }

  async get(key) {
    const found = await this.#bucket.get(key);
    return found && { body: await found.text(), etag: found.httpEtag, lastModified: found.uploaded.getTime() };
  }

  async putIfMatch(key, body, etag) {
    const onlyIf = new Headers(etag === null ? { 'if-none-match': '*' } : { 'if-match': etag });
    const written = await this.#bucket.put(key, body, { onlyIf });
    return written && { etag: written.httpEtag };
  }
}
