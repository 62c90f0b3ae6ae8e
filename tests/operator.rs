//! An operator's requests: what they write, what members make of them, and what the operator learns when the store fails.

#[allow(dead_code)] // Each suite uses a part of it.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::driver::{init, read_back};
use edgelect::election::{Election, Event, Input, LostReason};
use edgelect::lease::{Ask, Lease};
use edgelect::operator::{OperatorError, Receipt, Words, pause, resume, step_down};
use edgelect::status::status;
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Record, Store};
use edgelect::{Config, Handle, Host, Settings, run};
use futures::executor::block_on;
use virtual_time::{Machine, Through, Virtual, config, config_of, undated};

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
