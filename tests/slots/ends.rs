//! What a trigger reports in the end, and what the record says then: stops, lost answers, budgets, slots of others.

use edgelect::SlotOutcome::{Done, Lost, Skipped, Taken, Unknown};
use edgelect::election::SlotsOver;
use edgelect::lease::Past;
use edgelect::{Missed, Policy};

use crate::driver::lead::begin;
use crate::driver::prelude::*;
use crate::slots::world::*;

#[test]
fn a_store_that_is_back_within_the_budget_is_soon_asked_and_else_nothing_is_claimed() {
    let rows = [10_000, 20_000, 30_000, 40_000].map(|hung_ms| (hung_ms, 8_000, Done));
    for (hung_ms, then_ms, outcome) in rows.into_iter().chain([(49_000, 5_000, OUT_OF_TIME)]) {
        let mut world = World::with_init(Dates::Both);
        world.store.hangs.set(true);
        let trigger = world.fires(hung_ms, 0, &once(), Job::Takes(10));
        assert!(!trigger.ended(), "{hung_ms}");
        world.store.hangs.set(outcome == OUT_OF_TIME);
        world.pass(then_ms);
        assert!(trigger.ended(), "the store was away for {hung_ms} ms");
        let report = trigger.report();
        assert_eq!((report.outcome, report.slot_ms), (outcome, Some(FIRST_MS)), "{hung_ms}");
    }
}

/// What happens to a trigger under way.
type Meets = fn(&World, &Trigger);

#[test]
fn a_stop_or_a_fault_is_told_as_what_it_left_of_the_slot() {
    let stop: Meets = |_, trigger| trigger.stop();
    let breaks: Meets = |world, _| world.store.misconfigured.set(true);
    let hangs: Meets = |world, trigger| {
        world.store.hangs.set(true);
        trigger.stop();
    };
    let blocked = Skipped(SlotsOver::Blocked);
    for (what, number, job, after_ms, meets, outcome) in [
        ("a stop under the job", 0, Job::Hangs, 2_000, stop, Lost),
        ("a stop under a claim in doubt", 0, Job::Takes(10), 10, hangs, Unknown),
        ("a fault under such a claim", 0, Job::Takes(10), 50, breaks, Unknown),
        ("a stop under an earlier slot", 2, Job::Hangs, 1_000, stop, blocked),
        ("a fault after an earlier slot", 2, Job::Takes(3_000), 2_000, breaks, OUT_OF_TIME),
    ] {
        let mut world = World::with_init(Dates::Both);
        if number > 0 {
            assert_eq!(world.runs(0, &all_again()), Done);
        }
        world.at(minute(number));
        world.store.loses.set(if outcome == Unknown { 9 } else { 0 });
        let trigger = world.trigger(minute(number), &all_again(), job);
        world.pass(after_ms);
        meets(&world, &trigger);
        world.pass(60_000);
        let (lease, report) = (world.lease(), trigger.report());
        assert_eq!(report.outcome, outcome, "{what}: {report:?}");
        let fails = world.store.misconfigured.get() || outcome == Unknown;
        assert_eq!(report.fault.is_some(), fails, "{what}: {report:?}");
        assert!(outcome != Unknown || lease.slot == Some(FIRST_MS), "{what}: it landed");
        if outcome == Lost {
            assert_eq!((lease.slot_done, lease.released()), (Some(false), true));
            let told = (lease.slot_result.as_deref(), lease.slot_failures);
            assert_eq!(told, (Some("stopped"), None));
        }
    }
}

/// The machine stands still at any moment: also between the claim and the job.
#[test]
fn whatever_was_claimed_is_told_as_a_run_also_where_its_job_could_not_be_begun() {
    let mut unbegun = 0;
    for reading in 1..60 {
        let mut world = World::with_init(Dates::Both);
        world.at(minute(0));
        let host = world.machine.host.clone();
        host.steps_at.set(reading);
        let trigger = world.trigger(FIRST_MS, &once(), Job::Takes(10));
        world.pass(3 * MINUTE_MS);
        let report = trigger.report();
        let claimed = world.lease().slot == Some(FIRST_MS) && report.outcome != Unknown;
        assert_eq!(!report.runs.is_empty(), claimed, "{reading}: {report:?}");
        unbegun += u32::from(report.outcome == Lost && world.ran().is_empty());
    }
    assert!(unbegun > 0, "it stood still there, too");
}

/// Work on an earlier slot uses the budget up; then a claim that surely landed was given up unread.
#[test]
fn a_claim_that_landed_after_the_budget_is_run() {
    for (name, job_ms) in [("unnamed", 55_000), ("one lost answer", 60_000)] {
        let mut world = World::with_init(Dates::Both);
        let every_missed = settings(Policy::AtMostOnce, Missed::All);
        world.store.unnamed.set(name == "unnamed");
        world.trigger(FIRST_MS, &every_missed, Job::Takes(10));
        world.at(minute(2));
        if name == "one lost answer" {
            world.store.loses_slot.set(Some(minute(2)));
        }
        let trigger = world.trigger(minute(2), &every_missed, Job::Takes(job_ms));
        world.pass(3 * MINUTE_MS);
        assert_eq!(world.store.loses_slot.get(), None, "{name}: one answer was lost");
        assert!(world.ran().contains(&2), "{name}: it landed, told {:?}", trigger.outcome());
    }
}

/// Stop in the very turn in which the claim's answer comes: nobody says that the work has ended.
#[test]
fn a_stop_in_the_turn_of_the_answer_is_released_at_once() {
    let mut world = World::with_init(Dates::Both);
    let open = world.hold_answer();
    let trigger = world.fires(100, 0, &once(), Job::Takes(10));
    open.send(()).expect("the claim is under way");
    trigger.stop();
    world.pass(2_000);
    assert!(trigger.ended() && world.lease().released(), "ended {}", trigger.ended());
    assert_eq!(trigger.outcome(), Lost, "it was claimed, and its job never began");
}

/// `lead` had the same hole: it waited for the fence, and released nothing.
#[test]
fn a_stop_in_the_turn_of_the_answer_releases_under_lead() {
    let mut world = World::with_init(Dates::Both);
    let open = world.hold_answer();
    let (handle, ended) =
        begin(&world.machine, world.wire(), config(), async |_| std::future::pending().await);
    world.pass(100);
    open.send(()).expect("the claim is under way");
    handle.tell(Input::Stop { park: false });
    world.pass(2_000);
    assert!(ended.borrow().is_some() && world.lease().released(), "ended {ended:?}");
}

/// The outcomes of the slots in the record's history, by minute.
fn slots_told(world: &World) -> Vec<(u64, String)> {
    let lease = world.lease();
    let slots = lease.history.entries().iter().filter_map(|past| match past {
        Past::Slot(past) => Some(((past.slot - FIRST_MS) / MINUTE_MS, past.outcome.clone())),
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

#[test]
fn over_a_store_that_takes_one_write_a_second_a_short_job_is_recorded_and_run_once() {
    for leader_timeout_ms in [5_000, 8_000, 12_000, 15_000] {
        let settings =
            Settings { leader_timeout_ms: Some(leader_timeout_ms), ..Settings::default() };
        let mut world = World::with_init(Dates::LastModifiedOnly);
        world.config = config_of(settings);
        world.store.apart_ms.set(1_000);
        for number in 0..5 {
            let trigger = world.fires(20_000, number, &again(), Job::Takes(50));
            let report = trigger.report();
            assert_eq!((report.outcome, report.fault), (Done, None), "{leader_timeout_ms}");
            assert!(report.runs.iter().all(|run| run.recorded), "{leader_timeout_ms}");
        }
        assert_eq!(world.ran(), [0, 1, 2, 3, 4], "{leader_timeout_ms}");
    }
}

#[test]
fn a_job_whose_end_the_store_did_not_take_is_told_with_the_reason() {
    let mut world = World::with_init(Dates::Both);
    let trigger = world.fires(1_000, 0, &again(), Job::Takes(2_000));
    // No write is taken from here on.
    world.store.apart_ms.set(600_000);
    world.pass(60_000);
    let report = trigger.report();
    assert_eq!(report.outcome, Done);
    assert!(!report.runs[0].recorded && report.fault.is_some(), "{report:?}");
}
