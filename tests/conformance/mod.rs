//! What every store must do: one function per behaviour, for every store. [`check`] runs them all.
//!
//! Free of test harness and runtime, so that the same list runs natively and in wasm.

use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use edgelect::json::Object;
use edgelect::lease::{
    self, Flaw, Lease, MAX_RECORD_BYTES, MAX_TERM, OperatorRequest, Reading, Remains, Stamp,
};
use edgelect::store::{Condition, Facts, Operation, Outcome, Record, Store, Version};

/// What a body may be that no member wrote, in bytes.
const HOSTILE_BYTES: usize = 10 * 1024 * 1024;

/// What is particular to a store.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether answers carry the store's own time (`Date`).
    pub tells_time: bool,
    /// Whether answers with a body say when it was written (`Last-Modified`).
    pub dates_records: bool,
    /// Whether equal bodies have equal versions.
    pub versions_are_hashes: bool,
    /// Whether it keeps the bytes that it is given, whatever they are. False where the record has a layout of
    /// the store's own, such as an item's attributes or a TXT value.
    pub keeps_any_body: bool,
}

#[allow(dead_code)] // Each suite has some of these stores.
impl Traits {
    /// S3 as documented.
    pub const S3: Self = Self {
        tells_time: true,
        dates_records: true,
        versions_are_hashes: true,
        keeps_any_body: true,
    };
    /// R2, by its binding and by Wrangler's local S3 endpoint: no `Date`.
    pub const R2: Self = Self { tells_time: false, ..Self::S3 };
    /// A storage that counts its writes and tells its time.
    pub const COUNTED: Self = Self { versions_are_hashes: false, ..Self::S3 };
    /// One object for each term: a version has the time of its last write in it.
    pub const EPOCHS: Self = Self { versions_are_hashes: false, keeps_any_body: false, ..Self::S3 };
    /// What keeps leases and nothing else, as an item's attributes or a TXT record's values.
    pub const LEASES: Self = Self { dates_records: false, keeps_any_body: false, ..Self::S3 };
    /// Memory of a process that gave it no clock.
    pub const TIMELESS: Self = Self { tells_time: false, dates_records: false, ..Self::S3 };
}

/// How many behaviours there are. Two are of stores that keep any body. One is of stores whose conditions cover the version:
/// elsewhere each write here is a claim, and nothing tells what was deleted from what was never there.
pub const ALL: usize = 15;

/// Runs every behaviour, each on a place of its own that `fresh` gives, and returns how many ran; `histories` are what has to
/// show that a store keeps its word under any other meeting of reads and writes.
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
        a_second_create_is_refused_and_the_first_stays,
        an_update_with_a_stale_version_is_refused_and_its_loser_reads_who_won,
        each_write_has_a_version_of_its_own_which_a_read_finds_and_which_reads_as_unchanged,
        equal_bodies_have_equal_versions_where_versions_are_hashes,
        the_whole_record_comes_back,
        a_tombstone_is_read_as_released_and_claimed_by_its_version,
        terms_come_back_exactly_over_the_whole_life_of_the_key,
        a_write_whose_answer_is_lost_is_read_back_and_refuses_its_own_repetition,
        a_dropped_operation_holds_nobody_up_and_lands_at_most_once,
        ten_creates_and_ten_updates_of_one_version_have_one_winner,
        time_is_told_as_promised,
    );
    if fresh().condition_covers_version() {
        let elsewhere = create(&fresh(), record("elsewhere", 1)).await;
        let elsewhere = elsewhere.expect("nothing is in the way");
        an_update_of_an_absent_record_is_refused(&fresh(), &elsewhere).await;
        ran += 1;
    }
    if traits.keeps_any_body {
        run!(a_body_of_the_largest_size_is_read, a_body_that_is_no_record_is_unreadable_and_healed,);
    }
    ran
}

async fn an_absent_record_is_missing(store: &impl Store, _: Traits) {
    assert_eq!(read(store).await, Outcome::Missing);
    let version = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    let answer = store.perform(Operation::Read { unless: Some(version) }).await;
    assert_eq!(answer.outcome, Outcome::Missing, "also for somebody who knew a version");
}

async fn a_second_create_is_refused_and_the_first_stays(store: &impl Store, _: Traits) {
    create(store, record("a", 1)).await.expect("nothing is in the way");
    assert_eq!(create(store, record("b", 1)).await, None);
    assert_eq!(create(store, record("a", 1)).await, None, "not even with the same body");
    assert_eq!(found(store).await.1.leader_id, "a");
}

/// Also where the leader is the same again: the versions that a stale condition could win by differ, because every body is
/// new (S4).
async fn an_update_with_a_stale_version_is_refused_and_its_loser_reads_who_won(
    store: &impl Store,
    _: Traits,
) {
    let first = create(store, record("a", 1)).await.expect("nothing is in the way");
    let between = update(store, record("b", 1), &first).await.expect("the version is current");
    assert_eq!(update(store, record("b", 1), &first).await, None, "not even with the same body");
    let last = update(store, record("a", 2), &between).await.expect("the version is current");
    for stale in [&first, &between] {
        assert_eq!(update(store, record("c", 1), stale).await, None, "{stale:?}");
    }
    let (version, lease) = found(store).await;
    assert_eq!((version, lease.leader_id.as_str(), lease.sequence), (last, "a", 2));
}

async fn an_update_of_an_absent_record_is_refused(store: &impl Store, elsewhere: &Version) {
    assert_eq!(update(store, record("a", 1), elsewhere).await, None);
    assert_eq!(read(store).await, Outcome::Missing);
}

async fn each_write_has_a_version_of_its_own_which_a_read_finds_and_which_reads_as_unchanged(
    store: &impl Store,
    _: Traits,
) {
    let mut version = create(store, record("a", 0)).await.expect("nothing is in the way");
    let mut seen = HashSet::from([version.clone()]);
    for sequence in 1..20 {
        let leader = if sequence % 2 == 0 { "a" } else { "b" };
        let known = Operation::Read { unless: Some(version.clone()) };
        assert_eq!(store.perform(known.clone()).await.outcome, Outcome::Unchanged);
        let next = update(store, record(leader, sequence), &version).await;
        version = next.expect("the version is current");
        assert!(seen.insert(version.clone()), "{version:?} is the version of two bodies");
        match store.perform(known).await.outcome {
            Outcome::Found { version: told, reading: Reading::Lease(lease) } => {
                assert_eq!((told, lease.leader_id.as_str()), (version.clone(), leader));
                assert_eq!(lease.sequence, sequence);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Not a virtue, but what S3 does: it is why every body has to be new (S4).
async fn equal_bodies_have_equal_versions_where_versions_are_hashes(
    store: &impl Store,
    traits: Traits,
) {
    let first = create(store, record("a", 1)).await.expect("nothing is in the way");
    let second = update(store, record("a", 2), &first).await.expect("the version is current");
    let again = update(store, record("a", 1), &second).await.expect("the version is current");
    assert_eq!(first == again, traits.versions_are_hashes);
    if traits.versions_are_hashes {
        let stale = update(store, record("b", 1), &first).await;
        assert!(stale.is_some(), "the stale condition wins: nothing tells the two states apart");
    }
}

async fn a_body_of_the_largest_size_is_read(store: &impl Store, _: Traits) {
    let mut text = body("a", 1);
    text.resize(MAX_RECORD_BYTES, b' ');
    create(store, text).await.expect("nothing is in the way");
    assert_eq!(found(store).await.1.leader_id, "a");
}

async fn a_body_that_is_no_record_is_unreadable_and_healed(store: &impl Store, _: Traits) {
    let mut long = body("a", 1);
    long.resize(MAX_RECORD_BYTES + 1, b' ');
    let mut before = None;
    for (number, (bytes, flaw)) in (1..).zip([
        (Vec::new(), Flaw::NotJson),
        ((0..=255).collect(), Flaw::NotJson),
        // As texts these two would be read.
        (b"\xef\xbb\xbf{\"leaderID\":\"a\"}".to_vec(), Flaw::NotJson),
        (b"{\"leaderID\":\"a\xff\xfe\"}".to_vec(), Flaw::NotJson),
        (long, Flaw::TooLarge),
        (vec![b' '; HOSTILE_BYTES], Flaw::TooLarge),
    ]) {
        let condition = before.map_or(Condition::Absent, Condition::Match);
        let version = write(store, bytes, condition).await.expect("nothing is in the way");
        let reading = Reading::Unreadable(flaw, Remains::NONE);
        assert_eq!(read(store).await, Outcome::Found { version: version.clone(), reading });
        before = update(store, record("a", number), &version).await;
        assert_eq!(found(store).await.1.sequence, number, "it can be healed");
    }
}

async fn the_whole_record_comes_back(store: &impl Store, _: Traits) {
    let mut extra = Object::new();
    extra.set("theirs", r#"{"<&'é":["ä\\\"",2.5,null]}"#);
    let lease = Lease {
        leader_addr: "10.0.1.42:8443".to_owned(),
        lease_ms: Some(45_000),
        acquired: Some(WRITTEN_MS),
        transitions: 7,
        parked: true,
        slot: Some(1_795_000_020_000),
        slot_done: Some(false),
        slot_result: Some("done".to_owned()),
        slot_took_ms: Some(1_234),
        slot_failures: Some(2),
        slot_term: Some(7),
        operator: OperatorRequest::read(r#"{"ask":"pause","id":"1","by":"é\"","why":"","term":7}"#),
        extra,
        ..record("server-001", 17)
    };
    create(store, lease.clone()).await.expect("nothing is in the way");
    let (_, read) = found(store).await;
    assert!(lease.operator.is_some());
    // Where requests can be made, the holder knows its own write again.
    assert!(read.is_same_write(&lease) || !store.condition_covers_version());
    // A layout of the store's own may round the time that is only for people.
    assert_eq!(Lease { last_updated: lease.last_updated, ..read }, lease);
}

async fn a_tombstone_is_read_as_released_and_claimed_by_its_version(store: &impl Store, _: Traits) {
    let held = create(store, record("a", 1)).await.expect("nothing is in the way");
    assert!(!found(store).await.1.released());
    let tombstone = Lease { last_updated: Stamp::Released, ..record("a", 2) };
    let released = update(store, tombstone.clone(), &held).await.expect("the version is current");
    let (version, lease) = found(store).await;
    assert_eq!((&version, &lease), (&released, &tombstone));
    assert_eq!(create(store, record("b", 1)).await, None, "a tombstone is no absence");
    assert_eq!(update(store, record("a", 3), &held).await, None, "the lease is over");
    update(store, record("b", 1), &released).await.expect("the version is current");
    let (_, lease) = found(store).await;
    assert_eq!((lease.leader_id.as_str(), lease.released()), ("b", false));
}

async fn terms_come_back_exactly_over_the_whole_life_of_the_key(store: &impl Store, _: Traits) {
    // No epoch's term is below its number.
    let least = if store.condition_covers_version() { 1 } else { TERM };
    let terms = [least, 1_795_244_292_345, 1_795_244_292_346, MAX_TERM - 1, MAX_TERM];
    let mut version = None;
    for (sequence, term) in (1..).zip(terms) {
        for last_updated in [Stamp::At(WRITTEN_MS), Stamp::Released] {
            let sequence = 2 * sequence + u64::from(last_updated == Stamp::Released);
            let lease = Lease { term: Some(term), last_updated, ..record("a", sequence) };
            let condition = version.take().map_or(Condition::Absent, Condition::Match);
            version = write(store, lease, condition).await;
            let (current, read) = found(store).await;
            assert_eq!((Some(current), read.term), (version.clone(), Some(term)));
        }
    }
}

async fn a_write_whose_answer_is_lost_is_read_back_and_refuses_its_own_repetition(
    store: &impl Store,
    _: Traits,
) {
    store.perform(written(record("a", 1), None)).await;
    assert_eq!(create(store, record("a", 2)).await, None, "our own write is in the way");
    let (version, lease) = found(store).await;
    assert_eq!((lease.session, lease.sequence), (Some(session("a", 1)), 1));
    store.perform(written(record("a", 3), Some(version.clone()))).await;
    assert_eq!(update(store, record("a", 4), &version).await, None, "our own write is in the way");
    let (version, lease) = found(store).await;
    assert_eq!((lease.session, lease.sequence), (Some(session("a", 3)), 3));
    update(store, record("a", 5), &version).await.expect("the version is current");
}

/// The driver drops what takes too long; it may still land, but no later than the next write (S8).
async fn a_dropped_operation_holds_nobody_up_and_lands_at_most_once(store: &impl Store, _: Traits) {
    let first = create(store, record("a", 1)).await.expect("nothing is in the way");
    drop_once_begun(store, Operation::Read { unless: None }).await;
    let condition = Condition::Match(first.clone());
    let write = Operation::Write { record: record("a", 2).into(), condition };
    drop_once_begun(store, write).await;
    let mut taken = None;
    // The dropped write may land between a read and the write after it, once.
    for attempt in 1..=3 {
        let (version, _) = found(store).await;
        taken = update(store, record("b", attempt), &version).await;
        if taken.is_some() {
            break;
        }
    }
    assert!(taken.is_some(), "the dropped write is in the way");
    assert_eq!(update(store, record("a", 3), &first).await, None);
    let (version, lease) = found(store).await;
    assert_eq!((Some(version), lease.leader_id.as_str()), (taken, "b"));
}

async fn drop_once_begun(store: &impl Store, operation: Operation) {
    let mut begun = pin!(store.perform(operation));
    poll_fn(|context| {
        let _ = begun.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

async fn ten_creates_and_ten_updates_of_one_version_have_one_winner(store: &impl Store, _: Traits) {
    let mut condition = Condition::Absent;
    for sequence in [1, 2] {
        let at = &condition;
        let writes = (0..10).map(|number| async move {
            pause().await;
            let record = record(&number.to_string(), sequence);
            (number, write(store, record, at.clone()).await)
        });
        let results = futures::future::join_all(writes).await;
        let winners: Vec<_> =
            results.into_iter().filter(|(_, version)| version.is_some()).collect();
        assert_eq!(winners.len(), 1, "{winners:?}");
        let (version, lease) = found(store).await;
        let winner = (winners[0].0.to_string(), winners[0].1.clone());
        assert_eq!(winner, (lease.leader_id, Some(version.clone())));
        condition = Condition::Match(version);
    }
}

async fn time_is_told_as_promised(store: &impl Store, traits: Traits) {
    create(store, record("a", 1)).await.expect("nothing is in the way");
    let answer = store.perform(Operation::Read { unless: None }).await;
    let Facts { date_ms, last_modified_ms, relayed, cached, .. } = answer.facts;
    assert!(!relayed && !cached, "nothing is between us and the store");
    assert_eq!(
        (date_ms.is_some(), last_modified_ms.is_some()),
        (traits.tells_time, traits.dates_records)
    );
    let (Some(date_ms), Some(last_modified_ms)) = (date_ms, last_modified_ms) else { return };
    // Two clocks of one store may differ a little; storeSkew is 2 s.
    assert!(last_modified_ms <= date_ms + 2_000, "{last_modified_ms} {date_ms}");
    assert!(date_ms - last_modified_ms.min(date_ms) < 60_000, "{last_modified_ms} {date_ms}");
}

const TERM: u64 = 1_000;

/// When the records say that they were written, in milliseconds since the Unix epoch.
const WRITTEN_MS: i64 = 1_795_000_000_000;

/// The session of a record here: none writes twice.
fn session(leader_id: &str, sequence: u64) -> String {
    format!("{leader_id}-{sequence}")
}

pub fn body(leader_id: &str, sequence: u64) -> Vec<u8> {
    lease::write(&record(leader_id, sequence))
}

pub fn record(leader_id: &str, sequence: u64) -> Lease {
    Lease {
        term: Some(TERM),
        session: Some(session(leader_id, sequence)),
        sequence,
        lease_ms: Some(15_000),
        ..Lease::bare(leader_id, Stamp::At(WRITTEN_MS))
    }
}

/// Lets the others of a race go first once, also on a store that answers at once.
pub fn pause() -> impl Future<Output = ()> {
    let mut waited = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

pub async fn read(store: &impl Store) -> Outcome {
    store.perform(Operation::Read { unless: None }).await.outcome
}

pub async fn found(store: &impl Store) -> (Version, Lease) {
    match read(store).await {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, *lease),
        other => panic!("{}: no lease: {other:?}", store.describe()),
    }
}

pub async fn create(store: &impl Store, record: impl Into<Record>) -> Option<Version> {
    write(store, record, Condition::Absent).await
}

pub async fn update(
    store: &impl Store,
    record: impl Into<Record>,
    version: &Version,
) -> Option<Version> {
    write(store, record, Condition::Match(version.clone())).await
}

pub fn written(record: impl Into<Record>, version: Option<Version>) -> Operation {
    let condition = version.map_or(Condition::Absent, Condition::Match);
    Operation::Write { record: record.into(), condition }
}

/// The new version, or `None` if the store refused.
async fn write(
    store: &impl Store,
    record: impl Into<Record>,
    condition: Condition,
) -> Option<Version> {
    match store.perform(Operation::Write { record: record.into(), condition }).await.outcome {
        Outcome::Written { version } => Some(version.expect("the answer names the new version")),
        Outcome::Refused => None,
        other => panic!("{}: neither written nor refused: {other:?}", store.describe()),
    }
}
