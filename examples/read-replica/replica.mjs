// The data of one node, and how it reaches the other.

const LIMIT_MS = 1_000;

/** Values by key. It refuses what an earlier term wrote: that is what a fencing token is for. */
export class Replica {
  #items = new Map();
  token = 0;
  #sequence = 0;

  get(key) {
    return this.#items.get(key);
  }

  next(token) {
    return token === this.token ? this.#sequence + 1 : 1;
  }

  /** Whether something was written before this entry that this node has not. */
  misses({ token, sequence }) {
    return token > this.token || (token === this.token && sequence > this.#sequence + 1);
  }

  apply({ key, value, token, sequence }) {
    if (!Number.isSafeInteger(token) || token < this.token) return false;
    if (token === this.token && sequence <= this.#sequence) return true;
    this.token = token;
    this.#sequence = sequence;
    this.#items.set(key, { value, token });
    return true;
  }

  snapshot() {
    return { token: this.token, sequence: this.#sequence, items: [...this.#items] };
  }

  adopt({ token, sequence, items }) {
    // One that was held up on its way is older than what has come since; what is no snapshot takes nothing away.
    if (!Number.isSafeInteger(token) || token < this.token || (token === this.token && !(sequence >= this.#sequence))) return;
    this.token = token;
    this.#sequence = sequence;
    this.#items = new Map(items);
  }
}

/** The other node at an address. */
export const replicateTo = (peer) => {
  const ask = async (path, init) => fetch(new URL(path, peer), { ...init, redirect: 'error' });
  return {
    async snapshot() {
      return (await ask('/snapshot', { signal: AbortSignal.timeout(LIMIT_MS) })).json();
    },
    /** Hands over one write. A node that does not answer is taken for dead: it catches up when it comes back. One that answers has the
     * write, or the write fails. */
    async send(entry, signal) {
      const limit = new AbortController();
      const end = () => limit.abort();
      // Not AbortSignal.any: of a timeout that nothing else holds Node forgets that it should fire.
      // https://github.com/nodejs/node/issues/57736
      const timer = setTimeout(end, LIMIT_MS);
      if (signal.aborted) end();
      signal.addEventListener('abort', end);
      try {
        const init = { method: 'POST', body: JSON.stringify(entry), headers: { 'content-type': 'application/json' }, signal: limit.signal };
        const { status } = await ask('/replicate', init).catch(() => ({ status: 0 }));
        return { refused: status === 409, failed: ![0, 200, 409].includes(status) };
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
      }
    },
  };
};
