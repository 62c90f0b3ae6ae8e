import { Command } from 'commander';

const WRONG_LINE = 2;

/** A command of ours, with its own words for help and errors. */
export class PlainCommand extends Command {
  constructor(name) {
    super(name);
    this.helpOption('-h, --help', 'show this help').helpCommand(false);
    this.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'edgelect: ')) });
  }

  createCommand(name) {
    return new PlainCommand(name);
  }

  /** What is wrong with a command line is no finding of a command's, and 1 is one. */
  error(message, options) {
    this.showHelpAfterError(`See ${lineOf(this)} --help.`);
    return super.error(message, { ...options, exitCode: WRONG_LINE });
  }
}

/** The words that call a command: `edgelect doctor`. */
function lineOf(command) {
  return command.parent ? `${lineOf(command.parent)} ${command.name()}` : command.name();
}
