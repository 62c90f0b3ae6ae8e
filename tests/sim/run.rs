//! Runs schedules, one or many, and tells what came out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::oracle::Violation;
use super::report::Tally;
use super::schedule::{Schedule, WITHIN_CONTRACT};
use super::world::Event;

/// The end of one schedule.
pub struct Ended {
    pub seed: u64,
    pub tally: Tally,
    pub violation: Option<Violation>,
    pub hash: u64,
    pub lines: Vec<String>,
    /// How many of the group's longest leases it lasted.
    pub leases: u64,
}

/// Runs the schedule of one seed.
pub fn run(seed: u64, keep: bool) -> Ended {
    run_at_rate(seed, keep, WITHIN_CONTRACT)
}

/// The same with clock rates at so many thousandths of the contract.
pub fn run_at_rate(seed: u64, keep: bool, rate_per_mille: u64) -> Ended {
    let mut schedule = Schedule::draw(seed, rate_per_mille);
    schedule.world.history.keep = keep;
    let mut end_ms = u64::MAX;
    let mut settled = false;
    while schedule.world.oracle.violation.is_none() {
        match schedule.world.step(end_ms) {
            None => break,
            Some(Event::Chaos) => schedule.strike(),
            Some(Event::Heal) => schedule.heal(),
            Some(_) => {}
        }
        let world = &mut schedule.world;
        if world.healed && !settled && world.now_ms >= world.trouble_until_ms {
            settled = true;
            end_ms = world.now_ms + schedule.bound_ms + 2 * schedule.lease_ms;
            world.leaderless_ms = 0;
            if let Some(since_ms) = &mut world.leaderless_since_ms {
                *since_ms = world.now_ms;
            }
            check_memory(&mut schedule);
        }
        check_liveness(&mut schedule, settled);
    }
    finish(seed, schedule)
}

/// I5: from the healing on nobody is without a leader for longer than the bound.
fn check_liveness(schedule: &mut Schedule, settled: bool) {
    let bound_ms = schedule.bound_ms;
    let world = &mut schedule.world;
    let late = settled && world.leaderless_ms > bound_ms;
    let waited_ms = world.leaderless_ms;
    world.oracle.broke_unless(!late, world.now_ms, "I5 a leader after healing", || {
        format!("nobody led for {waited_ms} ms after healing; the bound is {bound_ms} ms")
    });
}

/// What an election remembers is bounded, whatever it went through.
fn check_memory(schedule: &mut Schedule) {
    const MOST_BYTES: usize = 64 * 1024;
    let world = &mut schedule.world;
    for session in 0..world.sessions.len() {
        if !world.sessions[session].alive {
            continue;
        }
        let bytes = format!("{:?}", world.sessions[session].election).len();
        world.oracle.broke_unless(bytes <= MOST_BYTES, world.now_ms, "bounded memory", || {
            format!("s{session} needs {bytes} bytes to be told")
        });
    }
}

fn finish(seed: u64, schedule: Schedule) -> Ended {
    let Schedule { mut world, bound_ms, lease_ms, .. } = schedule;
    world.tally.simulated_ms = world.now_ms;
    world.tally.leaderless_ms = world.leaderless_ms;
    world.tally.slowest_per_mille = world.leaderless_ms * 1_000 / bound_ms;
    let leases = world.now_ms / lease_ms;
    let hash = world.history.hash;
    let lines = std::mem::take(&mut world.history.lines);
    Ended { seed, tally: world.tally, violation: world.oracle.violation, hash, lines, leases }
}

/// What a run of many schedules amounts to.
#[derive(Default)]
pub struct Summary {
    pub tally: Tally,
    pub schedules: u64,
    pub with_failover: u64,
    pub leases: Vec<u64>,
    /// The failing schedules, lowest seed first.
    pub broken: Vec<(u64, Violation)>,
}

impl Summary {
    fn add(&mut self, ended: &Ended) {
        self.schedules += 1;
        self.with_failover += u64::from(ended.tally.failovers > 0);
        self.leases.push(ended.leases);
        self.tally.add(&ended.tally);
        if let Some(violation) = &ended.violation {
            self.broken.push((ended.seed, violation.clone()));
        }
    }

    pub fn median_leases(&mut self) -> u64 {
        self.leases.sort_unstable();
        self.leases.get(self.leases.len() / 2).copied().unwrap_or(0)
    }
}

/// Runs the seeds from `first` on, on all cores. `prepare` is called once in each thread.
pub fn run_many(first: u64, count: u64, prepare: impl Fn() + Sync) -> Summary {
    run_chunks(first, count, prepare, false)
}

/// Runs seeds until one breaks a rule (and those that are under way); what they broke, lowest seed
/// first.
pub fn run_until_broken(
    first: u64,
    count: u64,
    prepare: impl Fn() + Sync,
) -> Vec<(u64, Violation)> {
    run_chunks(first, count, prepare, true).broken
}

fn run_chunks(first: u64, count: u64, prepare: impl Fn() + Sync, until_broken: bool) -> Summary {
    const CHUNK: u64 = 16;
    let next = AtomicU64::new(0);
    let whole = Mutex::new(Summary::default());
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                prepare();
                let mut part = Summary::default();
                loop {
                    let chunk = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if chunk >= count {
                        break;
                    }
                    for seed in chunk..count.min(chunk + CHUNK) {
                        part.add(&run(first + seed, false));
                    }
                    if until_broken && !part.broken.is_empty() {
                        next.store(count, Ordering::Relaxed);
                    }
                }
                let mut whole = whole.lock().expect("no thread panics with the lock");
                whole.schedules += part.schedules;
                whole.with_failover += part.with_failover;
                whole.leases.append(&mut part.leases);
                whole.tally.add(&part.tally);
                whole.broken.append(&mut part.broken);
            });
        }
    });
    let mut whole = whole.into_inner().expect("every thread has ended");
    whole.broken.sort_by_key(|(seed, _)| *seed);
    whole
}

/// The end of a failing schedule's history and how to run it alone.
pub fn retell(seed: u64) -> String {
    const LAST_LINES: usize = 200;
    let ended = run(seed, true);
    let from = ended.lines.len().saturating_sub(LAST_LINES);
    let told = ended.lines[from..].join("\n");
    let violation = ended.violation.map_or("no violation".to_owned(), |violation| {
        format!("at {} ms: {}: {}", violation.at_ms, violation.check, violation.text)
    });
    format!(
        "{told}\nseed {seed}: {violation}\nagain: EDGELECT_SEED={seed} cargo test \
         --test simulation schedules -- --nocapture"
    )
}
