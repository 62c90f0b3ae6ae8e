// One process of an example, with what it prints, line by line.
import { endProcess, killGroup, spawnKept } from '../../js/tools/cleanup.mjs';
import { lineReader } from '../../js/tools/run.mjs';

/** Within what a process has to end, on a machine that is busy with the others. */
const ENDS_MS = 60_000;

/** Starts it; `onLine` hears each line of its output. */
export function startExample([program, ...args], { cwd, env, onLine }) {
  const child = spawnKept(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines = [];
  let errors = '';
  const read = lineReader((line) => {
    lines.push(line);
    onLine?.(line);
  });
  child.stdout.on('data', read);
  child.stderr.on('data', (text) => (errors += text));
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message)).once('close', (code, signal) => resolve(signal ?? code));
  });
  return {
    lines,
    ended,
    errors: () => errors,
    // Its last lines may still be on their way when it has ended.
    kill: async () => {
      await endProcess(child);
      await ended;
    },
    /** Asks it to end and tells what it ended with, or `late`. */
    async stop() {
      killGroup(child.pid, 'SIGTERM');
      let timer;
      const late = new Promise((resolve) => (timer = setTimeout(resolve, ENDS_MS, 'late')));
      const code = await Promise.race([ended, late]);
      clearTimeout(timer);
      await endProcess(child);
      return code;
    },
  };
}

/** What a process printed, for the message of a failure. */
export const shown = ({ lines, errors }) => [...lines, errors()].join('\n');
