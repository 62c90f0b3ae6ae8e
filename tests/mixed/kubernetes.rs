//! Groups that members of the object-store lock with `holderIdentity` share with edgelect's.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::calendar;
use edgelect::election::Election;
use edgelect::json::{self, Object};
use edgelect::lease::Format;
use edgelect::object_store_lock::{LeaderElectionRecord, LockErrorKind, ObjectStoreLock};
use edgelect::store::Version;
use edgelect::store::memory::Memory;
use edgelect::{Follow, Handle, Settings};

use crate::mixed::bucket::Bucket;
use crate::mixed::world::{Group, Member, World, played};
use worlds::sim::chance::Chance;
use worlds::virtual_time::{Virtual, config_of};

const LEASE_MS: u64 = 15_000;
const RETRY_MS: u64 = 2_000;

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
    const SAFE: Self = Self {
        lease_ms: LEASE_MS,
        renew_deadline_ms: 9_000,
        retry_ms: RETRY_MS,
        request_ms: 1_000,
    };

    /// The longest that their leader acts after its last renewal has landed: the answer to it, the deadline, an attempt
    /// (a Get and a put) that began just in time and failed, and the pause before the tick that finds it over.
    const fn longest_unrenewed_ms(&self) -> u64 {
        self.request_ms + self.renew_deadline_ms + 2 * self.request_ms + self.retry_ms
    }
}

/// A member as the document describes it: it counts its deadline from when a renewal has ended, looks at it once per
/// `retryPeriod`, and passes over errors until then. It knows no margin and no store's clock.
struct Theirs {
    identity: String,
    bucket: Bucket,
    /// Its wall clock may be off from the store's.
    host: Virtual,
    pace: Pace,
    /// Whether its `retryPeriod` is from tick to tick, or from the end of one; the document does not say.
    at_fixed_rate: bool,
    /// When the next tick is due.
    due_ms: Cell<u64>,
    cancelled: Rc<Cell<bool>>,
    /// Between its two callbacks.
    leads: Cell<bool>,
    /// Whether it reaches the record by the crate's lock, or by JSON of its own.
    by_lock: bool,
}

/// What it knows of the record.
struct Seen {
    record: LeaderElectionRecord,
    version: Version,
}

impl Seen {
    /// As its own parser reads the five fields.
    fn parsed(body: &[u8], version: Version) -> Self {
        let read = Object::read(body).expect("JSON");
        let text = |name| read.get(name).and_then(json::text);
        let time = |name| {
            let told = text(name).expect("its parser needs one");
            calendar::read_rfc3339(&told).expect("a time").unix_ms
        };
        let holder = text("holderIdentity").unwrap_or_default();
        let mut record = LeaderElectionRecord::new(&holder, LEASE_MS, time("renewTime"));
        record.acquire_time_ms = Some(time("acquireTime"));
        let transitions = read.get("leaderTransitions").and_then(json::whole);
        record.leader_transitions = transitions.expect("its parser needs a number");
        Self { record, version }
    }
}

/// What the storage throws, other than a lost condition.
struct Thrown;

impl Theirs {
    fn now_ms(&self) -> u64 {
        self.host.wall_ms()
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, String>>,
    ) -> Result<T, Thrown> {
        let answer = self.host.within(self.pace.request_ms, request).await;
        answer.ok_or(Thrown)?.map_err(|_| Thrown)
    }

    fn lock(&self) -> ObjectStoreLock<'_, Bucket, Virtual> {
        ObjectStoreLock::new(&self.bucket, &self.host, &self.identity).expect("an object")
    }

    async fn get(&self) -> Result<Option<Seen>, Thrown> {
        if self.by_lock {
            let lock = self.lock();
            let found = async { lock.get().await.map_err(|error| error.message) };
            let found = self.within(found).await?;
            return Ok(found.map(|(record, version)| Seen { record, version }));
        }
        let found = self.within(self.bucket.get()).await?;
        Ok(found.map(|(body, version)| Seen::parsed(&body, version)))
    }

    async fn put(
        &self,
        holder: &str,
        acquired_ms: i64,
        transitions: u64,
        on: Option<Seen>,
    ) -> Result<bool, Thrown> {
        let (lease_ms, now_ms) = (self.pace.lease_ms, self.now_ms() as i64);
        if self.by_lock {
            let lock = self.lock();
            let fresh = LeaderElectionRecord::new(holder, lease_ms, now_ms);
            let mut record = on.as_ref().map_or(fresh, |seen| seen.record.clone());
            record.holder_identity = holder.to_owned();
            record.lease_duration_ms = Some(lease_ms);
            record.acquire_time_ms = Some(acquired_ms);
            record.renew_time_ms = now_ms;
            record.leader_transitions = transitions;
            let put = async {
                let put = match &on {
                    Some(seen) => lock.update(&seen.version, &record).await,
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
            r#"{{"holderIdentity":{},"leaseDuration":"{}s","acquireTime":"{}","renewTime":"{}","leaderTransitions":{transitions}}}"#,
            json::of(holder),
            lease_ms / 1_000,
            calendar::rfc3339(acquired_ms),
            calendar::rfc3339(now_ms),
        );
        let version = on.map(|seen| seen.version);
        self.within(self.bucket.put_if_match(body.into_bytes(), version)).await
    }

    fn can_become_leader(&self, seen: &Seen) -> bool {
        let now_ms = self.now_ms() as i64;
        let until_ms = seen.record.renew_time_ms + self.pace.lease_ms as i64;
        seen.record.holder_identity.is_empty() || now_ms > until_ms
    }

    async fn try_acquire_or_renew(&self) -> Result<bool, Thrown> {
        let now_ms = self.now_ms() as i64;
        let Some(seen) = self.get().await? else {
            return self.put(&self.identity, now_ms, 0, None).await;
        };
        let LeaderElectionRecord { acquire_time_ms, renew_time_ms, leader_transitions, .. } =
            seen.record;
        let (acquired_ms, transitions) =
            (acquire_time_ms.unwrap_or(renew_time_ms), leader_transitions);
        if seen.record.holder_identity == self.identity {
            return self.put(&self.identity, acquired_ms, transitions, Some(seen)).await;
        }
        if !self.can_become_leader(&seen) {
            return Ok(false);
        }
        self.put(&self.identity, now_ms, transitions + 1, Some(seen)).await
    }

    /// `start()` until it is cancelled.
    async fn run(&self) {
        while !self.cancelled.get() {
            if let Ok(true) = self.try_acquire_or_renew().await {
                self.leads.set(true);
                self.renew_with_timeout().await;
                // Its callback has stopped the work before the record says so.
                self.leads.set(false);
                if self.cancelled.get() {
                    let _ = self.release().await;
                }
            }
            self.pause().await;
        }
    }

    async fn renew_with_timeout(&self) {
        let mut renew_by_ms = self.now_ms() + self.pace.renew_deadline_ms;
        loop {
            self.pause().await;
            if self.cancelled.get() || self.now_ms() > renew_by_ms {
                return;
            }
            match self.try_acquire_or_renew().await {
                Ok(true) => renew_by_ms = self.now_ms() + self.pace.renew_deadline_ms,
                Ok(false) => return,
                Err(Thrown) => {}
            }
        }
    }

    async fn release(&self) -> Result<bool, Thrown> {
        let Some(seen) = self.get().await? else { return Ok(false) };
        if seen.record.holder_identity != self.identity {
            return Ok(false);
        }
        let (now_ms, transitions) = (self.now_ms() as i64, seen.record.leader_transitions);
        self.put("", now_ms, transitions, Some(seen)).await
    }

    /// Until the next tick, or a cancellation.
    async fn pause(&self) {
        let from_ms = if self.at_fixed_rate { self.due_ms.get() } else { self.host.now_ms.get() };
        self.due_ms.set(from_ms + self.pace.retry_ms);
        self.host.sleep_until_or(self.due_ms.get(), &self.cancelled).await;
    }
}

/// A group over one object behind a network that loses, delays and cuts off.
type Fleet = World<Place>;

struct Place {
    bucket: Bucket,
    pace: Pace,
}

fn fleet(seed: u64, pace: Pace) -> Fleet {
    let mut fleet = World::strict(50, |time| {
        let clock = time.clone();
        let memory = Memory::new(move || clock.wall_ms()).in_format(Format::Kubernetes);
        Place { bucket: Bucket::new(time, memory, Chance::new(seed)), pace }
    });
    fleet.seed = seed;
    let bucket = fleet.place.bucket.clone();
    fleet.each_step = Box::new(move || bucket.arrive());
    fleet
}

impl Group for Place {
    fn chance(&self) -> &Rc<RefCell<Chance>> {
        &self.bucket.chance
    }

    fn ours(fleet: &Fleet) -> Member {
        let follow = [Follow::Tight, Follow::Balanced];
        fleet.elector(follow[fleet.below(2) as usize])
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        Some(fleet.lock_member())
    }
}

impl Fleet {
    fn elector(&self, follow: Follow) -> Member {
        let name = format!("ours-{}", self.next_number());
        let lease_ms = self.place.pace.lease_ms;
        let (server_id, follow) = (Some(name.clone()), Some(follow));
        let config = config_of(Settings { server_id, follow, ..settings(lease_ms) });
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
        let ahead_ms = self.below(700) as i64 - 350;
        let at_fixed_rate = self.below(2) == 0;
        let number = self.next_number();
        let (name, cancelled) = (format!("theirs-{number}"), Rc::default());
        let theirs = Rc::new(Theirs {
            identity: name.clone(),
            by_lock: (number / 2).is_multiple_of(2),
            bucket: self.place.bucket.another_way(),
            host: self.time.ahead(ahead_ms),
            pace: self.place.pace,
            at_fixed_rate,
            due_ms: Cell::new(self.now_ms()),
            cancelled: Rc::clone(&cancelled),
            leads: Cell::new(false),
        });
        let (seen, cut_until_ms) = (Rc::clone(&theirs), Rc::clone(&theirs.bucket.cut_until_ms));
        self.admit(&name, false, move || seen.leads.get(), async move { theirs.run().await });
        Member::theirs(name, cancelled, cut_until_ms)
    }

    fn text(&self) -> String {
        String::from_utf8(self.place.bucket.memory.body().unwrap_or_default()).expect("text")
    }
}

fn settings(lease_ms: u64) -> Settings {
    Settings {
        leader_timeout_ms: Some(lease_ms),
        frequent_interval_ms: Some(lease_ms / 3),
        ..Settings::default()
    }
}

#[test]
fn they_take_a_lease_that_we_release_and_we_take_one_that_they_release() {
    let mut fleet = fleet(1, Pace::SAFE);
    let ours = fleet.elector(Follow::Balanced);
    fleet.leader_within(60_000);
    let theirs = fleet.lock_member();
    fleet.pass(30_000);
    ours.stop();
    assert!(fleet.pass_until(RETRY_MS + 1_500, |fleet| fleet.ours_leads() == Some(false)));
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
    let followed = played(60, 16, LEASE_MS, |seed| {
        let fleet = fleet(seed, Pace::SAFE);
        fleet.place.bucket.failing_per_mille.set([0, 50, 200][seed as usize % 3]);
        fleet
    });
    assert!(followed.iter().all(|times| *times > 100), "{followed:?}");
}

#[test]
fn by_the_documents_own_settings_their_leader_acts_beside_ours_after_its_lease() {
    let pace = Pace::DOCUMENT;
    let mut longest_ms = 0;
    for seed in 1..=30 {
        let mut fleet = fleet(seed, pace);
        let theirs = fleet.lock_member();
        fleet.leader_within(5_000);
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
        let problem = handle.with(|election| election.problem().map(ToString::to_string));
        assert!(
            problem.as_ref().is_some_and(|text| text.contains("another format")),
            "{problem:?}"
        );
        fleet.leader_within(LEASE_MS + 20_000);
        assert!(fleet.observer.tokens.borrow()[0] > term);
    }
}
