// Many members of one group in one process, on Node, Deno or Bun, each with a server of its own; reports on stdout in JSON lines,
// obeys stdin, whose first line is its set-up in JSON.
import { createServer } from 'node:http';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { Elector, S3Storage, nodeHandler } from '../entry/default.js';

// How often a leader says that it still leads.
const LEADS_EVERY_MS = 50;
const IDLE_S = 60;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { storage, names, spreadMs, ...options } = JSON.parse((await lines.next()).value);
const report = (event, more = {}) => process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One member. Its times are read before it is asked whether it leads, so that it surely led at each of them. */
class Member {
  #name;
  #elector;
  #timer;
  /** Questions that wait for an answer. */
  held = 0;

  constructor(name) {
    this.#name = name;
  }

  get elector() {
    return this.#elector;
  }

  async start() {
    const serverAddr = await listen(this);
    const [name, noteLead] = [this.#name, (event, term) => this.#noteLead(event, term)];
    this.#elector = new Elector({
      ...options, serverId: name, serverAddr, storage: new S3Storage(storage), probe: false, warn: false,
      onAcquireLeadership: ({ token }) => {
        noteLead('acquired', token);
        this.#timer = setInterval(noteLead, LEADS_EVERY_MS, 'leads', token);
      },
      onLoseLeadership: ({ term, reason }) => {
        clearInterval(this.#timer);
        report('lost', { name, term, reason });
      },
    });
    await this.#elector.start();
  }

  #noteLead(event, term) {
    const atMs = Date.now();
    if (this.#elector.isLeader()) report(event, { name: this.#name, term, atMs, held: this.held });
  }
}

/** A server of this runtime's own kind that answers for a member; gives its address. */
async function listen(member) {
  const web = async (request) => {
    const waits = new URL(request.url).searchParams.has('wait');
    if (waits) member.held += 1;
    try {
      return await member.elector.handleRequest(request);
    } finally {
      if (waits) member.held -= 1;
    }
  };
  const { Deno, Bun } = globalThis;
  if (Deno) {
    const server = Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: () => {} }, web);
    return `127.0.0.1:${server.addr.port}`;
  }
  if (Bun) return `127.0.0.1:${Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: IDLE_S, fetch: web }).port}`;
  const server = createServer((incoming, outgoing) => {
    if (incoming.url.includes('&wait=')) {
      member.held += 1;
      outgoing.once('close', () => (member.held -= 1));
    }
    return nodeHandler(member.elector)(incoming, outgoing);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${server.address().port}`;
}

const members = new Map(names.map((name) => [name, new Member(name)]));
const memory = () => process.memoryUsage().rss;

const commands = {
  resign: (name) => members.get(name).elector.resign(),
  look: () => report('looked', { leaders: [...members.values()].map(({ elector }) => elector.leaderId()), memory: memory() }),
};

const before = memory();
await Promise.all([...members.values()].map(async (member) => {
  await pause(Math.random() * spreadMs);
  await member.start();
}));
report('ready', { before });
for await (const text of lines) {
  const [name, ...args] = text.trim().split(' ');
  Promise.resolve(commands[name]?.(...args)).catch(({ message }) => report('error', { error: message }));
}
// The one who asked for us is gone, so nobody will ever ask us to stop.
process.exit(0);
