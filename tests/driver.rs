//! The driver on a host whose time is virtual: what the application is told, and exactly when.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use edgelect::clock::Now;
use edgelect::driver::{self, Host, InitError};
use edgelect::election::{Election, Event, Input, LostReason};
use edgelect::fetch::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Operation, Store};
use edgelect::{Config, Handle, Settings, run};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;

#[derive(Clone, Default)]
struct Virtual {
    now_ms: Rc<Cell<u64>>,
    timers: Rc<RefCell<Vec<(u64, Waker)>>>,
}

struct Sleep {
    host: Virtual,
    due_ms: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.host.now_ms.get() >= self.due_ms {
            return Poll::Ready(());
        }
        self.host.timers.borrow_mut().push((self.due_ms, context.waker().clone()));
        Poll::Pending
    }
}

impl Host for Virtual {
    fn now(&self) -> Now {
        Now::new(self.now_ms.get(), 1_795_000_000_000 + self.now_ms.get())
    }

    async fn sleep(&self, ms: u64) {
        Sleep { host: self.clone(), due_ms: self.now_ms.get() + ms }.await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        Ok([7; 16])
    }

    async fn fetch(&self, _request: Request, _limit: usize) -> Result<Response, String> {
        Err("there is no network here".to_owned())
    }
}

/// A store that can be made to hang: no answer, and nothing happens.
#[derive(Clone)]
struct Hanging {
    memory: Memory,
    hangs: Rc<Cell<bool>>,
}

impl Store for Hanging {
    async fn perform(&self, operation: Operation) -> Answer {
        if self.hangs.get() {
            return std::future::pending().await;
        }
        self.memory.perform(operation).await
    }

    fn describe(&self) -> String {
        "a store that can hang".to_owned()
    }
}

struct World {
    host: Virtual,
    store: Hanging,
    handle: Handle,
    told: Rc<RefCell<Vec<(u64, Event)>>>,
    pool: LocalPool,
}

fn config() -> Config {
    let lockfile_path = Some("leader/test.json".to_owned());
    Config::new(&Settings { lockfile_path, ..Settings::default() }).expect("the defaults are fine")
}

/// One elector over a new group, driven until `work_ends` decides when its work stops.
fn world(work_ends_by_itself: bool) -> World {
    let host = Virtual::default();
    let memory = Memory::new({
        let host = host.clone();
        move || host.now().wall_ms
    });
    let store = Hanging { memory, hangs: Rc::default() };
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
    /// Lets virtual time pass, from timer to timer.
    fn pass(&mut self, ms: u64) {
        let end_ms = self.host.now_ms.get() + ms;
        loop {
            self.pool.run_until_stalled();
            let next_ms = self.host.timers.borrow().iter().map(|(due_ms, _)| *due_ms).min();
            let Some(next_ms) = next_ms.filter(|due_ms| *due_ms <= end_ms) else { break };
            self.host.now_ms.set(next_ms.max(self.host.now_ms.get()));
            let timers = std::mem::take(&mut *self.host.timers.borrow_mut());
            for (due_ms, waker) in timers {
                if due_ms <= next_ms {
                    waker.wake();
                } else {
                    self.host.timers.borrow_mut().push((due_ms, waker));
                }
            }
        }
        self.host.now_ms.set(end_ms);
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
    let body = |world: &World| {
        String::from_utf8(world.store.memory.body().expect("there is a record")).expect("text")
    };
    assert!(!body(&world).contains("0001-01-01"), "the work has not ended");
    let term = world.told.borrow().iter().find_map(|(_, event)| match event {
        Event::Acquired { term } => Some(*term),
        _ => None,
    });
    world.handle.tell(Input::WorkEnded { term: term.expect("it led") });
    world.pass(100);
    assert!(body(&world).contains("0001-01-01T00:00:00Z"));
    assert_eq!(world.told.borrow().last().map(|(_, event)| event.clone()), Some(Event::GivenUp));
}

#[test]
fn c48_work_that_does_not_end_lets_the_lease_run_out_and_the_stop_ends_all_the_same() {
    let mut world = world(false);
    world.pass(6_000);
    world.handle.tell(Input::Stop { park: false });
    world.pass(20_000);
    assert_eq!(world.told.borrow().last().map(|(_, event)| event.clone()), Some(Event::GivenUp));
    let body = world.store.memory.body().expect("there is a record");
    assert!(!String::from_utf8(body).expect("text").contains("0001-01-01"));
}

#[test]
fn init_makes_a_group_once() {
    let world = world(true);
    let again = block_on(driver::init(&world.store, &world.host, &config()));
    assert_eq!(again, Err(InitError::Exists));
}
