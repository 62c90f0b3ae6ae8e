import { endProcess, killGroup, spawnKept } from '../tools/cleanup.mjs';
import { lineReader } from '../tools/run.mjs';

const TAIL_LINES = 10;
// A stop is bounded by the lease and a few requests.
const STOP_MS = 20_000;

/** The starter's view of a member in a process of its own, whatever runs it. */
export class ProcessMember {
  role;
  term = undefined;
  remainingMs = undefined;
  error = undefined;
  #requestsBefore = 0;
  #requests = 0;
  #child;
  #tail = [];
  #command;
  #args;
  #env;
  #rules;
  #say;

  constructor({ name, runtime, command, args, env, ready, rules, say }) {
    this.role = ready === undefined ? 'starting' : 'compiling';
    this.ready = ready;
    this.name = name;
    this.runtime = runtime;
    this.#command = command;
    this.#args = args;
    this.#env = { ...env, EDGELECT_SERVER_ID: name };
    this.#rules = rules;
    this.#say = say;
  }

  get title() {
    return `${this.name} (${this.runtime})`;
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

  /** The last lines of its stderr. */
  get tail() {
    return [...this.#tail];
  }

  start() {
    this.role = 'starting';
    // A bare environment: whatever AWS_* or EDGELECT_* the user has set is about another store.
    const env = { PATH: process.env.PATH, NO_COLOR: '1', ...this.#env };
    const child = spawnKept(this.#command, this.#args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdin.on('error', () => {});
    // 'close' follows, and says so.
    child.once('error', (error) => this.#tail.push(error.message));
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
    const late = setTimeout(() => {
      this.#rules.broken.push(`${this.title} did not stop within ${STOP_MS / 1000} s`);
      void endProcess(child);
    }, STOP_MS);
    child.stdin.write('stop\n');
    await closed;
    clearTimeout(late);
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

  /** SIGSTOP and SIGCONT, for it and whatever it started. */
  signal(name) {
    if (this.alive) killGroup(this.#child.pid, name);
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
    this.error = [`${this.title} ended with ${signal ?? code}`, ...this.#tail].join('\n  ');
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
      return this.#say(`${this.title}: ${line}`);
    }
    const { event, atMs, term, remainingMs } = message;
    const member = this.name;
    if (event === 'acquired') this.#rules.acquired({ member, term, atMs, remainingMs });
    if (!current) return;
    if (event === 'acquired') Object.assign(this, { role: 'leader', term, remainingMs });
    if (event === 'lost') {
      this.#rules.ended(member, atMs);
      Object.assign(this, { role: 'follower', remainingMs: undefined });
      this.#say(`${this.title} lost term ${term}: ${message.reason}`);
    }
    if (event === 'status') this.#status(message);
    if (event === 'error') this.#say(`${this.title}: ${message.error}`);
  }

  #status({ role, term, remainingMs, requests, error, atMs }) {
    this.role = role;
    this.term = term ?? undefined;
    this.remainingMs = role === 'leader' ? remainingMs : undefined;
    this.#requests = requests.read + requests.write + (requests.peer ?? 0);
    if (role === 'leader' && remainingMs > 0) this.#rules.proven({ member: this.name, term, atMs, remainingMs });
    if (error && error !== this.error) this.#say(`${this.title}: ${error}`);
    this.error = error ?? undefined;
  }
}
