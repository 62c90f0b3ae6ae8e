//! What a result tells of the slots of others: who has claimed one that is taken, and whether it finished.

use edgelect::SlotOutcome::{Done, Taken};
use edgelect::lease::Past;

use crate::slots::world::{Dates, FIRST_MS, Job, World, once};

/// The outcomes of the slots in the record's history, by minute.
fn slots_told(world: &World) -> Vec<(u64, String)> {
    let lease = world.lease();
    let slots = lease.history.entries().iter().filter_map(|past| match past {
        Past::Slot(past) => Some(((past.slot - FIRST_MS) / 60_000, past.outcome.clone())),
        Past::Term(_) => None,
    });
    slots.collect()
}

#[test]
fn who_finds_a_slot_taken_is_told_by_whom_and_whether_it_finished() {
    let mut world = World::with_init(Dates::Both);
    let taken = |world: &mut World| {
        let report = world.fires(1_000, 0, &once(), Job::Takes(10)).report();
        assert_eq!((report.outcome, report.previous), (Taken, None));
        let taken = report.taken.expect("the record names it");
        (taken.slot, taken.by.clone(), taken.finished(), taken.outcome)
    };
    let running = world.fires(1_000, 0, &once(), Job::Takes(10_000));
    let by = Some("m".to_owned());
    assert_eq!(taken(&mut world), (FIRST_MS, by.clone(), false, "open".to_owned()));
    world.pass(12_000);
    assert_eq!(running.outcome(), Done);
    assert_eq!(taken(&mut world), (FIRST_MS, by.clone(), true, "ok".to_owned()));
    // A leader that runs no slots says nothing else of it, and is not who ran it.
    world.lead(5_000);
    assert_eq!(world.lease().leader_id, "L");
    assert_eq!(taken(&mut world), (FIRST_MS, by, true, "ok".to_owned()));
    assert_eq!(slots_told(&world), [(0, "ok".to_owned())], "it is told once");
    world.lead(5_000);
    assert_eq!(slots_told(&world), [(0, "ok".to_owned())]);
}
