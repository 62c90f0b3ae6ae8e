// The bucket beside the lease, where the checkpoints are: conditional writes over a network that loses, delays and repeats.

const XML = (code) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>modelled</Message></Error>`;

export class Objects {
  #object = null;
  #writes = 0;
  #newest = 0;
  #schedule;
  #chance;

  constructor(schedule, chance) {
    this.#schedule = schedule;
    this.#chance = chance;
  }

  /** A request of a member with these credentials, which has authority for the term that it names. */
  async fetch(face, { method, headers, body }) {
    const { runtime, healed, leaseMs, count } = this.#schedule;
    const chance = this.#chance;
    if (!face.leadsNow) face.broke('a checkpoint is sent under authority', method);
    const fate = healed ? 'usual' : chance.pick(['usual', 'usual', 'usual', 'usual', 'lost', 'unanswered', 'late', 'before', 'after', 'conflict']);
    count(`checkpoint ${method} ${fate}`);
    await runtime.sleep(1 + chance.below(leaseMs / 20));
    if (fate === 'lost') return new Promise(() => {});
    if (fate === 'late') await runtime.sleep(chance.below(3 * leaseMs));
    if (fate === 'before') return this.#answer(503, XML('SlowDown'));
    if (fate === 'conflict' && method === 'PUT') return this.#answer(409, XML('ConditionalRequestConflict'));
    const answer = method === 'PUT' ? this.#put(face, headers, body) : this.#get(headers);
    await runtime.sleep(1 + chance.below(leaseMs / 20));
    if (fate === 'unanswered') return new Promise(() => {});
    return fate === 'after' ? this.#answer(503, XML('SlowDown')) : answer;
  }

  #answer(status, body, etag) {
    const date = new Date(this.#schedule.trueMs).toUTCString();
    return { status, headers: { date, ...(etag && { etag }) }, body };
  }

  #get(headers) {
    if (!this.#object) return this.#answer(404, XML('NoSuchKey'));
    const { text, etag } = this.#object;
    return headers['if-none-match'] === etag ? this.#answer(304, '', etag) : this.#answer(200, text, etag);
  }

  #put(face, headers, body) {
    const holds = headers['if-none-match'] === '*' ? this.#object === null : headers['if-match'] === this.#object?.etag;
    if (!holds) return this.#answer(412, XML('PreconditionFailed'));
    const text = new TextDecoder().decode(body);
    const { term } = JSON.parse(text);
    if (!(term >= this.#newest)) face.broke('no lower token changes a checkpoint', `${term} after ${this.#newest}`);
    this.#newest = term;
    this.#writes += 1;
    this.#object = { text, etag: `"${this.#writes}"` };
    return this.#answer(200, '', this.#object.etag);
  }
}
