//! No slot is run twice, whatever becomes of its triggers, its runner and the record.

use edgelect::SlotOutcome::{Done, Taken};
use edgelect::election::SlotsOver;
use edgelect::lease::Stamp;
use edgelect::{ScheduleSettings, SlotOutcome};

use crate::slots::world::{
    Dates, EVERY_DATES, FIRST_MS, Job, MINUTE_MS, NEW_GROUP, Trigger, World, again, all_again,
    minute, once,
};

#[test]
fn c54_of_triggers_for_one_slot_one_runs_whether_doubled_late_or_again() {
    for settings in [once(), again()] {
        let mut world = World::with_init(Dates::Both);
        let trigger = |world: &World| world.trigger(FIRST_MS, &settings, Job::Takes(3_000));
        let mut triggers: Vec<Trigger> = (0..5).map(|_| trigger(&world)).collect();
        world.pass(1_000);
        triggers.push(trigger(&world));
        world.pass(1_000);
        assert!(triggers[5].ended(), "it does not wait for the one that runs: {settings:?}");
        world.pass(10_000);
        assert_eq!(world.runs(0, &again()), Taken);
        let of = |which| triggers.iter().filter(|trigger| trigger.outcome() == which).count();
        assert_eq!((of(Done), of(Taken), world.ran()), (1, 5, vec![0]), "{settings:?}");
    }
}

#[test]
fn c54_minutes_of_doubled_and_late_triggers_run_each_slot_once_and_tokens_grow() {
    let mut world = World::with_init(Dates::Both);
    let mut triggers = Vec::new();
    for number in 0..30 {
        world.at(minute(number) + number * 137 % 9_000);
        for _ in 0..=number % 3 {
            triggers.push(world.trigger(minute(number), &once(), Job::Takes(700)));
        }
    }
    world.pass(MINUTE_MS);
    assert_eq!(world.ran(), (0..30).collect::<Vec<_>>());
    assert!(world.tokens_grow());
    assert!(triggers.iter().all(|trigger| matches!(trigger.outcome(), Done | Taken)));
}

#[test]
fn c56_a_dead_runners_slot_is_not_run_again_at_most_once() {
    let mut world = World::with_init(Dates::Both);
    let dead = world.trigger(FIRST_MS, &once(), Job::Hangs);
    world.pass(2_000);
    dead.kill.abort();
    world.pass(20_000);
    assert_eq!([world.runs(0, &once()), world.runs(1, &once())], [Taken, Done]);
    assert_eq!(world.ran(), [0, 1]);
}

#[test]
fn c56_a_dead_runners_slot_is_run_again_before_any_later_one_at_least_once() {
    let mut world = World::with_init(Dates::Both);
    let dead = world.trigger(FIRST_MS, &again(), Job::Hangs);
    world.pass(50_000);
    dead.kill.abort();
    world.at(minute(1));
    let next = [(); 2].map(|()| world.trigger(minute(1), &again(), Job::Takes(10)));
    world.pass(3_000);
    assert!(!next.iter().any(Trigger::ended), "the lease of the dead runner is waited out");
    world.pass(30_000);
    assert_eq!(world.ran(), [0, 0, 1]);
    let mut outcomes = next.map(|trigger| trigger.outcome().name());
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["done", "taken"]);
    assert!(world.tokens_grow());
}

/// A death is no failure: the slot that kills its runner keeps its turn.
#[test]
fn a_slot_that_kills_its_runner_is_run_again_however_often() {
    let mut world = World::with_init(Dates::Both);
    for number in 0..20 {
        world.at(minute(number));
        let trigger = world.trigger(minute(number), &all_again(), Job::Hangs);
        world.pass(55_000);
        trigger.kill.abort();
    }
    assert_eq!(world.ran(), [0; 20]);
}

#[test]
fn c56_a_deleted_record_runs_nothing_twice() {
    for settings in [once(), again()] {
        let mut world = World::with_init(Dates::Both);
        assert_eq!(world.runs(0, &settings), Done);
        world.store.memory.overwrite(None);
        assert_eq!(world.runs_within(40_000, 0, &settings), NEW_GROUP);
        assert_eq!(world.runs(0, &settings).name(), "skipped");
        assert_eq!(world.runs(2, &settings), Done, "{settings:?}");
        assert_eq!(world.ran(), [0, 2], "{settings:?}");
    }
}

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
fn c56_a_slot_over_a_tombstone_without_a_term_is_run_once() {
    for settings in [once(), again()] {
        let mut world = World::with_init(Dates::Both);
        world.change(|lease| {
            (lease.term, lease.session, lease.slot, lease.slot_done) = (None, None, None, None);
            lease.last_updated = Stamp::Released;
        });
        let outcomes = [(); 2].map(|()| world.runs_within(12_000, 1, &settings));
        assert_eq!((outcomes, world.ran()), ([Done, Taken], vec![1]), "{settings:?}");
    }
}

#[test]
fn a_members_slot_ahead_of_storage_time_is_no_damage() {
    let mut world = World::with_init(Dates::Both);
    world.change(|lease| {
        lease.acquired = Some(1);
        (lease.slot, lease.slot_done) = (Some(minute(3)), Some(true));
    });
    let outcomes = [1, 2, 3, 4].map(|number| world.runs(number, &once()));
    assert_eq!((outcomes, world.ran()), ([Taken, Taken, Taken, Done], vec![4]));
}

#[test]
fn a_stored_slot_ahead_of_storage_time_of_no_member_counts_as_missing_and_an_own_one_is_refused() {
    let mut world = World::with_init(Dates::Both);
    world.change(|lease| {
        lease.session = None;
        (lease.slot, lease.slot_done) = (Some(minute(400)), Some(true));
    });
    world.at(minute(1));
    let ahead = world.trigger(minute(2), &once(), Job::Takes(10));
    assert_eq!(world.runs(1, &once()), Done);
    let SlotOutcome::Skipped(SlotsOver::Ahead { by_ms }) = ahead.outcome() else {
        panic!("{:?}", ahead.outcome())
    };
    assert!((58_000..=60_000).contains(&by_ms), "{by_ms}");
    assert_eq!(world.ran(), [1]);
}

/// What happens between the deletion of a record and the next trigger.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Nothing,
    SomebodyLeads,
    /// A trigger for a later slot is stopped while its claim is under way.
    AClaimIsStopped,
}

/// A held-up copy of a record's first write lands after a deletion: its slot is of long ago.
#[test]
fn a_first_write_that_comes_back_after_a_deletion_frees_no_slot() {
    use Meanwhile::{AClaimIsStopped, Nothing, SomebodyLeads};
    let cases = [
        ("creation", Dates::Both, Nothing),
        ("creation", Dates::DateOnly, Nothing),
        ("creation", Dates::Neither, Nothing),
        ("init", Dates::Both, Nothing),
        ("init", Dates::DateOnly, Nothing),
        ("init", Dates::Neither, Nothing),
        ("init", Dates::Both, SomebodyLeads),
        ("init", Dates::DateOnly, SomebodyLeads),
        ("init", Dates::Both, AClaimIsStopped),
    ];
    for (made_by, dates, meanwhile) in cases {
        let mut world = World::new(Dates::Both);
        if made_by == "init" {
            world.init();
        } else {
            world.store.dates.set(dates);
            world.trigger(FIRST_MS - MINUTE_MS / 2, &once(), Job::Takes(10));
            world.pass(1_000);
        }
        let held_up = world.body();
        assert_eq!(world.runs(10, &once()), Done, "{made_by} {dates:?}");
        world.store.dates.set(dates);
        world.put(held_up);
        match meanwhile {
            Nothing => world.pass(if made_by == "init" { 0 } else { 20_000 }),
            SomebodyLeads => world.lead(3_000),
            AClaimIsStopped => {
                world.at(minute(11));
                stop_under_claim(&mut world, 11, &once());
            }
        }
        let told = world.runs_within(30_000, 10, &once());
        assert_eq!(world.ran(), [10], "{made_by} {dates:?} {meanwhile:?}: told {told:?}");
    }
}

/// A trigger for the slot of a minute is stopped while its claim is under way.
fn stop_under_claim(world: &mut World, number: u64, settings: &ScheduleSettings) {
    let open = world.hold_answer();
    let trigger = world.trigger(minute(number), settings, Job::Takes(10));
    world.pass(100);
    trigger.stop();
    world.pass(100);
    open.send(()).expect("the claim is under way");
    world.pass(8_000);
}

#[test]
fn a_stop_under_a_claim_over_a_slotless_record_loses_no_slot_at_least_once() {
    let mut world = World::new(Dates::Both);
    world.put(slotless(Some(1)));
    world.at(FIRST_MS);
    stop_under_claim(&mut world, 0, &all_again());
    let later = [1, 2, 3].map(|number| world.runs_within(30_000, number, &all_again()));
    assert!(world.ran().contains(&0), "{:?}, told {later:?}", world.ran());
}

/// A creation whose absence was told by a cache with an old `Date`.
#[test]
fn a_creation_after_a_cached_date_frees_no_slot() {
    let mut world = World::with_init(Dates::Both);
    assert_eq!(world.runs(0, &once()), Done);
    world.store.memory.overwrite(None);
    world.store.dates.set(Dates::CachedHourAgo);
    world.trigger(FIRST_MS, &once(), Job::Takes(10));
    world.pass(1_000);
    world.store.dates.set(Dates::Both);
    world.pass(20_000);
    let told = world.runs_within(20_000, 0, &once());
    assert_eq!(world.ran(), [0], "told {told:?}; created with {:?}", world.lease().slot);
}

/// The same without a `Date`, by a host whose wall clock is ten minutes slow.
#[test]
fn a_creation_by_a_slow_wall_clock_frees_no_slot() {
    let mut world = World::with_init(Dates::LastModifiedOnly);
    assert_eq!(world.runs(20, &once()), Done);
    world.store.memory.overwrite(None);
    let slow = world.machine.host.ahead(-10 * MINUTE_MS as i64);
    let theirs = crate::slots::world::schedule(minute(20), &once());
    world.trigger_on(&slow, worlds::virtual_time::config(), theirs, Job::Takes(10));
    world.pass(20_000);
    let claimed = world.lease().slot;
    assert!(claimed < Some(minute(11)), "its creation counts up to its own time: {claimed:?}");
    let told = world.runs_within(40_000, 20, &once());
    assert_eq!(world.ran(), [20], "told {told:?}");
}
