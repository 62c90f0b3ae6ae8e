//! The probe over an honest store, over one for each way to lie, and over stores that cannot be judged.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use edgelect::clock::Now;
use edgelect::lease::Format;
use edgelect::probe::{Effort, Finding, Judged, Offset, Report, Step, key, probe, violation};
use edgelect::protocol::Protocol;
use edgelect::request::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::s3::S3;
use edgelect::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Version, is_probe,
};
use edgelect::{Host, S3Config, Store};
use futures::executor::LocalPool;

use crate::answers::told::{NOW_MS, credentials, read, sent};
use worlds::virtual_time::{Virtual, config, undated};

/// Longer than any probe here takes.
const LIMIT_MS: u64 = 120_000;

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
    /// Each operation takes so long.
    IsFar(u64),
    /// The operation of this number is carried out or not, and nobody hears of it.
    LosesOne(u32, bool),
    Denies,
    /// So many operations are put off, without an effect, from the one of this number on.
    AsksForPatience(u32, u32),
    /// No operation has an answer.
    IsSilent,
    /// The store's clock is ahead by so much.
    IsAhead(u64),
    /// The wall clock moves on by so much before each answer: the machine was suspended.
    Suspends(u64),
    /// Looks before it writes, but in the race of this number.
    LooksBeforeItWritesInRace(u32),
    /// Keeps no condition of an object that is older than this.
    ForgetsAfter(u64),
    /// Answers a write with the version that the object had before.
    AnswersWithTheOldVersion,
    /// A cache on the way knows every version that it has seen.
    SaysUnchanged,
    /// Each reading names the time at which it comes.
    IsModifiedNow,
    /// No write is answered with a version.
    NamesNoVersions,
    /// As an honest one whose versions have several parts, and one that leaves a part out.
    HasParts(bool),
}

struct Stand {
    manner: Manner,
    host: Virtual,
    memory: Memory,
    operations: Cell<u32>,
    deleted: Cell<bool>,
    changed_ms: Cell<u64>,
}

impl Stand {
    fn new(manner: Manner) -> Self {
        let host = Virtual::default();
        let clock = host.clone();
        let memory = Memory::new(move || clock.now().wall_ms);
        let (operations, deleted, changed_ms) = Default::default();
        Self { manner, host, memory, operations, deleted, changed_ms }
    }

    fn report(&self, effort: Effort) -> Report {
        probed(self, &self.host, effort, 10)
    }

    fn judged(&self) -> Vec<Judged> {
        self.report(Effort::at_start(&config())).judged
    }

    /// Writes without a condition, and says what a store says that has kept it.
    async fn overwrite(&self, body: Vec<u8>) -> Outcome {
        self.memory.overwrite(Some(body));
        let read = self.memory.perform(read()).await;
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
            Manner::LooksBeforeItWritesInRace(race)
                if self.operations.get() < 11 + 6 * (race - 1) =>
            {
                false
            }
            Manner::LooksBeforeItWrites | Manner::LooksBeforeItWritesInRace(_) => {
                let unless = match condition {
                    Condition::Match(version) => version.clone(),
                    Condition::Absent => return None,
                };
                let read = Operation::Read { unless: Some(unless) };
                let unchanged = self.memory.perform(read).await.outcome == Outcome::Unchanged;
                others_first().await;
                unchanged
            }
            Manner::ForgetsAfter(ms) => self.host.now_ms.get() - self.changed_ms.get() > ms,
            Manner::HasParts(false) => {
                matches!(condition, Condition::Match(version) if version.0.ends_with("-near"))
            }
            Manner::Forgets if create && !exists => {
                return Some(Outcome::Written {
                    version: Some(Version("\"forgotten\"".to_owned())),
                });
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
            Manner::AsksForPatience(from, times) if (from..from + times).contains(&number) => {
                return Answer::unknown(cause(FaultKind::Unavailable));
            }
            Manner::IsSilent => std::future::pending().await,
            Manner::IsFar(ms) => self.host.sleep(ms).await,
            Manner::IsSlow(ms) => self.host.now_ms.set(self.host.now_ms.get() + ms),
            Manner::Suspends(ms) => self.host.stepped_ms.set(self.host.stepped_ms.get() + ms),
            _ => {}
        }
        if let Operation::Write { record, condition } = &operation
            && let Some(outcome) = self.lie(record.body(Format::Native), condition).await
        {
            return Answer { outcome, facts: Facts::default() };
        }
        if operation == Operation::Delete {
            self.deleted.set(true);
            self.memory.overwrite(None);
            return undated(Outcome::Missing);
        }
        if let (Manner::SaysUnchanged, Operation::Read { unless: Some(_) }) =
            (self.manner, &operation)
        {
            return Answer { outcome: Outcome::Unchanged, facts: Facts::default() };
        }
        let old = match &operation {
            Operation::Write { condition: Condition::Match(version), .. } => Some(version.clone()),
            _ => None,
        };
        let mut answer = self.memory.perform(operation).await;
        if let Outcome::Written { version } = &mut answer.outcome {
            self.changed_ms.set(self.host.now_ms.get());
            match self.manner {
                Manner::AnswersWithTheOldVersion => *version = old.or(version.take()),
                Manner::NamesNoVersions => *version = None,
                _ => {}
            }
        }
        if self.manner == Manner::IsModifiedNow && answer.facts.last_modified_ms.is_some() {
            answer.facts.last_modified_ms = answer.facts.date_ms;
        }
        if let Manner::IsAhead(ms) = self.manner {
            answer.facts.date_ms = answer.facts.date_ms.map(|now_ms| now_ms + ms);
            answer.facts.last_modified_ms = answer.facts.last_modified_ms.map(|at_ms| at_ms + ms);
        }
        if let Manner::TellsDate(shift_ms) = self.manner {
            answer.facts.date_ms =
                answer.facts.date_ms.and_then(|ms| ms.checked_add_signed(shift_ms));
        }
        answer.facts.relayed = self.manner == Manner::Relays;
        answer
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

/// Runs a probe to its end, in steps of so many milliseconds.
pub fn probed(store: &impl Store, host: &Virtual, effort: Effort, step_ms: u64) -> Report {
    let (mut pool, config) = (LocalPool::new(), config());
    let mut probing = Box::pin(probe(store, host, &config, effort, |_| {}));
    for _ in 0..LIMIT_MS / step_ms {
        let mut once = poll_fn(|context| Poll::Ready(probing.as_mut().poll(context)));
        if let Poll::Ready(ended) = pool.run_until(&mut once) {
            return ended.expect("this host has randomness");
        }
        host.pass(&mut pool, step_ms);
    }
    panic!("{}: the probe does not end", store.describe())
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
    let later = [Step::LaterCreate, Step::LaterUpdate];
    let holds = |steps: &[Step]| -> Vec<Judged> {
        steps.iter().map(|step| Judged { step: *step, finding: Finding::Holds }).collect()
    };
    let plain = Step::ALL.into_iter().filter(|step| *step != Step::NearUpdate);
    let at_start: Vec<Step> = plain.clone().filter(|step| !later.contains(step)).collect();
    assert_eq!(judged, holds(&at_start));
    assert_eq!(violation(&stand, &judged), None);
    let thorough = |manner| Stand::new(manner).report(Effort::thorough(1)).judged;
    assert_eq!(thorough(Manner::Honest), holds(&plain.collect::<Vec<_>>()));
    assert_eq!(thorough(Manner::HasParts(true)), holds(&Step::ALL));
}

/// What a thorough probe that leaves the object alone for so long ends with, and why.
fn ended(manner: Manner, age_ms: u64) -> (Step, Finding) {
    let effort = Effort { age_ms, ..Effort::thorough(3) };
    let mut judged = Stand::new(manner).report(effort).judged;
    let last = judged.pop().expect("steps were done");
    assert!(judged.iter().all(|one| one.finding == Finding::Holds), "{manner:?}: {judged:?}");
    (last.step, last.finding)
}

fn ends_with(manner: Manner, age_ms: u64, step: Step, why: &str) {
    let (at, finding) = ended(manner, age_ms);
    let Finding::Violated(told) = finding else { panic!("{manner:?}: {at:?} {finding:?}") };
    assert_eq!((at, told.contains(why)), (step, true), "{manner:?}: {told}");
}

#[test]
fn c26_a_store_that_keeps_conditions_of_young_objects_only_is_found_by_waiting() {
    ends_with(Manner::ForgetsAfter(60_000), 61_000, Step::LaterCreate, "did not hold");
    ends_with(Manner::ForgetsAfter(4_000), 5_000, Step::LaterCreate, "did not hold");
    let young = ended(Manner::ForgetsAfter(60_000), 59_000);
    assert_eq!(young, (Step::Clocks, Finding::Holds), "not by a shorter wait");
}

#[test]
fn c26_an_answer_that_a_condition_could_not_rest_on_is_a_violation() {
    let old_version = "each renewal would cost a term";
    ends_with(Manner::AnswersWithTheOldVersion, 0, Step::Update, old_version);
    ends_with(Manner::SaysUnchanged, 0, Step::StaleRead, "nothing has changed");
    ends_with(Manner::IsModifiedNow, 1_100, Step::Clocks, "another `Last-Modified`");
    // A condition that leaves out a part of the version.
    ends_with(Manner::HasParts(false), 0, Step::NearUpdate, "did not hold");
}

#[test]
fn c26_a_store_that_names_no_version_of_a_write_is_judged_by_what_it_keeps() {
    assert_eq!(ended(Manner::NamesNoVersions, 1_100), (Step::Clocks, Finding::Holds));
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
        let unclear =
            |judged: &Judged| matches!(judged.finding, Finding::Unclear(_) | Finding::Refused(_));
        (judged.len(), judged.iter().filter(|judged| unclear(judged)).count())
    };
    assert_eq!(steps(Manner::Denies), (1, 1), "without a reading there is nothing to stand on");
    assert_eq!(steps(Manner::Relays), (8, 1), "only the clocks cannot be told");
}

#[test]
fn c26_what_the_store_refuses_for_good_is_told_apart_from_what_may_pass() {
    for (manner, refused) in [
        (Manner::Denies, Some(FaultKind::Denied)),
        (Manner::Relays, None),
        (Manner::AsksForPatience(0, 100), None),
        (Manner::IgnoresConditions, None),
    ] {
        let report = Stand::new(manner).report(Effort::at_start(&config()));
        assert_eq!(report.refusal().map(|fault| fault.kind), refused, "{manner:?}: {report:?}");
    }
}

#[test]
fn c26_a_racy_store_is_found_by_the_first_race_that_shows_it() {
    let found = |races| {
        let stand = Stand::new(Manner::LooksBeforeItWritesInRace(3));
        let report = stand.report(Effort::thorough(races));
        (violation(&stand, &report.judged).is_some(), stand.operations.get())
    };
    assert_eq!(found(2), (false, 10 + 2 * 6 + 1 + 4 + 1));
    assert_eq!(found(3), (true, 10 + 3 * 6 + 1));
    assert_eq!(found(50), (true, 10 + 3 * 6 + 1), "it ends there");
}

#[test]
fn c26_a_store_that_asks_for_patience_gets_it_once_in_each_step() {
    for number in 0..10 {
        let judged = Stand::new(Manner::AsksForPatience(number, 1)).judged();
        assert!(judged.iter().all(|one| one.finding == Finding::Holds), "{number}: {judged:?}");
    }
    let stand = Stand::new(Manner::AsksForPatience(0, 100));
    let judged = stand.judged();
    assert_eq!(judged, [Judged { step: Step::UpdateOfNothing, finding: unclear("what happened") }]);
    assert_eq!(stand.operations.get(), 4, "a write and a reading, and both again");
    assert!(!stand.deleted.get(), "there is nothing to clean up");
}

fn unclear(why: &str) -> Finding {
    Finding::Unclear(why.to_owned())
}

#[test]
fn c26_a_store_that_says_nothing_delays_a_start_by_two_requests() {
    let stand = Stand::new(Manner::IsSilent);
    let report = stand.report(Effort::at_start(&config()));
    assert_eq!(report.judged.len(), 1);
    assert_eq!(report.offset, None);
    assert!(matches!(report.finding(), Finding::Unclear(_)));
    let took_ms = stand.host.now().mono_ms;
    assert!(took_ms <= 2 * config().request_timeout_ms + 20, "{took_ms} ms");
}

#[test]
fn c26_a_slow_store_delays_a_start_by_five_requests_at_most() {
    let request_ms = config().request_timeout_ms;
    for percent in [5, 25, 30, 60, 90, 99, 200] {
        let stand = Stand::new(Manner::IsFar(request_ms * percent / 100));
        let report = stand.report(Effort::at_start(&config()));
        let took_ms = stand.host.now().mono_ms;
        // Each of the nine rounds of a probe may end 10 ms late in this test.
        assert!(took_ms <= 5 * request_ms + 90, "{percent}: {took_ms} ms");
        assert_eq!(violation(&stand, &report.judged), None);
        let ends = report.judged.iter().all(|one| one.finding == Finding::Holds);
        assert_eq!(ends, percent <= 30, "{percent}: {report:?}");
    }
    let stand = Stand::new(Manner::AsksForPatience(6, 100));
    let in_haste = Effort { limit_ms: 1_000, ..Effort::at_start(&config()) };
    stand.report(in_haste);
    assert!(stand.host.now().mono_ms < 1_000, "there is no time for a pause");
}

#[test]
fn c26_the_object_of_a_probe_is_taken_away_whatever_it_found() {
    for manner in [Manner::Honest, Manner::IgnoresConditions, Manner::LooksBeforeItWrites] {
        let stand = Stand::new(manner);
        stand.judged();
        if manner == Manner::IgnoresConditions {
            continue;
        }
        assert!(stand.deleted.get(), "{manner:?}");
        assert_eq!(stand.memory.body(), None, "{manner:?}");
    }
}

#[test]
fn c26_a_suspended_machine_is_no_skew_of_the_store() {
    assert_eq!(refused_at(Manner::Suspends(3_600_000)), None);
}

#[test]
fn the_stores_clock_is_told_as_well_as_its_answers_tell_it() {
    for ahead_ms in [0, 1_000, 7_000] {
        let report = Stand::new(Manner::IsAhead(ahead_ms)).report(Effort::thorough(1));
        let Some(Offset { ms, error_ms }) = report.offset else { panic!("{report:?}") };
        assert!(ms.abs_diff(ahead_ms as i64) <= error_ms, "{ahead_ms}: {ms} within {error_ms}");
        assert!(error_ms <= 500, "{error_ms}");
        assert_eq!(report.finding(), &Finding::Holds);
    }
    let report = Stand::new(Manner::Relays).report(Effort::thorough(1));
    assert_eq!(report.finding(), &Finding::Holds, "without times of its own ages are watched");
}

#[test]
fn only_the_key_of_a_probe_is_one() {
    let key = key("jobs/leader.json", &Virtual::default()).expect("randomness");
    assert!(is_probe(&key), "{key}");
    for key in ["jobs/leader.json", "leader.probe-", "leader.probe-1", ".probe-/leader.json"] {
        assert!(!is_probe(key), "{key}");
    }
}

#[test]
fn s3_no_object_but_a_probes_can_be_deleted() {
    let probed = key("jobs/leader.json", &Virtual::default()).expect("randomness");
    for (key, method) in [("jobs/leader.json".to_owned(), None), (probed, Some("DELETE"))] {
        let config = S3Config { bucket: "jobs".to_owned(), key, ..S3Config::default() };
        let s3 = S3::new(config).expect("a fine configuration");
        assert_eq!(sent(&s3, read()).method(), "GET");
        let asked = s3.request(&mut s3.begin(Operation::Delete), &credentials(), NOW_MS);
        assert_eq!(asked.map(|request| request.method().to_string()).ok().as_deref(), method);
    }
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

/// Carries a write out at once and answers a second later.
struct Late(Memory, Virtual, Cell<bool>);

impl Store for Late {
    async fn perform(&self, operation: Operation) -> Answer {
        if operation == Operation::Delete {
            self.2.set(true);
            self.0.overwrite(None);
            return undated(Outcome::Missing);
        }
        let answer = self.0.perform(operation).await;
        self.1.sleep(1_000).await;
        answer
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "late".to_owned()
    }
}

/// What a probe reports that is stopped so long after it began, and whether its object was deleted and is gone.
fn stopped_after(ms: u64) -> (Report, bool, bool) {
    let host = Virtual::default();
    let store = Late(Memory::default(), host.clone(), Cell::new(false));
    let (mut pool, config, effort) = (LocalPool::new(), config(), Effort::thorough(1));
    let stop = host.sleep(ms);
    let probing = edgelect::probe::probe_until(&store, &host, &config, effort, |_| {}, stop);
    let mut probing = Box::pin(probing);
    for _ in 0..1_000 {
        let mut once = poll_fn(|context| Poll::Ready(probing.as_mut().poll(context)));
        if let Poll::Ready(ended) = pool.run_until(&mut once) {
            return (ended.expect("random"), store.2.get(), store.0.body().is_none());
        }
        host.pass(&mut pool, 10);
    }
    panic!("it does not end")
}

#[test]
fn a_probe_that_was_stopped_has_not_shown_that_the_store_holds() {
    for ms in [1, 2_500, 4_500, 6_500] {
        let (report, ..) = stopped_after(ms);
        assert!(matches!(report.finding(), Finding::Unclear(_)), "{ms}: {:?}", report.finding());
    }
}

#[test]
fn a_probe_that_is_stopped_while_its_create_is_under_way_deletes_its_object() {
    let (_, deleted, gone) = stopped_after(2_500);
    assert!(deleted && gone);
}
