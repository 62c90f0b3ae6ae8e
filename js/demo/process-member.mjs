import { endProcess, killGroup } from '../tools/cleanup.mjs';
import { keepTail } from '../tools/run.mjs';
import { startSpeaking } from '../tools/speaking.mjs';

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
  #tail = keepTail(TAIL_LINES);
  #description;
  #rules;
  #say;
  #onMessage;

  /** `onMessage` hears all that it says, news or not. */
  constructor({ name, runtime, command, args, env, ready, rules, say, onMessage = () => {} }) {
    this.role = ready === undefined ? 'starting' : 'compiling';
    this.ready = ready;
    this.name = name;
    this.runtime = runtime;
    this.#description = { command, args, env: { ...env, EDGELECT_SERVER_ID: name } };
    this.#rules = rules;
    this.#say = say;
    this.#onMessage = onMessage;
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
    return [...this.#tail.lines];
  }

  start() {
    this.role = 'starting';
    const child = startSpeaking(this.#description, {
      onLine: (line) => this.#hear(child, line), onEnd: (how) => this.#closed(child, how), tail: this.#tail,
    });
    this.#child = child;
  }

  resign() {
    this.tell('resign');
  }

  /** Writes a line to its input. */
  tell(line) {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Asks for an orderly end and resolves when the process is gone. */
  async stop() {
    const child = this.#child;
    const closed = new Promise((resolve) => child.once('close', resolve));
    const late = setTimeout(() => {
      this.#rules.broken.push(`${this.title} did not stop within ${STOP_MS / 1000} s`);
      void endProcess(child);
    }, STOP_MS);
    this.tell('stop');
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

  #closed(child, how) {
    if (this.#child !== child) return;
    this.#gone('stopped');
    this.#rules.ended(this.name, Date.now());
    if (how === 0) return;
    this.error = [`${this.title} ended with ${how}`, ...this.#tail.lines].join('\n  ');
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
    this.#onMessage(message);
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
