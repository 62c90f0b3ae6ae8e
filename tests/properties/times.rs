//! Times: each form of any instant, and texts that are nearly one.

use proptest::prelude::*;

use edgelect::calendar::{YEAR_1_MS, YEAR_9999_MS, read_http_date};

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::times;

const REGRESSIONS: &str = "tests/properties/regressions/times.txt";

/// Its first second since the Unix epoch.
const YEAR_2070: u64 = 3_155_760_000;

#[test]
fn gos_times_read_as_crate_time_reads_them() {
    hold(REGRESSIONS, 8_000, draw::time(), |text| times::text(&text));
    // Every part may be just beyond what there is.
    let nearly = concat!(
        "(0000|0001|1969|2024|9999|10000|26)-(0[0-9]|1[0-3]|1)-[0-3][0-9](T|T|T|t| |ä|)",
        "[012][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,16}x?)?",
        "(Z|Z|Z|z|[+-][012][0-9]:[0-6][0-9]|-1:00|Zx|)",
    );
    hold(REGRESSIONS, 20_000, nearly, |text| {
        saw("read", times::instant(&text).is_some());
        times::text(&text);
    });
    drew(["read"], 300);
}

#[test]
fn times_are_written_so_that_they_read_back_and_sort() {
    for edge in [i64::MIN, YEAR_1_MS, -1, 0, 1, 1_795_244_292_340, YEAR_9999_MS, i64::MAX] {
        times::written(edge);
    }
    let near = YEAR_1_MS - 10..=YEAR_9999_MS + 10;
    hold(REGRESSIONS, 5_000, (near, any::<i64>()), |(near, far)| {
        times::written(near);
        times::written(far);
        let (one, other) =
            (near.clamp(YEAR_1_MS, YEAR_9999_MS), far.clamp(YEAR_1_MS, YEAR_9999_MS));
        let seconds = |ms: i64| edgelect::calendar::rfc3339(ms - ms.rem_euclid(1_000));
        assert_eq!(
            seconds(one).cmp(&seconds(other)),
            one.div_euclid(1_000).cmp(&other.div_euclid(1_000))
        );
    });
}

#[test]
fn sigv4s_form_is_that_of_crate_time() {
    [0, 253_402_300_799, 253_402_300_800, u64::MAX].into_iter().for_each(times::signed);
    hold(REGRESSIONS, 5_000, 0..=253_402_300_900_u64, times::signed);
}

#[test]
fn each_form_of_an_http_date_reads_as_the_instant_that_it_is() {
    let seconds = (0..YEAR_2070).prop_union(0..253_402_300_800);
    hold(REGRESSIONS, 5_000, seconds, |seconds| {
        let forms = times::http_forms(seconds);
        for text in &forms {
            times::text(text);
        }
        let unix_ms = Some(seconds * 1_000);
        let [today, old, c, zeros] = forms;
        for text in [today, c, zeros] {
            assert_eq!(read_http_date(&text), unix_ms, "{text}");
        }
        // Two digits of the year are those from 1970 to 2069.
        if seconds < YEAR_2070 {
            assert_eq!(read_http_date(&old), unix_ms, "{old}");
        }
    });
}

#[test]
fn http_dates_that_are_nearly_right_read_as_crate_httpdate_reads_them() {
    let date = concat!(
        "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(day|sday|urday)?,? ",
        "[0-3 ]?[0-9][ -](Jan|Feb|Mar|jun|Dec)[ -]([0-9]{2}|[0-9]{4}) ",
        "([01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9]( GMT| UTC|)",
    );
    // The day of the week is right in few of those; of a real date with one byte changed it mostly
    // is.
    let hits = (0..253_402_300_800_u64, any::<prop::sample::Index>(), 0..0x80_u8);
    hold(REGRESSIONS, 8_000, (date, hits), |(text, (seconds, place, byte))| {
        times::text(&text);
        let since = std::time::Duration::from_secs(seconds);
        let real = httpdate::fmt_http_date(std::time::SystemTime::UNIX_EPOCH + since);
        let text = String::from_utf8(draw::damaged(real.into_bytes(), &[(place, byte)]));
        let text = text.expect("it is ASCII still");
        saw("read", read_http_date(&text).is_some());
        times::text(&text);
    });
    drew(["read"], 100);
}
