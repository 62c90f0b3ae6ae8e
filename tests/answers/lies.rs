//! The probe over the lies of a store, alone and together. In each row of `tests/golden/probe/lies.json`: what each step was
//! found to be, how the reason of a violation begins, how many operations there were, and stores with which it is so. Their
//! lies, `[first, last, effect, answer]`, are what is done to the operations of these numbers and said of them. A write `keeps`
//! its condition, `takes` it for none, or `drops` the whole; a `read` is answered only.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::task::Poll;
use std::{fs, iter};

use edgelect::lease::Format;
use edgelect::probe::{Effort, Finding, Judged, Report, probe};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};
use edgelect::{Host, Store};
use futures::FutureExt;
use futures::executor::LocalPool;
use serde_json::{Value, json};

use crate::answers::told::read;
use worlds::virtual_time::{Virtual, config, undated};

/// Longer than any probe here takes.
const LIMIT_MS: u64 = 120_000;
const STEP_MS: u64 = 10;

/// What is odd about a store beside its lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    Plain,
    /// From the operation of this number on.
    LooksBeforeItWrites(u64),
    /// Its `Date` and its `Last-Modified` are off by so much.
    TellsTimes(i64, i64),
    Relays,
    /// Each operation takes so long, which passes at once.
    IsSlow(u64),
    IsFar(u64),
    /// It carries a write out at once and answers a second later.
    IsLate,
    IsSilent,
    /// The wall clock moves on by so much before each answer: the machine was suspended.
    Suspends(u64),
    /// Keeps no condition of an object that is older than this.
    ForgetsAfter(u64),
    /// Answers a write with the version that the object had before.
    AnswersWithTheOldVersion,
    /// A cache on the way knows every version that it has seen.
    SaysUnchanged,
    /// Each reading names the time at which it comes.
    IsModifiedNow,
    /// As an honest one whose versions have several parts, and one that leaves a part out.
    HasParts(bool),
}

/// A store of one manner, with lies.
pub struct Stand {
    manner: Manner,
    lies: Vec<(u64, u64, String, String)>,
    pub host: Virtual,
    pub memory: Memory,
    pub asked: Cell<u64>,
    pub deleted: Cell<bool>,
    /// The body that was there before the last write, and when that was written; when the one of now was.
    before: RefCell<(Option<Vec<u8>>, u64)>,
    written_ms: Cell<u64>,
}

impl Stand {
    pub fn new(manner: Manner) -> Self {
        Self { manner, ..Self::lying(&json!([])) }
    }

    pub fn lying(lies: &Value) -> Self {
        let host = Virtual::default();
        let (clock, written_ms) = (host.clone(), Cell::new(host.now().wall_ms));
        let lie = |lie: &Value| {
            let number = |index: usize| lie[index].as_u64().expect("a number");
            let text = |index: usize| lie[index].as_str().expect("a text").to_owned();
            (number(0), number(1), text(2), text(3))
        };
        Self {
            manner: Manner::Plain,
            lies: lies.as_array().expect("a list of lies").iter().map(lie).collect(),
            host,
            memory: Memory::new(move || clock.now().wall_ms),
            asked: Cell::default(),
            deleted: Cell::default(),
            before: RefCell::default(),
            written_ms,
        }
    }

    pub fn report(&self, effort: Effort) -> Report {
        self.ended(probe(self, &self.host, &config(), effort, |_| {}))
    }

    /// What a probe of it comes to while time passes.
    pub fn ended(&self, probing: impl Future<Output = Result<Report, String>>) -> Report {
        let (mut pool, mut probing) = (LocalPool::new(), Box::pin(probing));
        for _ in 0..LIMIT_MS / STEP_MS {
            let mut once = poll_fn(|context| Poll::Ready(probing.as_mut().poll(context)));
            if let Poll::Ready(ended) = pool.run_until(&mut once) {
                return ended.expect("this host has randomness");
            }
            self.host.pass(&mut pool, STEP_MS);
        }
        panic!("the probe does not end")
    }

    pub fn judged(&self) -> Vec<Judged> {
        self.report(Effort::at_start(&config())).judged
    }

    /// Whether its manner takes a write without its condition.
    async fn breaks(&self, number: u64, condition: &Condition) -> bool {
        match (self.manner, condition) {
            (Manner::LooksBeforeItWrites(from), Condition::Match(version)) if number >= from => {
                let look = Operation::Read { unless: Some(version.clone()) };
                let unchanged = self.memory.perform(look).await.outcome == Outcome::Unchanged;
                // The others of a race go first.
                tokio::task::yield_now().await;
                unchanged
            }
            (Manner::ForgetsAfter(ms), _) => self.host.now().wall_ms - self.written_ms.get() > ms,
            (Manner::HasParts(false), Condition::Match(version)) => version.0.ends_with("-near"),
            _ => false,
        }
    }

    async fn write(&self, body: Vec<u8>, condition: Condition, effect: &str) -> Answer {
        let (before, wall_ms) = (self.memory.body(), self.host.now().wall_ms);
        self.before.replace((before, self.written_ms.get()));
        let answer = match effect {
            "keeps" => {
                let written = Operation::Write { record: body.into(), condition };
                self.memory.perform(written).await
            }
            "takes" => {
                self.memory.overwrite(Some(body.clone()));
                undated(Outcome::Written { version: version_of(&body) })
            }
            "drops" => undated(Outcome::Refused),
            other => panic!("{other}: no such effect"),
        };
        if matches!(answer.outcome, Outcome::Written { .. }) {
            self.written_ms.set(wall_ms);
        }
        answer
    }

    /// A reading of the object as if it had this body since then.
    async fn show(&self, body: Option<Vec<u8>>, since_ms: u64) -> Answer {
        let shown = Memory::new(move || since_ms);
        shown.overwrite(body);
        let mut answer = shown.perform(read()).await;
        answer.facts.date_ms = Some(self.host.now().wall_ms / 1_000 * 1_000);
        answer
    }

    async fn told(&self, mut answer: Answer, old: Option<Version>) -> Answer {
        let facts = &mut answer.facts;
        match (self.manner, &mut answer.outcome) {
            (Manner::AnswersWithTheOldVersion, Outcome::Written { version }) => {
                *version = old.or(version.take());
            }
            (Manner::IsLate, _) => self.host.sleep(1_000).await,
            (Manner::IsModifiedNow, _) => {
                facts.last_modified_ms = facts.last_modified_ms.and(facts.date_ms);
            }
            (Manner::TellsTimes(date_ms, modified_ms), _) => {
                let shifted = |at_ms: Option<u64>, by_ms| at_ms?.checked_add_signed(by_ms);
                facts.date_ms = shifted(facts.date_ms, date_ms);
                facts.last_modified_ms = shifted(facts.last_modified_ms, modified_ms);
            }
            (Manner::Relays, _) => facts.relayed = true,
            _ => {}
        }
        answer
    }
}

fn version_of(body: &[u8]) -> Option<Version> {
    let memory = Memory::default();
    memory.overwrite(Some(body.to_vec()));
    let read = memory.perform(read());
    match read.now_or_never().expect("memory answers at once").outcome {
        Outcome::Found { version, .. } => Some(version),
        other => panic!("{other:?}"),
    }
}

impl Store for Stand {
    async fn perform(&self, operation: Operation) -> Answer {
        let number = self.asked.replace(self.asked.get() + 1);
        match (self.manner, &operation) {
            (Manner::IsSilent, _) => pending().await,
            (Manner::IsFar(ms), _) => self.host.sleep(ms).await,
            (Manner::IsSlow(ms), _) => self.host.now_ms.set(self.host.now_ms.get() + ms),
            (Manner::Suspends(ms), _) => self.host.stepped_ms.set(self.host.stepped_ms.get() + ms),
            (Manner::SaysUnchanged, Operation::Read { unless: Some(_) }) => {
                return undated(Outcome::Unchanged);
            }
            _ => {}
        }
        if operation == Operation::Delete {
            self.deleted.set(true);
            self.memory.overwrite(None);
            return undated(Outcome::Missing);
        }
        let writes = matches!(operation, Operation::Write { .. });
        let lie = self.lies.iter().find(|(first, last, effect, _)| {
            (*first..=*last).contains(&number) && writes == (effect != "read")
        });
        let (effect, said) = lie.map_or(("keeps", "honest"), |(_, _, effect, said)| (effect, said));
        let (honest, told) = match operation {
            Operation::Write { record, condition } => {
                let body = record.body(Format::Native);
                let old = match &condition {
                    Condition::Match(version) => Some(version.clone()),
                    Condition::Absent => None,
                };
                let breaks = self.breaks(number, &condition).await;
                let (told, effect) = (version_of(&body), if breaks { "takes" } else { effect });
                (self.told(self.write(body, condition, effect).await, old).await, told)
            }
            other => (self.told(self.memory.perform(other).await, None).await, None),
        };
        let cause = |kind| Fault::new(kind, "what happened");
        match said {
            "honest" => honest,
            "stale" => {
                let (before, since_ms) = self.before.borrow().clone();
                self.show(before, since_ms).await
            }
            "foreign" => {
                let theirs = r#"{"leaderID":"probe","session":"theirs","sequence":1}"#;
                self.show(Some(theirs.into()), self.host.now().wall_ms).await
            }
            "garbage" => self.show(Some(b"x".into()), self.host.now().wall_ms).await,
            "missing" => undated(Outcome::Missing),
            "written" => undated(Outcome::Written { version: told }),
            "vague" => undated(Outcome::Written { version: None }),
            "refused" => undated(Outcome::Refused),
            "unknown" => Answer::unknown(cause(FaultKind::Network)),
            "busy" => Answer::unknown(cause(FaultKind::Unavailable)),
            "rejected" => Answer::rejected(cause(FaultKind::Denied)),
            other => panic!("{other}: no such answer"),
        }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        match self.manner {
            Manner::HasParts(_) => {
                vec![Version("\"other\"".to_owned()), Version(format!("{}-near", version.0))]
            }
            _ => Vec::new(),
        }
    }

    fn describe(&self) -> String {
        "the stand-in".to_owned()
    }
}

/// What each step of a probe over a store with these lies was found to be, why one was violated, and how many operations
/// there were.
fn found(lies: &Value) -> (String, Option<String>, u64) {
    let stand = Stand::lying(lies);
    let judged = stand.report(Effort::thorough(1)).judged;
    let mut why = None;
    let letters = judged.into_iter().map(|one| match one.finding {
        Finding::Holds => 'h',
        Finding::Unclear(_) | Finding::Refused(_) => 'u',
        Finding::Violated(reason) => {
            why.get_or_insert(reason);
            'v'
        }
    });
    (letters.collect(), why, stand.asked.get())
}

#[test]
fn c26_each_lie_is_judged_as_the_file_has_it() {
    let file = crate::in_root("tests/golden/probe/lies.json");
    let text = fs::read_to_string(file).expect("the cases are there");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(rows.len() > 60);
    for row in rows {
        for lies in row["lies"].as_array().expect("a list of stores") {
            let (steps, why, asked) = found(lies);
            assert!(row["steps"] == steps && row["asked"] == asked, "{lies}: {steps} {asked}");
            let (why, begins) = (why.as_deref(), row["why"].as_str());
            assert!(
                begins
                    .map_or(why.is_none(), |begins| why.is_some_and(|why| why.starts_with(begins))),
                "{lies}"
            );
        }
    }
}

#[test]
fn c26_no_store_that_keeps_its_conditions_is_refused_and_each_that_breaks_one_is() {
    let passing = ["unknown", "busy", "rejected"];
    let reads = passing.map(|answer| ("read", answer));
    let writes = passing.into_iter().chain(["honest", "vague"]).map(|answer| ("keeps", answer));
    let honest: Vec<_> = writes.chain(reads).collect();
    for (at, (effect, answer)) in (0..22).flat_map(|at| iter::repeat(at).zip(&honest)) {
        for last in [at, 999] {
            let lies = json!([[at, last, effect, answer], [20 - at.min(20), 20, "read", "busy"]]);
            assert!(!found(&lies).0.contains('v'), "{lies}");
        }
    }
    // The writes of steps whose conditions do not hold.
    for at in [0, 4, 8] {
        for answer in ["honest", "written", "vague", "refused", "unknown", "rejected"] {
            let lies = json!([[at, at, "takes", answer]]);
            assert!(found(&lies).0.ends_with('v'), "{lies}");
        }
    }
}
