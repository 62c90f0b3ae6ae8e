//! An operator's requests: what they write, what members make of them, and what the operator learns when the store fails.

use std::collections::BTreeSet;

use edgelect::driver::init;
use edgelect::lease::Ask;
use edgelect::object_store_lock::ObjectStoreLock;
use edgelect::operator::{OperatorError, Receipt, Words, pause, resume, step_down};
use futures::future::AbortHandle;

use crate::driver::Told;
use crate::driver::prelude::*;

type Asked = Result<Receipt, OperatorError>;

fn words() -> Words {
    Words { by: "ada".to_owned(), why: "a new database".to_owned() }
}

/// A group of members over one store in memory.
struct Group {
    machine: Machine,
    memory: Memory,
    members: Vec<(Handle, AbortHandle)>,
    told: Told,
    requests: Cell<u8>,
}

impl Group {
    /// A new group, which its members have begun to lead.
    fn new(names: &[&str]) -> Self {
        let machine = Machine::default();
        let memory = memory(&machine.host);
        block_on(init(&memory, &machine.host, &config())).expect("a new group");
        let (members, told, requests) = (Vec::new(), Told::default(), Cell::new(0));
        let mut group = Self { machine, memory, members, told, requests };
        names.iter().for_each(|name| group.join(name));
        group.machine.pass(if names.is_empty() { 0 } else { 20_000 });
        group
    }

    /// A group whose leader is dead: its record lies there, unreleased.
    fn dead() -> Self {
        let mut group = Self::new(&["a"]);
        group.members.remove(0).1.abort();
        group
    }

    fn join(&mut self, name: &str) {
        let server_id = Some(name.to_owned());
        let config = config_of(Settings { server_id, ..Settings::default() });
        let handle = Handle::new(Election::new(config, format!("session-{name}"), 1));
        let (memory, host) = (self.memory.clone(), &self.machine.host);
        let end = self.machine.elect(&handle, memory, host, self.told.note(host));
        self.members.push((handle, end));
    }

    /// Where the next request is made: the operator's pauses take no time.
    fn hand(&self) -> Virtual {
        self.requests.set(self.requests.get() + 1);
        self.machine.host.seeded(self.requests.get()).hasty(10_000)
    }

    fn pause(&self, until_ms: Option<u64>) -> Asked {
        self.pause_over(&self.memory, &words(), until_ms)
    }

    fn pause_over(&self, store: &impl Store, words: &Words, until_ms: Option<u64>) -> Asked {
        block_on(pause(store, &self.hand(), &config(), words, until_ms))
    }

    fn resume(&self) -> Asked {
        block_on(resume(&self.memory, &self.hand(), &config(), &words()))
    }

    fn step_down(&self) -> Asked {
        block_on(step_down(&self.memory, &self.hand(), &config(), &words()))
    }

    fn leader(&self) -> Option<usize> {
        let now = self.machine.host.now();
        self.members.iter().position(|(handle, _)| handle.authority(now).is_some())
    }

    fn status(&self, member: usize) -> serde_json::Value {
        status_of(&self.members[member].0, &self.machine.host)
    }

    fn lease(&self) -> Lease {
        lease_of(&self.memory.body().expect("there is a record"))
    }

    /// Somebody else changes the record.
    fn change(&self, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease();
        change(&mut lease);
        self.memory.overwrite(Some(lease::write(&lease)));
    }

    fn how(&self) -> String {
        let status = self.status(0);
        let past = status["history"].as_array().and_then(|past| past.last()).expect("a term");
        past["how"].as_str().expect("a word").to_owned()
    }
}

#[test]
fn a_step_down_ends_the_term_of_the_leader_and_another_member_leads() {
    let mut group = Group::new(&["a", "b"]);
    let led = group.leader().expect("one leads");
    let before = group.lease();
    let (leader_id, term) = (Some(before.leader_id.clone()), before.term);
    assert_eq!(group.step_down(), Ok(Receipt { written: true, leader_id, term }));
    assert_eq!(Lease { operator: None, ..group.lease() }, before, "nothing else has changed");
    assert_eq!(group.leader(), Some(led), "and nobody has lost anything yet");
    group.machine.pass(12_000);
    assert_eq!(group.leader(), Some(1 - led), "within two intervals");
    assert_eq!(group.told.reasons(), [LostReason::SteppedDown]);
    assert_eq!(group.how(), "steppedDown");
    assert_eq!(group.lease().operator, None, "it is answered");
    group.machine.pass(60_000);
    assert_eq!(group.leader(), Some(1 - led));
}

#[test]
fn a_paused_group_has_no_leader_until_it_is_resumed() {
    let mut group = Group::new(&["a", "b"]);
    group.pause(None).expect("asked");
    group.machine.pass(3_600_000);
    assert_eq!((group.leader(), group.told.reasons()), (None, vec![LostReason::Paused]));
    let told = group.status(1);
    assert_eq!((&told["paused"]["by"], &told["paused"]["until"]), (&"ada".into(), &().into()));
    let sentence = "\"ada\" has paused the group until somebody resumes it: \"a new database\"";
    assert_eq!(told["waiting"]["message"], sentence);
    assert_eq!((&told["waiting"]["reason"], &told["error"]), (&"paused".into(), &().into()));
    let again = group.step_down();
    assert!(matches!(again, Err(OperatorError::NobodyLeads(_))), "{again:?}");
    group.resume().expect("asked");
    group.machine.pass(12_000);
    assert!(group.leader().is_some());
    assert_eq!(group.how(), "released");
    assert!(!group.resume().expect("there is nothing to do").written);
}

#[test]
fn who_obeyed_a_pause_leads_again_as_soon_as_the_group_is_resumed() {
    let mut group = Group::new(&["a"]);
    group.pause(None).expect("asked");
    group.machine.pass(6_000);
    assert_eq!(group.told.reasons(), [LostReason::Paused]);
    group.resume().expect("asked");
    group.machine.pass(6_000);
    assert_eq!(group.leader(), Some(0));
}

#[test]
fn a_pause_ends_at_its_time() {
    let mut group = Group::new(&["a"]);
    let until_ms = Some(group.machine.host.wall_ms() + 600_000);
    group.pause(until_ms).expect("asked");
    group.machine.pass(590_000);
    assert_eq!(group.leader(), None);
    group.machine.pass(12_000);
    assert_eq!((group.leader(), &*group.how()), (Some(0), "paused"));
    let past = group.pause(until_ms);
    assert!(matches!(past, Err(OperatorError::Config(_))), "{past:?}");
}

#[test]
fn a_step_down_that_was_meant_for_another_term_is_ignored() {
    let mut group = Group::new(&["a"]);
    group.step_down().expect("asked");
    group.change(|lease| {
        let request = lease.operator.as_mut().expect("it is written");
        assert_eq!(request.ask, Ask::StepDown);
        (request.term, request.id) = (request.term.map(|term| term - 1), "2".to_owned());
    });
    group.machine.pass(60_000);
    assert_eq!((group.leader(), group.told.reasons()), (Some(0), vec![]));
    assert_eq!(group.lease().operator, None);
}

/// What the operator learns where the store does with its writes what `fate` says, and the bodies of those.
fn asked_of(group: &Group, fate: impl AsyncFn(Operation) -> Answer) -> (Asked, Vec<Vec<u8>>) {
    let bodies = RefCell::new(Vec::new());
    let store = Through(async |operation: Operation| match operation {
        Operation::Write { ref record, .. } => {
            bodies.borrow_mut().push(record.body(Format::Native));
            fate(operation).await
        }
        read => group.memory.perform(read).await,
    });
    let told = group.pause_over(&store, &words(), None);
    (told, bodies.into_inner())
}

async fn no_answer(_: Operation) -> Answer {
    Answer::unknown(Fault::new(FaultKind::Timeout, "no answer in time"))
}

#[test]
fn a_write_without_an_answer_is_read_back_and_never_guessed() {
    let group = Group::new(&["a"]);
    let (told, bodies) = asked_of(&group, async |write| {
        group.memory.perform(write).await;
        no_answer(Operation::Delete).await
    });
    assert!(told.is_ok_and(|told| told.written), "it landed");
    assert_eq!(bodies.len(), 1, "and is not repeated");
    let group = Group::dead();
    let (told, bodies) = asked_of(&group, no_answer);
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "it may land yet: {told:?}");
    let different: BTreeSet<_> = bodies.iter().collect();
    assert_eq!((bodies.len(), different.len()), (3, 3), "S4: each attempt is a new body");
    let (told, bodies) = asked_of(&group, async |_| undated(Outcome::Refused));
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "so may this one: {told:?}");
    assert_eq!(bodies.len(), 3);
    let fault = || Fault::new(FaultKind::Denied, "the store says no");
    let (told, bodies) = asked_of(&group, async |_| Answer::rejected(fault()));
    assert_eq!((told, bodies.len()), (Err(OperatorError::Store(fault())), 1));
    // Of two that are held up over a record that may come back, one could land after a resume.
    let body = br#"{"leaderID":"x","leaderAddr":"","lastUpdated":"0001-01-01T00:00:00Z"}"#;
    group.memory.overwrite(Some(body.to_vec()));
    let (told, bodies) = asked_of(&group, no_answer);
    assert!(matches!(told, Err(OperatorError::Unknown(_))), "{told:?}");
    assert_eq!(bodies.len(), 1);
}

#[test]
fn a_request_that_comes_too_late_each_time_is_known_not_to_have_landed() {
    let group = Group::new(&[]);
    let (told, bodies) = asked_of(&group, async |write| {
        group.change(|lease| lease.sequence += 1);
        group.memory.perform(write).await
    });
    assert!(matches!(told, Err(OperatorError::Store(_))), "{told:?}");
    assert_eq!((bodies.len(), group.lease().operator), (3, None));
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_written() {
    let group = Group::new(&[]);
    let told = group.pause_over(&Memory::new(|| 0), &words(), None).unwrap_err().to_string();
    assert!(told.contains("edgelect init"), "{told}");
    for (by, until_ms) in
        [("a\nb".to_owned(), None), ("x".repeat(201), None), (words().by, Some(u64::MAX))]
    {
        let told = group.pause_over(&group.memory, &Words { by, ..words() }, until_ms);
        assert!(matches!(told, Err(OperatorError::Config(_))), "{told:?}");
    }
}

#[test]
fn a_script_that_repeats_its_step_down_keeps_no_dead_leader_in_office() {
    let mut dead = Group::dead();
    dead.join("b");
    for _ in 0..4 {
        dead.machine.pass(10_000);
        let _ = dead.leader().is_none().then(|| dead.step_down());
    }
    assert_eq!(dead.leader(), Some(0));
}

#[test]
fn a_leader_whose_lease_has_run_out_is_not_asked_to_step_down() {
    let mut dead = Group::dead();
    let before = dead.lease();
    dead.machine.pass(40_000);
    let told = dead.step_down().unwrap_err();
    let OperatorError::NobodyLeads(text) = told else { panic!("{told:?}") };
    assert!(text.contains("ran out"), "{text}");
    assert_eq!(dead.lease(), before, "nothing was written");
}

#[test]
fn a_living_leader_is_asked_whatever_a_proxy_makes_of_the_times_of_the_store() {
    let group = Group::new(&["a"]);
    let memory = group.memory.clone();
    let old = Through(async move |operation| {
        let mut answer = memory.perform(operation).await;
        let modified_ms = &mut answer.facts.last_modified_ms;
        *modified_ms = modified_ms.map(|ms| ms - 60_000);
        answer
    });
    let told = block_on(step_down(&old, &group.hand(), &config(), &words()));
    assert!(told.is_ok_and(|receipt| receipt.written));
}

#[test]
fn a_lock_member_that_takes_a_paused_record_passes_no_pause_on() {
    let mut group = Group::new(&[]);
    group.pause(None).expect("asked");
    let host = group.machine.host.clone();
    let lock = ObjectStoreLock::new(&group.memory, &host, "k8s-1").expect("a lock");
    let (mut record, version) = block_on(lock.get()).expect("a read").expect("a record");
    let now_ms = host.wall_ms() as i64;
    (record.holder_identity, record.lease_duration_ms) = ("k8s-1".to_owned(), Some(15_000));
    (record.acquire_time_ms, record.renew_time_ms) = (Some(now_ms), now_ms);
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
    group.pause_over(&store, &words(), Some(host.wall_ms() + 600_000)).expect("it is written");
    let fast = host.ahead(900_000).seeded(99).hasty(10_000);
    let told = block_on(resume(&store, &fast, &config(), &words()));
    assert!(told.is_ok_and(|receipt| receipt.written));
    group.join("b");
    group.machine.pass(60_000);
    assert_eq!(group.leader(), Some(0));
}

#[test]
fn a_receipt_names_who_leads_by_the_record_that_was_written_over() {
    let (group, raced) = (Group::dead(), Cell::new(false));
    let (told, _) = asked_of(&group, async |write| {
        if !raced.replace(true) {
            group.change(|lease| {
                (lease.leader_id, lease.session) = ("newer".to_owned(), Some("other".to_owned()));
                lease.term = lease.term.map(|term| term + 1);
            });
        }
        group.memory.perform(write).await
    });
    let told = told.expect("written");
    assert_eq!((told.leader_id.as_deref(), told.term), (Some("newer"), group.lease().term));
}

#[test]
fn requests_are_no_copies_that_something_makes_of_the_record() {
    let mut group = Group::new(&["a"]);
    for _ in 0..4 {
        group.pause(None).expect("written");
        group.machine.pass(20_000);
    }
    assert_eq!(group.status(0)["error"], serde_json::Value::Null);
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
        assert!(group.pause(None).expect("it is released").written);
        group.join("a");
        group.machine.pass(120_000);
        assert_eq!(group.leader(), None, "{}", group.status(0));
        assert!(group.resume().expect("it is paused").written);
        group.machine.pass(120_000);
        assert!(group.leader().is_some(), "{}", group.status(0));
    }
}
