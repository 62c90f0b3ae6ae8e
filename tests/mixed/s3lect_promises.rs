//! What S3lect's document promises of time and requests, on virtual time; tests/promises.json says which row of
//! docs/s3lect.md each test holds.

use edgelect::peer;

use crate::driver::prelude::*;
use crate::mixed::world::{Ours, World};

/// What the network to the leader does with a question.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Peer {
    #[default]
    Answers,
    Refuses,
    Hangs,
}

/// When something was asked, and for what.
type Log<T> = Rc<RefCell<Vec<(u64, T)>>>;

/// One member's way to the store and to the leader, and everything that it asked.
#[derive(Clone, Default)]
struct Way {
    time: Virtual,
    peer: Rc<Cell<Peer>>,
    /// Every request to the store fails at once.
    fails: Rc<Cell<bool>>,
    asked: Log<String>,
    requests: Log<&'static str>,
}

impl Way {
    async fn ask(self, leader: Leader, url: String) -> Result<Response, String> {
        self.asked.borrow_mut().push((self.time.now_ms.get(), url));
        if self.peer.get() == Peer::Hangs {
            return std::future::pending().await;
        }
        match &*leader.borrow() {
            Some(leader) if self.peer.get() == Peer::Answers => {
                let answer = leader.with(|election| peer::answer(election, self.time.now(), false));
                let body = answer.body.as_bytes().into();
                Ok(request::answer(answer.status, [], body).expect("an answer"))
            }
            _ => Err("connection refused".to_owned()),
        }
    }

    async fn perform(&self, store: &Hanging, operation: Operation) -> Answer {
        let name = if matches!(operation, Operation::Read { .. }) { "read" } else { "write" };
        self.requests.borrow_mut().push((self.time.now_ms.get(), name));
        if self.fails.get() {
            return Answer::unknown(Fault::new(FaultKind::Network, "connection reset"));
        }
        store.perform(operation).await
    }

    /// When the store was asked since then, and for what.
    fn since(&self, at_ms: u64) -> Vec<(u64, &'static str)> {
        let requests = self.requests.borrow();
        requests.iter().filter(|(sent_ms, _)| *sent_ms >= at_ms).copied().collect()
    }
}

/// A group that has been started, and whoever can be asked as its leader.
struct Group {
    store: Hanging,
    leader: Leader,
}

type Leader = Rc<RefCell<Option<Handle>>>;
type Member = Ours<Way>;
type Fleet = World<Group>;

/// A leader and a follower that has seen it lead.
fn led(follow: Follow, peers: bool, seed: u64) -> (Fleet, Member, Member) {
    let mut group = World::new(10, 0, |time, _| Group {
        store: Hanging::with_group(time),
        leader: Rc::default(),
    });
    let leader = group.member("a", follow, peers, 1);
    group.pass(1_000);
    *group.place.leader.borrow_mut() = Some(leader.handle.clone());
    let follower = group.member("b", follow, peers, seed);
    group.pass(1_000);
    assert_eq!(group.leaders(), ["a"]);
    (group, leader, follower)
}

impl Fleet {
    fn member(&self, name: &str, follow: Follow, peers: bool, seed: u64) -> Member {
        let config = config_of(Settings {
            server_id: Some(name.to_owned()),
            server_addr: Some(format!("{name}.example:8443")),
            follow: Some(follow),
            peer_mode: Some(peers),
            ..Settings::default()
        });
        let handle = Handle::new(Election::new(config, format!("of {name}"), seed));
        let way = Way { time: self.time.clone(), ..Way::default() };
        let (to_peer, leader) = (way.clone(), Rc::clone(&self.place.leader));
        let host = self.time.asking(move |request| {
            to_peer.clone().ask(Rc::clone(&leader), request.uri().to_string())
        });
        let (to_store, store) = (way.clone(), self.place.store.clone());
        let store = Through(async move |operation| to_store.perform(&store, operation).await);
        self.elect(name, handle, store, host, way)
    }
}

#[test]
fn a_frugal_follower_reads_every_thirty_seconds_while_stable_and_every_five_when_not() {
    let (mut group, _, follower) = led(Follow::Frugal, false, 2);
    let from_ms = group.now_ms();
    group.pass(600_000);
    let stable = follower.way.since(from_ms);
    assert!((18..=20).contains(&stable.len()), "{stable:?}");
    assert!(stable.windows(2).all(|two| (30_000..=30_500).contains(&(two[1].0 - two[0].0))));
    // Released, and this follower can't claim: it looks every frequentInterval.
    group.kill("a");
    let newer = br#"{"leaderID":"x","lastUpdated":"2026-11-21T06:58:12Z","format":2}"#;
    group.place.store.memory.overwrite(Some(newer.to_vec()));
    group.pass(31_000);
    let from_ms = group.now_ms();
    group.pass(60_000);
    let unstable = follower.way.since(from_ms);
    assert!((10..=12).contains(&unstable.len()), "{unstable:?}");
}

#[test]
fn attempts_leave_at_once_after_100_ms_and_after_another_second_and_then_it_reads_back() {
    let (mut group, leader, _) = led(Follow::Balanced, false, 2);
    leader.way.fails.set(true);
    let from_ms = group.now_ms();
    group.pass(8_000);
    let seen = leader.way.since(from_ms);
    let (first_ms, _) = seen[0];
    let after: Vec<(u64, &str)> =
        seen.iter().take(4).map(|(at_ms, name)| (at_ms - first_ms, *name)).collect();
    assert_eq!(after, [(0, "write"), (100, "write"), (1_100, "write"), (1_100, "read")]);
}

#[test]
fn in_peer_mode_a_follower_asks_the_leader_by_https_and_reads_once_in_ten_leases() {
    let (mut group, _leader, follower) = led(Follow::Frugal, true, 2);
    let from_ms = group.now_ms();
    group.pass(600_000);
    let read = follower.way.since(from_ms);
    assert!(read.iter().all(|(_, what)| *what == "read"), "{read:?}");
    assert_eq!(read.len(), 4, "{read:?}");
    let asked = follower.way.asked.borrow();
    assert!((16..=21).contains(&asked.len()), "{asked:?}");
    let url = "https://a.example:8443/health/leadership?";
    assert!(asked.iter().all(|(_, asked)| asked.starts_with(url)), "{asked:?}");
}

#[test]
fn a_silent_peer_costs_one_read_at_once_and_the_store_is_read_frequently_from_then_on() {
    let (mut group, _leader, follower) = led(Follow::Frugal, true, 2);
    group.pass(100_000);
    follower.way.peer.set(Peer::Refuses);
    let asked = follower.way.asked.borrow().len();
    let from_ms = group.now_ms();
    group.pass(31_000);
    let (silent_ms, _) = follower.way.asked.borrow()[asked];
    let reads = follower.way.since(from_ms);
    // All who waited hear of it in one moment: they spread over half a second.
    assert!((silent_ms..=silent_ms + 500).contains(&reads[0].0), "{reads:?}");
    group.pass(10_000);
    let reads = follower.way.since(silent_ms);
    assert!(reads[1].0 - reads[0].0 <= 5_500, "{reads:?}");
}

#[test]
fn a_peer_that_hangs_is_given_up_after_three_seconds() {
    let (mut group, _leader, follower) = led(Follow::Frugal, true, 2);
    follower.way.peer.set(Peer::Hangs);
    let from_ms = group.now_ms();
    group.pass(40_000);
    let asked = follower.way.asked.borrow();
    let (asked_ms, _) = *asked.iter().find(|(at_ms, _)| *at_ms >= from_ms).expect("it asks");
    assert_eq!(follower.way.since(from_ms)[0], (asked_ms + 3_000, "read"));
}

#[test]
fn a_crash_is_over_within_the_documents_times() {
    for (follow, least_ms, most_ms) in [
        (Follow::Tight, 10_000, 16_000),
        (Follow::Balanced, 0, 19_500),
        (Follow::Frugal, 0, 46_000),
    ] {
        for seed in 2..62 {
            let (mut group, ..) = led(follow, false, seed);
            group.pass(60_000 + seed * 997);
            group.kill("a");
            let at_ms = group.now_ms();
            assert!(group.led_by("b", most_ms), "{follow:?}, seed {seed}: not within {most_ms} ms");
            let took_ms = group.now_ms() - at_ms;
            assert!(took_ms >= least_ms, "{follow:?}, seed {seed}: {took_ms} ms");
        }
    }
}
