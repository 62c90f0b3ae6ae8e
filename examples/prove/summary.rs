//! The end of a run, in a form that can be pasted into a document.

use std::fmt::Write;

use crate::record::{Part, Record};
use worlds::sim::report::{Kind, Tally, grouped};

/// The summary as Markdown.
pub fn markdown(record: &Record, canary: u64) -> String {
    let mut text = "\n| | modelled store | real store code over HTTP |\n".to_owned();
    let mut row = |name: &str, of: &dyn Fn(&Part) -> String| {
        let (core, store) = (of(&record.core), of(&record.store));
        writeln!(text, "| {name} | {core} | {store} |").expect("a String takes all");
    };
    let tally = |of: fn(&Tally) -> u64| move |part: &Part| grouped(of(&part.summary.tally));
    row("---", &|_| "---:".to_owned());
    row("schedules", &|part| grouped(part.summary.schedules));
    row("schedules a second, all cores", &|part| {
        grouped((part.summary.schedules as f64 / part.took.as_secs_f64().max(1e-3)) as u64)
    });
    row("simulated days", &tally(|tally| tally.simulated_ms / 86_400_000));
    row("steps, each held against every rule", &tally(|tally| tally.steps));
    row("requests", &tally(|tally| tally.requests));
    row("terms", &tally(|tally| tally.terms));
    row("failovers", &tally(|tally| tally.failovers));
    row("median schedule, in leases", &|part| grouped(part.summary.median_leases()));
    row(
        "zombies' writes refused by the fenced resource",
        &tally(|tally| tally.faults(Kind::ZombieRefused)),
    );
    row("longest time without a leader after healing, of the bound", &|part| {
        format!("{:.0} %", part.summary.tally.slowest_per_mille as f64 / 10.0)
    });
    row("most requests of one session in one lease", &tally(|tally| tally.busiest));
    row("violations", &|part| grouped(part.failed.len() as u64));
    let mut both = record.core.summary.tally.clone();
    both.add(&record.store.summary.tally);
    let told = both.told();
    format!(
        "{text}\nBoth depths together. {told}\nThe canary, with clock rates beyond the contract, showed two leaders after {} \
         schedules.\n",
        canary + 1
    )
}
