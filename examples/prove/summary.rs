//! The end of a run, in a form that can be pasted into a document.

use std::fmt::Write;

use crate::record::{Part, Record};
use worlds::sim::report::{Kind, Tally, grouped};
use worlds::sim::world::Depth;

/// The summary as Markdown.
pub fn markdown(record: &Record, canary: u64) -> String {
    let mut text = String::new();
    let mut row = |name: &str, of: &dyn Fn(&Part) -> String| {
        let (core, store) = (of(&record.core), of(&record.store));
        writeln!(text, "| {name} | {core} | {store} |").expect("a String takes all");
    };
    let tally = |of: fn(&Tally) -> u64| move |part: &Part| grouped(of(&part.summary.tally));
    row("", &|_| String::new());
    row("---", &|_| "---:".to_owned());
    row("schedules", &|part| grouped(part.summary.schedules));
    row("schedules a second, all cores", &|part| {
        grouped((part.summary.schedules as f64 / part.took.as_secs_f64().max(1e-3)) as u64)
    });
    row("simulated days", &|part| grouped(part.summary.tally.simulated_ms / 86_400_000));
    row("steps, each held against every rule", &tally(|tally| tally.steps));
    row("requests", &tally(|tally| tally.requests));
    row("terms", &tally(|tally| tally.terms));
    row("failovers", &tally(|tally| tally.failovers));
    row("median schedule, in leases", &|part| grouped(part.summary.median_leases()));
    row("zombies' writes refused by the fenced resource", &|part| {
        grouped(part.summary.tally.faults(Kind::ZombieRefused))
    });
    row("longest time without a leader after healing, of the bound", &|part| {
        format!("{:.0} %", part.summary.tally.slowest_per_mille as f64 / 10.0)
    });
    row("most requests of one session in one lease", &tally(|tally| tally.busiest));
    let failures = &record.failures;
    let broken = |depth| {
        let of_depth = failures.iter().filter(|(seed, _)| seed.depth == depth);
        grouped(of_depth.count() as u64)
    };
    let (core, store) = (broken(Depth::Core), broken(Depth::Store));
    writeln!(text, "| violations | {core} | {store} |").expect("a String takes all");
    let head = "\n| | modelled store | real store code over HTTP |\n";
    let body: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let mut both = record.core.summary.tally.clone();
    both.add(&record.store.summary.tally);
    let told = both.told();
    format!(
        "{head}{body}\nBoth depths together. {told}\nThe canary, with clock rates beyond the contract, showed two leaders after {} \
         schedules.\n",
        canary + 1
    )
}
