// Stands between the members and the store, on loopback, one lane for each member, and does to their requests what its
// lane's fault says. Without one it changes nothing: a request goes on as it came, once, with the Host header that was signed.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { forward, readAll, serve } from '../../js/tools/serve.mjs';

export const FAULTS = {
  cut: 'connections reset',
  deaf: 'requests swallowed',
  slow: 'requests and answers delayed',
  late: 'writes that reach the store after their sender gave up',
  lost: 'writes carried out, never answered',
  reset: 'writes carried out, connection reset',
  error: 'writes carried out, answered 500 or 503',
};

/** With those that the live minute has no time for; a lane whose fault is drawn for each request has. */
export const REQUEST_FAULTS = {
  ...FAULTS,
  refused: 'writes answered 500 or 503, not carried out',
  twice: 'writes carried out twice, the second answer given',
};

const CARRIED_OUT = ['lost', 'reset', 'error'];
const FAULTS_OF_WRITES = ['late', ...CARRIED_OUT];

/** Starts a proxy; `chance` draws numbers from 0 to 1, `timing` is `{ requestTimeoutMs, leaseMs }`. */
export function startProxy(target, chance, timing) {
  const fired = Object.fromEntries(Object.keys(REQUEST_FAULTS).map((kind) => [kind, 0]));
  const lanes = [];
  const signatures = new Set();
  let repeated = 0;
  /** The elector never writes the same bytes twice, so the same signature is the runtime's own doing. */
  const onWrite = ({ authorization }) => {
    if (authorization !== undefined && signatures.has(authorization)) repeated += 1;
    signatures.add(authorization);
  };
  return {
    fired,
    get repeated() {
      return repeated;
    },
    /** `onLanded({ url, condition, body, etag, sentMs })` hears of each write that the store has taken, before its sender does. */
    async openLane({ onLanded = () => {} } = {}) {
      const lane = new Lane({ target, fired, chance, timing, onWrite, onLanded });
      lanes.push(lane);
      await lane.open();
      return lane;
    },
    close: () => Promise.all(lanes.map((lane) => lane.close())),
  };
}

class Lane {
  #fault;
  #sockets = new Set();
  /** What it has in common with the other lanes, and `onLanded`. */
  #proxy;

  constructor(proxy) {
    this.#proxy = proxy;
  }

  async open() {
    const server = http.createServer(async (request, response) => {
      // What was in force when it came: a request that is held stays held when the fault is over.
      const fault = this.#faultFor(request.method);
      const body = await readAll(request).catch(() => undefined);
      if (body !== undefined) await this.#answer(fault, request, body, response);
    });
    server.on('connection', (socket) => {
      if (this.#fault === 'cut') return this.#cut(socket);
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    const { url: endpoint, close } = await serve(server);
    Object.assign(this, { endpoint, close });
  }

  get fault() {
    return this.#fault;
  }

  /** One of FAULTS, or undefined; or a function that says which for each request, of REQUEST_FAULTS. */
  set fault(kind) {
    this.#fault = kind;
    if (kind === 'cut') for (const socket of this.#sockets) this.#cut(socket);
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

  async #answer(fault, request, body, response) {
    const { chance, fired, timing: { leaseMs, requestTimeoutMs }, onWrite } = this.#proxy;
    const isWrite = request.method === 'PUT';
    const delay = () => pause(chance() * 0.7 * requestTimeoutMs);
    if (isWrite) onWrite(request.headers);
    if (fault === 'cut') return this.#cut(request.socket);
    if (['deaf', 'refused', 'slow'].includes(fault)) fired[fault] += 1;
    if (fault === 'deaf') return;
    if (fault === 'refused') return respond(response, unavailable(chance()));
    if (fault === 'late') await pause((0.3 + 0.7 * chance()) * leaseMs);
    if (fault === 'slow') await delay();
    const left = response.destroyed;
    const answer = await this.#carryOut(request, body, fault === 'twice' && isWrite);
    if (answer === undefined) return void request.socket.resetAndDestroy();
    if (fault === 'late' && isWrite && left) fired.late += 1;
    if (isWrite && answer.status < 300 && CARRIED_OUT.includes(fault)) fired[fault] += 1;
    if (fault === 'lost') return;
    if (fault === 'reset') return void request.socket.resetAndDestroy();
    if (fault === 'slow') await delay();
    respond(response, fault === 'error' ? unavailable(chance()) : answer);
  }

  async #carryOut(request, body, twice) {
    const answer = await this.#forward(request, body);
    if (!twice || answer === undefined) return answer;
    if (answer.status < 300) this.#proxy.fired.twice += 1;
    return this.#forward(request, body);
  }

  async #forward(request, body) {
    const sentMs = Date.now();
    const answer = await forward(this.#proxy.target, request, body, false).catch(() => undefined);
    if (request.method === 'PUT' && answer?.status < 300) {
      this.#proxy.onLanded({ url: request.url, condition: request.headers['if-match'], body, etag: answer.headers.etag, sentMs });
    }
    return answer;
  }
}

/** Keeps no process that has ended its run. */
const pause = (ms) => sleep(ms, undefined, { ref: false });

function unavailable(chance) {
  const [status, code] = chance < 0.5 ? [500, 'InternalError'] : [503, 'SlowDown'];
  const bytes = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`);
  return { status, headers: { 'content-type': 'application/xml', 'content-length': bytes.length }, bytes };
}

const respond = (response, { status, headers, bytes }) => response.destroyed || response.writeHead(status, headers).end(bytes);
