//! What is made up for: slots that nobody claimed, jobs that failed, and whose cron the missed slots are of.

use edgelect::SlotOutcome::{Done, Skipped, Taken};
use edgelect::election::{LostReason, SlotsOver};
use edgelect::slots::Cron;
use edgelect::{Missed, Policy, RunEnd, Schedule, ScheduleSettings};

use crate::slots::world::*;

#[test]
fn missed_slots_are_skipped_or_the_latest_or_all_of_them_are_run_first() {
    for (missed, expected, left_out) in [
        (Missed::Skip, vec![0, 150], 149),
        (Missed::Latest, vec![0, 149, 150], 148),
        (Missed::All, [0].into_iter().chain(50..=150).collect(), 49),
    ] {
        let settings = settings(Policy::AtMostOnce, missed);
        let mut world = World::with_init(Dates::Both);
        assert_eq!(world.runs(0, &settings), Done);
        let trigger = world.fires(30_000, 150, &settings, Job::Takes(10));
        assert_eq!(world.ran(), expected, "{missed:?}");
        assert_eq!((trigger.outcome(), trigger.report().left_out), (Done, left_out), "{missed:?}");
    }
    // After a rerun, too, those that are left out are counted.
    let mut world = World::with_init(Dates::Both);
    world.dies(0, &all_again(), 1_000);
    let trigger = world.fires(40_000, 150, &all_again(), Job::Takes(10));
    assert_eq!((world.ran().len(), trigger.report().left_out), (103, 49));
}

#[test]
fn slots_that_somebody_else_runs_meanwhile_are_not_left_out() {
    let mut world = World::with_init(Dates::Both);
    assert_eq!(world.runs(0, &once()), Done);
    world.fires(1_000, 4, &settings(Policy::AtMostOnce, Missed::All), Job::Takes(9_000));
    let waits = world.fires(3 * MINUTE_MS, 4, &once(), Job::Takes(10));
    let report = waits.report();
    assert_eq!(report.left_out, 0, "{report:?}, ran {:?}", world.ran());
}

#[test]
fn a_late_trigger_that_reruns_a_later_slot_in_vain_says_that_its_own_was_taken() {
    for (job, end) in
        [(Job::Fails, RunEnd::Failed("it failed")), (Job::Hangs, RunEnd::Lost(LostReason::Expired))]
    {
        let mut world = World::with_init(Dates::Both);
        world.at(minute(1));
        assert_eq!(world.runs_within(10_000, 0, &again()), Done);
        world.fires(10_000, 1, &again(), Job::Fails);
        let late = world.fires(1_000, 0, &again(), job);
        world.store.hangs.set(true);
        world.pass(100_000);
        let report = late.report();
        assert_eq!((report.runs[0].slot_ms, &report.runs[0].end), (minute(1), &end));
        assert_eq!(report.outcome, Taken, "{job:?}");
    }
}

#[test]
fn a_trigger_that_may_make_only_so_many_requests_leaves_slots_to_the_next_and_loses_none() {
    let mut world = World::with_init(Dates::Both);
    let few =
        ScheduleSettings { subrequests: Some(20), ..settings(Policy::AtMostOnce, Missed::All) };
    assert_eq!(world.runs(0, &few), Done);
    for number in 30..=37 {
        let before = world.ran().len();
        let trigger = world.fires(30_000, number, &few, Job::Takes(10));
        let ran = world.ran().len() - before;
        let requests = trigger.handle.requests();
        let made = requests.read + requests.write + ran as u64;
        assert!(made <= 20, "{made} requests for {ran} slots");
        assert_eq!(world.lease().slot_done, Some(true), "none is claimed that is not run");
        let outcome = trigger.outcome();
        assert!(matches!(outcome, Done | Skipped(SlotsOver::Full)), "{outcome:?}");
    }
    assert_eq!(world.ran(), (0..=37).collect::<Vec<_>>());
}

/// A trigger of the deployed Worker, whose period is the step of its cron.
fn of_cron(number: u64, text: &str, period: Option<u64>, named: bool) -> Schedule {
    let period_ms = period.map(|minutes| minutes * MINUTE_MS);
    let policy = Some(Policy::AtLeastOnce);
    let settings = ScheduleSettings { period_ms, policy, ..ScheduleSettings::default() };
    with_cron(schedule(minute(number), &settings), text, named, true)
}

fn with_cron(schedule: Schedule, text: &str, named: bool, makes_up: bool) -> Schedule {
    let periodic = schedule.period_ms.is_some();
    Schedule { cron: Some(Cron { text: text.to_owned(), named, makes_up, periodic }), ..schedule }
}

#[test]
fn a_second_cron_on_one_group_is_refused_before_it_hides_what_the_first_one_missed() {
    let mut world = World::with_init(Dates::Both);
    let five = |number| of_cron(number, "*/5 * * * *", Some(5), false);
    let hour = (FIRST_MS.next_multiple_of(60 * MINUTE_MS) - FIRST_MS) / MINUTE_MS;
    world.at(minute(hour - 5));
    world.trigger_as(five(hour - 5), Job::Takes(10));
    // No trigger comes for an hour; then all do, and none of the others may claim.
    world.at(minute(hour + 60));
    for (text, period) in [("0 * * * *", Some(60)), ("0 9-17 * * *", None)] {
        let other = of_cron(hour + 60, text, period, false);
        let other = world.trigger_as(other, Job::Takes(10));
        world.pass(5_000);
        assert_eq!(other.outcome(), Skipped(SlotsOver::OtherCron), "{text}");
    }
    let all = world.trigger_as(five(hour + 60), Job::Takes(10));
    world.pass(30_000);
    assert_eq!(all.outcome(), Done);
    let expected: Vec<u64> = (hour..=hour + 60).step_by(5).collect();
    let ran: Vec<u64> = world.ran().into_iter().filter(|number| *number >= hour).collect();
    assert_eq!(ran, expected, "none is lost");
}

#[test]
fn a_cron_that_the_operator_names_takes_the_place_of_the_recorded_one() {
    let mut world = World::with_init(Dates::Both);
    let (every, second) = ("* * * * *", "*/2 * * * *");
    let refused = Skipped(SlotsOver::OtherCron);
    for (number, text, period, named, outcome, recorded) in [
        (0, every, Some(1), false, Done, Some(every)),
        (2, second, Some(2), false, refused, Some(every)),
        (2, second, Some(2), true, Done, Some(second)),
        (4, second, Some(2), false, Done, Some(second)),
        // Nothing is made up for any more: such triggers may share a group.
        (6, "0 9-17 * * *", None, true, Done, Some("false")),
        (7, "30 12 * * SAT", None, false, Done, Some("false")),
        (8, "0 9-17 * * *", None, false, Done, Some("false")),
        (9, second, Some(2), false, Done, Some(second)),
    ] {
        world.at(minute(number).max(world.now_ms()));
        let trigger = world.trigger_as(of_cron(number, text, period, named), Job::Takes(10));
        world.pass(5_000);
        assert_eq!(trigger.outcome(), outcome, "{number}: {text}");
        let recorded = recorded
            .map(|text| if text == "false" { text.to_owned() } else { format!("\"{text}\"") });
        assert_eq!(world.lease().extra.get("slotCron"), recorded.as_deref(), "{number}: {text}");
    }
}

#[test]
fn a_cron_makes_up_for_no_slot_of_the_one_before_it() {
    let hour = (FIRST_MS.next_multiple_of(60 * MINUTE_MS) - FIRST_MS) / MINUTE_MS;
    let later = hour + 20 * 60;
    let hourly = |number, named| of_cron(number, "0 * * * *", Some(60), named);
    let skip = |number: u64, text: &str| {
        let skip = settings(Policy::AtMostOnce, Missed::Skip);
        with_cron(schedule(minute(number), &skip), text, false, false)
    };
    let monthly = of_cron(hour, "0 9 1 * *", None, false);
    let befores: [&[Schedule]; 4] = [
        // Its times are not even, so that it counts none.
        std::slice::from_ref(&monthly),
        // It runs each slot at most once.
        &[skip(hour, "0 3 * * *")],
        // A second one is named in its place and taken back, or another one that makes up for none was between.
        &[hourly(hour, false), of_cron(hour + 15, "15 * * * *", Some(60), true)],
        &[hourly(hour, false), skip(hour + 15, "15 * * * *")],
    ];
    for (case, before) in befores.into_iter().enumerate() {
        for job in [Job::Takes(10), Job::Fails] {
            let mut world = World::with_init(Dates::Both);
            for trigger in before {
                world.at(minute(hour + 15 * u64::from(trigger.slot_ms != Some(minute(hour)))));
                world.trigger_as(trigger.clone(), job);
                world.pass(5_000);
            }
            // Its own slot may wait for one that fails: then nothing has taken the hourly one's place.
            if world.lease().extra.get("slotCron") == Some("\"0 * * * *\"") {
                assert!(case >= 2 && matches!(job, Job::Fails), "{case}");
                continue;
            }
            let ran = world.ran().len();
            world.at(minute(later));
            let trigger = world.trigger_as(hourly(later, case == 2), Job::Takes(10));
            world.pass(60_000);
            assert_eq!(trigger.outcome(), Done, "{case}");
            let again: Vec<u64> =
                world.ran()[ran..].iter().copied().filter(|at| *at < later).collect();
            assert!(again.iter().all(|at| *at <= hour + 15), "{case}: {again:?}");
            // From here on it counts its own.
            let before = world.ran().len();
            world.at(minute(later + 180));
            world.trigger_as(hourly(later + 180, false), Job::Takes(10));
            world.pass(60_000);
            assert_eq!(world.ran()[before..], [later + 60, later + 120, later + 180], "{case}");
        }
    }
}

#[test]
fn a_trigger_that_makes_up_for_none_says_how_many_it_leaves_out() {
    let mut world = World::with_init(Dates::Both);
    for (number, left_out) in [(0, 0), (3, 2), (7, 3), (12, 4)] {
        world.at(minute(number));
        let skip = schedule(minute(number), &settings(Policy::AtMostOnce, Missed::Skip));
        let trigger = world.trigger_as(with_cron(skip, "* * * * *", false, false), Job::Takes(10));
        world.pass(5_000);
        assert_eq!((trigger.outcome(), trigger.report().left_out), (Done, left_out), "{number}");
    }
}
