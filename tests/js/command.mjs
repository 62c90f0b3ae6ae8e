// The command line as it is built, with the variables that a test gives it.
import { execFile, spawn } from 'node:child_process';
import { inRoot } from '../../js/tools/paths.mjs';
import { atEnd, until } from './servers.mjs';

export const CLI = inRoot('js/dist/cli.js');

/** The native command line, where that is under test. */
const NATIVE = process.env.NATIVE_COMMAND_LINE;
export const PROGRAM = NATIVE ? [NATIVE] : [process.execPath, CLI];
/** As an option of a test: why it is left out where the native command line is under test. */
export const npmOnly = { skip: NATIVE && 'the npm package alone has this' };

const LIMIT_MS = 60_000;

/** The environment with these variables and no others of ours or AWS's; no file of AWS's is read. */
const cleaned = (variables) => {
  const clean = Object.entries(process.env).filter(([name]) => !/^(EDGELECT|AWS)_/.test(name));
  return { ...Object.fromEntries(clean), AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null', ...variables };
};

/** Runs `edgelect` with these variables and no others of its kind: `{ code, stdout, stderr }`. */
export const edgelect = (args, { variables = {}, cwd } = {}) =>
  new Promise((resolve) => {
    execFile(PROGRAM[0], [...PROGRAM.slice(1), ...args], { cwd, env: cleaned(variables), timeout: LIMIT_MS }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });

/** Runs `work` for each row, four at a time: starting a program is most of what a command takes. */
export const forEachRow = async (rows, work) => {
  const left = rows.values();
  const next = async () => {
    for (const row of left) await work(row);
  };
  await Promise.all([next(), next(), next(), next()]);
};

export const doctor = (args, variables) => edgelect(['doctor', ...args], { variables });

/** Starts `edgelect` and lets it run: `ended` resolves to `{ code, signal }`, `shown` has what it has written so far. A `script`
 * of bash has it as "$@"; with `heard: false` nobody reads what it writes. */
export const begin = (args, { variables = {}, script, uid, heard = true } = {}) => {
  const [program, ...before] = script === undefined ? PROGRAM : ['bash', '-c', script, 'bash', ...PROGRAM];
  const child = spawn(program, [...before, ...args], { env: cleaned(variables), uid, stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS, killSignal: 'SIGKILL' });
  const shown = { stdout: '', stderr: '' };
  for (const name of heard ? Object.keys(shown) : []) child[name].setEncoding('utf8').on('data', (text) => (shown[name] += text));
  const ended = new Promise((resolve) => child.once(heard ? 'close' : 'exit', (code, signal) => resolve({ code, signal })));
  atEnd(() => {
    child.kill('SIGKILL');
    // What it has left behind may hold them.
    for (const name of Object.keys(shown)) child[name].destroy();
  });
  return { pid: child.pid, shown, ended, kill: (signal) => child.kill(signal), says: (what) => until(() => what.exec(shown.stdout + shown.stderr)) };
};
