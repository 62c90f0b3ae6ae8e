//! Records as Kubernetes-style electors write them: any body, and any record that is written.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::calendar::{YEAR_1_MS, YEAR_9999_MS};
use edgelect::json::{Object, quoted};
use edgelect::lease::{
    self, Closed, Flaw, Format, Lease, MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS, MAX_RECORD_BYTES,
    MAX_TERM, MIN_LEASE_MS, Reading, Remains, Stamp,
};

use super::draw;
use super::hold::{drew, hold};
use super::rules::records::{self, OWN_FIELDS};

const REGRESSIONS: &str = "tests/properties/regressions/kubernetes.txt";

const THEIRS: [&str; 6] = [
    "holderIdentity",
    "leaseDuration",
    "acquireTime",
    "renewTime",
    "leaderTransitions",
    "serverId",
];

fn duration() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(PT|pt)?[0-9]{1,5}(\\.[0-9]{1,12})?(ms|s|S|m|M|h)?".prop_map(|text| quoted(&text)),
        2 => "[0-9]{1,5}(\\.[0-9]{1,9})?",
        1 => "(PT)?([0-9]{0,4}[hHmMsé. -]){0,4}".prop_map(|text| quoted(&text)),
        1 => draw::value(),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let time = || draw::time().prop_map(|time| quoted(&time));
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
        1 => (select([&THEIRS[..], &OWN_FIELDS].concat()), draw::value()),
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

fn written(lease: &Lease) -> Vec<u8> {
    Format::Kubernetes.write_with(lease, |_| {}).into_bytes()
}

/// What a record is after it was written and read; nothing where it has become too large, or has a lease that only other
/// makes write.
fn again(lease: &Lease) -> Option<Lease> {
    let body = written(lease);
    if body.len() > MAX_RECORD_BYTES || lease.lease_ms > Some(MAX_LEASE_MS) {
        return None;
    }
    match read(&body) {
        Reading::Lease(again) => Some(*again),
        other => panic!("{} reads as {other:?}", String::from_utf8_lossy(&body)),
    }
}

#[test]
fn c27_to_c31_any_kubernetes_body_is_read_for_no_more_than_it_says() {
    let (leases, released, ours, flawed) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let count = |counter: &Cell<u32>| counter.set(counter.get() + 1);
    hold(REGRESSIONS, 8_000, body(), |body| {
        records::kubernetes(&body);
        let Some(fields) = Object::read(&body) else {
            assert_eq!(read(&body), Reading::Unreadable(Flaw::NotJson, Remains::NONE));
            return;
        };
        let holder = fields.get("holderIdentity").unwrap_or("null");
        let Reading::Lease(lease) = read(&body) else {
            count(&flawed);
            return;
        };
        count(&leases);
        assert!(fields.get("leaderID").is_none(), "a native record is none of these");
        assert_eq!(lease.released(), matches!(holder, "null" | "\"\""), "{holder}");
        if lease.released() {
            count(&released);
        } else {
            assert_eq!(quoted(&lease.leader_id), quoted(&text(holder)));
        }
        if lease.session.is_some() {
            count(&ours);
            assert_eq!(Some(&*quoted(&lease.leader_id)), fields.get("serverId"), "it wrote it");
        }
        let told_ms = lease.lease_ms.unwrap_or(MIN_LEASE_MS);
        assert!((MIN_LEASE_MS..=MAX_FOREIGN_LEASE_MS).contains(&told_ms), "{told_ms}");
        if let Some(again) = again(&lease) {
            assert_eq!(again, Lease { extra: again.extra.clone(), ..(*lease).clone() }.plain());
        }
    });
    drew([&leases, &released, &ours, &flawed].map(Cell::get), 50);
}

fn text(json: &str) -> String {
    serde_json::from_str(json).expect("a text")
}

trait Plain {
    fn plain(self) -> Self;
}

impl Plain for Lease {
    /// What of a record any format keeps.
    fn plain(self) -> Self {
        let last_updated = match self.last_updated {
            Stamp::At(ms) => Stamp::At(ms.clamp(YEAR_1_MS + 1, YEAR_9999_MS)),
            Stamp::Released => Stamp::Released,
        };
        // Only a record of our own can have been acquired by nobody.
        let foreign = self.leader_id.is_empty();
        let updated_ms = match last_updated {
            Stamp::At(ms) => ms,
            Stamp::Released => YEAR_1_MS,
        };
        let acquired = self.acquired.map(|ms| ms.clamp(YEAR_1_MS, YEAR_9999_MS));
        let acquired = acquired.or(foreign.then_some(updated_ms));
        let lease_ms = match foreign {
            true => self.lease_ms.map(|ms| ms.div_ceil(1_000) * 1_000),
            false => self.lease_ms,
        };
        Self { last_updated, acquired, lease_ms, ..self }
    }
}

#[test]
fn what_is_written_for_kubernetes_members_reads_back_and_tells_them_no_less_than_the_lease() {
    hold(REGRESSIONS, 2_000, draw::lease(), |lease| {
        let again = again(&lease).expect("it is not large");
        assert_eq!(again, Lease { extra: again.extra.clone(), ..lease.clone() }.plain());
        let body = Object::read(&written(&lease)).expect("an object");
        let holder = text(body.get("holderIdentity").expect("always there"));
        assert_eq!(holder.is_empty(), lease.released(), "nothing else is a release");
        let seconds = body.get("leaseDuration").map(|json| {
            text(json).strip_suffix('s').expect("of seconds").parse::<u64>().expect("whole")
        });
        assert_eq!(seconds, lease.lease_ms.map(|ms| ms.div_ceil(1_000)));
        for name in ["acquireTime", "renewTime"] {
            let time = text(body.get(name).expect("always there"));
            assert_eq!(time.len(), "2024-02-02T10:15:30.000Z".len(), "{time}");
        }
    });
}

#[test]
fn a_native_body_that_is_stored_for_kubernetes_members_is_the_same_record() {
    hold(REGRESSIONS, 2_000, draw::lease(), |lease| {
        let native = lease::write(&lease);
        let stored = Format::Kubernetes.stored(&native);
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
