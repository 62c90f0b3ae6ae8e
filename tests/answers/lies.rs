//! The probe over the lies of a store, alone and together. In each row of `tests/golden/probe/lies.json`: what each step was
//! found to be, how the reason of a violation begins, how many operations there were, and stores with which it is so. Their
//! lies, `[first, last, effect, answer]`, are what is done to the operations of these numbers and said of them. A write `keeps`
//! its condition, `takes` it for none, or `drops` the whole; a `read` is answered only.

use std::cell::{Cell, RefCell};
use std::fs;
use std::iter;

use edgelect::lease::Format;
use edgelect::probe::{Effort, Finding, Judged};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Version};
use edgelect::{Host, Store};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::answers::probe::probed;
use crate::answers::told::read;
use worlds::virtual_time::{Virtual, undated};

const FILE: &str = "tests/golden/probe/lies.json";

/// A store with the lies of one case.
struct Scripted {
    memory: Memory,
    lies: Vec<(u64, u64, String, String)>,
    asked: Cell<u64>,
    /// The body that was there before the last write, and when that was written; when the one of now was.
    before: RefCell<(Option<Vec<u8>>, u64)>,
    written_ms: Cell<u64>,
    host: Virtual,
}

impl Scripted {
    fn new(host: &Virtual, lies: &Value) -> Self {
        let clock = host.clone();
        let lies = lies.as_array().expect("a list of lies");
        let lie = |lie: &Value| {
            let number = |index: usize| lie[index].as_u64().expect("a number");
            let text = |index: usize| lie[index].as_str().expect("a text").to_owned();
            (number(0), number(1), text(2), text(3))
        };
        Self {
            memory: Memory::new(move || clock.now().wall_ms),
            lies: lies.iter().map(lie).collect(),
            asked: Cell::default(),
            before: RefCell::default(),
            written_ms: Cell::default(),
            host: host.clone(),
        }
    }

    async fn write(&self, body: Vec<u8>, condition: Condition, effect: &str) -> Outcome {
        self.before.replace((self.memory.body(), self.written_ms.get()));
        let written = || Outcome::Written { version: version_of(&body) };
        match effect {
            "keeps" => {
                let written = Operation::Write { record: body.into(), condition };
                let outcome = self.memory.perform(written).await.outcome;
                if matches!(outcome, Outcome::Written { .. }) {
                    self.written_ms.set(self.host.now().wall_ms);
                }
                outcome
            }
            "takes" => {
                self.memory.overwrite(Some(body.clone()));
                self.written_ms.set(self.host.now().wall_ms);
                written()
            }
            "drops" => Outcome::Refused,
            other => panic!("{other}: no such effect"),
        }
    }

    /// A reading of the object as if it had this body since then.
    async fn show(&self, body: Option<Vec<u8>>, since_ms: u64) -> Answer {
        let shown = Memory::new(move || since_ms);
        shown.overwrite(body);
        let mut answer = shown.perform(read()).await;
        answer.facts.date_ms = Some(self.host.now().wall_ms / 1_000 * 1_000);
        answer
    }
}

/// The version that a body has in memory.
fn version_of(body: &[u8]) -> Option<Version> {
    let memory = Memory::default();
    memory.overwrite(Some(body.to_vec()));
    let read = memory.perform(read());
    match read.now_or_never().expect("memory answers at once").outcome {
        Outcome::Found { version, .. } => Some(version),
        other => panic!("{other:?}"),
    }
}

impl Store for Scripted {
    async fn perform(&self, operation: Operation) -> Answer {
        let number = self.asked.replace(self.asked.get() + 1);
        let writes = matches!(operation, Operation::Write { .. });
        if operation == Operation::Delete {
            return undated(Outcome::Missing);
        }
        let lie = self.lies.iter().find(|(first, last, effect, _)| {
            (*first..=*last).contains(&number) && writes == (effect != "read")
        });
        let (effect, said) = lie.map_or(("keeps", "honest"), |(_, _, effect, said)| (effect, said));
        let told = match &operation {
            Operation::Write { record, .. } => version_of(&record.body(Format::Native)),
            _ => None,
        };
        let honest = match operation {
            Operation::Write { record, condition } => Answer {
                outcome: self.write(record.into_body(Format::Native), condition, effect).await,
                facts: Facts::default(),
            },
            other => self.memory.perform(other).await,
        };
        let cause = |kind| Fault::new(kind, "what happened");
        let outcome = match said {
            "honest" => return honest,
            "stale" => {
                let (before, since_ms) = self.before.borrow().clone();
                return self.show(before, since_ms).await;
            }
            "foreign" => {
                let theirs = r#"{"leaderID":"probe","session":"theirs","sequence":1}"#;
                return self.show(Some(theirs.into()), self.host.now().wall_ms).await;
            }
            "garbage" => return self.show(Some(b"x".into()), self.host.now().wall_ms).await,
            "missing" => Outcome::Missing,
            "written" => Outcome::Written { version: told },
            "vague" => Outcome::Written { version: None },
            "refused" => Outcome::Refused,
            "unknown" => return Answer::unknown(cause(FaultKind::Network)),
            "busy" => return Answer::unknown(cause(FaultKind::Unavailable)),
            "rejected" => return Answer::rejected(cause(FaultKind::Denied)),
            other => panic!("{other}: no such answer"),
        };
        Answer { outcome, facts: Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store with a script".to_owned()
    }
}

/// The letters of what each step was found to be.
fn letters(judged: &[Judged]) -> String {
    let letter = |one: &Judged| match one.finding {
        Finding::Holds => 'h',
        Finding::Unclear(_) | Finding::Refused(_) => 'u',
        Finding::Violated(_) => 'v',
    };
    judged.iter().map(letter).collect()
}

/// What each step of a probe over a store with these lies was found to be, why one was violated, and how many operations
/// there were.
fn found(lies: &Value) -> (String, Option<String>, u64) {
    let host = Virtual::default();
    let store = Scripted::new(&host, lies);
    let judged = probed(&store, &host, Effort::thorough(1), 100).judged;
    let why = judged.iter().find_map(|one| match &one.finding {
        Finding::Violated(why) => Some(why.clone()),
        _ => None,
    });
    (letters(&judged), why, store.asked.get())
}

#[test]
fn c26_each_lie_is_judged_as_the_file_has_it() {
    let text = fs::read_to_string(crate::in_root(FILE)).expect("the cases are there");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(rows.len() > 60);
    for row in rows {
        for lies in row["lies"].as_array().expect("a list of stores") {
            let (steps, why, asked) = found(lies);
            assert_eq!(
                (json!(steps), json!(asked)),
                (row["steps"].clone(), row["asked"].clone()),
                "{lies}"
            );
            let begins = row["why"].as_str();
            assert_eq!(why.is_some(), begins.is_some(), "{lies}");
            assert!(why.iter().zip(begins).all(|(why, begins)| why.starts_with(begins)), "{lies}");
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
