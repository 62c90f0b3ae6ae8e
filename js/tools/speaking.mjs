import { spawnKept } from './cleanup.mjs';
import { lineReader } from './run.mjs';

/** Starts a process that speaks in lines: `onLine` hears each of them, `tail` keeps those of its stderr, and `onEnd` gets its exit
 * code or its signal. */
export function startSpeaking({ command, args, env }, { onLine, onEnd, tail }) {
  // A bare environment: whatever AWS_* or EDGELECT_* the user has set is about another store.
  const child = spawnKept(command, args, { env: { PATH: process.env.PATH, NO_COLOR: '1', ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => {});
  // 'close' follows, and says so.
  child.once('error', (error) => tail.push(error.message));
  child.stdout.on('data', lineReader(onLine));
  child.stderr.on('data', lineReader((line) => tail.push(line)));
  child.once('close', (code, signal) => onEnd(signal ?? code));
  return child;
}
