// Runs a command quietly, with signs of life, and shows its output only when it fails.
import { spawnSync } from 'node:child_process';
import { spawnKept } from './cleanup.mjs';
import { ROOT } from './paths.mjs';

const QUIET_MS = 2_000;
const PLAIN_EVERY_MS = 15_000;
const TAIL_LINES = 40;

/** An error whose message is all that the user needs: no stack is shown. */
export class PlainError extends Error {}

/** Ends the program with one line for a plain error, with the stack for a bug. */
export function fail(error) {
  console.error(error instanceof PlainError ? `edgelect: ${error.message}` : error);
  process.exit(1);
}

/** The output of a short command, or undefined where it is missing or fails. */
export function ask(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', timeout: 60_000 });
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
export function run(label, command, args, { env = process.env, hint = '' } = {}) {
  return step(label, (note) => new Promise((resolve, reject) => {
    const tail = [];
    const child = spawnKept(command, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const read = lineReader((line) => {
      tail.push(line);
      if (tail.length > TAIL_LINES) tail.shift();
      note(line);
    });
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', (error) => reject(new PlainError(`cannot start ${command}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const shown = [command, ...args].join(' ');
      const output = tail.map((line) => `  ${line}`).join('\n');
      reject(new PlainError(`\`${shown}\` ended with ${signal ?? code}.${hint && ` ${hint}`}\n${output}`));
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

/** `1 s` is precise enough for a person who waits. */
export function seconds(ms) {
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** The steps that are shown now; on a terminal each has a line of its own, because two may run at once. */
const shown = new Set();
let drawnLines = 0;

function startProgress(label, startMs) {
  const terminal = process.stdout.isTTY;
  const one = { label, startMs, last: '' };
  const show = () => {
    shown.add(one);
    if (terminal) draw();
    else console.log(lineOf(one));
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
      clear();
      console.log(`${label}: ${word} in ${seconds(Date.now() - startMs)}`);
      draw();
    },
  };
}

function lineOf({ label, startMs }) {
  return `${label} … ${seconds(Date.now() - startMs)}`;
}

function draw() {
  clear();
  if (!process.stdout.isTTY) return;
  const width = (process.stdout.columns ?? 80) - 1;
  process.stdout.write([...shown].map((one) => `${lineOf(one)}  ${one.last}`.slice(0, width)).join('\n'));
  drawnLines = shown.size;
}

function clear() {
  if (drawnLines > 0) process.stdout.write(`\r\u001b[2K${'\u001b[1A\u001b[2K'.repeat(drawnLines - 1)}`);
  drawnLines = 0;
}
