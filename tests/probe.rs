//! The probe over an honest store, over one for each way to lie, and over stores that cannot be judged.

#[allow(dead_code)] // The driver needs more of it.
mod virtual_time;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use edgelect::clock::Now;
use edgelect::probe::{Finding, Judged, Step, key, probe, violation};
use edgelect::request::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome};
use edgelect::{Host, Store};
use futures::executor::block_on;
use virtual_time::{Virtual, config};

const STEPS: [Step; 7] = [
    Step::UpdateOfNothing,
    Step::Create,
    Step::CreateAgain,
    Step::Update,
    Step::StaleUpdate,
    Step::Race,
    Step::Clocks,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Honest,
    TakesUpdatesOfNothing,
    IgnoresConditions,
    CreatesOverWhatExists,
    TakesStaleUpdates,
    RefusesAndWrites,
    LooksBeforeItWrites,
    Forgets,
    TellsDate(i64),
    Relays,
    /// Each write takes so long.
    IsSlow(u64),
    /// The operation of this number is carried out or not, and nobody hears of it.
    LosesOne(u32, bool),
    Denies,
}

struct Stand {
    manner: Manner,
    host: Virtual,
    memory: Memory,
    operations: Cell<u32>,
}

impl Stand {
    fn new(manner: Manner) -> Self {
        let host = Virtual::default();
        let clock = host.clone();
        let memory = Memory::new(move || clock.now().wall_ms);
        Self { manner, host, memory, operations: Cell::new(0) }
    }

    fn judged(&self) -> Vec<Judged> {
        block_on(probe(self, &self.host, &config())).expect("this host has randomness")
    }

    /// Writes without a condition, and says what a store says that has kept it.
    async fn overwrite(&self, body: Vec<u8>) -> Outcome {
        self.memory.overwrite(Some(body));
        let read = self.memory.perform(Operation::Read { unless: None }).await;
        match read.outcome {
            Outcome::Found { version, .. } => Outcome::Written { version: Some(version) },
            other => other,
        }
    }

    async fn lie(&self, body: Vec<u8>, condition: &Condition) -> Option<Outcome> {
        let (exists, create) = (self.memory.body().is_some(), *condition == Condition::Absent);
        let lies = match self.manner {
            Manner::TakesUpdatesOfNothing => !exists && !create,
            Manner::IgnoresConditions => true,
            Manner::CreatesOverWhatExists => exists && create,
            Manner::TakesStaleUpdates => exists && !create,
            Manner::RefusesAndWrites if exists && create => {
                self.overwrite(body).await;
                return Some(Outcome::Refused);
            }
            Manner::LooksBeforeItWrites => {
                let unless = match condition {
                    Condition::Match(version) => version.clone(),
                    Condition::Absent => return None,
                };
                let read = Operation::Read { unless: Some(unless) };
                let unchanged = self.memory.perform(read).await.outcome == Outcome::Unchanged;
                others_first().await;
                unchanged
            }
            Manner::Forgets if create && !exists => {
                return Some(Outcome::Written { version: None });
            }
            _ => false,
        };
        if lies { Some(self.overwrite(body).await) } else { None }
    }
}

impl Store for Stand {
    async fn perform(&self, operation: Operation) -> Answer {
        let number = self.operations.get();
        self.operations.set(number + 1);
        let cause = |kind| Fault::new(kind, "what happened");
        match self.manner {
            Manner::Denies => {
                let outcome = Outcome::Rejected(cause(FaultKind::Denied));
                return Answer { outcome, facts: Facts::default() };
            }
            Manner::LosesOne(which, lands) if which == number => {
                if lands {
                    self.memory.perform(operation).await;
                }
                let cause = cause(FaultKind::Timeout);
                let outcome = Outcome::Unknown { retry_after_ms: None, cause };
                return Answer { outcome, facts: Facts::default() };
            }
            Manner::IsSlow(ms) => self.host.now_ms.set(self.host.now_ms.get() + ms),
            _ => {}
        }
        if let Operation::Write { body, condition } = &operation
            && let Some(outcome) = self.lie(body.clone(), condition).await
        {
            return Answer { outcome, facts: Facts::default() };
        }
        let mut answer = self.memory.perform(operation).await;
        if let Manner::TellsDate(shift_ms) = self.manner {
            answer.facts.date_ms =
                answer.facts.date_ms.and_then(|ms| ms.checked_add_signed(shift_ms));
        }
        answer.facts.relayed = self.manner == Manner::Relays;
        answer
    }

    fn describe(&self) -> String {
        "the stand-in".to_owned()
    }
}

/// Lets the others of a race go first once.
fn others_first() -> impl Future<Output = ()> {
    let mut waited = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

fn refused_at(manner: Manner) -> Option<Step> {
    let stand = Stand::new(manner);
    let judged = stand.judged();
    let fault = violation(&stand, &judged)?;
    let Judged { step, finding } = judged.last().expect("there is a violation");
    assert!(matches!(finding, Finding::Violated(_)), "{manner:?}: it ends there: {judged:?}");
    assert_eq!(fault.kind, FaultKind::Misconfigured);
    let names_both = format!("the stand-in: probe step \"{}\": it", step.name());
    assert!(fault.message.starts_with(&names_both), "{}", fault.message);
    Some(*step)
}

#[test]
fn an_honest_store_passes_every_step() {
    let stand = Stand::new(Manner::Honest);
    let judged = stand.judged();
    let holds = STEPS.map(|step| Judged { step, finding: Finding::Holds });
    assert_eq!(judged, holds);
    assert_eq!(violation(&stand, &judged), None);
}

#[test]
fn c09_a_store_that_updates_what_is_not_there_is_refused() {
    assert_eq!(refused_at(Manner::TakesUpdatesOfNothing), Some(Step::UpdateOfNothing));
}

#[test]
fn c26_a_store_that_breaks_a_condition_is_refused_and_the_step_is_named() {
    for (manner, step) in [
        (Manner::IgnoresConditions, Step::UpdateOfNothing),
        (Manner::Forgets, Step::Create),
        (Manner::CreatesOverWhatExists, Step::CreateAgain),
        (Manner::RefusesAndWrites, Step::CreateAgain),
        (Manner::TakesStaleUpdates, Step::StaleUpdate),
        (Manner::LooksBeforeItWrites, Step::Race),
    ] {
        assert_eq!(refused_at(manner), Some(step), "{manner:?}");
    }
}

#[test]
fn c26_clocks_that_are_further_apart_than_store_skew_are_refused() {
    // storeSkew is 2 s, and both times are whole seconds.
    for (shift_ms, step) in [
        (0, None),
        (3_000, None),
        (-3_000, None),
        (4_000, Some(Step::Clocks)),
        (-4_000, Some(Step::Clocks)),
    ] {
        assert_eq!(refused_at(Manner::TellsDate(shift_ms)), step, "{shift_ms}");
    }
    assert_eq!(refused_at(Manner::IsSlow(1_700)), None, "what took long is old and no skew");
}

#[test]
fn c26_an_unclear_answer_is_no_violation() {
    for number in 0..20 {
        for lands in [false, true] {
            assert_eq!(refused_at(Manner::LosesOne(number, lands)), None, "{number} {lands}");
        }
    }
    let steps = |manner| {
        let judged = Stand::new(manner).judged();
        let unclear = |judged: &Judged| matches!(judged.finding, Finding::Unclear(_));
        (judged.len(), judged.iter().filter(|judged| unclear(judged)).count())
    };
    assert_eq!(steps(Manner::Denies), (2, 2), "without a create there is nothing to stand on");
    assert_eq!(steps(Manner::Relays), (7, 1), "only the clocks cannot be told");
}

#[test]
fn c26_the_probes_of_two_servers_do_not_meet() {
    struct Dice(Rc<Cell<u8>>);
    impl Host for Dice {
        fn now(&self) -> Now {
            Virtual::default().now()
        }
        async fn sleep(&self, ms: u64) {
            Virtual::default().sleep(ms).await;
        }
        fn random(&self) -> Result<[u8; 16], String> {
            self.0.set(self.0.get() + 1);
            Ok([self.0.get(); 16])
        }
        async fn fetch(&self, _request: Request, _limit: usize) -> Result<Response, String> {
            Err("there is no network here".to_owned())
        }
    }
    let host = Dice(Rc::default());
    let keys: BTreeSet<String> =
        (0..100).map(|_| key("jobs/leader.json", &host).expect("randomness")).collect();
    assert_eq!(keys.len(), 100);
    assert!(keys.iter().all(|key| key.starts_with("jobs/leader.json.probe-")));
    // Even if they did, neither would take the other's writes for its own.
    for sequence in 1..=10 {
        let stand = Stand::new(Manner::Honest);
        let theirs = format!(r#"{{"leaderID":"probe","session":"theirs","sequence":{sequence}}}"#);
        stand.memory.overwrite(Some(theirs.clone().into_bytes()));
        let judged = stand.judged();
        assert_eq!((judged.len(), violation(&stand, &judged)), (2, None), "{sequence}");
        assert_eq!(stand.memory.body(), Some(theirs.into_bytes()));
    }
}
