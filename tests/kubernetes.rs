//! The object-store lock that came with `holderIdentity` and `renewTime`: its records, and groups that its members share
//! with edgelect's.

#[allow(dead_code)]
#[path = "s3lect/bucket.rs"]
mod bucket;
#[allow(dead_code)]
#[path = "sim/chance.rs"]
mod chance;
#[allow(dead_code)] // No store here hangs.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bucket::{Bucket, Shared};
use chance::Chance;
use edgelect::calendar;
use edgelect::election::{Election, Event, Input};
use edgelect::json::{self, Object};
use edgelect::lease::{Flaw, Format, Lease, Reading, Remains, Stamp};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Operation, Store, Version};
use edgelect::{Config, Follow, Handle, Host, Settings, run};
use futures::executor::LocalPool;
use futures::future::{Either, select};
use futures::task::LocalSpawnExt;
use virtual_time::Virtual;

const LEASE_MS: u64 = 15_000;
const RETRY_MS: u64 = 2_000;

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
    for json in [
        "\"\"",
        "\"s\"",
        "\"45x\"",
        "-45",
        "4.5e1",
        "true",
        "\"45s \"",
        "\"4 5s\"",
        "\"1.2.3s\"",
        "[45]",
    ] {
        let reading = read(&THEIRS.replace(r#""45s""#, json));
        assert_eq!(reading, Reading::Unreadable(Flaw::Foreign, Remains::NONE), "{json}");
    }
    for json in ["\"0s\"", "\"999ms\"", "0"] {
        let reading = read(&THEIRS.replace(r#""45s""#, json));
        assert_eq!(reading, Reading::Unreadable(Flaw::Absurd, Remains::NONE), "{json}");
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
    for fields in [r#""leaseDurationSeconds": "soon""#, r#""leaseDurationSeconds": true"#] {
        let foreign = Reading::Unreadable(Flaw::Foreign, Remains::NONE);
        assert_eq!(read(&named(fields)), foreign, "{fields}");
    }
    // Of a record that cannot be used, an hour at most.
    let damaged = named(r#""leaseDurationSeconds": 7200"#).replace(r#""node-123""#, "7");
    let told = Remains { term: None, lease_ms: Some(3_600_000) };
    assert_eq!(read(&damaged), Reading::Unreadable(Flaw::Foreign, told));
    let Reading::Unreadable(Flaw::OtherFormat, told) =
        edgelect::lease::read(named(r#""leaseDurationSeconds": 6"#).as_bytes())
    else {
        panic!("it is of the other format")
    };
    assert_eq!(told.lease_ms, Some(6_000));
}

#[test]
fn a_time_may_be_a_number_since_the_epoch_in_whatever_unit() {
    for (json, updated_ms) in [
        ("1706868930", 1_706_868_930_000),
        ("1706868930.5", 1_706_868_930_500),
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
    let released = [r#""""#, "null"].map(|json| THEIRS.replace(r#""node-123""#, json));
    let absent = r#"{"leaseDuration":"1s","renewTime":"2024-02-02T10:15:30Z"}"#.to_owned();
    for text in released.into_iter().chain([absent]) {
        let lease = lease_of(&text);
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
    let text = Format::Kubernetes.write_with(&lease, |_| {});
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
    let text = Format::Kubernetes.write_with(&lease, |_| {});
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
    let written = Format::Kubernetes.write_with(&lease_of(&text), |_| {});
    let fields = Object::read(written.as_bytes()).expect("JSON");
    assert_eq!(fields.get("zone"), Some(r#"{"name":"a"}"#));
}

#[test]
fn a_record_of_the_other_format_is_not_claimed_and_named() {
    let native = r#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":7}"#;
    let told = |term, lease_ms| Reading::Unreadable(Flaw::OtherFormat, Remains { term, lease_ms });
    assert_eq!(read(native), told(Some(7), None));
    let longer = native.replace("7}", r#"7,"leaseMs":60000}"#);
    assert_eq!(read(&longer), told(Some(7), Some(60_000)), "its leader has that long");
    assert_eq!(Format::Native.read(THEIRS.as_bytes()), told(None, Some(45_000)));
    // A member that keeps what it does not know has taken over from one of ours.
    let kept = THEIRS.replace("{\n", r#"{"serverId":"x","leaseMs":15000,"#);
    assert_eq!(Format::Native.read(kept.as_bytes()), told(None, Some(45_000)));
    let damaged = THEIRS.replace("\": 0", "\": []");
    assert_eq!(
        read(&damaged),
        Reading::Unreadable(Flaw::Foreign, Remains { term: None, lease_ms: Some(45_000) })
    );
    assert_eq!(read(r#"{"note":1}"#), Reading::Unreadable(Flaw::Foreign, Remains::NONE));
}

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

/// A group of both makes over one store behind a network that loses, delays and cuts off.
struct Fleet {
    host: Virtual,
    bucket: Bucket,
    pace: Pace,
    pool: LocalPool,
    chance: Shared<Chance>,
    members: Vec<Member>,
    /// The tokens of our terms, in the order in which they began.
    tokens: Rc<RefCell<Vec<u64>>>,
    /// When two led, in steps of 50 ms, and who.
    beside: Vec<(u64, Vec<String>)>,
    made: u64,
}

/// One of them, until it is killed or has stopped.
#[derive(Clone)]
struct Member {
    name: String,
    killed: Rc<Cell<bool>>,
    /// Until then nothing of it reaches the store.
    cut_until_ms: Rc<Cell<u64>>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Ours(Handle),
    Theirs(Rc<Theirs>),
}

impl Member {
    fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours(_))
    }
}

/// A member as the document describes it: it counts its deadline from when a renewal has ended, looks at it once per
/// `retryPeriod`, and passes over errors until then. It knows no margin and no store's clock.
struct Theirs {
    identity: String,
    bucket: Bucket,
    host: Virtual,
    /// How far its wall clock is ahead of the store's.
    ahead_ms: i64,
    pace: Pace,
    /// Whether its `retryPeriod` is from tick to tick, or from the end of one; the document does not say.
    at_fixed_rate: bool,
    /// When the next tick is due.
    due_ms: Cell<u64>,
    cancelled: Cell<bool>,
    /// Between its two callbacks.
    leads: Cell<bool>,
}

/// What the storage throws, other than a lost condition.
struct Thrown;

impl Theirs {
    fn now_ms(&self) -> u64 {
        self.host.now().wall_ms.saturating_add_signed(self.ahead_ms)
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, String>>,
    ) -> Result<T, Thrown> {
        match select(pin!(request), pin!(self.host.sleep(self.pace.request_ms))).await {
            Either::Left((answer, _)) => answer.map_err(|_| Thrown),
            Either::Right(_) => Err(Thrown),
        }
    }

    /// The record and its ETag; it knows its own five fields.
    async fn get(&self) -> Result<Option<(Object, Version)>, Thrown> {
        let found = self.within(self.bucket.get()).await?;
        Ok(found.map(|(body, version)| (Object::read(&body).expect("JSON"), version)))
    }

    async fn put(
        &self,
        holder: &str,
        acquired_ms: u64,
        transitions: u64,
        on: Option<Version>,
    ) -> Result<bool, Thrown> {
        let time = |ms: u64| calendar::rfc3339(ms as i64);
        let body = format!(
            r#"{{"holderIdentity":{},"leaseDuration":"{}s","acquireTime":"{}","renewTime":"{}","leaderTransitions":{transitions}}}"#,
            json::quoted(holder),
            self.pace.lease_ms / 1_000,
            time(acquired_ms),
            time(self.now_ms()),
        );
        self.within(self.bucket.put_if_match(body.into_bytes(), on)).await
    }

    fn can_become_leader(&self, record: &Object) -> bool {
        let holder = record.get("holderIdentity").and_then(json::text).unwrap_or_default();
        let renewed = record.get("renewTime").and_then(json::text).expect("its parser needs one");
        let renewed_ms = calendar::read_rfc3339(&renewed).expect("a time").unix_ms;
        holder.is_empty() || self.now_ms() as i64 > renewed_ms + self.pace.lease_ms as i64
    }

    async fn try_acquire_or_renew(&self) -> Result<bool, Thrown> {
        let Some((record, version)) = self.get().await? else {
            return self.put(&self.identity, self.now_ms(), 0, None).await;
        };
        let text = |name| record.get(name).and_then(json::text);
        let transitions = record.get("leaderTransitions").and_then(json::whole);
        let transitions = transitions.expect("its parser needs a number");
        if text("holderIdentity").as_ref() == Some(&self.identity) {
            let acquired = calendar::read_rfc3339(&text("acquireTime").expect("a text"));
            let acquired_ms = acquired.expect("a time").unix_ms as u64;
            return self.put(&self.identity, acquired_ms, transitions, Some(version)).await;
        }
        if !self.can_become_leader(&record) {
            return Ok(false);
        }
        self.put(&self.identity, self.now_ms(), transitions + 1, Some(version)).await
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
        let Some((record, version)) = self.get().await? else { return Ok(false) };
        if record.get("holderIdentity").and_then(json::text).as_ref() != Some(&self.identity) {
            return Ok(false);
        }
        let transitions = record.get("leaderTransitions").and_then(json::whole).unwrap_or(0);
        self.put("", self.now_ms(), transitions, Some(version)).await
    }

    /// Until the next tick, or a cancellation.
    async fn pause(&self) {
        let now_ms = || self.host.now().mono_ms;
        let from_ms = if self.at_fixed_rate { self.due_ms.get() } else { now_ms() };
        self.due_ms.set(from_ms + self.pace.retry_ms);
        while now_ms() < self.due_ms.get() && !self.cancelled.get() {
            self.host.sleep((self.due_ms.get() - now_ms()).min(100)).await;
        }
    }
}

impl Fleet {
    fn new(seed: u64, pace: Pace) -> Self {
        let host = Virtual::default();
        let clock = host.clone();
        let memory = Memory::new(move || clock.now().wall_ms).in_format(Format::Kubernetes);
        let chance = Rc::new(RefCell::new(Chance::new(seed)));
        Self {
            bucket: Bucket::new(&host, memory, &chance),
            host,
            pace,
            pool: LocalPool::new(),
            chance,
            members: Vec::new(),
            tokens: Rc::default(),
            beside: Vec::new(),
            made: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.chance.borrow_mut().below(bound)
    }

    fn join(
        &mut self,
        name: String,
        kind: Kind,
        cut_until_ms: Rc<Cell<u64>>,
        task: impl Future<Output = ()> + 'static,
    ) {
        let killed = Rc::new(Cell::new(false));
        let member = Member { name, kind, cut_until_ms, killed: Rc::clone(&killed) };
        let dead = poll_fn(move |_| if killed.get() { Poll::Ready(()) } else { Poll::Pending });
        let task = async move {
            select(pin!(dead), pin!(task)).await;
        };
        self.pool.spawner().spawn_local(task).expect("the pool is alive");
        self.members.push(member);
    }

    fn ours(&mut self, follow: Follow) {
        self.made += 1;
        let name = format!("ours-{}", self.made);
        let settings = Settings {
            lockfile_path: Some("leader/test.json".to_owned()),
            server_id: Some(name.clone()),
            leader_timeout_ms: Some(self.pace.lease_ms),
            frequent_interval_ms: Some(self.pace.lease_ms / 3),
            follow: Some(follow),
            ..Settings::default()
        };
        let config = Config::new(&settings).expect("a lease like that may be set");
        let seed = self.below(u64::MAX);
        let handle = Handle::new(Election::new(config, format!("session-{name}"), seed));
        let (bucket, host) = (self.bucket.another_way(), self.host.clone());
        let (driven, tokens) = (handle.clone(), Rc::clone(&self.tokens));
        self.join(name, Kind::Ours(handle), Rc::clone(&bucket.cut_until_ms), async move {
            run(&driven, &bucket, &host, |event| match event {
                Event::Acquired { term } => tokens.borrow_mut().push(term),
                Event::Lost { term, .. } => driven.tell(Input::WorkEnded { term }),
                _ => {}
            })
            .await;
        });
    }

    /// One of theirs, whose clock is off by less than the margin of ours less the second that `Date` is rounded by and
    /// the way of an answer.
    fn theirs(&mut self) {
        let ahead_ms = self.below(700) as i64 - 350;
        let at_fixed_rate = self.below(2) == 0;
        self.made += 1;
        let identity = format!("theirs-{}", self.made);
        let theirs = Rc::new(Theirs {
            identity: identity.clone(),
            bucket: self.bucket.another_way(),
            host: self.host.clone(),
            ahead_ms,
            pace: self.pace,
            at_fixed_rate,
            due_ms: Cell::new(self.host.now().mono_ms),
            cancelled: Cell::new(false),
            leads: Cell::new(false),
        });
        let driven = Rc::clone(&theirs);
        let cut_until_ms = Rc::clone(&theirs.bucket.cut_until_ms);
        self.join(identity, Kind::Theirs(theirs), cut_until_ms, async move { driven.run().await });
    }

    fn leaders(&self) -> Vec<usize> {
        let now = self.host.now();
        let alive = self.members.iter().enumerate().filter(|(_, member)| !member.killed.get());
        let leads = |member: &Member| match &member.kind {
            Kind::Ours(handle) => handle.authority(now).is_some(),
            Kind::Theirs(theirs) => theirs.leads.get(),
        };
        alive.filter(|(_, member)| leads(member)).map(|(index, _)| index).collect()
    }

    /// Lets time pass and notes who leads beside whom.
    fn watch(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.bucket.arrive();
            self.host.pass(&mut self.pool, 50);
            let leaders = self.leaders();
            if leaders.len() > 1 {
                let names = leaders.iter().map(|index| self.members[*index].name.clone());
                self.beside.push((self.host.now_ms.get(), names.collect()));
            }
        }
    }

    /// Lets time pass; at most one leads at each moment.
    fn pass(&mut self, ms: u64) {
        self.watch(ms);
        assert!(self.beside.is_empty(), "{:?}", self.beside);
    }

    /// Who leads, once somebody does, and after how many milliseconds.
    fn leader_within(&mut self, ms: u64) -> (Member, u64) {
        for waited in 0..=ms / 50 {
            if let Some(index) = self.leaders().first() {
                return (self.members[*index].clone(), waited * 50);
            }
            self.watch(50);
        }
        panic!("nobody leads within {ms} ms: {:?}", self.text());
    }

    fn text(&self) -> String {
        String::from_utf8(self.bucket.memory.body().unwrap_or_default()).expect("text")
    }

    fn stop(&mut self, member: &Member) {
        match &member.kind {
            Kind::Ours(handle) => handle.tell(Input::Stop { park: false }),
            Kind::Theirs(theirs) => theirs.cancelled.set(true),
        }
        self.watch(500);
    }

    fn cut(&mut self, member: &Member, ms: u64) {
        member.cut_until_ms.set(self.host.now_ms.get() + ms);
    }

    /// Strikes whoever leads, twelve times: it dies, is cut off for up to two leases, or stops, and the others of its make
    /// are cut off meanwhile; then another of its make joins. How often each make has followed the other.
    fn play(&mut self) -> [u64; 2] {
        let (lease_ms, mut followed) = (self.pace.lease_ms, [0, 0]);
        for follow in [Follow::Tight, Follow::Balanced] {
            self.ours(follow);
            self.theirs();
        }
        for _ in 0..12 {
            self.leader_within(6 * lease_ms);
            let alone_ms = self.below(3 * lease_ms);
            self.watch(alone_ms);
            let (leader, _) = self.leader_within(6 * lease_ms);
            for other in self.members.clone() {
                let cut_ms = lease_ms + self.below(lease_ms);
                if other.is_ours() == leader.is_ours() && other.name != leader.name {
                    self.cut(&other, cut_ms);
                }
            }
            let (blow, cut_ms) = (self.below(3), self.below(2 * lease_ms));
            match blow {
                0 => leader.killed.set(true),
                1 => self.cut(&leader, cut_ms),
                _ => self.stop(&leader),
            }
            self.watch(lease_ms + 1_000);
            let (next, _) = self.leader_within(6 * lease_ms);
            if next.is_ours() != leader.is_ours() {
                followed[usize::from(next.is_ours())] += 1;
            }
            if leader.is_ours() {
                let follow = self.chance.borrow_mut().pick(&[Follow::Tight, Follow::Balanced]);
                self.ours(follow);
            } else {
                self.theirs();
            }
        }
        followed
    }
}

#[test]
fn they_take_a_lease_that_we_release_and_we_take_one_that_they_release() {
    let mut fleet = Fleet::new(1, Pace::SAFE);
    fleet.ours(Follow::Balanced);
    let (ours, _) = fleet.leader_within(60_000);
    fleet.theirs();
    fleet.pass(30_000);
    fleet.stop(&ours);
    let (theirs, after_ms) = fleet.leader_within(60_000);
    assert!(!theirs.is_ours(), "{}", theirs.name);
    assert!(after_ms <= RETRY_MS + 1_000, "at its next retry, not after the lease: {after_ms}");
    fleet.ours(Follow::Balanced);
    fleet.pass(30_000);
    assert_eq!(fleet.leaders().len(), 1, "its renewals are honoured");
    fleet.stop(&theirs);
    let (back, after_ms) = fleet.leader_within(60_000);
    assert!(back.is_ours(), "{}", back.name);
    assert!(after_ms <= LEASE_MS + 4_000, "balanced looks once a lease: {after_ms}");
    let tokens = fleet.tokens.borrow().clone();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
    assert!(fleet.text().contains(r#""leaderTransitions":2"#), "{}", fleet.text());
    assert_eq!(fleet.beside, []);
}

#[test]
fn while_their_leader_stops_before_its_lease_is_over_one_leads_through_deaths_cuts_and_failures() {
    const { assert!(Pace::SAFE.longest_unrenewed_ms() < Pace::SAFE.lease_ms) };
    let mut followed = [0, 0];
    for seed in 1..=60 {
        let mut fleet = Fleet::new(seed, Pace::SAFE);
        fleet.bucket.failing_per_mille.set([0, 50, 200][seed as usize % 3]);
        let [theirs, ours] = fleet.play();
        followed = [followed[0] + theirs, followed[1] + ours];
        assert_eq!(fleet.beside, [], "seed {seed}");
        let tokens = fleet.tokens.borrow();
        assert!(tokens.is_sorted_by(|a, b| a < b), "seed {seed}: {tokens:?}");
    }
    println!("{followed:?} times one of theirs, of ours, has followed the other make");
    assert!(followed.iter().all(|times| *times > 100), "{followed:?}");
}

#[test]
fn by_the_documents_own_settings_their_leader_acts_beside_ours_after_its_lease() {
    let pace = Pace::DOCUMENT;
    let mut longest_ms = 0;
    for seed in 1..=30 {
        let mut fleet = Fleet::new(seed, pace);
        fleet.theirs();
        let (theirs, _) = fleet.leader_within(5_000);
        fleet.ours(Follow::Tight);
        let alone_ms = 60_000 + fleet.below(pace.retry_ms);
        fleet.pass(alone_ms);
        fleet.cut(&theirs, 2 * pace.lease_ms);
        fleet.watch(2 * pace.lease_ms);
        let ours_leads = fleet.leaders().iter().all(|index| fleet.members[*index].is_ours());
        assert!(ours_leads && fleet.tokens.borrow().len() == 1, "seed {seed}");
        longest_ms = longest_ms.max(50 * fleet.beside.len() as u64);
    }
    println!("for up to {longest_ms} ms");
    let most_ms = pace.longest_unrenewed_ms() - pace.lease_ms;
    assert!((5_000..=most_ms).contains(&longest_ms), "{longest_ms} ms of at most {most_ms}");
}

#[test]
fn s2_tokens_grow_beside_members_by_the_documents_own_settings_and_never_do_two_of_ours_lead() {
    let (mut seeds, mut terms) = (0, 0);
    for seed in 1..=30 {
        let mut fleet = Fleet::new(seed, Pace::DOCUMENT);
        fleet.bucket.failing_per_mille.set(50);
        fleet.play();
        let tokens = fleet.tokens.borrow();
        assert!(tokens.is_sorted_by(|a, b| a < b), "seed {seed}: {tokens:?}");
        for (at_ms, names) in &fleet.beside {
            let ours = names.iter().filter(|name| name.starts_with("ours")).count();
            assert!(ours < 2, "seed {seed}: {names:?} at {at_ms}");
        }
        terms += tokens.len();
        seeds += usize::from(!fleet.beside.is_empty());
    }
    println!("{terms} terms of ours; two led in {seeds} of 30 schedules");
    assert!(terms > 100 && seeds > 0, "{terms} terms, {seeds}");
}

#[test]
fn a_record_of_the_native_format_is_left_alone_until_its_grace_is_over_and_its_term_counts() {
    for (told, told_ms) in [(r#","leaseMs":60000"#, 60_000), ("", LEASE_MS)] {
        let mut fleet = Fleet::new(3, Pace::SAFE);
        let term = 1_900_000_000_000_000_u64;
        let native = format!(
            r#"{{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":{term}{told}}}"#
        );
        fleet.bucket.memory.overwrite(Some(native.clone().into_bytes()));
        fleet.ours(Follow::Balanced);
        fleet.pass(told_ms - 1_000);
        assert_eq!(fleet.text(), native);
        let Kind::Ours(handle) = &fleet.members[0].kind else { unreachable!("it is ours") };
        let problem =
            handle.with(|election| election.problem().map(edgelect::status::problem_text));
        let text = problem.as_deref().unwrap_or_default();
        assert!(text.contains("another format"), "{problem:?}");
        fleet.leader_within(LEASE_MS + 20_000);
        assert!(fleet.tokens.borrow()[0] > term);
    }
}

/// One member's way to the store.
#[derive(Clone)]
struct Far {
    memory: Memory,
    host: Virtual,
    /// The way there, and the way back.
    ways_ms: [u64; 2],
    cut_off: Rc<Cell<bool>>,
}

impl Store for Far {
    async fn perform(&self, operation: Operation) -> Answer {
        self.host.sleep(self.ways_ms[0]).await;
        while self.cut_off.get() {
            self.host.sleep(100).await;
        }
        let answer = self.memory.perform(operation).await;
        self.host.sleep(self.ways_ms[1]).await;
        answer
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that is far away".to_owned()
    }
}

/// How long after a foreign member of the right clock may take the lease a leader of ours that was cut off has authority
/// still, in milliseconds; negative where it has none.
fn beside_ms(format: Format, lease_ms: u64, phase_ms: u64, ways_ms: [u64; 2]) -> i64 {
    let host = Virtual::default();
    host.now_ms.set(phase_ms);
    let clock = host.clone();
    let memory = Memory::new(move || clock.now().wall_ms).in_format(format);
    let cut_off = Rc::new(Cell::new(false));
    let store = Far { memory, host: host.clone(), ways_ms, cut_off: Rc::clone(&cut_off) };
    let settings = Settings {
        lockfile_path: Some("leader/test.json".to_owned()),
        leader_timeout_ms: Some(lease_ms),
        frequent_interval_ms: Some(lease_ms / 3),
        ..Settings::default()
    };
    let config = Config::new(&settings).expect("a lease like that may be set");
    let handle = Handle::new(Election::new(config, "session".to_owned(), phase_ms));
    let mut pool = LocalPool::new();
    let (driven, way, place) = (handle.clone(), store.clone(), host.clone());
    let task = async move { run(&driven, &way, &place, |_| {}).await };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    let leads = |host: &Virtual| handle.authority(host.now()).is_some();
    while !leads(&host) {
        host.pass(&mut pool, 10);
    }
    host.pass(&mut pool, 2 * lease_ms);
    cut_off.set(true);
    while leads(&host) {
        host.pass(&mut pool, 1);
    }
    let body = store.memory.body().expect("a record");
    let Reading::Lease(lease) = format.read(&body) else { panic!("a lease") };
    let Stamp::At(updated_ms) = lease.last_updated else { panic!("held") };
    host.now().wall_ms as i64 - (updated_ms + lease_ms as i64)
}

#[test]
fn no_foreign_member_of_the_right_clock_may_take_a_lease_under_our_authority_however_short_it_is() {
    for format in [Format::Native, Format::Kubernetes] {
        // An answer that takes longer than the margin: what it says of time is old when it is heard.
        for (lease_ms, ways_ms) in
            [(15_000, [10, 10]), (3_000, [10, 10]), (1_000, [10, 10]), (15_000, [20, 1_700])]
        {
            let late_ms = |step: u64| beside_ms(format, lease_ms, step * 50 + 3, ways_ms);
            let worst_ms = (0..20).map(late_ms).max().expect("some");
            println!("{} {lease_ms} {ways_ms:?}: {worst_ms} ms", format.name());
            assert!(worst_ms <= 0, "{} {lease_ms} {ways_ms:?}: {worst_ms} ms", format.name());
        }
    }
}
