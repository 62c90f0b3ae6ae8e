//! Times read as crates `time` and `httpdate` read them.

use std::time::SystemTime;

use edgelect::calendar::{
    Instant, YEAR_1_MS, YEAR_9999_MS, read_http_date, read_rfc3339, rfc3339, sigv4,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Nanoseconds since the Unix epoch, by crate `time`.
pub fn nanoseconds(text: &str) -> Option<i128> {
    Some(OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos())
}

/// The instant of an RFC 3339 text, by crate `time`.
pub fn instant(text: &str) -> Option<Instant> {
    let nanoseconds = nanoseconds(text)?;
    let unix_ms = i64::try_from(nanoseconds.div_euclid(1_000_000)).expect("years have 4 digits");
    Some(Instant { unix_ms, exact: nanoseconds.rem_euclid(1_000_000) == 0 })
}

/// Milliseconds since the Unix epoch of an HTTP date, by crate `httpdate`.
pub fn http_date(text: &str) -> Option<u64> {
    let since =
        httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Any text is a time, or none, as those crates say; and a time is written so that it reads back.
pub fn text(text: &str) {
    let read = read_rfc3339(text);
    assert_eq!(read, instant(text), "{text:?} as RFC 3339");
    if let Some(read) = read {
        written(read.unix_ms);
    }
    // A header that is not plain ASCII is never read.
    if text.is_ascii() {
        is_an_http_date_or_none(text);
    }
}

/// Crate `httpdate` does not look at every separator: what it reads beyond the forms of RFC 9110
/// may be refused.
fn is_an_http_date_or_none(text: &str) {
    let (ours, theirs) = (read_http_date(text), http_date(text));
    let spelled = |unix_ms| http_forms(unix_ms / 1_000).iter().any(|form| form == text.trim());
    let lax = ours.is_none() && theirs.is_some_and(|unix_ms| !spelled(unix_ms));
    assert!(
        lax || ours == theirs,
        "{text:?} as an HTTP date is {ours:?}, and {theirs:?} by httpdate"
    );
}

/// The forms of RFC 9110: today's, the old one with two digits of the year, and C's, of which some
/// writers fill the day with a zero.
pub fn http_forms(seconds: u64) -> [String; 4] {
    let seconds = i64::try_from(seconds).expect("years have 4 digits");
    let at = OffsetDateTime::from_unix_timestamp(seconds).expect("it is in the calendar");
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (short_day, short_month, day, year) = (&weekday[..3], &month[..3], at.day(), at.year());
    let clock = format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second());
    [
        format!("{short_day}, {day:02} {short_month} {year:04} {clock} GMT"),
        format!("{weekday}, {day:02}-{short_month}-{:02} {clock} GMT", year % 100),
        format!("{short_day} {short_month} {day:2} {clock} {year:04}"),
        format!("{short_day} {short_month} {day:02} {clock} {year:04}"),
    ]
}

/// Any number of milliseconds is written as crate `time` writes it, bounded by the calendar, and
/// reads back.
pub fn written(unix_ms: i64) {
    let written = rfc3339(unix_ms);
    let unix_ms = unix_ms.clamp(YEAR_1_MS, YEAR_9999_MS);
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000);
    let theirs = at.ok().and_then(|at| at.format(&Rfc3339).ok());
    assert_eq!(Some(&written), theirs.as_ref());
    assert_eq!(read_rfc3339(&written), Some(Instant { unix_ms, exact: true }), "{written}");
}

/// SigV4's form is crate `time`'s, to the second.
pub fn signed(seconds: u64) {
    let last = YEAR_9999_MS.unsigned_abs() / 1_000;
    let told = sigv4(seconds);
    let seconds = i64::try_from(seconds.min(last)).expect("it has been bounded");
    let at = OffsetDateTime::from_unix_timestamp(seconds).expect("it is in the calendar");
    let expected = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    assert_eq!(told, expected);
}
