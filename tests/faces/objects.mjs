// The bucket beside the lease, where the checkpoints are and the leases of other groups: conditional writes over a network that
// loses, delays and repeats.

const XML = (code) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>modelled</Message></Error>`;
const FATES = ['usual', 'usual', 'usual', 'usual', 'lost', 'unanswered', 'late', 'before', 'after', 'conflict'];
const CHECKPOINT = 'progress.json';

export class Objects {
  /** `{ text, etag }` by key. */
  #objects = new Map();
  #writes = 0;
  #newest = 0;
  #schedule;
  #chance;

  constructor(schedule, chance) {
    this.#schedule = schedule;
    this.#chance = chance;
  }

  /** A request of a member with these credentials, which has authority for the term that it names where it is of a checkpoint. */
  async fetch(face, key, { method, headers, body }) {
    const { runtime, healed, leaseMs, count } = this.#schedule;
    const chance = this.#chance;
    const ofTerm = key === CHECKPOINT;
    if (ofTerm && !face.leadsNow) face.broke('a checkpoint is sent under authority', method);
    const fate = healed ? 'usual' : chance.pick(FATES);
    count(`${ofTerm ? 'checkpoint' : 'other group'} ${method} ${fate}`);
    await runtime.sleep(1 + chance.below(leaseMs / 20));
    if (fate === 'lost') return new Promise(() => {});
    if (fate === 'late') await runtime.sleep(chance.below(3 * leaseMs));
    if (fate === 'before') return this.#answer(503, XML('SlowDown'));
    if (fate === 'conflict' && method === 'PUT') return this.#answer(409, XML('ConditionalRequestConflict'));
    const text = body && new TextDecoder().decode(body);
    const answer = method === 'PUT' ? this.#put(face, key, headers, text) : this.#get(key, headers);
    await runtime.sleep(1 + chance.below(leaseMs / 20));
    if (fate === 'unanswered') return new Promise(() => {});
    return fate === 'after' ? this.#answer(503, XML('SlowDown')) : answer;
  }

  #answer(status, body, etag) {
    const date = new Date(this.#schedule.trueMs).toUTCString();
    return { status, headers: { date, ...(etag && { etag }) }, body };
  }

  #get(key, headers) {
    const found = this.#objects.get(key);
    if (!found) return this.#answer(404, XML('NoSuchKey'));
    const { text, etag } = found;
    return headers['if-none-match'] === etag ? this.#answer(304, '', etag) : this.#answer(200, text, etag);
  }

  #put(face, key, headers, text) {
    const found = this.#objects.get(key);
    const holds = headers['if-none-match'] === '*' ? found === undefined : headers['if-match'] === found?.etag;
    if (!holds) return this.#answer(412, XML('PreconditionFailed'));
    if (key === CHECKPOINT) {
      const { term } = JSON.parse(text);
      if (!(term >= this.#newest)) face.broke('no lower token changes a checkpoint', `${term} after ${this.#newest}`);
      this.#newest = term;
    }
    this.#writes += 1;
    const etag = `"${this.#writes}"`;
    this.#objects.set(key, { text, etag });
    return this.#answer(200, '', etag);
  }
}
