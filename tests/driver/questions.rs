//! Questions of peers that a leader holds: very many, and none for ever.

use edgelect::config::PeerSettings;
use edgelect::election::PeerAnswer;
use edgelect::isolate::{Isolate, MOST_SEEN};
use edgelect::peer::{self, HealthAnswer, Heard, Question};
use edgelect::store::Facts;
use futures::FutureExt;
use futures::future::AbortHandle;
use std::pin::pin;

use crate::driver::prelude::*;

const MANY: usize = 100_000;

fn leader(machine: &Machine, most: u64) -> Handle {
    let store = Hanging::with_group(&machine.host);
    let peers = PeerSettings { most: Some(most), ..PeerSettings::default() };
    let config = config_of(Settings { peers, ..Settings::default() });
    let handle = Handle::new(Election::new(config, "session-1".to_owned(), 1));
    machine.elect(&handle, store, &machine.host, |_| ());
    handle
}

type Statuses = Rc<RefCell<Vec<u16>>>;

/// Asks it for 25 s, and notes the status of the answer.
fn ask(machine: &Machine, handle: &Handle, statuses: &Statuses) -> AbortHandle {
    let term = handle.steady_term(machine.host.now()).expect("it leads");
    let (asked, host, statuses) = (handle.clone(), machine.host.clone(), Rc::clone(statuses));
    machine.run(async move {
        let answer = asked.answer_peer(&host, &format!("term={term}&wait=25000")).await;
        statuses.borrow_mut().push(answer.status);
    })
}

#[test]
fn c70_a_hundred_thousand_questions_are_held_and_answered_at_a_resignation() {
    let mut machine = Machine::default();
    let handle = leader(&machine, MANY as u64);
    machine.pass(1_000);
    let requests = handle.requests();
    let answers = Statuses::default();
    (0..MANY).for_each(|_| drop(ask(&machine, &handle, &answers)));
    machine.pass(4_500);
    assert_eq!((handle.questions_held(), answers.borrow().len()), (MANY as u64, 0));
    assert_eq!(handle.requests().write, requests.write + 1, "its own renewal and nothing else");
    handle.tell(Input::Resign);
    machine.pass(100);
    let answers = answers.borrow();
    assert_eq!(answers.len(), MANY);
    assert!(answers.iter().all(|status| *status == 404), "nobody leads, and all know it");
    assert_eq!(handle.questions_held(), 0);
}

/// An isolate without sessions, and how often it has read the store.
struct Asked {
    isolate: Isolate<Virtual>,
    host: Virtual,
    reads: Rc<Cell<usize>>,
}

impl Asked {
    fn health(&self, place: u32, group: usize) -> HealthAnswer {
        let reads = Rc::clone(&self.reads);
        let store = Through(async move |_| {
            reads.set(reads.get() + 1);
            undated(Outcome::Missing)
        });
        let mut config = config_of(Settings::default());
        config.lockfile_path = format!("groups/{group}.json");
        let isolate = self.isolate.at(place);
        let answer = isolate.health(&config, &store, &self.host, false, "", &[]);
        answer.now_or_never().expect("it is answered at once")
    }

    /// The status for each of so many groups, and how many reads they took.
    fn all(&self, groups: usize) -> (Vec<u16>, usize) {
        let before = self.reads.get();
        let mut statuses: Vec<u16> =
            (0..groups).map(|group| self.health(0, group).status).collect();
        statuses.dedup();
        (statuses, self.reads.get() - before)
    }
}

#[test]
fn an_isolate_whose_session_is_over_does_not_call_the_leader_alive_that_its_record_names() {
    let mut machine = Machine::default();
    let isolate = Rc::new(Isolate::<Virtual>::default());
    let store = memory(&machine.host);
    let config =
        config_of(Settings { server_id: Some("worker".to_owned()), ..Settings::default() });
    block_on(edgelect::init(&store, &machine.host, &config)).expect("a new group");
    let handle = Handle::new(Election::new(config.clone(), "session-1".to_owned(), 1));
    let running = isolate.runs(&handle, &machine.host);
    let elector = machine.elect(&handle, store.clone(), &machine.host, |_| ());
    machine.pass(1_000);
    assert!(handle.authority(machine.host.now()).is_some(), "it leads");
    // As an event that ends before it could give the lease back.
    elector.abort();
    machine.pass(1);
    drop(running);
    let next = Handle::new(Election::new(config.clone(), "session-2".to_owned(), 1));
    let _follows = isolate.runs(&next, &machine.host);
    let health = |isolate: &Isolate<Virtual>| {
        let answer = isolate.health(&config, &store, &machine.host, false, "", &[]);
        answer.now_or_never().expect("the store answers at once").status
    };
    assert_eq!(health(&Isolate::default()), 200, "another isolate can't know that it is over");
    assert_eq!(health(&isolate), 404);
}

/// DynamoDB and Route 53 say nothing of when a record was written.
#[test]
fn an_isolate_goes_by_the_records_own_time_where_its_store_names_none() {
    let machine = Machine::default();
    let config = config_of(Settings { server_id: Some("ours".to_owned()), ..Settings::default() });
    let at_ms = machine.host.now().wall_ms;
    let date_ms = Some(at_ms);
    for (ago_ms, date_ms, relayed, status) in [
        (0, None, false, 200),
        (14_999, None, false, 200),
        (15_000, None, false, 404),
        // Its leader's clock is ahead of this one.
        (-2_000, None, false, 200),
        (-2_001, None, false, 404),
        (-4_000, date_ms, false, 200),
        (-4_001, date_ms, false, 404),
        (0, None, true, 404),
    ] {
        let stamp = Stamp::At(at_ms as i64 - ago_ms);
        let lease = Lease { term: Some(7), lease_ms: Some(15_000), ..Lease::bare("ours", stamp) };
        let reading = Reading::Lease(Box::new(lease));
        let outcome = Outcome::Found { version: Version("v".to_owned()), reading };
        let facts = Facts { date_ms, relayed, ..Facts::default() };
        let store = Through(async move |_| Answer { outcome: outcome.clone(), facts });
        let isolate = Isolate::<Virtual>::default();
        let answer = isolate.health(&config, &store, &machine.host, false, "", &[]);
        let answer = answer.now_or_never().expect("the store answers at once");
        assert_eq!(answer.status, status, "{ago_ms} {date_ms:?} {relayed}: {answer:?}");
    }
}

#[test]
fn while_a_record_is_read_for_one_question_the_others_are_to_ask_again_soon() {
    let machine = Machine::default();
    let isolate = Isolate::<Virtual>::default();
    let store = Through(async move |_| std::future::pending().await);
    let config = config_of(Settings::default());
    let mut first = pin!(isolate.health(&config, &store, &machine.host, false, "", &[]));
    assert!(first.as_mut().now_or_never().is_none(), "it waits for the store");
    let second = isolate.health(&config, &store, &machine.host, false, "", &[]);
    let second = second.now_or_never().expect("it is answered at once");
    assert_eq!((second.status, second.retry_after_s), (503, Some(1)), "{second:?}");
    let heard = Heard { status: 503, proof: None, body: second.body.as_bytes() };
    let question = Question::read("", &config.peers.secrets).0;
    let busy = PeerAnswer::Busy { retry_after_ms: 1_000, relays: Vec::new() };
    assert_eq!(peer::judge(&heard, &question, &config.peers), busy, "not silent for a lease");
}

/// How often the store is read for metrics that are asked for at these times, where it asks to be left alone for so long.
fn reads_for_metrics(retry_after_ms: Option<u64>, asked_ms: [u64; 3]) -> usize {
    let mut machine = Machine::default();
    let (host, reads) = (machine.host.clone(), Rc::<Cell<usize>>::default());
    let isolate = Rc::new(Isolate::<Virtual>::default());
    for pair in [0].into_iter().chain(asked_ms).collect::<Vec<_>>().windows(2) {
        machine.pass(pair[1] - pair[0]);
        let (isolate, host, reads) = (Rc::clone(&isolate), host.clone(), Rc::clone(&reads));
        let clock = host.clone();
        let store = Through(async move |_| {
            reads.set(reads.get() + 1);
            clock.sleep(1_500).await;
            let cause = Fault::new(FaultKind::Unavailable, "busy");
            undated(Outcome::Unknown { retry_after_ms, cause })
        });
        let config = config_of(Settings::default());
        machine.run(async move {
            drop(isolate.metrics(&config, &store, &host, false).await);
        });
    }
    machine.pass(1_600);
    reads.get()
}

#[test]
fn metrics_take_one_read_and_leave_a_busy_store_alone_for_as_long_as_it_asks() {
    assert_eq!(reads_for_metrics(None, [1, 2_600, 5_200]), 3);
    // From its answer on, which takes 1.5 s.
    assert_eq!(reads_for_metrics(Some(3_000), [1, 1_700, 4_400]), 1);
    assert_eq!(reads_for_metrics(Some(3_000), [1, 1_700, 4_600]), 2);
    assert_eq!(reads_for_metrics(Some(60_000), [1, 1_700, 6_600]), 2, "no longer than an interval");
}

#[test]
fn each_of_ten_thousand_groups_is_read_once_an_interval_and_of_more_none() {
    let mut machine = Machine::default();
    let asked =
        Asked { isolate: Isolate::default(), host: machine.host.clone(), reads: Rc::default() };
    machine.pass(1);
    assert_eq!(asked.all(MOST_SEEN), (vec![404], MOST_SEEN));
    machine.pass(2_000);
    assert_eq!(asked.all(MOST_SEEN), (vec![404], 0), "they are known");
    let full = asked.health(0, MOST_SEEN);
    assert_eq!((full.status, full.retry_after_s), (503, Some(3)), "{full:?}");
    assert!(full.body.contains(r#""retryAfterMs":3000"#), "{full:?}");
    assert_eq!(asked.health(1, 0).status, 503, "another store has its own record of it");
    assert_eq!(asked.reads.get(), MOST_SEEN, "nothing was read for them");
    machine.pass(3_000);
    assert_eq!(asked.health(0, MOST_SEEN).status, 404);
    assert_eq!(asked.health(1, 0).status, 404);
    assert_eq!(asked.all(100), (vec![404], 100), "the old ones are read again");
}

#[test]
fn a_record_that_is_younger_than_its_interval_is_not_forgotten_for_others() {
    let mut machine = Machine::default();
    let asked =
        Asked { isolate: Isolate::default(), host: machine.host.clone(), reads: Rc::default() };
    machine.pass(1);
    for _ in 0..3 {
        asked.all(1_000);
        machine.pass(1_000);
    }
    assert_eq!(asked.reads.get(), 1_000);
    // Far more than are kept, if slowly: each is read for its own question, and no question is turned away.
    for group in 0..30_000 {
        assert_eq!(asked.health(2, group).status, 404, "{group}");
        machine.pass(1);
    }
}
