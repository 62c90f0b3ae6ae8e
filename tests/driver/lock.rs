//! The object-store lock as a view of a store: what its five calls read, write and refuse, and what of a record they keep.

use edgelect::json::Object;
use edgelect::object_store_lock::{
    LeaderElectionConfig, LeaderElectionRecord, LockErrorKind, ObjectStoreLock,
};
use edgelect::store::Facts;
use edgelect::{LockerStore, driver, run};
use serde_json::json;

use crate::driver::backend::Backend;
use crate::driver::prelude::*;

const NOW_MS: i64 = 1_795_000_000_000;

fn record(holder: &str) -> LeaderElectionRecord {
    LeaderElectionRecord::new(holder, 45_000, NOW_MS)
}

type Lock<'a> = ObjectStoreLock<'a, Memory, Virtual>;

fn over<'a>(memory: &'a Memory, host: &'a Virtual, identity: &str) -> Lock<'a> {
    ObjectStoreLock::new(memory, host, identity).expect("an object")
}

fn body(memory: &Memory) -> serde_json::Value {
    serde_json::from_slice(&memory.body().expect("there is an object")).expect("JSON")
}

#[test]
fn the_lock_creates_once_updates_what_it_has_seen_and_says_who_it_is_in_either_format() {
    for format in [Format::Native, Format::Kubernetes] {
        let (memory, host) = (Memory::default().in_format(format), Virtual::default());
        let [a, b] = ["a", "b"].map(|identity| over(&memory, &host, identity));
        assert_eq!(block_on(a.get()), Ok(None));
        let first = block_on(a.create(&record("a"))).expect("there was none");
        let kind = |error: edgelect::object_store_lock::LockError| error.kind;
        assert_eq!(block_on(b.create(&record("b"))).map_err(kind), Err(LockErrorKind::Conflict));
        let (mut found, version) = block_on(b.get()).expect("a record").expect("an object");
        assert_eq!(version, first);
        assert_eq!((found.holder_identity.as_str(), found.lease_duration_ms), ("a", Some(45_000)));
        assert_eq!((found.acquire_time_ms, found.renew_time_ms), (Some(NOW_MS), NOW_MS));
        found.renew_time_ms += 15_000;
        let second = block_on(a.update(&first, &found)).expect("it is what was read");
        assert_eq!(block_on(b.update(&first, &found)).map_err(kind), Err(LockErrorKind::Conflict));
        let (found, version) = block_on(b.get()).expect("a record").expect("an object");
        assert_eq!((version, found.renew_time_ms), (second, NOW_MS + 15_000));
        assert_eq!((a.identity(), b.describe()), ("a", format!("{} (b)", memory.describe())));
    }
}

#[test]
fn the_record_is_what_members_of_that_make_read_and_a_holder_of_nobody_is_a_release() {
    let (memory, host) = (Memory::default().in_format(Format::Kubernetes), Virtual::default());
    let lock = over(&memory, &host, "node-123");
    let version = block_on(lock.create(&record("node-123"))).expect("there was none");
    let told = body(&memory);
    for (name, value) in [
        ("holderIdentity", json!("node-123")),
        ("leaseDuration", json!("45s")),
        ("acquireTime", json!("2026-11-18T11:06:40.000Z")),
        ("renewTime", json!("2026-11-18T11:06:40.000Z")),
        ("leaderTransitions", json!(0)),
    ] {
        assert_eq!(told[name], value, "{told}");
    }
    let mut released = record("");
    released.leader_transitions = 4;
    block_on(lock.update(&version, &released)).expect("it is what was written");
    let told = body(&memory);
    assert_eq!((&told["holderIdentity"], &told["serverId"]), (&json!(""), &json!("node-123")));
    assert_eq!(told["renewTime"], json!("0001-01-01T00:00:00.000Z"));
    let Reading::Lease(lease) = Format::Kubernetes.read(told.to_string().as_bytes()) else {
        panic!("a lease")
    };
    assert!(lease.released() && lease.transitions == 4);
    let (found, _) = block_on(lock.get()).expect("a record").expect("an object");
    assert_eq!(found.holder_identity, "");
}

#[test]
fn s2_s4_an_update_keeps_term_and_slot_and_strange_fields_is_nobodys_session_and_never_the_same_body()
 {
    let mut machine = Machine::default();
    let host = machine.host.clone();
    let memory = Memory::default().in_format(Format::Kubernetes);
    block_on(driver::init(&memory, &host, &config())).expect("a new group");
    let handle = Handle::new(Election::new(config(), "ours".to_owned(), 1));
    let (running, store, clock) = (handle.clone(), memory.clone(), host.clone());
    let end = machine.run(async move { run(&running, &store, &clock, |_| ()).await });
    machine.pass(20_000);
    end.abort();
    let mut told = body(&memory);
    let term = told["term"].as_u64().expect("a term");
    (told["slot"], told["theirs"]) = (json!(7), json!([1, "ü"]));
    memory.overwrite(Some(told.to_string().into_bytes()));

    let lock = over(&memory, &host, "theirs");
    let (mut found, first) = block_on(lock.get()).expect("a record").expect("an object");
    found.holder_identity = "theirs".to_owned();
    let second = block_on(lock.update(&first, &found)).expect("it is what was read");
    let told = body(&memory);
    let kept = (told["term"].as_u64(), &told["slot"], &told["theirs"]);
    assert_eq!(kept, (Some(term), &json!(7), &json!([1, "ü"])));
    assert!(told.get("session").is_none() && told["parked"] == json!(false), "{told}");
    // The clock stands still, and so do all five fields.
    let (found, _) = block_on(lock.get()).expect("a record").expect("an object");
    let third = block_on(lock.update(&second, &found)).expect("it is what was read");
    assert_ne!(second, third, "a stale write on the second would win");
    // As client-go renews: the record that it has, on the version that the last update gave.
    block_on(lock.update(&third, &found)).expect("lands");
    assert!(block_on(lock.update(&third, &record("b"))).is_err(), "it was judged on another body");
}

#[test]
fn s8_what_is_not_known_is_said_so_and_what_is_no_record_is_left_alone() {
    let host = Virtual::default();
    let fault = |kind| Fault::new(kind, "the store: something");
    let cause = fault(FaultKind::Network);
    let unknown = Outcome::Unknown { retry_after_ms: None, cause };
    let denied = Outcome::Rejected(fault(FaultKind::Denied));
    let nameless = Outcome::Written { version: None };
    for (outcome, reading, writing) in [
        (unknown, Some(LockErrorKind::Store), LockErrorKind::Unknown),
        (denied, Some(LockErrorKind::Store), LockErrorKind::Store),
        (nameless, None, LockErrorKind::Unknown),
    ] {
        let store = Through(async |_| undated(outcome.clone()));
        let lock = ObjectStoreLock::new(&store, &host, "a").expect("an object");
        if let Some(kind) = reading {
            assert_eq!(block_on(lock.get()).map_err(|error| error.kind), Err(kind));
        }
        let error = block_on(lock.create(&record("a"))).expect_err("it is not known to be done");
        assert_eq!(error.kind, writing, "{error}");
    }
    for (doubtful, kind) in [(false, LockErrorKind::Conflict), (true, LockErrorKind::Unknown)] {
        let facts = Facts { doubtful, ..Facts::default() };
        let store = Through(async |_| Answer { outcome: Outcome::Refused, facts });
        let lock = ObjectStoreLock::new(&store, &host, "a").expect("an object");
        let version = Version("\"1\"".to_owned());
        let refused =
            [block_on(lock.create(&record("a"))), block_on(lock.update(&version, &record("a")))];
        assert_eq!(refused.map(|end| end.map_err(|error| error.kind)), [Err(kind), Err(kind)]);
    }
    let memory = Memory::default().in_format(Format::Kubernetes);
    let lock = over(&memory, &host, "a");
    let native = br#"{"leaderID":"b","lastUpdated":"2026-11-21T06:58:12Z"}"#;
    for unfit in [&b"[]"[..], b"{", native, b"null"] {
        memory.overwrite(Some(unfit.to_vec()));
        let error = block_on(lock.get()).expect_err("no record");
        assert_eq!(error.kind, LockErrorKind::Unusable, "{error}");
        assert_eq!(memory.body().as_deref(), Some(unfit));
    }
}

#[test]
fn a_store_that_keeps_no_object_a_name_and_a_lease_that_nobody_reads_are_refused() {
    let (memory, host) = (Memory::default(), Virtual::default());
    let elector = Handle::new(Election::new(config(), "a".to_owned(), 1));
    let locker = LockerStore::new(Backend::new(&host), &elector).expect("a locker");
    let refused = [
        ObjectStoreLock::new(&memory, &host, "").err().map(|error| error.field),
        ObjectStoreLock::new(&locker, &host, "a").err().map(|error| error.field),
    ];
    assert_eq!(refused.each_ref().map(Option::as_deref), [Some("identity"), Some("storage")]);
    for lease_ms in [999, 3_600_001] {
        let wrong = LeaderElectionRecord::new("a", lease_ms, NOW_MS);
        let error = block_on(over(&memory, &host, "a").create(&wrong)).expect_err("no lease");
        assert_eq!((error.kind, memory.body()), (LockErrorKind::Record, None));
    }
}

/// tests/js/object-store-lock.test.mjs has more of them, and what settings are made of.
#[test]
fn settings_that_cannot_be_kept_are_refused_by_name() {
    for (field, given) in [
        ("leaseDuration", json!({ "leaseDuration": "45" })),
        ("retryPeriod", json!({ "retryPeriod": "0s" })),
        ("leaderKey", json!({ "leaderKey": 1 })),
        ("leaseDuration", json!({ "leaseDuration": "15000000000 -s" })),
        ("leaseDuration", json!({ "leaseDuration": "1500000000 hours" })),
        ("leaseDuration", json!({ "leaseDuration": "5000000000\u{0}s" })),
    ] {
        let object = Object::read(given.to_string().as_bytes()).expect("an object");
        let refused = LeaderElectionConfig::from_json(&object).expect_err(field);
        assert_eq!(refused.field, field, "{given}");
    }
}

#[test]
fn a_record_that_is_too_long_to_be_read_is_not_written() {
    for (length, fits) in [(2_000, true), (70_000, false)] {
        let (memory, host) = (Memory::default().in_format(Format::Kubernetes), Virtual::default());
        let lock = over(&memory, &host, "a");
        let written = block_on(lock.create(&record(&"x".repeat(length))));
        assert_eq!((written.is_ok(), memory.body().is_some()), (fits, fits), "{length}");
    }
}
