// What the commands of the repository have in common.
import { parseArgs } from 'node:util';
import { PlainError } from './run.mjs';

/** What `parseArgs` makes of the arguments; a wrong one is told with the help. */
export function parsed(args, options, help, more = {}) {
  try {
    return parseArgs({ args, options, ...more });
  } catch (error) {
    throw new PlainError(`${error.message}\n${help}`);
  }
}

/** Prints, and gives the exit code of a command that was asked for no more than that. */
export function say(text) {
  console.log(text);
  return 0;
}
