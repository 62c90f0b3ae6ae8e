//! The three forms of a time that an elector meets: RFC 3339 in records, HTTP's in headers, SigV4's in signatures.
//!
//! Crate `time` knows the calendar. Its own parsers and `httpdate` would make the wasm 7.0 KB larger after gzip -9
//! than this file does. `tests/calendar.rs` holds it against both.

use time::{Date, Month};

const DAY_MS: i64 = 86_400_000;

/// The julian day of 1970-01-01.
const EPOCH_JULIAN: i64 = 2_440_588;

/// The first instant of the year 1 in milliseconds since the Unix epoch.
pub const YEAR_1_MS: i64 = -62_135_596_800_000;

/// The last millisecond of the year 9999 since the Unix epoch.
pub const YEAR_9999_MS: i64 = 253_402_300_799_999;

/// An instant that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Milliseconds since the Unix epoch, rounded down.
    pub unix_ms: i64,
    /// Whether it was not rounded.
    pub exact: bool,
}

/// What is left of a text that is read from its start.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        let (head, tail) = self.0.split_at_checked(digits)?;
        self.0 = tail;
        head.iter().try_fold(0, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
        })
    }

    /// The place of a three-letter name in a list of them, from 1 on.
    fn name(&mut self, names: &[u8]) -> Option<i64> {
        let (head, tail) = self.0.split_at_checked(3)?;
        self.0 = tail;
        let place = names.chunks(3).position(|name| name == head)?;
        i64::try_from(place + 1).ok()
    }

    /// `08:49:37`, in seconds; the last of them may be a leap second.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.literal(b":")?;
        let minute = self.number(2)?;
        self.literal(b":")?;
        let second = self.number(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some((hour * 60 + minute) * 60 + second)
    }
}

/// Days since the Unix epoch; `None` where the calendar has no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = Month::January.nth_next(u8::try_from(month - 1).ok().filter(|past| *past < 12)?);
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?);
    Some(i64::from(date.ok()?.to_julian_day()) - EPOCH_JULIAN)
}

/// Reads an RFC 3339 time, with Go's nanoseconds and offsets.
pub fn read_rfc3339(text: &str) -> Option<Instant> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.number(4)?;
    rest.literal(b"-")?;
    let month = rest.number(2)?;
    rest.literal(b"-")?;
    let day = rest.number(2)?;
    // Any separator: RFC 3339 leaves it to the writer.
    rest.0 = rest.0.get(1..)?;
    let mut seconds = rest.clock()?;
    let leap = seconds % 60 == 0 && text.as_bytes().get(17) == Some(&b'6');
    let (mut ms, mut exact) = (0, true);
    if rest.literal(b".").is_some() {
        let digits = rest.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (head, tail) = rest.0.split_at(digits);
        if head.is_empty() {
            return None;
        }
        for (place, digit) in head.iter().enumerate().take(9) {
            match place {
                0..3 => ms += i64::from(digit - b'0') * [100, 10, 1][place],
                _ => exact &= *digit == b'0',
            }
        }
        rest.0 = tail;
    }
    let offset_minutes = match rest.0.split_first()? {
        (b'Z' | b'z', tail) => {
            rest.0 = tail;
            0
        }
        (sign @ (b'+' | b'-'), tail) => {
            rest.0 = tail;
            let hours = rest.number(2)?;
            rest.literal(b":")?;
            let minutes = rest.number(2)?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    if !rest.0.is_empty() {
        return None;
    }
    if leap {
        // No leap second has a number of its own; it counts as the last instant before it.
        (seconds, ms, exact) = (seconds - 1, 999, false);
    }
    let unix_ms = days(year, month, day)? * DAY_MS + (seconds - offset_minutes * 60) * 1_000 + ms;
    if leap && !ends_a_month(unix_ms) {
        return None;
    }
    Some(Instant { unix_ms, exact })
}

/// Whether this is the last second of a month in UTC, after which a leap second may come.
fn ends_a_month(unix_ms: i64) -> bool {
    let last_of_month = |date: Date| date.day() == date.month().length(date.year());
    (unix_ms + 1) % DAY_MS == 0 && date(unix_ms).is_some_and(last_of_month)
}

fn date(unix_ms: i64) -> Option<Date> {
    let julian = unix_ms.div_euclid(DAY_MS) + EPOCH_JULIAN;
    Date::from_julian_day(i32::try_from(julian).ok()?).ok()
}

/// Reads an HTTP date in each of its three forms as milliseconds since the Unix epoch; `None` for what is none, lies
/// before it, or names the wrong day of the week.
pub fn read_http_date(text: &str) -> Option<u64> {
    const DAYS: &[u8] = b"MonTueWedThuFriSatSun";
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut rest = Rest(text.trim().as_bytes());
    let weekday = rest.name(DAYS)?;
    let (year, month, day, seconds);
    if rest.literal(b" ").is_some() {
        // Sun Nov  6 08:49:37 1994
        month = rest.name(MONTHS)?;
        rest.literal(b" ")?;
        day = if rest.literal(b" ").is_some() { rest.number(1)? } else { rest.number(2)? };
        rest.literal(b" ")?;
        seconds = rest.clock()?;
        rest.literal(b" ")?;
        year = rest.number(4)?;
    } else {
        let long = rest.0.first() != Some(&b',');
        if long {
            // Sunday, 06-Nov-94 08:49:37 GMT
            let tails = [&b"day"[..], b"sday", b"nesday", b"rsday", b"day", b"urday", b"day"];
            rest.literal(tails[usize::try_from(weekday - 1).ok()?])?;
        }
        // Sun, 06 Nov 1994 08:49:37 GMT
        let separator: &[u8] = if long { b"-" } else { b" " };
        rest.literal(b", ")?;
        day = rest.number(2)?;
        rest.literal(separator)?;
        month = rest.name(MONTHS)?;
        rest.literal(separator)?;
        year = match long {
            true => Some(rest.number(2)?).map(|year| year + if year < 70 { 2000 } else { 1900 })?,
            false => rest.number(4)?,
        };
        rest.literal(b" ")?;
        seconds = rest.clock()?;
        rest.literal(b" GMT")?;
    }
    let days = days(year, month, day)?;
    // 1970-01-01 was a Thursday.
    let right = rest.0.is_empty() && (days + 3).rem_euclid(7) + 1 == weekday;
    // The sixtieth second of a minute is none of HTTP's.
    let leap = text.as_bytes().windows(3).any(|part| part == b":60");
    if !right || leap {
        return None;
    }
    u64::try_from(days * DAY_MS + seconds * 1_000).ok()
}

/// Writes milliseconds since the Unix epoch as RFC 3339 in UTC; a year outside 1 to 9999 is clamped to it.
pub fn rfc3339(unix_ms: i64) -> String {
    let unix_ms = unix_ms.clamp(YEAR_1_MS, YEAR_9999_MS);
    let mut text = written(unix_ms, true);
    let mut ms = unix_ms.rem_euclid(1_000);
    if ms > 0 {
        text.push('.');
        while ms > 0 {
            push_digits(&mut text, ms / 100, 1);
            ms = ms % 100 * 10;
        }
    }
    text.push('Z');
    text
}

/// `20130524T000000Z`; a time beyond the year 9999 is its last second.
pub fn sigv4(seconds: u64) -> String {
    let last_ms = YEAR_9999_MS.unsigned_abs();
    let unix_ms = i64::try_from(seconds.saturating_mul(1_000).min(last_ms)).unwrap_or(YEAR_9999_MS);
    let mut text = written(unix_ms, false);
    text.push('Z');
    text
}

/// Date and time to the second, with or without what stands between the numbers.
fn written(unix_ms: i64, separated: bool) -> String {
    let (year, month, day) = match date(unix_ms) {
        Some(date) => date.to_calendar_date(),
        None => return "1970-01-01T00:00:00".to_owned(),
    };
    let seconds = unix_ms.rem_euclid(DAY_MS) / 1_000;
    let mut text = String::with_capacity(24);
    let numbers = [
        (i64::from(year), 4, '-'),
        (i64::from(u8::from(month)), 2, '-'),
        (i64::from(day), 2, 'T'),
        (seconds / 3_600, 2, ':'),
        (seconds / 60 % 60, 2, ':'),
        (seconds % 60, 2, ' '),
    ];
    for (number, width, then) in numbers {
        push_digits(&mut text, number, width);
        if then == 'T' || (separated && then != ' ') {
            text.push(then);
        }
    }
    text
}

fn push_digits(text: &mut String, number: i64, width: u32) {
    for place in (0..width).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}
