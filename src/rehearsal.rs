//! One slot from its claim to its end against answers that are made here: nothing is asked, and nobody leads.
//!
//! V8 compiles each function of a wasm when it is first called, which is most of the CPU that a fresh isolate's first slot takes. A
//! Worker that rehearses while its isolate starts has compiled most of them before an event's CPU is counted.

use crate::clock::Now;
use crate::config::Config;
use crate::driver::Requests;
use crate::election::{Election, Event, Input, Step};
use crate::protocol::Next;
use crate::request::{self, Body};
use crate::sigv4::Credentials;
use crate::slots::{Schedule, SlotEnd};
use crate::status;
use crate::store::s3::{S3, S3Config};
use crate::store::{Answer, Condition, Operation, Record};

/// 2026-11-21T06:58:12Z: a time that is not this machine's, which a Worker does not know while it starts.
pub const AT_MS: u64 = 1_795_244_292_000;

/// What a member has left that ran the slots before.
const RECORD: &[u8] = br#"{"format":1,"leaderID":"rehearsal","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z",
    "acquired":"2026-11-21T06:00:00Z","term":1795240800000,"session":"before","sequence":2,"leaseMs":15000,"transitions":1,
    "parked":false,"slot":1795240800000,"slotDone":true,"slotResult":"ok","slotTookMs":5,"slotTerm":1795240800000,
    "history":[{"term":1795237200000,"by":"rehearsal","from":1795237200000,"to":1795237200500,"how":"released"},
    {"slot":1795237200000,"outcome":"ok","by":"rehearsal"}]}"#;

/// More steps than a slot takes.
const MOST_STEPS: u32 = 20;

/// Claims the slot of a schedule and closes it. Whether its job was recorded as ended.
pub fn rehearse(config: &Config, schedule: Schedule) -> bool {
    let place = S3Config {
        endpoint: Some("https://s3.example".to_owned()),
        bucket: "rehearsal".to_owned(),
        region: Some("us-east-1".to_owned()),
        path_style: Some(true),
        key: config.lockfile_path.clone(),
        ..S3Config::default()
    };
    let Ok(s3) = S3::new(place) else { return false };
    let (config, session) = (config.clone(), "rehearsal".to_owned());
    let mut election = Election::for_schedule(config, session, 1, schedule);
    let mut now = Now::new(AT_MS, AT_MS);
    let mut recorded = false;
    for _ in 0..MOST_STEPS {
        let operation = match election.poll(now) {
            Step::Read { unless, .. } => Operation::Read { unless },
            Step::Claim { lease, seen, .. } => write(Record::Lease(lease), seen),
            Step::Renew { lease, held, .. } => write(Record::Lease(lease), Condition::Match(held)),
            Step::Wait { until_ms } => {
                now = Now::new(until_ms.max(now.mono_ms + 1), until_ms.max(now.wall_ms + 1));
                continue;
            }
            Step::AskPeer { .. } | Step::Finished => break,
        };
        let Some(answer) = exchange(&s3, operation, now) else { return false };
        now = Now::new(now.mono_ms + 10, now.wall_ms + 10);
        election.handle(now, Input::Answer(answer));
        election.waiting(now);
        while let Some(event) = election.next_event() {
            match event {
                Event::Acquired { term } => {
                    let result = "ok".to_owned();
                    let end = SlotEnd { done: true, failed: false, result, took_ms: 1 };
                    election.handle(now, Input::SlotEnded { term, end });
                }
                Event::SlotClosed { recorded: closed, .. } => recorded |= closed,
                _ => {}
            }
        }
    }
    status::public(&election, now, Requests::default());
    recorded
}

fn write(record: Record, condition: Condition) -> Operation {
    Operation::Write { record, condition }
}

/// A request as it would be sent, and an answer as S3 gives it.
fn exchange(s3: &S3, operation: Operation, now: Now) -> Option<Answer> {
    let reads = matches!(operation, Operation::Read { .. });
    // AWS's own example pair, which opens nothing.
    let credentials = Credentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: None,
    };
    let mut exchange = s3.begin(operation);
    exchange.request(s3, &credentials, now.wall_ms).ok()?;
    let etag = format!("\"{}\"", now.wall_ms);
    let headers = [
        ("date", "Sat, 21 Nov 2026 06:58:12 GMT"),
        ("etag", &etag),
        ("last-modified", "Sat, 21 Nov 2026 06:00:00 GMT"),
    ];
    let headers = headers.into_iter().take(if reads { 3 } else { 2 });
    let body = if reads { Body::from(RECORD) } else { Body::default() };
    let response = request::answer(200, headers, body).ok()?;
    match exchange.answer(s3, response, now.wall_ms) {
        Next::Done(answer) => Some(answer),
        Next::Again | Next::Refresh => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostClock, Settings};
    use crate::slots::ScheduleSettings;

    #[test]
    fn a_rehearsal_claims_a_slot_and_closes_it() {
        let settings = Settings {
            lockfile_path: Some("rehearsal.json".to_owned()),
            server_id: Some("rehearsal".to_owned()),
            clock: HostClock::One,
            ..Settings::default()
        };
        let config = Config::new(&settings).expect("the settings keep every rule");
        let schedule = ScheduleSettings { slot_ms: Some(AT_MS), ..ScheduleSettings::default() };
        let schedule = Schedule::new(&schedule, &config).expect("the schedule keeps every rule");
        assert!(rehearse(&config, schedule));
    }
}
