//! The forms of a time that an elector meets, as milliseconds since the Unix epoch: RFC 3339 in records, HTTP's in headers.

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The first instant of the year 1 in milliseconds since the Unix epoch.
pub const YEAR_1_MS: i64 = -62_135_596_800_000;

/// The last millisecond of the year 9999 since the Unix epoch.
pub const YEAR_9999_MS: i64 = 253_402_300_799_999;

/// The last second of the year 9999 since the Unix epoch.
pub const LAST_SECOND: u64 = YEAR_9999_MS.unsigned_abs() / 1_000;

const NANOSECONDS: i128 = 1_000_000;

/// An instant that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Milliseconds since the Unix epoch, rounded down.
    pub unix_ms: i64,
    /// Whether it was not rounded.
    pub exact: bool,
}

/// Reads an RFC 3339 time, with Go's nanoseconds and offsets.
pub fn read_rfc3339(text: &str) -> Option<Instant> {
    let nanoseconds = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    let unix_ms = i64::try_from(nanoseconds.div_euclid(NANOSECONDS)).ok()?;
    Some(Instant { unix_ms, exact: nanoseconds.rem_euclid(NANOSECONDS) == 0 })
}

/// Reads an HTTP date in each of its three forms as milliseconds since the Unix epoch; `None` for what is none, lies
/// before it, or names the wrong day of the week.
pub fn read_http_date(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since_epoch.as_millis()).ok()
}

/// Writes milliseconds since the Unix epoch as RFC 3339 in UTC; a year outside 1 to 9999 is clamped to it.
pub fn rfc3339(unix_ms: i64) -> String {
    let unix_ms = unix_ms.clamp(YEAR_1_MS, YEAR_9999_MS);
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * NANOSECONDS);
    time.expect("the calendar has these years").format(&Rfc3339).expect("and so has RFC 3339")
}

/// The same with three digits after the point, as readers with a fixed pattern want it.
pub fn rfc3339_with_ms(unix_ms: i64) -> String {
    let text = rfc3339(unix_ms);
    let time = text.trim_end_matches('Z');
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{time}.{fraction:0<3}Z")
}

/// `20130524T000000Z`, as SigV4 wants it; a time beyond the year 9999 is its last second.
pub fn basic(seconds: u64) -> String {
    let unix_ms = i64::try_from(seconds.min(LAST_SECOND) * 1_000).unwrap_or(YEAR_9999_MS);
    rfc3339(unix_ms).replace(['-', ':'], "")
}
