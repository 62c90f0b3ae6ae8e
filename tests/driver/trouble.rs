//! What somebody sees of a member whose store fails, or that does not lead.

use std::cell::Cell;
use std::rc::Rc;

use crate::driver::{World, world};
use edgelect::election::{Election, Event, Waiting};
use edgelect::store::{Answer, Fault, FaultKind, Operation, Outcome};
use edgelect::{Config, Handle, Host, Settings, Store, lead, new_election};
use worlds::virtual_time::config;

fn troubles(world: &World) -> Vec<(u64, bool)> {
    let told = world.told.borrow();
    let of = |(at_ms, event): &(u64, Event)| match event {
        Event::Troubled(_) => Some((*at_ms, true)),
        Event::Solved => Some((*at_ms, false)),
        _ => None,
    };
    told.iter().filter_map(of).collect()
}

#[test]
fn one_failed_request_is_shown_to_nobody() {
    let mut world = world(true);
    world.pass(9_999);
    world.store.hangs.set(true);
    world.pass(1_801);
    world.store.hangs.set(false);
    world.pass(20_000);
    assert_eq!(troubles(&world), []);
    assert!(world.machine.host.shown.borrow().is_empty());
}

#[test]
fn a_store_that_does_not_answer_is_shown_after_two_attempts_and_once_more_when_it_is_back() {
    let mut world = world(true);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(60_000);
    // The renewals of 10 s and of 11.9 s.
    assert_eq!(troubles(&world), [(13_700, true)]);
    world.store.hangs.set(false);
    world.pass(60_000);
    let shown = world.machine.host.shown.borrow();
    let lines: Vec<&str> = shown.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("edgelect: group leader/test.json: ")
            && lines[0].contains("no answer within 1800 ms"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "edgelect: group leader/test.json: the problem is over");
    assert_eq!(troubles(&world).len(), 2);
}

#[test]
fn a_member_says_what_it_waits_for_and_for_how_long() {
    let mut world = world(true);
    let waits = |world: &World| {
        let now = world.machine.host.now();
        world.handle.with(|election| election.waiting(now))
    };
    assert_eq!(waits(&world), Some((Waiting::Store, Some(0))), "it has asked nobody yet");
    world.pass(1_000);
    assert_eq!(waits(&world), None, "it leads");
    world.handle.tell(edgelect::Input::Resign);
    world.pass(1_000);
    assert_eq!(waits(&world), Some((Waiting::SittingOut, Some(19_000))));
    world.pass(20_000);
    assert_eq!(waits(&world), None);
    world.store.hangs.set(true);
    world.pass(40_000);
    assert!(matches!(waits(&world), Some((Waiting::Store, Some(1..)))), "{:?}", waits(&world));
}

#[test]
fn a_new_group_is_told_once_that_it_waits_out_its_grace() {
    let mut machine = worlds::virtual_time::Machine::default();
    let store = worlds::virtual_time::Hanging::new(&machine.host);
    let elector = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let (running, host) = (elector.clone(), machine.host.clone());
    machine.run(async move {
        let never = std::future::pending::<()>;
        let _ = lead(&running, &store, &host, async |_| never().await).await;
    });
    machine.pass(60_000);
    let shown = machine.host.shown.borrow();
    let lines: Vec<&str> = shown.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].ends_with("waiting out the grace of a new group, 15 s left; `init` avoids this where no member has run")
    );
}

/// A store that refuses everything with one code.
struct Refusing(&'static str);

impl Store for Refusing {
    async fn perform(&self, _operation: Operation) -> Answer {
        let code = Some(self.0.to_owned());
        let fault = Fault { code, status: Some(403), ..Fault::new(FaultKind::Denied, self.0) };
        Answer { outcome: Outcome::Rejected(fault), facts: edgelect::store::Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that refuses".to_owned()
    }
}

/// A store that shows no record, and refuses each write with the code for a key that it does not know.
struct Forgetful;

impl Store for Forgetful {
    async fn perform(&self, operation: Operation) -> Answer {
        match operation {
            Operation::Read { .. } => {
                let facts = edgelect::store::Facts::default();
                Answer { outcome: Outcome::Missing, facts }
            }
            other => Refusing("InvalidAccessKeyId").perform(other).await,
        }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that forgets a key".to_owned()
    }
}

/// A store that does not answer once, and then refuses everything with the code for a key that it does not know.
#[derive(Default)]
struct LateRefusal(std::cell::Cell<bool>);

impl Store for LateRefusal {
    async fn perform(&self, operation: Operation) -> Answer {
        if !self.0.replace(true) {
            return Answer::unknown(Fault::new(FaultKind::Unavailable, "busy"));
        }
        Refusing("InvalidAccessKeyId").perform(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that refuses late".to_owned()
    }
}

#[test]
fn a_key_that_has_read_is_not_given_up_for_one_write() {
    let mut machine = worlds::virtual_time::Machine::default();
    let host = machine.host.clone();
    let elector = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let running = elector.clone();
    machine.run(async move {
        let led = lead(&running, &Forgetful, &host, async |_| ()).await;
        panic!("it ended: {led:?}");
    });
    machine.pass(600_000);
    assert!(elector.requests().write > 1);
}

#[test]
fn what_ends_an_elector_is_no_trouble_beside() {
    let mut machine = worlds::virtual_time::Machine::default();
    let host = machine.host.clone();
    let elector = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let told = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (running, telling) = (elector.clone(), told.clone());
    machine.run(async move {
        let tell = |event| telling.borrow_mut().push(event);
        edgelect::driver::run(&running, &LateRefusal::default(), &host, tell).await;
    });
    machine.pass(60_000);
    assert!(matches!(told.borrow()[..], [Event::Failed(_)]), "{:?}", told.borrow());
    assert!(machine.host.shown.borrow().is_empty());
}

fn patient() -> Config {
    let settings = Settings {
        lockfile_path: Some("leader".to_owned()),
        fail_fast: Some(false),
        ..Settings::default()
    };
    Config::new(&settings).expect("they are sound")
}

#[test]
fn a_store_that_does_not_know_the_key_ends_lead_at_the_second_refusal() {
    for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "UnrecognizedClientException"] {
        let mut machine = worlds::virtual_time::Machine::default();
        let host = machine.host.clone();
        let elector = Handle::new(new_election(&host, config()).expect("it has randomness"));
        let (running, ended) = (elector.clone(), Rc::<Cell<_>>::default());
        let noted = Rc::clone(&ended);
        machine.run(async move {
            let led = lead(&running, &Refusing(code), &host, async |_| ()).await;
            noted.set(Some(led.map_err(|fault| fault.code)));
        });
        machine.pass(1_000);
        assert_eq!(elector.requests().read, 1, "one refusal may be of a key that is new");
        machine.pass(4_100);
        assert_eq!(ended.take(), Some(Err(Some(code.to_owned()))));
        assert_eq!(elector.requests().read, 2);
    }
}

#[test]
fn whoever_wants_to_wait_for_such_a_store_or_for_a_right_does() {
    for (code, config) in [("InvalidAccessKeyId", patient()), ("AccessDenied", config())] {
        let mut machine = worlds::virtual_time::Machine::default();
        let host = machine.host.clone();
        let elector = Handle::new(Election::new(config, "session-1".to_owned(), 1));
        let running = elector.clone();
        machine.run(async move {
            let led = lead(&running, &Refusing(code), &host, async |_| ()).await;
            panic!("it ended: {led:?}");
        });
        machine.pass(600_000);
        assert!(elector.requests().read > 10);
        assert_eq!(machine.host.shown.borrow().len(), 1, "one line is enough");
    }
}
