//! What is simulated.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgelect::config::Follow;

use worlds::fleet::count::{Cause, Failover, Requests, percentile};
use worlds::fleet::run::Fleet;
use worlds::fleet::{Peers, Setup};

pub const FOLLOWS: [Follow; 3] = [Follow::Tight, Follow::Balanced, Follow::Frugal];

pub const PEERS: [Peers; 3] = [Peers::Off, Peers::On, Peers::Relay];

pub fn peers_name(peers: Peers) -> &'static str {
    match peers {
        Peers::Off => "no",
        Peers::On => "yes",
        Peers::Relay => "and relays",
    }
}

/// How long a request to the store takes, in milliseconds.
pub const STORES_MS: [u64; 2] = [20, 200];

#[derive(Clone, Copy, PartialEq)]
enum Task {
    /// A stable group for so many minutes.
    Stable(u64),
    /// So many crashes and so many resignations.
    Failovers(usize),
}

/// The requests of a stable group.
pub struct Stable {
    pub setup: Setup,
    pub minutes: u64,
    pub requests: Requests,
}

/// The failovers of a group.
pub struct Failovers {
    pub setup: Setup,
    pub crashes: Vec<Failover>,
    pub resignations: Vec<Failover>,
}

#[derive(Default)]
pub struct Results {
    pub stable: Vec<Stable>,
    pub failovers: Vec<Failovers>,
}

impl Stable {
    pub fn per_hour(&self, count: u64) -> f64 {
        count as f64 * 60.0 / self.minutes as f64
    }

    /// The requests of one follower in an hour: GETs and questions to the leader.
    pub fn of_follower(&self) -> (f64, f64) {
        let each = |count| self.per_hour(count) / self.setup.followers as f64;
        (each(self.requests.gets()), each(self.requests.questions))
    }
}

/// The median and the 99th percentile.
pub fn spread(of: &[Failover], value: fn(&Failover) -> u64) -> (u64, u64) {
    (percentile(of.iter().map(value), 50), percentile(of.iter().map(value), 99))
}

impl Results {
    pub fn stable(&self, wanted: impl Fn(&Setup) -> bool) -> impl Iterator<Item = &Stable> {
        self.stable.iter().filter(move |one| wanted(&one.setup))
    }

    pub fn failovers(&self, wanted: impl Fn(&Setup) -> bool) -> impl Iterator<Item = &Failovers> {
        self.failovers.iter().filter(move |one| wanted(&one.setup))
    }
}

/// The sizes of groups that are simulated.
const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

fn tasks(quick: bool, most: usize) -> Vec<(Setup, Task)> {
    let minutes = |followers: usize| match followers {
        _ if quick => 5,
        0..=1_000 => 30,
        1_001..=10_000 => 10,
        _ => 2,
    };
    let mut tasks = Vec::new();
    // The largest first, so that no core waits for the other at the end.
    for followers in SIZES.into_iter().rev().filter(|size| *size <= most) {
        let of = Setup::of(followers);
        let rounds = Task::Failovers(rounds(quick, followers));
        for (follow, peers) in FOLLOWS.into_iter().flat_map(|f| PEERS.map(|peers| (f, peers))) {
            let setup = Setup { follow, peers, ..of };
            // Relays answer where the leader has no room, whatever the follow.
            let relays = follow == Follow::Tight && followers > 1_000;
            if peers != Peers::Relay || relays {
                tasks.push((setup, Task::Stable(minutes(followers))));
            }
            // What is measured of `tight` below is not measured twice.
            let other = match peers {
                Peers::Off => follow != Follow::Tight,
                Peers::On => true,
                Peers::Relay => relays,
            };
            // Those of the largest groups take too long to simulate.
            if other && followers <= 10_000 {
                tasks.push((setup, rounds));
            }
        }
        for (store_ms, limited) in STORES_MS.into_iter().flat_map(|ms| [(ms, false), (ms, true)]) {
            tasks.push((Setup { store_ms, limited, ..of }, rounds));
        }
        if followers <= 10_000 {
            tasks.push((Setup { limited: true, peers: Peers::On, ..of }, rounds));
        }
        // In smaller groups few are there to write at once.
        if (1_000..=10_000).contains(&followers) {
            for follow in [Follow::Balanced, Follow::Frugal] {
                tasks.push((Setup { follow, store_ms: 200, ..of }, rounds));
                tasks.push((Setup { follow, limited: true, ..of }, rounds));
            }
        }
    }
    tasks
}

/// How many crashes are simulated, and as many resignations.
pub fn rounds(quick: bool, followers: usize) -> usize {
    match followers {
        _ if quick => 10,
        0..=1_000 => 60,
        1_001..=10_000 => 20,
        _ => 5,
    }
}

/// Simulates groups of up to so many followers on all cores; `told` hears what has ended.
pub fn run(quick: bool, most: usize, told: impl Fn(usize, usize, &str) + Sync) -> Results {
    let tasks = tasks(quick, most);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Results::default());
    let work = || {
        while let Some((setup, task)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            simulate(*setup, *task, &results);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            told(done, tasks.len(), &name(setup, *task));
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut results = results.into_inner().expect("no simulation has panicked");
    // The smallest first, and in each size as they began: threads end in another order each time.
    let place = |setup: &Setup| (setup.followers, tasks.iter().position(|(task, _)| task == setup));
    results.stable.sort_by_key(|one| place(&one.setup));
    results.failovers.sort_by_key(|one| place(&one.setup));
    results
}

fn simulate(setup: Setup, task: Task, results: &Mutex<Results>) {
    let mut fleet = Fleet::new(setup);
    fleet.settle();
    match task {
        Task::Stable(minutes) => {
            let requests = fleet.stable(minutes);
            let stable = Stable { setup, minutes, requests };
            results.lock().expect("no simulation has panicked").stable.push(stable);
        }
        Task::Failovers(rounds) => {
            let mut times = |cause| (0..rounds).map(|_| fleet.fail(cause)).collect();
            let (crashes, resignations) = (times(Cause::Crash), times(Cause::Resign));
            let failovers = Failovers { setup, crashes, resignations };
            results.lock().expect("no simulation has panicked").failovers.push(failovers);
        }
    }
}

fn name(setup: &Setup, task: Task) -> String {
    let Setup { followers, follow, store_ms, limited, peers, .. } = setup;
    let kind = if matches!(task, Task::Stable(_)) { "stable" } else { "failovers" };
    let peers = peers_name(*peers);
    let limited = if *limited { ", one write a second" } else { "" };
    format!(
        "{followers} {} followers, store {store_ms} ms{limited}, peers {peers}: {kind}",
        follow.name()
    )
}
