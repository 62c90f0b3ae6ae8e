//! What a trigger reports in the end, and what the record says then: stops, lost answers, budgets, jobs that outlast their
//! authority.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::SlotOutcome::{Done, Lost, Skipped, Unknown};
use edgelect::election::SlotsOver;
use edgelect::{Election, Handle, Input, Missed, Policy, RunEnd, ScheduleSettings, lead};

use crate::slots::world::{
    Dates, FIRST_MS, Job, MINUTE_MS, OUT_OF_TIME, Trigger, World, again, all_again, minute, once,
    settings,
};
use worlds::virtual_time::config;

#[test]
fn the_closing_write_says_how_the_job_ended_and_gives_the_lease_up() {
    let mut world = World::with_init(Dates::Both);
    let trigger = world.trigger(FIRST_MS, &once(), Job::Takes(20_000));
    let slot = |world: &World| {
        let lease = world.lease();
        (lease.slot, lease.slot_done, lease.released())
    };
    world.pass(12_000);
    assert_eq!(slot(&world), (Some(FIRST_MS), Some(false), false));
    let sequence = world.lease().sequence;
    assert!(sequence >= 3, "it is renewed while the job runs: {sequence}");
    world.pass(12_000);
    assert_eq!(slot(&world), (Some(FIRST_MS), Some(true), true));
    let (lease, report) = (world.lease(), trigger.report());
    assert_eq!((lease.slot_result.as_deref(), lease.slot_failures), (Some("ok"), None));
    let took_ms = lease.slot_took_ms.expect("it is told");
    assert!((20_000..20_500).contains(&took_ms), "{took_ms}");
    assert!(report.runs[0].recorded);
    assert_eq!((report.slot_ms, Some(report.runs[0].term)), (Some(FIRST_MS), lease.term));
}

#[test]
fn a_job_longer_than_the_period_keeps_the_next_trigger_waiting_within_its_budget() {
    let mut world = World::with_init(Dates::Both);
    let first = world.trigger(FIRST_MS, &once(), Job::Takes(80_000));
    assert_eq!(world.runs_within(30_000, 1, &once()), Done);
    assert_eq!(first.outcome(), Done);
    let long = world.trigger(minute(1) + 1, &once(), Job::Takes(300_000));
    world.pass(2_000);
    let short = ScheduleSettings { budget_ms: Some(26_000), ..once() };
    let began_ms = world.now_ms();
    let waiting = world.trigger(began_ms, &short, Job::Takes(10));
    world.pass(25_000);
    assert!(!waiting.ended());
    world.pass(2_500);
    assert_eq!(waiting.outcome(), OUT_OF_TIME);
    assert!(world.now_ms() - began_ms < 28_000 && !long.ended());
}

#[test]
fn a_store_that_is_back_within_the_budget_is_soon_asked_and_else_nothing_is_claimed() {
    let rows = [10_000, 20_000, 30_000, 40_000].map(|hung_ms| (hung_ms, 8_000, Done));
    for (hung_ms, then_ms, outcome) in rows.into_iter().chain([(49_000, 5_000, OUT_OF_TIME)]) {
        let mut world = World::with_init(Dates::Both);
        world.store.hangs.set(true);
        let trigger = world.trigger(FIRST_MS, &once(), Job::Takes(10));
        world.pass(hung_ms);
        assert!(!trigger.ended(), "{hung_ms}");
        world.store.hangs.set(outcome == OUT_OF_TIME);
        world.pass(then_ms);
        assert!(trigger.ended(), "the store was away for {hung_ms} ms");
        let report = trigger.report();
        assert_eq!((report.outcome, report.slot_ms), (outcome, Some(FIRST_MS)), "{hung_ms}");
    }
}

#[test]
fn a_lost_authority_ends_the_job_and_its_late_end_changes_nothing() {
    let mut world = World::with_init(Dates::Both);
    let first = world.trigger(FIRST_MS, &again(), Job::Takes(40_000));
    world.pass(2_000);
    world.store.hangs.set(true);
    world.pass(20_000);
    let report = first.report();
    assert_eq!(report.outcome, Lost);
    assert!(matches!(report.runs[0].end, RunEnd::Lost(_)) && !report.runs[0].recorded);
    world.store.hangs.set(false);
    assert_eq!(world.lease().slot_done, Some(false));
    assert_eq!(world.runs_within(30_000, 1, &again()), Done);
    assert_eq!(world.ran(), [0, 0, 1]);
    // One turn of a job outlasts the lease: the record never says that it is done.
    let mut world = World::with_init(Dates::Both);
    let busy = world.trigger(FIRST_MS, &once(), Job::Blocks(20_000));
    world.pass(60_000);
    let report = busy.report();
    assert_eq!((report.outcome, report.runs.len(), report.runs[0].recorded), (Lost, 1, false));
    assert_eq!(world.lease().slot_done, Some(false));
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
        assert_eq!(report.fault.is_some(), world.store.misconfigured.get(), "{what}: {report:?}");
        assert!(outcome != Unknown || lease.slot == Some(FIRST_MS), "{what}: it landed");
        if outcome == Lost {
            assert_eq!((lease.slot_done, lease.released()), (Some(false), true));
            let told = (lease.slot_result.as_deref(), lease.slot_failures);
            assert_eq!(told, (Some("stopped"), None));
        }
    }
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
    let trigger = world.trigger(FIRST_MS, &once(), Job::Takes(10));
    world.pass(100);
    open.send(()).expect("the claim is under way");
    trigger.stop();
    world.pass(2_000);
    assert!(trigger.ended() && world.lease().released(), "ended {}", trigger.ended());
}

/// `lead` had the same hole: it waited for the fence, and released nothing.
#[test]
fn a_stop_in_the_turn_of_the_answer_releases_under_lead() {
    let mut world = World::with_init(Dates::Both);
    let open = world.hold_answer();
    let handle = Handle::new(Election::new(config(), "l".to_owned(), 3));
    let ended = Rc::new(Cell::new(false));
    let (store, host) = (world.wire(), world.machine.host.clone());
    let (leading, told) = (handle.clone(), Rc::clone(&ended));
    world.machine.run(async move {
        let work = async |_| std::future::pending::<()>().await;
        let _ = lead(&leading, &store, &host, work).await;
        told.set(true);
    });
    world.pass(100);
    open.send(()).expect("the claim is under way");
    handle.tell(Input::Stop { park: false });
    world.pass(2_000);
    assert!(ended.get() && world.lease().released(), "ended {}", ended.get());
}
