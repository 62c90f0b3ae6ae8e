//! The epoch layout: what the store asks and hears, the election over it answer by answer, and elections against an
//! adversary in virtual time.

mod answers;
mod election;

use worlds::adversary;

/// The number in a variable, or the usual one.
fn variable(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}

#[test]
fn i1_i2_no_schedule_of_epochs_has_two_leaders_or_a_token_that_falls() {
    let first = variable("EDGELECT_FIRST_SEED", 0);
    let count = variable("EDGELECT_SCHEDULES", 500);
    let sum = adversary::play(first, count, || ()).unwrap_or_else(|(seed, broken)| {
        let told = adversary::run(seed, true).lines;
        let from = told.len().saturating_sub(120);
        panic!("{}\nseed {seed}: {broken:?}", told[from..].join("\n"));
    });
    println!("{count} schedules: {sum:?}");
    // They meet what they are there for, where there are enough of them to tell.
    if count >= 100 {
        assert!(sum.terms > 3 * count && sum.cleaned > 3 * count, "{sum:?}");
        assert!(sum.duplicates > 2 * count && sum.recreated > count / 2, "{sum:?}");
    }
}
