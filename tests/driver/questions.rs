//! Questions of peers that a leader holds: very many, and none for ever.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::config::PeerSettings;
use edgelect::election::Election;
use edgelect::{Handle, Host, Input, Settings};
use worlds::virtual_time::{Hanging, Machine, config_of};

const MANY: usize = 100_000;

fn leader(machine: &Machine, most: u64) -> Handle {
    let store = Hanging::with_group(&machine.host);
    let peers = PeerSettings { most: Some(most), ..PeerSettings::default() };
    let config = config_of(Settings { peers, ..Settings::default() });
    let handle = Handle::new(Election::new(config, "session-1".to_owned(), 1));
    machine.elect(&handle, store, &machine.host, |_| ());
    handle
}

fn query(handle: &Handle, machine: &Machine) -> String {
    let term = handle.steady_term(machine.host.now()).expect("it leads");
    format!("term={term}&wait=25000")
}

#[test]
fn c70_a_hundred_thousand_questions_are_held_and_answered_at_a_resignation() {
    let mut machine = Machine::default();
    let handle = leader(&machine, MANY as u64);
    machine.pass(1_000);
    let query = query(&handle, &machine);
    let requests = handle.requests();
    let answers = Rc::<RefCell<Vec<u16>>>::default();
    for _ in 0..MANY {
        let (asked, host, query) = (handle.clone(), machine.host.clone(), query.clone());
        let answers = Rc::clone(&answers);
        machine.run(async move {
            let answer = asked.answer_peer(&host, &query).await;
            answers.borrow_mut().push(answer.status);
        });
    }
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
    let query = query(&handle, &machine);
    let status = Rc::<Cell<u16>>::default();
    let ask = |machine: &Machine| {
        let (asked, host, query) = (handle.clone(), machine.host.clone(), query.clone());
        let status = Rc::clone(&status);
        machine.run(async move { status.set(asked.answer_peer(&host, &query).await.status) })
    };
    let first = ask(&machine);
    machine.pass(1_000);
    assert_eq!((handle.questions_held(), status.get()), (1, 0));
    ask(&machine);
    machine.pass(1_000);
    assert_eq!((handle.questions_held(), status.replace(0)), (1, 503), "there is no room");
    first.abort();
    machine.pass(1);
    assert_eq!(handle.questions_held(), 0);
    ask(&machine);
    machine.pass(20_000);
    assert_eq!(status.get(), 0);
    machine.pass(6_000);
    assert_eq!((handle.questions_held(), status.get()), (0, 200), "it leads still");
}
