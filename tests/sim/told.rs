//! A history in words: its head, who and what is in the schedule, and what its lines say of requests and answers.

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::lease::Reading;
use edgelect::store::{Answer, Condition, Facts, Outcome};

use super::clocks::{Clocks, EPOCH_MS};
use super::member::Machine;
use super::oracle::Deed;
use super::schedule::Schedule;
use super::store::Asked;
use super::world::World;

impl Schedule {
    /// A line for each member that takes part, and for what befalls them.
    pub fn cast(&self) -> Vec<String> {
        let World { machines, store, weather, operator, .. } = &self.world;
        let members = machines.iter().enumerate().filter(|(_, machine)| !machine.absent);
        let members = members.map(|(number, machine)| format!("m{number}: {}", member(machine)));
        let mut lines: Vec<String> = members.collect();
        lines.push(format!("the store: {:?}", store.manners));
        lines.push(format!("on the way, befalling so many of a thousand requests: {weather:?}"));
        let Self { blows, pace_ms, heal_ms, .. } = self;
        lines.push(format!("about every {pace_ms} ms until {heal_ms} ms: {blows:?}"));
        lines.extend(operator.iter().map(|_| "an operator".to_owned()));
        lines
    }
}

fn member(Machine { config, clocks, cron, runs_slots, .. }: &Machine) -> String {
    let Config { leader_timeout_ms, margin_ms, frequent_interval_ms, follow, .. } = config;
    let Clocks { single, rate_ppm, wall_offset_ms, .. } = clocks;
    format!(
        "leases of {leader_timeout_ms} ms, a margin of {margin_ms} ms, renews every \
         {frequent_interval_ms} ms, follows {follow:?}; one clock: {single}, {rate_ppm} ppm fast, \
         its wall clock {wall_offset_ms} ms ahead; runs slots: {runs_slots}, {cron:?}"
    )
}

/// What a member asks of the store.
pub fn asks(asked: &Asked, deed: Option<&Deed>) -> String {
    match (asked, deed) {
        (Asked::Write { condition, .. }, Some(deed)) => {
            let lease_ms = deed.lease.lease_ms.map(|ms| format!(" for {ms} ms"));
            format!(
                "writes {:?} #{} of term {}{} as {}{}",
                deed.aim,
                deed.lease.sequence,
                deed.term,
                lease_ms.unwrap_or_default(),
                deed.version.0,
                on(condition)
            )
        }
        (Asked::Write { lease, version, condition, .. }, None) => {
            format!("asks for {:?} as {}{}", lease.operator, version.0, on(condition))
        }
        (Asked::Read { unless: Some(version) }, _) => format!("reads, unless it is {}", version.0),
        (Asked::Read { unless: None }, _) => "reads".to_owned(),
    }
}

fn on(condition: &Condition) -> String {
    match condition {
        Condition::Match(version) => format!(", over {}", version.0),
        Condition::Absent => ", where there is nothing".to_owned(),
    }
}

/// What it hears, and what its clocks show then.
pub fn hears(answer: &Answer, now: Now) -> String {
    let Facts { date_ms, last_modified_ms, relayed, cached, .. } = answer.facts;
    let seconds = |ms: u64| (ms as i64 - EPOCH_MS as i64) as f64 / 1e3;
    let mut told = vec![outcome(&answer.outcome)];
    told.extend(date_ms.map(|ms| format!("Date {} s", seconds(ms))));
    told.extend(last_modified_ms.map(|ms| format!("Last-Modified {} s", seconds(ms))));
    match (relayed, cached) {
        (_, true) => told.push("cached".to_owned()),
        (true, _) => told.push("by a relay".to_owned()),
        _ => {}
    }
    let held = if now.held { ", held" } else { "" };
    let (mono_s, wall_s) = (now.mono_ms as f64 / 1e3, seconds(now.wall_ms));
    format!("hears: {}; its clocks show {mono_s} s and {wall_s} s{held}", told.join(", "))
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Found { version, reading: Reading::Lease(lease) } => {
            let session = lease.session.as_deref().unwrap_or("of no session");
            let term = lease.term.map(|term| format!(" of term {term}")).unwrap_or_default();
            let parked = if lease.parked { ", parked" } else { "" };
            let released = if lease.released() { ", released" } else { "" };
            let (version, leader, sequence) = (&version.0, &lease.leader_id, lease.sequence);
            format!(
                "there is {version} by {leader} ({session}) #{sequence}{term}{parked}{released}"
            )
        }
        Outcome::Found { version, reading } => format!("there is {}: {reading:?}", version.0),
        Outcome::Missing => "there is nothing".to_owned(),
        Outcome::Unchanged => "it is unchanged".to_owned(),
        Outcome::Written { version: Some(version) } => format!("written as {}", version.0),
        Outcome::Written { version: None } => "written, under no name".to_owned(),
        Outcome::Refused => "the condition did not hold".to_owned(),
        Outcome::Unknown { retry_after_ms, cause } => {
            let retry = retry_after_ms.map(|ms| format!(", Retry-After {ms} ms"));
            format!("nobody knows ({:?}){}", cause.kind, retry.unwrap_or_default())
        }
        Outcome::Rejected(fault) => format!("rejected ({:?})", fault.kind),
    }
}
