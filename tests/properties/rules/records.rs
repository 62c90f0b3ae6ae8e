//! Whatever lies in the bucket is read so that it can never be claimed earlier than its writer
//! allowed (S2, S7; scenarios 27 to 31).

use edgelect::calendar::{Instant, YEAR_1_MS, YEAR_9999_MS, read_rfc3339};
use edgelect::json::{self, Object};
use edgelect::lease::history::{MAX_ENTRIES, MAX_HISTORY_BYTES};
use edgelect::lease::{
    self, Closed, Flaw, Format, History, Lease, MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS,
    MAX_RECORD_BYTES, MAX_TERM, MIN_LEASE_MS, OperatorRequest, Reading, Remains, Stamp,
};

/// The names of the fields that are ours.
#[rustfmt::skip]
pub const OWN_FIELDS: [&str; 21] = [
    "leaderID", "leaderAddr", "lastUpdated", "term", "session", "sequence", "leaseMs", "acquired",
    "parkAt", "reserved", "transitions", "parked", "slot", "slotDone", "slotResult", "slotTookMs",
    "slotFailures", "slotTerm", "history", "operator", "format",
];

/// Any body as a record for Kubernetes members: it is read for no more than it says, and what can be
/// read can be written, and says the same.
pub fn kubernetes(body: &[u8]) {
    let reading = Format::Kubernetes.read(body);
    let Some(fields) = Object::read(body).filter(|_| body.len() <= MAX_RECORD_BYTES) else {
        assert!(matches!(reading, Reading::Unreadable(_, Remains::NONE)), "{reading:?}");
        return;
    };
    let Reading::Lease(mut lease) = reading else { return };
    assert!(fields.get("leaderID").is_none(), "a native record is none of these");
    let holder = given(&fields, "holderIdentity").and_then(text).unwrap_or_default();
    assert_eq!(lease.released(), holder.is_empty(), "{holder}");
    if !lease.released() {
        assert_eq!(lease.leader_id, holder);
    }
    if lease.session.is_some() {
        assert_eq!(Some(&lease.leader_id), given(&fields, "serverId").and_then(text).as_ref());
    }
    let told_ms = lease.lease_ms.unwrap_or(MIN_LEASE_MS);
    assert!((MIN_LEASE_MS..=MAX_FOREIGN_LEASE_MS).contains(&told_ms), "{told_ms}");
    // One of another make may be longer than those that are written here.
    lease.lease_ms = lease.lease_ms.map(|ms| ms.min(MAX_LEASE_MS));
    kubernetes_written(&lease);
}

/// Any record that is written for Kubernetes members reads back, and tells them no less than its lease.
pub fn kubernetes_written(lease: &Lease) {
    let written = Format::Kubernetes.write_with(lease, &Object::new());
    if written.len() > MAX_RECORD_BYTES {
        return;
    }
    let Reading::Lease(again) = Format::Kubernetes.read(written.as_bytes()) else {
        panic!("{written} reads as no lease")
    };
    let kept = in_calendar(lease, &again);
    // Only a record of our own can have been acquired by nobody, and theirs are of whole seconds.
    let foreign = lease.leader_id.is_empty();
    let updated_ms = match kept.last_updated {
        Stamp::At(ms) => ms,
        Stamp::Released => YEAR_1_MS,
    };
    let whole_ms = kept.lease_ms.map(|ms| ms.next_multiple_of(1_000));
    let acquired = kept.acquired.or(foreign.then_some(updated_ms));
    let lease_ms = if foreign { whole_ms } else { kept.lease_ms };
    assert_eq!(*again, Lease { acquired, lease_ms, ..kept });
    let body = Object::read(written.as_bytes()).expect("an object");
    let told = |name| given(&body, name).and_then(text);
    assert_eq!(told("holderIdentity").is_some_and(|id| id.is_empty()), lease.released());
    let seconds = told("leaseDuration").and_then(|text| text.strip_suffix('s')?.parse().ok());
    assert_eq!(seconds, whole_ms.map(|ms| ms / 1_000));
    for name in ["acquireTime", "renewTime"] {
        let time = told(name).expect("always there");
        assert_eq!(time.len(), "2024-02-02T10:15:30.000Z".len(), "{time}");
    }
}

/// Any body.
pub fn body(body: &[u8]) {
    kubernetes(body);
    let reading = lease::read(body);
    if body.len() > MAX_RECORD_BYTES {
        assert_eq!(reading, Reading::Unreadable(Flaw::TooLarge, Remains::NONE));
        return;
    }
    let Some(fields) = Object::read(body) else {
        assert_eq!(reading, Reading::Unreadable(Flaw::NotJson, Remains::NONE));
        return;
    };
    if !matches!(fields.get("format"), None | Some("0" | "1")) {
        assert!(matches!(reading, Reading::Closed(Closed::NewerFormat(_))), "{reading:?}");
        return;
    }
    if let Reading::Unreadable(_, Remains { term, lease_ms }) = reading {
        let told = given(&fields, "term").and_then(|json| json.parse().ok());
        assert!(term.is_none() || term == told, "{term:?} is not its term");
        let told_ms = given(&fields, "leaseMs").and_then(believed_lease_ms);
        let durations = fields.get("leaseDuration").is_some();
        assert!(lease_ms == told_ms || (durations && lease_ms > told_ms), "{lease_ms:?}");
        assert!(lease_ms <= Some(MAX_LEASE_MS), "{lease_ms:?}");
    }
    if given(&fields, "leaderID").and_then(text).is_none_or(|id| id.is_empty()) {
        assert!(matches!(reading, Reading::Unreadable(Flaw::Foreign, _)));
        return;
    }
    if term_is_too_high(&fields) {
        assert_eq!(reading, Reading::Closed(Closed::TermTooHigh));
        return;
    }
    assert!(!matches!(reading, Reading::Closed(_)), "nothing closes this: {reading:?}");
    if given(&fields, "leaseMs").is_some_and(|json| believed_lease_ms(json).is_none()) {
        assert!(matches!(reading, Reading::Unreadable(..)), "an absurd lease: {reading:?}");
        return;
    }
    let Reading::Lease(lease) = reading else {
        assert!(matches!(reading, Reading::Unreadable(Flaw::Foreign, _)));
        return;
    };
    assert_eq!(lease.released(), is_tombstone(&fields), "only the tombstone is a release");
    assert_eq!(lease.lease_ms, given(&fields, "leaseMs").and_then(believed_lease_ms));
    says_what_the_body_says(&lease, &fields);
    written(&lease, body.len());
}

/// Whether `lastUpdated` is the first instant of the year 1, to the nanosecond, as Go's `IsZero`
/// sees it.
pub fn is_tombstone(fields: &Object) -> bool {
    let updated = given(fields, "lastUpdated").and_then(text);
    let instant = updated.and_then(|updated| read_rfc3339(&updated));
    instant == Some(Instant { unix_ms: YEAR_1_MS, exact: true })
}

/// A field that is there and not null.
pub fn given<'a>(fields: &'a Object, name: &str) -> Option<&'a str> {
    fields.get(name).filter(|json| *json != "null")
}

fn text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

fn number(json: &str) -> Option<u64> {
    serde_json::from_str(json).ok()
}

fn believed_lease_ms(json: &str) -> Option<u64> {
    number(json).filter(|ms| (MIN_LEASE_MS..=MAX_LEASE_MS).contains(ms))
}

fn term_is_too_high(fields: &Object) -> bool {
    given(fields, "term").is_some_and(|json| {
        json::is_number(json) && json::is_at_least(json, MAX_TERM) && number(json) != Some(MAX_TERM)
    })
}

fn says_what_the_body_says(lease: &Lease, fields: &Object) {
    let field = |name| given(fields, name);
    let flag = |name| field(name).map(|json| json == "true");
    let result = field("slotResult").and_then(text).filter(|text| text.len() <= 64);
    assert_eq!(lease.slot_result, result);
    let numbers =
        [lease.term, lease.slot, lease.slot_took_ms, lease.slot_failures, lease.slot_term];
    let names = ["term", "slot", "slotTookMs", "slotFailures", "slotTerm"];
    assert_eq!(numbers, names.map(|name| field(name).and_then(number)));
    let counts = ["sequence", "transitions"].map(|name| field(name).and_then(number).unwrap_or(0));
    assert_eq!([lease.sequence, lease.transitions], counts);
    assert_eq!(lease.history, field("history").map(History::read).unwrap_or_default());
    assert_eq!(lease.operator, field("operator").and_then(OperatorRequest::read));
    let told = lease.history.to_json();
    assert!(lease.history.entries().len() <= MAX_ENTRIES && told.len() <= MAX_HISTORY_BYTES);
    assert_eq!(History::read(&told), lease.history);
    assert_eq!(Some(&lease.leader_id), field("leaderID").and_then(text).as_ref());
    assert_eq!(lease.leader_addr, field("leaderAddr").and_then(text).unwrap_or_default());
    assert_eq!(lease.session, field("session").and_then(text));
    assert_eq!(lease.slot_done, flag("slotDone"));
    assert_eq!(Some(lease.parked), flag("parked").or(Some(false)));
    assert_eq!(lease.reserved, fields.get("reserved") == Some("true"));
    let instant = |name| field(name).and_then(text).and_then(|text| read_rfc3339(&text));
    assert_eq!(lease.acquired, instant("acquired").map(|instant| instant.unix_ms));
    assert_eq!(lease.park_at, instant("parkAt").map(|instant| instant.unix_ms));
    if !lease.released() {
        let unix_ms = instant("lastUpdated").map_or(0, |instant| instant.unix_ms);
        assert_eq!(lease.last_updated, Stamp::At(unix_ms));
    }
    let others = fields.iter().filter(|(name, _)| !OWN_FIELDS.contains(name));
    assert!(lease.extra.iter().eq(others), "fields of others are kept to the byte");
}

/// Any record: what is written reads back, in one form, and never as more than it was. `read_bytes`
/// is the length of the body that it was read from.
pub fn written(lease: &Lease, read_bytes: usize) {
    let written = lease::write(lease);
    // The longest that one byte becomes: `\n`, two in the body, is six in ours.
    assert!(written.len() <= MAX_RECORD_BYTES.max(3 * read_bytes + 500), "{}", written.len());
    if written.len() > MAX_RECORD_BYTES {
        return;
    }
    let Reading::Lease(again) = lease::read(&written) else {
        panic!("{} reads as no lease", String::from_utf8_lossy(&written))
    };
    assert_eq!(lease::write(&again), written, "there is one form");
    assert_eq!(again.released(), lease.released(), "nothing but a release is written as one");
    let ours = |name: &str| OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name));
    let others = || lease.extra.iter().filter(|(name, _)| !ours(name));
    if again.extra == Object::new() && others().next().is_some() {
        assert!(3 * read_bytes + 500 > MAX_RECORD_BYTES, "others' fields got lost");
    } else {
        assert!(again.extra.iter().eq(others()), "others' fields are written to the byte");
    }
    assert_eq!(*again, in_calendar(lease, &again));
}

/// What any form keeps of a record but for the fields of others, which are judged apart.
fn in_calendar(lease: &Lease, again: &Lease) -> Lease {
    let last_updated = match lease.last_updated {
        Stamp::At(ms) => Stamp::At(ms.clamp(YEAR_1_MS + 1, YEAR_9999_MS)),
        Stamp::Released => Stamp::Released,
    };
    let written = |ms: i64| ms.clamp(YEAR_1_MS, YEAR_9999_MS);
    let (acquired, park_at) = (lease.acquired.map(written), lease.park_at.map(written));
    Lease { acquired, park_at, last_updated, extra: again.extra.clone(), ..lease.clone() }
}
