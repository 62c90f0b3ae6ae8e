//! The commands out of `commands.json`, which the npm package reads as well.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::exit;
use std::sync::LazyLock;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use edgelect::calendar;
use serde::Deserialize;

use super::tell;

const LONGEST_MS: f64 = 366.0 * 86_400_000.0;
const MOST: u64 = 1_000_000_000;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    serde_json::from_str(include_str!("commands.json")).expect("commands.json is well-formed")
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    about: String,
    exit_codes: BTreeMap<String, i32>,
    kinds: BTreeMap<String, String>,
    sets: BTreeMap<String, Set>,
    commands: Vec<CommandSpec>,
}

#[derive(Deserialize)]
struct Set {
    options: Vec<Flag>,
    #[serde(default)]
    details: Vec<String>,
    #[serde(default)]
    native: Vec<String>,
    #[serde(default)]
    exit: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct CommandSpec {
    name: String,
    only: Option<String>,
    about: String,
    #[serde(default)]
    arguments: Vec<Argument>,
    #[serde(default)]
    options: Vec<Flag>,
    #[serde(default)]
    sets: Vec<String>,
    details: Vec<String>,
    exit: Option<Vec<[String; 2]>>,
    examples: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    #[serde(default)]
    optional: bool,
    help: String,
}

/// One option of a command.
#[derive(Deserialize)]
pub struct Flag {
    /// Its name after `--`.
    pub long: String,
    short: Option<char>,
    value: Option<String>,
    kind: Option<String>,
    most: Option<u64>,
    choices: Option<Vec<String>>,
    conflicts: Option<String>,
    only: Option<String>,
    #[serde(default)]
    required: bool,
    help: String,
    /// The variable that it stands for.
    pub variable: Option<String>,
    /// The stores to which it means something; all where it is left out.
    pub of: Option<Vec<String>>,
}

impl Flag {
    fn is_here(&self) -> bool {
        self.only.as_deref() != Some("npm")
    }
}

/// The exit code of this name.
pub fn code(name: &str) -> i32 {
    SPEC.exit_codes[name]
}

/// The options that stand for variables.
pub fn settings() -> impl Iterator<Item = &'static Flag> {
    ["store", "member"]
        .iter()
        .flat_map(|set| &SPEC.sets[*set].options)
        .filter(|flag| flag.is_here())
}

/// What a command line says.
pub struct Flags {
    values: BTreeMap<&'static str, String>,
    /// The command to run, or the groups to show.
    pub operands: Vec<OsString>,
}

impl Flags {
    /// The text of an option; durations in milliseconds, `true` for one without a value.
    pub fn get(&self, long: &str) -> Option<&str> {
        self.values.get(long).map(String::as_str)
    }

    /// Whether an option is given.
    pub fn has(&self, long: &str) -> bool {
        self.values.contains_key(long)
    }

    /// The number of an option, in milliseconds where it is a duration.
    pub fn number(&self, long: &str) -> Option<u64> {
        self.get(long)?.parse().ok()
    }
}

/// Reads the command line of this process; ends it where that is wrong or asks for help.
pub fn matches() -> ArgMatches {
    program().try_get_matches().unwrap_or_else(|error| {
        let shown = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                tell::print(shown.trim_end());
                exit(code("done"));
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                tell::line(shown.trim_end());
                exit(code("settings"));
            }
            _ => {}
        }
        // What is wrong and what was meant; then come the usage and the way to the help.
        let is_last = |line: &&str| line.starts_with("Usage:") || line.starts_with("For more");
        let mut text = String::new();
        for line in shown.lines().take_while(|line| !is_last(line)).map(str::trim) {
            match line.strip_prefix("tip: ") {
                Some(tip) if tip.starts_with("a similar") => text.push_str(&format!("({tip})")),
                Some(_) => continue,
                None => text.push_str(line),
            }
            text.push(' ');
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let known = |name: &String| spec_of(name).is_some();
        let name = std::env::args_os()
            .nth(1)
            .and_then(|name| name.into_string().ok())
            .filter(known)
            .map(|name| format!("{name} "));
        tell::error(text.strip_prefix("error: ").unwrap_or(&text));
        tell::line(&format!("See edgelect {}--help.", name.unwrap_or_default()));
        exit(code("settings"))
    })
}

fn spec_of(name: &str) -> Option<&'static CommandSpec> {
    SPEC.commands.iter().find(|one| one.name == name && one.only.as_deref() != Some("npm"))
}

fn options_of(spec: &'static CommandSpec) -> impl Iterator<Item = &'static Flag> {
    let all = spec.options.iter().chain(spec.sets.iter().flat_map(|set| &SPEC.sets[set].options));
    all.filter(|flag| flag.is_here())
}

/// What the command line of a command says.
pub fn flags_of(name: &str, matches: &ArgMatches) -> Flags {
    let spec = spec_of(name).expect("clap knows no other commands");
    let text_of = |flag: &Flag| match (flag.value.is_some(), flag.kind.is_some()) {
        (false, _) => matches.get_flag(&flag.long).then(|| "true".to_owned()),
        (true, true) => matches.get_one::<u64>(&flag.long).map(u64::to_string),
        (true, false) => matches.get_one::<String>(&flag.long).cloned(),
    };
    let values =
        options_of(spec).filter_map(|flag| Some((flag.long.as_str(), text_of(flag)?))).collect();
    let operands = spec.arguments.iter().filter_map(|one| matches.get_many::<OsString>(&one.name));
    Flags { values, operands: operands.flatten().cloned().collect() }
}

fn program() -> Command {
    Command::new("edgelect")
        .about(&SPEC.about)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .short('v')
                .long("version")
                .action(ArgAction::Version)
                .help("show the version"),
        )
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help("edgelect COMMAND --help says more about one command.")
        .subcommands(SPEC.commands.iter().filter_map(|spec| spec_of(&spec.name)).map(command_of))
}

fn command_of(spec: &'static CommandSpec) -> Command {
    let arguments = spec.arguments.iter().map(|one| {
        Arg::new(one.name.as_str())
            .help(&one.help)
            .required(!one.optional)
            .num_args(1..)
            .value_parser(value_parser!(OsString))
            // What follows the name of a command to run is that command's.
            .trailing_var_arg(!one.optional)
    });
    Command::new(spec.name.as_str())
        .about(&spec.about)
        .args(arguments)
        .args(options_of(spec).map(arg_of))
        .after_help(more_of(spec))
}

fn arg_of(flag: &'static Flag) -> Arg {
    let mut arg = Arg::new(flag.long.as_str())
        .long(flag.long.as_str())
        .help(&flag.help)
        .required(flag.required);
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    if let Some(other) = &flag.conflicts {
        arg = arg.conflicts_with(other.as_str());
    }
    let Some(value) = &flag.value else { return arg.action(ArgAction::SetTrue) };
    arg = arg.value_name(value.as_str());
    let most = flag.most.unwrap_or(MOST);
    match (&flag.choices, flag.kind.as_deref()) {
        (Some(choices), _) => {
            arg.value_parser(PossibleValuesParser::new(choices.iter().map(String::as_str)))
        }
        (None, Some("duration")) => arg.value_parser(duration_ms),
        (None, Some("time")) => arg.value_parser(time_ms),
        (None, Some("code")) => arg.value_parser(|text: &str| whole(text, "code", 255)),
        (None, Some(_)) => arg.value_parser(move |text: &str| whole(text, "number", most)),
        // An empty one is a variable of a script that is not set, and would hide ours.
        (None, None) if flag.variable.is_some() => {
            arg.value_parser(NonEmptyStringValueParser::new())
        }
        (None, None) => arg,
    }
}

/// A duration in milliseconds.
fn duration_ms(text: &str) -> Result<u64, String> {
    let digits = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => Some(1.0),
        "" | "s" => Some(1_000.0),
        "m" => Some(60_000.0),
        "h" => Some(3_600_000.0),
        "d" => Some(86_400_000.0),
        _ => None,
    };
    let is_number = number.starts_with(|one: char| one.is_ascii_digit()) && !number.ends_with('.');
    let ms = number.parse::<f64>().ok().filter(|_| is_number).zip(unit_ms);
    ms.map(|(number, unit_ms)| (number * unit_ms).round())
        .filter(|ms| *ms <= LONGEST_MS)
        .map(|ms| ms as u64)
        .ok_or_else(|| format!("It is {}, at most 366d.", SPEC.kinds["duration"]))
}

/// A time in milliseconds since the Unix epoch.
fn time_ms(text: &str) -> Result<u64, String> {
    let time = calendar::read_rfc3339(text).and_then(|time| u64::try_from(time.unix_ms).ok());
    time.ok_or_else(|| format!("It is {}.", SPEC.kinds["time"]))
}

fn whole(text: &str, kind: &str, most: u64) -> Result<u64, String> {
    let is_plain = text.bytes().all(|one| one.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_plain && *number <= most);
    number.ok_or_else(|| format!("It is {}, at most {most}.", SPEC.kinds[kind]))
}

/// What stands below the options.
fn more_of(spec: &'static CommandSpec) -> String {
    let of_set = |set: &'static String| SPEC.sets[set].details.iter().chain(&SPEC.sets[set].native);
    let mut parts: Vec<String> =
        spec.details.iter().chain(spec.sets.iter().flat_map(of_set)).cloned().collect();
    if options_of(spec).any(|flag| flag.kind.as_deref() == Some("duration")) {
        parts.push(format!("A duration is {}.", SPEC.kinds["duration"]));
    }
    let exit = spec.exit.as_ref().unwrap_or_else(|| &SPEC.sets[&spec.sets[0]].exit);
    let width = exit.iter().map(|[code, _]| code.len()).max().unwrap_or(0);
    let codes: Vec<String> =
        exit.iter().map(|[code, means]| format!("  {code:width$}  {means}")).collect();
    parts.push(format!("Exit codes:\n{}", codes.join("\n")));
    let example = |[line, says]: &[String; 2]| {
        let line = line.replace("{edgelect}", "edgelect");
        if says.is_empty() { format!("  {line}") } else { format!("  # {says}\n  {line}") }
    };
    let examples: Vec<String> = spec.examples.iter().map(example).collect();
    parts.push(format!("Examples:\n{}", examples.join("\n")));
    parts.join("\n\n")
}
