//! Records as Kubernetes-style electors write them: any body, and any record that is written.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

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
    let theirs = ["holderIdentity", "leaseDuration", "acquireTime", "renewTime"];
    let theirs = [&theirs[..], &["leaderTransitions", "serverId"]].concat();
    let names = || select(vec!["\"\"", "\"a\"", "\"b\"", "null"]).prop_map(str::to_owned);
    let field = prop_oneof![
        3 => names().prop_map(|json| ("holderIdentity", json)),
        3 => names().prop_map(|json| ("serverId", json)),
        3 => time().prop_map(|json| ("renewTime", json)),
        2 => duration().prop_map(|json| ("leaseDuration", json)),
        2 => Just(("lastUpdated", "\"2026-11-21T06:58:12Z\"".to_owned())),
        2 => Just(("renewTime", "\"2026-11-21T06:58:12.000Z\"".to_owned())),
        1 => time().prop_map(|json| ("acquireTime", json)),
        2 => (select(vec!["leaderTransitions", "term", "sequence", "leaseMs"]), draw::number()),
        1 => Just(("session", "\"s\"".to_owned())),
        1 => (select([&theirs[..], &OWN_FIELDS].concat()), draw::value()),
    ];
    let others = (draw::text(6), draw::value());
    let named = prop_oneof![
        9 => field.prop_map(|(name, json)| (name.to_owned(), json)),
        1 => others,
    ];
    let ours = [
        ("holderIdentity", "\"a\""),
        ("serverId", "\"a\""),
        ("renewTime", "\"2026-11-21T06:58:12.000Z\""),
        ("lastUpdated", "\"2026-11-21T06:58:12Z\""),
        ("session", "\"s\""),
    ];
    let ours = ours.map(|(name, json)| (name.to_owned(), json.to_owned()));
    let first = prop_oneof![3 => Just(Vec::new()), 1 => Just(ours.to_vec())];
    (first, vec(named, 0..10))
        .prop_map(|(first, fields)| draw::object([first, fields].concat()).into_bytes())
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
        let stored = Record::from(lease.clone()).into_body(Format::Kubernetes);
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
