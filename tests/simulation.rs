//! The simulator: seeded schedules of faults, each held against I1-I5 and S1-S12 after each step.

use std::time::Duration;

use worlds::sim::report::Kind;
use worlds::sim::run::{
    Range, Summary, canary, failed_before, retell, retell_small, run, run_many, trace,
};
use worlds::sim::world::Depth;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// Runs a range, prints what came out, and fails with the story of the first broken schedule.
fn hold(range: Range) -> Summary {
    let started = stopwatch();
    let summary = run_many(range, || (), |_| ());
    let seconds = started().as_secs_f64();
    let tally = &summary.tally;
    println!(
        "{:?}: {} schedules ({:.0} a second), {} steps, {:.1} days simulated, {} requests, {} \
         terms, {} failovers in {} schedules, median {} leases, {} violations",
        range.depth,
        summary.schedules,
        summary.schedules as f64 / seconds,
        tally.steps,
        tally.simulated_ms as f64 / 86.4e6,
        tally.requests,
        tally.terms,
        tally.failovers,
        summary.with_failover,
        summary.median_leases(),
        summary.broken.len(),
    );
    println!(
        "  busiest session: {} requests in one lease; slowest leader after healing: {:.0} % of the \
         bound",
        tally.busiest,
        tally.slowest_per_mille as f64 / 10.0
    );
    print!("{}", tally.told());
    for (seed, violation) in summary.broken.iter().take(100) {
        println!("seed {seed}: {}: {}", violation.check, violation.text);
    }
    if let Some((seed, _)) = summary.broken.first() {
        panic!("{}\n{}", retell(*seed), retell_small(*seed));
    }
    assert!(2 * summary.with_failover >= summary.schedules, "too few schedules saw a failover");
    assert!(summary.median_leases() >= 20, "the median schedule is too short");
    summary
}

/// Each kind of fault fired once in a hundred schedules at least, on average.
fn each_kind_fired(summary: &Summary, kinds: impl Iterator<Item = Kind>) {
    for kind in kinds {
        let fired = summary.tally.faults(kind);
        assert!(100 * fired >= summary.schedules, "{kind:?} fired {fired} times only");
    }
}

#[test]
fn all_that_ever_failed_holds() {
    for seed in failed_before() {
        assert!(run(seed, false).violation.is_none(), "{}", retell(seed));
    }
}

#[test]
fn schedules_of_the_core() {
    let count = from_env("EDGELECT_SCHEDULES").unwrap_or(20_000);
    let first = from_env("EDGELECT_FIRST_SEED").unwrap_or(0);
    let summary = hold(Range { depth: Depth::Core, first, count });
    let here = |kind: &Kind| !Kind::OF_HTTP.contains(kind);
    each_kind_fired(&summary, Kind::ALL.into_iter().filter(here));
}

#[test]
fn schedules_with_the_real_store_code() {
    let count = from_env("EDGELECT_STORE_SCHEDULES").unwrap_or(2_000);
    let first = from_env("EDGELECT_FIRST_SEED").unwrap_or(0);
    let summary = hold(Range { depth: Depth::Store, first, count });
    each_kind_fired(&summary, Kind::OF_HTTP.into_iter());
}

/// Time is an argument everywhere but here, where a run says how long it took.
#[allow(clippy::disallowed_methods)]
fn stopwatch() -> impl Fn() -> Duration {
    let started = std::time::Instant::now();
    move || started.elapsed()
}

#[test]
fn fifty_seeds_run_twice_give_one_trace() {
    assert_eq!(trace(50), trace(50));
    assert_ne!(trace(50), trace(49), "the trace says nothing");
    // What a build without the planted bugs prints too, or the simulator runs other code than ships.
    println!("trace of 400 schedules: {:x}", trace(200));
}

#[test]
fn c39_beyond_the_contract_the_oracle_fails() {
    assert!(canary().is_some(), "two leaders went unseen although the clocks broke the contract");
}
