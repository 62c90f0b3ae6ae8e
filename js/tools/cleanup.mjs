// Whatever we start ends with us: on return, on a signal, on a crash, and by the guard even on SIGKILL.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const GUARD = fileURLToPath(new URL('guard.mjs', import.meta.url));
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

const pids = new Set();
const paths = new Set();
let guard;
let onSignal = (signal) => process.exit(128 + SIGNALS[signal]);

/** Says what a signal does from now on; the default is to exit with the shell's code for it. */
export function handleSignals(handler) {
  onSignal = handler;
}

/** Starts a process in a group of its own, so that its children are ended with it. `nice` is how far it gives way to others, as
 * this process does where nobody says. */
export function spawnKept(command, args, { nice = os.getPriority(), ...options } = {}) {
  watch();
  const child = spawn(command, args, { ...options, detached: true });
  if (child.pid !== undefined) {
    if (nice > 0) giveWay(child.pid, nice);
    pids.add(child.pid);
    tellGuard({ keep: child.pid });
    child.once('exit', () => {
      // The leader of the group is gone; what it left behind goes too.
      killGroup(child.pid);
      pids.delete(child.pid);
      tellGuard({ drop: child.pid });
    });
  }
  return child;
}

/** Linux weighs whole sessions against each other, and the nice value of a process within its session alone. */
function giveWay(pid, nice) {
  try {
    os.setPriority(pid, nice);
    fs.writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // It has ended, or this system weighs no sessions: then it competes with the others.
  }
}

/** A folder among the temporary ones, which goes when this process ends, however it ends. */
export function newFolder(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `edgelect-${name}-`));
  keepPath(folder);
  return folder;
}

/** Removes the path when this process ends, however it ends. */
export function keepPath(kept) {
  watch();
  paths.add(kept);
  tellGuard({ path: kept });
}

/** Removes a kept path now. */
export function removePath(kept) {
  removeQuietly(kept);
  paths.delete(kept);
}

export function killGroup(pid, signal = 'SIGKILL') {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

/** Resolves to what a process ended with, an exit code or a signal; rejects where it did not start. */
export function endOf(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
}

/** Ends a kept process: politely first where a grace is given, then for certain. */
export async function endProcess(child, graceMs = 0) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  if (graceMs > 0) {
    killGroup(child.pid, 'SIGTERM');
    let timer;
    await Promise.race([exited, new Promise((resolve) => (timer = setTimeout(resolve, graceMs)))]);
    clearTimeout(timer);
  }
  killGroup(child.pid);
  await exited;
}

/** Runs a command to its end, within a bound, and tells how it ended, what it wrote, and whether it was too late and so ended
 * by us: within a grace where one is given. */
export async function runBounded(program, args, { limitMs, graceMs = 0, onText = () => {}, stdio = ['ignore', 'pipe', 'pipe'], ...options }) {
  const child = spawnKept(program, args, { ...options, stdio });
  const ended = { output: '', errors: '', late: false };
  const keep = (stream, kept) => stream?.setEncoding('utf8').on('data', (text) => {
    ended[kept] += text;
    onText(text);
  });
  keep(child.stdout, 'output');
  keep(child.stderr, 'errors');
  const timer = setTimeout(() => {
    ended.late = true;
    void endProcess(child, graceMs);
  }, limitMs);
  const code = await endOf(child).catch(({ message }) => message);
  clearTimeout(timer);
  return { ...ended, code };
}

function watch() {
  if (guard !== undefined) return;
  guard = spawn(process.execPath, [GUARD], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  guard.unref();
  guard.stdin.unref?.();
  // A guard that died must not take the program with it.
  guard.on('error', () => {});
  guard.stdin.on('error', () => {});
  process.on('exit', endAll);
  for (const signal of Object.keys(SIGNALS)) process.on(signal, () => onSignal(signal));
}

function tellGuard(message) {
  guard.stdin.write(`${JSON.stringify(message)}\n`);
}

function endAll() {
  for (const pid of pids) killGroup(pid);
  for (const kept of paths) removeQuietly(kept);
}

function removeQuietly(kept) {
  try {
    // Retried, because a process killed a moment ago may still be writing there.
    fs.rmSync(kept, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  } catch {
    // The guard tries once more.
  }
}
