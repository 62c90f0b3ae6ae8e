// A MemoryStorage that looks at no etag now and then, for the histories in wasm to find.
import { MemoryStorage } from '../../js/storage.js';

class Broken extends MemoryStorage {
  #writes = 0;

  putIfMatch(key, body, etag) {
    this.#writes += 1;
    return super.putIfMatch(key, body, this.#writes % 4 === 0 ? this.get(key)?.etag ?? null : etag);
  }
}

export const open = async () => ({ storage: new Broken(), close: async () => {} });
