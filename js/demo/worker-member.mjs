import fs from 'node:fs';
import path from 'node:path';
import { endProcess, newFolder, removePath, spawnKept } from '../tools/cleanup.mjs';
import { NODE_24, ROOT } from '../tools/paths.mjs';
import { PlainError, keepTail, lineReader } from '../tools/run.mjs';
import { freePorts } from '../tools/seaweed.mjs';
import { QUIET_AND_OFFLINE, WRANGLER } from '../tools/wrangler.mjs';

const READY_MS = 60_000;
const POLL_MS = 500;
const CRON_MS = 60_000;
const TAIL_LINES = 30;

/** The starter's view of the Worker under workerd, and the cron that wakes it once a minute. */
export class WorkerMember {
  name = 'worker';
  runtime = 'workerd';
  role = 'compiling';
  term = undefined;
  remainingMs = undefined;
  requests = 0;
  ticks = 0;
  /** When the running tick was fired, or undefined between two. */
  tickStartMs = undefined;
  #child;
  #folder;
  #timers = [];
  #origin;
  #tail = keepTail(TAIL_LINES);
  #env;
  #rules;
  #say;
  #leadsSinceMs;
  #newestTerm;
  #stopping = false;

  constructor({ env, ready, rules, say }) {
    this.ready = ready;
    // A failure is told by start().
    ready.then(() => (this.role = 'starting'), () => {});
    this.#env = { ...env, EDGELECT_SERVER_ID: this.name };
    this.#rules = rules;
    this.#say = say;
  }

  get title() {
    return `${this.name} (${this.runtime})`;
  }

  get leads() {
    return this.role === 'leader';
  }

  get alive() {
    return this.tickStartMs !== undefined;
  }

  /** Starts wrangler once the wasm is there, and resolves once the Worker answers. */
  async start() {
    await this.ready;
    if (this.#stopping) return;
    const [port, inspectorPort] = await freePorts(2);
    this.#origin = `http://127.0.0.1:${port}`;
    const folder = newFolder('worker');
    // A file, because a command line can be read by every user of the machine.
    const envFile = path.join(folder, 'vars.env');
    const vars = { ...this.#env, EDGELECT_SERVER_ADDR: `127.0.0.1:${port}` };
    fs.writeFileSync(envFile, Object.entries(vars).map(([name, value]) => `${name}=${value}\n`).join(''), { mode: 0o600 });
    this.#child = spawnKept(NODE_24, [
      WRANGLER, 'dev', '--test-scheduled', '--ip', '127.0.0.1', '--port', String(port),
      '--inspector-port', String(inspectorPort), '--env-file', envFile, '--persist-to', path.join(folder, 'state'),
      '--show-interactive-dev-session=false',
    ], {
      cwd: ROOT,
      // Its temporary files and its registry of running Workers stay in our folder.
      env: { ...process.env, ...QUIET_AND_OFFLINE, TMPDIR: folder, XDG_CONFIG_HOME: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#folder = folder;
    const read = lineReader((line) => this.#hear(line));
    this.#child.stdout.on('data', read);
    this.#child.stderr.on('data', read);
    await this.#ready();
    this.#timers.push(setInterval(() => this.#look(), POLL_MS));
  }

  /** Lets the cron fire now and each minute from now on. */
  wake() {
    this.#timers.push(setInterval(() => this.#fire(), CRON_MS));
    this.#fire();
  }

  async stop() {
    this.#stopping = true;
    this.#timers.forEach(clearInterval);
    if (this.#child === undefined) return;
    // Polite, because wrangler keeps temporary files in the repository as well.
    await endProcess(this.#child, 3_000);
    removePath(this.#folder);
  }

  async #ready() {
    const deadlineMs = Date.now() + READY_MS;
    let last = 'no answer';
    while (Date.now() < deadlineMs) {
      if (this.#child.exitCode !== null) break;
      const response = await this.#get('/health/leadership');
      if (response?.status === 200 || response?.status === 404) {
        this.role = 'asleep';
        return;
      }
      if (response !== undefined) last = `HTTP ${response.status}`;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new PlainError(`the Worker did not start within ${READY_MS / 1000} s (${last}); wrangler said:\n${this.#tail.shown()}`);
  }

  async #get(where) {
    try {
      const response = await fetch(`${this.#origin}${where}`, { signal: AbortSignal.timeout(5_000) });
      return { status: response.status, text: await response.text() };
    } catch {
      return undefined;
    }
  }

  // The request is answered when the tick ends.
  async #fire() {
    const startMs = Date.now();
    this.tickStartMs = startMs;
    this.ticks += 1;
    this.#say('cron fires, the Worker wakes up');
    try {
      const response = await fetch(`${this.#origin}/cdn-cgi/local/scheduled?cron=*+*+*+*+*&time=${startMs}`, { signal: AbortSignal.timeout(2 * CRON_MS) });
      await response.text();
      if (!response.ok) this.#say(`the Worker's tick failed with HTTP ${response.status}`);
    } catch (error) {
      if (!this.#stopping) this.#say(`the Worker's tick failed: ${error.message}`);
    }
    if (this.tickStartMs === startMs) this.tickStartMs = undefined;
  }

  #hear(line) {
    this.#tail.push(line);
    const tick = /edgelect tick: outcome=(\S+).*\brequests=(\d+)/.exec(line);
    if (tick === null) {
      if (/^edgelect\b|\berror\b/i.test(line)) this.#say(`worker: ${line.trim()}`);
      return;
    }
    this.requests += Number(tick[2]);
    this.#say(`the Worker's tick ended: ${tick[1]}, ${tick[2]} requests`);
  }

  async #look() {
    const sentMs = Date.now();
    const response = await this.#get('/health/leadership');
    if (response === undefined) return;
    const lease = response.status === 200 ? JSON.parse(response.text) : undefined;
    // An answer out of the store says what is written there, not that this Worker may act.
    const leads = lease !== undefined && lease.source !== 'store' && lease.leaderID === this.name && lease.remainingMs > 0;
    if (leads) return this.#leading(lease, sentMs);
    if (this.#leadsSinceMs !== undefined) this.#rules.endedUnseen(this.name);
    this.#leadsSinceMs = undefined;
    this.term = undefined;
    this.remainingMs = undefined;
    const between = this.#rules.acquisitions.at(-1)?.member === this.name ? 'parked' : 'asleep';
    this.role = this.tickStartMs === undefined ? between : 'follower';
  }

  #leading({ term, remainingMs }, sentMs) {
    const nowMs = Date.now();
    // The answer was made between the two instants, so the first is surely proven from its arrival on,
    // and a later one up to its sending.
    if (this.#leadsSinceMs === undefined || this.term !== term) {
      if (this.#leadsSinceMs !== undefined) this.#rules.endedUnseen(this.name);
      this.#leadsSinceMs = nowMs;
      const proof = { member: this.name, term, atMs: nowMs, remainingMs };
      if (term === this.#newestTerm) this.#rules.shownAgain(proof);
      else this.#rules.acquired(proof);
      this.#newestTerm = term;
    } else {
      this.#rules.proven({ member: this.name, term, atMs: sentMs, remainingMs });
    }
    Object.assign(this, { role: 'leader', term, remainingMs });
  }
}
