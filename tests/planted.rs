//! Known bugs of elections over object storage, planted one at a time: the simulator must find each.

use std::time::Instant;

use edgelect::planted::{Bug, plant};

use worlds::sim::oracle::Violation;
use worlds::sim::run::{Ended, run};
use worlds::sim::shrink::shrink;
use worlds::table::{SCHEDULES, SURVIVORS, found_after, known_seed};

/// What is found within so many schedules needs no note.
const SOON: u64 = 10;

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
    let (mut missed, mut outlived) = (Vec::new(), Vec::new());
    let mut seeds = String::new();
    for bug in chosen() {
        let survives = SURVIVORS.contains(&bug);
        let began = Instant::now();
        // The seed that found it before says as much as all the seeds from 0 to it; soon found is not noted.
        let known = known_seed(bug);
        let again = known.and_then(|seed| found_after(bug, seed, 1).map(|(_, by)| (seed + 1, by)));
        // One that survives is looked for where somebody asks for it by name.
        let looks = !survives || std::env::var_os("EDGELECT_BUG").is_some();
        let found = again.or_else(|| if looks { found_after(bug, 0, SCHEDULES) } else { None });
        let seconds = began.elapsed().as_secs_f64();
        let told = match found {
            Some((schedules, Violation { check, text, .. })) => {
                if survives {
                    outlived.push(bug);
                }
                if schedules > SOON {
                    seeds.push_str(&format!("{bug:?} {}\n", schedules - 1));
                }
                let note = match known.is_some() || schedules <= SOON {
                    true => "",
                    false => "; EDGELECT_UPDATE=1 notes that in tests/planted/found.txt",
                };
                format!(
                    "found after {schedules} schedules, {seconds:.1} s, by {check}: {text}{note}"
                )
            }
            None if looks => {
                if !survives {
                    missed.push(bug);
                }
                let why = bug.survives();
                format!("not found within {SCHEDULES} schedules, {seconds:.1} s. {why}")
            }
            None => format!("not looked for here. {}", bug.survives()),
        };
        println!("{bug:?} ({}): {told}", bug.rule());
    }
    if std::env::var_os("EDGELECT_UPDATE").is_some() {
        std::fs::write(crate::in_root("tests/planted/found.txt"), seeds)
            .expect("the seeds are written");
    }
    assert!(missed.is_empty(), "not found within {SCHEDULES} schedules: {missed:?}");
    assert!(outlived.is_empty(), "found, so take them out of SURVIVORS: {outlived:?}");
}

/// One bug for each way in which the smaller schedules come about: at once, by fewer members and faults, by other dice.
#[test]
fn the_history_of_what_breaks_a_rule_is_made_to_fit_on_a_page() {
    const A_PAGE: usize = 60;
    for (bug, seed) in [
        (Bug::NoMargin, "core:0"),
        (Bug::ShortenedLeaseKeepsFence, "core:35"),
        (Bug::ParkUnderAuthority, "core:75"),
    ] {
        plant(Some(bug));
        let seed = seed.parse().expect("a seed");
        let (whole, small) = (run(seed, true), shrink(seed).expect("it breaks a rule"));
        plant(None);
        let check = |ended: &Ended| ended.violation.as_ref().map(|violation| violation.check);
        assert_eq!(check(&small), check(&whole), "{bug:?}");
        let lines = [whole.lines.len(), small.lines.len()];
        assert!(lines[1] <= A_PAGE && 2 * lines[1] < lines[0], "{bug:?}: {lines:?}");
    }
}

#[test]
fn whoever_survives_has_a_reason_and_nobody_else() {
    for bug in Bug::ALL.iter().copied() {
        let told = !bug.survives().is_empty();
        assert_eq!(told, SURVIVORS.contains(&bug), "{bug:?}: {:?}", bug.survives());
    }
}
