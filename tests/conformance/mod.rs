//! What every store must do: one function per behaviour, for every store. [`check`] runs them all.
//!
//! Free of test harness and runtime, so that the same list runs natively and in wasm.

pub mod aws;
#[cfg(not(target_arch = "wasm32"))]
pub mod double;
pub mod histories;
#[cfg(not(target_arch = "wasm32"))]
pub mod life;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use edgelect::json::Object;
use edgelect::lease::{
    self, Flaw, Format, Lease, MAX_RECORD_BYTES, MAX_TERM, OperatorRequest, Reading, Remains, Stamp,
};
use edgelect::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};

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
    /// Whether a read may show a state of before it began (a resolver's cache): then only writes are held
    /// against the order of time.
    #[allow(dead_code)] // Read where histories are checked.
    pub reads_may_be_stale: bool,
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
        reads_may_be_stale: false,
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

/// How many behaviours a store shows that keeps any body.
pub const ALL: usize = 30;

/// How many of them are about leases alone.
pub const OF_LEASES: usize = 23;

/// How many of those hold where a condition does not cover the version: each body here has a session of its own, so that
/// each write is a claim. What is deleted there, nothing tells from what was never there.
pub const OF_CLAIMS: usize = 22;

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
        an_update_with_a_stale_version_is_refused_and_its_loser_reads_who_won,
        a_known_version_reads_as_unchanged,
        another_version_reads_as_found,
        an_answer_to_a_write_names_the_version_that_a_read_finds,
        equal_bodies_have_equal_versions_where_versions_are_hashes,
        a_stale_condition_fails_after_a_b_a_with_new_bodies,
        no_version_ever_comes_back_with_another_body,
        the_whole_record_comes_back,
        a_tombstone_is_read_as_released_and_claimed_by_its_version,
        terms_come_back_exactly_over_the_whole_life_of_the_key,
        a_write_whose_answer_is_lost_is_read_back_and_refuses_its_own_repetition,
        a_write_that_never_arrived_leaves_the_old_state,
        a_dropped_operation_holds_nobody_up_and_lands_at_most_once,
        ten_creates_have_one_winner,
        ten_updates_of_one_version_have_one_winner,
        ten_stale_updates_beside_a_current_one_change_nothing,
        five_workers_count_to_fifty,
        time_is_told_as_promised,
    );
    if fresh().condition_covers_version() {
        let elsewhere = create(&fresh(), record("elsewhere", 1)).await;
        let elsewhere = elsewhere.expect("nothing is in the way");
        an_update_of_an_absent_record_is_refused(&fresh(), &elsewhere).await;
        ran += 1;
    }
    if traits.keeps_any_body {
        run!(
            unknown_fields_come_back,
            a_body_of_the_largest_size_is_read,
            a_body_over_the_largest_size_is_too_large,
            a_body_of_ten_mebibytes_is_too_large_and_healed,
            a_binary_body_is_unreadable,
            an_empty_body_is_unreadable,
            hostile_bodies_read_as_what_they_are,
        );
    }
    ran
}

async fn an_absent_record_is_missing(store: &impl Store, _: Traits) {
    assert_eq!(read(store).await, Outcome::Missing);
    let version = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    let answer = store.perform(Operation::Read { unless: Some(version) }).await;
    assert_eq!(answer.outcome, Outcome::Missing, "also for somebody who knew a version");
}

async fn a_create_is_read_back(store: &impl Store, _: Traits) {
    let version = create(store, record("a", 1)).await.expect("nothing is in the way");
    let (found, lease) = found(store).await;
    assert_eq!((found, lease.leader_id.as_str(), lease.sequence), (version, "a", 1));
}

async fn a_second_create_is_refused_and_the_first_stays(store: &impl Store, _: Traits) {
    create(store, record("a", 1)).await.expect("nothing is in the way");
    assert_eq!(create(store, record("b", 1)).await, None);
    assert_eq!(create(store, record("a", 1)).await, None, "not even with the same body");
    assert_eq!(found(store).await.1.leader_id, "a");
}

async fn an_update_with_the_version_replaces(store: &impl Store, _: Traits) {
    let first = create(store, record("a", 1)).await.expect("nothing is in the way");
    let second = update(store, record("a", 2), &first).await.expect("the version is current");
    assert_ne!(first, second);
    let third = update(store, record("a", 3), &second).await.expect("the version is current");
    let (version, lease) = found(store).await;
    assert_eq!((version, lease.sequence), (third, 3));
}

async fn an_update_with_a_stale_version_is_refused_and_its_loser_reads_who_won(
    store: &impl Store,
    _: Traits,
) {
    let stale = create(store, record("a", 1)).await.expect("nothing is in the way");
    let current = update(store, record("b", 1), &stale).await.expect("the version is current");
    assert_eq!(update(store, record("a", 2), &stale).await, None);
    assert_eq!(update(store, record("b", 1), &stale).await, None, "not even with the same body");
    let (version, lease) = found(store).await;
    assert_eq!((version, lease.leader_id.as_str()), (current, "b"));
}

async fn an_update_of_an_absent_record_is_refused(store: &impl Store, elsewhere: &Version) {
    assert_eq!(update(store, record("a", 1), elsewhere).await, None);
    assert_eq!(read(store).await, Outcome::Missing);
}

async fn a_known_version_reads_as_unchanged(store: &impl Store, _: Traits) {
    let version = create(store, record("a", 1)).await.expect("nothing is in the way");
    for _ in 0..3 {
        let answer = store.perform(Operation::Read { unless: Some(version.clone()) }).await;
        assert_eq!(answer.outcome, Outcome::Unchanged);
    }
}

async fn another_version_reads_as_found(store: &impl Store, _: Traits) {
    let old = create(store, record("a", 1)).await.expect("nothing is in the way");
    let new = update(store, record("a", 2), &old).await.expect("the version is current");
    match store.perform(Operation::Read { unless: Some(old) }).await.outcome {
        Outcome::Found { version, .. } => assert_eq!(version, new),
        other => panic!("{other:?}"),
    }
}

async fn an_answer_to_a_write_names_the_version_that_a_read_finds(store: &impl Store, _: Traits) {
    let mut version = create(store, record("a", 0)).await.expect("nothing is in the way");
    for sequence in 1..5 {
        assert_eq!(found(store).await.0, version);
        version =
            update(store, record("a", sequence), &version).await.expect("the version is current");
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

async fn unknown_fields_come_back(store: &impl Store, _: Traits) {
    let text = r#"{"leaderID":"a","zone":"fra","nested":{"ä":[1,2.5,null,"\u0000"]},"sequence":4}"#;
    let Reading::Lease(lease) = lease::read(text.as_bytes()) else { panic!("no lease: {text}") };
    create(store, *lease).await.expect("nothing is in the way");
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
    is_unreadable_and_healed(store, text, Flaw::TooLarge).await;
}

async fn a_body_of_ten_mebibytes_is_too_large_and_healed(store: &impl Store, _: Traits) {
    is_unreadable_and_healed(store, vec![b' '; HOSTILE_BYTES], Flaw::TooLarge).await;
}

async fn a_binary_body_is_unreadable(store: &impl Store, _: Traits) {
    is_unreadable_and_healed(store, (0..=255).collect(), Flaw::NotJson).await;
}

async fn an_empty_body_is_unreadable(store: &impl Store, _: Traits) {
    is_unreadable_and_healed(store, Vec::new(), Flaw::NotJson).await;
}

async fn is_unreadable_and_healed(store: &impl Store, bytes: Vec<u8>, flaw: Flaw) {
    let version = create(store, bytes).await.expect("nothing is in the way");
    let reading = Reading::Unreadable(flaw, Remains::NONE);
    assert_eq!(read(store).await, Outcome::Found { version: version.clone(), reading });
    update(store, record("a", 1), &version).await.expect("it can be healed");
    assert_eq!(found(store).await.1.leader_id, "a");
}

/// But for a web page and an error document: over HTTP these are no record, whatever the status says.
async fn hostile_bodies_read_as_what_they_are(store: &impl Store, _: Traits) {
    let deep = [b'['; MAX_RECORD_BYTES];
    let bodies: [&[u8]; 8] = [
        b"null",
        b"{}",
        b"[1,2",
        b"{\"leaderID\":\"a\xff\xfe\"}",
        b"{\"leaderID\":\"a\",\"leaseMs\":-1}",
        b"{\"leaderID\":\"a\",\"format\":99}",
        b"\xef\xbb\xbf{\"leaderID\":\"a\"}",
        &deep,
    ];
    let mut version = create(store, b"0".to_vec()).await.expect("nothing is in the way");
    for bytes in bodies {
        version = update(store, bytes.to_vec(), &version).await.expect("the version is current");
        // A record of ours is one of the other format where a store keeps records for Kubernetes members.
        let other = Format::named("kubernetes").map(|format| format.read(bytes));
        let readings = other.into_iter().chain([lease::read(bytes)]);
        let mut found =
            readings.map(|reading| Outcome::Found { version: version.clone(), reading });
        let read = read(store).await;
        assert!(found.any(|one| one == read), "{read:?}");
    }
}

/// The versions that a stale condition could win by are never the same, because every body is new (S4).
async fn a_stale_condition_fails_after_a_b_a_with_new_bodies(store: &impl Store, _: Traits) {
    let first = create(store, record("a", 1)).await.expect("nothing is in the way");
    let between = update(store, record("b", 1), &first).await.expect("the version is current");
    let last = update(store, record("a", 2), &between).await.expect("the version is current");
    for stale in [&first, &between] {
        assert_eq!(update(store, record("c", 1), stale).await, None, "{stale:?}");
    }
    let (version, lease) = found(store).await;
    assert_eq!((version, lease.leader_id.as_str(), lease.sequence), (last, "a", 2));
}

async fn no_version_ever_comes_back_with_another_body(store: &impl Store, _: Traits) {
    let mut version = create(store, record("a", 0)).await.expect("nothing is in the way");
    let mut seen = HashSet::from([version.clone()]);
    for sequence in 1..20 {
        let leader = if sequence % 2 == 0 { "a" } else { "b" };
        version = update(store, record(leader, sequence), &version)
            .await
            .expect("the version is current");
        assert!(seen.insert(version.clone()), "{version:?} is the version of two bodies");
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

/// The numbers alone; that an election makes them grow on this store is `life`'s to show.
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

/// What is lost on the way to a store or back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Request,
    Answer,
}

/// A store whose next operation is lost.
struct Lossy<'a, S> {
    store: &'a S,
    next: Cell<Option<Loss>>,
}

impl<S: Store> Store for Lossy<'_, S> {
    async fn perform(&self, operation: Operation) -> Answer {
        let lost = Answer::unknown(Fault::new(FaultKind::Timeout, "lost on the way"));
        match self.next.take() {
            None => self.store.perform(operation).await,
            Some(Loss::Request) => lost,
            Some(Loss::Answer) => {
                self.store.perform(operation).await;
                lost
            }
        }
    }

    fn condition_covers_version(&self) -> bool {
        self.store.condition_covers_version()
    }

    fn describe(&self) -> String {
        self.store.describe()
    }
}

impl<S: Store> Lossy<'_, S> {
    async fn lose(&self, loss: Loss, lease: Lease, condition: Condition) {
        self.next.set(Some(loss));
        let answer = self.perform(Operation::Write { record: lease.into(), condition }).await;
        assert!(matches!(answer.outcome, Outcome::Unknown { .. }), "{answer:?}");
    }
}

async fn a_write_whose_answer_is_lost_is_read_back_and_refuses_its_own_repetition(
    store: &impl Store,
    _: Traits,
) {
    let lossy = Lossy { store, next: Cell::new(None) };
    lossy.lose(Loss::Answer, record("a", 1), Condition::Absent).await;
    assert_eq!(create(&lossy, record("a", 2)).await, None, "our own write is in the way");
    let (version, lease) = found(&lossy).await;
    assert_eq!((lease.session, lease.sequence), (Some(session("a", 1)), 1));
    lossy.lose(Loss::Answer, record("a", 3), Condition::Match(version.clone())).await;
    assert_eq!(update(&lossy, record("a", 4), &version).await, None, "our own write is in the way");
    let (version, lease) = found(&lossy).await;
    assert_eq!((lease.session, lease.sequence), (Some(session("a", 3)), 3));
    update(&lossy, record("a", 5), &version).await.expect("the version is current");
}

async fn a_write_that_never_arrived_leaves_the_old_state(store: &impl Store, _: Traits) {
    let lossy = Lossy { store, next: Cell::new(None) };
    lossy.lose(Loss::Request, record("a", 1), Condition::Absent).await;
    assert_eq!(read(&lossy).await, Outcome::Missing);
    let version = create(&lossy, record("a", 2)).await.expect("nothing is in the way");
    lossy.lose(Loss::Request, record("a", 3), Condition::Match(version.clone())).await;
    let answer = lossy.perform(Operation::Read { unless: Some(version.clone()) }).await;
    assert_eq!(answer.outcome, Outcome::Unchanged);
    update(&lossy, record("a", 4), &version).await.expect("the version is current");
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

async fn ten_creates_have_one_winner(store: &impl Store, _: Traits) {
    one_of_ten_wins(store, None).await;
}

async fn ten_updates_of_one_version_have_one_winner(store: &impl Store, _: Traits) {
    let version = create(store, record("before", 1)).await.expect("nothing is in the way");
    one_of_ten_wins(store, Some(version)).await;
}

async fn one_of_ten_wins(store: &impl Store, version: Option<Version>) {
    let condition = version.map_or(Condition::Absent, Condition::Match);
    let condition = &condition;
    let writes = (0..10).map(|number| async move {
        pause().await;
        (number, write(store, record(&number.to_string(), 1), condition.clone()).await)
    });
    let results = futures::future::join_all(writes).await;
    let winners: Vec<_> = results.into_iter().filter(|(_, version)| version.is_some()).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let (version, lease) = found(store).await;
    assert_eq!((winners[0].0.to_string(), winners[0].1.clone()), (lease.leader_id, Some(version)));
}

async fn ten_stale_updates_beside_a_current_one_change_nothing(store: &impl Store, _: Traits) {
    let stale = &create(store, record("before", 1)).await.expect("nothing is in the way");
    let current =
        &update(store, record("between", 1), stale).await.expect("the version is current");
    let updates = (0..11).map(|number| async move {
        pause().await;
        let condition = if number == 5 { current } else { stale };
        update(store, record(&number.to_string(), 1), condition).await
    });
    let results = futures::future::join_all(updates).await;
    let winners: Vec<_> = results.iter().map(Option::is_some).collect();
    assert_eq!(winners, [vec![false; 5], vec![true], vec![false; 5]].concat());
    let (version, lease) = found(store).await;
    assert_eq!((Some(version), lease.leader_id.as_str()), (results[5].clone(), "5"));
}

async fn five_workers_count_to_fifty(store: &impl Store, _: Traits) {
    create(store, record("counter", 0)).await.expect("nothing is in the way");
    let shown = &RefCell::new(HashSet::new());
    let workers = (0..5).map(|number| async move {
        let worker = format!("worker-{number}");
        let mut refusals = 0_u32;
        for _ in 0..10 {
            loop {
                let (version, lease) = found(store).await;
                shown.borrow_mut().insert(lease.session);
                pause().await;
                let next = lease.sequence + 1;
                if update(store, record(&worker, next), &version).await.is_some() {
                    break;
                }
                refusals += 1;
                // It was written, and succeeded before a listing showed it: by somebody who has read it.
                let succeeded = shown.borrow().contains(&Some(session(&worker, next)));
                if succeeded && !store.condition_covers_version() {
                    break;
                }
            }
        }
        refusals
    });
    let refusals: u32 = futures::future::join_all(workers).await.into_iter().sum();
    assert_eq!(found(store).await.1.sequence, 50);
    assert!(refusals > 0, "the workers never met, so this showed nothing");
}

async fn time_is_told_as_promised(store: &impl Store, traits: Traits) {
    create(store, record("a", 1)).await.expect("nothing is in the way");
    let answer = store.perform(Operation::Read { unless: None }).await;
    let Facts { date_ms, last_modified_ms, relayed, cached } = answer.facts;
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

/// The term of every record here but where terms are the matter.
const TERM: u64 = 1_000;

/// When the records say that they were written, in milliseconds since the Unix epoch.
const WRITTEN_MS: i64 = 1_795_000_000_000;

/// The session of a record here: none writes twice.
fn session(leader_id: &str, sequence: u64) -> String {
    format!("{leader_id}-{sequence}")
}

/// A small record as JSON.
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

/// A write on a version, or a create.
#[allow(dead_code)] // Of the suites that look at outcomes which are no lease and no refusal.
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
