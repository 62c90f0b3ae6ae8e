//! The times that are read and written, against crates `time` and `httpdate`.

use std::time::{Duration, SystemTime};

use edgelect::calendar::{Instant, YEAR_1_MS, YEAR_9999_MS, read_http_date, read_rfc3339, rfc3339};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A small generator, so that every run tries the same texts.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.roll(choices.len() as u64) as usize]
    }
}

fn by_time(text: &str) -> Option<Instant> {
    let nanoseconds = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    let unix_ms = i64::try_from(nanoseconds.div_euclid(1_000_000)).unwrap();
    Some(Instant { unix_ms, exact: nanoseconds.rem_euclid(1_000_000) == 0 })
}

fn by_httpdate(text: &str) -> Option<u64> {
    let instant = httpdate::parse_http_date(text).ok()?;
    let since = instant.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[test]
fn rfc_3339_reads_as_crate_time_reads_it() {
    let mut dice = Dice(1);
    let mut read = 0;
    for _ in 0..200_000 {
        let year = dice
            .pick(&["0000", "0001", "1900", "1969", "1970", "2024", "2026", "9999", "10000", "26"]);
        let month = dice.pick(&["01", "02", "02", "04", "06", "12", "12", "00", "13", "1"]);
        let day = dice.pick(&["01", "28", "29", "30", "31", "31", "00", "32"]);
        let separator = dice.pick(&["T", "T", "T", "t", " ", "ä", ""]);
        let clock = dice.pick(&[
            "00:00:00", "23:59:59", "12:30:45", "23:59:60", "24:00:00", "12:60:00", "1:2:3",
            "22:59:60",
        ]);
        let part = dice.pick(&["", ".0", ".5", ".123456789", ".0009", ".9999999999999", ".", ".x"]);
        let zone = dice.pick(&[
            "Z", "Z", "z", "+00:00", "-23:59", "+02:00", "+24:00", "+01:60", "-1:00", "", "Zx",
            "+01:00",
        ]);
        let text = format!("{year}-{month}-{day}{separator}{clock}{part}{zone}");
        let expected = by_time(&text);
        read += u32::from(expected.is_some());
        assert_eq!(read_rfc3339(&text), expected, "{text}");
    }
    assert!(read > 5_000, "only {read} of the texts are times");
}

#[test]
fn rfc_3339_is_written_as_crate_time_writes_it_and_reads_back() {
    let mut dice = Dice(2);
    let edges = [YEAR_1_MS, -1, 0, 1, 1_795_244_292_340, YEAR_9999_MS];
    let span = (YEAR_9999_MS - YEAR_1_MS) as u64 / 1_000;
    let drawn = (0..50_000).map(|_| {
        YEAR_1_MS + (dice.roll(1 << 31) * (1 << 31) % span * 1_000 + dice.roll(1_000)) as i64
    });
    for unix_ms in edges.into_iter().chain(drawn.collect::<Vec<_>>()) {
        let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000);
        assert_eq!(rfc3339(unix_ms), instant.unwrap().format(&Rfc3339).unwrap());
        assert_eq!(read_rfc3339(&rfc3339(unix_ms)), Some(Instant { unix_ms, exact: true }));
    }
    assert_eq!(rfc3339(i64::MAX), rfc3339(YEAR_9999_MS));
    assert_eq!(rfc3339(i64::MIN), "0001-01-01T00:00:00Z");
}

#[test]
fn http_dates_read_as_crate_httpdate_reads_them() {
    let mut dice = Dice(3);
    for _ in 0..20_000 {
        let seconds = dice.roll(253_402_300_800);
        let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(read_http_date(&text), Some(seconds * 1_000), "{text}");
    }
    let mut read = 0;
    for _ in 0..400_000 {
        let (weekday, comma) =
            (dice.pick(&["Sun", "Mon", "Thu", "Sunday", "Wednesday"]), dice.pick(&[",", ",", ""]));
        let (day, month) =
            (dice.pick(&["06", "6", " 6", "31", "00"]), dice.pick(&["Nov", "Feb", "nov", "Jan"]));
        let separator = dice.pick(&[" ", "-"]);
        let (year, century) =
            (dice.pick(&["1994", "2026", "1969", "94", "69", "70"]), dice.pick(&["", " "]));
        let clock =
            dice.pick(&["08:49:37", "23:59:59", "08:49:60", "24:00:00", "8:49:37", "08-49-37"]);
        let zone = dice.pick(&[" GMT", " GMT", " UTC", "", " GMTx"]);
        let text = match dice.roll(2) {
            0 => format!(
                "{century}{weekday}{comma} {day}{separator}{month}{separator}{year} {clock}{zone}"
            ),
            _ => format!("{weekday} {month} {day} {clock} {year}{century}"),
        };
        let expected = by_httpdate(&text);
        read += u32::from(expected.is_some());
        assert_eq!(read_http_date(&text), expected, "{text}");
    }
    assert!(read > 500, "only {read} of the texts are dates");
}
