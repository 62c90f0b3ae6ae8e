//! How many members a group may have: requests, load, failovers and money of 10 to 100,000 followers, simulated with the
//! election as it ships. `npm run scale -- --help` says how.

mod cases;
mod page;
mod plots;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Arg, ArgAction, Command, value_parser};

fn main() -> ExitCode {
    let matches = command().get_matches();
    let quick = matches.get_flag("quick");
    let began = stopwatch();
    let most = matches.get_one::<usize>("up-to").copied();
    let most = most.unwrap_or(if quick { 1_000 } else { 100_000 });
    let results = cases::run(quick, most, |done, all, what| {
        println!("{done} of {all}: {what} ({} s)", began.elapsed().as_secs());
    });
    let page = page::markdown(&results, quick);
    print!("{page}");
    let Some(folder) = matches.get_one::<PathBuf>("write") else { return ExitCode::SUCCESS };
    match write(folder, &page, &results) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("edgelect: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &PathBuf, page: &str, results: &cases::Results) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for (name, text) in plots::draw(results)?.into_iter().chain([("scale.md", page.to_owned())]) {
        std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn command() -> Command {
    Command::new("npm run scale --")
        .about("Simulates groups of 10 to 100,000 followers and prints what they cost and how fast they fail over.")
        .arg(
            Arg::new("quick")
                .long("quick")
                .action(ArgAction::SetTrue)
                .help("Up to 1,000 followers and few failovers, in seconds"),
        )
        .arg(
            Arg::new("up-to")
                .long("up-to")
                .value_name("FOLLOWERS")
                .value_parser(value_parser!(usize))
                .help("No larger groups [default: 100000]"),
        )
        .arg(
            Arg::new("write")
                .long("write")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .num_args(0..=1)
                .default_missing_value("docs/generated")
                .help("Writes the page and its plots there [default: docs/generated]"),
        )
}

/// The simulated time is an argument everywhere; how long a run takes is not part of it.
#[allow(clippy::disallowed_methods)]
fn stopwatch() -> Instant {
    Instant::now()
}
