//! The long proof: as many schedules of the simulator as one has patience for, on all cores, with
//! progress; it can be interrupted and goes on where it was. `npm run prove -- --help` says how.

mod arguments;
mod mutants;
mod record;
mod summary;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use edgelect::planted::{Bug, plant};
use indicatif::{ProgressBar, ProgressStyle};

use arguments::{Arguments, Task};
use record::Record;
use worlds::sim::run::{
    Range, Seed, canary, failed_before, remember_failure, retell, retell_small, run, run_many,
};
use worlds::sim::world::Depth;

/// How many schedules run between two writes of the record.
const CHUNK: u64 = 4_000;

/// How often a line says where the run is, where no terminal shows a bar.
const LINE_EVERY: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.task {
        Task::Tell(seed, bug) => tell(*seed, *bug, retell),
        Task::Shrink(seed, bug) => tell(*seed, *bug, retell_small),
        Task::Prove => prove(&arguments),
        Task::Mutants(bugs) => Ok(mutants::table(bugs)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("edgelect: {message}");
            ExitCode::FAILURE
        }
    }
}

/// One schedule again, with its history; whether it holds.
fn tell(seed: Seed, bug: Option<Bug>, story: fn(Seed) -> String) -> Result<bool, String> {
    plant(bug);
    println!("{}", story(seed));
    Ok(run(seed, false).violation.is_none())
}

fn prove(arguments: &Arguments) -> Result<bool, String> {
    let mut record = Record::open(arguments)?;
    let before = failed_before();
    println!("{} seeds that failed once, first …", before.len());
    for seed in before {
        if let Some(violation) = run(seed, false).violation {
            println!("{}", retell(seed));
            return Err(format!("seed {seed} fails again: {}", violation.check));
        }
    }
    println!("The canary, whose clocks break the contract, has to fail …");
    let canary = canary().ok_or("the canary did not fail: the observer sees nothing")?;
    for depth in [Depth::Core, Depth::Store] {
        run_depth(&mut record, depth)?;
    }
    print!("{}", summary::markdown(&record, canary));
    let failed = [&record.core.failed[..], &record.store.failed].concat();
    if let Some(seed) = failed.first() {
        println!("\n{}\n{}", retell(*seed), retell_small(*seed));
        println!(
            "{} schedules broke a rule; their seeds were added to tests/sim/failed.txt",
            failed.len()
        );
    }
    record.close()?;
    Ok(failed.is_empty())
}

/// The rest of the schedules of one depth.
fn run_depth(record: &mut Record, depth: Depth) -> Result<(), String> {
    let wanted = record.part(depth).wanted;
    let mut done = record.part(depth).summary.schedules;
    let bar = bar(wanted, depth);
    bar.set_position(done);
    let mut spoken = stopwatch();
    while done < wanted {
        let (first, count) = (record.first + done, CHUNK.min(wanted - done));
        let measured = stopwatch();
        let part = run_many(Range { depth, first, count }, || bar.inc(1));
        for (seed, violation) in &part.broken {
            remember_failure(*seed, violation.check)?;
            let line = format!("seed {seed}: {}: {}", violation.check, violation.text);
            bar.suspend(|| println!("{line}"));
        }
        record.add(depth, part, measured.elapsed())?;
        done += count;
        if bar.is_hidden() && (spoken.elapsed() > LINE_EVERY || done == wanted) {
            spoken = stopwatch();
            println!("{done} of {wanted} schedules ({depth:?})");
        }
    }
    bar.finish();
    Ok(())
}

fn bar(length: u64, depth: Depth) -> ProgressBar {
    let form = "{prefix:<6}{wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(form).expect("a form that indicatif knows");
    let bar = ProgressBar::new(length).with_style(style);
    bar.set_prefix(format!("{depth:?}"));
    bar
}

/// The simulated time is an argument everywhere; how long a run takes is not part of it.
#[allow(clippy::disallowed_methods)]
fn stopwatch() -> Instant {
    Instant::now()
}
