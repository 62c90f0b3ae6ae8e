//! Runs schedules, one or many, and tells what came out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::oracle::Violation;
use super::report::{Kind, Tally};
use super::schedule::{Schedule, WITHIN_CONTRACT};
use super::shrink::shrink;
use super::world::{Depth, Turn, World};

/// One schedule's name: `core:7`, or `store:7` with the real store code between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Seed {
    pub depth: Depth,
    pub number: u64,
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depth = match self.depth {
            Depth::Core => "core",
            Depth::Store => "store",
        };
        write!(f, "{depth}:{}", self.number)
    }
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            let rule = "a seed is core:NUMBER or store:NUMBER, such as core:7";
            format!("there is no seed {text:?}: {rule}, as a failing run prints it")
        };
        let (depth, number) = text.split_once(':').unwrap_or(("core", text));
        let depth = match depth {
            "core" => Depth::Core,
            "store" => Depth::Store,
            _ => return Err(refused()),
        };
        let number = number.parse().map_err(|_| refused())?;
        Ok(Self { depth, number })
    }
}

/// The end of one schedule.
pub struct Ended {
    pub seed: Seed,
    pub tally: Tally,
    pub violation: Option<Violation>,
    pub hash: u64,
    pub lines: Vec<String>,
    /// How many of the group's longest leases it lasted.
    pub leases: u64,
}

/// Runs the schedule of one seed.
pub fn run(seed: Seed, keep: bool) -> Ended {
    run_at_rate(seed, keep, WITHIN_CONTRACT)
}

/// After how many schedules clocks whose rates break the contract show themselves as two leaders.
pub fn canary() -> Option<u64> {
    const BEYOND_PER_MILLE: u64 = 1_250;
    (0..3_000).find(|number| {
        let seed = Seed { depth: Depth::Core, number: *number };
        let violation = run_at_rate(seed, false, BEYOND_PER_MILLE).violation;
        violation.is_some_and(|violation| violation.check == "I1 one authority")
    })
}

/// What all events of so many schedules of each depth come to.
pub fn trace(count: u64) -> u64 {
    let both = [Depth::Core, Depth::Store].into_iter();
    let seeds = both.flat_map(|depth| (0..count).map(move |number| Seed { depth, number }));
    seeds.fold(0, |trace, seed| trace.rotate_left(7) ^ run(seed, false).hash)
}

/// The same with clock rates at so many thousandths of the contract.
fn run_at_rate(seed: Seed, keep: bool, rate_per_mille: u64) -> Ended {
    let schedule = Schedule::draw(seed.number, seed.depth, rate_per_mille);
    Running::new(schedule, keep).to_end(seed)
}

/// A schedule under way.
pub struct Running {
    pub schedule: Schedule,
    end_ms: u64,
    asked_ms: u64,
}

impl Running {
    pub fn new(mut schedule: Schedule, keep: bool) -> Self {
        schedule.world.history.keep = keep;
        Self { schedule, end_ms: u64::MAX, asked_ms: 0 }
    }

    pub fn to_end(mut self, seed: Seed) -> Ended {
        while self.step(u64::MAX) {}
        self.finish(seed)
    }

    /// When it is over, once the faults are.
    pub fn end_ms(&self) -> u64 {
        self.end_ms
    }

    /// Whether nothing more is to be expected: the faults have been over for two leases, and somebody leads.
    pub fn rests(&self) -> bool {
        let Schedule { world, bound_ms, .. } = &self.schedule;
        let led = world.slots.is_none() && world.leaderless_since_ms.is_none();
        let over_ms = self.end_ms.saturating_sub(if led { *bound_ms } else { 0 });
        world.now_ms >= over_ms
    }

    /// The next event up to `until_ms`; false when there is none, or a rule is broken.
    pub fn step(&mut self, until_ms: u64) -> bool {
        let Self { schedule, end_ms, asked_ms } = self;
        if schedule.world.oracle.violation.is_some() {
            return false;
        }
        match schedule.world.step(until_ms.min(*end_ms)) {
            None => return false,
            Some(Turn::Chaos) => schedule.strike(),
            Some(Turn::Meddle) => schedule.meddle(),
            Some(Turn::Heal) => schedule.heal(),
            Some(Turn::Usual) => {}
        }
        let world = &mut schedule.world;
        if world.healed && *end_ms == u64::MAX && world.now_ms >= world.trouble_until_ms {
            *end_ms = world.now_ms + schedule.bound_ms + 2 * schedule.lease_ms;
            if let Some(plan) = &world.slots {
                *end_ms += plan.budget_ms + 4 * plan.period_ms;
                *asked_ms = plan.asked_ms;
            }
            world.leaderless_ms = 0;
            if let Some(since_ms) = &mut world.leaderless_since_ms {
                *since_ms = world.now_ms;
            }
            check_memory(schedule);
        }
        check_liveness(schedule, *end_ms < u64::MAX);
        true
    }

    /// The schedule is over: judges, once, what its members owe by now.
    pub fn judge_end(&mut self) {
        check_slots(&mut self.schedule, std::mem::take(&mut self.asked_ms));
    }

    pub fn finish(mut self, seed: Seed) -> Ended {
        self.judge_end();
        let Schedule { mut world, bound_ms, lease_ms, .. } = self.schedule;
        world.tally.simulated_ms = world.now_ms;
        // Between two slots nobody has to lead.
        if world.slots.is_none() {
            world.tally.slowest_per_mille = world.leaderless_ms * 1_000 / bound_ms;
        }
        let leases = world.now_ms / lease_ms;
        let World { tally, oracle, history, .. } = world;
        let (hash, lines) = (history.hash, history.lines);
        Ended { seed, tally, violation: oracle.violation, hash, lines, leases }
    }
}

/// I5: from the healing on nobody is without a leader for longer than the bound.
fn check_liveness(schedule: &mut Schedule, settled: bool) {
    let bound_ms = schedule.bound_ms;
    let world = &mut schedule.world;
    let late = settled && !schedule.wild && world.slots.is_none() && world.leaderless_ms > bound_ms;
    let waited_ms = world.leaderless_ms;
    require!(world.oracle, !late, "I5 a leader after healing";
        "nobody led for {waited_ms} ms after healing; the bound is {bound_ms} ms");
}

/// Every slot that a trigger had asked for when the faults were over is run by the end, or its
/// failures are spent.
fn check_slots(schedule: &mut Schedule, asked_ms: u64) {
    let owes = schedule.owes_slots();
    let world = &mut schedule.world;
    let Some(plan) = world.slots.as_ref().filter(|_| owes && asked_ms > 0) else { return };
    let owed = match world.oracle.slots.newest_ms > 0 {
        true => world.oracle.slots.owed(plan, asked_ms),
        false => vec![asked_ms],
    };
    world.tally.fault(Kind::SlotOwed);
    require!(world.oracle, owed.is_empty(), "slot: none is lost";
        "nobody ran {owed:?}, asked for until {asked_ms}");
}

/// What an election remembers is bounded, whatever it went through.
fn check_memory(schedule: &mut Schedule) {
    const MOST_BYTES: usize = 96 * 1024;
    let world = &mut schedule.world;
    for session in 0..world.sessions.len() {
        if !world.sessions[session].alive {
            continue;
        }
        let bytes = format!("{:?}", world.sessions[session].election).len();
        require!(world.oracle, bytes <= MOST_BYTES, "bounded memory";
            "s{session} needs {bytes} bytes to be told");
    }
}

/// The file of all seeds that ever broke a rule; they run first.
const FAILED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sim/failed.txt");

/// Every seed that ever broke a rule.
pub fn failed_before() -> Vec<Seed> {
    let text = std::fs::read_to_string(FAILED).expect("tests/sim/failed.txt can be read");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let seed = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.parse().unwrap_or_else(|error| panic!("tests/sim/failed.txt: {error}"))
    };
    lines.map(seed).collect()
}

/// Adds a seed to them.
///
/// # Errors
/// The file cannot be written.
pub fn remember_failure(seed: Seed, check: &str) -> Result<(), String> {
    if failed_before().contains(&seed) {
        return Ok(());
    }
    let cannot = |error| format!("cannot add {seed} to {FAILED}: {error}");
    let mut text = std::fs::read_to_string(FAILED).map_err(cannot)?;
    text.push_str(&format!("{seed} {check}\n"));
    std::fs::write(FAILED, text).map_err(cannot)
}

/// What a run of many schedules amounts to.
#[derive(Clone, Default, Deserialize, Serialize)]
pub struct Summary {
    pub tally: Tally,
    pub schedules: u64,
    pub with_failover: u64,
    /// How many schedules lasted so many of their group's longest leases.
    pub leases: BTreeMap<u64, u64>,
    /// The failing schedules, lowest seed first.
    #[serde(skip)]
    pub broken: Vec<(Seed, Violation)>,
}

impl Summary {
    fn add(&mut self, ended: &Ended) {
        self.schedules += 1;
        self.with_failover += u64::from(ended.tally.failovers > 0);
        *self.leases.entry(ended.leases).or_default() += 1;
        self.tally.add(&ended.tally);
        if let Some(violation) = &ended.violation {
            self.broken.push((ended.seed, violation.clone()));
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.with_failover += other.with_failover;
        self.tally.add(&other.tally);
        for (leases, schedules) in other.leases {
            *self.leases.entry(leases).or_default() += schedules;
        }
        self.broken.extend(other.broken);
        self.broken.sort_by_key(|(seed, _)| seed.number);
    }

    pub fn median_leases(&self) -> u64 {
        let mut left = self.schedules / 2;
        for (leases, schedules) in &self.leases {
            if *schedules > left {
                return *leases;
            }
            left -= schedules;
        }
        0
    }
}

/// The seeds of one run: so many from a first one on.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub depth: Depth,
    pub first: u64,
    pub count: u64,
}

/// Runs all of them, on all cores, and calls `progress` after each.
pub fn run_many(range: Range, progress: impl Fn() + Sync) -> Summary {
    let goes_on = |_: &Summary| {
        progress();
        true
    };
    run_range(range, || (), goes_on)
}

/// Runs seeds until one breaks a rule (and those that are under way); the lowest that did, and what it broke.
pub fn run_until_broken(range: Range, prepare: impl Fn() + Sync) -> Option<(Seed, Violation)> {
    let summary = run_range(range, prepare, |part| part.broken.is_empty());
    summary.broken.into_iter().next()
}

fn run_range(
    Range { depth, first, count }: Range,
    prepare: impl Fn() + Sync,
    goes_on: impl Fn(&Summary) -> bool + Sync,
) -> Summary {
    let each = |part: &mut Summary, number| {
        part.add(&run(Seed { depth, number }, false));
        goes_on(part)
    };
    on_all_cores(first..first + count, prepare, each, Summary::merge)
}

/// Runs seeds on all cores, each thread into a sum of its own, until there are no more or `each` says that no other need
/// begin. `prepare` is called once in each thread.
pub fn on_all_cores<S: Default + Send>(
    seeds: std::ops::Range<u64>,
    prepare: impl Fn() + Sync,
    each: impl Fn(&mut S, u64) -> bool + Sync,
    merge: impl Fn(&mut S, S) + Sync,
) -> S {
    let next = AtomicU64::new(seeds.start);
    let whole = Mutex::new(S::default());
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                prepare();
                let mut part = S::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    if !each(&mut part, seed) {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
                merge(&mut whole.lock().expect("no thread panics with the lock"), part);
            });
        }
    });
    whole.into_inner().expect("every thread has ended")
}

/// The history of a schedule, its head and its end, and how to run it alone.
pub fn retell(seed: Seed) -> String {
    const LAST_LINES: usize = 200;
    let mut lines = Schedule::draw(seed.number, seed.depth, WITHIN_CONTRACT).cast();
    let ended = run(seed, true);
    let from = ended.lines.len().saturating_sub(LAST_LINES);
    lines.extend_from_slice(&ended.lines[from..]);
    let violation = told(ended.violation.as_ref());
    format!("{}\nseed {seed}: {violation}\nagain: npm run prove -- --seed {seed}", lines.join("\n"))
}

/// The history of a smaller schedule that breaks the same rule.
pub fn retell_small(seed: Seed) -> String {
    let Some(ended) = shrink(seed) else { return format!("seed {seed} breaks no rule") };
    let violation = told(ended.violation.as_ref());
    format!("{}\nseed {seed}, made smaller: {violation}", ended.lines.join("\n"))
}

fn told(violation: Option<&Violation>) -> String {
    violation.map_or("no violation".to_owned(), |violation| {
        format!("at {} ms: {}: {}", violation.at_ms, violation.check, violation.text)
    })
}
