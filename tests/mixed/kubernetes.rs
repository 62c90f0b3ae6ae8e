//! Groups that members of the object-store lock with `holderIdentity` share with edgelect's.

use edgelect::json::Object;
use edgelect::object_store_lock::{LeaderElectionRecord as Record, LockErrorKind, ObjectStoreLock};
use edgelect::{calendar, json};

use crate::driver::prelude::*;
use crate::mixed::bucket::Bucket;
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Group, Member, World, played};

const LEASE_MS: u64 = 15_000;

/// The settings of the document, and its HTTP client's own.
#[derive(Clone, Copy)]
struct Pace {
    lease_ms: u64,
    renew_deadline_ms: u64,
    retry_ms: u64,
    request_ms: u64,
}

impl Pace {
    /// As the document configures itself.
    const DOCUMENT: Self =
        Self { lease_ms: 45_000, renew_deadline_ms: 45_000, retry_ms: 15_000, request_ms: 1_000 };
    /// Such that a leader of theirs has stopped before its lease is over.
    const SAFE: Self =
        Self { lease_ms: 15_000, renew_deadline_ms: 9_000, retry_ms: 2_000, request_ms: 1_000 };

    /// The longest that their leader acts after its last renewal has landed: the answer to it, the deadline, an attempt
    /// (a Get and a put) that began just in time and failed, and the pause before the tick that finds it over.
    const fn longest_unrenewed_ms(&self) -> u64 {
        self.request_ms + self.renew_deadline_ms + 2 * self.request_ms + self.retry_ms
    }
}

/// One member's way to the record, and what it does by the document: it counts its deadline from when a renewal has ended,
/// looks at it once per `retryPeriod`, and passes over errors until then. It knows no margin and no store's clock.
#[derive(Clone)]
struct Theirs {
    bucket: Bucket,
    /// Its wall clock may be off from the store's.
    host: Virtual,
    pace: Pace,
    /// Whether it reaches the record by the crate's lock, or by JSON of its own.
    by_lock: bool,
    renew_by_ms: Rc<Cell<u64>>,
}

type Seen = (Record, Version);

/// As its own parser reads the five fields.
fn parsed(body: &[u8]) -> Record {
    let read = Object::read(body).expect("JSON");
    let text = |name| read.get(name).and_then(json::text).expect("its parser needs one");
    let time = |name| calendar::read_rfc3339(&text(name)).expect("a time").unix_ms;
    let mut record = Record::new(&text("holderIdentity"), LEASE_MS, time("renewTime"));
    record.acquire_time_ms = Some(time("acquireTime"));
    let transitions = read.get("leaderTransitions").and_then(json::whole);
    record.leader_transitions = transitions.expect("its parser needs a number");
    record
}

/// What the storage throws, other than a lost condition.
struct Thrown;

impl Theirs {
    async fn within<T>(&self, ask: impl Future<Output = Result<T, String>>) -> Result<T, Thrown> {
        let answer = self.host.within(self.pace.request_ms, ask).await;
        answer.ok_or(Thrown)?.map_err(|_| Thrown)
    }

    fn lock(&self, id: &str) -> ObjectStoreLock<'_, Bucket, Virtual> {
        ObjectStoreLock::new(&self.bucket, &self.host, id).expect("an object")
    }

    async fn get(&self, id: &str) -> Result<Option<Seen>, Thrown> {
        if self.by_lock {
            let lock = self.lock(id);
            return self.within(async { lock.get().await.map_err(|error| error.message) }).await;
        }
        let found = self.within(self.bucket.get()).await?;
        Ok(found.map(|(body, version)| (parsed(&body), version)))
    }

    async fn put(&self, id: &str, record: Record, on: Option<Version>) -> Result<bool, Thrown> {
        let mut record = record;
        record.lease_duration_ms = Some(self.pace.lease_ms);
        record.renew_time_ms = self.host.wall_ms() as i64;
        if self.by_lock {
            let lock = self.lock(id);
            let put = async {
                let put = match &on {
                    Some(version) => lock.update(version, &record).await,
                    None => lock.create(&record).await,
                };
                match put {
                    Ok(_) => Ok(true),
                    Err(error) if error.kind == LockErrorKind::Conflict => Ok(false),
                    Err(error) => Err(error.message),
                }
            };
            return self.within(put).await;
        }
        let body = format!(
            r#"{{"holderIdentity":{},"leaseDuration":"{}s","acquireTime":"{}","renewTime":"{}","leaderTransitions":{}}}"#,
            json::of(&record.holder_identity),
            self.pace.lease_ms / 1_000,
            calendar::rfc3339(record.acquire_time_ms.expect("it has one")),
            calendar::rfc3339(record.renew_time_ms),
            record.leader_transitions,
        );
        self.within(self.bucket.put_if_match(body.into_bytes(), on)).await
    }

    async fn try_acquire_or_renew(&self, id: &str) -> Result<bool, Thrown> {
        let (now_ms, lease_ms) = (self.host.wall_ms() as i64, self.pace.lease_ms);
        let fresh = Record::new(id, lease_ms, now_ms);
        let Some((mut record, version)) = self.get(id).await? else {
            return self.put(id, fresh, None).await;
        };
        let until_ms = record.renew_time_ms + lease_ms as i64;
        let acquired_ms = match &*record.holder_identity {
            holder if holder == id => record.acquire_time_ms.unwrap_or(record.renew_time_ms),
            holder if !holder.is_empty() && now_ms <= until_ms => return Ok(false),
            _ => {
                record.leader_transitions += 1;
                now_ms
            }
        };
        record.holder_identity = id.to_owned();
        record.acquire_time_ms = Some(acquired_ms);
        self.put(id, record, Some(version)).await
    }
}

impl Lock for Theirs {
    async fn take(&self, id: &str, leads: bool, _lease_ms: u64, clock: &Virtual) -> Option<u64> {
        if leads && clock.wall_ms() > self.renew_by_ms.get() {
            return None;
        }
        match self.try_acquire_or_renew(id).await {
            Ok(true) => self.renew_by_ms.set(clock.wall_ms() + self.pace.renew_deadline_ms),
            Err(Thrown) if leads => {}
            _ => return None,
        }
        Some(u64::MAX)
    }

    /// Its callback has stopped the work before the record says so.
    async fn release(&self, id: &str) {
        let Ok(Some((mut record, version))) = self.get(id).await else { return };
        if record.holder_identity == id {
            record.holder_identity = String::new();
            record.acquire_time_ms = Some(self.host.wall_ms() as i64);
            let _ = self.put(id, record, Some(version)).await;
        }
    }
}

/// A group over one object behind a network that loses, delays and cuts off.
type Fleet = World<Place>;

struct Place {
    bucket: Bucket,
    pace: Pace,
}

fn fleet(seed: u64, pace: Pace) -> Fleet {
    let mut fleet = World::strict(50, seed, |time, chance| {
        let mut bucket = Bucket::new(time, true, chance);
        bucket.memory = bucket.memory.in_format(Format::Kubernetes);
        Place { bucket, pace }
    });
    let bucket = fleet.place.bucket.clone();
    fleet.each_step = Box::new(move || bucket.arrive());
    fleet
}

impl Group for Place {
    fn ours(fleet: &Fleet) -> Member {
        fleet.elector(fleet.pick(&[Follow::Tight, Follow::Balanced]))
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        Some(fleet.lock_member())
    }
}

fn is_led(fleet: &Fleet) -> bool {
    fleet.ours_leads().is_some()
}

impl Fleet {
    fn elector(&self, follow: Follow) -> Member {
        let name = format!("ours-{}", self.next_number());
        let lease_ms = self.place.pace.lease_ms;
        let config = config_of(Settings {
            server_id: Some(name.clone()),
            follow: Some(follow),
            leader_timeout_ms: Some(lease_ms),
            frequent_interval_ms: Some(lease_ms / 3),
            ..Settings::default()
        });
        let seed = self.below(u64::MAX);
        let handle = Handle::new(Election::new(config, format!("session-{name}"), seed));
        let bucket = self.place.bucket.another_way();
        let cut_until_ms = Rc::clone(&bucket.cut_until_ms);
        self.elect(&name, handle.clone(), bucket, self.time.clone(), ());
        Member::ours(name, handle, cut_until_ms)
    }

    /// One of theirs, whose clock is off by less than the margin of ours less the second that `Date` is rounded by and
    /// the way of an answer.
    fn lock_member(&self) -> Member {
        let host = self.time.ahead(self.below(700) as i64 - 350);
        let from_end = self.below(2) == 0;
        let number = self.next_number();
        let (pace, bucket) = (self.place.pace, self.place.bucket.another_way());
        let by_lock = (number / 2).is_multiple_of(2);
        let lock = Theirs { bucket, host: host.clone(), pace, by_lock, renew_by_ms: Rc::default() };
        let name = format!("theirs-{number}");
        let theirs = Coordinator::new(&name, lock, host, pace.lease_ms, pace.retry_ms);
        let theirs = self.coordinate(Coordinator { from_end, ..theirs });
        Member::theirs(name, theirs.stops, theirs.lock.bucket.cut_until_ms)
    }

    fn text(&self) -> String {
        String::from_utf8(self.place.bucket.memory.body().unwrap_or_default()).expect("text")
    }
}

#[test]
fn they_take_a_lease_that_we_release_and_we_take_one_that_they_release() {
    let mut fleet = fleet(1, Pace::SAFE);
    let ours = fleet.elector(Follow::Balanced);
    assert!(fleet.pass_until(60_000, is_led));
    let theirs = fleet.lock_member();
    fleet.pass(30_000);
    ours.stop();
    assert!(fleet.led_by(&theirs.name, Pace::SAFE.retry_ms + 1_500));
    fleet.elector(Follow::Balanced);
    fleet.pass(30_000);
    assert_eq!(fleet.leaders(), [&*theirs.name], "its renewals are honoured");
    theirs.stop();
    // Balanced looks once a lease.
    assert!(fleet.pass_until(LEASE_MS + 4_500, |fleet| fleet.ours_leads() == Some(true)));
    assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    assert!(fleet.text().contains(r#""leaderTransitions":2"#), "{}", fleet.text());
}

#[test]
fn while_their_leader_stops_before_its_lease_is_over_one_leads_through_deaths_cuts_and_failures() {
    const { assert!(Pace::SAFE.longest_unrenewed_ms() < Pace::SAFE.lease_ms) };
    played(60, 16, LEASE_MS, 100, |seed| {
        let fleet = fleet(seed, Pace::SAFE);
        fleet.place.bucket.failing_per_mille.set([0, 50, 200][seed as usize % 3]);
        fleet
    });
}

#[test]
fn by_the_documents_own_settings_their_leader_acts_beside_ours_after_its_lease() {
    let pace = Pace::DOCUMENT;
    let mut longest_ms = 0;
    for seed in 1..=30 {
        let mut fleet = fleet(seed, pace);
        let theirs = fleet.lock_member();
        assert!(fleet.pass_until(5_000, is_led));
        fleet.elector(Follow::Tight);
        fleet.pass(60_000 + fleet.below(pace.retry_ms));
        fleet.cut(&theirs, 2 * pace.lease_ms);
        fleet.watch(2 * pace.lease_ms);
        assert_eq!(fleet.ours_leads(), Some(true), "seed {seed}");
        assert_eq!(fleet.observer.tokens.borrow().len(), 1, "seed {seed}");
        longest_ms = longest_ms.max(fleet.observer.beside_ms.get());
    }
    println!("for up to {longest_ms} ms");
    let most_ms = pace.longest_unrenewed_ms() - pace.lease_ms;
    assert!((5_000..=most_ms).contains(&longest_ms), "{longest_ms} ms of at most {most_ms}");
}

#[test]
fn s2_tokens_grow_beside_members_by_the_documents_own_settings_and_never_do_two_of_ours_lead() {
    let (mut seeds, mut terms) = (0, 0);
    for seed in 1..=30 {
        let mut fleet = fleet(seed, Pace::DOCUMENT);
        fleet.place.bucket.failing_per_mille.set(50);
        fleet.play(12, Pace::DOCUMENT.lease_ms);
        assert_eq!(*fleet.observer.violations.borrow(), [""; 0], "seed {seed}");
        terms += fleet.observer.tokens.borrow().len();
        seeds += usize::from(!fleet.observer.overlaps.borrow().is_empty());
    }
    println!("{terms} terms of ours; two led in {seeds} of 30 schedules");
    assert!(terms > 100 && seeds > 0, "{terms} terms, {seeds}");
}

#[test]
fn a_record_of_the_native_format_is_left_alone_until_its_grace_is_over_and_its_term_counts() {
    for (told, told_ms) in [(r#","leaseMs":60000"#, 60_000), ("", LEASE_MS)] {
        let mut fleet = fleet(3, Pace::SAFE);
        let term = 1_900_000_000_000_000_u64;
        let native = format!(
            r#"{{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":{term}{told}}}"#
        );
        fleet.place.bucket.memory.overwrite(Some(native.clone().into_bytes()));
        let handle = fleet.elector(Follow::Balanced).handle.expect("it is ours");
        fleet.pass(told_ms - 1_000);
        assert_eq!(fleet.text(), native);
        assert!(problem(&handle).contains("another format"), "{}", problem(&handle));
        assert!(fleet.pass_until(LEASE_MS + 20_000, is_led));
        assert!(fleet.observer.tokens.borrow()[0] > term);
    }
}
