// Runs a command quietly, with signs of life, and shows its output only when it fails.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { spawnKept } from './cleanup.mjs';
import { ROOT } from './paths.mjs';

const QUIET_MS = 2_000;
const PLAIN_EVERY_MS = 15_000;
const TAIL_LINES = 40;

const DISK_IS_FULL = 'the disk is full: free 6 GB, then run it again';
const LEAST_FREE = 32e6;
/** What commands say when it is not our fault, and what to do then. */
const CAUSES = [
  [/ENOSPC|No space left on device|\bos error 28\b/i, DISK_IS_FULL],
  [/EDQUOT|Disk quota exceeded/i, 'your quota on this disk is used up: free 6 GB, then run it again'],
  [/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|NewConnectionError|ConnectTimeoutError|Max retries exceeded|Could(n't| not) resolve host|Could(n't| not) connect|failed to (lookup address|connect)|error sending request|dns error|Temporary failure in name resolution|network is unreachable|spurious network error/i,
    'no network: connect this machine (behind a proxy set HTTPS_PROXY), then run it again'],
  [/No matching distribution found|is not a supported wheel|requires a different Python/i,
    'it has no package for this machine and its Python: use Python 3.10 or newer on Linux (x86_64, arm64) or macOS, then run it again'],
];

/** An error whose message is all that the user needs: no stack is shown. */
export class PlainError extends Error {}

/** Something outside is wrong, and until somebody has done what the message says nothing else will go well either. */
export class AdvisedError extends PlainError {}

// What to do, and the line that shows why, where the lines are from one of the known causes.
function adviceOn(lines) {
  for (const [pattern, advice] of CAUSES) {
    const line = lines.find((one) => pattern.test(one));
    if (line !== undefined) return { advice, line: line.trim().slice(0, 160) };
  }
  return undefined;
}

// Not every program says it, and some trip over the file that they could not write.
function diskIsFull(folder) {
  const { bavail, bsize } = fs.statfsSync(folder);
  return bavail * bsize < LEAST_FREE;
}

/** Ends the program once what it has said is out: a pipe may take it later. */
export function exit(code = 0) {
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}

/** Ends the program with one line for a plain error, with the stack for a bug. */
export function fail(error) {
  tell(error);
  exit(1);
}

/** Tells an error as `fail` does. */
export function tell(error) {
  const advice = error instanceof PlainError ? undefined : adviceOn([`${error?.code}`])?.advice;
  if (advice !== undefined) console.error(`edgelect: ${advice} (${error.message})`);
  else console.error(error instanceof PlainError ? `edgelect: ${error.message}` : error);
}

/** The output of a short command, or undefined where it is missing or fails. */
export function ask(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', timeout: 60_000, maxBuffer: 2 ** 28 });
  return result.status === 0 ? result.stdout : undefined;
}

/** Shows progress for anything over two seconds: a ticker on a terminal, lines elsewhere. */
export async function step(label, work) {
  const startMs = Date.now();
  const progress = startProgress(label, startMs);
  try {
    const result = await work(progress.note);
    progress.end('done');
    return result;
  } catch (error) {
    progress.end('failed');
    throw error;
  }
}

/** Runs a command to its end under a label; its output is shown only if it fails. */
export function run(label, command, args, { cwd = ROOT, env = process.env, patient = false } = {}) {
  return step(label, (note) => new Promise((resolve, reject) => {
    const tail = keepTail(TAIL_LINES);
    const child = spawnKept(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    // What its children start is as patient.
    if (patient && child.pid !== undefined) os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW);
    const read = lineReader((line) => {
      tail.push(line);
      note(line);
    });
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', (error) => reject(new PlainError(`cannot start ${command}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const known = adviceOn(tail.lines) ?? (diskIsFull(cwd) ? { advice: DISK_IS_FULL, line: command } : undefined);
      if (known !== undefined) return reject(new AdvisedError(`${label.replace(/ \(usually .*/, '')}: ${known.advice} (${known.line})`));
      reject(new PlainError(`\`${[command, ...args].join(' ')}\` ended with ${signal ?? code}.\n${tail.shown()}`));
    });
  }));
}

/** Cuts a stream into lines. */
export function lineReader(onLine) {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) onLine(line);
  };
}

/** Keeps the last lines that a process says. */
export function keepTail(count) {
  const lines = [];
  return {
    lines,
    push(line) {
      lines.push(line);
      if (lines.length > count) lines.shift();
    },
    shown: () => lines.map((line) => `  ${line}`).join('\n'),
  };
}

/** `1 s` is precise enough for a person who waits. */
export function seconds(ms) {
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** The steps that are shown now; on a terminal each has a line of its own, because several may run at once. */
const shown = new Set();
let drawnLines = 0;
let otherScreen;

/** From now on `screen` draws what is under way on the terminal, and is told what ends. */
export function showOn(screen) {
  clear();
  otherScreen = screen;
}

/** A line for each step that has run for two seconds. */
export const underWay = () => [...shown].map((one) => `${lineOf(one)}  ${one.last}`);

function startProgress(label, startMs) {
  const terminal = process.stdout.isTTY;
  const one = { label, startMs, last: '' };
  const show = () => {
    shown.add(one);
    if (terminal) draw();
    else report(lineOf(one));
  };
  let timer = setTimeout(() => {
    show();
    timer = setInterval(show, terminal ? 1000 : PLAIN_EVERY_MS);
  }, QUIET_MS);
  return {
    note: (line) => (one.last = line.trim().replace(/[\u0000-\u001f\u007f]/g, '')),
    end: (word) => {
      clearTimeout(timer);
      // What fails is told however short it was: it may have to wait for what runs beside it.
      if (!shown.delete(one) && word === 'done') return;
      report(`${label}: ${word} in ${seconds(Date.now() - startMs)}`);
    },
  };
}

/** Says a line that stays, above what is under way. */
export function report(line) {
  if (otherScreen !== undefined) return otherScreen.say(line);
  clear();
  console.log(line);
  draw();
}

function lineOf({ label, startMs }) {
  return `${label} … ${seconds(Date.now() - startMs)}`;
}

function draw() {
  if (!process.stdout.isTTY || otherScreen !== undefined) return;
  clear();
  const width = (process.stdout.columns ?? 80) - 1;
  process.stdout.write(underWay().map((line) => line.slice(0, width)).join('\n'));
  drawnLines = shown.size;
}

function clear() {
  if (drawnLines > 0) process.stdout.write(`\r\u001b[2K${'\u001b[1A\u001b[2K'.repeat(drawnLines - 1)}`);
  drawnLines = 0;
}
