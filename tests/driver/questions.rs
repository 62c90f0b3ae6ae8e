//! Questions of peers that a leader holds: very many, and none for ever.

use edgelect::config::PeerSettings;
use futures::future::AbortHandle;

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

#[test]
fn a_question_ends_with_its_time_and_gives_its_place_back_when_its_asker_goes() {
    let mut machine = Machine::default();
    let handle = leader(&machine, 1);
    machine.pass(1_000);
    let statuses = Statuses::default();
    let first = ask(&machine, &handle, &statuses);
    machine.pass(1_000);
    ask(&machine, &handle, &statuses);
    machine.pass(1_000);
    assert_eq!((handle.questions_held(), statuses.take()), (1, vec![503]), "there is no room");
    first.abort();
    machine.pass(1);
    assert_eq!(handle.questions_held(), 0);
    ask(&machine, &handle, &statuses);
    machine.pass(20_000);
    assert!(statuses.borrow().is_empty());
    machine.pass(6_000);
    assert_eq!((handle.questions_held(), statuses.take()), (0, vec![200]), "it leads still");
}
