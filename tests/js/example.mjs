// The programs of examples/ as somebody runs them: their own process, and what it prints.
import { spawnSync } from 'node:child_process';
import { startExample } from '../examples/process.mjs';
import { atEnd, until } from './servers.mjs';

const LONG_MS = 40_000;

/** Runs a program of Node's to its end: `{ status, stdout, stderr }`. */
export const run = (args, { env = {}, node = process.execPath } = {}) =>
  spawnSync(node, args.map(String), { env: { PATH: process.env.PATH, ...env }, encoding: 'utf8', timeout: LONG_MS });

/** Starts one whose lines are read by `read`; it is ended with the file, also where it is stopped by then. */
export const start = (args, { env = {}, node = process.execPath, read = JSON.parse } = {}) => {
  const heard = [];
  const onLine = (line) => heard.push(read(line));
  const { child, ended, kill } = startExample([node, ...args.map(String)], { env: { PATH: process.env.PATH, ...env }, onLine });
  atEnd(kill);
  const all = (event) => heard.filter((one) => one.event === event);
  /** Waits for so many lines of this event, and gives the last of them. */
  const next = (event, count = 1) => until(() => all(event).at(count - 1), LONG_MS);
  return { child, heard, ended, all, next };
};
