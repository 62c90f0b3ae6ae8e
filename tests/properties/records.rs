//! Records: any body, and any record that is written.

use proptest::prelude::*;

use edgelect::json;
use edgelect::lease::{self, Flaw, Lease, Reading, Stamp};

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

/// Around the first instant of the year 1 as well, with which S3lect releases.
#[test]
fn c31_a_record_that_is_written_reads_back_with_the_fields_of_others_and_as_no_release() {
    let near = -62_135_596_800_010..=-62_135_596_799_990_i64;
    hold(REGRESSIONS, 2_000, (near, any::<bool>(), draw::lease()), |(unix_ms, is_near, lease)| {
        let at = Stamp::At(unix_ms);
        let lease = Lease { last_updated: if is_near { at } else { lease.last_updated }, ..lease };
        records::written(&lease, 0);
        records::body(&lease::write(&lease));
    });
}

/// Each field that keeps a record from being claimed, in every spelling.
#[test]
fn c28_c30_a_format_a_term_a_lease_and_a_release_are_believed_in_one_spelling_alone() {
    let time = || draw::time().prop_map(|time| json::of(&time));
    let field = prop_oneof![
        1 => (Just("format"), draw::value()),
        4 => (Just("term"), draw::number()),
        1 => (Just("leaseMs"), draw::value()),
        4 => (Just("leaseMs"), draw::number()),
        4 => (Just("lastUpdated"), time()),
    ];
    hold(REGRESSIONS, 20_000, field, |(name, value)| {
        let body = format!(r#"{{"leaderID":"a","{name}":{value}}}"#);
        let reading = lease::read(body.as_bytes());
        saw("released", matches!(&reading, Reading::Lease(lease) if lease.released()));
        saw("closed", matches!(reading, Reading::Closed(_)));
        saw("believed", matches!(reading, Reading::Lease(lease) if lease.lease_ms.is_some()));
        records::body(body.as_bytes());
    });
    drew(["released", "closed", "believed"], 100);
}
