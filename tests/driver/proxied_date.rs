//! A proxy that replaces `Date` by its own clock's, without `Via` or `Age`: what it says of the age of a lease
//! costs time, and no second leader.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::election::{Election, Event};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Fault, FaultKind, Operation, Outcome, Store};
use edgelect::{Config, Follow, Handle, Host, Input, Settings};
use futures::executor::block_on;
use futures::future::AbortHandle;

use worlds::virtual_time::{Machine, Through, Virtual, config_of};

const LEASE_MS: u64 = 15_000;
const LOOK_MS: u64 = 50;
/// The longest that a request takes to the store, or its answer back.
const WAY_MS: u64 = 40;

/// The way of one member to the store.
struct Way {
    time: Virtual,
    memory: Memory,
    /// How far ahead the clock of the proxy on it is.
    ahead_ms: Rc<Cell<u64>>,
    bent: Rc<Cell<Bent>>,
}

/// What else goes wrong on it.
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

impl Way {
    async fn perform(&self, operation: Operation) -> Answer {
        self.time.sleep(WAY_MS).await;
        if self.bent.get() == Bent::Cut {
            return std::future::pending().await;
        }
        let read = matches!(operation, Operation::Read { .. });
        let mut answer = self.memory.perform(operation).await;
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
                    self.time.stepped_ms.set(self.time.stepped_ms.get() + 20_000);
                    self.bent.set(Bent::Straight);
                }
            }
            _ => {}
        }
        self.time.sleep(WAY_MS).await;
        answer
    }
}

struct Member {
    handle: Handle,
    ahead_ms: Rc<Cell<u64>>,
    bent: Rc<Cell<Bent>>,
    end: AbortHandle,
}

struct World {
    machine: Machine,
    memory: Memory,
    members: Vec<Member>,
    losses: Rc<Cell<usize>>,
}

fn config(name: &str) -> Config {
    config_of(Settings { server_id: Some(name.to_owned()), ..Settings::default() })
}

impl World {
    fn new() -> Self {
        let mut machine = Machine::default();
        let clock = machine.host.clone();
        let memory = Memory::new(move || clock.wall_ms());
        block_on(edgelect::init(&memory, &machine.host, &config("init"))).expect("a new group");
        machine.pass(1_000);
        Self { machine, memory, members: Vec::new(), losses: Rc::default() }
    }

    fn start(&mut self, session: &str, config: Config, ahead_ms: u64) -> usize {
        let handle = Handle::new(Election::new(config, session.to_owned(), 7));
        let way = Way {
            time: self.machine.host.clone(),
            memory: self.memory.clone(),
            ahead_ms: Rc::new(Cell::new(ahead_ms)),
            bent: Rc::default(),
        };
        let (ahead_ms, bent) = (Rc::clone(&way.ahead_ms), Rc::clone(&way.bent));
        let losses = Rc::clone(&self.losses);
        let note = move |event| {
            if let Event::Lost { .. } = event {
                losses.set(losses.get() + 1);
            }
        };
        let store = Through(async move |operation| way.perform(operation).await);
        let end = self.machine.elect(&handle, store, &self.machine.host, note);
        self.members.push(Member { handle, ahead_ms, bent, end });
        self.members.len() - 1
    }

    fn begin(&mut self, name: &str, ahead_ms: u64) -> usize {
        self.start(name, config(name), ahead_ms)
    }

    /// Ends a member without any notice.
    fn kill(&self, number: usize) {
        self.members[number].end.abort();
    }

    fn leaders(&self) -> Vec<usize> {
        let now = self.machine.host.now();
        let leads = |one: &Member| !one.end.is_aborted() && one.handle.authority(now).is_some();
        (0..self.members.len()).filter(|number| leads(&self.members[*number])).collect()
    }

    /// Lets time pass; never do two lead.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / LOOK_MS {
            self.machine.pass(LOOK_MS);
            let leaders = self.leaders();
            let now_ms = self.machine.host.now_ms.get();
            assert!(leaders.len() <= 1, "{leaders:?} lead at once at {now_ms}");
        }
    }

    /// How long it takes until this member leads, at most `most_ms`.
    fn leads_after_ms(&mut self, number: usize, most_ms: u64) -> Option<u64> {
        (0..=most_ms / LOOK_MS).map(|looks| looks * LOOK_MS).find(|_| {
            let leads = self.leaders() == [number];
            if !leads {
                self.pass(LOOK_MS);
            }
            leads
        })
    }

    fn requests(&self, number: usize) -> (u64, u64) {
        let requests = self.members[number].handle.requests();
        (requests.read, requests.write)
    }

    fn error(&self, number: usize) -> String {
        self.members[number].handle.with(|election| {
            election.problem().map(edgelect::election::Problem::to_string).unwrap_or_default()
        })
    }
}

/// A world with a leader whose proxy is so far ahead, a while after its last renewal.
fn led(ahead_ms: u64) -> (World, usize) {
    let mut world = World::new();
    let leader = world.begin("leader", ahead_ms);
    assert!(world.leads_after_ms(leader, 30_000).is_some());
    world.pass(12_300);
    (world, leader)
}

#[test]
fn a_member_behind_a_fast_proxy_takes_no_living_lease_beside_its_leader() {
    let mut taken = 0;
    for after_ms in (0..5_000).step_by(500) {
        for ahead_ms in [8_000, 15_000, 18_500, 30_000, 600_000] {
            let (mut world, _) = led(0);
            world.pass(after_ms);
            let fresh = world.begin("fresh", ahead_ms);
            world.pass(60_000);
            assert_eq!(world.leaders().len(), 1, "{ahead_ms}: somebody leads again");
            if world.losses.get() > 0 {
                taken += 1;
                let told = world.error(fresh);
                assert!(told.contains("ahead of its `Last-Modified`"), "{ahead_ms}: {told:?}");
            }
            // Where its leader is behind the same proxy, it stays.
            let (mut world, leader) = led(ahead_ms);
            world.pass(after_ms);
            world.begin("fresh", ahead_ms);
            world.pass(60_000);
            assert_eq!((world.leaders(), world.losses.get()), (vec![leader], 0), "{ahead_ms}");
            world.kill(leader);
            assert!(world.leads_after_ms(1, LEASE_MS + 6_000).is_some(), "{ahead_ms}");
        }
    }
    assert!(taken > 20, "it was believed {taken} times");
    // Two proxies that answer in turn prove no age.
    for first in [0, 1] {
        let (mut world, _) = led(0);
        let fresh = world.begin("fresh", 30_000 * (1 - first));
        world.pass(2 * WAY_MS);
        world.members[fresh].ahead_ms.set(30_000 * first);
        world.pass(60_000);
        assert_eq!(world.leaders().len(), 1);
    }
}

#[test]
fn an_honest_clock_is_believed_after_one_reading_of_the_own_claim() {
    let (mut world, leader) = led(0);
    world.kill(leader);
    world.pass(LEASE_MS + 4_000);
    let fresh = world.begin("fresh", 0);
    let took_ms = world.leads_after_ms(fresh, 30_000).expect("it leads");
    assert!(took_ms <= 3 * 2 * WAY_MS + LOOK_MS, "{took_ms} ms");
    assert_eq!(world.requests(fresh), (2, 1));
    world.pass(20_000);
    assert_eq!(world.leaders(), [fresh]);
    assert_eq!(world.error(fresh), "");
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
        let (mut world, leader) = led(0);
        world.members[leader].bent.set(Bent::Cut);
        let fresh = world.begin("fresh", 30_000);
        world.members[fresh].bent.set(bent);
        world.pass(60_000);
        assert_eq!(world.leaders(), [fresh], "{bent:?}");
    }
}

#[test]
fn a_clock_that_was_right_once_is_not_believed_for_ever() {
    for (number, ahead_ms) in (14_000..26_000).step_by(1_000).enumerate() {
        let mut world = World::new();
        // A dead leader's, so that the first claim rests on the store's clock alone and shows it to be right.
        world.memory.overwrite(Some(old_record(LEASE_MS)));
        world.pass(60_000);
        let settings = Settings {
            server_id: Some("first".to_owned()),
            follow: Some(Follow::Frugal),
            infrequent_interval_ms: Some(30_000),
            ..Settings::default()
        };
        let first = world.start("first", config_of(settings), 0);
        assert!(world.leads_after_ms(first, 30_000).is_some());
        let second = world.begin("second", 0);
        world.members[first].handle.tell(Input::Resign);
        assert!(world.leads_after_ms(second, 60_000).is_some());
        world.pass(50_000 + 1_700 * number as u64);
        world.members[first].ahead_ms.set(ahead_ms);
        world.pass(600_000);
        assert_eq!(world.leaders().len(), 1, "{ahead_ms}");
    }
}

#[test]
fn a_lease_longer_than_the_groups_is_watched_and_never_inherited() {
    let mut world = World::new();
    world.memory.overwrite(Some(old_record(3_600_000)));
    world.pass(2 * 3_600_000);
    let fresh = world.begin("fresh", 0);
    world.pass(60_000);
    assert!(world.leaders().is_empty());
    assert!(world.error(fresh).contains("longer than maxLease"), "{}", world.error(fresh));
}
