//! Records: any body, and any record that is written.

use proptest::prelude::*;

use edgelect::calendar::{Instant, YEAR_1_MS, read_rfc3339};
use edgelect::json;
use edgelect::lease::{self, Closed, Flaw, Lease, MAX_LEASE_MS, MAX_TERM, Reading, Stamp};

use super::draw::{self, Bytes};
use super::hold::{drew, hold, saw};
use super::rules::records;

const REGRESSIONS: &str = "tests/properties/regressions/records.txt";

#[test]
fn c27_to_c31_any_body_is_read_for_no_more_than_it_says() {
    hold(REGRESSIONS, 8_000, draw::body(), |Bytes(body)| {
        let reading = lease::read(&body);
        saw("lease", matches!(reading, Reading::Lease(_)));
        saw("released", matches!(&reading, Reading::Lease(lease) if lease.released()));
        saw("closed", matches!(reading, Reading::Closed(_)));
        saw("absurd", matches!(reading, Reading::Unreadable(Flaw::Absurd, _)));
        records::body(&body);
    });
    drew(["lease", "released", "closed", "absurd"], 50);
}

#[test]
fn c27_longer_bodies_than_the_longest_record_are_too_large() {
    let filler = 65_400..65_800_usize;
    hold(REGRESSIONS, 50, (filler, draw::text(3)), |(bytes, name)| {
        let filled = format!("\"{}\"", "x".repeat(bytes));
        let fields =
            vec![("leaderID".to_owned(), "\"a\"".to_owned()), (["x", &name].concat(), filled)];
        records::body(draw::object(fields).as_bytes());
    });
}

#[test]
fn a_record_that_is_written_reads_back_with_the_fields_of_others() {
    hold(REGRESSIONS, 2_000, draw::lease(), |lease| {
        records::written(&lease, 0);
        records::body(&lease::write(&lease));
    });
}

#[test]
fn c28_every_format_but_0_and_1_is_closed_whatever_else_it_says() {
    hold(REGRESSIONS, 2_000, (draw::value(), draw::value()), |(format, updated)| {
        let body = format!(r#"{{"leaderID":"a","lastUpdated":{updated},"format":{format}}}"#);
        let closed =
            matches!(lease::read(body.as_bytes()), Reading::Closed(Closed::NewerFormat(_)));
        assert_eq!(closed, !matches!(format.as_str(), "0" | "1"), "{body}");
    });
}

#[test]
fn c30_a_term_above_2_to_the_52_is_closed_in_every_spelling() {
    hold(REGRESSIONS, 10_000, draw::number(), |term| {
        let body = format!(r#"{{"leaderID":"a","term":{term}}}"#);
        let reading = lease::read(body.as_bytes());
        let above = json::is_at_least(&term, MAX_TERM + 1);
        if above {
            assert_eq!(reading, Reading::Closed(Closed::TermTooHigh), "{term}");
        }
        if let Reading::Lease(lease) = reading {
            assert_eq!(lease.term.map(|term| term.to_string()), Some(term), "to the digit");
        }
    });
}

#[test]
fn c30_no_lease_length_but_a_plain_one_within_bounds_is_believed() {
    hold(REGRESSIONS, 8_000, draw::value(), |lease_ms| {
        let body = format!(r#"{{"leaderID":"a","leaseMs":{lease_ms}}}"#);
        let plain = lease_ms.bytes().all(|byte| byte.is_ascii_digit());
        let believed =
            lease_ms.parse().ok().filter(|ms| plain && (1_000..=MAX_LEASE_MS).contains(ms));
        match lease::read(body.as_bytes()) {
            Reading::Lease(lease) if lease_ms == "null" => assert_eq!(lease.lease_ms, None),
            Reading::Lease(lease) => {
                assert_eq!((lease.lease_ms, believed.is_some()), (believed, true))
            }
            reading => {
                assert!(matches!(reading, Reading::Unreadable(..)), "{reading:?}");
                assert_eq!(believed, None, "{lease_ms} is refused");
            }
        }
    });
}

#[test]
fn c30_only_the_first_instant_of_the_year_1_is_a_release() {
    hold(REGRESSIONS, 10_000, draw::time(), |time| {
        let text = json::of(&time);
        let body = format!(r#"{{"leaderID":"a","lastUpdated":{text}}}"#);
        let expected = read_rfc3339(&time) == Some(Instant { unix_ms: YEAR_1_MS, exact: true });
        let found =
            matches!(lease::read(body.as_bytes()), Reading::Lease(lease) if lease.released());
        saw("released", found);
        assert_eq!(found, expected, "{time}");
    });
    drew(["released"], 500);
}

#[test]
fn c31_no_time_is_written_as_a_release() {
    let around = (-62_135_596_800_010..=-62_135_596_799_990_i64).prop_union(i64::MIN..=i64::MAX);
    hold(REGRESSIONS, 2_000, (around, draw::lease()), |(unix_ms, lease)| {
        let lease = Lease { last_updated: Stamp::At(unix_ms), ..lease };
        let written = lease::read(&lease::write(&lease));
        assert!(matches!(written, Reading::Lease(lease) if !lease.released()), "{unix_ms}");
    });
}
