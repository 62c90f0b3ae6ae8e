// Stands between the members and the store, on loopback, one lane for each member, and does to their requests what its
// lane's fault says. Without one it changes nothing: a request goes on as it came, once, with the Host header that was signed.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import fastify from 'fastify';
import { Pool } from 'undici';

/** A lease is under a kilobyte, and no answer to it is larger than an error document. */
const MOST_BYTES = 64 * 1024;
/** What is said between two ends of a connection, not from end to end. */
const HOP_BY_HOP = ['connection', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

export const FAULTS = {
  cut: 'connections reset',
  deaf: 'requests swallowed',
  slow: 'requests and answers delayed',
  late: 'writes that reach the store after their sender gave up',
  lost: 'writes carried out, never answered',
  reset: 'writes carried out, connection reset',
  error: 'writes carried out, answered 500 or 503',
};

/** Those that the live minute has no time for; a lane whose fault is drawn for each request has. */
export const MORE_FAULTS = {
  refused: 'writes answered 500 or 503, not carried out',
  twice: 'writes carried out twice, the second answer given',
};

const CARRIED_OUT = ['lost', 'reset', 'error'];
const FAULTS_OF_WRITES = ['late', ...CARRIED_OUT];

/** Starts a proxy; `chance` draws numbers from 0 to 1, `timing` is `{ requestTimeoutMs, leaseMs }`. */
export function startProxy(target, chance, timing) {
  const pool = new Pool(target, { bodyTimeout: 30_000, headersTimeout: 30_000, maxResponseSize: MOST_BYTES });
  const fired = Object.fromEntries(Object.keys({ ...FAULTS, ...MORE_FAULTS }).map((kind) => [kind, 0]));
  const lanes = [];
  const signatures = new Set();
  let repeated = 0;
  /** The elector never writes the same bytes twice, so the same signature is the runtime's own doing. */
  const onWrite = ({ authorization }) => {
    if (authorization !== undefined && signatures.has(authorization)) repeated += 1;
    signatures.add(authorization);
  };
  return {
    /** How often each fault has done its work. */
    fired,
    /** How many writes came a second time, byte by byte. */
    get repeated() {
      return repeated;
    },
    /** `onLanded({ url, condition, body, etag, sentMs })` hears of each write that the store has taken, before its sender does. */
    async openLane({ onLanded = () => {} } = {}) {
      const lane = new Lane({ pool, fired, chance, timing, onWrite, onLanded });
      lanes.push(lane);
      await lane.open();
      return lane;
    },
    async close() {
      await Promise.all(lanes.map((lane) => lane.close()));
      await pool.destroy();
    },
  };
}

class Lane {
  #fault;
  #server;
  #sockets = new Set();
  #closing = new AbortController();
  /** What it has in common with the other lanes, and `onLanded`. */
  #proxy;

  constructor(proxy) {
    this.#proxy = proxy;
    // One for each request that is held or under way.
    setMaxListeners(0, this.#closing.signal);
  }

  async open() {
    const server = fastify({ bodyLimit: MOST_BYTES, forceCloseConnections: true, exposeHeadRoutes: false });
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    server.all('/*', (request, reply) => {
      reply.hijack();
      return this.#answer(request, reply.raw);
    });
    server.server.on('connection', (socket) => this.#connected(socket));
    this.#server = server;
    this.endpoint = await server.listen({ host: '127.0.0.1', port: 0 });
  }

  get fault() {
    return this.#fault;
  }

  /** One of FAULTS, or undefined; or a function that says which for each request, of MORE_FAULTS as well. */
  set fault(kind) {
    this.#fault = kind;
    if (kind === 'cut') for (const socket of this.#sockets) this.#cut(socket);
  }

  close() {
    this.#closing.abort();
    return this.#server.close();
  }

  #connected(socket) {
    if (this.#fault === 'cut') return this.#cut(socket);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #cut(socket) {
    this.#proxy.fired.cut += 1;
    socket.resetAndDestroy();
  }

  /** A fault of writes spares half of the reads: a member that cannot read writes nothing. */
  #faultFor(method) {
    if (typeof this.#fault === 'function') return this.#fault(method);
    const spared = method !== 'PUT' && FAULTS_OF_WRITES.includes(this.#fault) && this.#proxy.chance() < 0.5;
    return spared ? undefined : this.#fault;
  }

  async #answer(request, response) {
    // What was in force when it came: a request that is held stays held when the fault is over.
    const fault = this.#faultFor(request.method);
    const isWrite = request.method === 'PUT';
    if (isWrite) this.#proxy.onWrite(request.headers);
    if (fault === 'cut') return this.#cut(request.raw.socket);
    if (fault === 'deaf') return void (this.#proxy.fired.deaf += 1);
    if (fault === 'refused') return this.#refuse(response);
    const { leaseMs, requestTimeoutMs } = this.#proxy.timing;
    if (fault === 'late') await this.#pause((0.3 + 0.7 * this.#proxy.chance()) * leaseMs);
    if (fault === 'slow') await this.#slow(requestTimeoutMs);
    const left = response.destroyed;
    const answer = await this.#carryOut(request, fault === 'twice' && isWrite);
    if (answer === undefined) return void request.raw.socket.resetAndDestroy();
    if (fault === 'late' && isWrite && left) this.#proxy.fired.late += 1;
    if (isWrite && answer.status < 300 && CARRIED_OUT.includes(fault)) this.#proxy.fired[fault] += 1;
    if (fault === 'lost') return;
    if (fault === 'reset') return void request.raw.socket.resetAndDestroy();
    if (fault === 'slow') await this.#pause(this.#proxy.chance() * 0.7 * requestTimeoutMs);
    if (fault === 'error') return respond(response, unavailable(this.#proxy.chance()));
    respond(response, answer);
  }

  #refuse(response) {
    this.#proxy.fired.refused += 1;
    respond(response, unavailable(this.#proxy.chance()));
  }

  async #carryOut(request, twice) {
    const answer = await this.#forward(request.raw, request.body).catch(() => undefined);
    if (!twice || answer === undefined) return answer;
    if (answer.status < 300) this.#proxy.fired.twice += 1;
    return this.#forward(request.raw, request.body).catch(() => undefined);
  }

  #slow(requestTimeoutMs) {
    this.#proxy.fired.slow += 1;
    return this.#pause(this.#proxy.chance() * 0.7 * requestTimeoutMs);
  }

  /** Ends at once when the lane closes. */
  #pause(ms) {
    return sleep(ms, undefined, { signal: this.#closing.signal }).catch(() => {});
  }

  async #forward({ method, url, rawHeaders }, body) {
    const headers = endToEnd(rawHeaders);
    const sentMs = Date.now();
    const answer = await this.#proxy.pool.request({ method, path: url, headers, body, responseHeaders: 'raw', signal: this.#closing.signal });
    const given = { status: answer.statusCode, headers: endToEnd(answer.headers.map(String)), body: Buffer.from(await answer.body.arrayBuffer()) };
    if (method === 'PUT' && given.status < 300) {
      this.#proxy.onLanded({ url, condition: valueOf(headers, 'if-match'), body, etag: valueOf(given.headers, 'etag'), sentMs });
    }
    return given;
  }
}

/** Names and values in turns, as they came. */
function endToEnd(rawHeaders) {
  const isKept = (index) => !HOP_BY_HOP.includes(rawHeaders[index - (index % 2)].toLowerCase());
  return rawHeaders.filter((_text, index) => isKept(index));
}

function valueOf(rawHeaders, name) {
  const index = rawHeaders.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === name);
  return index === -1 ? undefined : rawHeaders[index + 1];
}

function unavailable(chance) {
  const [status, code] = chance < 0.5 ? [500, 'InternalError'] : [503, 'SlowDown'];
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`);
  return { status, headers: ['content-type', 'application/xml', 'content-length', String(body.length)], body };
}

function respond(response, { status, headers, body }) {
  if (response.destroyed) return;
  response.writeHead(status, headers).end(body);
}
