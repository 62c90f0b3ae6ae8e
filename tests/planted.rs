//! Known bugs of elections over object storage, planted one at a time: the simulator must find
//! each.

#[cfg(planted)]
mod sim;

#[cfg(planted)]
mod planted {
    use std::collections::BTreeMap;

    use edgelect::planted::{Bug, plant};

    use crate::sim::run::{retell, run_until_broken};

    const SCHEDULES: u64 = 5_000;

    #[test]
    fn each_planted_bug_is_found() {
        let mut missed = Vec::new();
        for bug in Bug::ALL {
            let found = run_until_broken(0, SCHEDULES, || plant(Some(bug)));
            match found.first() {
                Some((seed, violation)) => println!(
                    "{bug:?}: found after {} schedules by {}: {}",
                    seed + 1,
                    violation.check,
                    violation.text
                ),
                None => missed.push(bug),
            }
            let mut checks: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, violation) in &found {
                *checks.entry(violation.check).or_default() += 1;
            }
            println!("    {checks:?}");
        }
        assert!(missed.is_empty(), "not found within {SCHEDULES} schedules: {missed:?}");
    }

    #[test]
    fn with_none_planted_nothing_is_found() {
        let found = run_until_broken(0, SCHEDULES, || plant(None));
        if let Some((seed, _)) = found.first() {
            panic!("{}", retell(*seed));
        }
    }
}

#[cfg(not(planted))]
#[test]
#[ignore = "RUSTFLAGS='--cfg planted' CARGO_TARGET_DIR=target/planted cargo test --test planted"]
fn planted_bugs_need_a_build_of_their_own() {}
