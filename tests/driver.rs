//! The driver on a host whose time is virtual: what the application is told, and exactly when.

mod backend;
mod electors;
mod heartbeat;
pub mod lead;
mod lock;
mod locker;
mod metrics;
pub mod prelude;
mod proxied_date;
mod questions;
mod ticks;
mod trouble;

use std::pin::pin;
use std::task::Poll;

use edgelect::driver::{Host, InitError};
use edgelect::peer::HealthAnswer;
use edgelect::store::Record;
use edgelect::{driver, peer};
use futures::poll;

use prelude::*;

/// What an elector was told, and when.
#[derive(Clone, Default)]
pub struct Told(Rc<RefCell<Vec<(u64, Event)>>>);

impl Told {
    pub fn note(&self, host: &Virtual) -> impl FnMut(Event) + use<> {
        let (told, host) = (self.clone(), host.clone());
        move |event| told.0.borrow_mut().push((host.now_ms.get(), event))
    }

    /// What these events come to.
    fn of<T>(&self, which: impl Fn(u64, &Event) -> Option<T>) -> Vec<T> {
        self.0.borrow().iter().filter_map(|(at_ms, event)| which(*at_ms, event)).collect()
    }

    fn lost(&self) -> Vec<(u64, LostReason)> {
        self.of(|at_ms, event| match event {
            Event::Lost { reason, .. } => Some((at_ms, *reason)),
            _ => None,
        })
    }

    pub fn reasons(&self) -> Vec<LostReason> {
        self.lost().into_iter().map(|(_, reason)| reason).collect()
    }

    fn acquired(&self) -> usize {
        self.of(|_, event| matches!(event, Event::Acquired { .. }).then_some(())).len()
    }

    fn troubles(&self) -> Vec<Event> {
        let trouble = |event: &Event| matches!(event, Event::Troubled(_) | Event::Solved);
        self.of(|_, event| trouble(event).then(|| event.clone()))
    }
}

/// One elector over a new group.
struct World {
    machine: Machine,
    store: Hanging,
    handle: Handle,
    told: Told,
}

/// The work of its terms ends when they are lost, or when a test says so.
fn world(work_ends_by_itself: bool) -> World {
    let machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let handle = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let told = Told::default();
    let note = told.note(&machine.host);
    if work_ends_by_itself {
        machine.elect(&handle, store.clone(), &machine.host, note);
    } else {
        let (running, wire, host) = (handle.clone(), store.clone(), machine.host.clone());
        machine.run(async move { driver::run(&running, &wire, &host, note).await });
    }
    World { machine, store, handle, told }
}

impl World {
    fn pass(&mut self, ms: u64) {
        self.machine.pass(ms);
    }

    fn gave_up_last(&self) -> bool {
        let ends = |event: &Event| matches!(event, Event::GivenUp | Event::Acquired { .. });
        let told = self.told.of(|_, event| ends(event).then(|| event.clone()));
        told.last() == Some(&Event::GivenUp)
    }

    fn leads(&self) -> bool {
        self.handle.authority(self.machine.host.now()).is_some()
    }

    fn status(&self) -> String {
        status_of(&self.handle, &self.machine.host).to_string()
    }

    fn says_to_peers(&self) -> HealthAnswer {
        let now = self.machine.host.now();
        self.handle.with(|election| peer::answer(election, now, false))
    }
}

#[test]
fn it_leads_at_once_after_init_and_renews_once_per_interval() {
    let mut world = world(true);
    world.pass(60_000);
    assert_eq!((world.told.acquired(), world.told.lost().len()), (1, 0));
    let requests = world.handle.requests();
    assert_eq!((requests.read, requests.write), (1, 13), "one read, the claim, twelve renewals");
    assert!(world.leads());
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
    assert_eq!(
        (world.told.acquired(), world.told.lost().len()),
        (1, 0),
        "one hung renewal costs no term"
    );
    assert_eq!(world.told.troubles(), [], "and is shown to nobody");
    assert!(world.machine.host.shown.borrow().is_empty());
}

#[test]
fn c48_work_that_does_not_end_lets_the_lease_run_out_and_the_stop_ends_all_the_same() {
    let mut world = world(false);
    world.pass(6_000);
    world.handle.tell(Input::Stop { park: false });
    world.pass(20_000);
    assert!(world.gave_up_last() && !world.store.released());
    // Nor does a store that does not answer hold it up.
    let mut world = self::world(true);
    world.pass(6_000);
    world.store.hangs.set(true);
    world.handle.tell(Input::Stop { park: false });
    world.pass(9_000);
    assert!(world.gave_up_last() && !world.store.released());
}

#[test]
fn c05_c67_a_leader_that_is_cut_off_ends_at_its_fence_and_answers_its_peers_404_from_there_on() {
    let mut world = world(true);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(11_499);
    // The renewal at 5 s was the last that landed: 5 s + 15 s lease - 1.5 s margin.
    let last = world.says_to_peers();
    assert_eq!(last.status, 200);
    assert!(last.body.replace('}', ",").contains(r#""remainingMs":1,"#), "{}", last.body);
    world.pass(1);
    assert_eq!(world.says_to_peers(), HealthAnswer::not_leading(None));
    world.pass(30_000);
    assert_eq!(world.told.lost(), [(18_500, LostReason::Expired)]);
    assert_eq!(world.says_to_peers().status, 404, "its record names it, and it says so to nobody");
    world.store.hangs.set(false);
    world.pass(60_000);
    assert_eq!((world.says_to_peers().status, world.told.acquired()), (200, 2));
}

#[test]
fn what_a_store_complains_of_beside_its_answers_is_in_the_status_as_long_as_it_does() {
    let mut world = world(true);
    for (ms, complains, error) in [(60_000, true, "\"nobody cleans up\""), (6_000, false, "null")] {
        world.store.complains.set(complains);
        world.pass(ms);
        let status = world.status();
        assert!(world.leads() && status.contains(&format!("\"error\":{error}")), "{status}");
    }
}

#[test]
fn init_makes_a_group_once() {
    let world = world(true);
    let again = block_on(driver::init(&world.store, &world.machine.host, &config()));
    assert_eq!(again, Err(InitError::Exists));
}

fn init_over(store: impl Store) -> Result<(), InitError> {
    let (host, config) = (Virtual::default(), config());
    let mut init = pin!(driver::init(&store, &host, &config));
    block_on(async {
        loop {
            if let Poll::Ready(told) = poll!(&mut init) {
                return told;
            }
            host.now_ms.set(host.now_ms.get() + 100);
        }
    })
}

/// A store that treats the writes of an `init` in these ways, one after the other, and then as any; and what is left in it.
fn init_meets(ways: &[Way]) -> (Result<(), InitError>, Option<Lease>) {
    let memory = Memory::new(|| EPOCH_MS);
    let ways = RefCell::new(ways.to_vec());
    let beneath = memory.clone();
    let told = init_over(Through(async |operation| {
        let writes = matches!(operation, Operation::Write { .. });
        let way = Some(()).filter(|()| writes).and_then(|()| ways.borrow_mut().pop());
        match way {
            None => beneath.perform(operation).await,
            Some(Way::Refuses) => undated(Outcome::Refused),
            Some(Way::Busy) => undated(unknown()),
            Some(Way::Unheard) => {
                beneath.perform(operation).await;
                undated(unknown())
            }
        }
    }));
    let left = block_on(memory.perform(Operation::Read { unless: None })).outcome;
    let left = match left {
        Outcome::Found { reading: Reading::Lease(lease), .. } => Some(*lease),
        _ => None,
    };
    (told, left)
}

#[derive(Clone, Copy)]
enum Way {
    Refuses,
    Busy,
    Unheard,
}

fn unknown() -> Outcome {
    let cause = Fault::new(FaultKind::Timeout, "no answer");
    Outcome::Unknown { retry_after_ms: None, cause }
}

#[test]
fn init_has_told_the_truth_whatever_became_of_its_two_writes() {
    for ways in [
        &[][..],
        &[Way::Busy],
        &[Way::Unheard],
        &[Way::Refuses, Way::Busy],
        &[Way::Unheard, Way::Unheard],
        &[Way::Unheard, Way::Busy, Way::Refuses],
        &[Way::Busy; 20],
    ] {
        let (told, left) = init_meets(ways);
        let starts = left.is_some_and(|lease| lease.released() && !lease.is_creation());
        assert_eq!(told.is_ok(), starts, "{told:?}");
        assert_eq!(starts, ways.len() < 20);
    }
}

#[test]
fn init_that_a_slow_store_keeps_from_writing_says_so() {
    let (host, config) = (Virtual::default(), Config { leader_timeout_ms: 1_000, ..config() });
    let slow = Through(async |operation| {
        assert!(matches!(operation, Operation::Read { .. }), "the operator's word is of before");
        host.sleep(1_500).await;
        undated(Outcome::Missing)
    });
    let mut init = pin!(driver::init(&slow, &host, &config));
    let told = block_on(async {
        loop {
            if let Poll::Ready(told) = poll!(&mut init) {
                return told;
            }
            host.now_ms.set(host.now_ms.get() + 100);
        }
    });
    let Err(InitError::Store(fault)) = told else { panic!("{told:?}") };
    assert!(fault.message.ends_with("nothing was written; run `init` again"), "{fault}");
}

#[test]
fn init_completes_what_another_has_left() {
    let memory = Memory::new(|| EPOCH_MS);
    let made = r#"{"leaderID":"i","lastUpdated":"0001-01-01T00:00:00Z","term":5,"session":"i","sequence":1,"leaseMs":15000}"#;
    let record = Record::Raw(made.into());
    block_on(memory.perform(Operation::Write { record, condition: Condition::Absent }));
    assert_eq!(init_over(memory.clone()), Ok(()));
    assert_eq!(init_over(memory), Err(InitError::Exists));
}

#[test]
fn init_over_something_that_is_no_record_says_what_is_there() {
    let later = r#"{"leaderID":"a","format":9}"#;
    let other = r#"{"holderIdentity":"a","leaseDurationSeconds":15}"#;
    for (body, said) in [
        ("hello", "the lease object is not a JSON object"),
        (other, "the lease object has another format"),
        (later, "wrote the lease object (format 9)"),
    ] {
        let shows = || Outcome::Found {
            version: Version("v".to_owned()),
            reading: lease::read(body.as_bytes()),
        };
        let already = init_over(Through(async |operation| match operation {
            Operation::Read { .. } => undated(shows()),
            _ => panic!("nothing is written over it"),
        }));
        // Somebody puts it there between the read and the write.
        let written = Cell::new(false);
        let meanwhile = init_over(Through(async |operation| match operation {
            Operation::Read { .. } if written.get() => undated(shows()),
            Operation::Read { .. } => undated(Outcome::Missing),
            _ => {
                written.set(true);
                undated(Outcome::Refused)
            }
        }));
        for told in [already, meanwhile] {
            let Err(InitError::Store(fault)) = told else { panic!("{body}: {told:?}") };
            assert!(fault.message.contains(said), "{body}: {fault}");
            assert!(fault.message.starts_with("the store: "), "{body}: {fault}");
        }
    }
}

#[test]
fn init_believes_no_success_that_names_no_version_and_shows_no_object() {
    let forgets = Through(async |operation| match operation {
        Operation::Read { .. } => undated(Outcome::Missing),
        _ => undated(Outcome::Written { version: None }),
    });
    let told = init_over(forgets);
    let Err(InitError::Store(fault)) = told else { panic!("{told:?}") };
    assert_eq!(fault.message, "the store: says created, and shows no such object");
}

#[test]
fn a_member_without_a_name_goes_by_a_uuid() {
    let host = Virtual::default().seeded(7);
    let election = new_election(&host, config_of(Settings::default())).expect("it has chance");
    assert_eq!(election.server_id(), election.session());
    let id = election.session();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    assert_eq!(id.replace(hex, "x"), "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "{id}");
    assert!(id[14..].starts_with('4') && "89ab".contains(&id[19..20]), "{id}");
}
