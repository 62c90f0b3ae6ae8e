// What a figure is made of, how it is shown, and where its last result is kept for the README.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Table from 'cli-table3';
import { inRoot } from '../tools/paths.mjs';
import { PlainError } from '../tools/run.mjs';
import { mustFind } from '../tools/wait.mjs';

const FOLDER = inRoot('build/figures');
const PAGE = 'docs/generated/figures.md';
const HEAD = `# Figures

Measured by \`npm run figures\`, written by \`npm run figures -- --write\`. \`npm test\` checks the same limits in less time (steps \`figures\` and
\`size\`). A failover is counted from the SIGKILL, or from the call of \`resign()\`, to the next \`onAcquireLeadership\`; of 20 rounds the
p99 is the slowest.`;
const NO_LINES = Object.fromEntries([
  'top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right',
  'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle',
].map((part) => [part, '']));

/**
 * One line of a figure.
 * @param what what was measured
 * @param value the number that is held against the limit
 * @param shown the value as text, with its unit
 * @param most the limit: no more than this; or `least`: no less. Neither where there is nothing to hold.
 * @param limit the limit as text, with the formula that it follows
 * @param against what others need, or what it is compared with
 * @param readme whether it belongs into the table of docs/generated/figures.md
 */
export function line({ what, value, shown, most, least, limit = '', against = '', readme = false }) {
  const limited = most !== undefined || least !== undefined;
  // Written so that a value that is no number holds nothing.
  const holds = !limited || ((most === undefined || value <= most) && (least === undefined || value >= least));
  return { what, value, shown, most, least, limit, against, readme, holds };
}

/** Where it was measured: without this no figure means anything to somebody else. */
export function machine() {
  return {
    cores: os.availableParallelism(),
    processor: os.cpus()[0]?.model.trim() ?? 'unknown',
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    Node: process.versions.node,
    load: Number(os.loadavg()[0].toFixed(2)),
  };
}

/** How much of all cores is busy from now until the returned function is called, 0 to 1. */
export function watchCpu() {
  const read = () => os.cpus().reduce(([busy, all], { times }) => {
    const total = Object.values(times).reduce((sum, ms) => sum + ms, 0);
    return [busy + total - times.idle, all + total];
  }, [0, 0]);
  const [busyBefore, allBefore] = read();
  return () => {
    const [busy, all] = read();
    return (busy - busyBefore) / Math.max(all - allBefore, 1);
  };
}

/** Shows a result and keeps it; true if every limit holds. */
export function publish(name, { title, lines, notes = [], extra = {} }, startedWith) {
  const date = new Date().toISOString();
  const result = { name, title, date, machine: { ...startedWith, ...extra }, lines, notes };
  fs.mkdirSync(FOLDER, { recursive: true });
  fs.writeFileSync(fileOf(name), `${JSON.stringify(result, undefined, 2)}\n`);
  show(result);
  return lines.every(({ holds }) => holds);
}

function show({ name, title, date, machine: where, lines, notes }) {
  const { cores, processor, system, load, ...versions } = where;
  const named = Object.entries(versions).map(([what, version]) => `${what} ${version}`);
  console.log(`\n${name}: ${title}`);
  console.log(`${date.slice(0, 16).replace('T', ' ')} UTC, ${cores} cores (${processor}), ${system}, load ${load} at the start`);
  console.log(named.join(', '));
  const table = new Table({
    head: ['', 'measured', 'limit', 'holds', 'against'],
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
  });
  for (const { what, shown, limit, most, least, holds, against } of lines) {
    const verdict = most === undefined && least === undefined ? '' : holds ? 'yes' : 'NO';
    table.push([what, shown, limit, verdict, against]);
  }
  console.log(table.toString().replace(/ +$/gm, ''));
  for (const note of notes) console.log(note);
}

/** Writes the page of these figures out of their last results; gives its path. */
export function writePage(names) {
  const missing = names.filter((name) => readIfAny(fileOf(name)) === undefined);
  if (missing.length > 0) throw new PlainError(`not measured yet: ${missing.join(', ')}; see npm run figures -- --list`);
  fs.mkdirSync(path.dirname(inRoot(PAGE)), { recursive: true });
  fs.writeFileSync(inRoot(PAGE), `${HEAD}\n\n${tableOf(names)}\n`);
  return PAGE;
}

function tableOf(names) {
  const places = new Set();
  const rows = names.flatMap((name) => {
    const { lines, date, machine: { cores, processor, Node } } = JSON.parse(readIfAny(fileOf(name)));
    places.add(`${date.slice(0, 10)} on ${cores} cores (${processor}), Node ${Node}`);
    return lines.filter(({ readme }) => readme).map(({ what, shown, limit, against, holds }) => {
      const measured = holds ? shown : `${shown}: beyond the limit`;
      return `| ${[what, measured, limit, against].map(cell).join(' | ')} | \`npm run figures -- ${name}\` |`;
    });
  });
  const head = ['| what | measured | limit | against | command |', '|---|---|---|---|---|'];
  return [...head, ...rows, '', `Measured ${[...places].join('; ')}.`].join('\n');
}

const fileOf = (name) => path.join(FOLDER, `${name}.json`);
const cell = (text) => String(text).replaceAll('|', '\\|');

/** The value below which this share of all lies; of a few values the greatest is as good as the 99th of a hundred. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Resolves to what comes to be found, and looks often: what is measured is when. */
export const eventually = (find, limitMs, what) => mustFind(limitMs, find, what, { lookMs: 1 });

/** The version of a package that is installed here. */
export const versionOf = (name) => JSON.parse(fs.readFileSync(inRoot(`node_modules/${name}/package.json`), 'utf8')).version;

/** A file's text, where there is such a file. */
export function readIfAny(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

export { pause as sleep } from '../tools/wait.mjs';
