// One run of a command: a process group that is dead before the authority under which it runs ends.
import { fork, spawn } from 'node:child_process';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { EXIT } from './command.js';
import { MARK, QUIET, isAlive, killGroup, marked, nowMs, readings, signalMarked, startedAt } from './group.js';

const GUARD = fileURLToPath(new URL('./guard.js', import.meta.url));
const POLL_MS = 20;
/** How often the authority is read where nothing presses. */
const LOOK_MS = 500;
/** How long a group may take to die of SIGKILL before its lease is left to run out. */
const DYING_MS = 1_000;
const NOT_STARTED = {
  ENOENT: EXIT.notFound, ENOTDIR: EXIT.notFound, ENAMETOOLONG: EXIT.notFound, EACCES: EXIT.notExecutable, ELOOP: EXIT.notExecutable,
};

/** The exit code of a shell for a process that a signal has ended. */
export const codeOfSignal = (signal) => 128 + os.constants.signals[signal];

/** How long before the fence the group gets SIGTERM and SIGKILL, in milliseconds.
 * @throws Error `EDGELECT_CONFIG` where SIGTERM would come before a renewal can be answered. */
export const timesOf = ({ leaderTimeout, margin, frequentInterval, requestTimeout }, grace) => {
  const killMs = Math.min(500, leaderTimeout / 20);
  const most = Math.floor(leaderTimeout - margin - frequentInterval - requestTimeout - killMs);
  const graceMs = grace ?? Math.min(leaderTimeout / 6, Math.max(most, 0));
  if (graceMs <= most || grace === undefined) return { graceMs, killMs };
  const message = `--grace = ${grace} ms: at most ${most} ms with this lease, so that a renewal is answered before SIGTERM; set a longer --lease`;
  throw Object.assign(new Error(message), { code: 'EDGELECT_CONFIG' });
};

/** Starts the guard, once for all runs of this process, and again where somebody has ended it; `onGone` hears if that fails. */
export const startGuard = async (onGone) => {
  const mark = crypto.randomUUID();
  // Of an edgelect that runs this one: its guard leaves ours alone, which has a command of its own to end.
  const { [MARK]: _outer, ...env } = process.env;
  let guard;
  let last;
  let isOver = false;
  const tell = (told) => {
    last = told;
    if (guard.connected) guard.send(told, () => {});
  };
  const begin = async () => {
    const begun = fork(GUARD, [mark], { env, detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: [] });
    await new Promise((resolve, reject) => begun.once('message', resolve).once('error', reject).once('exit', () => reject(new Error('the guard has ended'))));
    begun.unref();
    begun.channel.unref?.();
    guard = begun;
    if (last) tell(last);
    begun.once('exit', () => {
      if (!isOver) begin().catch(onGone);
    });
  };
  await begin();
  const end = () => {
    isOver = true;
    if (guard.connected) guard.disconnect();
  };
  return { mark, tell, end };
};

export class Child {
  #group;
  #leftMs;
  #times;
  #guard;
  #onDenied;
  #killAfterMs;
  /** When it gets SIGKILL, whatever its lease says. */
  #killAtMs = Infinity;
  #lost = false;
  #isOver = false;
  #ended;
  #timer;

  /** `leftMs()` is how long the authority lasts, or what others respect of it. */
  constructor({ command, shell, env, times, killAfterMs, leftMs, guard, onDenied }) {
    this.#onDenied = onDenied;
    this.#leftMs = leftMs;
    this.#times = times;
    this.#killAfterMs = killAfterMs;
    this.#guard = guard;
    const [program, ...args] = shell ? ['/bin/sh', '-c', command.join(' ')] : command;
    let child;
    // It knows of a command before that can act: this process may be killed right after.
    this.#tellGuard(readings(), leftMs());
    try {
      child = spawn(program, args, { env: { ...env, [MARK]: guard.mark }, stdio: 'inherit', detached: true });
    } catch (error) {
      // Only some errors are told by an event.
      this.#ended = Promise.resolve({ code: NOT_STARTED[error.code] ?? EXIT.failed, error, lost: false });
      return;
    }
    this.#group = child.pid;
    this.look();
    this.#ended = new Promise((resolve) => {
      const end = (how) => resolve({ ...how, lost: this.#lost });
      child.once('exit', (code, signal) => {
        // The guard may have been the first to see that the authority is over.
        this.#lost ||= signal === 'SIGKILL' && this.#leftMs() <= times.killMs;
        end({ code: signal ? codeOfSignal(signal) : code, signal });
      });
      child.once('error', (error) => end({ code: NOT_STARTED[error.code] ?? EXIT.failed, error }));
    });
  }

  /** Resolves once nothing of the command runs: `{ code, signal, lost, error }`, and `lives` where SIGKILL did not help. */
  async end() {
    const ended = await this.#ended;
    let lives = await this.#lives();
    if (lives) lives = await this.#sweep();
    // Its term may end in this very turn, and has it looked at once more.
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (!lives) this.#guard.tell({});
    return { ...ended, lives };
  }

  /** Passes a signal on. One that `ends` the command has a limit; the second one is SIGKILL. */
  signal(name, { ends }) {
    const again = ends && this.#killAtMs < Infinity;
    if (ends) this.#killAt(this.#killAfterMs);
    if (again) this.#sendAll('SIGKILL');
    else this.#send(name);
  }

  /** Its term is given up, and the lease waits for it. */
  lose() {
    // One that has ended by itself, and is not heard yet, was not ended by us.
    if (this.#isOver || !this.#isAlive()) return;
    this.#lost = true;
    this.#killAt(this.#times.graceMs);
    this.#sendAll('SIGTERM');
  }

  /** Looks at what is left of the authority, and again in time. */
  look() {
    if (this.#isOver) return;
    const { graceMs, killMs } = this.#times;
    // Before the authority is read, so that the fence is not taken for later than it is.
    const [atMs, atWallMs] = readings();
    const leftMs = this.#leftMs();
    if (leftMs <= killMs || atMs >= this.#killAtMs) {
      this.#lost ||= leftMs <= killMs && this.#isAlive();
      this.#sendAll('SIGKILL');
    } else if (leftMs <= killMs + graceMs && !this.#lost) {
      this.lose();
    }
    this.#tellGuard([atMs, atWallMs], leftMs);
    const nextMs = Math.min((leftMs - killMs - graceMs) / 2, this.#killAtMs - atMs, LOOK_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), Math.max(nextMs, POLL_MS));
  }

  #tellGuard([atMs, atWallMs], leftMs) {
    const restMs = Math.max(leftMs - this.#times.killMs / 2, 0);
    this.#guard.tell({ group: this.#group, untilMs: atMs + restMs, untilWallMs: atWallMs + restMs });
  }

  /** Ends what the command has left behind; whether it lives all the same. */
  async #sweep() {
    this.#sendAll('SIGTERM');
    this.#killAt(this.#times.graceMs);
    while (await this.#lives()) {
      if (nowMs() >= this.#killAtMs + DYING_MS) return true;
      await sleep(POLL_MS);
    }
    return false;
  }

  /** Whether anything of it runs. Who has just begun another process or program is seen a moment later. */
  async #lives() {
    if (this.#group === undefined) return false;
    const [untilMs, since] = [nowMs() + DYING_MS, startedAt()];
    for (let quiet = 0; ;) {
      const { ids, isClear } = marked(this.#guard.mark, since);
      if (ids.length > 0 || isAlive(this.#group)) return true;
      if (!isClear && nowMs() > untilMs) return true;
      quiet = isClear ? quiet + 1 : 0;
      if (quiet === QUIET) return false;
      await sleep(POLL_MS);
    }
  }

  #killAt(inMs) {
    if (this.#isOver) return;
    this.#killAtMs = Math.min(this.#killAtMs, nowMs() + inMs);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), POLL_MS);
  }

  #isAlive() {
    return this.#group !== undefined && (isAlive(this.#group) || marked(this.#guard.mark).ids.length > 0);
  }

  #send(signal) {
    if (this.#group !== undefined) killGroup(this.#group, signal, this.#onDenied);
  }

  /** To what has left the group as well: `timeout` makes a group of its own. */
  #sendAll(signal) {
    this.#send(signal);
    signalMarked(this.#guard.mark, signal, this.#group);
  }
}
