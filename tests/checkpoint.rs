//! A job's own state that no earlier term can change: each unknown outcome, hostile bodies, and every interleaving of
//! two terms.

pub mod desk;
pub mod interleavings;

use edgelect::checkpoint::MAX_VALUE_BYTES;
use edgelect::{
    Checkpoint, CheckpointError, DynamoDbStore, EpochStore, Owner, Refusal, Route53Store, S3Store,
};
use futures::FutureExt;

use crate::driver::prelude::*;
use desk::{Desk, Fate, owner};
use worlds::{item, record_set};

type Ended = Result<(), CheckpointError>;

/// What happened, and when: each request as it reached the store, and the end.
fn on_virtual_time<T: 'static>(work: impl AsyncFnOnce(Virtual) -> T + 'static) -> (T, u64) {
    let mut machine = Machine::default();
    let ended = Rc::new(RefCell::new(None));
    let (host, end) = (machine.host.seeded(1), Rc::clone(&ended));
    machine.run(async move {
        let value = work(host.clone()).await;
        *end.borrow_mut() = Some((value, host.now_ms.get()));
    });
    machine.pass(60_000);
    ended.borrow_mut().take().expect("it ends within a minute")
}

/// What needs no pause, because every request is answered.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it does not wait")
}

/// Opens it as a member with randomness of its own.
type Opened<'a, S> = Result<Checkpoint<'a, S, Virtual>, CheckpointError>;

fn open<S: Store>(store: &S, seed: u8, owner: Owner) -> Opened<'_, S> {
    // It lives as long as its checkpoints.
    let host: &'static Virtual = Box::leak(Box::new(Virtual::default().seeded(seed)));
    at_once(Checkpoint::open(store, host, owner))
}

fn kind<T>(result: Result<T, CheckpointError>) -> Refusal {
    result.err().expect("it is refused").kind
}

#[test]
fn a_new_checkpoint_is_created_and_keeps_what_is_written_for_the_next_term() {
    let desk = Desk::default();
    let mut state = open(&desk, 1, owner(7)).expect("it opens");
    assert_eq!((state.value(), state.token()), (None, 7));
    at_once(state.write(r#" {"n":1} "#)).expect("it is written");
    at_once(state.write(r#"{"n":2}"#)).expect("it is written");
    assert_eq!(state.value(), Some(r#"{"n":2}"#));
    let each_once = ["read", "7 null", r#"7 {"n":1}"#, r#"7 {"n":2}"#];
    assert_eq!(desk.log(), each_once);
    let mut successor = open(&desk, 2, owner(8)).expect("it opens");
    assert_eq!(successor.value(), Some(r#"{"n":2}"#));
    let record = desk.record();
    assert_eq!((record.term, record.extra.get("value")), (Some(8), Some(r#"{"n":2}"#)));
    let error = at_once(state.write("3")).expect_err("the zombie is refused");
    assert_eq!(error.kind, Refusal::Fenced);
    assert!(error.message.contains("later term 8 of \"session-8\""), "{error}");
    assert!(error.message.starts_with("checkpoint \"state.json\" (a desk): "), "{error}");
    at_once(successor.write("4")).expect("it is written");
    assert_eq!(desk.value().as_deref(), Some("4"));
    assert_eq!(kind(open(&desk, 1, owner(7))), Refusal::Fenced, "and it can't open it again");
}

#[test]
fn of_two_openings_in_one_term_the_later_one_holds_and_another_session_is_refused() {
    let desk = Desk::default();
    let mut first = open(&desk, 1, owner(7)).expect("it opens");
    let mut second = open(&desk, 2, owner(7)).expect("it opens");
    let error = at_once(first.write("1")).expect_err("the earlier opening is over");
    assert_eq!(error.kind, Refusal::Fenced);
    assert!(error.message.contains("opened it again"), "{error}");
    at_once(second.write("2")).expect("it is written");
    let (written, sent) = (desk.memory.body(), desk.log().len());
    assert_eq!(desk.value().as_deref(), Some("2"));
    let other = Owner::new(&config(), "another", 7, "state.json").expect("a good owner");
    let error = open(&desk, 3, other).err().expect("it is refused");
    assert_eq!(error.kind, Refusal::Fenced);
    assert!(error.message.contains("a key belongs to one group"), "{error}");
    assert_eq!((&desk.log()[sent..], desk.memory.body()), (&["read".to_owned()][..], written));
}

/// Opens, then writes `1` through these fates, then `2` without any.
fn written_through(fates: &'static [Fate]) -> ((Ended, Ended, Desk), u64) {
    on_virtual_time(async move |member| {
        let desk = Desk::default();
        let mut state = Checkpoint::open(&desk, &member, owner(7)).await.expect("it opens");
        desk.fates.borrow_mut().extend(fates);
        let first = state.write("1").await;
        desk.fates.borrow_mut().clear();
        let second = state.write("2").await;
        drop(state);
        (first, second, desk)
    })
}

#[test]
fn s8_an_unknown_write_is_tried_again_under_its_condition_and_found_where_it_landed() {
    use Fate::*;
    let seal_and = |rest: &[&str]| -> Vec<String> {
        ["read", "7 null"].iter().chain(rest).map(|line| (*line).to_owned()).collect()
    };
    for (fates, log, took_ms) in [
        // Not landed: the second attempt lands.
        (&[LostBefore][..], &["7 1", "7 1", "7 2"][..], 100),
        // Landed: the second is refused, and the read-back knows the first.
        (&[LostAfter], &["7 1", "7 1", "read", "7 2"], 100),
        // A refusal of our own landed write, by somebody who repeated it.
        (&[RefusedAfter], &["7 1", "read", "7 2"], 0),
        // A refusal that nobody can explain: the version is still there.
        (&[Refused], &["7 1", "read", "7 1", "7 2"], 100),
        // An answer without a version is read back.
        (&[NoVersion], &["7 1", "read", "7 2"], 0),
        (&[LostBefore, LostBefore], &["7 1", "7 1", "7 1", "7 2"], 1_100),
        (&[LostBefore, LostBefore, LostAfter], &["7 1", "7 1", "7 1", "read", "7 2"], 1_100),
        // The first arrives only after the second was sent.
        (&[Late, LostBefore], &["7 1", "7 1", "7 1", "read", "7 2"], 1_100),
        // No answer at all: the timeout of 1.8 s.
        (&[Hang], &["7 1", "7 1", "read", "7 2"], 1_900),
        // The store asks for more patience than we would have.
        (&[Throttled], &["7 1", "7 1", "7 2"], 3_000),
    ] {
        let ((first, second, desk), end_ms) = written_through(fates);
        assert_eq!((first, second), (Ok(()), Ok(())), "{fates:?}");
        assert_eq!(desk.log(), seal_and(log), "{fates:?}");
        assert_eq!(end_ms, took_ms, "{fates:?}");
        assert_eq!(desk.value().as_deref(), Some("2"), "{fates:?}");
        let bodies = desk.bodies.borrow();
        let new = bodies.iter().enumerate().all(|(at, body)| !bodies[..at].contains(body));
        assert!(new, "S4: every body is new, {fates:?}");
    }
}

#[test]
fn s8_what_stays_unknown_says_so_and_the_next_write_reads_back_first() {
    use Fate::*;
    for fates in [
        // It never landed; it landed and nothing can be read; the last of it arrives after the answer.
        &[LostBefore, LostBefore, LostBefore][..],
        &[LostAfter, LostBefore, LostBefore, LostBefore],
        &[LostBefore, LostBefore, Late],
    ] {
        let ((first, second, desk), _) = written_through(fates);
        let error = first.expect_err("nobody knows");
        assert_eq!(error.kind, Refusal::Unknown, "{fates:?}");
        assert!(error.message.contains("may have landed"), "{error}");
        assert_eq!(second, Ok(()), "{fates:?}");
        let log = desk.log();
        assert_eq!(log[log.len() - 3..], ["read", "read", "7 2"], "{fates:?}");
        assert_eq!(desk.value().as_deref(), Some("2"), "{fates:?}");
    }
}

#[test]
fn what_the_store_rejects_has_not_landed_and_says_why() {
    let ((first, second, desk), end_ms) = written_through(&[Fate::Rejected]);
    let error = first.expect_err("it was rejected");
    assert_eq!((error.kind, error.message.as_str()), (Refusal::Store, "access denied"));
    assert_eq!((second, end_ms), (Ok(()), 0));
    assert_eq!(desk.value().as_deref(), Some("2"));
    // Not so after an attempt that may have landed.
    use Fate::{LostBefore, Rejected};
    let fates = &[LostBefore, Rejected, Rejected, Rejected, Rejected];
    let ((first, ..), _) = written_through(fates);
    assert_eq!(kind(first), Refusal::Unknown);
}

#[test]
fn a_write_that_was_dropped_is_found_by_the_next_one() {
    let (desk, _) = on_virtual_time(async |member| {
        let desk = Desk::default();
        let mut state = Checkpoint::open(&desk, &member, owner(7)).await.expect("it opens");
        desk.fates.borrow_mut().extend([Fate::Hang]);
        {
            let write = std::pin::pin!(state.write("1"));
            assert!(futures::poll!(write).is_pending());
        }
        assert_eq!(state.value(), None, "nobody knows that it landed");
        state.write("2").await.expect("it is written");
        drop(state);
        desk
    });
    assert_eq!(desk.log(), ["read", "7 null", "7 1", "read", "7 2"]);
}

#[test]
fn what_is_no_checkpoint_is_never_written_over_and_the_error_says_what_to_do() {
    let lease = br#"{"leaderID":"a","term":3,"session":"s","leaseMs":15000,"value":1,"format":1}"#;
    let newer = br#"{"leaderID":"a","term":3,"session":"s","value":1,"format":2}"#;
    let long =
        format!(r#"{{"leaderID":"a","term":3,"session":"s","value":"{}"}}"#, "x".repeat(61_500));
    for (body, why) in [
        (b"".to_vec(), "no checkpoint"),
        (b"{\"orders\":[1,2]}".to_vec(), "no checkpoint"),
        (b"[1,2,3]".to_vec(), "no checkpoint"),
        (vec![0xff, 0x00, 0xfe], "no checkpoint"),
        (vec![b'x'; 65_537], "larger than 64 KiB"),
        (format!("{}1{}", "[".repeat(500), "]".repeat(500)).into_bytes(), "no checkpoint"),
        (newer.to_vec(), "update this"),
        (br#"{"leaderID":"a","term":9007199254740993,"value":1}"#.to_vec(), "no checkpoint"),
        (br#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z"}"#.to_vec(), "no checkpoint"),
        (br#"{"leaderID":"a","session":"s","value":1}"#.to_vec(), "no checkpoint"),
        (long.into_bytes(), "no checkpoint"),
        (lease.to_vec(), "a lease"),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let desk = Desk::default();
        desk.memory.overwrite(Some(body.clone()));
        let opened = open(&desk, 1, owner(7));
        let error = opened.err().expect("it is refused");
        assert_eq!(error.kind, Refusal::Unusable, "{shown}: {error}");
        assert!(error.message.starts_with("checkpoint \"state.json\" (a desk): "), "{error}");
        let says = [why, "use another key"].iter().all(|text| error.message.contains(text));
        assert!(says && desk.log() == ["read"], "{shown}: {error}");
        assert_eq!(desk.memory.body(), Some(body), "{shown}");
        // The same under an open one: written over by a foreign hand.
        let desk = Desk::default();
        let mut state = open(&desk, 1, owner(7)).expect("it opens");
        // Gone, older, or nonsense.
        let older = lease::write(&Lease { term: Some(6), ..desk.record() });
        let bodies = [None, Some(older), Some(shown.as_bytes().to_vec())];
        desk.memory.overwrite(bodies[shown.len() % 3].clone());
        assert_eq!(kind(at_once(state.write("1"))), Refusal::Unusable, "{shown}");
    }
}

#[test]
fn a_value_is_kept_to_the_byte_up_to_its_limit_and_no_text_becomes_a_field() {
    let desk = Desk::default();
    let named = Settings {
        lockfile_path: Some("leader".to_owned()),
        server_id: Some("\u{e0001}\"\u{202e}".repeat(128)),
        ..Settings::default()
    };
    // The longest name that there is, escaped to its longest.
    let named = Config::new(&named).expect("a good config");
    let owner = Owner::new(&named, &"s".repeat(32), 7, "state.json").expect("a good owner");
    let mut state = open(&desk, 1, owner).expect("it opens");
    let full = format!("\"{}\"", "ä".repeat(MAX_VALUE_BYTES / 2 - 1));
    for value in [
        full.as_str(),
        r#"{"b":1.50,"a":[1e400,-0,"\ud800\u0000",{}],"term":99}"#,
        "null",
        "false",
        &format!("{}1{}", "[".repeat(126), "]".repeat(126)),
    ] {
        at_once(state.write(value)).expect("it is written");
        let body = desk.memory.body().expect("there is one");
        assert!(body.len() <= lease::MAX_RECORD_BYTES, "{}", body.len());
        let record = lease_of(&body);
        assert_eq!((record.term, record.extra.get("value")), (Some(7), Some(value)));
        assert_eq!(state.value(), (value != "null").then_some(value));
    }
    let sent = desk.log().len();
    for (value, rule) in [
        (
            format!("\"{}\"", "x".repeat(MAX_VALUE_BYTES - 1)),
            "61441 bytes: a checkpoint has at most",
        ),
        (r#"1,"term":99"#.to_owned(), "must be JSON"),
        (r#"1,"value":1"#.to_owned(), "must be JSON"),
        ("{".to_owned(), "must be JSON"),
        ("NaN".to_owned(), "must be JSON"),
        (String::new(), "must be JSON"),
        ("1 2".to_owned(), "must be JSON"),
        (format!("{}1{}", "[".repeat(127), "]".repeat(127)), "126 levels"),
    ] {
        let error = at_once(state.write(&value)).expect_err(&value);
        assert_eq!(error.kind, Refusal::Value);
        assert!(error.message.contains(rule), "{error}");
    }
    assert_eq!(desk.log().len(), sent, "nothing was sent");
    at_once(state.write("1")).expect("and it goes on");
}

#[test]
fn a_bucket_keeps_checkpoints_beside_a_lease_and_a_table_a_zone_and_epochs_keep_none() {
    let host = Virtual::default;
    let store =
        S3Store::new(bucket_with("leader.json"), credentials(), host()).expect("a good store");
    assert_eq!(store.at("/a").err().expect("no good key").field, "lockfilePath");
    assert!(Owner::new(&config(), &"s".repeat(1025), 7, "a").is_err());
    let cursor = store.at("reports/cursor.json").expect("a good key");
    assert_eq!(cursor.describe(), store.describe());
    // Refused before a request leaves: the virtual host has nothing to answer it with.
    fn refused(store: &impl Store) {
        let error = open(store, 1, owner(7)).err().expect("it is refused");
        assert_eq!(error.kind, Refusal::Store, "{error}");
        assert!(error.message.contains("keeps leases only"), "{error}");
    }
    refused(&DynamoDbStore::new(item(), credentials(), host()).expect("a good table"));
    refused(&Route53Store::new(record_set(), credentials(), host()).expect("a good zone"));
    refused(&EpochStore::new(bucket_with("cursor"), credentials(), host()).expect("a good bucket"));
}
