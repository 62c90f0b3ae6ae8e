//! The simulator: seeded schedules of faults, each held against I1-I5 and S1-S12 after each step.

mod sim;

use std::time::Duration;

use sim::report::Kind;
use sim::run::{retell, run, run_at_rate, run_many};

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

#[test]
fn schedules() {
    if let Some(seed) = from_env("EDGELECT_SEED") {
        println!("{}", retell(seed));
        assert!(run(seed, false).violation.is_none(), "seed {seed} breaks a rule");
        return;
    }
    let count = from_env("EDGELECT_SCHEDULES").unwrap_or(20_000);
    let first = from_env("EDGELECT_FIRST_SEED").unwrap_or(0);
    let started = stopwatch();
    let mut summary = run_many(first, count, || ());
    let seconds = started().as_secs_f64();
    let median = summary.median_leases();
    let tally = &summary.tally;
    println!(
        "{} schedules ({:.0} a second), {} steps, {:.1} days simulated, {} requests, {} terms, \
         {} failovers in {} schedules, median {median} leases, {} violations",
        summary.schedules,
        summary.schedules as f64 / seconds,
        tally.steps,
        tally.simulated_ms as f64 / 86.4e6,
        tally.requests,
        tally.terms,
        tally.failovers,
        summary.with_failover,
        summary.broken.len(),
    );
    println!(
        "  busiest session: {} requests in one lease; slowest leader after healing: {:.0} % of the \
         bound",
        tally.busiest,
        tally.slowest_per_mille as f64 / 10.0
    );
    print!("{}", tally.lines());
    for (seed, violation) in summary.broken.iter().take(100) {
        println!("seed {seed}: {}: {}", violation.check, violation.text);
    }
    if let Some((seed, _)) = summary.broken.first() {
        panic!("{}", retell(*seed));
    }
    if count >= 20_000 {
        for kind in Kind::ALL {
            let fired = tally.faults(kind);
            assert!(fired >= 1_000, "{kind:?} fired {fired} times only");
        }
    }
    assert!(2 * summary.with_failover >= summary.schedules, "too few schedules saw a failover");
    assert!(median >= 20, "the median schedule lasts {median} leases only");
}

/// Time is an argument everywhere but here, where a run says how long it took.
#[allow(clippy::disallowed_methods)]
fn stopwatch() -> impl Fn() -> Duration {
    let started = std::time::Instant::now();
    move || started.elapsed()
}

#[test]
fn fifty_seeds_run_twice_give_one_trace() {
    let trace = || (0..50).fold(0_u64, |hash, seed| hash.rotate_left(7) ^ run(seed, false).hash);
    assert_eq!(trace(), trace());
    assert_ne!(run(0, false).hash, run(1, false).hash, "the trace says nothing");
}

#[test]
fn c39_beyond_the_contract_the_oracle_fails() {
    let beyond = 1_250;
    let broken = (0..3_000).any(|seed| {
        let violation = run_at_rate(seed, false, beyond).violation;
        violation.is_some_and(|violation| violation.check == "I1 one authority")
    });
    assert!(broken, "two leaders went unseen although the clocks broke the contract");
}
