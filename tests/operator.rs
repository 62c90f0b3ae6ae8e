//! An operator's requests: what they write, what members make of them, and what the operator learns when the store fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::driver::{init, read_back};
use edgelect::election::{Election, Event, Input, LostReason, Step};
use edgelect::lease::{Ask, Format, Lease, OperatorRequest, Reading, Stamp};
use edgelect::object_store_lock::{LeaderElectionRecord, ObjectStoreLock};
use edgelect::operator::{OperatorError, Receipt, Words, pause, resume, step_down};
use edgelect::status::status;
use edgelect::store::memory::Memory;
use edgelect::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use edgelect::{Config, Handle, Host, Settings, run};
use futures::executor::block_on;
use worlds::virtual_time::{Machine, Through, Virtual, config, config_of, undated};

fn words() -> Words {
    Words { by: "ada".to_owned(), why: "a new database".to_owned() }
}

/// A group of members over one store in memory.
struct Group {
    machine: Machine,
    memory: Memory,
    members: Vec<Handle>,
    lost: Rc<RefCell<Vec<LostReason>>>,
    requests: Cell<u8>,
}

impl Group {
    fn new(names: &[&str]) -> Self {
        let machine = Machine::default();
        let host = machine.host.clone();
        let memory = Memory::new(move || host.wall_ms());
        block_on(init(&memory, &machine.host, &config())).expect("a new group");
        let (members, lost, requests) = (Vec::new(), Rc::default(), Cell::new(0));
        let mut group = Self { machine, memory, members, lost, requests };
        names.iter().for_each(|name| group.join(name));
        group
    }

    fn join(&mut self, name: &str) {
        let config = named(name);
        let election = Election::new(config, format!("session-{name}"), 1);
        let handle = Handle::new(election);
        let (running, store, host) =
            (handle.clone(), self.memory.clone(), self.machine.host.clone());
        let lost = Rc::clone(&self.lost);
        self.members.push(handle);
        self.machine.run(async move {
            run(&running, &store, &host, |event| {
                if let Event::Lost { term, reason } = event {
                    lost.borrow_mut().push(reason);
                    running.tell(Input::WorkEnded { term });
                }
            })
            .await;
        });
    }

    /// Where the next request is made.
    fn hand(&self) -> Hand {
        self.requests.set(self.requests.get() + 1);
        Hand(self.machine.host.clone(), self.requests.get())
    }

    fn leader(&self) -> Option<usize> {
        let now = self.machine.host.now();
        let leads = |handle: &Handle| handle.with(|election| election.authority(now).is_some());
        self.members.iter().position(leads)
    }

    fn status(&self, member: usize) -> serde_json::Value {
        let (host, handle) = (&self.machine.host, &self.members[member]);
        let now = host.now();
        let text = handle.with(|election| status(election, now, handle.requests()));
        serde_json::from_str(&text).expect("it is JSON")
    }

    fn lease(&self) -> Lease {
        block_on(read_back(&self.memory, &self.machine.host, 1_000)).expect("a lease").1
    }

    fn how(&self) -> String {
        self.status(0)["history"].as_array().and_then(|past| past.last().cloned()).unwrap()["how"]
            .to_string()
    }
}

fn named(name: &str) -> Config {
    config_of(Settings { server_id: Some(name.to_owned()), ..Settings::default() })
}

#[test]
fn a_step_down_ends_the_term_of_the_leader_and_another_member_leads() {
    let mut group = Group::new(&["a", "b"]);
    group.machine.pass(20_000);
    let led = group.leader().expect("one leads");
    let before = group.lease();
    let asked = block_on(step_down(&group.memory, &group.hand(), &config(), &words()));
    let (leader_id, term) = (Some(before.leader_id.clone()), before.term);
    assert_eq!(asked, Ok(Receipt { written: true, leader_id, term }));
    assert_eq!(Lease { operator: None, ..group.lease() }, before, "nothing else has changed");
    assert_eq!(group.leader(), Some(led), "and nobody has lost anything yet");
    group.machine.pass(12_000);
    assert_eq!(group.leader(), Some(1 - led), "within two intervals");
    assert_eq!(
        (group.lost.take(), group.how()),
        (vec![LostReason::SteppedDown], "\"steppedDown\"".to_owned())
    );
    assert_eq!(group.lease().operator, None, "it is answered");
    group.machine.pass(60_000);
    assert_eq!(group.leader(), Some(1 - led));
}

#[test]
fn a_paused_group_has_no_leader_until_it_is_resumed() {
    let mut group = Group::new(&["a", "b"]);
    group.machine.pass(20_000);
    block_on(pause(&group.memory, &group.hand(), &config(), &words(), None)).expect("asked");
    group.machine.pass(3_600_000);
    assert_eq!((group.leader(), group.lost.take()), (None, vec![LostReason::Paused]));
    let told = group.status(1);
    assert_eq!((&told["paused"]["by"], &told["paused"]["until"]), (&"ada".into(), &().into()));
    let sentence = "\"ada\" has paused the group until somebody resumes it: \"a new database\"";
    assert_eq!(told["waiting"]["message"], sentence);
    assert_eq!((&told["waiting"]["reason"], &told["error"]), (&"paused".into(), &().into()));
    let again = block_on(step_down(&group.memory, &group.hand(), &config(), &words()));
    assert!(matches!(again, Err(OperatorError::NobodyLeads(_))), "{again:?}");
    block_on(resume(&group.memory, &group.hand(), &config(), &words())).expect("asked");
    group.machine.pass(12_000);
    assert!(group.leader().is_some());
    assert_eq!(group.how(), "\"released\"");
    let again = block_on(resume(&group.memory, &group.hand(), &config(), &words()));
    assert!(!again.expect("there is nothing to do").written);
}

#[test]
fn a_pause_ends_at_its_time() {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    let until_ms = Some(group.machine.host.wall_ms() + 600_000);
    block_on(pause(&group.memory, &group.hand(), &config(), &words(), until_ms)).expect("asked");
    group.machine.pass(590_000);
    assert_eq!(group.leader(), None);
    group.machine.pass(12_000);
    assert_eq!((group.leader(), group.how()), (Some(0), "\"paused\"".to_owned()));
    let past = block_on(pause(&group.memory, &group.hand(), &config(), &words(), until_ms));
    assert!(matches!(past, Err(OperatorError::Config(_))), "{past:?}");
}

#[test]
fn a_dead_leaders_lease_is_not_claimed_while_the_group_is_paused() {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    let held = group.lease();
    let mut dead = Group::new(&[]);
    let record = Record::Lease(Box::new(held));
    let object = Operation::Read { unless: None };
    let Outcome::Found { version, .. } = block_on(dead.memory.perform(object)).outcome else {
        panic!()
    };
    let condition = Condition::Match(version);
    block_on(dead.memory.perform(Operation::Write { record, condition }));
    block_on(pause(&dead.memory, &dead.hand(), &config(), &words(), None)).expect("asked");
    dead.join("b");
    dead.machine.pass(600_000);
    assert_eq!(dead.leader(), None);
    block_on(resume(&dead.memory, &dead.hand(), &config(), &words())).expect("asked");
    dead.machine.pass(40_000);
    assert_eq!(dead.leader(), Some(0));
}

#[test]
fn a_step_down_that_was_meant_for_another_term_is_ignored() {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    let host = group.hand();
    let Outcome::Found { version, .. } =
        block_on(group.memory.perform(Operation::Read { unless: None })).outcome
    else {
        panic!("there is a record")
    };
    block_on(step_down(&group.memory, &host, &config(), &words())).expect("asked");
    let mut lease = group.lease();
    if let Some(request) = &mut lease.operator {
        assert_eq!(request.ask, Ask::StepDown);
        (request.term, request.id) = (request.term.map(|term| term - 1), "2".to_owned());
    }
    let now = block_on(group.memory.perform(Operation::Read { unless: None })).outcome;
    let Outcome::Found { version: asked, .. } = now else { panic!("there is a record") };
    assert_ne!(asked, version);
    let (record, condition) = (lease.into(), Condition::Match(asked));
    block_on(group.memory.perform(Operation::Write { record, condition }));
    group.machine.pass(60_000);
    assert_eq!((group.leader(), group.lost.take()), (Some(0), vec![]));
    assert_eq!(group.lease().operator, None);
}

/// What the operator learns where the store does with its writes what `fate` says.
fn asked_of(
    group: &Group,
    fate: impl AsyncFn(&Memory, Operation) -> Answer,
) -> (Result<Receipt, OperatorError>, u64) {
    let writes = Cell::new(0);
    let store = Through(async |operation: Operation| match operation {
        Operation::Write { .. } => {
            writes.set(writes.get() + 1);
            fate(&group.memory, operation).await
        }
        read => group.memory.perform(read).await,
    });
    (block_on(pause(&store, &group.hand(), &config(), &words(), None)), writes.get())
}

/// The operator's host, whose pauses take no time.
struct Hand(Virtual, u8);

impl Host for Hand {
    fn now(&self) -> edgelect::clock::Now {
        self.0.now()
    }

    async fn sleep(&self, ms: u64) {
        if ms >= 10_000 {
            std::future::pending().await
        }
    }

    fn random(&self) -> Result<[u8; 16], String> {
        Ok([self.1; 16])
    }

    async fn fetch(
        &self,
        request: edgelect::request::Request,
        limit: usize,
    ) -> Result<edgelect::request::Response, String> {
        self.0.fetch(request, limit).await
    }
}

fn no_answer() -> Answer {
    Answer::unknown(Fault::new(FaultKind::Timeout, "no answer in time"))
}

#[test]
fn a_write_without_an_answer_is_read_back_and_never_guessed() {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    let (told, writes) = asked_of(&group, async |memory, write| {
        memory.perform(write).await;
        no_answer()
    });
    assert!(told.is_ok_and(|told| told.written) && writes == 1, "it landed, and is not repeated");
    let group = Group::new(&[]);
    let (told, writes) = asked_of(&group, async |_, _| no_answer());
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "it may land yet: {told:?}");
    assert_eq!(writes, 3);
    let (told, writes) = asked_of(&group, async |_, _| undated(Outcome::Refused));
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "so may this one: {told:?}");
    assert_eq!(writes, 3);
    let fault = || Fault::new(FaultKind::Denied, "the store says no");
    let (told, writes) = asked_of(&group, async |_, _| Answer::rejected(fault()));
    assert_eq!((told, writes), (Err(OperatorError::Store(fault())), 1));
}

#[test]
fn a_request_that_comes_too_late_each_time_is_known_not_to_have_landed() {
    let group = Group::new(&[]);
    let raced = async |memory: &Memory, write: Operation| {
        // Somebody changes the record before.
        let read = memory.perform(Operation::Read { unless: None }).await.outcome;
        if let Outcome::Found { version, reading: edgelect::lease::Reading::Lease(lease) } = read {
            let record = Lease { sequence: lease.sequence + 1, ..*lease }.into();
            let condition = Condition::Match(version);
            memory.perform(Operation::Write { record, condition }).await;
        }
        memory.perform(write).await
    };
    let (told, writes) = asked_of(&group, raced);
    assert!(matches!(told, Err(OperatorError::Store(_))), "{told:?}");
    assert_eq!(writes, 3);
    assert_eq!(group.lease().operator, None);
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_written() {
    let group = Group::new(&[]);
    let host = &group.hand();
    let empty = Memory::new(|| 0);
    let told = block_on(pause(&empty, host, &config(), &words(), None)).unwrap_err().to_string();
    assert!(told.contains("edgelect init"), "{told}");
    for by in ["a\nb".to_owned(), "x".repeat(201)] {
        let told = block_on(pause(&group.memory, host, &config(), &Words { by, ..words() }, None));
        assert!(matches!(told, Err(OperatorError::Config(_))), "{told:?}");
    }
    let nobody = block_on(step_down(&group.memory, host, &config(), &words()));
    assert!(matches!(nobody, Err(OperatorError::NobodyLeads(_))), "{nobody:?}");
}

#[test]
fn a_member_that_starts_in_a_paused_group_claims_nothing() {
    let mut group = Group::new(&[]);
    block_on(pause(&group.memory, &group.hand(), &config(), &words(), None)).expect("asked");
    group.join("a");
    group.machine.pass(600_000);
    assert_eq!((group.leader(), &group.status(0)["role"]), (None, &"candidate".into()));
    block_on(resume(&group.memory, &group.hand(), &config(), &words())).expect("asked");
    group.machine.pass(12_000);
    assert_eq!(group.leader(), Some(0));
}

/// A group whose leader is dead: its record lies there, unreleased.
fn dead() -> Group {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    let held = group.lease();
    let dead = Group::new(&[]);
    let Outcome::Found { version, .. } = read(&dead.memory) else { panic!("a record") };
    let (record, condition) = (Record::from(held), Condition::Match(version));
    let made = block_on(dead.memory.perform(Operation::Write { record, condition })).outcome;
    assert!(matches!(made, Outcome::Written { .. }));
    dead
}

fn read(memory: &Memory) -> Outcome {
    block_on(memory.perform(Operation::Read { unless: None })).outcome
}

#[test]
fn a_step_down_does_not_end_a_pause() {
    let mut dead = dead();
    let paused = block_on(pause(&dead.memory, &dead.hand(), &config(), &words(), None));
    assert!(paused.is_ok_and(|receipt| receipt.written));
    dead.join("b");
    dead.machine.pass(3_600_000);
    let told = block_on(step_down(&dead.memory, &dead.hand(), &config(), &words()));
    assert!(matches!(told, Err(OperatorError::NobodyLeads(_))), "{told:?}");
    dead.machine.pass(60_000);
    assert_eq!(dead.leader(), None);
}

#[test]
fn a_script_that_repeats_its_step_down_keeps_no_dead_leader_in_office() {
    let mut dead = dead();
    dead.join("b");
    for _ in 0..4 {
        dead.machine.pass(10_000);
        let _ = block_on(step_down(&dead.memory, &dead.hand(), &config(), &words()));
    }
    assert_eq!(dead.leader(), Some(0));
}

#[test]
fn a_lock_member_that_takes_a_paused_record_passes_no_pause_on() {
    let mut group = Group::new(&[]);
    let paused = block_on(pause(&group.memory, &group.hand(), &config(), &words(), None));
    assert!(paused.is_ok());
    let host = group.machine.host.clone();
    let lock = ObjectStoreLock::new(&group.memory, &host, "k8s-1").expect("a lock");
    let (mut record, version) = block_on(lock.get()).expect("a read").expect("a record");
    let taken = LeaderElectionRecord::new("k8s-1", 15_000, host.wall_ms() as i64);
    (record.holder_identity, record.lease_duration_ms) =
        (taken.holder_identity, taken.lease_duration_ms);
    (record.acquire_time_ms, record.renew_time_ms) = (taken.acquire_time_ms, taken.renew_time_ms);
    block_on(lock.update(&version, &record)).expect("it is released");
    group.join("b");
    group.machine.pass(120_000);
    assert_eq!(group.leader(), Some(0), "the lock's holder has died");
}

#[test]
fn a_resume_does_not_ask_the_own_clock_whether_the_pause_is_over() {
    let mut group = Group::new(&[]);
    let (host, memory) = (group.machine.host.clone(), group.memory.clone());
    let store = Through(async move |operation| undated(memory.perform(operation).await.outcome));
    let until_ms = Some(host.wall_ms() + 600_000);
    block_on(pause(&store, &group.hand(), &config(), &words(), until_ms)).expect("it is written");
    let fast = Hand(host.ahead(900_000), 99);
    let told = block_on(resume(&store, &fast, &config(), &words()));
    assert!(told.is_ok_and(|receipt| receipt.written));
    group.join("b");
    group.machine.pass(60_000);
    assert_eq!(group.leader(), Some(0));
}

#[test]
fn a_receipt_names_who_leads_by_the_record_that_was_written_over() {
    let group = dead();
    let raced = Cell::new(false);
    let store = Through(async |operation: Operation| {
        if matches!(operation, Operation::Write { .. }) && !raced.replace(true) {
            let Outcome::Found { version, reading: Reading::Lease(lease) } =
                group.memory.perform(Operation::Read { unless: None }).await.outcome
            else {
                panic!("a lease");
            };
            let (leader_id, session) = ("newer".to_owned(), Some("other".to_owned()));
            let term = lease.term.map(|term| term + 1);
            let record = Lease { leader_id, session, term, ..*lease }.into();
            let condition = Condition::Match(version);
            group.memory.perform(Operation::Write { record, condition }).await;
        }
        group.memory.perform(operation).await
    });
    let told = block_on(pause(&store, &group.hand(), &config(), &words(), None)).expect("written");
    assert_eq!((told.leader_id.as_deref(), told.term), (Some("newer"), group.lease().term));
}

#[test]
fn an_end_that_no_text_can_say_is_refused() {
    let group = Group::new(&[]);
    let told = block_on(pause(&group.memory, &group.hand(), &config(), &words(), Some(u64::MAX)));
    assert!(matches!(told, Err(OperatorError::Config(_))), "{told:?}");
}

#[test]
fn requests_are_no_copies_that_something_makes_of_the_record() {
    let mut group = Group::new(&["a"]);
    group.machine.pass(20_000);
    for _ in 0..4 {
        block_on(pause(&group.memory, &group.hand(), &config(), &words(), None)).expect("written");
        group.machine.pass(20_000);
    }
    assert_eq!(group.status(0)["error"], serde_json::Value::Null);
}

/// A read may be an old one: on Route 53 one that shows the record as it was before the requests.
#[test]
fn s5_an_old_read_after_a_request_does_not_lengthen_the_authority() {
    const WALL_MS: u64 = 1_795_000_000_000;
    let at = |ms: u64| Now::new(ms, WALL_MS + ms);
    let of = |lease_ms: u64| {
        let (server_id, leader_timeout_ms) = (Some("a".to_owned()), Some(lease_ms));
        let max_lease_ms = Some(60_000);
        config_of(Settings { server_id, leader_timeout_ms, max_lease_ms, ..Settings::default() })
    };
    let answer = |outcome| Input::Answer(Answer { outcome, facts: Facts::default() });
    let shows = |name: &str, lease: &Lease| {
        let reading = Reading::Lease(Box::new(lease.clone()));
        answer(Outcome::Found { version: Version(name.to_owned()), reading })
    };
    let mut election = Election::new(of(60_000), "s-a".to_owned(), 1);
    let mut before = Lease::bare("z", Stamp::Released);
    (before.term, before.session) = (Some(5), Some("s-z".to_owned()));
    (before.lease_ms, before.acquired) = (Some(60_000), Some(1));
    assert!(matches!(election.poll(at(0)), Step::Read { .. }));
    election.handle(at(10), shows("v0", &before));
    let Step::Claim { lease: claimed, .. } = election.poll(at(10)) else { panic!("a tombstone") };
    let version = Some(Version("v1".to_owned()));
    election.handle(at(20), answer(Outcome::Written { version }));
    let request = OperatorRequest {
        ask: Ask::Resume,
        id: "2".to_owned(),
        by: String::new(),
        why: String::new(),
        at_ms: None,
        until_ms: None,
        term: None,
        session: None,
    };
    election.handle(at(4_000), Input::Configure(Box::new(of(15_000))));
    assert!(matches!(election.poll(at(5_100)), Step::Renew { .. }));
    election.handle(at(5_110), answer(Outcome::Refused));
    assert!(matches!(election.poll(at(5_110)), Step::Read { .. }));
    election.handle(at(5_120), shows("v1-resumed", &request.over(&claimed)));
    let Step::Renew { lease, .. } = election.poll(at(5_120)) else { panic!("it is due") };
    assert_eq!(lease.lease_ms, Some(15_000));
    // It lands unheard, and every read from here on is an old one.
    let mut now_ms = 5_120 + 1_800;
    election.handle(at(now_ms), Input::Answer(no_answer()));
    while now_ms < 5_120 + 15_000 {
        match election.poll(at(now_ms)) {
            Step::Wait { until_ms } => now_ms = until_ms.min(now_ms + 100),
            Step::Read { .. } => election.handle(at(now_ms), shows("v1", &claimed)),
            _ => {
                now_ms += 1_800;
                election.handle(at(now_ms), Input::Answer(no_answer()));
            }
        }
        now_ms += 1;
    }
    assert_eq!(election.authority(at(5_120 + 15_000)), None, "others may claim now");
}

#[test]
fn a_pause_over_another_makes_tombstone_holds_in_the_kubernetes_format() {
    for more in ["", r#","serverId":"z","lastUpdated":"2026-11-21T06:58:02Z""#] {
        let mut group = Group::new(&[]);
        group.memory = group.memory.clone().in_format(Format::Kubernetes);
        let body = format!(
            r#"{{"holderIdentity":"","leaseDurationSeconds":1,"renewTime":"2026-11-21T06:58:12Z","leaderTransitions":3{more}}}"#
        );
        group.memory.overwrite(Some(body.into_bytes()));
        let told = block_on(pause(&group.memory, &group.hand(), &config(), &words(), None));
        assert!(told.expect("it is released").written);
        group.join("a");
        group.machine.pass(120_000);
        assert_eq!(group.leader(), None, "{}", group.status(0));
        let told = block_on(resume(&group.memory, &group.hand(), &config(), &words()));
        assert!(told.expect("it is paused").written);
        group.machine.pass(120_000);
        assert!(group.leader().is_some(), "{}", group.status(0));
    }
}

/// What a request wrote by attempts of which none was answered, and what it says then.
fn unanswered(group: &Group) -> (Vec<String>, Result<Receipt, OperatorError>) {
    let bodies = RefCell::new(Vec::new());
    let store = Through(async |operation: Operation| match operation {
        Operation::Write { record, .. } => {
            let body = record.into_body(Format::Native);
            bodies.borrow_mut().push(String::from_utf8(body).expect("it is a text"));
            no_answer()
        }
        read => group.memory.perform(read).await,
    });
    let told = block_on(pause(&store, &group.hand(), &config(), &words(), None));
    (bodies.into_inner(), told)
}

#[test]
fn s4_each_attempt_of_a_request_is_a_new_body() {
    let (bodies, told) = unanswered(&dead());
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "{told:?}");
    let different: std::collections::BTreeSet<_> = bodies.iter().collect();
    assert_eq!((bodies.len(), different.len()), (3, 3), "{bodies:?}");
}

#[test]
fn over_a_record_that_may_come_back_a_request_is_written_once() {
    // Of two that are held up, one could land over the same tombstone after a resume.
    let group = Group::new(&[]);
    let body = br#"{"leaderID":"x","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z"}"#;
    group.memory.overwrite(Some(body.to_vec()));
    let (bodies, told) = unanswered(&group);
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "{told:?}");
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}
