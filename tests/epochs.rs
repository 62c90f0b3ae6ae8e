//! The epoch layout: what the store asks and hears, the election over it answer by answer, and elections against an
//! adversary in virtual time.

mod answers;
mod election;

use worlds::adversary;
use worlds::adversary::other::{Beside, Make, Successions};

/// The number in a variable, or the usual one.
fn variable(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}

#[test]
fn i1_i2_no_schedule_of_epochs_has_two_leaders_or_a_token_that_falls() {
    let first = variable("EDGELECT_FIRST_SEED", 0);
    let count = variable("EDGELECT_SCHEDULES", 200);
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

/// Schedules beside members of another make; panics with the first violation.
fn play_beside(make: Make) -> (u64, Successions) {
    let (mut terms, mut sum) = (0, Successions::default());
    let count = variable("EDGELECT_SCHEDULES", 50);
    for seed in 0..count {
        let beside = Some(Beside::within_the_rule(make));
        let world = adversary::run_beside(seed, false, beside);
        if let Some(broken) = world.violation {
            let told = adversary::run_beside(seed, true, beside).lines;
            let from = told.len().saturating_sub(80);
            panic!("{}\nseed {seed}: {broken:?}", told[from..].join("\n"));
        }
        terms += world.tally.terms;
        sum.from_expired += world.successions.from_expired;
        sum.from_released += world.successions.from_released;
        sum.to_ours += world.successions.to_ours;
        sum.to_ours_released += world.successions.to_ours_released;
    }
    println!("{count} schedules, {terms} terms of ours: {sum:?}");
    (count, sum)
}

#[test]
fn beside_members_of_another_make_one_leads_and_each_make_succeeds_the_other() {
    // Those that judge `Last-Modified` by their own clocks, and those that create holder identities.
    for make in [Make::Validity, Make::Holder] {
        let (count, sum) = play_beside(make);
        for often in [sum.from_expired, sum.from_released, sum.to_ours, sum.to_ours_released] {
            assert!(often > count / 2, "{make:?}: {sum:?}");
        }
    }
}

#[test]
fn what_members_of_another_make_must_keep_to_is_seen_where_it_is_not_kept() {
    let [article, holder] = [Make::Validity, Make::Holder].map(Beside::within_the_rule);
    // The seed that showed it before is tried first.
    for (known, beside) in [
        (3, Beside { ahead_ms: 6_000, ..article }),
        (10, Beside { reserve_ms: None, ..article }),
        (1, Beside { ahead_ms: 6_000, ..holder }),
        (45, Beside { reserve_ms: None, ..holder }),
        (1, Beside { latest_ms: u64::MAX, ..holder }),
    ] {
        let broken = |seed: &u64| {
            let violation = adversary::run_beside(*seed, false, Some(beside)).violation;
            violation.is_some_and(|broken| broken.check.starts_with("I1"))
        };
        let seen = (known..known + 1).chain(0..400).find(broken);
        println!("{beside:?}: {seen:?}");
        assert!(seen.is_some(), "{beside:?}");
    }
}
