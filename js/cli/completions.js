// `edgelect completions`: what completes the commands in a shell, out of the commands themselves.
import { commandOf } from './command.js';

export const completions = () => commandOf('completions').action((shell, _flags, command) => {
  console.log(SCRIPTS[shell](command.parent.commands));
});

const optionsOf = (command) => command.createHelp().visibleOptions(command);
/** All words that may follow the command's name. */
const wordsOf = (command) =>
  [...command.commands.map((one) => one.name()), ...command.registeredArguments.flatMap((one) => one.argChoices ?? []), ...optionsOf(command).map(({ long }) => long)].join(' ');
const quoted = (text) => `'${text.replaceAll("'", '’')}'`;

const bash = (commands) => {
  const choices = commands.flatMap((command) => optionsOf(command).filter((one) => one.argChoices).map(({ long, argChoices }) =>
    [`${command.name()}\\ ${long}`, argChoices.join(' ')]));
  return `_edgelect() {
  local words=
  case "\${COMP_WORDS[1]}" in
${commands.map((one) => `    ${one.name()}) words=${quoted(wordsOf(one))} ;;`).join('\n')}
  esac
  case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD-1]}" in
${choices.map(([long, words]) => `    ${long}) words=${quoted(words)} ;;`).join('\n')}
  esac
  [ "$COMP_CWORD" -gt 1 ] || words=${quoted(commands.map((one) => one.name()).join(' '))}
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _edgelect edgelect`;
};

const zsh = (commands) => `autoload -Uz compinit bashcompinit && compinit && bashcompinit\n${bash(commands)}`;

const fish = (commands) => commands.flatMap((command) => {
  const name = command.name();
  const within = `complete -c edgelect -n '__fish_seen_subcommand_from ${name}'`;
  const first = command.commands.map((one) => one.name()).concat(command.registeredArguments.flatMap((one) => one.argChoices ?? []));
  return [
    `complete -c edgelect -f -n __fish_use_subcommand -a ${name} -d ${quoted(command.summary() || command.description())}`,
    ...(first.length > 0 ? [`${within} -a ${quoted(first.join(' '))}`] : []),
    ...optionsOf(command).map(({ long, short, required, description, argChoices }) =>
      [within, `-l ${long.slice(2)}`, short && `-s ${short.slice(1)}`, required && '-r', argChoices && `-fa ${quoted(argChoices.join(' '))}`, `-d ${quoted(description)}`].filter(Boolean).join(' ')),
  ];
}).join('\n');

const SCRIPTS = { bash, zsh, fish };
