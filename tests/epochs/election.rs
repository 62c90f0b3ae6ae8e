//! What an election does over a store whose condition does not cover the version, told answer by answer.

use edgelect::election::{Election, Event, Input, Problem, SlotsOver, Step};
use edgelect::lease::{Lease, Stamp};
use edgelect::slots::{Missed, Schedule, ScheduleSettings, SlotEnd};
use edgelect::store::{Condition, Facts, Fault, FaultKind, Operation, Outcome};
use edgelect::{Config, Settings, lease};

use crate::epochs::answers::{Desk, epochs, lease_of};
use crate::mixed::alone::{Alone, found};
use worlds::bucket::BEGAN_MS;

const VERSION: &str = "lock_0000000001.json 1795000000 \"e\"";
const NEXT: &str = "lock_0000000002.json 1795000000 \"e\"";

fn config(frequent_ms: u64, lease_ms: u64) -> Config {
    let settings = Settings {
        lockfile_path: Some("leader/g".to_owned()),
        frequent_interval_ms: Some(frequent_ms),
        leader_timeout_ms: Some(lease_ms),
        max_lease_ms: Some(lease_ms.max(30_000)),
        ..Settings::default()
    };
    Config::new(&settings).expect("the settings keep every rule")
}

fn alone(mut election: Election) -> Alone {
    election.condition_covers_version(false);
    Alone::new(election, BEGAN_MS)
}

fn elector() -> Alone {
    alone(Election::new(config(5_000, 15_000), "me".to_owned(), 7))
}

/// One trigger for the slot of now.
fn trigger(settings: ScheduleSettings) -> Alone {
    let settings =
        ScheduleSettings { slot_ms: Some(BEGAN_MS), budget_ms: Some(60_000), ..settings };
    let config = config(5_000, 15_000);
    let schedule = Schedule::new(&settings, &config).expect("it is fine");
    alone(Election::for_schedule(config, "me".to_owned(), 7, schedule))
}

fn released(lease: Lease) -> Lease {
    Lease { last_updated: Stamp::Released, ..lease }
}

#[test]
fn s8_a_claim_of_a_slot_stays_in_doubt_while_its_number_is_free() {
    let mut alone = trigger(ScheduleSettings::default());
    let (slot, slot_done) = (Some(BEGAN_MS - 60_000), Some(true));
    let record = Lease { slot, slot_done, ..lease_of("other", 7) };
    let mut claims = 0;
    let over = loop {
        let step = alone.step();
        let over = alone.events().into_iter().find_map(|event| match event {
            Event::SlotsOver(why) => Some(why),
            _ => None,
        });
        if let Some(why) = over {
            break why;
        }
        match step {
            Step::Read { .. } if claims == 0 => {
                alone.found(0, VERSION, &released(record.clone()));
            }
            // A late renewal hides the tombstone, again and again.
            Step::Read { .. } => {
                let version = format!("lock_0000000001.json 1795000000 \"{}\"", alone.ms);
                alone.found(0, &version, &record);
            }
            Step::Claim { .. } => {
                claims += 1;
                let cause = Fault::new(FaultKind::Timeout, "no answer in time");
                alone.answer(1_000, Outcome::Unknown { retry_after_ms: None, cause });
            }
            other => panic!("it says why it is over: {other:?}"),
        }
    };
    assert_eq!((over, claims > 0), (SlotsOver::Unknown, true), "its claim may land yet");
}

#[test]
fn a_trigger_that_catches_up_stays_under_its_subrequests() {
    let (period_ms, epochs, mut desk) = (60_000, epochs(), Desk::new());
    let (slot, slot_done) = (Some(BEGAN_MS - 30 * period_ms), Some(true));
    let record = Lease { slot, slot_done, ..released(lease_of("other", 7)) };
    desk.bucket.borrow_mut().put(0, "leader/g/lock_0000000001.json", &lease::write(&record));
    let mut alone = trigger(ScheduleSettings {
        period_ms: Some(period_ms),
        missed: Some(Missed::All),
        subrequests: Some(50),
        ..ScheduleSettings::default()
    });
    alone.ms = desk.now_ms;
    let mut jobs = 0;
    loop {
        let operation = match alone.step() {
            Step::Read { unless, .. } => Operation::Read { unless },
            Step::Claim { lease, seen, .. } => {
                Operation::Write { record: lease.into(), condition: seen }
            }
            Step::Renew { lease, held, .. } => {
                Operation::Write { record: lease.into(), condition: Condition::Match(held) }
            }
            Step::Finished => break,
            other => panic!("{other:?}"),
        };
        desk.now_ms = alone.ms;
        let answer = desk.perform(&epochs, operation);
        alone.tell(Input::Answer(answer));
        for event in alone.events() {
            if let Event::Acquired { term } = event {
                jobs += 1;
                let result = "ok".to_owned();
                let end = SlotEnd { done: true, failed: false, result, took_ms: 1 };
                alone.tell(Input::SlotEnded { term, end });
            }
        }
    }
    let requests: u64 = desk.bucket.borrow().counts.values().sum();
    println!("{jobs} jobs, {requests} requests");
    assert!(jobs > 3 && requests + jobs <= 50, "{jobs} jobs and {requests} requests");
}

/// Answers take so long that what is complete when one comes was not always so when its read left.
#[test]
fn s6_a_claim_rests_on_a_read_that_left_after_the_age_was_complete() {
    for slow_ms in (50..1_750).step_by(50) {
        let (mut alone, mut sent_ms) = (elector(), None);
        while let Step::Read { .. } = alone.step() {
            match sent_ms.replace(alone.ms) {
                None => alone.found(100, VERSION, &lease_of("other", 7)),
                Some(_) => alone.answer(slow_ms, Outcome::Unchanged),
            }
        }
        let sent_ms = sent_ms.expect("it has read");
        // A lease since the first answer, and the second and storeSkew in which a change would not show.
        assert!(sent_ms >= 100 + 15_000 + 3_000, "{slow_ms}: the read left at {sent_ms} ms");
    }
}

#[test]
fn s6_over_epochs_an_answer_from_in_between_proves_no_age_by_watching_either() {
    // Which answers are the store's own; all others were relayed.
    for (name, direct, claims) in [
        ("none", 0..0, false),
        ("the first", 0..1, false),
        ("all but the first", 1..u32::MAX, true),
    ] {
        let (mut alone, mut reads, mut began_ms) = (elector(), 0, None);
        let claimed_ms = loop {
            let Step::Read { unless, .. } = alone.step() else { break Some(alone.ms) };
            if alone.ms > 200_000 {
                break None;
            }
            let direct = direct.contains(&reads);
            reads += 1;
            if direct {
                began_ms.get_or_insert(alone.ms + 100);
            }
            let outcome = match unless {
                None => found(VERSION, &lease_of("other", 7)),
                Some(_) => Outcome::Unchanged,
            };
            alone.hears(100, outcome, Facts { relayed: !direct, ..Facts::default() });
        };
        assert_eq!(claimed_ms.is_some(), claims, "{name} are the store's own: {claimed_ms:?}");
        if let Some(claimed_ms) = claimed_ms {
            let began_ms = began_ms.expect("an answer of the store's own began the watch");
            assert!(claimed_ms >= began_ms + 18_000, "from {began_ms} to {claimed_ms}");
        }
    }
}

#[test]
fn s7_a_foreign_lease_of_two_hours_is_waited_out_in_full_and_leaves_no_grace_of_that_length() {
    let mut alone = elector();
    let foreign = Lease { session: None, lease_ms: Some(7_200_000), ..lease_of("x", 7) };
    let created = loop {
        match alone.step() {
            Step::Read { .. } if alone.ms > 7_000_000 => alone.answer(0, Outcome::Missing),
            Step::Read { .. } => {
                let problem = alone.election.problem();
                let told = matches!(problem, Some(Problem::LeaseTooLong { .. }));
                assert!(told || alone.ms == 0, "{problem:?}");
                alone.found(0, VERSION, &foreign);
            }
            Step::Claim { lease, .. } => break lease,
            other => panic!("{other:?}"),
        }
    };
    assert!(alone.ms > 7_000_000, "{}", alone.ms);
    assert_eq!(created.lease_ms, Some(3_600_000), "no record of ours has a longer one");
}

#[test]
fn s5_a_longer_interval_in_mid_term_renews_before_the_fence_of_the_lease_that_was_written() {
    let mut alone = elector();
    assert!(matches!(alone.step(), Step::Read { .. }));
    alone.found(50, VERSION, &released(lease_of("other", 5)));
    assert!(matches!(alone.step(), Step::Claim { .. }));
    let (mut sent_ms, mut renewals) = (alone.ms, 0);
    alone.tell(Input::Configure(Box::new(config(20_000, 60_000))));
    alone.written(50, NEXT);
    while alone.ms < 120_000 {
        let Step::Renew { lease, .. } = alone.step() else { panic!("it renews") };
        assert_eq!(lease.lease_ms, Some(15_000), "it is fixed within a term");
        let after_ms = alone.ms - sent_ms;
        assert!((4_000..8_000).contains(&after_ms), "after {after_ms} ms");
        (sent_ms, renewals) = (alone.ms, renewals + 1);
        if renewals % 2 == 1 {
            let cause = Fault::new(FaultKind::Denied, "turned away this once");
            alone.answer(50, Outcome::Rejected(cause));
        } else {
            alone.written(50, &format!("lock_0000000002.json {sent_ms} \"e\""));
        }
    }
    assert!(alone.leads() && renewals > 10, "{renewals} renewals");
}
