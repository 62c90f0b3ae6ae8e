//! Whatever lies in the bucket is read so that it can never be claimed earlier than its writer
//! allowed (S2, S7; scenarios 27 to 31).

use edgelect::calendar::{YEAR_1_MS, YEAR_9999_MS};
use edgelect::json::{self, Object};
use edgelect::lease::{
    self, Closed, Flaw, Format, Lease, MAX_LEASE_MS, MAX_RECORD_BYTES, MAX_TERM, MIN_LEASE_MS,
    Reading, Remains, Stamp,
};

use super::{objects, times};

/// The names of the fields that are ours.
pub const OWN_FIELDS: [&str; 16] = [
    "leaderID",
    "leaderAddr",
    "lastUpdated",
    "term",
    "session",
    "sequence",
    "leaseMs",
    "acquired",
    "transitions",
    "parked",
    "slot",
    "slotDone",
    "slotResult",
    "slotTookMs",
    "slotFailures",
    "format",
];

/// Any body as a record for Kubernetes members: what can be read can be written, and says the same.
pub fn kubernetes(body: &[u8]) {
    let format = Format::Kubernetes;
    let Reading::Lease(mut lease) = format.read(body) else { return };
    // One of another make may be longer than those that are written here.
    lease.lease_ms = lease.lease_ms.map(|ms| ms.min(MAX_LEASE_MS));
    let written = format.write_with(&lease, |_| {});
    if written.len() > MAX_RECORD_BYTES {
        return;
    }
    let Reading::Lease(again) = format.read(written.as_bytes()) else {
        panic!("{written} reads as no lease")
    };
    let said = |lease: &Lease| (lease.released(), lease.term, lease.session.clone(), lease.slot);
    assert_eq!(said(&again), said(&lease));
    assert_eq!(again.leader_id, lease.leader_id);
    assert!(again.lease_ms >= lease.lease_ms, "nobody is made to wait for less");
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
    let nanoseconds = updated.and_then(|updated| times::nanoseconds(&updated));
    nanoseconds == Some(i128::from(YEAR_1_MS) * 1_000_000)
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

pub(super) fn believed_lease_ms(json: &str) -> Option<u64> {
    number(json).filter(|ms| (MIN_LEASE_MS..=MAX_LEASE_MS).contains(ms))
}

fn term_is_too_high(fields: &Object) -> bool {
    given(fields, "term").is_some_and(|json| {
        json::is_number(json)
            && objects::is_at_least(json, MAX_TERM)
            && number(json) != Some(MAX_TERM)
    })
}

fn says_what_the_body_says(lease: &Lease, fields: &Object) {
    let field = |name| given(fields, name);
    let flag = |name| field(name).map(|json| json == "true");
    let result = field("slotResult").and_then(text).filter(|text| text.len() <= 64);
    assert_eq!(lease.slot_result, result);
    assert_eq!(lease.slot_took_ms, field("slotTookMs").and_then(number));
    assert_eq!(lease.slot_failures, field("slotFailures").and_then(number));
    assert_eq!(Some(&lease.leader_id), field("leaderID").and_then(text).as_ref());
    assert_eq!(lease.leader_addr, field("leaderAddr").and_then(text).unwrap_or_default());
    assert_eq!(lease.session, field("session").and_then(text));
    assert_eq!(lease.term, field("term").and_then(number));
    assert_eq!(lease.slot, field("slot").and_then(number));
    assert_eq!(lease.sequence, field("sequence").and_then(number).unwrap_or(0));
    assert_eq!(lease.transitions, field("transitions").and_then(number).unwrap_or(0));
    assert_eq!(
        (lease.slot_done, Some(lease.parked)),
        (flag("slotDone"), flag("parked").or(Some(false)))
    );
    let instant = |name| field(name).and_then(text).and_then(|text| times::instant(&text));
    assert_eq!(lease.acquired, instant("acquired").map(|instant| instant.unix_ms));
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
    let in_calendar = |ms: i64| ms.clamp(YEAR_1_MS, YEAR_9999_MS);
    let last_updated = match lease.last_updated {
        Stamp::At(ms) => Stamp::At(ms.clamp(YEAR_1_MS + 1, YEAR_9999_MS)),
        Stamp::Released => Stamp::Released,
    };
    let expected = Lease {
        acquired: lease.acquired.map(in_calendar),
        last_updated,
        extra: again.extra.clone(),
        ..lease.clone()
    };
    assert_eq!(*again, expected);
}
