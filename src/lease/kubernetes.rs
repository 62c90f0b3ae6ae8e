//! The record of Kubernetes-style electors as JSON: `holderIdentity`, `leaseDuration`, `acquireTime`, `renewTime`,
//! `leaderTransitions`, with ours beside them. `leaseDurationSeconds`, client-go's name of the duration, is read too.
//!
//! Their members take a lease whose `holderIdentity` is null or empty, or whose `renewTime` lies longer ago than their own
//! `leaseDuration`, by their own wall clock; they write those five fields and nothing else. So a tombstone has an empty
//! `holderIdentity` and, for members that look at the time alone, the first instant of the year 1 as `renewTime`; who
//! released it is in `serverId`. Source of the shape: client-go's `LeaderElectionRecord`
//! (<https://pkg.go.dev/k8s.io/client-go/tools/leaderelection/resourcelock#LeaderElectionRecord>).
//!
//! Ours are the native fields but `leaderID` and `transitions`. They count only where `serverId` is the holder and
//! `lastUpdated` is the instant of `renewTime`: a member of another make that keeps fields it does not know would
//! otherwise pass on our session, our sequence and our parked lease as its own. What it keeps of `term` and `slot` still
//! counts, because those only grow (S2).

use serde::Serialize;

use crate::calendar::{self, Instant};
use crate::json::{self, Object};

use super::{
    FOREIGN, Fields, Flaw, Lease, MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS, MIN_LEASE_MS, OWN_FIELDS,
    Reading, Remains, Translated,
};

const HOLDER: &str = "holderIdentity";
const DURATION: &str = "leaseDuration";
/// The same in whole seconds, as client-go's record has it.
const SECONDS: &str = "leaseDurationSeconds";
const ACQUIRED: &str = "acquireTime";
const RENEWED: &str = "renewTime";
const TRANSITIONS: &str = "leaderTransitions";

/// Who wrote the record: what `holderIdentity` says, and still says of a tombstone.
const SERVER_ID: &str = "serverId";

/// What a record of this format has besides the native fields.
const FIELDS: [&str; 7] = [HOLDER, DURATION, SECONDS, ACQUIRED, RENEWED, TRANSITIONS, SERVER_ID];

/// Reads a body as a record of this format.
pub(super) fn read(body: &[u8]) -> Reading {
    super::read_as(body, translate)
}

/// Turns the fields into those of the native format, and gives who holds the lease; nobody where a member of another make
/// has released it.
fn translate(fields: &mut Object) -> Result<Translated, Reading> {
    if fields.get("leaderID").is_some() {
        return Err(Reading::Unreadable(Flaw::OtherFormat, Remains::NONE));
    }
    if FIELDS[..6].iter().all(|name| fields.get(name).is_none()) {
        return Err(FOREIGN);
    }
    let mut take = |name| fields.remove(name).filter(|json| !json::is_null(json));
    let durations = [DURATION, SECONDS].map(&mut take);
    let [acquired, renewed] = [ACQUIRED, RENEWED].map(|name| take(name).map(as_text));
    let [holder, transitions] = [HOLDER, TRANSITIONS].map(&mut take);
    let holder = match holder {
        Some(json) => json::text(&json).ok_or(FOREIGN)?,
        None => String::new(),
    };
    let renewed_at = renewed.as_deref().and_then(instant);
    let written_at = take("lastUpdated").as_deref().and_then(instant);
    let writer = take(SERVER_ID).as_deref().and_then(json::text).filter(|id| !id.is_empty());
    let writer = writer.filter(|id| holder.is_empty() || *id == holder);
    let whole = written_at.is_some() && written_at == renewed_at;
    let ours = writer.is_some() && whole;
    // A request over a tombstone of another make names no writer, and `lastUpdated` says that it is newer than the tombstone.
    if !(ours || whole && holder.is_empty()) {
        take("operator");
    }
    if !ours {
        for name in [
            "leaderAddr",
            "session",
            "sequence",
            "leaseMs",
            "acquired",
            "reserved",
            "parked",
            "parkAt",
        ] {
            take(name);
        }
        set(fields, "acquired", acquired);
    }
    let mut longer_ms = None;
    if fields.get("leaseMs").is_none() {
        let told = durations.iter().flatten().map(|json| duration_ms(json).ok_or(FOREIGN));
        let longest_ms = told.collect::<Result<Vec<u64>, Reading>>()?.into_iter().max();
        // What is longer than any lease of ours is not cut to one.
        longer_ms = longest_ms.filter(|ms| *ms > MAX_LEASE_MS);
        longer_ms = longer_ms.map(|ms| ms.min(MAX_FOREIGN_LEASE_MS));
        set(fields, "leaseMs", longest_ms.map(|ms| ms.min(MAX_LEASE_MS).to_string()));
    }
    fields.remove("transitions");
    set(fields, "transitions", transitions);
    if holder.is_empty() {
        fields.set("lastUpdated", json::of(&calendar::rfc3339(calendar::YEAR_1_MS)));
        return Ok((writer.filter(|_| ours).unwrap_or_default(), longer_ms));
    }
    // The holder alone says whether a lease was released.
    let unset = Instant { unix_ms: calendar::YEAR_1_MS, exact: true };
    set(fields, "lastUpdated", renewed.filter(|_| renewed_at != Some(unset)));
    Ok((holder, longer_ms))
}

/// How long the lease is by its durations, of whatever use the rest is; an hour at most.
pub(super) fn told_ms(fields: &Object) -> Option<u64> {
    let told = [DURATION, SECONDS].map(|name| fields.get(name).and_then(duration_ms));
    let longest_ms = told.into_iter().flatten().max();
    longest_ms.filter(|ms| *ms >= MIN_LEASE_MS).map(|ms| ms.min(MAX_LEASE_MS))
}

fn set(fields: &mut Object, name: &str, json: Option<String>) {
    if let Some(json) = json {
        fields.set(name, json);
    }
}

fn instant(json: &str) -> Option<Instant> {
    calendar::read_rfc3339(&json::text(json)?)
}

/// A time as the text that it is elsewhere, where it is a number since the Unix epoch: of seconds as Jackson writes one, of
/// milliseconds, microseconds or nanoseconds, which its size tells apart from the year 1973 to 5138.
fn as_text(json: String) -> String {
    if !json::is_number(&json) {
        return json;
    }
    let (whole, fraction) = json.split_once('.').unwrap_or((&json, ""));
    let (Some(number), true) =
        (json::whole(whole), fraction.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return json;
    };
    let unix_ms = match number {
        0..100_000_000_000 => {
            let thousandths = fraction.bytes().chain(*b"000").take(3);
            thousandths.fold(number, |ms, digit| ms * 10 + u64::from(digit - b'0'))
        }
        100_000_000_000..100_000_000_000_000 => number,
        100_000_000_000_000..100_000_000_000_000_000 => number / 1_000,
        _ => number / 1_000_000,
    };
    json::of(&calendar::rfc3339(i64::try_from(unix_ms).unwrap_or(i64::MAX)))
}

/// From here on a number without a unit counts nanoseconds, as Go writes its `time.Duration`: in seconds it would be 31
/// years, in nanoseconds it is one second.
const NANOSECONDS_FROM: u64 = 1_000_000_000;

/// Milliseconds of a duration that is a JSON value, rounded up: `45s` and `1m30s` as Go writes it, `PT45S` as `java.time.Duration` does, a
/// number of seconds as Jackson does with it by default, a number of nanoseconds as Go's JSON does.
pub fn duration_ms(json: &str) -> Option<u64> {
    let text = json::text(json).unwrap_or_else(|| json.to_owned()).to_ascii_lowercase();
    let mut rest = text.strip_prefix("pt").unwrap_or(&text);
    let mut total_ms = 0_u64;
    loop {
        let end = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, after) = rest.split_at(end);
        let end = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(end);
        let unit_ms = match unit {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "" if rest.len() == text.len() => 1_000,
            "ms" => 1,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let fraction = &fraction[..fraction.len().min(9)];
        let one = 10_u64.pow(fraction.len() as u32);
        let part_ms = (fraction.parse::<u64>().ok()? * unit_ms).div_ceil(one);
        let whole = whole.parse::<u64>().ok()?;
        if unit.is_empty() && whole >= NANOSECONDS_FROM {
            return after.is_empty().then(|| whole.div_ceil(1_000_000));
        }
        let whole_ms = whole.saturating_mul(unit_ms);
        total_ms = total_ms.saturating_add(whole_ms).saturating_add(part_ms);
        if after.is_empty() {
            return Some(total_ms);
        }
        rest = after;
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    holder_identity: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration: Option<String>,
    acquire_time: String,
    renew_time: String,
    leader_transitions: u64,
    server_id: &'a str,
}

/// Writes a record with further fields.
pub(super) fn write_with(lease: &Lease, more: &Object) -> String {
    let updated_ms = super::written_ms(lease.last_updated);
    let record = Record {
        holder_identity: if lease.released() { "" } else { &lease.leader_id },
        // Never less than the lease: whoever goes by it must not take over early.
        lease_duration: lease.lease_ms.map(|ms| format!("{}s", ms.div_ceil(1_000))),
        acquire_time: calendar::rfc3339_with_ms(lease.acquired.unwrap_or(updated_ms)),
        renew_time: calendar::rfc3339_with_ms(updated_ms),
        leader_transitions: lease.transitions,
        server_id: &lease.leader_id,
    };
    let mut own = Object::of(&Fields { transitions: None, ..super::fields_of(lease) });
    own.extend(&Object::of(&record));
    super::written(own, lease, [&OWN_FIELDS, &FIELDS], more)
}
