//! Known bugs of elections over object storage, planted one at a time: the simulator must find
//! each.

#[cfg(planted)]
mod sim;

#[cfg(planted)]
#[path = "planted/table.rs"]
mod table;

#[cfg(planted)]
mod planted {
    use std::time::Instant;

    use edgelect::planted::{Bug, plant};

    use crate::sim::run::{Range, retell, run_until_broken};
    use crate::sim::world::Depth;
    use crate::table::{SCHEDULES, SURVIVORS, found_after};

    /// The bugs to plant: all, or the one that `EDGELECT_BUG` names.
    fn chosen() -> Vec<Bug> {
        let Ok(name) = std::env::var("EDGELECT_BUG") else {
            return Bug::ALL.to_vec();
        };
        let bug = Bug::named(&name).unwrap_or_else(|| {
            panic!("EDGELECT_BUG={name}: no bug has this name; the names are {:?}", Bug::ALL)
        });
        vec![bug]
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // How long the machine takes is no part of any schedule.
    fn each_planted_bug_is_found() {
        let base_seed = std::env::var("EDGELECT_FIRST_SEED").map_or(0, |text| {
            text.parse().unwrap_or_else(|_| panic!("EDGELECT_FIRST_SEED={text}: no number"))
        });
        let (mut missed, mut outlived) = (Vec::new(), Vec::new());
        for bug in chosen() {
            let survives = SURVIVORS.contains(&bug);
            let began = Instant::now();
            let found = found_after(bug, base_seed);
            let seconds = began.elapsed().as_secs_f64();
            match &found {
                Some((schedules, violation)) => println!(
                    "{bug:?} ({}): found after {schedules} schedules, {seconds:.1} s, by {}: {}",
                    bug.rule(),
                    violation.check,
                    violation.text
                ),
                None => println!(
                    "{bug:?} ({}): not found within {SCHEDULES} schedules, {seconds:.1} s. {}",
                    bug.rule(),
                    bug.survives()
                ),
            }
            match found {
                None if !survives => missed.push(bug),
                Some(_) if survives => outlived.push(bug),
                _ => {}
            }
        }
        assert!(missed.is_empty(), "not found within {SCHEDULES} schedules: {missed:?}");
        assert!(outlived.is_empty(), "found, so take them out of SURVIVORS: {outlived:?}");
    }

    #[test]
    fn whoever_survives_has_a_reason_and_nobody_else() {
        for bug in Bug::ALL.iter().copied() {
            let told = !bug.survives().is_empty();
            assert_eq!(told, SURVIVORS.contains(&bug), "{bug:?}: {:?}", bug.survives());
        }
    }

    #[test]
    fn with_none_planted_nothing_is_found() {
        for (depth, count) in [(Depth::Core, SCHEDULES), (Depth::Store, SCHEDULES / 10)] {
            let found = run_until_broken(Range { depth, first: 0, count }, || plant(None));
            if let Some((seed, _)) = found.first() {
                panic!("{}", retell(*seed));
            }
        }
        let found = crate::table::adversary::play(0, SCHEDULES / 10, || plant(None)).err();
        assert!(found.is_none(), "epochs: {found:?}");
    }
}

#[cfg(not(planted))]
#[test]
#[ignore = "RUSTFLAGS='--cfg planted' CARGO_TARGET_DIR=target/planted cargo test --test planted"]
fn planted_bugs_need_a_build_of_their_own() {}
