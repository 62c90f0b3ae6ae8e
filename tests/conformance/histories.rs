//! Random histories of a store, held against a register with compare-and-swap: whether some order of the operations, each
//! within its own time, explains every answer (linearisability). The checker is crate stateright's.
//!
//! A seed draws what the clients do; what meets what is up to the store as well, so a failure prints the whole history.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};

use edgelect::lease::Reading;
use edgelect::store::{Condition, Operation, Outcome, Store, Version};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use crate::chance::Chance;
use crate::conformance::{self, Traits, pause, record};

const CLIENTS: u64 = 4;

/// Each doubles what the checker may have to try.
const MOST_UNHEARD: u64 = 3;

/// How many histories a run plays; each broken store of `stores.rs` is found by one of the first three.
const USUAL: u64 = 25;

/// As many as a long run plays, or the usual number. `EDGELECT_LONG=1` makes it a long run.
pub fn how_many(long: u64, variable: Option<String>) -> u64 {
    if variable.as_deref() == Some("1") { long } else { USUAL }
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub count: u64,
    pub at_once: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub histories: u64,
    pub operations: u64,
    /// Operations that began while another was under way.
    pub overlapping: u64,
    pub landed: u64,
    pub refused: u64,
    /// Operations whose answer nobody heard.
    pub unheard: u64,
}

impl Tally {
    /// Whether every history of the plan was played, and they have met what they are there for.
    fn has_met(&self, plan: Plan) {
        let Self { histories, operations, overlapping, landed, refused, unheard } = *self;
        assert!(histories == plan.count && overlapping > operations / 2, "{self:?}");
        // One after the other they leave each other in peace.
        let least = if plan.at_once == 1 { 2 * histories } else { histories };
        assert!(landed > least && refused > least && unheard > least / 2, "{self:?}");
    }
}

/// Each write's `sequence`, new in its history, stands for its body.
type Value = u64;

#[derive(Clone, Debug)]
struct Register(Option<Value>);

#[derive(Clone, Debug)]
enum Op {
    Read,
    Swap { expected: Option<Value>, new: Value },
}

#[derive(Clone, Debug, PartialEq)]
enum Ret {
    Shown(Option<Value>),
    Landed,
    Refused,
}

impl SequentialSpec for Register {
    type Op = Op;
    type Ret = Ret;

    fn invoke(&mut self, op: &Op) -> Ret {
        match op {
            Op::Read => Ret::Shown(self.0),
            Op::Swap { expected, .. } if *expected != self.0 => Ret::Refused,
            Op::Swap { new, .. } => {
                self.0 = Some(*new);
                Ret::Landed
            }
        }
    }
}

/// Everything that a store must show: the list, and the histories of the plan.
pub async fn conforms<S: Store>(traits: Traits, plan: Plan, fresh: impl Fn() -> S) -> Tally {
    let ran = conformance::check(traits, &fresh).await;
    let left_out = if traits.keeps_any_body { 0 } else { 2 };
    let covers = fresh().condition_covers_version();
    assert_eq!(ran + left_out + usize::from(!covers), conformance::ALL, "behaviours");
    let tally = check(plan, fresh).await.unwrap_or_else(|broken| panic!("{broken}"));
    tally.has_met(plan);
    tally
}

/// Runs the plan, each history on a place of its own that `fresh` gives.
///
/// # Errors
/// The first history that no order explains.
pub async fn check<S: Store>(plan: Plan, fresh: impl Fn() -> S) -> Result<Tally, String> {
    let mut under_way = stream::iter(1..=plan.count)
        .map(|seed| {
            let store = fresh();
            async move { one(&store, seed).await }
        })
        .buffer_unordered(plan.at_once);
    let mut sum = Tally::default();
    while let Some(tally) = under_way.next().await {
        let tally = tally?;
        sum.histories += 1;
        sum.operations += tally.operations;
        sum.overlapping += tally.overlapping;
        sum.landed += tally.landed;
        sum.refused += tally.refused;
        sum.unheard += tally.unheard;
    }
    Ok(sum)
}

async fn one<S: Store>(store: &S, seed: u64) -> Result<Tally, String> {
    let refusals_are_sure = store.condition_covers_version();
    let record = RefCell::new(Record { refusals_are_sure, ..Record::default() });
    let left_alone = RefCell::new(Vec::new());
    play(store, &record, &left_alone, Chance::new(seed)).await;
    drop(left_alone);
    let record = record.into_inner();
    let why = match record.torn {
        Some(why) => why,
        None if record.has_an_order() => return Ok(record.tally),
        None => "no order of the operations explains the answers",
    };
    Err(format!("{}: seed {seed}: {why}:\n  {}", store.describe(), record.log.join("\n  ")))
}

/// Operations that nobody waits for.
type LeftAlone<'s> = RefCell<Vec<Pin<Box<dyn Future<Output = ()> + 's>>>>;

async fn play<'s, S: Store>(
    store: &'s S,
    record: &RefCell<Record>,
    left_alone: &LeftAlone<'s>,
    mut chance: Chance,
) {
    let clients = (0..CLIENTS).map(|_| {
        let thread = record.borrow_mut().new_thread();
        let chance = Chance::new(chance.next());
        Client { store, record, left_alone, chance, thread, known: Vec::new() }.act()
    });
    let mut clients = pin!(join_all(clients));
    poll_fn(|context| {
        left_alone.borrow_mut().retain_mut(|one| one.as_mut().poll(context).is_pending());
        clients.as_mut().poll(context)
    })
    .await;
}

#[derive(Debug)]
enum Step {
    Begins(Op),
    Ends(Op, Ret),
}

#[derive(Default)]
struct Record {
    /// Whether what was refused did surely not take effect.
    refusals_are_sure: bool,
    steps: Vec<(u64, Step)>,
    shown: HashSet<Value>,
    tally: Tally,
    log: Vec<String>,
    threads: u64,
    values: Value,
    under_way: u64,
    bodies: HashMap<Version, Value>,
    torn: Option<&'static str>,
}

impl Record {
    fn new_thread(&mut self) -> u64 {
        self.threads += 1;
        self.threads
    }

    fn begun(&mut self, thread: u64, op: Op) {
        self.log.push(format!("{thread} begins {op:?}"));
        self.tally.operations += 1;
        self.tally.overlapping += u64::from(self.under_way > 0);
        self.under_way += 1;
        self.steps.push((thread, Step::Begins(op)));
    }

    fn ended(&mut self, thread: u64, op: &Op, ret: Option<Ret>) {
        self.under_way -= 1;
        let Some(ret) = ret else {
            self.log.push(format!("{thread} was not answered"));
            self.tally.unheard += 1;
            return;
        };
        self.log.push(format!("{thread} ends with {ret:?}"));
        self.tally.landed += u64::from(ret == Ret::Landed);
        self.tally.refused += u64::from(ret == Ret::Refused);
        if let Ret::Shown(Some(value)) = &ret {
            self.shown.insert(*value);
        }
        self.steps.push((thread, Step::Ends(op.clone(), ret)));
    }

    /// Whether some order explains every answer. A claim of the next epoch that was written, and succeeded before a listing
    /// showed it, is refused; whoever succeeded it has read it.
    fn has_an_order(&self) -> bool {
        let mut tester = LinearizabilityTester::new(Register(None));
        for (thread, step) in &self.steps {
            let told = match step {
                Step::Begins(op) => tester.on_invoke(*thread, op.clone()),
                Step::Ends(Op::Swap { new, .. }, Ret::Refused)
                    if !self.refusals_are_sure && self.shown.contains(new) =>
                {
                    tester.on_return(*thread, Ret::Landed)
                }
                Step::Ends(_, ret) => tester.on_return(*thread, ret.clone()),
            };
            told.expect("a thread begins nothing before it has ended what it began");
        }
        tester.is_consistent()
    }

    fn names(&mut self, version: &Version, value: Value) {
        if *self.bodies.entry(version.clone()).or_insert(value) != value {
            self.torn = Some("one version was told of two bodies");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answered,
    /// It ends, and its answer is lost.
    Unheard,
    /// Nobody waits for it: it may take effect at any later time.
    LeftAlone,
    NeverSent,
}

struct Client<'a, 's, S> {
    store: &'s S,
    record: &'a RefCell<Record>,
    left_alone: &'a LeftAlone<'s>,
    chance: Chance,
    /// What it is to the checker.
    thread: u64,
    /// The states that it has met, the newest last.
    known: Vec<(Version, Value)>,
}

impl<S: Store> Client<'_, '_, S> {
    async fn act(mut self) {
        for _ in 0..self.chance.between(4, 6) {
            idle(self.chance.below(3)).await;
            let (op, operation) = self.draw();
            let fate = self.fate();
            self.record.borrow_mut().begun(self.thread, op.clone());
            let (before, after) = (self.chance.below(4), self.chance.below(4));
            let store = self.store;
            let carried_out = async move {
                idle(before).await;
                let answer = store.perform(operation).await;
                idle(after).await;
                answer.outcome
            };
            let ret = match fate {
                Fate::Answered => {
                    let outcome = carried_out.await;
                    self.hear(&op, outcome)
                }
                Fate::Unheard => {
                    carried_out.await;
                    None
                }
                Fate::LeftAlone => {
                    let end = async move { drop(carried_out.await) };
                    self.left_alone.borrow_mut().push(Box::pin(end));
                    None
                }
                Fate::NeverSent => None,
            };
            let unheard = ret.is_none();
            self.record.borrow_mut().ended(self.thread, &op, ret);
            if unheard {
                // What was never answered stays under way for good, so its thread does nothing more.
                self.thread = self.record.borrow_mut().new_thread();
            }
        }
    }

    fn draw(&mut self) -> (Op, Operation) {
        let newest = self.known.last().cloned();
        if self.chance.below(10) < 4 {
            let unless = newest.filter(|_| self.chance.one_in(2)).map(|(version, _)| version);
            return (Op::Read, Operation::Read { unless });
        }
        let new = self.record.borrow().values + 1;
        self.record.borrow_mut().values = new;
        // Mostly what a member would do, and now and then what it must never get away with.
        let expected = match self.chance.below(6) {
            0 => None,
            1 if !self.known.is_empty() => {
                let at = self.chance.below(self.known.len() as u64) as usize;
                Some(self.known[at].clone())
            }
            _ => newest,
        };
        let (condition, expected) = match expected {
            None => (Condition::Absent, None),
            Some((version, value)) => (Condition::Match(version), Some(value)),
        };
        let record = record(&format!("writer-{}", new % 3), new).into();
        (Op::Swap { expected, new }, Operation::Write { record, condition })
    }

    fn fate(&mut self) -> Fate {
        let drawn = self.chance.below(24);
        if self.record.borrow().tally.unheard >= MOST_UNHEARD {
            return Fate::Answered;
        }
        match drawn {
            0 | 1 => Fate::Unheard,
            2 | 3 => Fate::LeftAlone,
            4 => Fate::NeverSent,
            _ => Fate::Answered,
        }
    }

    /// What the answer says, and what is known by it; nothing if it does not say.
    fn hear(&mut self, op: &Op, outcome: Outcome) -> Option<Ret> {
        match (op, outcome) {
            (Op::Read, Outcome::Missing) => {
                self.known.clear();
                Some(Ret::Shown(None))
            }
            (Op::Read, Outcome::Unchanged) => {
                let (_, value) = self.known.last().expect("it named the version that it knew");
                Some(Ret::Shown(Some(*value)))
            }
            (Op::Read, Outcome::Found { version, reading: Reading::Lease(lease) }) => {
                self.learn(version, lease.sequence);
                Some(Ret::Shown(Some(lease.sequence)))
            }
            (Op::Swap { new, .. }, Outcome::Written { version }) => {
                if let Some(version) = version {
                    self.learn(version, *new);
                }
                Some(Ret::Landed)
            }
            (Op::Swap { .. }, Outcome::Refused) => Some(Ret::Refused),
            (_, Outcome::Unknown { .. }) => None,
            (op, other) => panic!("{}: {op:?}: {other:?}", self.store.describe()),
        }
    }

    fn learn(&mut self, version: Version, value: Value) {
        self.record.borrow_mut().names(&version, value);
        self.known.push((version, value));
    }
}

async fn idle(turns: u64) {
    for _ in 0..turns {
        pause().await;
    }
}
