//! The record of the object-store lock that came with `holderIdentity` and `renewTime`.

use edgelect::json::Object;
use edgelect::lease::{Flaw, Format, Lease, Reading, Remains, Stamp};

fn read(text: &str) -> Reading {
    Format::Kubernetes.read(text.as_bytes())
}

fn lease_of(text: &str) -> Lease {
    match read(text) {
        Reading::Lease(lease) => *lease,
        other => panic!("{text} reads as {other:?}"),
    }
}

/// The record of the document, to the byte.
const THEIRS: &str = r#"{
    "holderIdentity": "node-123",
    "leaseDuration": "45s",
    "acquireTime": "2024-02-02T10:15:30.000Z",
    "renewTime": "2024-02-02T10:15:30.000Z",
    "leaderTransitions": 0
}"#;

#[test]
fn the_record_of_the_document_is_a_lease_without_a_term() {
    let lease = lease_of(THEIRS);
    assert_eq!((lease.leader_id.as_str(), lease.lease_ms), ("node-123", Some(45_000)));
    assert_eq!((lease.term, lease.session.as_ref(), lease.transitions), (None, None, 0));
    assert_eq!(lease.acquired, Some(1_706_868_930_000));
    assert_eq!(lease.last_updated, Stamp::At(1_706_868_930_000));
    assert!(!lease.in_grace() && !lease.released());
}

#[test]
fn a_duration_is_read_in_each_form_that_a_member_may_write() {
    for (json, lease_ms) in [
        (r#""45s""#, Some(45_000)),
        (r#""1m30s""#, Some(90_000)),
        (r#""1h0m0s""#, Some(3_600_000)),
        (r#""1500ms""#, Some(1_500)),
        (r#""PT45S""#, Some(45_000)),
        (r#""PT1M30.5S""#, Some(90_500)),
        ("45", Some(45_000)),
        ("45.000000000", Some(45_000)),
        (r#""45""#, Some(45_000)),
        ("1.0000001", Some(1_001)),
        // Go's JSON of a `time.Duration`.
        ("45000000000", Some(45_000)),
        ("1500000001", Some(1_501)),
        // Longer than any lease of ours, and waited out all the same.
        (r#""61m""#, Some(3_660_000)),
        ("7200", Some(7_200_000)),
        ("7200000000000", Some(7_200_000)),
        ("99999999999999999", Some(365 * 24 * 3_600_000)),
        ("null", None),
    ] {
        let lease = lease_of(&THEIRS.replace(r#""45s""#, json));
        assert_eq!(lease.lease_ms, lease_ms, "{json}");
    }
    let foreign = r#"-45,4.5e1,true,[45],"","s","45x","45s ","4 5s","1.2.3s""#;
    for (flaw, all) in [(Flaw::Foreign, foreign), (Flaw::Absurd, r#""0s","999ms",0"#)] {
        for json in all.split(',') {
            let reading = read(&THEIRS.replace(r#""45s""#, json));
            assert_eq!(reading, Reading::Unreadable(flaw, Remains::NONE), "{json}");
        }
    }
}

#[test]
fn s7_client_gos_own_name_of_the_duration_is_read_and_of_two_the_longer_counts() {
    let named = |fields: &str| THEIRS.replace(r#""leaseDuration": "45s""#, fields);
    for (fields, lease_ms) in [
        (r#""leaseDurationSeconds": 6"#, 6_000),
        (r#""leaseDurationSeconds": 7200"#, 7_200_000),
        (r#""leaseDurationSeconds": 6, "leaseDuration": "45s""#, 45_000),
        (r#""leaseDurationSeconds": 60, "leaseDuration": "45s""#, 60_000),
    ] {
        assert_ne!(named(fields), THEIRS);
        let lease = lease_of(&named(fields));
        assert_eq!(lease.lease_ms, Some(lease_ms), "{fields}");
        assert_eq!(lease.extra.get("leaseDurationSeconds"), None, "it is not passed on as ours");
    }
    let told = |flaw, lease_ms| Reading::Unreadable(flaw, Remains { term: None, lease_ms });
    for fields in [r#""leaseDurationSeconds": "soon""#, r#""leaseDurationSeconds": true"#] {
        assert_eq!(read(&named(fields)), told(Flaw::Foreign, None), "{fields}");
    }
    // Of a record that cannot be used, an hour at most.
    let damaged = named(r#""leaseDurationSeconds": 7200"#).replace(r#""node-123""#, "7");
    assert_eq!(read(&damaged), told(Flaw::Foreign, Some(3_600_000)));
    let six = Format::Native.read(named(r#""leaseDurationSeconds": 6"#).as_bytes());
    assert_eq!(six, told(Flaw::OtherFormat, Some(6_000)));
}

#[test]
fn a_time_may_be_a_number_since_the_epoch_in_whatever_unit() {
    for (json, updated_ms) in [
        ("1706868930", 1_706_868_930_000),
        ("1706868930.123456789", 1_706_868_930_123),
        ("1706868930123", 1_706_868_930_123),
        ("1706868930123456", 1_706_868_930_123),
        ("1706868930123456789", 1_706_868_930_123),
    ] {
        let lease = lease_of(&THEIRS.replace(r#""2024-02-02T10:15:30.000Z""#, json));
        assert_eq!(lease.last_updated, Stamp::At(updated_ms), "{json}");
        assert_eq!((lease.acquired, lease.lease_ms), (Some(updated_ms), Some(45_000)), "{json}");
    }
    for json in ["-1", "1.7e9", "99999999999999999999999", "\"1706868930\""] {
        let reading = read(&THEIRS.replace(r#""2024-02-02T10:15:30.000Z""#, json));
        let told = Remains { term: None, lease_ms: Some(45_000) };
        assert_eq!(reading, Reading::Unreadable(Flaw::Foreign, told), "{json}");
    }
}

#[test]
fn a_lease_is_released_where_nobody_holds_it_whatever_the_times_say() {
    let [empty, null] = [r#""""#, "null"].map(|json| THEIRS.replace(r#""node-123""#, json));
    let absent = r#"{"leaseDuration":"1s","renewTime":"2024-02-02T10:15:30Z"}"#;
    for text in [&empty, &null, absent] {
        let lease = lease_of(text);
        assert!(lease.released() && lease.leader_id.is_empty(), "{text}");
    }
    let held = THEIRS.replace("2024-02-02T10:15:30.000Z", "0001-01-01T00:00:00Z");
    assert!(!lease_of(&held).released(), "a holder of long ago still holds it");
}

#[test]
fn what_a_member_of_another_make_keeps_of_our_fields_is_not_taken_for_ours() {
    let lease = Lease {
        leader_id: "ours".to_owned(),
        leader_addr: "10.0.0.1".to_owned(),
        last_updated: Stamp::At(1_795_000_000_123),
        term: Some(70),
        session: Some("s".to_owned()),
        sequence: 9,
        lease_ms: Some(14_500),
        parked: true,
        slot: Some(3),
        ..lease_of(THEIRS)
    };
    let text = Format::Kubernetes.write_with(&lease, &Object::new());
    assert_eq!(lease_of(&text), lease);
    let taken = text.replace(r#""holderIdentity":"ours""#, r#""holderIdentity":"theirs""#);
    let renewed = text.replace(r#""renewTime":"20"#, r#""renewTime":"21"#);
    let freed = renewed.replace(r#""holderIdentity":"ours""#, r#""holderIdentity":null"#);
    for text in [&taken, &renewed, &freed] {
        let foreign = lease_of(text);
        assert_eq!((foreign.session, foreign.sequence, foreign.parked), (None, 0, false), "{text}");
        assert_eq!((foreign.lease_ms, foreign.leader_addr.as_str()), (Some(15_000), ""));
        assert_eq!((foreign.term, foreign.slot), (Some(70), Some(3)), "these only grow");
    }
    assert_eq!(lease_of(&taken).leader_id, "theirs");
    assert!(lease_of(&freed).released());
}

#[test]
fn a_tombstone_is_free_to_them_by_both_signs_and_keeps_who_left_it() {
    let lease = Lease {
        last_updated: Stamp::Released,
        session: Some("s".to_owned()),
        transitions: 4,
        ..lease_of(THEIRS)
    };
    let text = Format::Kubernetes.write_with(&lease, &Object::new());
    let fields = Object::read(text.as_bytes()).expect("JSON");
    assert_eq!(fields.get("holderIdentity"), Some(r#""""#));
    assert_eq!(fields.get("renewTime"), Some(r#""0001-01-01T00:00:00.000Z""#));
    assert_eq!(fields.get("acquireTime"), Some(r#""2024-02-02T10:15:30.000Z""#));
    assert_eq!(fields.get("leaderTransitions"), Some("4"));
    assert_eq!(lease_of(&text), lease, "every other field is kept (S12)");
}

#[test]
fn a_field_that_neither_make_knows_is_kept() {
    let text = THEIRS.replace("{\n", r#"{"zone":{"name":"a"},"#);
    let written = Format::Kubernetes.write_with(&lease_of(&text), &Object::new());
    let fields = Object::read(written.as_bytes()).expect("JSON");
    assert_eq!(fields.get("zone"), Some(r#"{"name":"a"}"#));
}

/// `properties/kubernetes.rs` has it of every record that is written.
#[test]
fn a_record_of_the_other_format_is_not_claimed_and_named() {
    let told = |flaw, term, lease_ms| Reading::Unreadable(flaw, Remains { term, lease_ms });
    let native = r#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":7}"#;
    assert_eq!(read(native), told(Flaw::OtherFormat, Some(7), None));
    // A member that keeps what it does not know has taken over from one of ours.
    let kept = THEIRS.replace("{\n", r#"{"serverId":"x","leaseMs":15000,"#);
    let other = told(Flaw::OtherFormat, None, Some(45_000));
    assert_eq!(Format::Native.read(kept.as_bytes()), other);
    let damaged = THEIRS.replace("\": 0", "\": []");
    assert_eq!(read(&damaged), told(Flaw::Foreign, None, Some(45_000)));
    assert_eq!(read(r#"{"note":1}"#), told(Flaw::Foreign, None, None));
}
