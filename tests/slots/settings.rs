//! Which schedules are refused, and which slot a timer asks for.

use edgelect::SlotOutcome::Done;
use edgelect::json::Object;
use edgelect::slots::StorageTimes;
use edgelect::{Missed, Policy, Schedule, ScheduleSettings, Settings};

use crate::slots::world::{Dates, FIRST_MS, Job, World, minute, once};
use worlds::virtual_time::{config, config_of};

#[test]
fn a_schedule_that_breaks_a_rule_is_refused_by_name() {
    type Change = fn(&mut ScheduleSettings);
    let rows: [(&str, Change); 10] = [
        ("period 14999", |s| s.period_ms = Some(14_999)),
        ("period 18446744073709551615", |s| s.period_ms = Some(u64::MAX)),
        ("slot 0", |s| s.slot_ms = Some(0)),
        ("slot 18446744073709551615", |s| s.slot_ms = Some(u64::MAX)),
        ("slot (not set)", |s| (s.slot_ms, s.period_ms) = (None, None)),
        ("missed \"all\"", |s| (s.missed, s.period_ms) = (Some(Missed::All), None)),
        ("attempts 0", |s| s.attempts = Some(0)),
        // A lease that the budget does not outlast could never be taken over where the store tells no time.
        ("budget 10000", |s| s.budget_ms = Some(10_000)),
        ("budget 25000", |s| s.budget_ms = Some(25_000)),
        ("budget 3600000", |s| s.budget_ms = Some(3_600_000)),
    ];
    for (refused, change) in rows {
        let mut settings = ScheduleSettings { slot_ms: Some(FIRST_MS), ..once() };
        change(&mut settings);
        let error = Schedule::new(&settings, &config()).expect_err(refused);
        assert_eq!(format!("{} {}", error.field, error.value), refused);
    }
}

#[test]
fn the_default_budget_outlasts_a_lease_of_a_minute() {
    let config = config_of(Settings { leader_timeout_ms: Some(60_000), ..Settings::default() });
    let settings = ScheduleSettings { slot_ms: Some(FIRST_MS), ..once() };
    let waits_ms = config.grace_ms(0) + config.store_skew_ms;
    let budget_ms = Schedule::new(&settings, &config).map(|schedule| schedule.budget_ms);
    assert!(budget_ms.as_ref().is_ok_and(|ms| *ms > waits_ms), "{budget_ms:?} for {waits_ms}");
}

#[test]
fn a_timers_slot_is_the_nearest_multiple_of_its_period_unless_that_lies_ahead() {
    for (after_ms, number) in [(0, 0), (200, 0), (29_000, 0), (40_000, 0), (58_500, 1), (60_000, 1)]
    {
        let mut world = World::with_init(Dates::Both);
        world.at(FIRST_MS + after_ms);
        let schedule = Schedule::new(&once(), &config()).expect("it has a period");
        let trigger = world.trigger_as(schedule, Job::Takes(10));
        world.pass(3_000);
        assert_eq!(trigger.report().slot_ms, Some(minute(number)), "{after_ms}");
        assert_eq!(trigger.outcome(), Done, "{after_ms}");
    }
}

#[test]
fn options_are_read_by_their_names_and_refused_by_them() {
    let read = |text: &str| {
        let options = Object::read(text.as_bytes()).expect("an object");
        ScheduleSettings::from_json(&options)
    };
    let settings = read(r#"{"policy": "atLeastOnce", "missed": "all", "period": null}"#);
    let settings = settings.expect("both are known");
    assert_eq!(settings.policy, Some(Policy::AtLeastOnce));
    assert_eq!((settings.missed, settings.period_ms), (Some(Missed::All), None));
    let refused = read(r#"{"policy": "sometimes"}"#).expect_err("nobody knows it");
    assert_eq!(refused.field, "policy");
}

/// Whoever claimed a slot did so by a clock, and its change is told by another, that may each be `storeSkew` off.
#[test]
fn a_record_without_a_slot_counts_those_of_two_skews_after_it_as_claimed() {
    let times = StorageTimes {
        now_ms: 200_000,
        ceiling_ms: 203_000,
        dated: true,
        changed_ms: Some(100_000),
        skew_ms: 2_000,
    };
    assert_eq!(times.claimed_through_ms(), 106_000);
    assert_eq!(StorageTimes { changed_ms: None, ..times }.claimed_through_ms(), 209_000);
}
