//! The command line.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use edgelect::planted::Bug;

use worlds::sim::run::Seed;

/// What is asked for.
pub enum Task {
    /// Run schedules.
    Prove,
    /// Tell the history of one, with this bug planted.
    Tell(Seed, Option<Bug>),
    /// Tell that of a smaller one which breaks the same rule.
    Shrink(Seed, Option<Bug>),
    /// After how many schedules each planted bug is found, or each of these.
    Mutants(Vec<Bug>),
}

pub struct Arguments {
    pub task: Task,
    /// How many schedules against the modelled store.
    pub schedules: u64,
    /// How many with the real store code between.
    pub store_schedules: u64,
    pub first: u64,
    /// Forget what an interrupted run left.
    pub fresh: bool,
    /// Where an interrupted run is kept.
    pub record: PathBuf,
}

impl Arguments {
    /// Reads the command line; ends the process for `--help` and for what makes no sense.
    pub fn parse() -> Self {
        let matches = command().get_matches();
        let bug = || matches.get_one::<Bug>("planted").copied();
        let number = |name: &str| matches.get_one::<u64>(name).copied();
        let schedules = number("schedules").unwrap_or(1_000_000);
        let task = match (matches.subcommand_name(), matches.get_one::<Seed>("seed")) {
            (Some("mutants"), _) => Task::Mutants(bugs(&matches)),
            (_, Some(seed)) if matches.get_flag("shrink") => Task::Shrink(*seed, bug()),
            (_, Some(seed)) => Task::Tell(*seed, bug()),
            _ => Task::Prove,
        };
        Self {
            task,
            schedules,
            store_schedules: number("store-schedules").unwrap_or(schedules / 10),
            first: number("first").unwrap_or(0),
            fresh: matches.get_flag("fresh"),
            record: matches.get_one::<PathBuf>("record").cloned().unwrap_or_default(),
        }
    }
}

/// The bugs that were named.
fn bugs(matches: &ArgMatches) -> Vec<Bug> {
    let Some(of) = matches.subcommand_matches("mutants") else { return Vec::new() };
    let depths: Vec<&String> = of.get_many("depth").into_iter().flatten().collect();
    let deep = |bug: &Bug| depths.iter().any(|depth| *depth == bug.depth().name());
    let named = of.get_many("bug").into_iter().flatten().copied();
    named.chain(Bug::ALL.iter().copied().filter(deep)).collect()
}

fn command() -> Command {
    let number = |name: &'static str, what: &'static str| {
        Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).help(what)
    };
    Command::new("npm run prove --")
        .about(
            "Runs seeded schedules of faults through the simulator, on all cores, and holds every \
             step against the rules.\nInterrupted with Ctrl-C, it goes on where it was when it is \
             started again.",
        )
        .subcommand(
            Command::new("mutants")
                .about(
                    "Plants each known bug and says after how many schedules it is found, from 15 \
                     base seeds",
                )
                .arg(
                    Arg::new("bug")
                        .value_name("BUG")
                        .num_args(0..)
                        .value_parser(|name: &str| Bug::named(name).ok_or("no bug has this name"))
                        .help("Only these, without the page's head"),
                )
                .arg(
                    Arg::new("depth")
                        .long("depth")
                        .value_name("DEPTH")
                        .action(ArgAction::Append)
                        .value_parser(["core", "store", "epochs", "shards"])
                        .conflicts_with("bug")
                        .help("Only those of this depth, without the page's head"),
                ),
        )
        .subcommand(
            Command::new("model")
                .about("Checks every interleaving of a small group, with stateright")
                .arg(
                    Arg::new("long")
                        .long("long")
                        .action(ArgAction::SetTrue)
                        .help("A tick more each"),
                ),
        )
        .args_conflicts_with_subcommands(true)
        .arg(number("schedules", "How many against the modelled store [default: 1000000]"))
        .arg(number("store-schedules", "How many with the real S3 store code [default: a tenth]"))
        .arg(number("first", "The first seed [default: 0]"))
        .args(of_one_schedule())
        .arg(
            Arg::new("fresh")
                .long("fresh")
                .action(ArgAction::SetTrue)
                .help("Begins anew, whatever an interrupted run left"),
        )
        .arg(
            Arg::new("record")
                .long("record")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .default_value("target/prove.json")
                .help("Where the state of an interrupted run is kept"),
        )
}

fn of_one_schedule() -> [Arg; 3] {
    [
        Arg::new("seed")
            .long("seed")
            .value_name("SEED")
            .value_parser(value_parser!(Seed))
            .conflicts_with_all(["schedules", "store-schedules", "first", "fresh"])
            .help("Tells the history of one schedule, such as core:7 or store:7"),
        Arg::new("shrink")
            .long("shrink")
            .action(ArgAction::SetTrue)
            .requires("seed")
            .help("Leaves out what that schedule can break its rule without"),
        Arg::new("planted")
            .long("planted")
            .value_name("BUG")
            .value_parser(|name: &str| Bug::named(name).ok_or("no bug has this name"))
            .requires("seed")
            .help("Plants this bug first"),
    ]
}
