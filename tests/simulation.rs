//! The simulator: seeded schedules of faults, each held against I1-I5 and S1-S12 after each step.

use std::time::Instant;

use worlds::sim::foreign;
use worlds::sim::report::Kind;
use worlds::sim::run::{
    Range, canary, failed_before, retell, retell_small, run, run_many, run_until_broken, trace,
};
use worlds::sim::world::Depth;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// Runs so many schedules, prints what came out, and fails with the story of the first that is broken. Each of these kinds of
/// faults fired once in a hundred schedules at least, on average.
#[allow(clippy::disallowed_methods)] // How long the machine takes is no part of any schedule.
fn hold(depth: Depth, count: u64, of_depth: impl Fn(&Kind) -> bool) {
    let first = from_env("EDGELECT_FIRST_SEED").unwrap_or(0);
    let started = Instant::now();
    let summary = run_many(Range { depth, first, count }, || ());
    let seconds = started.elapsed().as_secs_f64();
    let tally = &summary.tally;
    println!(
        "{depth:?}: {} schedules ({:.0} a second), {} steps, {:.1} days simulated, {} requests, {} \
         terms, {} failovers in {} schedules, median {} leases, {} violations",
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
    for kind in Kind::ALL.into_iter().filter(of_depth) {
        let fired = tally.faults(kind);
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
    hold(Depth::Core, count, |kind| !Kind::OF_HTTP.contains(kind));
}

#[test]
fn schedules_with_the_real_store_code() {
    let count = from_env("EDGELECT_STORE_SCHEDULES").unwrap_or(2_000);
    hold(Depth::Store, count, |kind| Kind::OF_HTTP.contains(kind));
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

#[test]
fn c36_the_observer_sees_each_bug_of_a_member_of_another_make() {
    for bug in foreign::Bug::ALL {
        let mut first = 0;
        loop {
            let range = Range { depth: Depth::Core, first, count: 5_000 - first };
            let broken = run_until_broken(range, || foreign::plant(Some(bug)));
            let (seed, violation) = broken.unwrap_or_else(|| panic!("{bug:?} went unseen"));
            assert_eq!(violation.check, "I1 one authority", "{bug:?}, {seed}: {}", violation.text);
            // It is the bug that was seen, and not what the same members do without it.
            foreign::plant(Some(foreign::Bug::Control));
            let also = run(seed, false).violation;
            foreign::plant(None);
            if also.is_none() {
                println!("{bug:?}: {seed}: {}", violation.text);
                break;
            }
            first = seed.number + 1;
        }
    }
}
