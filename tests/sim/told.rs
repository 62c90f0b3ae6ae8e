//! A history in words: its head, who and what is in the schedule, and what its lines say of requests and answers.

use edgelect::clock::Now;
use edgelect::lease::Reading;
use edgelect::store::{Answer, Condition, Facts, Outcome};

use super::clocks::EPOCH_MS;
use super::member::Machine;
use super::oracle::Deed;
use super::schedule::Schedule;
use super::store::{Asked, Manners};

impl Schedule {
    /// A line for each member that takes part, and for what befalls them.
    pub fn cast(&self) -> Vec<String> {
        let members = self.world.machines.iter().enumerate();
        let members = members.filter(|(_, machine)| !machine.absent);
        let mut lines: Vec<String> =
            members.map(|(number, machine)| format!("m{number}: {}", member(machine))).collect();
        lines.push(format!("the store: {}", listed(odd(&self.world.store.manners))));
        let ways = self.world.weather.rates().map(|(kind, rate)| format!("{kind:?} {rate}"));
        let (low_ms, high_ms) = self.world.weather.latency_ms;
        lines.push(format!(
            "on the way: {low_ms} to {high_ms} ms; of a thousand requests: {}",
            listed(ways)
        ));
        let blows = self.blows.iter().map(|blow| format!("{blow:?}"));
        let (pace_ms, heal_ms) = (self.pace_ms, self.heal_ms);
        lines.push(format!("about every {pace_ms} ms until {heal_ms} ms: {}", listed(blows)));
        if self.world.operator.is_some() {
            lines.push("an operator".to_owned());
        }
        lines
    }
}

fn member(machine: &Machine) -> String {
    let Machine { config, clocks, .. } = machine;
    let mut told = vec![
        format!("leases of {} ms", config.leader_timeout_ms),
        format!("a margin of {} ms", config.margin_ms),
        format!("renews every {} ms", config.frequent_interval_ms),
        format!("follows {:?}", config.follow).to_lowercase(),
        if clocks.single { "one clock" } else { "two clocks" }.to_owned(),
    ];
    if clocks.rate_ppm != 0 {
        told.push(format!("{} ppm fast", clocks.rate_ppm));
    }
    if clocks.wall_offset_ms != 0 {
        told.push(format!("its wall clock {} ms ahead", clocks.wall_offset_ms));
    }
    if let Some(cron) = machine.cron {
        told.push(format!("a trigger every {} ms", cron.period_ms));
    }
    if machine.runs_slots {
        told.push("runs slots".to_owned());
    }
    told.join(", ")
}

/// How the store differs from most.
fn odd(manners: &Manners) -> impl Iterator<Item = String> {
    let ahead_ms = manners.front_end_ms.iter().max().copied().unwrap_or(0);
    let expire_ms = manners.credentials_ms.unwrap_or(0);
    let amounts = [
        (ahead_ms, "ms between the clocks of its front ends"),
        (manners.undated_per_mille, "of a thousand answers without Date"),
        (manners.relayed_per_mille, "of a thousand answers by a relay"),
        (manners.stale_per_mille, "of a thousand reads are old"),
        (expire_ms, "ms until credentials expire"),
    ];
    let amounts = amounts.into_iter().filter(|(amount, _)| *amount > 0);
    let flags = [
        (manners.undated, "no Date"),
        (manners.unmodified, "no Last-Modified"),
        (manners.moving, "a Last-Modified that is the time of the answer"),
        (manners.unchanged, "304 for each version that once was"),
        (manners.full_304, "304 with Last-Modified"),
        (manners.unquoted, "ETags without quotes"),
    ];
    let flags = flags.into_iter().filter(|(flag, _)| *flag);
    let amounts = amounts.map(|(amount, what)| format!("{amount} {what}"));
    amounts.chain(flags.map(|(_, what)| what.to_owned()))
}

fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
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
    let Facts { date_ms, last_modified_ms, relayed, cached } = answer.facts;
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
