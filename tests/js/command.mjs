// The command line as it is built, with the variables that a test gives it.
import { execFile } from 'node:child_process';
import { inRoot } from '../../js/tools/paths.mjs';

export const CLI = inRoot('js/dist/cli.js');

/** Runs `edgelect` with these variables and no others of its kind: `{ code, stdout, stderr }`. */
export const edgelect = (args, { variables = {}, cwd } = {}) =>
  new Promise((resolve) => {
    const clean = Object.entries(process.env).filter(([name]) => !/^(EDGELECT|AWS)_/.test(name));
    const options = { cwd, env: { ...Object.fromEntries(clean), ...variables }, timeout: 60_000 };
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });

export const doctor = (args, variables) => edgelect(['doctor', ...args], { variables });
