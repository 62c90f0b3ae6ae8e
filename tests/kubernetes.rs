//! The object-store lock that came with `holderIdentity` and `renewTime`: its records, and groups that its members share
//! with edgelect's.

#[allow(dead_code)] // No store here hangs.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use edgelect::calendar;
use edgelect::election::{Election, Event, Input};
use edgelect::json::{self, Object};
use edgelect::lease::{Flaw, Format, Lease, Reading, Stamp};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Operation, Outcome, Store, Version};
use edgelect::{Config, Handle, Host, Settings, run};
use futures::executor::LocalPool;
use futures::future::select;
use futures::task::LocalSpawnExt;
use virtual_time::{Virtual, config};

const LEASE_MS: u64 = 15_000;
const RETRY_MS: u64 = 5_000;

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
        assert_eq!(reading, Reading::Unreadable(Flaw::Foreign, None), "{json}");
    }
    for json in ["\"0s\"", "\"999ms\"", "\"61m\"", "99999999999999999"] {
        let reading = read(&THEIRS.replace(r#""45s""#, json));
        assert_eq!(reading, Reading::Unreadable(Flaw::Absurd, None), "{json}");
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
    assert_eq!(read(native), Reading::Unreadable(Flaw::OtherFormat, Some(7)));
    let other = Format::Native.read(THEIRS.as_bytes());
    assert_eq!(other, Reading::Unreadable(Flaw::OtherFormat, None));
    assert_eq!(read(r#"{"note":1}"#), Reading::Unreadable(Flaw::Foreign, None));
}

/// A group of both makes over one store whose answers take a moment.
struct Fleet {
    host: Virtual,
    memory: Memory,
    pool: LocalPool,
    chance: u64,
    members: Vec<Member>,
    /// The tokens of our terms, in the order in which they began.
    tokens: Rc<RefCell<Vec<u64>>>,
    made: u64,
}

/// One of them, until it is killed or has stopped.
#[derive(Clone)]
struct Member {
    name: String,
    killed: Rc<Cell<bool>>,
    /// Nothing of it reaches the store meanwhile.
    cut_off: Rc<Cell<bool>>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Ours(Handle),
    Theirs(Rc<Theirs>),
}

/// One member's way to the store.
#[derive(Clone)]
struct Far {
    memory: Memory,
    host: Virtual,
    latency_ms: u64,
    cut_off: Rc<Cell<bool>>,
}

impl Store for Far {
    async fn perform(&self, operation: Operation) -> Answer {
        self.host.sleep(self.latency_ms).await;
        while self.cut_off.get() {
            self.host.sleep(100).await;
        }
        let answer = self.memory.perform(operation).await;
        self.host.sleep(self.latency_ms).await;
        answer
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that is far away".to_owned()
    }
}

/// A member as the document describes it. It knows no margin and no store's clock.
struct Theirs {
    identity: String,
    store: Far,
    host: Virtual,
    /// How far its wall clock is ahead of the store's.
    ahead_ms: i64,
    lease_ms: u64,
    renew_deadline_ms: u64,
    cancelled: Cell<bool>,
    /// By its own clock, until when it believes in its leadership.
    renew_by_ms: Cell<Option<u64>>,
}

impl Theirs {
    fn now_ms(&self) -> u64 {
        self.host.now().wall_ms.saturating_add_signed(self.ahead_ms)
    }

    fn leads(&self) -> bool {
        self.renew_by_ms.get().is_some_and(|until_ms| self.now_ms() <= until_ms)
    }

    /// The record and its ETag; it knows its own five fields.
    async fn get(&self) -> Option<(Object, Version)> {
        let answer = self.store.perform(Operation::Read { unless: None }).await;
        match answer.outcome {
            Outcome::Found { version, .. } => {
                Object::read(&self.store.memory.body()?).map(|fields| (fields, version))
            }
            _ => None,
        }
    }

    async fn put(&self, holder: &str, acquired_ms: u64, transitions: u64, on: Condition) -> bool {
        let time = |ms: u64| calendar::rfc3339(ms as i64);
        let body = format!(
            r#"{{"holderIdentity":{},"leaseDuration":"{}s","acquireTime":"{}","renewTime":"{}","leaderTransitions":{transitions}}}"#,
            json::quoted(holder),
            self.lease_ms / 1_000,
            time(acquired_ms),
            time(self.now_ms()),
        );
        let operation = Operation::Write { body: body.into_bytes(), condition: on };
        matches!(self.store.perform(operation).await.outcome, Outcome::Written { .. })
    }

    fn can_become_leader(&self, record: &Object) -> bool {
        let holder = record.get("holderIdentity").and_then(json::text).unwrap_or_default();
        let renewed = record.get("renewTime").and_then(json::text).expect("its parser needs one");
        let renewed_ms = calendar::read_rfc3339(&renewed).expect("a time").unix_ms;
        holder.is_empty() || self.now_ms() as i64 > renewed_ms + self.lease_ms as i64
    }

    async fn try_acquire_or_renew(&self) -> bool {
        let now_ms = self.now_ms();
        let Some((record, version)) = self.get().await else {
            return self.put(&self.identity, now_ms, 0, Condition::Absent).await;
        };
        let text = |name| record.get(name).and_then(json::text);
        let transitions = record.get("leaderTransitions").and_then(json::whole);
        let transitions = transitions.expect("its parser needs a number");
        let on = Condition::Match(version);
        if text("holderIdentity").as_ref() == Some(&self.identity) {
            let acquired = calendar::read_rfc3339(&text("acquireTime").expect("a text"));
            let acquired_ms = acquired.expect("a time").unix_ms as u64;
            return self.put(&self.identity, acquired_ms, transitions, on).await;
        }
        self.can_become_leader(&record)
            && self.put(&self.identity, now_ms, transitions + 1, on).await
    }

    /// `start()` until it is cancelled; then it releases.
    async fn run(&self) {
        while !self.cancelled.get() {
            let began_ms = self.now_ms();
            if self.try_acquire_or_renew().await {
                self.renew_by_ms.set(Some(began_ms + self.renew_deadline_ms));
            } else {
                self.renew_by_ms.set(None);
            }
            let next_ms = self.host.now().mono_ms + RETRY_MS;
            while self.host.now().mono_ms < next_ms && !self.cancelled.get() {
                self.host.sleep(100).await;
            }
        }
        // Its callback has stopped the work before the record says so.
        if self.renew_by_ms.take().is_some()
            && let Some((record, version)) = self.get().await
            && record.get("holderIdentity").and_then(json::text).as_ref() == Some(&self.identity)
        {
            let transitions = record.get("leaderTransitions").and_then(json::whole);
            let now_ms = self.now_ms();
            self.put("", now_ms, transitions.unwrap_or(0), Condition::Match(version)).await;
        }
    }
}

impl Fleet {
    fn new(seed: u64) -> Self {
        let host = Virtual::default();
        let clock = host.clone();
        let memory = Memory::new(move || clock.now().wall_ms).in_format(Format::Kubernetes);
        let (pool, tokens) = (LocalPool::new(), Rc::default());
        Self { host, memory, pool, chance: seed, members: Vec::new(), tokens, made: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.chance >> 33) % bound
    }

    fn store(&mut self) -> Far {
        let latency_ms = 5 + self.below(60);
        let (memory, host) = (self.memory.clone(), self.host.clone());
        Far { memory, host, latency_ms, cut_off: Rc::default() }
    }

    fn join(
        &mut self,
        name: String,
        kind: Kind,
        cut_off: Rc<Cell<bool>>,
        task: impl Future<Output = ()> + 'static,
    ) {
        let killed = Rc::new(Cell::new(false));
        let member = Member { name, kind, cut_off, killed: Rc::clone(&killed) };
        let dead = poll_fn(move |_| if killed.get() { Poll::Ready(()) } else { Poll::Pending });
        let task = async move {
            select(pin!(dead), pin!(task)).await;
        };
        self.pool.spawner().spawn_local(task).expect("the pool is alive");
        self.members.push(member);
    }

    fn ours(&mut self) {
        self.made += 1;
        let name = format!("ours-{}", self.made);
        let config = Config { server_id: name.clone(), ..config() };
        let seed = self.below(u64::MAX);
        let election = Election::new(config, format!("session-{name}"), seed);
        let handle = Handle::new(election);
        let (store, host, tokens) = (self.store(), self.host.clone(), Rc::clone(&self.tokens));
        let driven = handle.clone();
        self.join(name, Kind::Ours(handle), Rc::clone(&store.cut_off), async move {
            run(&driven, &store, &host, |event| match event {
                Event::Acquired { term } => tokens.borrow_mut().push(term),
                Event::Lost { term, .. } => driven.tell(Input::WorkEnded { term }),
                _ => {}
            })
            .await;
        });
    }

    fn theirs(&mut self, ahead_ms: i64) {
        self.made += 1;
        let identity = format!("theirs-{}", self.made);
        let theirs = Rc::new(Theirs {
            identity: identity.clone(),
            store: self.store(),
            host: self.host.clone(),
            ahead_ms,
            lease_ms: LEASE_MS,
            renew_deadline_ms: 10_000,
            cancelled: Cell::new(false),
            renew_by_ms: Cell::new(None),
        });
        let driven = Rc::clone(&theirs);
        let cut_off = Rc::clone(&theirs.store.cut_off);
        self.join(identity, Kind::Theirs(theirs), cut_off, async move { driven.run().await });
    }

    fn leaders(&self) -> Vec<usize> {
        let now = self.host.now();
        let alive = self.members.iter().enumerate().filter(|(_, member)| !member.killed.get());
        let leads = |member: &Member| match &member.kind {
            Kind::Ours(handle) => handle.authority(now).is_some(),
            Kind::Theirs(theirs) => theirs.leads(),
        };
        alive.filter(|(_, member)| leads(member)).map(|(index, _)| index).collect()
    }

    /// Lets time pass; at most one leads at each moment.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.host.pass(&mut self.pool, 50);
            let leaders = self.leaders();
            let names: Vec<_> = leaders.iter().map(|index| &self.members[*index].name).collect();
            assert!(names.len() <= 1, "{names:?} lead at {}", self.host.now_ms.get());
        }
    }

    /// Who leads, once somebody does, and after how many milliseconds.
    fn leader_within(&mut self, ms: u64) -> (Member, u64) {
        for waited in 0..=ms / 50 {
            if let Some(index) = self.leaders().first() {
                return (self.members[*index].clone(), waited * 50);
            }
            self.pass(50);
        }
        panic!("nobody leads within {ms} ms: {:?}", self.text());
    }

    fn text(&self) -> String {
        String::from_utf8(self.memory.body().unwrap_or_default()).expect("text")
    }

    fn stop(&mut self, member: &Member) {
        match &member.kind {
            Kind::Ours(handle) => handle.tell(Input::Stop { park: false }),
            Kind::Theirs(theirs) => theirs.cancelled.set(true),
        }
        self.pass(500);
    }
}

#[test]
fn they_take_a_lease_that_we_release_and_we_take_one_that_they_release() {
    let mut fleet = Fleet::new(1);
    fleet.ours();
    let (ours, _) = fleet.leader_within(60_000);
    fleet.theirs(0);
    fleet.pass(30_000);
    fleet.stop(&ours);
    let (theirs, after_ms) = fleet.leader_within(60_000);
    assert!(matches!(theirs.kind, Kind::Theirs(_)), "{}", theirs.name);
    assert!(after_ms <= RETRY_MS + 1_000, "at its next retry, not after the lease: {after_ms}");
    fleet.ours();
    fleet.pass(30_000);
    assert_eq!(fleet.leaders().len(), 1, "its renewals are honoured");
    fleet.stop(&theirs);
    let (back, after_ms) = fleet.leader_within(60_000);
    assert!(matches!(back.kind, Kind::Ours(_)), "{}", back.name);
    assert!(after_ms <= LEASE_MS + 4_000, "balanced looks once a lease: {after_ms}");
    let tokens = fleet.tokens.borrow().clone();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
    assert!(fleet.text().contains(r#""leaderTransitions":2"#), "{}", fleet.text());
}

#[test]
fn in_a_group_of_both_makes_one_leads_and_tokens_grow_through_deaths_and_releases() {
    let (mut took_from_us, mut took_from_them) = (0, 0);
    for seed in 1..=12 {
        let mut fleet = Fleet::new(seed);
        for _ in 0..2 {
            fleet.ours();
            // The margin of ours, less the second that `Date` is rounded by and the way of an answer.
            let ahead_ms = fleet.below(700) as i64 - 350;
            fleet.theirs(ahead_ms);
        }
        for _ in 0..12 {
            let (leader, _) = fleet.leader_within(3 * LEASE_MS);
            let alone = fleet.below(40_000);
            fleet.pass(alone);
            let index = fleet.leaders().first().copied();
            let leader = index.map_or(leader, |index| fleet.members[index].clone());
            let was_ours = matches!(leader.kind, Kind::Ours(_));
            match fleet.below(3) {
                0 => leader.killed.set(true),
                1 => leader.cut_off.set(true),
                _ => fleet.stop(&leader),
            }
            let ahead_ms = fleet.below(700) as i64 - 350;
            if was_ours {
                fleet.ours()
            } else {
                fleet.theirs(ahead_ms)
            }
            fleet.pass(LEASE_MS + 1_000);
            leader.cut_off.set(false);
            let (next, _) = fleet.leader_within(3 * LEASE_MS);
            match (was_ours, matches!(next.kind, Kind::Ours(_))) {
                (true, false) => took_from_us += 1,
                (false, true) => took_from_them += 1,
                _ => {}
            }
        }
        let tokens = fleet.tokens.borrow().clone();
        assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {tokens:?}");
    }
    assert!(took_from_us > 5 && took_from_them > 5, "{took_from_us} {took_from_them}");
}

#[test]
fn a_record_of_the_native_format_is_left_alone_until_its_grace_is_over_and_its_term_counts() {
    let mut fleet = Fleet::new(3);
    let term = 1_900_000_000_000_000_u64;
    let native =
        format!(r#"{{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":{term}}}"#);
    fleet.memory.overwrite(Some(native.clone().into_bytes()));
    fleet.ours();
    fleet.pass(LEASE_MS - 1_000);
    assert_eq!(fleet.text(), native);
    let Kind::Ours(handle) = &fleet.members[0].kind else { unreachable!("it is ours") };
    let problem = handle.with(|election| election.problem().map(edgelect::status::problem_text));
    assert!(problem.as_ref().is_some_and(|text| text.contains("another format")), "{problem:?}");
    fleet.leader_within(20_000);
    assert!(fleet.tokens.borrow()[0] > term);
}

/// How long after a foreign member of the right clock may take the lease a leader of ours that was cut off has authority
/// still, in milliseconds; negative where it has none.
fn beside_ms(format: Format, lease_ms: u64, phase_ms: u64) -> i64 {
    let host = Virtual::default();
    host.now_ms.set(phase_ms);
    let clock = host.clone();
    let memory = Memory::new(move || clock.now().wall_ms).in_format(format);
    let cut_off = Rc::new(Cell::new(false));
    let store = Far { memory, host: host.clone(), latency_ms: 10, cut_off: Rc::clone(&cut_off) };
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
        for lease_ms in [15_000, 3_000, 1_000] {
            let worst = (0..20).map(|step| beside_ms(format, lease_ms, step * 50 + 3)).max();
            let worst_ms = worst.expect("some");
            println!("{} {lease_ms}: {worst_ms} ms", format.name());
            assert!(worst_ms <= 0, "{} {lease_ms}: {worst_ms} ms beside", format.name());
        }
    }
}
