// A command of ours, out of src/cli/commands.json, which the native command line reads as well.
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import spec from '../../src/cli/commands.json';

const { commands, exitCodes, kinds, sets } = spec;

export const EXIT = exitCodes;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Others mean another time in another place, or what nobody expects. */
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const LONGEST_MS = 366 * UNIT_MS.d;
/** Below it the words on an option stand under it. */
const NARROW = 60;
const INDENT = 6;

/** A command with its own words for help and errors. */
export class PlainCommand extends Command {
  constructor(name) {
    super(name);
    this.helpOption('-h, --help', 'show this help').helpCommand(false);
    this.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'edgelect: ')) });
    this.configureHelp({ minWidthToWrap: 20, formatItem, subcommandTerm: (command) => command.name() });
  }

  createCommand(name) {
    return new PlainCommand(name);
  }

  /** A command line without a command is wrong, too. */
  help(context) {
    this.outputHelp(context);
    process.exit(context?.error ? EXIT.settings : EXIT.done);
  }

  /** What is wrong with a command line is no finding of a command's, and 1 is one. */
  error(message, options) {
    this.showHelpAfterError(`See ${lineOf(this)} --help.`);
    return super.error(message, { ...options, exitCode: EXIT.settings });
  }
}

/** The words that call a command: `edgelect doctor`. */
function lineOf(command) {
  return command.parent ? `${lineOf(command.parent)} ${command.name()}` : command.name();
}

/** The command of this name, without what it does. */
export const commandOf = (name) => {
  const { about, arguments: operands = [], options = [], sets: used = [], details, exit = sets[used[0]].exit, examples } = commands.find((one) => one.name === name);
  const command = new PlainCommand(name).description(about);
  for (const { name: operand, variadic, optional, choices, help } of operands) {
    const words = variadic ? `${operand}...` : operand;
    const argument = new Argument(optional ? `[${words}]` : `<${words}>`, help);
    command.addArgument(choices ? argument.choices(choices) : argument);
    // What follows the name of a command to run is that command's.
    if (variadic && !optional) command.passThroughOptions();
  }
  const all = [...options, ...used.flatMap((set) => sets[set].options)];
  for (const option of all) command.addOption(optionOf(option));
  const texts = [...details, ...used.flatMap((set) => [...(sets[set].details ?? []), ...(sets[set].npm ?? [])])];
  if (all.some(({ kind }) => kind === 'duration')) texts.push(`A duration is ${kinds.duration}.`);
  return command.addHelpText('after', () => {
    const help = Object.assign(command.createHelp(), { helpWidth: process.stdout.columns ?? 80 });
    const codes = exit.map(([code, means]) => help.formatItem(code, Math.max(...exit.map(([one]) => one.length)), means, help));
    const lines = examples.flatMap(([line, says]) => [...(says ? [`  # ${says}`] : []), `  ${line.replace('{edgelect}', 'npx edgelect')}`]);
    const pages = texts.map((text) => `${help.boxWrap(text, help.helpWidth)}\n`);
    return ['', ...pages, 'Exit codes:', ...codes, '', 'Examples:', ...lines].join('\n');
  });
};

function optionOf({ long, short, value, kind, most, choices, conflicts = [], required, variable, help }) {
  const option = new Option(`${short ? `-${short}, ` : ''}--${long}${value ? ` <${value}>` : ''}`, help);
  if (choices) option.choices(choices);
  else if (READERS[kind]) option.argParser((text) => READERS[kind](text, most));
  else if (variable) option.argParser(notEmpty);
  return option.conflicts(conflicts).makeOptionMandatory(required === true);
}

/** An empty one is a variable of a script that is not set, and would hide ours. */
function notEmpty(text) {
  if (text === '') throw new InvalidArgumentError('It is empty.');
  return text;
}

const READERS = {
  duration: (text) => {
    const [, number, unit = 's'] = /^(\d{1,15}(?:\.\d{1,3})?)(ms|s|m|h|d)?$/.exec(text) ?? [];
    const ms = Math.round(Number(number) * UNIT_MS[unit]);
    if (number === undefined || ms > LONGEST_MS) throw new InvalidArgumentError(`It is ${kinds.duration}, at most 366d.`);
    return ms;
  },
  time: (text) => {
    const time = new Date(RFC_3339.test(text) ? text : NaN);
    const [day] = text.split('T');
    // A day that no month has would count as one of the next month.
    const isDay = Number.isFinite(time.getTime()) && new Date(day).toISOString().startsWith(day);
    if (!isDay) throw new InvalidArgumentError(`It is ${kinds.time}.`);
    return time;
  },
  code: (text) => {
    if (!/^\d{1,3}$/.test(text) || Number(text) > 255) throw new InvalidArgumentError(`It is ${kinds.code}.`);
    return Number(text);
  },
  number: (text, most = 1e9) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) > most) throw new InvalidArgumentError(`It is ${kinds.number}, at most ${most}.`);
    return Number(text);
  },
};

function formatItem(term, termWidth, description, help) {
  const { helpWidth = 80 } = help;
  const narrow = helpWidth < NARROW || termWidth > helpWidth / 2;
  const left = narrow ? INDENT : termWidth + 4;
  const lines = help.boxWrap(description ?? '', Math.max(helpWidth - left, help.minWidthToWrap)).split('\n');
  const head = narrow ? `  ${term}\n${' '.repeat(left)}` : `  ${term.padEnd(termWidth)}  `;
  return head + lines.join(`\n${' '.repeat(left)}`);
}
