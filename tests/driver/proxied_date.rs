//! A proxy that replaces `Date` by its own clock's, without `Via` or `Age`: what it says of the age of a lease
//! costs time, and no second leader.

use crate::driver::prelude::*;
use crate::mixed::world::{Ours, World};

const LEASE_MS: u64 = 15_000;
const LOOK_MS: u64 = 50;
/// The longest that a request takes to the store, or its answer back.
const WAY_MS: u64 = 40;

/// What a proxy does to the answers of one member.
#[derive(Default)]
struct Proxy {
    /// How far ahead its clock is.
    ahead_ms: Cell<u64>,
    bent: Cell<Bent>,
}

/// What else goes wrong on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Bent {
    #[default]
    Straight,
    /// Nothing arrives.
    Cut,
    /// A write is answered with another name of its version than reads are.
    Renamed,
    /// So many reads from now on, one says that there is no record.
    Absent(u32),
    /// The answer to a write is lost, and so many reads later one says that there is no record.
    Unheard(u32),
    /// The answer to a write is lost, and the wall clock is set far forward meanwhile.
    UnheardAndStepped,
}

impl Proxy {
    async fn perform(&self, time: &Virtual, memory: &Memory, operation: Operation) -> Answer {
        time.sleep(WAY_MS).await;
        if self.bent.get() == Bent::Cut {
            return std::future::pending().await;
        }
        let read = matches!(operation, Operation::Read { .. });
        let mut answer = memory.perform(operation).await;
        answer.facts.date_ms = answer.facts.date_ms.map(|date_ms| date_ms + self.ahead_ms.get());
        match (self.bent.get(), &mut answer.outcome) {
            (Bent::Renamed, Outcome::Written { version: Some(version) }) => {
                version.0 = version.0.trim_matches('"').to_owned();
            }
            (Bent::Absent(0), outcome) if read => {
                *outcome = Outcome::Missing;
                self.bent.set(Bent::Straight);
            }
            (Bent::Absent(reads), _) if read => self.bent.set(Bent::Absent(reads - 1)),
            (Bent::Unheard(_) | Bent::UnheardAndStepped, Outcome::Written { .. }) => {
                answer = Answer::unknown(Fault::new(FaultKind::Network, "reset"));
                if let Bent::Unheard(reads) = self.bent.get() {
                    self.bent.set(Bent::Absent(reads));
                } else {
                    time.stepped_ms.set(time.stepped_ms.get() + 20_000);
                    self.bent.set(Bent::Straight);
                }
            }
            _ => {}
        }
        time.sleep(WAY_MS).await;
        answer
    }
}

type Fleet = World<Memory>;
type Member = Ours<Rc<Proxy>>;

fn config(name: &str) -> Config {
    config_of(Settings { server_id: Some(name.to_owned()), ..Settings::default() })
}

fn fleet() -> Fleet {
    let mut fleet = World::new(LOOK_MS, 0, |time, _| {
        let memory = memory(time);
        block_on(edgelect::init(&memory, time, &config("init"))).expect("a new group");
        memory
    });
    fleet.pass(1_000);
    fleet
}

impl Fleet {
    fn begin(&self, name: &str, ahead_ms: u64) -> Member {
        self.start(config(name), ahead_ms)
    }

    fn start(&self, config: Config, ahead_ms: u64) -> Member {
        let name = &config.server_id.clone();
        let proxy = Rc::new(Proxy { ahead_ms: Cell::new(ahead_ms), ..Proxy::default() });
        let (time, memory, way) = (self.time.clone(), self.place.clone(), Rc::clone(&proxy));
        let store = Through(async move |operation| way.perform(&time, &memory, operation).await);
        let handle = Handle::new(Election::new(config, name.to_owned(), 7));
        self.elect(name, handle, store, self.time.clone(), proxy)
    }
}

/// A leader whose proxy is so far ahead, a while after its last renewal.
fn led(ahead_ms: u64) -> (Fleet, Member) {
    let mut fleet = fleet();
    let leader = fleet.begin("leader", ahead_ms);
    assert!(fleet.led_by("leader", 30_000));
    fleet.pass(12_300);
    (fleet, leader)
}

/// How far `Date` may be ahead is what the margin of the *other* member makes up for.
#[test]
fn a_long_margin_of_the_claimants_own_takes_no_living_lease() {
    let long = Settings {
        margin_ms: Some(LEASE_MS / 2),
        frequent_interval_ms: Some(1_000),
        request_timeout_ms: Some(500),
        ..Settings::default()
    };
    for ahead_ms in [3_000, 4_500, 6_500, 8_500] {
        for after_ms in (0..5_000).step_by(250) {
            let (mut fleet, leader) = led(0);
            fleet.pass(after_ms);
            leader.way.bent.set(Bent::Cut);
            let server_id = Some("fresh".to_owned());
            fleet.start(config_of(Settings { server_id, ..long.clone() }), ahead_ms);
            assert!(fleet.led_by("fresh", 60_000), "{ahead_ms} {after_ms}");
        }
    }
}

#[test]
fn a_member_behind_a_fast_proxy_takes_no_living_lease_beside_its_leader() {
    let mut taken = 0;
    for after_ms in (0..5_000).step_by(500) {
        for ahead_ms in [8_000, 15_000, 18_500, 30_000, 600_000] {
            let (mut fleet, leader) = led(0);
            fleet.pass(after_ms);
            let fresh = fleet.begin("fresh", ahead_ms);
            fleet.pass(60_000);
            assert_eq!(fleet.leaders().len(), 1, "{ahead_ms}: somebody leads again");
            if !leader.told.reasons().is_empty() {
                taken += 1;
                let told = problem(&fresh.handle);
                assert!(told.contains("ahead of its `Last-Modified`"), "{ahead_ms}: {told:?}");
            }
            // Where its leader is behind the same proxy, it stays.
            let (mut fleet, leader) = led(ahead_ms);
            fleet.pass(after_ms);
            fleet.begin("fresh", ahead_ms);
            fleet.pass(60_000);
            assert_eq!(
                (fleet.leaders(), leader.told.reasons()),
                (vec!["leader".to_owned()], vec![])
            );
            fleet.kill("leader");
            assert!(fleet.led_by("fresh", LEASE_MS + 6_000), "{ahead_ms}");
        }
    }
    assert!(taken > 20, "it was believed {taken} times");
    // Two proxies that answer in turn prove no age.
    for first in [0, 1] {
        let (mut fleet, _) = led(0);
        let fresh = fleet.begin("fresh", 30_000 * (1 - first));
        fleet.pass(2 * WAY_MS);
        fresh.way.ahead_ms.set(30_000 * first);
        fleet.pass(60_000);
        assert_eq!(fleet.leaders().len(), 1);
    }
}

/// The record of a leader that is gone.
fn old_record(lease_ms: u64) -> Vec<u8> {
    let times = r#""lastUpdated":"2026-11-18T00:00:00Z","acquired":"2026-11-18T00:00:00Z""#;
    let rest = r#""leaderID":"old","session":"s","sequence":3,"term":1700000000000"#;
    format!("{{{rest},{times},\"leaseMs\":{lease_ms}}}").into_bytes()
}

#[test]
fn what_a_claim_owes_outlasts_a_lost_answer_another_name_of_its_version_and_a_moment_of_absence() {
    let absences = (0..4).flat_map(|reads| [Bent::Absent(reads), Bent::Unheard(reads)]);
    for bent in absences.chain([Bent::Straight, Bent::Renamed, Bent::UnheardAndStepped]) {
        let (mut fleet, leader) = led(0);
        leader.way.bent.set(Bent::Cut);
        fleet.begin("fresh", 30_000).way.bent.set(bent);
        fleet.pass(60_000);
        assert_eq!(fleet.leaders(), ["fresh"], "{bent:?}");
    }
}

#[test]
fn a_clock_that_was_right_once_is_not_believed_for_ever() {
    for (number, ahead_ms) in (14_000..26_000).step_by(1_000).enumerate() {
        let mut fleet = fleet();
        // A dead leader's, so that the first claim rests on the store's clock alone and shows it to be right.
        fleet.place.overwrite(Some(old_record(LEASE_MS)));
        fleet.pass(60_000);
        let settings = Settings {
            server_id: Some("first".to_owned()),
            follow: Some(Follow::Frugal),
            infrequent_interval_ms: Some(30_000),
            ..Settings::default()
        };
        let first = fleet.start(config_of(settings), 0);
        assert!(fleet.led_by("first", 30_000));
        fleet.begin("second", 0);
        first.handle.tell(Input::Resign);
        assert!(fleet.led_by("second", 60_000));
        fleet.pass(50_000 + 1_700 * number as u64);
        first.way.ahead_ms.set(ahead_ms);
        fleet.pass(600_000);
        assert_eq!(fleet.leaders().len(), 1, "{ahead_ms}");
    }
}

#[test]
fn a_lease_longer_than_the_groups_is_watched_and_never_inherited() {
    let mut fleet = fleet();
    fleet.place.overwrite(Some(old_record(3_600_000)));
    fleet.pass(2 * 3_600_000);
    let fresh = fleet.begin("fresh", 0);
    fleet.pass(60_000);
    assert!(fleet.leaders().is_empty());
    assert!(problem(&fresh.handle).contains("longer than maxLease"), "{}", problem(&fresh.handle));
}
