// A cluster whose followers serve reads, and in which only the holder of the lease takes writes.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { Elector, celeriant, nodeHandler } from 'edgelect';
import { Replica, replicateTo } from './replica.mjs';

const HELP = `node main.mjs --port PORT --peer URL [options]

One node of a cluster of two. Both serve reads; the one that holds the lease takes writes and hands each of them to the other
before it answers. Without the lease a write is answered 503, so writes pause while a dead leader's lease runs out. With
--heartbeat they also pause while the leader has not heard from the other node for 1.5 s.

  GET  /items/KEY   the value; the header x-token says which term wrote it
  PUT  /items/KEY   200 with the token, or 503 while another node leads or none does
  GET  /status      what the elector knows

  --port PORT       where to listen, on 127.0.0.1
  --peer URL        the other node, such as http://127.0.0.1:8002
  --cluster NAME    the prefix of the lease in the bucket (default demo)
  --lease MS        the lease (default 30000)
  --heartbeat       both nodes send or answer a heartbeat every 500 ms; set it on both
  --init            start a new cluster without its waiting time: once, by hand, never in a start script
  --help            this text

The bucket comes from variables (docs/options.md):
  EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \\
  node main.mjs --port 8001 --peer http://127.0.0.1:8002`;

const MAX_BODY_BYTES = 64 * 1024;
/** A value as JSON takes at most six times its bytes. */
const MAX_ENTRY_BYTES = 7 * MAX_BODY_BYTES;

const say = (event, more) => console.log(JSON.stringify({ event, ...more }));

const wholeNumber = (name, text) => {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} = ${JSON.stringify(text)}: must be a whole number from 1 on`);
};

const read = () => {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      peer: { type: 'string' },
      cluster: { type: 'string', default: 'demo' },
      lease: { type: 'string', default: '30000' },
      heartbeat: { type: 'boolean', default: false },
      init: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || values.init) return values;
  if (!URL.canParse(values.peer ?? '')) throw new Error(`--peer = ${JSON.stringify(values.peer)}: must be the other node's URL`);
  return { ...values, port: wholeNumber('port', values.port) };
};

/** The text of a request, bounded. */
const bodyOf = async (request, most = MAX_BODY_BYTES) => {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > most) throw Object.assign(new Error('at most 64 KiB'), { status: 413 });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

const answer = (response, status, body, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};

/** One node: its data, its part in the election, and what it answers. */
class Node {
  #replica = new Replica();
  #term = null;
  #queue = Promise.resolve();
  #suspected = new Set();
  #elector;
  #health;
  #peer;

  constructor(options, peer) {
    const hears = {
      onSuspect: (serverId) => {
        this.#suspected.add(serverId);
        say('suspects', { serverId });
      },
      onRecover: (serverId) => {
        this.#suspected.delete(serverId);
        say('recovers', { serverId });
      },
    };
    this.#elector = new Elector({ ...options, ...hears });
    this.#health = nodeHandler(this.#elector);
    this.#peer = replicateTo(peer);
  }

  /** Takes what the other node has and this one has not. */
  async catchUp() {
    this.#replica.adopt(await this.#peer.snapshot());
  }

  /** Leads from term to term until the signal fires. */
  lead(signal) {
    const work = async (term) => {
      this.#term = term;
      say('leads', { token: term.token });
      // It may have fired already: after a pause of the machine no event comes.
      if (!term.signal.aborted) await new Promise((resolve) => term.signal.addEventListener('abort', resolve, { once: true }));
      this.#term = null;
      say('fenced', { token: term.token });
      // Work that throws because its term is over runs again in the next one.
      throw term.signal.reason;
    };
    return this.#elector.lead(work, { signal });
  }

  async handle(request, response) {
    const { pathname } = new URL(request.url, 'http://localhost');
    const { method } = request;
    if (pathname === '/health/leadership') return this.#health(request, response);
    const key = /^\/items\/([\w.-]{1,100})$/.exec(pathname)?.[1];
    if (method === 'GET' && key) return this.#read(key, response);
    if (method === 'PUT' && key) return this.#write({ key, value: await bodyOf(request) }, response);
    if (method === 'GET' && pathname === '/status') return answer(response, 200, this.#elector.status());
    if (method === 'GET' && pathname === '/snapshot') return answer(response, 200, this.#replica.snapshot());
    if (method === 'POST' && pathname === '/replicate') {
      // A page in a browser on this machine can't send that without asking first.
      if (request.headers['content-type'] !== 'application/json') return answer(response, 415, { error: 'not JSON' });
      const entry = JSON.parse(await bodyOf(request, MAX_ENTRY_BYTES));
      if (this.#replica.misses(entry)) {
        try {
          await this.catchUp();
        } catch {
          // Taken now, what is missing before it would never be missed again.
          return answer(response, 503, { error: 'earlier writes are missing here' });
        }
      }
      const accepted = this.#replica.apply(entry);
      return answer(response, accepted ? 200 : 409, { token: this.#replica.token });
    }
    return answer(response, 404, { error: 'not found' });
  }

  #read(key, response) {
    const found = this.#replica.get(key);
    if (found) answer(response, 200, { value: found.value }, { 'x-token': found.token });
    else answer(response, 404, { error: 'no such item' });
  }

  /** One after the other, so that both nodes see the same order. */
  #write(item, response) {
    const done = this.#queue.then(() => this.#accept(item));
    this.#queue = done.catch(() => {});
    return done.then(({ status, ...body }) => answer(response, status, body, status === 503 ? { 'retry-after': '1' } : {}));
  }

  async #accept(item) {
    const term = this.#term;
    const pause = (error) => ({ status: 503, error, leaderId: this.#elector.leaderId() });
    if (!term || term.remaining() === 0) return pause('this node does not hold the lease; reads go on');
    if (this.#suspected.size > 0) return pause('the other node is silent: writes pause until it is heard again');
    const entry = { ...item, token: term.token, sequence: this.#replica.next(term.token) };
    const { refused, failed } = await this.#peer.send(entry, term.signal);
    if (failed) return pause('the other node could not take the write');
    if (refused) {
      // The other node has heard of a later term: this one is over, whatever the clock says.
      term.resign();
      return pause('a later term has begun');
    }
    // Looked at last: what is said to the client holds for the moment in which it is said.
    if (term.remaining() === 0) return pause('the lease ended under this write; nobody knows yet whether it counts');
    if (this.#replica.apply(entry)) return { status: 200, token: term.token };
    // A later term has written here meanwhile, and refuses this one as the other node would.
    term.resign();
    return pause('a later term has begun');
  }
}

const main = async () => {
  const { port, peer, cluster, lease, heartbeat, init, help } = read();
  if (help) return console.log(HELP);
  const options = celeriant({ cluster, leaseDuration: wholeNumber('lease', lease), heartbeat });
  if (init) return new Elector(options).init();
  const node = new Node({ ...options, ...(heartbeat && { serverAddr: `127.0.0.1:${port}` }) }, peer);
  await node.catchUp().catch(({ message }) => say('alone', { message }));
  const server = createServer((request, response) => {
    node.handle(request, response).catch(({ status = 400, message }) => answer(response, status, { error: message }));
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  say('serves', { port });
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => ending.abort());
  try {
    await node.lead(ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

main().catch((error) => {
  console.error(`${error.message}\nSee --help.`);
  process.exitCode = 1;
});
