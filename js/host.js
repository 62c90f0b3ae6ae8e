// What the wasm asks of its runtime: each operation is begun under a number and settled under it, once.
import { textOf } from './errors.js';

/** The answer headers that the wasm reads; no others cross. */
const ANSWER_HEADERS = [
  'age', 'content-type', 'date', 'edgelect-proof', 'etag', 'last-modified', 'location', 'retry-after', 'via', 'x-amz-bucket-region', 'x-amz-request-id',
];
/** The greatest status that crosses as what it is; which of them are statuses of HTTP, the wasm knows. */
const MAX_STATUS = 0xffff;
/** How many pieces of an answer's body are looked at; a real one has a few. */
const MOST_CHUNKS = 10_000;
// Node's UNABLE_TO_VERIFY_LEAF_SIGNATURE is a certificate's, and what somebody with a store of their own has to see.
const SECRET_NAME = '(?:(?<!(?:LEAF|CERT)_)signature|credential|authorization|(?:security|session)[-_ ]?token|secret[-_ ]?(?:access[-_ ]?)?key|customer-key)';
const QUOTE = String.raw`["'\\\]\s]|&quot;|\\u0022|%22`;
/** What shows that a text quotes a request or keys. A store's own sentence about a signature has none of it. */
const SECRETS = [
  String.raw`aws4-\w`,
  // A signature or a proof, whatever stands before it.
  '[0-9a-f]{64}',
  // As a header, a field of JSON or XML, a parameter of a URL, or a name and its value in a list.
  String.raw`${SECRET_NAME}(?:(?:${QUOTE}){0,4}(?:[:=>]|%(?:25)*3[ad])|(?:${QUOTE}){1,4},)(?:${QUOTE}|[>[{])*[a-z0-9+/]`,
  String.raw`${SECRET_NAME}[^a-z0-9]{1,8}[a-z0-9+/=%_.~-]{16}`,
  String.raw`\b(?:bearer|basic)\s+[a-z0-9+/=_.~-]{16}`,
  String.raw`\bsig=`,
  // So Node tells of a program that gives keys: with its whole command line.
  String.raw`\bcommand failed\b`,
  // So undici tells of a key or a token with a line end in it, which it shows.
  'invalid header value',
].map((pattern) => new RegExp(pattern, 'i'));
/** Names of errors that say no more than that it is one. */
const NO_NAMES = ['Error', 'TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'URIError', 'EvalError', 'AggregateError', 'EdgelectError'];

let onWorkers = false;

/** Workers have one clock, and it stands still between I/O. */
export const hasSingleClock = () => onWorkers || globalThis.navigator?.userAgent === 'Cloudflare-Workers';

/** Said by the entries that only Workers load: an old compatibility date or `no_global_navigator` hides the name. */
export const thisIsWorkers = () => {
  onWorkers = true;
};

export class Host {
  singleClock = hasSingleClock();
  /** Whether the storage is a backend of three calls and no versions. */
  locker;
  /** What failed last, as a plain error. */
  failure;
  #settle;
  #storage;
  #credentials;
  /** The runtime's timers, or those that many groups share. */
  #timers;
  /** Where requests wait for their turn, if many groups share one. */
  #budget;
  #onAnswer;
  #peerFetch;
  #waiting = [];
  /** What gives back the turn of each request that waits or is under way. */
  #turns = new Map();
  /** What cancels each operation that is under way. */
  #cancels = new Map();

  /** `settle` gets a function for each operation that ended, which tells a `RawElector` how; `onAnswer({ status, headers, body })` hears
   * each answer of a `fetch`; `shared` has what the groups of an `Electors` share. */
  constructor({ settle, storage, credentials, unref = false, onAnswer, locker = false, peerFetch, shared } = {}) {
    this.#settle = settle;
    this.#storage = storage;
    this.#credentials = credentials;
    // A call that is waited for has its own where those of the groups let the process end.
    this.#timers = (shared?.unref && !unref ? undefined : shared?.timers) ?? ownTimers(unref);
    this.#budget = shared?.budget;
    this.#onAnswer = onAnswer;
    this.#peerFetch = peerFetch;
    this.locker = locker;
  }

  random() {
    return crypto.getRandomValues(new Uint8Array(16));
  }

  sleep(id, ms) {
    this.#begin(id, (settle) => this.#timers.set(ms, () => settle((raw) => raw.slept(id))));
  }

  /** Whether a single clock that gives this may be held at a timer. */
  isHeld(ms) {
    return isHeld(ms);
  }

  /** Whether requests wait for their turn. */
  get shares() {
    return this.#budget !== undefined;
  }

  /** `urgency` is a number of the wasm's, and `fenceMs` when the term ends that depends on the request, if one does. */
  turn(id, urgency, fenceMs) {
    this.#begin(id, (settle) => {
      this.#turns.set(id, this.#budget.enter(urgency, fenceMs, () => settle((raw) => raw.turned(id))));
      return () => this.#giveBack(id);
    });
  }

  /** The request of this turn is over. */
  leave(id) {
    this.#waiting.push(() => this.#giveBack(id));
  }

  /** `headers` has each name and its value after it. */
  fetch(id, method, url, headers, body, limit) {
    this.#begin(id, this.#abortable(id, async (signal) => {
      // What is compressed on the way has another ETag, or a weak one.
      const init = { method, headers: { ...fromPairs(headers), 'accept-encoding': 'identity' }, redirect: 'manual', signal };
      // Bytes, because a text would grow a content type.
      if (body.length > 0) init.body = body;
      // Workers know `cache` only from some compatibility date on, and do not cache signed requests.
      if (!this.singleClock) init.cache = 'no-store';
      const answer = await readAnswer(await fetch(url, init), limit, signal);
      this.#onAnswer?.(answer);
      const { status, body: bytes, truncated } = answer;
      const pairs = Object.entries(answer.headers).flat();
      return (raw) => raw.fetched(id, status, pairs, bytes, truncated);
    }));
  }

  /** A question to a peer, by the application's own fetch where it brings one. */
  askPeer(id, url, limit) {
    this.#begin(id, this.#abortable(id, async (signal) => {
      const init = { redirect: 'manual', signal };
      if (!this.singleClock) init.cache = 'no-store';
      const ask = this.#peerFetch ?? fetch;
      const { status, headers, body, truncated } = await readAnswer(await ask(url, init), limit, signal);
      return (raw) => raw.fetched(id, status, Object.entries(headers).flat(), body, truncated);
    }));
  }

  credentials(id, fresh) {
    this.#begin(id, this.#abortable(id, async () => {
      const { accessKeyId, secretAccessKey, sessionToken } = await this.#credentials(fresh);
      return (raw) => raw.credentialsGiven(id, accessKeyId, secretAccessKey, sessionToken);
    }));
  }

  read(id, key, limit) {
    this.#begin(id, this.#abortable(id, async (signal) => {
      const found = await this.#storage.get(key, { signal });
      return found === null || found === undefined ? (raw) => raw.missing(id) : readFound(id, found, limit);
    }));
  }

  write(id, key, body, etag) {
    this.#begin(id, this.#abortable(id, async (signal) => {
      const written = await this.#storage.putIfMatch(key, body, etag ?? null, { signal });
      const newEtag = written ? validEtag(written) : undefined;
      return (raw) => (written ? raw.written(id, newEtag) : raw.refused(id));
    }));
  }

  /** `name` is `tryAcquire`, `renew` or `release`. */
  lock(id, name, shardId, ownerId, ttl) {
    this.#begin(id, this.#abortable(id, async (signal) => {
      if (name === 'release') {
        await this.#storage.release(shardId, ownerId, { signal });
        return (raw) => raw.locked(id, true);
      }
      const answer = await this.#storage[name](shardId, ownerId, ttl, { signal });
      if (typeof answer !== 'boolean') throw new Error(`${name} gave no true or false`);
      return (raw) => raw.locked(id, answer);
    }));
  }

  cancel(id) {
    const cancel = this.#cancels.get(id);
    this.#cancels.delete(id);
    if (cancel) this.#waiting.push(cancel);
  }

  /** Whether `startAll` has something to do. */
  get waits() {
    return this.#waiting.length > 0;
  }

  /** Starts what was begun and aborts what was cancelled. Not done at once: no code of the application's, a storage's or
   * an abort's listener, may run inside the wasm. One by one: a call that fails takes no other with it. */
  startAll() {
    while (this.#waiting.length > 0) this.#waiting.shift()();
  }

  /** Ends everything; nothing is settled any more. */
  close() {
    for (const id of [...this.#cancels.keys()]) this.cancel(id);
    this.startAll();
    for (const id of [...this.#turns.keys()]) this.#giveBack(id);
  }

  #giveBack(id) {
    const leave = this.#turns.get(id);
    this.#turns.delete(id);
    leave?.();
  }

  #begin(id, start) {
    this.#cancels.set(id, undefined);
    this.#waiting.push(() => {
      // Cancelled before it started.
      if (!this.#cancels.has(id)) return;
      this.#cancels.set(id, start((how) => {
        if (this.#cancels.delete(id)) this.#settle(how);
      }));
    });
  }

  /** What `work` gives tells how it ended. */
  #abortable(id, work) {
    return (settle) => {
      const controller = new AbortController();
      const finish = async () => {
        try {
          return await work(controller.signal);
        } catch (error) {
          this.failure = plainError(error);
          const { message } = this.failure;
          return (raw) => raw.failed(id, message);
        }
      };
      void finish().then(settle);
      return () => controller.abort();
    };
  }
}

/** Lets the process end while this timer is pending, where the runtime knows such a thing. */
export const unrefTimer = (timer) => {
  if (typeof timer === 'number') globalThis.Deno?.unrefTimer(timer);
  else timer?.unref?.();
};

/** What is pending of the package, of all electors in an isolate whose single clock is held at each until that has fired (S11). */
const pending = new Set();
// No cron trigger lasts longer. The timers of an event that was cancelled never fire, and nobody takes them back.
const FORGOTTEN_MS = 900_000;

const isHeld = (ms) => {
  let held = false;
  for (const timer of pending) {
    if (timer.dueMs === ms) held = true;
    else if (timer.dueMs + FORGOTTEN_MS <= ms) pending.delete(timer);
  }
  return held;
};

/** Sets a timer of the runtime. Gives a function that takes it back. */
export const setTimer = (ms, callback, unref = false) => {
  const own = {};
  if (hasSingleClock()) {
    own.dueMs = Date.now() + ms;
    pending.add(own);
  }
  const timer = setTimeout(() => {
    pending.delete(own);
    callback();
  }, ms);
  if (unref) unrefTimer(timer);
  return () => {
    pending.delete(own);
    clearTimeout(timer);
  };
};

/** The runtime's own timers. `set` gives a function that takes the timer back. */
export const ownTimers = (unref) => ({ set: (ms, callback) => setTimer(ms, callback, unref) });

const readAnswer = async (response, limit, signal) => {
  if (typeof response?.headers?.get !== 'function') throw new Error('fetch gave no Response');
  const { status } = response;
  if (!Number.isInteger(status) || status < 0 || status > MAX_STATUS) throw new Error('fetch gave no Response');
  const headers = {};
  for (const name of ANSWER_HEADERS) {
    const value = response.headers.get(name);
    if (typeof value === 'string') headers[name] = value;
  }
  let truncated = false;
  const chunks = [];
  let length = 0;
  const reader = response.body?.getReader();
  // A reader of somebody's own may have no `cancel`, or one that gives no promise.
  const abandon = () => void (async () => reader.cancel())().catch(() => {});
  if (reader) signal.addEventListener('abort', abandon, { once: true });
  for (let count = 0; reader && !truncated; count += 1) {
    const { done, value } = await reader.read();
    if (done) break;
    if (signal.aborted || count === MOST_CHUNKS) {
      abandon();
      throw new Error("the answer's body does not end");
    }
    const bytes = bytesOf(value);
    if (!bytes) throw new Error("the answer's body is not made of bytes");
    truncated = length + bytes.length > limit;
    chunks.push(truncated ? bytes.subarray(0, limit - length) : bytes);
    length += chunks.at(-1).length;
  }
  if (truncated) abandon();
  signal.removeEventListener('abort', abandon);
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return { status, headers, body, truncated };
};

/** An object of a list that has each name and its value after it. */
const fromPairs = (pairs) => {
  const object = {};
  for (let at = 0; at < pairs.length; at += 2) object[pairs[at]] = pairs[at + 1];
  return object;
};

const readFound = (id, found, limit) => {
  const { body, date, lastModified } = found;
  const etag = validEtag(found);
  if (!etag) return (raw) => raw.nonsense(id, 'get gave no etag, a text of at most 1024 characters');
  const [dateMs, lastModifiedMs] = [milliseconds(date), milliseconds(lastModified)];
  const tell = (bytes) => (raw) => raw.found(id, etag, bytes, dateMs, lastModifiedMs);
  // Cut before it crosses: what is too large for a record must not fill the wasm's memory.
  if (typeof body === 'string') return tell(new TextEncoder().encode(body.slice(0, limit)));
  const bytes = bytesOf(body);
  if (bytes) return tell(bytes.subarray(0, limit));
  return (raw) => raw.nonsense(id, 'get gave no body, a text or a Uint8Array');
};

/** A copy, whatever realm or class the bytes are of: what crosses is nobody's but ours. */
export const bytesOf = (value) =>
  ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]' ? new Uint8Array(value) : undefined;

// Half a surrogate pair crosses as another character, and two ETags would be one.
export const validEtag = ({ etag }) =>
  (typeof etag === 'string' && etag.length > 0 && etag.length <= 1024 && !/\p{Surrogate}/u.test(etag) ? etag : undefined);

const milliseconds = (value) => (Number.isFinite(value) && value > 0 && value <= Number.MAX_SAFE_INTEGER ? Math.floor(value) : undefined);

/** What somebody threw, as an error of ours: its name, its message and the cause's code (`ECONNREFUSED`), and nothing that hangs
 * on it; no message at all if somebody has put a signed request or keys into it. */
export const plainError = (error) => {
  const [name, text, cause] = [nameOf(error), textOf(error), causeOf(error)];
  // Before anything is cut: the mark may stand behind the secret.
  const hides = SECRETS.some((pattern) => [text, cause].some((part) => pattern.test(part)));
  let shown = hides ? 'an error whose text is not shown, because it quotes a signed request or a key' : text.slice(0, 200);
  if (!shown.includes(name)) shown = shown === '' ? name : `${name}: ${shown}`;
  if (cause && !hides) shown += ` (${cause.slice(0, 100)})`;
  return new Error(shown);
};

/** Its name, where that says what went wrong, as `AccessDenied` of a store or `NotCapable` of Deno do. */
const nameOf = (error) => {
  try {
    const { name } = error;
    const says = typeof name === 'string' && /^[A-Za-z]\w{0,59}$/.test(name) && !NO_NAMES.includes(name);
    return says ? name : '';
  } catch {
    return '';
  }
};

const causeOf = (error) => {
  try {
    return textOf(error.cause?.code ?? error.cause ?? '');
  } catch {
    return '';
  }
};
