//! The record in the store: who leads, in which term, for how long, and how that reads and writes as JSON.
//!
//! The native format is S3lect's document (`leaderID`, `leaderAddr`, `lastUpdated`) with more fields, so that
//! S3lect reads ours and we read S3lect's. Whatever comes out of a bucket is hostile: [`read`] never panics,
//! never allocates more than the body it was given, and sorts everything that is not a usable record into a
//! [`Flaw`], which the election answers by waiting out the grace (rule S7).

use serde_json::{Map, Value};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// The largest record that is read, in bytes; a longer body is [`Flaw::TooLarge`].
pub const MAX_RECORD_BYTES: usize = 64 * 1024;

/// The longest lease that is believed, in milliseconds (one hour); a longer one is [`Flaw::Absurd`] (S7).
pub const MAX_LEASE_MS: u64 = 3_600_000;

/// The highest term that is handed out or believed: integers up to here are exact in JavaScript too (S2).
pub const MAX_TERM: u64 = 1 << 52;

/// The `format` number that this version writes, and the highest that it claims over.
pub const FORMAT: u64 = 1;

/// The first instant of the year 1 in milliseconds since the Unix epoch: Go's zero `time.Time`, with which
/// S3lect marks a resignation.
const ZERO_TIME_MS: i64 = -62_135_596_800_000;

/// The longest identity and address that are written, in bytes; config refuses longer ones.
pub const MAX_NAME_BYTES: usize = 1024;

/// What one object in the store says about the leadership of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// `leaderID`: the `serverId` that holds the lease; never empty.
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
    /// has none until the write that ends its grace (S7): nobody has acquired anything yet.
    pub acquired: Option<i64>,
    /// `transitions`: how many times the lease changed from one `leaderID` to another.
    pub transitions: u64,
    /// `parked`: kept for this `serverId` while no session acts.
    pub parked: bool,
    /// `slot`: the newest claimed cron slot, in milliseconds since the Unix epoch.
    pub slot: Option<u64>,
    /// `slotDone`: whether the job of `slot` has ended.
    pub slot_done: Option<bool>,
    /// Fields that we do not know, kept as they are.
    pub extra: Map<String, Value>,
}

/// The `lastUpdated` of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Milliseconds since the Unix epoch, by the writer's idea of storage time. Only for people: no rule
    /// reads it.
    At(i64),
    /// Go's zero time: the leader has released the lease (S12). Written and read as S3lect does.
    Released,
}

/// A body that was read, sorted by what the election may do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A usable record.
    Lease(Box<Lease>),
    /// Nothing we can use: healed after the grace (S7).
    Unreadable(Flaw),
    /// A record that only newer software understands, or whose term is used up: never claimed (S2, S7).
    Closed(Closed),
}

/// Why a body is no usable record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Longer than [`MAX_RECORD_BYTES`].
    TooLarge,
    /// Not one JSON object.
    NotJson,
    /// A JSON object without a usable `leaderID`, or with a field of the wrong type.
    Foreign,
    /// A `leaseMs` of zero, below zero or over an hour.
    Absurd,
}

/// Why a record is never claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// A `format` above [`FORMAT`].
    NewerFormat(u64),
    /// A `term` above [`MAX_TERM`].
    TermTooHigh,
}

impl Lease {
    /// Whether the holder gave the lease up (S12).
    pub fn released(&self) -> bool {
        self.last_updated == Stamp::Released
    }

    /// Whether this is a record created from absence whose grace no write has ended yet (S7).
    pub fn in_grace(&self) -> bool {
        self.session.is_some() && self.acquired.is_none() && !self.released()
    }
}

/// Reads a body as a record of the native format or as S3lect's.
pub fn read(body: &[u8]) -> Reading {
    if body.len() > MAX_RECORD_BYTES {
        return Reading::Unreadable(Flaw::TooLarge);
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(body) else {
        return Reading::Unreadable(Flaw::NotJson);
    };
    if let Some(format) = fields.get("format") {
        match format.as_u64() {
            Some(number) if number > FORMAT => {
                return Reading::Closed(Closed::NewerFormat(number));
            }
            Some(_) => {}
            None => return Reading::Unreadable(Flaw::Foreign),
        }
    }
    match take_lease(&mut fields) {
        Ok(mut lease) => {
            fields.remove("format");
            lease.extra = fields;
            Reading::Lease(Box::new(lease))
        }
        Err(reading) => reading,
    }
}

fn take_lease(fields: &mut Map<String, Value>) -> Result<Lease, Reading> {
    const FOREIGN: Reading = Reading::Unreadable(Flaw::Foreign);
    let leader_id = take_text(fields, "leaderID")?.filter(|id| !id.is_empty()).ok_or(FOREIGN)?;
    let term = match fields.remove("term") {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => match number.as_u64() {
            Some(term) if term <= MAX_TERM => Some(term),
            Some(_) => return Err(Reading::Closed(Closed::TermTooHigh)),
            // Beyond u64 serde_json keeps a float, which is a term too high as well, unless it is negative.
            None if number.as_f64().is_some_and(|float| float >= MAX_TERM as f64) => {
                return Err(Reading::Closed(Closed::TermTooHigh));
            }
            None => return Err(FOREIGN),
        },
        Some(_) => return Err(FOREIGN),
    };
    let lease_ms = match fields.remove("leaseMs") {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => match number.as_u64() {
            Some(ms) if (1..=MAX_LEASE_MS).contains(&ms) => Some(ms),
            _ => return Err(Reading::Unreadable(Flaw::Absurd)),
        },
        Some(_) => return Err(FOREIGN),
    };
    let last_updated = match take_time(fields, "lastUpdated")? {
        Some(ZERO_TIME_MS) => Stamp::Released,
        Some(ms) => Stamp::At(ms),
        None => Stamp::At(0),
    };
    Ok(Lease {
        leader_id,
        leader_addr: take_text(fields, "leaderAddr")?.unwrap_or_default(),
        last_updated,
        term,
        session: take_text(fields, "session")?,
        sequence: take_count(fields, "sequence")?.unwrap_or(0),
        lease_ms,
        acquired: take_time(fields, "acquired")?,
        transitions: take_count(fields, "transitions")?.unwrap_or(0),
        parked: take_flag(fields, "parked")?.unwrap_or(false),
        slot: take_count(fields, "slot")?,
        slot_done: take_flag(fields, "slotDone")?,
        extra: Map::new(),
    })
}

/// Writes a record in the native format.
pub fn write(lease: &Lease) -> Vec<u8> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    put("leaderID", lease.leader_id.as_str().into());
    put("leaderAddr", lease.leader_addr.as_str().into());
    let last_updated = match lease.last_updated {
        Stamp::At(ms) => ms,
        Stamp::Released => ZERO_TIME_MS,
    };
    put("lastUpdated", rfc3339(last_updated).into());
    if let Some(term) = lease.term {
        put("term", term.into());
    }
    if let Some(session) = &lease.session {
        put("session", session.as_str().into());
    }
    put("sequence", lease.sequence.into());
    if let Some(lease_ms) = lease.lease_ms {
        put("leaseMs", lease_ms.into());
    }
    if let Some(acquired) = lease.acquired {
        put("acquired", rfc3339(acquired).into());
    }
    put("transitions", lease.transitions.into());
    put("parked", lease.parked.into());
    if let Some(slot) = lease.slot {
        put("slot", slot.into());
    }
    if let Some(done) = lease.slot_done {
        put("slotDone", done.into());
    }
    put("format", FORMAT.into());
    for (name, value) in &lease.extra {
        fields.entry(name.clone()).or_insert_with(|| value.clone());
    }
    serde_json::to_vec(&Value::Object(fields)).expect("a map with text keys always serialises")
}

/// Reads an RFC 3339 time, with Go's nanoseconds and offsets, as milliseconds since the Unix epoch.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let instant = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(instant.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// Writes milliseconds since the Unix epoch as RFC 3339 in UTC; a year outside 0 to 9999 is clamped to it.
pub fn rfc3339(unix_ms: i64) -> String {
    const LAST_MS: i64 = 253_402_300_799_999;
    let clamped_ms = unix_ms.clamp(ZERO_TIME_MS, LAST_MS);
    let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(clamped_ms) * 1_000_000)
        .expect("a clamped time is in range");
    instant.to_offset(UtcOffset::UTC).format(&Rfc3339).expect("a year up to 9999 has a form")
}

fn take_text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Reading> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Reading::Unreadable(Flaw::Foreign)),
    }
}

fn take_count(fields: &mut Map<String, Value>, name: &str) -> Result<Option<u64>, Reading> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) => Ok(Some(count)),
            None => Err(Reading::Unreadable(Flaw::Foreign)),
        },
    }
}

fn take_flag(fields: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, Reading> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(Reading::Unreadable(Flaw::Foreign)),
    }
}

fn take_time(fields: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, Reading> {
    match take_text(fields, name)? {
        None => Ok(None),
        Some(text) => match parse_rfc3339(&text) {
            Some(ms) => Ok(Some(ms)),
            None => Err(Reading::Unreadable(Flaw::Foreign)),
        },
    }
}
