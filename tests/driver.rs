//! The driver on a host whose time is virtual: what the application is told, and exactly when.

#[allow(dead_code)] // Each suite uses a part of it.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::driver::{self, Host, InitError};
use edgelect::election::{Election, Event, Input, LostReason};
use edgelect::peer::{self, HealthAnswer};
use edgelect::status::status;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use edgelect::{Handle, run};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use virtual_time::{Hanging, Virtual, config};

struct World {
    host: Virtual,
    store: Hanging,
    handle: Handle,
    told: Rc<RefCell<Vec<(u64, Event)>>>,
    pool: LocalPool,
}

/// One elector over a new group, driven until `work_ends` decides when its work stops.
fn world(work_ends_by_itself: bool) -> World {
    let host = Virtual::default();
    let store = Hanging::new(&host);
    block_on(driver::init(&store, &host, &config())).expect("a new group");
    let handle = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let told = Rc::new(RefCell::new(Vec::new()));
    let pool = LocalPool::new();
    let task = {
        let (host, store, handle, told) =
            (host.clone(), store.clone(), handle.clone(), Rc::clone(&told));
        async move {
            run(&handle, &store, &host, |event| {
                if let (Event::Lost { term, .. }, true) = (&event, work_ends_by_itself) {
                    handle.tell(Input::WorkEnded { term: *term });
                }
                told.borrow_mut().push((host.now_ms.get(), event));
            })
            .await;
        }
    };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    World { host, store, handle, told, pool }
}

impl World {
    fn pass(&mut self, ms: u64) {
        self.host.pass(&mut self.pool, ms);
    }

    fn lost(&self) -> Vec<(u64, LostReason)> {
        let told = self.told.borrow();
        let lost = told.iter().filter_map(|(at_ms, event)| match event {
            Event::Lost { reason, .. } => Some((*at_ms, *reason)),
            _ => None,
        });
        lost.collect()
    }

    fn acquired(&self) -> usize {
        let told = self.told.borrow();
        told.iter().filter(|(_, event)| matches!(event, Event::Acquired { .. })).count()
    }
}

#[test]
fn it_leads_at_once_after_init_and_renews_once_per_interval() {
    let mut world = world(true);
    world.pass(60_000);
    assert_eq!((world.acquired(), world.lost().len()), (1, 0));
    let requests = world.handle.requests();
    assert_eq!((requests.read, requests.write), (1, 13), "one read, the claim, twelve renewals");
    assert!(world.handle.authority(world.host.now()).is_some());
}

#[test]
fn c05_the_end_of_authority_is_told_at_the_fence_while_a_request_hangs() {
    let mut world = world(true);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(30_000);
    // The renewal at 5 s was the last that landed: 5 s + 15 s lease - 1.5 s margin.
    assert_eq!(world.lost(), [(18_500, LostReason::Expired)]);
    assert!(world.handle.authority(world.host.now()).is_none());
    world.store.hangs.set(false);
    world.pass(60_000);
    assert_eq!(world.acquired(), 2);
}

#[test]
fn s10_nobody_competes_while_the_work_of_a_lost_term_goes_on_and_the_status_says_so() {
    let mut world = world(false);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(13_000);
    assert_eq!(world.lost(), [(18_500, LostReason::Expired)]);
    world.store.hangs.set(false);
    let written = world.store.text();
    world.pass(120_000);
    assert_eq!(
        (world.acquired(), world.store.text() == written),
        (1, true),
        "no claim, no renewal"
    );
    let said = |world: &World| {
        let requests = world.handle.requests();
        world.handle.with(|election| status(election, world.host.now(), requests))
    };
    assert!(
        said(&world).contains("its work goes on: this member claims nothing"),
        "{}",
        said(&world)
    );
    let term = world.handle.with(|election| election.record().and_then(|(_, lease)| lease.term));
    world.handle.tell(Input::WorkEnded { term: term.expect("it led") });
    world.pass(100);
    assert_eq!(world.acquired(), 2, "it competes at once when the work has stopped");
    assert!(said(&world).contains("\"error\":null") || !said(&world).contains("goes on"));
}

#[test]
fn s10_a_resignation_that_the_work_ignores_ends_and_the_next_term_waits_for_the_work() {
    let mut world = world(false);
    world.pass(6_000);
    world.handle.tell(Input::Resign);
    world.pass(120_000);
    assert_eq!(world.told.borrow().last().map(|(_, event)| event.clone()), Some(Event::GivenUp));
    assert_eq!((world.acquired(), world.lost().len()), (1, 1));
    let term = world.handle.with(|election| election.record().and_then(|(_, lease)| lease.term));
    world.handle.tell(Input::WorkEnded { term: term.expect("it led") });
    world.pass(100);
    assert_eq!(world.acquired(), 2);
}

#[test]
fn c61_a_hung_request_leaves_room_for_three_attempts() {
    let mut world = world(true);
    world.pass(9_999);
    world.store.hangs.set(true);
    let before = world.handle.requests().write;
    world.pass(1_801);
    world.store.hangs.set(false);
    world.pass(20_000);
    assert!(world.handle.requests().write > before + 2);
    assert_eq!((world.acquired(), world.lost().len()), (1, 0), "one hung renewal costs no term");
}

#[test]
fn c48_a_stop_waits_for_the_work_and_then_writes_the_tombstone() {
    let mut world = world(false);
    world.pass(6_000);
    world.handle.tell(Input::Stop { park: false });
    world.pass(3_000);
    assert_eq!(world.lost(), [(6_000, LostReason::Stopped)]);
    assert!(!world.store.text().contains("0001-01-01"), "the work has not ended");
    let term = world.told.borrow().iter().find_map(|(_, event)| match event {
        Event::Acquired { term } => Some(*term),
        _ => None,
    });
    world.handle.tell(Input::WorkEnded { term: term.expect("it led") });
    world.pass(100);
    assert!(world.store.text().contains("0001-01-01T00:00:00Z"));
    assert_eq!(world.told.borrow().last().map(|(_, event)| event.clone()), Some(Event::GivenUp));
}

#[test]
fn c48_work_that_does_not_end_lets_the_lease_run_out_and_the_stop_ends_all_the_same() {
    let mut world = world(false);
    world.pass(6_000);
    world.handle.tell(Input::Stop { park: false });
    world.pass(20_000);
    assert_eq!(world.told.borrow().last().map(|(_, event)| event.clone()), Some(Event::GivenUp));
    assert!(!world.store.text().contains("0001-01-01"));
}

#[test]
fn c67_a_leader_that_is_cut_off_answers_its_peers_404_from_its_fence_on() {
    let answer = |world: &World| {
        let now = world.host.now();
        world.handle.with(|election| peer::answer(election, now))
    };
    let mut world = world(true);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(11_499);
    // The renewal at 5 s was the last that landed: 5 s + 15 s lease - 1.5 s margin.
    let last = answer(&world);
    assert_eq!(last.status, 200);
    assert!(
        last.body.contains(r#""remainingMs":1,"#) || last.body.ends_with(r#""remainingMs":1}"#)
    );
    world.pass(1);
    assert_eq!(answer(&world), HealthAnswer::not_leading());
    world.pass(30_000);
    assert_eq!(answer(&world).status, 404, "its record names it, and it says so to nobody");
    world.store.hangs.set(false);
    world.pass(60_000);
    assert_eq!(answer(&world).status, 200);
    assert_eq!(world.acquired(), 2);
}

/// A store with something to say beside its answers.
#[derive(Clone)]
struct Complaining(Hanging, Rc<Cell<bool>>);

impl Store for Complaining {
    async fn perform(&self, operation: Operation) -> Answer {
        self.0.perform(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn complaint(&self) -> Option<Fault> {
        self.1.get().then(|| Fault::new(FaultKind::Denied, "nobody cleans up"))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

#[test]
fn what_a_store_complains_of_beside_its_answers_is_in_the_status_as_long_as_it_does() {
    let host = Virtual::default();
    let store = Complaining(Hanging::new(&host), Rc::new(Cell::new(true)));
    block_on(driver::init(&store, &host, &config())).expect("a new group");
    let handle = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let mut pool = LocalPool::new();
    let task = {
        let (host, store, handle) = (host.clone(), store.clone(), handle.clone());
        async move { run(&handle, &store, &host, |_| {}).await }
    };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    let told = || {
        let (now, requests) = (host.now(), handle.requests());
        handle.with(|election| (election.authority(now).is_some(), status(election, now, requests)))
    };
    host.pass(&mut pool, 60_000);
    let (leads, text) = told();
    assert!(leads && text.contains(r#""error":"nobody cleans up""#), "{text}");
    store.1.set(false);
    host.pass(&mut pool, 6_000);
    let (leads, text) = told();
    assert!(leads && text.contains(r#""error":null"#), "{text}");
}

#[test]
fn init_makes_a_group_once() {
    let world = world(true);
    let again = block_on(driver::init(&world.store, &world.host, &config()));
    assert_eq!(again, Err(InitError::Exists));
}

/// Says that it has written, in words that name no version, and has nothing.
struct Forgetting;

impl Store for Forgetting {
    async fn perform(&self, operation: Operation) -> Answer {
        let outcome = match operation {
            Operation::Read { .. } => Outcome::Missing,
            _ => Outcome::Written { version: None },
        };
        Answer { outcome, facts: Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a web page".to_owned()
    }
}

#[test]
fn init_believes_no_success_that_names_no_version_and_shows_no_object() {
    let told = block_on(driver::init(&Forgetting, &Virtual::default(), &config()));
    let Err(InitError::Store(fault)) = told else { panic!("{told:?}") };
    assert_eq!(fault.message, "a web page: says created, and shows no such object");
}
