//! No slot is run twice, whatever becomes of its triggers, its runner and the record.

use edgelect::SlotOutcome::{self, Done};
use edgelect::election::SlotsOver;
use edgelect::lease::Stamp;

use crate::slots::world::*;

/// A record of a member of another make, which knows no slots.
fn slotless(term: Option<u64>) -> String {
    let term = term.expect("a member has led");
    format!(r#"{{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":{term},"format":1}}"#)
}

#[test]
fn c56_a_member_that_drops_the_slot_lets_nothing_run_twice() {
    for dates in EVERY_DATES {
        for (settings, whole) in
            [once(), again(), all_again()].into_iter().flat_map(|s| [(s.clone(), true), (s, false)])
        {
            let mut world = World::with_init(dates);
            assert_eq!(world.runs_within(2_000, 0, &settings), Done);
            match whole {
                true => world.put(slotless(world.lease().term)),
                false => world.change(|lease| {
                    (lease.slot, lease.slot_done) = (None, None);
                    lease.last_updated = Stamp::Released;
                }),
            }
            let doubled = [(); 3].map(|()| world.runs(0, &settings));
            assert_eq!(world.runs_within(10_000, 1, &settings), Done, "{dates:?} {doubled:?}");
            assert_eq!(world.ran(), [0, 1], "{dates:?} {settings:?} {whole} {doubled:?}");
        }
    }
}

#[test]
fn a_slot_ahead_of_storage_time_counts_if_a_member_claimed_it_and_is_claimed_by_nobody() {
    for (of_member, runs) in [(true, vec![4]), (false, vec![1, 2, 3, 4])] {
        let mut world = World::with_init(Dates::Both);
        world.change(|lease| {
            match of_member {
                true => lease.acquired = Some(1),
                false => lease.session = None,
            }
            (lease.slot, lease.slot_done) = (Some(minute(3)), Some(true));
        });
        for number in 1..=4 {
            world.runs(number, &once());
        }
        assert_eq!(world.ran(), runs);
        let ahead = world.trigger(minute(5), &once(), Job::Takes(10));
        world.pass(5_000);
        let SlotOutcome::Skipped(SlotsOver::Ahead { by_ms }) = ahead.outcome() else {
            panic!("{:?}", ahead.outcome())
        };
        assert!((54_000..=55_000).contains(&by_ms), "{by_ms}");
    }
}
