//! What every store must do: one function per behaviour, for every store. [`check`] runs them all.
//!
//! Free of test harness and runtime, so that the same list runs natively and in wasm.

use std::future::Future;
use std::task::Poll;

use edgelect::json::Object;
use edgelect::lease::{self, Flaw, Lease, MAX_RECORD_BYTES, Reading, Stamp};
use edgelect::store::{Answer, Condition, Facts, Operation, Outcome, Store, Version};

/// What is particular to a store.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether answers carry `Date`, and answers with a body `Last-Modified`.
    pub tells_time: bool,
    /// Whether equal bodies have equal versions.
    pub versions_are_hashes: bool,
}

/// Runs every behaviour, each on a place of its own that `fresh` gives. Panics with the name of the behaviour that does not
/// hold. Returns how many ran.
pub async fn check<S: Store>(traits: Traits, mut fresh: impl FnMut() -> S) -> usize {
    let mut ran = 0;
    macro_rules! run {
        ($($behaviour:ident),* $(,)?) => {
            $(
                $behaviour(&fresh(), traits).await;
                ran += 1;
            )*
        };
    }
    run!(
        an_absent_record_is_missing,
        a_create_is_read_back,
        a_second_create_is_refused_and_the_first_stays,
        an_update_with_the_version_replaces,
        an_update_with_a_stale_version_is_refused,
        an_update_of_an_absent_record_is_refused,
        a_known_version_reads_as_unchanged,
        another_version_reads_as_found,
        an_answer_to_a_write_names_the_version_that_a_read_finds,
        equal_bodies_have_equal_versions_where_versions_are_hashes,
        unknown_fields_come_back,
        a_body_of_the_largest_size_is_read,
        a_body_over_the_largest_size_is_too_large,
        a_binary_body_is_unreadable,
        an_empty_body_is_unreadable,
        eight_creates_have_one_winner,
        five_workers_count_to_fifty,
        eight_updates_of_one_version_have_one_winner,
        time_is_told_as_promised,
    );
    ran
}

async fn an_absent_record_is_missing(store: &impl Store, _: Traits) {
    assert_eq!(read(store).await, Outcome::Missing);
    let version = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    let answer = store.perform(Operation::Read { unless: Some(version) }).await;
    assert_eq!(answer.outcome, Outcome::Missing, "also for somebody who knew a version");
}

async fn a_create_is_read_back(store: &impl Store, _: Traits) {
    let version = create(store, body("a", 1)).await.expect("nothing is in the way");
    let (found, lease) = found(store).await;
    assert_eq!((found, lease.leader_id.as_str(), lease.sequence), (version, "a", 1));
}

async fn a_second_create_is_refused_and_the_first_stays(store: &impl Store, _: Traits) {
    create(store, body("a", 1)).await.expect("nothing is in the way");
    assert_eq!(create(store, body("b", 1)).await, None);
    assert_eq!(create(store, body("a", 1)).await, None, "not even with the same body");
    assert_eq!(found(store).await.1.leader_id, "a");
}

async fn an_update_with_the_version_replaces(store: &impl Store, _: Traits) {
    let first = create(store, body("a", 1)).await.expect("nothing is in the way");
    let second = update(store, body("a", 2), &first).await.expect("the version is current");
    assert_ne!(first, second);
    let third = update(store, body("a", 3), &second).await.expect("the version is current");
    let (version, lease) = found(store).await;
    assert_eq!((version, lease.sequence), (third, 3));
}

async fn an_update_with_a_stale_version_is_refused(store: &impl Store, _: Traits) {
    let stale = create(store, body("a", 1)).await.expect("nothing is in the way");
    update(store, body("b", 1), &stale).await.expect("the version is current");
    assert_eq!(update(store, body("a", 2), &stale).await, None);
    assert_eq!(found(store).await.1.leader_id, "b");
}

async fn an_update_of_an_absent_record_is_refused(store: &impl Store, _: Traits) {
    let version = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    assert_eq!(update(store, body("a", 1), &version).await, None);
    assert_eq!(read(store).await, Outcome::Missing);
}

async fn a_known_version_reads_as_unchanged(store: &impl Store, _: Traits) {
    let version = create(store, body("a", 1)).await.expect("nothing is in the way");
    for _ in 0..3 {
        let answer = store.perform(Operation::Read { unless: Some(version.clone()) }).await;
        assert_eq!(answer.outcome, Outcome::Unchanged);
    }
}

async fn another_version_reads_as_found(store: &impl Store, _: Traits) {
    let old = create(store, body("a", 1)).await.expect("nothing is in the way");
    let new = update(store, body("a", 2), &old).await.expect("the version is current");
    match store.perform(Operation::Read { unless: Some(old) }).await.outcome {
        Outcome::Found { version, .. } => assert_eq!(version, new),
        other => panic!("{other:?}"),
    }
}

async fn an_answer_to_a_write_names_the_version_that_a_read_finds(store: &impl Store, _: Traits) {
    let mut version = create(store, body("a", 0)).await.expect("nothing is in the way");
    for sequence in 1..5 {
        assert_eq!(found(store).await.0, version);
        version =
            update(store, body("a", sequence), &version).await.expect("the version is current");
    }
}

/// Not a virtue, but what S3 does: it is why every body has to be new (S4).
async fn equal_bodies_have_equal_versions_where_versions_are_hashes(
    store: &impl Store,
    traits: Traits,
) {
    let first = create(store, body("a", 1)).await.expect("nothing is in the way");
    let second = update(store, body("a", 2), &first).await.expect("the version is current");
    let again = update(store, body("a", 1), &second).await.expect("the version is current");
    assert_eq!(first == again, traits.versions_are_hashes);
    if traits.versions_are_hashes {
        let stale = update(store, body("b", 1), &first).await;
        assert!(stale.is_some(), "the stale condition wins: nothing tells the two states apart");
    }
}

async fn unknown_fields_come_back(store: &impl Store, _: Traits) {
    let text = r#"{"leaderID":"a","zone":"fra","nested":{"ä":[1,2.5,null,"\u0000"]},"sequence":4}"#;
    create(store, text.as_bytes().to_vec()).await.expect("nothing is in the way");
    let (_, lease) = found(store).await;
    assert_eq!(lease.extra.get("zone"), Some("\"fra\""));
    assert_eq!(lease.extra.get("nested"), Some(r#"{"ä":[1,2.5,null,"\u0000"]}"#));
    assert_eq!(lease.sequence, 4);
}

async fn a_body_of_the_largest_size_is_read(store: &impl Store, _: Traits) {
    let mut text = body("a", 1);
    text.resize(MAX_RECORD_BYTES, b' ');
    create(store, text).await.expect("nothing is in the way");
    assert_eq!(found(store).await.1.leader_id, "a");
}

async fn a_body_over_the_largest_size_is_too_large(store: &impl Store, _: Traits) {
    let mut text = body("a", 1);
    text.resize(MAX_RECORD_BYTES + 1, b' ');
    let version = create(store, text).await.expect("nothing is in the way");
    let reading = Reading::Unreadable(Flaw::TooLarge, None);
    assert_eq!(read(store).await, Outcome::Found { version: version.clone(), reading });
    update(store, body("a", 2), &version).await.expect("it can be healed");
}

async fn a_binary_body_is_unreadable(store: &impl Store, _: Traits) {
    let bytes: Vec<u8> = (0..=255).collect();
    let version = create(store, bytes).await.expect("nothing is in the way");
    let reading = Reading::Unreadable(Flaw::NotJson, None);
    assert_eq!(read(store).await, Outcome::Found { version, reading });
}

async fn an_empty_body_is_unreadable(store: &impl Store, _: Traits) {
    let version = create(store, Vec::new()).await.expect("nothing is in the way");
    let reading = Reading::Unreadable(Flaw::NotJson, None);
    assert_eq!(read(store).await, Outcome::Found { version, reading });
}

async fn eight_creates_have_one_winner(store: &impl Store, _: Traits) {
    let creates = (0..8).map(|number| async move {
        pause().await;
        (number, create(store, body(&number.to_string(), 1)).await)
    });
    let results = futures::future::join_all(creates).await;
    let winners: Vec<_> = results.into_iter().filter(|(_, version)| version.is_some()).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let (version, lease) = found(store).await;
    assert_eq!((winners[0].0.to_string(), winners[0].1.clone()), (lease.leader_id, Some(version)));
}

async fn eight_updates_of_one_version_have_one_winner(store: &impl Store, _: Traits) {
    let version = &create(store, body("before", 1)).await.expect("nothing is in the way");
    let updates = (0..8).map(|number| async move {
        pause().await;
        update(store, body(&number.to_string(), 1), version).await
    });
    let winners = futures::future::join_all(updates).await.into_iter().flatten().count();
    assert_eq!(winners, 1);
}

async fn five_workers_count_to_fifty(store: &impl Store, _: Traits) {
    create(store, body("counter", 0)).await.expect("nothing is in the way");
    let workers = (0..5).map(|number| async move {
        let mut refusals = 0_u32;
        for _ in 0..10 {
            loop {
                let (version, lease) = found(store).await;
                pause().await;
                let next = body(&format!("worker {number}"), lease.sequence + 1);
                if update(store, next, &version).await.is_some() {
                    break;
                }
                refusals += 1;
            }
        }
        refusals
    });
    let refusals: u32 = futures::future::join_all(workers).await.into_iter().sum();
    assert_eq!(found(store).await.1.sequence, 50);
    assert!(refusals > 0, "the workers never met, so this showed nothing");
}

async fn time_is_told_as_promised(store: &impl Store, traits: Traits) {
    create(store, body("a", 1)).await.expect("nothing is in the way");
    let answer = store.perform(Operation::Read { unless: None }).await;
    let Facts { date_ms, last_modified_ms, relayed, cached } = answer.facts;
    assert!(!relayed && !cached, "nothing is between us and the store");
    if !traits.tells_time {
        assert_eq!(date_ms, None);
        return;
    }
    let date_ms = date_ms.expect("the store tells its time");
    let last_modified_ms = last_modified_ms.expect("the store says when the record was written");
    assert_eq!((date_ms % 1_000, last_modified_ms % 1_000), (0, 0));
    // Two clocks of one store may differ a little; storeSkew is 2 s.
    assert!(last_modified_ms <= date_ms + 2_000, "{last_modified_ms} {date_ms}");
    assert!(date_ms - last_modified_ms.min(date_ms) < 60_000, "{last_modified_ms} {date_ms}");
}

/// A small record.
pub fn body(leader_id: &str, sequence: u64) -> Vec<u8> {
    lease::write(&Lease {
        leader_id: leader_id.to_owned(),
        leader_addr: String::new(),
        last_updated: Stamp::At(0),
        term: Some(1),
        session: Some("conformance".to_owned()),
        sequence,
        lease_ms: Some(15_000),
        acquired: None,
        transitions: 0,
        parked: false,
        slot: None,
        slot_done: None,
        slot_result: None,
        slot_took_ms: None,
        slot_failures: None,
        extra: Object::new(),
    })
}

/// Lets the others of a race go first once, also on a store that answers at once.
fn pause() -> impl Future<Output = ()> {
    let mut waited = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

async fn read(store: &impl Store) -> Outcome {
    store.perform(Operation::Read { unless: None }).await.outcome
}

async fn found(store: &impl Store) -> (Version, Lease) {
    match read(store).await {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, *lease),
        other => panic!("{}: no lease: {other:?}", store.describe()),
    }
}

async fn create(store: &impl Store, body: Vec<u8>) -> Option<Version> {
    write(store, body, Condition::Absent).await
}

async fn update(store: &impl Store, body: Vec<u8>, version: &Version) -> Option<Version> {
    write(store, body, Condition::Match(version.clone())).await
}

/// The new version, or `None` if the store refused.
async fn write(store: &impl Store, body: Vec<u8>, condition: Condition) -> Option<Version> {
    let Answer { outcome, .. } = store.perform(Operation::Write { body, condition }).await;
    match outcome {
        Outcome::Written { version } => Some(version.expect("the answer names the new version")),
        Outcome::Refused => None,
        other => panic!("{}: neither written nor refused: {other:?}", store.describe()),
    }
}
