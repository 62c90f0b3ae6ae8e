import { RawElector, checkSettings, fromVariables } from './dist/edgelect.js';
import { EdgelectError, toJson, translate, translated } from './errors.js';
import { S3Storage, bucketOf } from './storage.js';

export { EdgelectError } from './errors.js';
export { MemoryStorage, S3Storage } from './storage.js';

const CALLBACKS = ['onAcquireLeadership', 'onLoseLeadership', 'onNewLeader'];
const HEALTH_PATH = '/health/leadership';
// How long after the fence the elector's own word is waited for; well within any margin.
const LATE_MS = 5;

class Term {
  #controller = new AbortController();
  #remaining;

  constructor(token, remaining) {
    this.token = token;
    this.#remaining = remaining;
    Object.freeze(this);
  }

  get signal() {
    return this.#controller.signal;
  }

  remaining() {
    return this.signal.aborted ? 0 : this.#remaining();
  }

  static end(term, reason) {
    const message = `the authority of term ${term.token} has ended: ${reason}`;
    term.#controller.abort(new EdgelectError(message, { code: 'EDGELECT_LOST' }));
  }
}

export class Elector {
  #storage;
  #settings;
  #callbacks = {};
  #unref;
  #raw = null;
  #finished = null;
  #term = null;
  #watch = null;
  #waiters = new Set();
  #work = new Set();
  #losing = null;
  #resigning = [];
  #failure = null;
  #callbackError = null;

  constructor(options = {}) {
    const { storage, unref = false, ...rest } = options ?? {};
    for (const name of CALLBACKS) {
      const callback = rest[name];
      delete rest[name];
      if (callback === undefined || callback === null) continue;
      if (typeof callback !== 'function') throw wrongOption(name, callback, 'must be a function');
      this.#callbacks[name] = callback;
    }
    if (typeof unref !== 'boolean') throw wrongOption('unref', unref, 'must be true or false');
    this.#unref = unref;
    const fromEnvironment = storage === undefined || storage === null;
    const variables = fromEnvironment ? readVariables() : null;
    this.#storage = fromEnvironment ? variables.storage : storage;
    if (typeof this.#storage !== 'object') {
      throw wrongOption('storage', storage, 'must be an S3Storage, a MemoryStorage or an object with get and putIfMatch');
    }
    const given = Object.entries(rest).filter(([, value]) => value !== undefined);
    this.#settings = { ...variables?.settings, ...Object.fromEntries(given) };
    translated(() => checkSettings(toJson(this.#settings)));
    // An instance that nobody starts checks its storage all the same.
    this.#newRaw().free();
  }

  get config() {
    return JSON.parse(translated(() => checkSettings(toJson(this.#settings))));
  }

  async start() {
    if (this.#raw) return;
    const raw = this.#newRaw();
    this.#raw = raw;
    this.#failure = null;
    this.#finished = raw.run((json) => this.#onEvent(raw, JSON.parse(json))).then(
      () => this.#onFinished(raw),
      (error) => this.#onFinished(raw, translate(error)),
    );
  }

  async stop({ park = false } = {}) {
    if (!this.#raw) return;
    const finished = this.#finished;
    this.#raw.stop(park);
    // Somebody who stops from within onLoseLeadership does not wait for themselves.
    if (this.#losing !== null) this.#raw.workEnded(this.#losing);
    await finished;
  }

  async resign() {
    if (!this.#raw) return;
    const given = new Promise((resolve) => this.#resigning.push(resolve));
    this.#raw.resign();
    if (this.#losing !== null) this.#raw.workEnded(this.#losing);
    await given;
  }

  isLeader() {
    return this.#authority() !== null;
  }

  leaderId() {
    return this.#raw ? JSON.parse(this.#raw.status()).leaderId : null;
  }

  status() {
    const raw = this.#raw;
    if (!raw) {
      const { serverId, lockfilePath } = this.config;
      return stoppedStatus(serverId, lockfilePath, this.#failure?.message ?? this.#callbackError);
    }
    const status = JSON.parse(raw.status());
    return { ...status, error: status.error ?? this.#callbackError };
  }

  updateConfig(changes) {
    const settings = { ...this.#settings, ...changes };
    const json = toJson(settings);
    translated(() => (this.#raw ? this.#raw.configure(json) : checkSettings(json)));
    this.#settings = settings;
  }

  enablePeerMode(options = {}) {
    this.updateConfig({ ...options, peerMode: true });
  }

  waitForLeadership({ signal } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#term) return resolve(this.#term);
      if (!this.#raw) return reject(this.#failure ?? stoppedError());
      const done = (settle) => (value) => {
        signal?.removeEventListener('abort', onAbort);
        this.#waiters.delete(waiter);
        settle(value);
      };
      const waiter = { resolve: done(resolve), reject: done(reject) };
      const onAbort = () => waiter.reject(signal.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  async lead(work, { signal } = {}) {
    if (typeof work !== 'function') throw wrongOption('work', work, 'must be a function');
    signal?.throwIfAborted();
    const ours = !this.#raw;
    await this.start();
    const onAbort = () => void (ours ? this.stop() : this.resign());
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const term = await this.waitForLeadership({ signal });
        const running = (async () => work(term))();
        this.#work.add(running);
        try {
          return await running;
        } catch (error) {
          signal?.throwIfAborted();
          // The term was lost under the work: it may compete for another one.
          if (!term.signal.aborted || !this.#raw) throw error;
        } finally {
          this.#work.delete(running);
        }
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      await (ours ? this.stop() : this.resign());
    }
  }

  async init() {
    const raw = this.#newRaw();
    try {
      await raw.init();
    } catch (error) {
      throw translate(error);
    } finally {
      raw.free();
    }
  }

  async handleRequest(request) {
    const { pathname } = new URL(request.url);
    if (pathname !== HEALTH_PATH) return respond(404, '{"error":"not found"}');
    if (request.method !== 'GET') return respond(405, '{"error":"use GET"}', { allow: 'GET' });
    if (!this.#raw) return respond(404, '{"error":"not the leader"}');
    const { status, etag, body } = JSON.parse(this.#raw.health());
    return respond(status, body, etag ? { etag } : {});
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  #newRaw() {
    const settings = toJson(this.#settings);
    const bucket = bucketOf(this.#storage);
    return translated(() =>
      bucket
        ? RawElector.overBucket(settings, bucket.json, bucket.credentials, this.#unref)
        : RawElector.overStorage(settings, this.#storage, this.#unref),
    );
  }

  #authority() {
    const authority = this.#raw?.authority();
    return authority && this.#term?.token === authority[0] ? authority[1] : null;
  }

  #onEvent(raw, event) {
    if (raw !== this.#raw) return;
    if (event.type === 'acquired') this.#onAcquired(event.term);
    else if (event.type === 'lost') this.#onLost(event.term, event.reason);
    else if (event.type === 'newLeader') void this.#call('onNewLeader', event.leaderId);
    else if (event.type === 'givenUp') for (const given of this.#resigning.splice(0)) given();
    else if (event.type === 'failed') {
      const { message } = event;
      this.#failure = new EdgelectError(message, { code: 'EDGELECT_STORE' });
      for (const waiter of [...this.#waiters]) waiter.reject(this.#failure);
    }
  }

  #onAcquired(token) {
    const term = new Term(token, () => (this.#term === term ? this.#authority() : null) ?? 0);
    this.#term = term;
    this.#watchFence();
    const started = this.#call('onAcquireLeadership', term);
    void started.then((fine) => fine || this.#term !== term || this.#raw?.resign());
    for (const waiter of [...this.#waiters]) waiter.resolve(term);
  }

  #onLost(token, reason) {
    const term = this.#term;
    if (term?.token !== token) return;
    this.#term = null;
    clearTimeout(this.#watch);
    Term.end(term, reason);
    const raw = this.#raw;
    this.#losing = token;
    const told = this.#call('onLoseLeadership', { term: token, reason }).then(() => {
      if (this.#losing === token) this.#losing = null;
    });
    // After a trap there is nobody left to tell.
    const tell = () => raw === this.#raw && raw.workEnded(token);
    void Promise.allSettled([told, ...this.#work]).then(tell).catch(() => {});
  }

  /** Fires the signal at the fence even if nothing inside the wasm runs any more. */
  #watchFence(again = false) {
    clearTimeout(this.#watch);
    const { token } = this.#term;
    let remaining = null;
    try {
      remaining = this.#authority();
    } catch {
      return this.#onLost(token, 'trap');
    }
    if (remaining === null && again) {
      // The elector itself says this at its fence; it did not, so it gives the term up as well.
      this.#raw.resign();
      return this.#onLost(token, 'expired');
    }
    const ms = remaining === null ? LATE_MS : Math.min(remaining, 60_000);
    this.#watch = setTimeout(() => this.#term && this.#watchFence(remaining === null), ms);
    this.#watch?.unref?.();
  }

  #onFinished(raw, error) {
    if (raw !== this.#raw) return;
    if (this.#term) this.#onLost(this.#term.token, error ? 'trap' : 'stopped');
    if (error) this.#failure = error;
    this.#raw = null;
    for (const waiter of [...this.#waiters]) waiter.reject(this.#failure ?? stoppedError());
    for (const given of this.#resigning.splice(0)) given();
    raw.free();
  }

  /** Calls back; gives false, and keeps the error for the status, if that throws or rejects. */
  async #call(name, argument) {
    try {
      await this.#callbacks[name]?.(argument);
      return true;
    } catch (error) {
      this.#callbackError = `${name} threw: ${error?.message ?? error}`;
      return false;
    }
  }
}

const respond = (status, body, headers = {}) =>
  new Response(body, {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  });

const stoppedError = () =>
  new EdgelectError('the elector is not running: call start() first', { code: 'EDGELECT_STOPPED' });

const wrongOption = (field, value, rule) =>
  new EdgelectError(`${field} = ${typeof value}: ${rule}`, { code: 'EDGELECT_CONFIG', field });

const stoppedStatus = (serverId, group, error) => ({
  role: 'stopped',
  serverId: serverId || null,
  session: null,
  group,
  leaderId: null,
  leaderAddr: null,
  term: null,
  remainingMs: null,
  transitions: null,
  parked: null,
  requests: { read: 0, write: 0, peer: 0 },
  error: error ?? null,
});

const readVariables = () => {
  const variables = globalThis.process?.env ?? globalThis.Deno?.env?.toObject() ?? {};
  const relevant = Object.entries(variables).filter(([name]) => /^(EDGELECT|AWS)_/.test(name));
  const json = toJson(Object.fromEntries(relevant));
  const { settings, bucket, credentials } = JSON.parse(translated(() => fromVariables(json)));
  return { settings, storage: new S3Storage({ ...bucket, credentials }) };
};
