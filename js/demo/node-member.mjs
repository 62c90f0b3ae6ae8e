import { fileURLToPath } from 'node:url';
import { endProcess, spawnKept } from '../tools/cleanup.mjs';
import { lineReader } from '../tools/run.mjs';

const PROGRAM = fileURLToPath(new URL('member.mjs', import.meta.url));
const TAIL_LINES = 10;

/** The starter's view of a member in a Node process of its own. */
export class NodeMember {
  runtime = `Node ${process.versions.node}`;
  role = 'starting';
  term = undefined;
  remainingMs = undefined;
  error = undefined;
  #requestsBefore = 0;
  #requests = 0;
  #child;
  #tail = [];
  #env;
  #rules;
  #say;

  constructor({ name, env, rules, say }) {
    this.name = name;
    this.#env = { ...env, EDGELECT_SERVER_ID: name };
    this.#rules = rules;
    this.#say = say;
  }

  get requests() {
    return this.#requestsBefore + this.#requests;
  }

  get alive() {
    return this.#child !== undefined;
  }

  get leads() {
    return this.alive && this.role === 'leader';
  }

  start() {
    this.role = 'starting';
    // A bare environment: whatever AWS_* or EDGELECT_* the user has set is about another store.
    const env = { PATH: process.env.PATH, ...this.#env };
    const child = spawnKept(process.execPath, [PROGRAM], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdin.on('error', () => {});
    child.stdout.on('data', lineReader((line) => this.#hear(child, line)));
    child.stderr.on('data', lineReader((line) => {
      this.#tail.push(line);
      if (this.#tail.length > TAIL_LINES) this.#tail.shift();
    }));
    child.once('close', (code, signal) => this.#closed(child, code, signal));
  }

  resign() {
    this.#child.stdin.write('resign\n');
  }

  /** Asks for an orderly end and resolves when the process is gone. */
  async stop() {
    const child = this.#child;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.stdin.write('stop\n');
    await closed;
  }

  /** SIGKILL: no handler runs, nothing is released. Returns the instant. */
  kill() {
    const child = this.#child;
    this.#gone('killed');
    endProcess(child);
    const atMs = Date.now();
    this.#rules.ended(this.name, atMs);
    return atMs;
  }

  #gone(role) {
    this.#child = undefined;
    this.role = role;
    this.term = undefined;
    this.remainingMs = undefined;
    this.#requestsBefore += this.#requests;
    this.#requests = 0;
  }

  #closed(child, code, signal) {
    if (this.#child !== child) return;
    this.#gone('stopped');
    this.#rules.ended(this.name, Date.now());
    if (code === 0) return;
    this.error = [`${this.name} ended with ${signal ?? code}`, ...this.#tail].join('\n  ');
    this.#rules.broken.push(this.error);
    this.#say(this.error);
  }

  #hear(child, line) {
    // Lines that were still in the pipe of a killed member are true, but no longer news.
    const current = this.#child === child;
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return this.#say(`${this.name}: ${line}`);
    }
    const { event, atMs, term, remainingMs } = message;
    const member = this.name;
    if (event === 'acquired') this.#rules.acquired({ member, term, atMs, remainingMs });
    if (!current) return;
    if (event === 'acquired') Object.assign(this, { role: 'leader', term, remainingMs });
    if (event === 'lost') {
      this.#rules.ended(member, atMs);
      Object.assign(this, { role: 'follower', remainingMs: undefined });
      this.#say(`${member} lost term ${term}: ${message.reason}`);
    }
    if (event === 'status') this.#status(message);
    if (event === 'error') this.#say(`${member}: ${message.error}`);
  }

  #status({ role, term, remainingMs, requests, error, atMs }) {
    this.role = role;
    this.term = term ?? undefined;
    this.remainingMs = role === 'leader' ? remainingMs : undefined;
    this.#requests = requests.read + requests.write + (requests.peer ?? 0);
    if (role === 'leader' && remainingMs > 0) this.#rules.proven({ member: this.name, term, atMs, remainingMs });
    if (error && error !== this.error) this.#say(`${this.name}: ${error}`);
    this.error = error ?? undefined;
  }
}
