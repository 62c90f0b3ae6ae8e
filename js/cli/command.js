import { Command } from 'commander';

const WRONG_LINE = 2;

/** What is wrong with a command line is no finding of a command's, and 1 is one. */
export class PlainCommand extends Command {
  error(message, options) {
    return super.error(message, { ...options, exitCode: WRONG_LINE });
  }
}
