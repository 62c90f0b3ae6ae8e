//! Records as Kubernetes-style electors write them: any body, and any record that is written.

use proptest::collection::vec;
use proptest::prelude::*;

use edgelect::json;
use edgelect::lease::{self, Closed, Flaw, Format, Lease, MAX_TERM, Reading, Remains};
use edgelect::store::Record;

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::records::{self, OWN_FIELDS};

const REGRESSIONS: &str = "tests/properties/regressions/kubernetes.txt";

fn duration() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(PT|pt)?[0-9]{1,5}(\\.[0-9]{1,12})?(ms|s|S|m|M|h)?".prop_map(|text| json::of(&text)),
        2 => "[0-9]{1,5}(\\.[0-9]{1,9})?",
        1 => "(PT)?([0-9]{0,4}[hHmMsé. -]){0,4}".prop_map(|text| json::of(&text)),
        1 => draw::value(),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let time = || draw::time().prop_map(|time| json::of(&time));
    let theirs = "holderIdentity leaseDuration acquireTime renewTime leaderTransitions serverId";
    let name = prop_oneof![6 => draw::word(theirs), 20 => draw::one_of(OWN_FIELDS)];
    let field = prop_oneof![
        6 => (draw::word("holderIdentity serverId"), draw::word("\"\" \"a\" \"b\" null")),
        3 => (draw::word("renewTime"), time()),
        2 => (draw::word("leaseDuration"), duration()),
        2 => (draw::word("lastUpdated"), draw::word("\"2026-11-21T06:58:12Z\"")),
        2 => (draw::word("renewTime"), draw::word("\"2026-11-21T06:58:12.000Z\"")),
        1 => (draw::word("acquireTime"), time()),
        2 => (draw::word("leaderTransitions term sequence leaseMs"), draw::number()),
        1 => (draw::word("session"), draw::word("\"s\"")),
        1 => (name, draw::value()),
        2 => (draw::text(6), draw::value()),
    ];
    let ours = r#""holderIdentity":"a","serverId":"a","renewTime":"2026-11-21T06:58:12.000Z",
                  "lastUpdated":"2026-11-21T06:58:12Z","session":"s","#;
    let first = prop_oneof![3 => Just(""), 1 => Just(ours)];
    (first, vec(field, 1..10))
        .prop_map(|(first, fields)| draw::object(fields).replacen('{', &["{", first].concat(), 1))
        .prop_map(String::into_bytes)
}

fn read(body: &[u8]) -> Reading {
    Format::Kubernetes.read(body)
}

#[test]
fn c27_to_c31_any_kubernetes_body_is_read_for_no_more_than_it_says() {
    hold(REGRESSIONS, 8_000, body(), |body| {
        let reading = read(&body);
        saw("lease", matches!(reading, Reading::Lease(_)));
        saw("released", matches!(&reading, Reading::Lease(lease) if lease.released()));
        saw("ours", matches!(&reading, Reading::Lease(lease) if lease.session.is_some()));
        saw("flawed", matches!(reading, Reading::Unreadable(..)));
        records::kubernetes(&body);
    });
    drew(["lease", "released", "ours", "flawed"], 50);
}

#[test]
fn what_is_written_for_kubernetes_members_reads_back_and_tells_them_no_less_than_the_lease() {
    hold(REGRESSIONS, 2_000, draw::lease(), |lease| records::kubernetes_written(&lease));
}

#[test]
fn a_lease_that_is_stored_for_kubernetes_members_is_the_same_record() {
    hold(REGRESSIONS, 2_000, draw::lease(), |lease| {
        let native = lease::write(&lease);
        let stored = Record::from(lease.clone()).body(Format::Kubernetes);
        let (Reading::Lease(before), Reading::Lease(after)) = (lease::read(&native), read(&stored))
        else {
            panic!("{}", String::from_utf8_lossy(&stored))
        };
        assert_eq!(*after, Lease { extra: after.extra.clone(), ..*before });
        let told = |lease_ms| {
            Reading::Unreadable(Flaw::OtherFormat, Remains { lease_ms, ..Remains::of(&lease) })
        };
        assert_eq!(read(&native), told(lease.lease_ms));
        let seconds_ms = lease.lease_ms.map(|ms| ms.next_multiple_of(1_000));
        assert_eq!(lease::read(&stored), told(seconds_ms), "`leaseDuration` is in seconds");
    });
}

#[test]
fn c30_a_kubernetes_term_above_2_to_the_52_is_closed() {
    let body = format!(r#"{{"holderIdentity":"a","term":{}}}"#, MAX_TERM + 1);
    assert_eq!(read(body.as_bytes()), Reading::Closed(Closed::TermTooHigh));
    let newer = br#"{"holderIdentity":"a","format":2}"#;
    assert_eq!(read(newer), Reading::Closed(Closed::NewerFormat(Some(2))));
}
