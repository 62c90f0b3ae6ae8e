//! A host whose time is virtual, and a store that can be made to hang.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use edgelect::clock::Now;
use edgelect::request::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Operation, Store};
use edgelect::{Config, Host, Settings};
use futures::executor::LocalPool;

/// The host. Clones share their time.
#[derive(Clone, Default)]
pub struct Virtual {
    /// The monotonic clock.
    pub now_ms: Rc<Cell<u64>>,
    /// How far the wall clock was set forward.
    pub stepped_ms: Rc<Cell<u64>>,
    /// Whether its readings are those of a single clock that stands still.
    pub held: Rc<Cell<bool>>,
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
        let now_ms = self.now_ms.get();
        let now = Now::new(now_ms, 1_795_000_000_000 + now_ms + self.stepped_ms.get());
        Now { held: self.held.get(), ..now }
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
pub struct Hanging {
    /// What it keeps.
    pub memory: Memory,
    /// Whether it hangs now.
    pub hangs: Rc<Cell<bool>>,
}

impl Hanging {
    /// An empty store by this host's wall clock.
    pub fn new(host: &Virtual) -> Self {
        let host = host.clone();
        Self { memory: Memory::new(move || host.now().wall_ms), hangs: Rc::default() }
    }

    /// The record as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.memory.body().expect("there is a record")).expect("text")
    }
}

impl Store for Hanging {
    async fn perform(&self, operation: Operation) -> Answer {
        if self.hangs.get() {
            return std::future::pending().await;
        }
        self.memory.perform(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store that can hang".to_owned()
    }
}

impl Virtual {
    /// Lets virtual time pass, from timer to timer.
    pub fn pass(&self, pool: &mut LocalPool, ms: u64) {
        let end_ms = self.now_ms.get() + ms;
        loop {
            pool.run_until_stalled();
            let next_ms = self.timers.borrow().iter().map(|(due_ms, _)| *due_ms).min();
            let Some(next_ms) = next_ms.filter(|due_ms| *due_ms <= end_ms) else { break };
            self.now_ms.set(next_ms.max(self.now_ms.get()));
            let timers = std::mem::take(&mut *self.timers.borrow_mut());
            for (due_ms, waker) in timers {
                if due_ms <= next_ms {
                    waker.wake();
                } else {
                    self.timers.borrow_mut().push((due_ms, waker));
                }
            }
        }
        self.now_ms.set(end_ms);
    }
}

/// The defaults.
pub fn config() -> Config {
    let lockfile_path = Some("leader/test.json".to_owned());
    Config::new(&Settings { lockfile_path, ..Settings::default() }).expect("the defaults are fine")
}
