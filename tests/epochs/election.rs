//! What an election does over a store whose condition does not cover the version, told answer by answer.

use edgelect::election::{Problem, SlotsOver, Step};
use edgelect::job::{requests_of_epochs, steps_of_epochs};
use edgelect::slots::{Missed, Schedule, ScheduleSettings, SlotEnd};

use crate::alone::told::{AT_MS, Alone};
use crate::driver::prelude::*;
use crate::epochs::answers::{Desk, epochs, lease_of};
use worlds::bucket::BEGAN_MS;

const VERSION: &str = "lock_0000000001.json 1795000000 \"e\"";

fn config() -> Config {
    let lockfile_path = Some("leader/g".to_owned());
    Config::new(&Settings { lockfile_path, ..Settings::default() }).expect("the defaults")
}

fn alone(mut election: Election) -> Alone {
    election.condition_covers_version(false);
    Alone { takes_ms: 0, ..Alone::undated(election, BEGAN_MS) }
}

/// One trigger for the slot of now.
fn trigger(settings: ScheduleSettings) -> Alone {
    trigger_with(settings, 0)
}

/// One whose longest job takes so long.
fn trigger_with(settings: ScheduleSettings, room_ms: u64) -> Alone {
    let settings =
        ScheduleSettings { slot_ms: Some(BEGAN_MS), budget_ms: Some(60_000), ..settings };
    let schedule = Schedule::new(&settings, &config()).expect("it is fine");
    let schedule = Schedule { room_ms, ..schedule };
    alone(Election::for_schedule(config(), "me".to_owned(), 7, schedule))
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
                alone.shows(VERSION, &released(record.clone()));
            }
            // A late renewal hides the tombstone, again and again.
            Step::Read { .. } => {
                let version = format!("lock_0000000001.json 1795000000 \"{}\"", alone.ms);
                alone.shows(&version, &record);
            }
            Step::Claim { .. } => {
                claims += 1;
                alone.ms += 1_000;
                alone.silence();
            }
            other => panic!("it says why it is over: {other:?}"),
        }
    };
    assert_eq!((over, claims > 0), (SlotsOver::Unknown, true), "its claim may land yet");
}

#[test]
fn a_trigger_that_catches_up_stays_under_its_subrequests() {
    assert!(catches_up(50, 0) > 3);
    // A Worker keeps what the retries and the renewals of its longest job take.
    let kept = 6 + 2;
    assert!(catches_up(requests_of_epochs(steps_of_epochs(50) - kept), 12_000) > 2);
}

/// How many jobs it runs.
fn catches_up(subrequests: u64, room_ms: u64) -> u64 {
    let (period_ms, epochs, desk) = (60_000, epochs(), Desk::new());
    let (slot, slot_done) = (Some(BEGAN_MS - 30 * period_ms), Some(true));
    let record = Lease { slot, slot_done, ..released(lease_of("other", 7)) };
    desk.bucket.borrow_mut().put(0, "leader/g/lock_0000000001.json", &lease::write(&record));
    let settings = ScheduleSettings {
        period_ms: Some(period_ms),
        missed: Some(Missed::All),
        subrequests: Some(subrequests),
        ..ScheduleSettings::default()
    };
    let mut alone = trigger_with(settings, room_ms);
    alone.ms = desk.host.now_ms.get();
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
        desk.host.now_ms.set(alone.ms);
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
    assert!(requests + jobs <= subrequests, "{jobs} jobs and {requests} requests");
    jobs
}

#[test]
fn s7_a_foreign_lease_of_two_hours_is_waited_out_in_full_and_leaves_no_grace_of_that_length() {
    let mut alone = alone(Election::new(config(), "me".to_owned(), 7));
    let foreign = Lease { session: None, lease_ms: Some(7_200_000), ..lease_of("x", 7) };
    let created = loop {
        match alone.step() {
            Step::Read { .. } if alone.ms > 7_000_000 => alone.answer(Outcome::Missing),
            Step::Read { .. } => {
                let problem = alone.election.problem();
                let told = matches!(problem, Some(Problem::LeaseTooLong { .. }));
                assert!(told || alone.ms == 0, "{problem:?}");
                alone.shows(VERSION, &foreign);
            }
            Step::Claim { lease, .. } => break lease,
            other => panic!("{other:?}"),
        }
    };
    assert!(alone.ms > 7_000_000, "{}", alone.ms);
    assert_eq!(created.lease_ms, Some(3_600_000), "no record of ours has a longer one");
}

/// Behind a proxy whose `Date` is ahead, a claim leaves too early. What else the leader renews until it lands is as little
/// refused as that claim is; damaged on the way at first, it is waited for from when it can be read.
#[test]
fn a_claim_by_a_wrong_date_that_lands_late_is_waited_for_from_when_it_is_shown() {
    for mut damaged in [false, true] {
        let mut election = Election::new(config(), "me".to_owned(), 7);
        election.condition_covers_version(false);
        let mut alone = Alone { ahead_ms: 30_000, takes_ms: 0, ..Alone::of(election) };
        let (mut claims, mut landed_ms) = (Vec::new(), None);
        let claimed_ms = loop {
            match alone.step() {
                Step::Read { .. } if alone.ms < 21_000 => {
                    let renewals = (alone.ms + 3_000) / 5_000;
                    alone.modified_ms = Some(AT_MS + 5_000 * renewals - 3_000);
                    let record = Lease { sequence: 7 + renewals, ..lease_of("other", 7) };
                    alone
                        .shows(&format!("lock_0000000001.json 1795000000 \"{renewals}\""), &record);
                }
                Step::Read { .. } => {
                    alone.modified_ms = Some(AT_MS + 21_000);
                    let version = "lock_0000000002.json 1795000000 \"own\"";
                    if std::mem::take(&mut damaged) {
                        // What happens to the leader's next renewal until then is known to nobody here.
                        alone.found(version, "damaged");
                        alone.ms += 8_000;
                        continue;
                    }
                    landed_ms.get_or_insert(alone.ms);
                    alone.shows(version, &claims[0]);
                }
                Step::Claim { lease, .. } if landed_ms.is_none() => {
                    claims.push(*lease);
                    alone.timeout();
                }
                Step::Claim { .. } => break alone.ms,
                other => panic!("{other:?}"),
            }
        };
        let waited_ms = claimed_ms - landed_ms.expect("it was shown");
        assert!(waited_ms >= 15_000, "{waited_ms} ms after {} claims", claims.len());
    }
}
