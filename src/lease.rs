//! The record in the store: who leads, in which term, for how long, and how that reads and writes as JSON.
//!
//! The native format is S3lect's document (`leaderID`, `leaderAddr`, `lastUpdated`) with more fields, so that
//! S3lect reads ours and we read S3lect's. Whatever comes out of a bucket is hostile: [`read`] never panics,
//! never allocates more than the body it was given, and sorts everything that is not a usable record into a
//! [`Flaw`], which the election answers by waiting out the grace (rule S7).

pub mod history;
mod kubernetes;
mod operator;

pub use self::history::{History, Past, PastSlot, PastTerm};
pub use kubernetes::duration_ms;
pub use operator::{Ask, MAX_TEXT, OperatorRequest};

use crate::calendar::{self, Instant};
use serde::{Deserialize, Serialize};

use crate::json::{self, Object};

/// The largest record that is read, in bytes; a longer body is [`Flaw::TooLarge`].
pub const MAX_RECORD_BYTES: usize = 64 * 1024;

/// The longest lease that is believed, in milliseconds (one hour); a longer one is [`Flaw::Absurd`] (S7).
pub const MAX_LEASE_MS: u64 = 3_600_000;

/// The longest lease of another make that is waited out, in milliseconds (a year). Ours end at [`MAX_LEASE_MS`]; theirs may
/// not, and are not shortened.
pub const MAX_FOREIGN_LEASE_MS: u64 = 365 * 24 * MAX_LEASE_MS;

/// The shortest lease that is believed, in milliseconds: no config may write a shorter one, and to believe it
/// would be a shorter wait.
pub const MIN_LEASE_MS: u64 = 1_000;

/// The highest term that is handed out or believed: integers up to here are exact in JavaScript too (S2).
pub const MAX_TERM: u64 = 1 << 52;

/// The `format` number that this version writes, and the highest that it claims over.
pub const FORMAT: u64 = 1;

/// Go's zero `time.Time`, with which S3lect marks a resignation, in milliseconds since the Unix epoch.
const ZERO_TIME_MS: i64 = calendar::YEAR_1_MS;

/// The longest identity and address that are written, in bytes; config refuses longer ones.
pub const MAX_NAME_BYTES: usize = 1024;

/// Whether a text can be an identity: 1 to 1024 bytes without control characters.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The longest `slotResult` that is written or kept, in bytes.
pub const MAX_RESULT_BYTES: usize = 64;

/// What one object in the store says about the leadership of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// `leaderID`: the `serverId` that holds the lease; empty only in a tombstone of another make that names nobody.
    pub leader_id: String,
    /// `leaderAddr`: where peers may ask, `host` or `host:port`; empty when none was published.
    pub leader_addr: String,
    /// `lastUpdated` in milliseconds since the Unix epoch, or [`Stamp::Released`].
    pub last_updated: Stamp,
    /// `term`: the fencing token. Absent in records of members that know no terms.
    pub term: Option<u64>,
    /// `session`: the random id of the elector instance that wrote the record.
    pub session: Option<String>,
    /// `sequence`: grows with every body that a session writes, so that no two bodies are equal (S4).
    pub sequence: u64,
    /// `leaseMs`: how long the lease lasts after this write. Absent in foreign records.
    pub lease_ms: Option<u64>,
    /// `acquired`: when the term began, in milliseconds since the Unix epoch. A record created from absence
    /// has none until the write that ends its grace (S7): nobody has acquired anything yet. 0 where `init` has written it.
    pub acquired: Option<i64>,
    /// `reserved`: without authority, as a creation, but written over another record: a held-up copy of the write brings it
    /// back only where that record stands again (S7).
    pub reserved: bool,
    /// `transitions`: how many times the lease changed from one `leaderID` to another.
    pub transitions: u64,
    /// `parked`: kept for this `serverId` while no session acts.
    pub parked: bool,
    /// `parkAt`: when a tick that leads means to park, in milliseconds since the Unix epoch. It says when to look and
    /// nothing more: a lease is parked once the record says `parked`.
    pub park_at: Option<i64>,
    /// `slot`: the newest claimed cron slot, in milliseconds since the Unix epoch.
    pub slot: Option<u64>,
    /// `slotDone`: whether the job of `slot` has ended.
    pub slot_done: Option<bool>,
    /// `slotResult`: a word or two about how the job of `slot` ended.
    pub slot_result: Option<String>,
    /// `slotTookMs`: how long the job of `slot` took, in milliseconds.
    pub slot_took_ms: Option<u64>,
    /// `slotFailures`: how often the job of `slot` has failed.
    pub slot_failures: Option<u64>,
    /// `slotTerm`: the term that claimed `slot`; absent where nobody has claimed it. For the history alone.
    pub slot_term: Option<u64>,
    /// `history`: the last terms and slots before this record. For people: no rule reads it.
    pub history: History,
    /// `operator`: what an operator asks for, until a write of a member answers it.
    pub operator: Option<OperatorRequest>,
    /// Fields that we do not know, kept to the byte.
    pub extra: Object,
}

/// The `lastUpdated` of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// Milliseconds since the Unix epoch, by the writer's idea of storage time. No rule of the election reads it; what
    /// foreign members go by is made of it (`renewTime`, `ttl`, the epoch seconds of a TXT record).
    At(i64),
    /// Go's zero time: the leader has released the lease (S12). Written and read as S3lect does.
    Released,
}

/// A body that was read, sorted by what the election may do about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// A usable record.
    Lease(Box<Lease>),
    /// Nothing we can use: healed after the grace (S7).
    Unreadable(Flaw, Remains),
    /// A record that only newer software understands, or whose term is used up: never claimed (S2, S7).
    Closed(Closed),
}

impl Reading {
    /// Whether this may stand there again, with the same version, after a deletion or another record: a creation by a held-up
    /// copy of its request, a reservation by one where the same bytes were put below it again, the rest by somebody's hand.
    pub fn may_come_back(&self) -> bool {
        match self {
            Self::Lease(lease) => {
                let bare = lease.released() && lease.term.is_none();
                lease.in_grace() || lease.is_creation() || bare
            }
            Self::Unreadable(..) => true,
            Self::Closed(_) => false,
        }
    }
}

/// What can be read of an unusable body all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Remains {
    /// `term`: what heals the body has a higher one (S2).
    pub term: Option<u64>,
    /// How long a leader may go on that wrote the body, or the one that was damaged, in milliseconds: the grace is no
    /// shorter (S7).
    pub lease_ms: Option<u64>,
}

impl Remains {
    /// There is nothing.
    pub const NONE: Self = Self { term: None, lease_ms: None };

    /// All that either of two says.
    pub fn and(self, other: Self) -> Self {
        Self { term: self.term.max(other.term), lease_ms: self.lease_ms.max(other.lease_ms) }
    }

    /// What a usable record says, though it is none where it lies.
    pub fn of(lease: &Lease) -> Self {
        Self { term: lease.term, lease_ms: lease.lease_ms }
    }
}

/// Why a body is no usable record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Longer than [`MAX_RECORD_BYTES`].
    TooLarge,
    /// Not one JSON object.
    NotJson,
    /// A JSON object without a usable `leaderID`, or with a field of the wrong type.
    Foreign,
    /// A record of another [`Format`] than the store is set to.
    OtherFormat,
    /// A `leaseMs` under a second or over an hour.
    Absurd,
}

/// Why a record is never claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// A `format` above [`FORMAT`], or one that is no number at all.
    NewerFormat(Option<u64>),
    /// A `term` above [`MAX_TERM`].
    TermTooHigh,
    /// A lock of another make that lasts until its holder says otherwise.
    NoEnd,
}

impl Lease {
    /// A record that says who holds the lease and when that was written, and nothing else.
    pub fn bare(leader_id: impl Into<String>, last_updated: Stamp) -> Self {
        Self {
            leader_id: leader_id.into(),
            leader_addr: String::new(),
            last_updated,
            term: None,
            session: None,
            sequence: 0,
            lease_ms: None,
            acquired: None,
            reserved: false,
            transitions: 0,
            parked: false,
            park_at: None,
            slot: None,
            slot_done: None,
            slot_result: None,
            slot_took_ms: None,
            slot_failures: None,
            slot_term: None,
            history: History::default(),
            operator: None,
            extra: Object::new(),
        }
    }

    /// Whether both are one write of one session, whatever an operator has written over it since.
    pub fn is_same_write(&self, other: &Self) -> bool {
        let of = |lease: &Self| (lease.sequence, lease.term, lease.lease_ms, lease.last_updated);
        self.session.is_some()
            && (&self.session, &self.leader_id) == (&other.session, &other.leader_id)
            && of(self) == of(other)
            && self.parked == other.parked
    }

    /// The request by which nobody may claim this record at this storage time, in milliseconds since the Unix epoch. A member of
    /// another make that keeps fields it does not know obeys none, so that it passes none on.
    pub fn pause(&self, storage_ms: u64) -> Option<&OperatorRequest> {
        let ours = self.session.is_some() || self.released();
        self.operator.as_ref().filter(|request| ours && request.pauses(storage_ms))
    }

    /// Whether the holder gave the lease up (S12).
    pub fn released(&self) -> bool {
        self.last_updated == Stamp::Released
    }

    /// Whether this is a record created from absence, or reserved, whose grace no write has ended yet (S7).
    pub fn in_grace(&self) -> bool {
        self.session.is_some() && self.acquired.is_none() && !self.released()
    }

    /// Whether this is a record created from absence, by a member or by `init`, that nobody has written over: after a deletion a
    /// held-up copy of its creation brings it back, with the same version (S7).
    pub fn is_creation(&self) -> bool {
        // Without a term it is the release of what was only reserved.
        let made = !self.released() || self.term.is_some();
        self.session.is_some() && self.acquired.is_none() && !self.reserved && made
    }

    /// Whether anybody has led with this record: `init` writes the time 0 into one that is no creation any more.
    pub fn was_led(&self) -> bool {
        self.acquired.is_some_and(|ms| ms > 0)
    }
}

/// How a record is written down where it is a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// S3lect's document with more fields.
    #[default]
    Native,
    /// `holderIdentity`, `leaseDuration`, `acquireTime`, `renewTime`, `leaderTransitions`, and ours beside them.
    Kubernetes,
}

impl Format {
    /// The format of this name: `native` or `kubernetes`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Native, Self::Kubernetes].into_iter().find(|format| format.name() == name)
    }

    /// The name for options and variables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// Reads a body; whatever it is, it is sorted.
    pub fn read(self, body: &[u8]) -> Reading {
        match self {
            Self::Native => read(body),
            Self::Kubernetes => kubernetes::read(body),
        }
    }

    /// Writes a record.
    pub fn write(self, lease: &Lease) -> String {
        self.write_with(lease, &Object::new())
    }

    /// The same with further fields.
    pub fn write_with(self, lease: &Lease, more: &Object) -> String {
        match self {
            Self::Native => write_with(lease, more),
            Self::Kubernetes => kubernetes::write_with(lease, more),
        }
    }
}

/// Reads a body as a record of the native format or as S3lect's.
pub fn read(body: &[u8]) -> Reading {
    read_as(body, |fields| {
        if fields.get("leaderID").is_none() && fields.get("holderIdentity").is_some() {
            return Err(Reading::Unreadable(Flaw::OtherFormat, Remains::NONE));
        }
        let leader_id = fields.get("leaderID").and_then(json::text).filter(|id| !id.is_empty());
        Ok((leader_id.ok_or(FOREIGN)?, None))
    })
}

/// What a translation gives beside native fields: the `leaderID`, and a lease of another make that is longer than ours are.
type Translated = (String, Option<u64>);

/// Reads a body whose fields `translate` turns into the native ones.
fn read_as(body: &[u8], translate: fn(&mut Object) -> Result<Translated, Reading>) -> Reading {
    if body.len() > MAX_RECORD_BYTES {
        return Reading::Unreadable(Flaw::TooLarge, Remains::NONE);
    }
    let Some(mut fields) = Object::read(body) else {
        return Reading::Unreadable(Flaw::NotJson, Remains::NONE);
    };
    // A format that is no number of ours is somebody's later idea, not a damaged record to be healed.
    match fields.get("format").map(json::whole) {
        None => {}
        Some(Some(number)) if number <= FORMAT => {}
        Some(other) => return Reading::Closed(Closed::NewerFormat(other)),
    }
    let term = fields.get("term").and_then(json::whole).filter(|term| *term <= MAX_TERM);
    let lease_ms = fields.get("leaseMs").and_then(lease_ms);
    let lease_ms = lease_ms.max(kubernetes::told_ms(&fields));
    let lease = translate(&mut fields).and_then(|(leader_id, longer_ms)| {
        let lease = take_lease(leader_id, &mut fields)?;
        Ok(Lease { lease_ms: lease.lease_ms.max(longer_ms), ..lease })
    });
    match lease {
        Ok(mut lease) => {
            lease.extra = fields;
            Reading::Lease(Box::new(lease))
        }
        Err(Reading::Unreadable(flaw, _)) => Reading::Unreadable(flaw, Remains { term, lease_ms }),
        Err(reading) => reading,
    }
}

const FOREIGN: Reading = Reading::Unreadable(Flaw::Foreign, Remains::NONE);

/// The fields that records of every format have, as they stand in JSON; `null` counts as left out.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_addr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_updated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    park_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_done: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_failures: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u64>,
}

fn lease_ms(json: &str) -> Option<u64> {
    json::whole(json).filter(|ms| (MIN_LEASE_MS..=MAX_LEASE_MS).contains(ms))
}

/// A term or a duration that no lease of ours has says more than that it is no number of ours (S2, S7).
fn check_numbers(object: &Object) -> Result<(), Reading> {
    let given = |name| object.get(name).filter(|json| !json::is_null(json));
    if let Some(json) = given("term") {
        match json::whole(json) {
            Some(term) if term <= MAX_TERM => {}
            None if !json::is_at_least(json, MAX_TERM) => return Err(FOREIGN),
            _ => return Err(Reading::Closed(Closed::TermTooHigh)),
        }
    }
    match given("leaseMs") {
        Some(json) if !json::is_number(json) => Err(FOREIGN),
        Some(json) if lease_ms(json).is_none() => {
            Err(Reading::Unreadable(Flaw::Absurd, Remains::NONE))
        }
        _ => Ok(()),
    }
}

fn take_lease(leader_id: String, object: &mut Object) -> Result<Lease, Reading> {
    check_numbers(object)?;
    // Of another make it may mean something else.
    let reserved = object.get("reserved") == Some("true");
    // Neither is believed, so that neither makes a record unusable.
    let slot_term = object.get("slotTerm").and_then(json::whole);
    let history = object.get("history").map(History::read).unwrap_or_default();
    let operator = object.get(operator::FIELD).and_then(OperatorRequest::read);
    let fields: Fields = object.take(&OWN_FIELDS).ok_or(FOREIGN)?;
    let last_updated = match time(fields.last_updated)? {
        Some(Instant { unix_ms: ZERO_TIME_MS, exact: true }) => Stamp::Released,
        Some(instant) => Stamp::At(instant.unix_ms),
        None => Stamp::At(0),
    };
    Ok(Lease {
        leader_id,
        leader_addr: fields.leader_addr.unwrap_or_default(),
        last_updated,
        term: fields.term,
        session: fields.session,
        sequence: fields.sequence.unwrap_or(0),
        lease_ms: fields.lease_ms,
        acquired: time(fields.acquired)?.map(|instant| instant.unix_ms),
        reserved,
        transitions: fields.transitions.unwrap_or(0),
        parked: fields.parked.unwrap_or(false),
        park_at: time(fields.park_at)?.map(|instant| instant.unix_ms),
        slot: fields.slot,
        slot_done: fields.slot_done,
        // Kept by whoever claims next, so a long one is not.
        slot_result: fields.slot_result.filter(|text| text.len() <= MAX_RESULT_BYTES),
        slot_took_ms: fields.slot_took_ms,
        slot_failures: fields.slot_failures,
        slot_term,
        history,
        operator,
        extra: Object::new(),
    })
}

fn time(text: Option<String>) -> Result<Option<Instant>, Reading> {
    let Some(text) = text else { return Ok(None) };
    calendar::read_rfc3339(&text).map(Some).ok_or(FOREIGN)
}

/// Every field that [`write()`] may write; others' fields of these names are not kept.
const OWN_FIELDS: [&str; 21] = [
    "leaderID",
    "leaderAddr",
    "lastUpdated",
    "term",
    "session",
    "sequence",
    "leaseMs",
    "acquired",
    "reserved",
    "transitions",
    "parked",
    "parkAt",
    "slot",
    "slotDone",
    "slotResult",
    "slotTookMs",
    "slotFailures",
    "slotTerm",
    "history",
    operator::FIELD,
    "format",
];

/// Writes a record in the native format.
pub fn write(lease: &Lease) -> Vec<u8> {
    write_with(lease, &Object::new()).into_bytes()
}

/// The same with further fields.
pub fn write_with(lease: &Lease, more: &Object) -> String {
    let mut own = Object::of(&fields_of(lease));
    own.set("leaderID", json::of(&lease.leader_id));
    written(own, lease, [&OWN_FIELDS, &[]], more)
}

/// A record with the fields of others that are none of its own, and with further ones. Others' are kept as long as the
/// record stays readable with them.
fn written(mut own: Object, lease: &Lease, own_names: [&[&str]; 2], more: &Object) -> String {
    if let Some(term) = lease.slot_term {
        own.set("slotTerm", term.to_string());
    }
    if lease.reserved {
        own.set("reserved", "true");
    }
    if !lease.history.entries().is_empty() {
        own.set("history", lease.history.to_json());
    }
    if let Some(request) = &lease.operator {
        own.set(operator::FIELD, request.to_json());
    }
    own.extend(more);
    let mut whole = lease.extra.clone();
    let added = more.iter().map(|(name, _)| name);
    let known: Vec<&str> = own_names.into_iter().flatten().copied().chain(added).collect();
    whole.retain(|name| !known.iter().any(|known| is_read_as(known, name)));
    whole.extend(&own);
    let text = whole.to_json();
    if text.len() <= MAX_RECORD_BYTES { text } else { own.to_json() }
}

/// Whether Go takes a field of this name for a known one, the last of which counts: it folds names as Unicode does,
/// whose long s and Kelvin sign are letters of ours (<https://pkg.go.dev/bytes#EqualFold>).
fn is_read_as(known: &str, name: &str) -> bool {
    let folded = |character: char| match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    known.chars().map(folded).eq(name.chars().map(folded))
}

/// The milliseconds since the Unix epoch that are written for a stamp.
fn written_ms(stamp: Stamp) -> i64 {
    match stamp {
        // Written to the millisecond, and clamped: nothing but a release may become its sign (S12).
        Stamp::At(ms) => ms.max(ZERO_TIME_MS + 1),
        Stamp::Released => ZERO_TIME_MS,
    }
}

/// The fields that every format has, but the names of the leader.
fn fields_of(lease: &Lease) -> Fields {
    Fields {
        leader_addr: Some(lease.leader_addr.clone()),
        last_updated: Some(calendar::rfc3339(written_ms(lease.last_updated))),
        term: lease.term,
        session: lease.session.clone(),
        sequence: Some(lease.sequence),
        lease_ms: lease.lease_ms,
        acquired: lease.acquired.map(calendar::rfc3339),
        transitions: Some(lease.transitions),
        parked: Some(lease.parked),
        park_at: lease.park_at.map(calendar::rfc3339),
        slot: lease.slot,
        slot_done: lease.slot_done,
        slot_result: lease.slot_result.clone(),
        slot_took_ms: lease.slot_took_ms,
        slot_failures: lease.slot_failures,
        format: Some(FORMAT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_of(text: &str) -> Lease {
        match read(text.as_bytes()) {
            Reading::Lease(lease) => *lease,
            other => panic!("{text} reads as {other:?}"),
        }
    }

    #[test]
    fn a_field_that_is_ours_but_for_its_case_is_not_kept() {
        let lease = lease_of(
            r#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","LastUpdated":"0001-01-01T00:00:00Z",
                "laſtUpdated":"0001-01-01T00:00:00Z","note":1}"#,
        );
        let written = String::from_utf8(write(&lease)).unwrap();
        assert!(!written.contains("0001") && written.contains(r#""note":1"#), "{written}");
    }

    #[test]
    fn nor_is_one_that_go_takes_for_a_field_that_is_added() {
        let lease = lease_of("{\"leaderID\":\"a\",\"validity_m\u{17f}\":7777777,\"note\":1}");
        let mut more = Object::new();
        more.set("validity_ms", "15000");
        let written = write_with(&lease, &more);
        assert!(!written.contains("7777777") && written.contains("15000"), "{written}");
        assert!(written.contains("note"), "{written}");
    }

    #[test]
    fn a_written_lease_reads_back_with_unknown_fields_kept() {
        let mut lease = lease_of(
            r#"{"leaderID":"a","leaderAddr":"10.0.1.42:8443","lastUpdated":"2026-11-21T06:58:12.345Z",
                "term":1795244292345,"session":"s","sequence":17,"leaseMs":15000,
                "acquired":"2026-11-21T06:00:00Z","transitions":3,"parked":false,
                "slot":1795244280000,"slotDone":true,"format":1,"theirs":{"deep":[1,2]}}"#,
        );
        assert_eq!(lease.last_updated, Stamp::At(1_795_244_292_345));
        assert_eq!(lease.extra.get("theirs"), Some(r#"{"deep":[1,2]}"#));
        assert_eq!(read(&write(&lease)), Reading::Lease(Box::new(lease.clone())));
        lease.last_updated = Stamp::Released;
        assert!(String::from_utf8(write(&lease)).unwrap().contains("0001-01-01T00:00:00Z"));
        assert!(lease_of(std::str::from_utf8(&write(&lease)).unwrap()).released());
    }

    #[test]
    fn c31_what_was_read_as_no_release_is_never_written_as_one() {
        for time in ["0001-01-01T00:00:00.0009Z", "0000-12-31T23:59:59Z"] {
            let lease = lease_of(&format!(r#"{{"leaderID":"a","lastUpdated":"{time}"}}"#));
            let written = write(&lease);
            assert!(!lease_of(std::str::from_utf8(&written).unwrap()).released(), "{time}");
        }
    }

    #[test]
    fn s3lects_document_reads_with_gos_nanoseconds_and_offsets() {
        let lease = lease_of(
            r#"{"leaderID":"server-001","leaderAddr":"","lastUpdated":"2024-10-27T12:30:45.123456789+02:00"}"#,
        );
        assert_eq!(lease.last_updated, Stamp::At(1_730_025_045_123));
        assert_eq!((lease.term, lease.lease_ms, lease.sequence), (None, None, 0));
        assert!(!lease.in_grace());
        assert!(lease_of(r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z"}"#).released());
    }

    #[test]
    fn c27_unusable_bodies_are_flaws_not_leases() {
        for (body, flaw) in [
            (b"".to_vec(), Flaw::NotJson),
            (b"{\"leaderID\":".to_vec(), Flaw::NotJson),
            (b"[1,2,3]".to_vec(), Flaw::NotJson),
            (vec![0xff, 0x00, 0xfe], Flaw::NotJson),
            (vec![b'['; 60_000], Flaw::NotJson),
            (vec![b' '; 10 << 20], Flaw::TooLarge),
            (b"{}".to_vec(), Flaw::Foreign),
            (b"{\"leaderID\":\"\"}".to_vec(), Flaw::Foreign),
            (b"{\"leaderID\":7}".to_vec(), Flaw::Foreign),
        ] {
            assert_eq!(
                read(&body),
                Reading::Unreadable(flaw, Remains::NONE),
                "{} bytes",
                body.len()
            );
        }
    }

    #[test]
    fn c28_a_higher_format_is_closed() {
        let body = br#"{"leaderID":"a","format":2,"leaseMs":"whatever it means by then"}"#;
        assert_eq!(read(body), Reading::Closed(Closed::NewerFormat(Some(2))));
        for format in ["2.0", "\"2\"", "1e30", "-1", "36893488147419103232", "[]", "null"] {
            let body = format!(r#"{{"leaderID":"a","format":{format}}}"#);
            assert_eq!(
                read(body.as_bytes()),
                Reading::Closed(Closed::NewerFormat(None)),
                "{format}"
            );
        }
    }

    #[test]
    fn c30_absurd_numbers_are_never_a_shorter_wait() {
        for lease_ms in ["0", "-1", "999", "3600001", "9223372036854775808", "1e300", "15000.5"] {
            let body = format!(r#"{{"leaderID":"a","leaseMs":{lease_ms}}}"#);
            assert_eq!(
                read(body.as_bytes()),
                Reading::Unreadable(Flaw::Absurd, Remains::NONE),
                "{lease_ms}"
            );
        }
        for field in ["leaseMs", "term", "sequence", "transitions", "slot", "parked", "leaderAddr"]
        {
            let body = format!(r#"{{"leaderID":"a","{field}":[]}}"#);
            assert_eq!(
                read(body.as_bytes()),
                Reading::Unreadable(Flaw::Foreign, Remains::NONE),
                "{field}"
            );
        }
        for term in
            ["4503599627370497", "9223372036854775808", "1e300", "1e999", "45035996.2737049701e8"]
        {
            let body = format!(r#"{{"leaderID":"a","term":{term}}}"#);
            assert_eq!(read(body.as_bytes()), Reading::Closed(Closed::TermTooHigh), "{term}");
        }
        for term in ["-1", "-1e300", "1.5", "1e15", "4503599627370000.5", "0e99"] {
            let body = format!(r#"{{"leaderID":"a","term":{term}}}"#);
            assert_eq!(
                read(body.as_bytes()),
                Reading::Unreadable(Flaw::Foreign, Remains::NONE),
                "{term}"
            );
        }
        for time in ["10000-01-01T00:00:00Z", "yesterday", ""] {
            let body = format!(r#"{{"leaderID":"a","lastUpdated":"{time}"}}"#);
            assert_eq!(
                read(body.as_bytes()),
                Reading::Unreadable(Flaw::Foreign, Remains::NONE),
                "{time}"
            );
        }
        let damaged = read(br#"{"leaderID":"a","term":41,"leaseMs":999}"#);
        assert_eq!(
            damaged,
            Reading::Unreadable(Flaw::Absurd, Remains { term: Some(41), lease_ms: None })
        );
        let almost = r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00.0009Z"}"#;
        assert!(!lease_of(almost).released(), "only the tombstone is a release");
        assert!(!lease_of(r#"{"leaderID":"a","lastUpdated":"9999-12-31T23:59:59Z"}"#).released());
    }

    #[test]
    fn fields_of_others_are_dropped_before_they_make_the_record_unreadable() {
        let filler = "x".repeat(MAX_RECORD_BYTES - 60);
        let lease = lease_of(&format!(r#"{{"leaderID":"a","theirs":"{filler}"}}"#));
        let body = write(&lease);
        assert!(body.len() < 1_000 && matches!(read(&body), Reading::Lease(_)));
    }
}
