//! What a result tells of the slots of others: how the one before ended, and who has claimed one that is taken.

use edgelect::SlotOutcome::{Done, Taken};
use edgelect::lease::{Past, PastSlot};
use edgelect::{Handle, Host, Report, driver, status};

use crate::slots::world::{Dates, FIRST_MS, Job, World, again, minute, once};

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
fn a_slot_that_is_run_again_is_told_that_it_has_died() {
    let mut world = World::with_init(Dates::Both);
    let dead = world.trigger(FIRST_MS, &again(), Job::Hangs);
    world.pass(5_000);
    dead.kill.abort();
    world.at(minute(1));
    let next = world.trigger(minute(1), &again(), Job::Takes(10));
    world.pass(20_000);
    let report = next.report();
    let told: Vec<_> = report.runs.iter().map(|run| run.previous.clone()).collect();
    assert_eq!(told, [Some(past(0, "died")), Some(past(0, "ok"))]);
    assert_eq!(report.previous, Some(past(0, "ok")));
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

#[test]
fn a_member_that_drops_what_it_does_not_know_ends_the_history_and_nothing_else() {
    let mut world = World::with_init(Dates::Both);
    assert_eq!(world.runs(0, &once()), Done);
    world.change(|lease| {
        lease.history = Default::default();
        lease.slot_term = None;
    });
    let next = report(&mut world, 1, Job::Takes(10));
    assert_eq!((next.outcome, next.previous), (Done, None));
}

#[test]
fn the_status_shows_the_history_and_the_slot_of_the_newest_record() {
    let mut world = World::with_init(Dates::Both);
    assert_eq!(world.runs(0, &once()), Done);
    let shown = |handle: &Handle, world: &World| {
        let now = world.machine.host.now();
        let text = handle.with(|election| status::status(election, now, handle.requests()));
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    world.at(minute(1));
    let running = world.trigger(minute(1), &once(), Job::Hangs);
    world.at(minute(1) + 1_000);
    let status = shown(&running.handle, &world);
    let slot = |number, outcome: &str| serde_json::json!({ "slot": minute(number), "outcome": outcome, "by": "m" });
    assert_eq!(status["lastSlot"], slot(1, "open"));
    assert_eq!(status["history"][1], slot(0, "ok"));
    let term = &status["history"][0];
    assert_eq!((&term["by"], &term["how"]), (&"m".into(), &"released".into()));
    let (from, to) = (term["from"].as_u64().unwrap(), term["to"].as_u64().unwrap());
    assert!(from <= to && to < minute(1) && from + 5_000 > FIRST_MS, "{term}");
    let new = Handle::new(
        driver::new_election(&world.machine.host, worlds::virtual_time::config()).expect("fine"),
    );
    let status = shown(&new, &world);
    assert_eq!((&status["lastSlot"], &status["history"]), (&().into(), &serde_json::json!([])));
}
