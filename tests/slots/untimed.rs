//! Stores that name no `Last-Modified`, no `Date` or neither, as DynamoDB, Route 53 and R2's binding do, and members whose
//! clocks are apart: what nobody can ever know of a record costs one slot, and frees none.

use edgelect::SlotOutcome::{Done, Taken};
use edgelect::lease::History;
use edgelect::{Missed, ScheduleSettings};

use crate::slots::world::*;
use worlds::virtual_time::EPOCH_MS;

const TOMBSTONE: &str =
    r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1795000000000,"format":1}"#;
const LIVING: &str =
    r#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12.345Z","term":1795000000000,"format":1}"#;
/// Records that do not say which slots were claimed before them.
const UNSAID: [&str; 4] = [
    TOMBSTONE,
    LIVING,
    "garbage",
    r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1795000000000,"slot":4503599627370496,"slotDone":true,"format":1}"#,
];

fn over(body: &str, dates: Dates) -> World {
    let world = World::new(dates);
    world.put(body);
    world
}

/// Every trigger was skipped for ever. Now the first says that all up to then count as claimed, and the next one runs.
#[test]
fn a_record_that_can_never_be_judged_costs_one_slot() {
    for (body, dates) in UNSAID.iter().flat_map(|body| UNCHANGED.map(|dates| (body, dates))) {
        let mut world = over(body, dates);
        world.at(FIRST_MS);
        let first = [(); 2].map(|()| world.trigger(FIRST_MS, &all_again(), Job::Takes(10)));
        world.pass(50_000);
        assert_eq!(outcomes(&first), [NEW_GROUP.name(), "taken"], "{body} {dates:?}");
        assert!(first.iter().any(|trigger| trigger.outcome() == NEW_GROUP), "{body} {dates:?}");
        let covered = world.lease();
        assert!(covered.released() && covered.slot_done == Some(true), "{covered:?}");
        assert!(covered.slot >= Some(FIRST_MS) && covered.term > Some(EPOCH_MS), "{covered:?}");
        world.at(minute(1));
        let late = world.trigger(FIRST_MS, &all_again(), Job::Takes(10));
        let next = world.runs_within(10_000, 1, &all_again());
        assert_eq!([late.outcome(), next], [Taken, Done], "{body} {dates:?}");
        assert_eq!(world.ran(), [1]);
        assert!(world.lease().term > covered.term, "tokens grow");
    }
}

#[test]
fn no_record_is_the_end_of_a_group_or_makes_a_slot_up_whatever_the_store_says_of_time() {
    // Made by hand, without `acquired` and `slotDone`: nobody has led with it.
    let by_hand =
        TOMBSTONE.replace("1795000000000", &format!("1,\"slot\":{}", FIRST_MS - MINUTE_MS));
    for body in UNSAID.into_iter().chain([&*by_hand]) {
        for (dates, settings) in EVERY_DATES.iter().flat_map(|d| [(*d, once()), (*d, all_again())])
        {
            let mut world = over(body, dates);
            let told = [0, 1, 2].map(|number| world.runs_within(55_000, number, &settings));
            let ran = world.ran();
            assert!(ran.ends_with(&[1, 2]), "{body} {dates:?}: ran {ran:?}, told {told:?}");
        }
    }
}

/// Somebody's lease lives: nothing is written over it, and the trigger waits for its budget.
#[test]
fn a_living_lease_without_a_slot_is_waited_for_where_the_store_names_no_last_modified() {
    let mut world = over(LIVING, Dates::DateOnly);
    let trigger = world.fires(0, 0, &once(), Job::Takes(10));
    for renewal in 0..12 {
        world.pass(5_000);
        world.put(LIVING.replace("\"format\"", &format!("\"n\":{renewal},\"format\"")));
    }
    assert_eq!((trigger.outcome(), world.store.writes.get()), (OUT_OF_TIME, 0));
}

/// A foreign resignation may come back byte for byte, and with it what is under way on it (S2, S4).
#[test]
fn a_tombstone_without_a_term_is_covered_by_two_writes() {
    let mut world =
        over(r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z"}"#, Dates::DateOnly);
    let trigger = world.fires(1_000, 0, &once(), Job::Takes(10));
    assert_eq!((world.lease().term, world.lease().released()), (None, false));
    world.pass(9_000);
    assert_eq!((trigger.outcome(), world.store.writes.get()), (NEW_GROUP, 2));
    assert!(world.lease().released() && world.lease().term > Some(EPOCH_MS));
}

/// What `init` covers reaches a little ahead: a trigger within that time was told to delete the group.
#[test]
fn the_first_slot_after_init_is_run_whatever_the_store_says_of_time_and_one_just_after_it_is_taken()
{
    // An operator may run `init` at R2's S3 endpoint, with every time, and the Worker reads by the binding.
    let rows = EVERY_DATES.map(|dates| [(dates, dates), (Dates::Both, dates)]);
    for (of_init, dates) in rows.into_iter().flatten() {
        let mut world = World::with_init(of_init);
        assert_eq!(world.lease().acquired.is_some(), world.lease().sequence == 2, "{of_init:?}");
        world.store.dates.set(dates);
        assert_eq!(world.runs_within(1_000, 0, &once()), Done, "{of_init:?} {dates:?}");
        assert_eq!(world.lease().history, History::default(), "nobody has led before: {dates:?}");
    }
    let mut world = World::new(Dates::DateOnly);
    world.at(FIRST_MS);
    world.init();
    for after_ms in [0, 1_500, 4_000] {
        world.at(FIRST_MS + after_ms);
        assert_eq!(world.runs_within(500, 0, &all_again()), Taken, "{after_ms}");
    }
    world.runs(1, &all_again());
    assert_eq!(world.ran(), [1]);
}

/// A trigger on a member whose clock is ahead, or behind by a negative number.
fn apart(world: &World, ahead_ms: i64, slot_ms: u64, settings: &ScheduleSettings) -> Trigger {
    let host = world.machine.host.ahead(ahead_ms);
    world.trigger_on(&host, schedule(slot_ms, settings), Job::Takes(10))
}

/// It takes the newest slot for one that nobody can have claimed yet.
#[test]
fn a_member_with_a_slow_clock_frees_no_slot_where_the_store_names_no_date() {
    for (dates, behind_ms, settings, dropped) in [
        (Dates::Neither, 15_000, once(), false),
        (Dates::Neither, 15_000, again(), false),
        (Dates::Neither, 14 * 3_600_000, once(), false),
        (Dates::LastModifiedOnly, 10 * MINUTE_MS, once(), true),
    ] {
        let mut world = World::with_init(dates);
        assert_eq!(world.runs_within(1_000, 1_200, &settings), Done);
        if dropped {
            drop_slot(&world, TOMBSTONE);
        }
        let theirs = (minute(1_200) - behind_ms) / MINUTE_MS * MINUTE_MS;
        apart(&world, -(behind_ms as i64), theirs, &settings);
        world.pass(5_000);
        assert_eq!(world.runs_within(20_000, 1_200, &settings), Taken, "{behind_ms}");
        assert_eq!(world.ran(), [1_200], "{behind_ms}: at most once");
    }
}

/// The record, as a member of another make writes it that knows no slots.
fn drop_slot(world: &World, body: &str) {
    let term = world.lease().term.expect("somebody has led").to_string();
    world.put(body.replace("1795000000000", &term));
}

/// Once the record has lost such a slot, the last change is before it is due.
#[test]
fn a_slot_that_a_fast_clock_has_claimed_is_not_run_again_where_the_store_names_no_date() {
    use Dates::{LastModifiedOnly, Neither};
    for (dates, ahead_ms, settings, lost_to) in [
        (LastModifiedOnly, 20_000, once(), None),
        (LastModifiedOnly, 20_000, again(), None),
        (LastModifiedOnly, 600_000, once(), None),
        (Neither, 20_000, once(), None),
        (LastModifiedOnly, 20_000, once(), Some(TOMBSTONE)),
        (LastModifiedOnly, 20_000, all_again(), Some(TOMBSTONE)),
        (LastModifiedOnly, 20_000, once(), Some("garbage")),
    ] {
        let (mut world, slot_ms) = (World::with_init(dates), minute(120));
        world.at(slot_ms - ahead_ms);
        let skipping = ScheduleSettings { missed: Some(Missed::Skip), ..settings.clone() };
        let first = apart(&world, ahead_ms as i64, slot_ms, &skipping);
        world.pass(5_000);
        assert_eq!(first.outcome(), Done);
        let outcomes = match lost_to {
            // By a right clock comes the trigger of a slot before it, and then that of the slot itself.
            None => {
                world.at(slot_ms - ahead_ms / 2);
                let before = world.trigger(slot_ms - ahead_ms / 2, &settings, Job::Takes(10));
                vec![world.runs_within(20_000, 120, &settings), before.outcome()]
            }
            Some(body) => {
                drop_slot(&world, body);
                world.at(slot_ms);
                let second = world.trigger(slot_ms, &settings, Job::Takes(10));
                world.runs_within(10_000, 121, &settings);
                vec![second.outcome()]
            }
        };
        let (told, ran) =
            if lost_to.is_some() { (NEW_GROUP, &[120, 121][..]) } else { (Taken, &[120][..]) };
        assert!(outcomes.iter().all(|one| *one == told), "{dates:?} {ahead_ms}: {outcomes:?}");
        assert_eq!(world.ran(), ran, "{dates:?}, {ahead_ms} ms fast: at most once");
    }
}
