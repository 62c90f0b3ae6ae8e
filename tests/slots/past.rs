//! What a result tells of the slots of others: how the one before ended, and who has claimed one that is taken.

use edgelect::Report;
use edgelect::SlotOutcome::{Done, Taken};
use edgelect::lease::{Past, PastSlot};

use crate::slots::world::{Dates, FIRST_MS, Job, World, minute, once};

fn past(number: u64, outcome: &str) -> PastSlot {
    PastSlot { slot: minute(number), outcome: outcome.to_owned(), by: Some("m".to_owned()) }
}

/// The outcomes of the slots in the record's history, by minute.
fn slots_told(world: &World) -> Vec<(u64, String)> {
    let lease = world.lease();
    let slots = lease.history.entries().iter().filter_map(|past| match past {
        Past::Slot(past) => Some(((past.slot - FIRST_MS) / 60_000, past.outcome.clone())),
        Past::Term(_) => None,
    });
    slots.collect()
}

fn report(world: &mut World, number: u64, job: Job) -> Report<u64, &'static str> {
    world.at(minute(number).max(world.now_ms()));
    let trigger = world.trigger(minute(number), &once(), job);
    world.pass(40_000);
    trigger.report()
}

#[test]
fn each_slot_is_told_how_the_one_before_ended() {
    let mut world = World::with_init(Dates::Both);
    assert_eq!(report(&mut world, 0, Job::Takes(10)).previous, None, "init has run no slot");
    assert_eq!(report(&mut world, 1, Job::Fails).previous, Some(past(0, "ok")));
    world.at(minute(2));
    let stopped = world.trigger(minute(2), &once(), Job::Hangs);
    world.pass(5_000);
    stopped.stop();
    world.at(minute(3));
    let dead = world.trigger(minute(3), &once(), Job::Hangs);
    world.pass(5_000);
    dead.kill.abort();
    let after = report(&mut world, 4, Job::Takes(10));
    assert_eq!((after.outcome, after.previous), (Done, Some(past(3, "died"))));
    assert_eq!(after.runs[0].previous, Some(past(3, "died")));
    let told = [(0, "ok"), (1, "failed"), (2, "stopped"), (3, "died")];
    assert_eq!(slots_told(&world), told.map(|(slot, outcome)| (slot, outcome.to_owned())));
    report(&mut world, 5, Job::Takes(10));
    assert_eq!(slots_told(&world).len(), 4, "eight entries are four slots with their terms");
    assert_eq!(world.lease().history.entries().len(), 8);
}

#[test]
fn who_finds_a_slot_taken_is_told_by_whom_and_whether_it_finished() {
    let mut world = World::with_init(Dates::Both);
    let taken = |world: &mut World| {
        let trigger = world.trigger(FIRST_MS, &once(), Job::Takes(10));
        world.pass(1_000);
        let report = trigger.report();
        assert_eq!((report.outcome, report.previous), (Taken, None));
        let taken = report.taken.expect("the record names it");
        (taken.slot, taken.by.clone(), taken.finished(), taken.outcome)
    };
    let running = world.trigger(FIRST_MS, &once(), Job::Takes(10_000));
    world.pass(1_000);
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
