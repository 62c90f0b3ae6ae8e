//! What a trigger reports in the end, and what the record says then: stops, lost answers, budgets.

use edgelect::SlotOutcome::{Done, Lost, Skipped, Unknown};
use edgelect::election::SlotsOver;
use edgelect::{Missed, Policy, lead};

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
    let trigger = world.fires(100, 0, &once(), Job::Takes(10));
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
