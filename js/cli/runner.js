// What `run` and `slot` share: settings, signals, and one command at a time under a term.
import fs from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child, codeOfSignal, startGuard, timesOf } from './child.js';
import { EXIT } from './command.js';
import { readings } from './group.js';
import { codeOf, exitOf, jsonOf, look, namedOptions, visible } from './store.js';

const KILL_AFTER_MS = 8_000;
const MOMENT_MS = 20;
/** How long the last look at the lease may take. */
const TELL_MS = 1_000;
/** After these no command is begun. */
const ENDS = ['SIGTERM', 'SIGINT', 'SIGQUIT'];
const PASSED = [...ENDS, 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'];
/** How a term ends while the lease is still held for its work. */
const GIVEN_UP = /: (resigned|stopped|stepDown|paused)$/;
const WHY = { ENOENT: 'there is no such command', EACCES: 'it can\'t be executed' };

/** Standard error where it is a pipe whose reader nobody waits for: a lease must be renewed meanwhile. */
const unread = (() => {
  try {
    const { O_WRONLY, O_NONBLOCK } = fs.constants;
    return fs.fstatSync(2).isFIFO() ? fs.openSync('/dev/fd/2', O_WRONLY | O_NONBLOCK) : undefined;
  } catch {
    return undefined;
  }
})();

/** A line on standard error. A reader that is slow, or has gone away, misses it. */
const say = (line) => {
  if (unread === undefined) return console.error(line);
  try {
    fs.writeSync(unread, `${line}\n`);
  } catch {
    // Nobody reads it.
  }
};

/** Within what time two of one signal are one. */
const SAME_SIGNAL_MS = 500;

export class Runner {
  elector;
  /** Hears each status. */
  onStatus = () => {};
  /** Hears of a store that keeps failing. */
  onError = () => {};
  #command;
  #flags;
  #options;
  #times;
  #guard;
  #child;
  /** Why nothing is to be begun any more, and with which exit code. */
  #ending;
  /** The newest signal that ends the command, and when it came. */
  #signalled = {};
  #over = new AbortController();
  /** The problem that was told last. */
  #told;

  /** Has `work` use a runner; resolves to the exit code, once nothing of the command runs. */
  static async exitCode(command, flags, work) {
    const runner = new Runner(command, flags);
    try {
      await runner.#open();
      await work(runner);
      return runner.#ending?.code ?? EXIT.failed;
    } catch (error) {
      if (runner.#ending && error === runner.signal.reason) return runner.#ending.code;
      if (error.code === 'EDGELECT_CONFIG') return codeOf(error, flags.name);
      runner.tellError(error.message);
      return exitOf(error);
    } finally {
      await runner.#child?.end();
      await runner.#tellLease();
      runner.#guard?.end();
    }
  }

  constructor(command, flags) {
    this.#command = command;
    this.#flags = flags;
  }

  /** Fires when nothing is to be begun and no command runs. */
  get signal() {
    return this.#over.signal;
  }

  /** Has nothing begun any more. */
  end(code, more) {
    this.#ending ??= { code };
    // The code is that of what came first; a signal that comes later has its answer as well.
    this.#ending.signal ??= more?.signal;
    if (!this.#child) this.#over.abort(new Error('nothing is begun any more'));
  }

  /** Runs the command under a term: how it ended, or undefined where nothing is to be begun. */
  async run(term, slot) {
    const { graceMs, killMs } = this.#times;
    // A claim that was slow leaves too little: the next renewal comes first.
    while (!this.#ending && !term.signal.aborted && term.remaining() <= graceMs + killMs + MOMENT_MS) await sleep(MOMENT_MS);
    if (this.#ending || term.signal.aborted) return undefined;
    const isGivenUp = () => GIVEN_UP.test(term.signal.reason?.message ?? '');
    let fence = readings();
    const leftMs = () => {
      const left = term.remaining();
      if (left > 0) fence = readings().map((ms) => ms + left);
      if (left > 0 || !isGivenUp()) return left;
      // A given up term has no authority to ask. One clock stands still while the machine sleeps, the other one may be set.
      const now = readings();
      return Math.min(...fence.map((ms, clock) => ms - now[clock]));
    };
    const [command, { shell, killAfter: killAfterMs = KILL_AFTER_MS }] = [this.#command, this.#flags];
    let isDenied = false;
    const onDenied = () => {
      if (!isDenied) this.tell('denied', {}, 'the command runs as another user, so that it can\'t be ended: run edgelect itself as that user');
      isDenied = true;
    };
    const env = { ...process.env, ...(slot && { EDGELECT_SLOT: slot }), EDGELECT_TOKEN: String(term.token) };
    const child = new Child({ command, shell, env, times: this.#times, killAfterMs, leftMs, guard: this.#guard, onDenied });
    this.#child = child;
    this.tell('began', { term: term.token, slot });
    const onAbort = () => (isGivenUp() ? child.lose() : child.look());
    term.signal.addEventListener('abort', onAbort, { once: true });
    const { code, lost, error, signal, lives } = await child.end();
    term.signal.removeEventListener('abort', onAbort);
    this.#child = undefined;
    const own = lost ? EXIT.lost : code;
    const text = lost ? `the authority was lost${isDenied || lives ? '' : ', so the command was ended'}` : error && `${command[0]}: ${WHY[error.code] ?? error.message}`;
    this.tell('ended', { code: own }, text);
    if (lives) this.#leave(own, 'a process of the command does not die');
    if (signal === 'SIGHUP') this.end(own);
    if (this.#ending) {
      this.#ending.code = own;
      this.end();
    }
    return { code: own, started: !error };
  }

  /** A line on standard error if there is a text; with --json each event. */
  tell(event, more, text) {
    const line = { at: new Date().toISOString(), event, ...more, ...(text && { text }) };
    if (this.#flags.json) say(jsonOf(line));
    else if (text) say(`edgelect: ${visible(text)}`);
  }

  /** A problem, unless it is the one that was told last. */
  tellError(message) {
    if (message !== this.#told) this.tell('error', {}, message);
    this.#told = message;
  }

  /** What is waited for, where that was not shown while it was. */
  tellWaiting({ message }) {
    if (!this.#shows()) this.tell('waits', {}, message);
  }

  #shows() {
    return this.#flags.json || process.stderr.isTTY;
  }

  async #open() {
    if (process.platform === 'win32') throw Object.assign(new Error('Windows has no process groups: run this in WSL'), { code: 'EDGELECT_CONFIG' });
    if (this.#command[0] === '') throw Object.assign(new Error('COMMAND = "": name a program'), { code: 'EDGELECT_CONFIG' });
    for (const name of PASSED) process.on(name, () => this.#onSignal(name));
    const serverId = this.#flags.serverId ?? (process.env.EDGELECT_SERVER_ID || `${os.hostname()}-${process.pid}`);
    this.#options = await namedOptions({ ...this.#flags, serverId });
    const { Elector } = await import('edgelect');
    let waits;
    const onStatus = (status) => {
      const { reason, message } = status.waiting ?? {};
      if (reason && reason !== waits && !this.#ending) this.tell('waits', {}, this.#shows() ? message : undefined);
      waits = reason;
      this.onStatus(status);
    };
    const onError = (error) => {
      this.#told = undefined;
      this.tellError(error.message);
      this.onError(error);
    };
    this.elector = new Elector({ ...this.#options, onStatus, onError, ...(this.#flags.nonblock && { probe: false }) });
    this.#times = timesOf(this.elector.config, this.#flags.grace);
    this.#guard = await startGuard(({ message }) => {
      this.end(EXIT.failed);
      this.tellError(message);
      this.#child?.lose();
    });
  }

  #onSignal(name) {
    const ends = ENDS.includes(name);
    if (ends) {
      const { name: before, atMs } = this.#signalled;
      // npm and npx pass on what the terminal has sent to their whole group.
      if (name === before && performance.now() - atMs < SAME_SIGNAL_MS) return;
      this.#signalled = { name, atMs: performance.now() };
    }
    this.tell('signal', { signal: name });
    if (this.#child) this.#child.signal(name, { ends });
    else if (this.#ending?.signal && ends) this.#leave(codeOfSignal(name), name);
    if (ends || (name === 'SIGHUP' && !this.#child)) this.end(codeOfSignal(name), { signal: name });
  }

  /** Ends at once; the lease is not released. */
  #leave(code, why) {
    this.tell('left', { code }, `${why}: the lease is not released, and runs out within ${this.elector?.config.leaderTimeout ?? 0} ms`);
    process.exit(code);
  }

  /** After a signal: what became of the lease. */
  async #tellLease() {
    if (!this.#ending?.signal || !this.elector) return;
    const { serverId } = this.elector.config;
    // Docker kills what has not ended 10 s after its SIGTERM.
    const shown = await look(this.#options, undefined, AbortSignal.timeout(TELL_MS)).catch(() => undefined);
    const held = shown === undefined || shown.leaderId === serverId;
    // No look came through: a claim may have landed all the same.
    const unsure = `a lease that this member may hold runs out within ${this.elector.config.leaderTimeout} ms`;
    const sure = held ? `the lease runs out within ${shown?.leftMs} ms` : 'this member holds no lease';
    const text = shown === undefined ? unsure : sure;
    this.tell('left', { held }, `${this.#ending.signal}: ${text}`);
  }
}
