//! A host whose time is virtual, what runs on it, and a store that can be made to hang.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use edgelect::clock::Now;
use edgelect::election::{Event, Input};
use edgelect::request::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use edgelect::{Config, Handle, Host, Settings, driver};
use futures::executor::{LocalPool, LocalSpawner, block_on};
use futures::future::{AbortHandle, Either, FutureExt, LocalBoxFuture, abortable, select};
use futures::task::LocalSpawnExt;

use crate::sim::chance::Chance;

/// What the wall clock shows when the monotonic one shows 0.
pub const EPOCH_MS: u64 = 1_795_000_000_000;

/// What answers a host's requests.
type Network = Rc<dyn Fn(Request) -> LocalBoxFuture<'static, Result<Response, String>>>;

/// The host. Clones share their time.
#[derive(Clone, Default)]
pub struct Virtual {
    /// The monotonic clock.
    pub now_ms: Rc<Cell<u64>>,
    /// How far the wall clock was set forward.
    pub stepped_ms: Rc<Cell<u64>>,
    /// Whether its readings are those of a single clock that stands still.
    pub held: Rc<Cell<bool>>,
    /// The wall clock is set 20 s forward at the reading of this number from now; 0 for never.
    pub steps_at: Rc<Cell<u32>>,
    /// How far this clone's wall clock is ahead of the others'.
    ahead_ms: i64,
    /// This clone's randomness is this and no other.
    seed: u8,
    /// Pauses of at least this never end, and shorter ones take no time; 0 for pauses that take theirs.
    never_ms: u64,
    /// What the operator was shown, and when.
    pub shown: Rc<RefCell<Vec<(u64, String)>>>,
    /// Without one its randomness is always the same.
    chance: Option<Rc<RefCell<Chance>>>,
    network: Option<Network>,
    timers: Rc<RefCell<Vec<(u64, Waker)>>>,
}

impl Host for Virtual {
    fn now(&self) -> Now {
        let readings = self.steps_at.get();
        self.steps_at.set(readings.saturating_sub(1));
        if readings == 1 {
            self.stepped_ms.set(self.stepped_ms.get() + 20_000);
        }
        Now { held: self.held.get(), ..Now::new(self.now_ms.get(), self.wall_ms()) }
    }

    async fn sleep(&self, ms: u64) {
        match self.never_ms {
            0 => {}
            never_ms if ms >= never_ms => std::future::pending().await,
            _ => return,
        }
        let due_ms = self.now_ms.get() + ms;
        poll_fn(|context| {
            if self.now_ms.get() >= due_ms {
                return Poll::Ready(());
            }
            self.timers.borrow_mut().push((due_ms, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let Some(chance) = &self.chance else { return Ok([self.seed; 16]) };
        let next = || chance.borrow_mut().next().to_le_bytes();
        Ok([next(), next()].concat().try_into().expect("sixteen bytes"))
    }

    async fn fetch(&self, request: Request, _limit: usize) -> Result<Response, String> {
        match &self.network {
            Some(network) => network(request).await,
            None => Err("there is no network here".to_owned()),
        }
    }

    fn warn(&self, line: &str) {
        self.shown.borrow_mut().push((self.now_ms.get(), line.to_owned()));
    }
}

impl Virtual {
    /// What the wall clock shows; nobody counts this as a reading.
    pub fn wall_ms(&self) -> u64 {
        let ms = EPOCH_MS + self.now_ms.get() + self.stepped_ms.get();
        ms.saturating_add_signed(self.ahead_ms)
    }

    /// The same time by a wall clock that is ahead, or behind by a negative number.
    pub fn ahead(&self, ms: i64) -> Self {
        Self { ahead_ms: ms, ..self.clone() }
    }

    /// The same time with other randomness.
    pub fn seeded(&self, seed: u8) -> Self {
        Self { seed, ..self.clone() }
    }

    /// The same time without any: pauses of at least this never end, and shorter ones take no time.
    pub fn hasty(&self, never_ms: u64) -> Self {
        Self { never_ms, ..self.clone() }
    }

    /// The same time on a host whose randomness is drawn.
    pub fn drawing(&self, chance: &Rc<RefCell<Chance>>) -> Self {
        Self { chance: Some(Rc::clone(chance)), ..self.clone() }
    }

    /// The same time on a host whose requests are answered by this.
    pub fn asking<F>(&self, fetch: impl Fn(Request) -> F + 'static) -> Self
    where
        F: Future<Output = Result<Response, String>> + 'static,
    {
        let network: Network = Rc::new(move |request| fetch(request).boxed_local());
        Self { network: Some(network), ..self.clone() }
    }

    /// What this comes to within so long.
    pub async fn within<T>(&self, ms: u64, task: impl Future<Output = T>) -> Option<T> {
        match select(pin!(task), pin!(self.sleep(ms))).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    /// Waits until then, or until this is set.
    pub async fn sleep_until_or(&self, due_ms: u64, set: &Cell<bool>) {
        while self.now_ms.get() < due_ms && !set.get() {
            self.sleep((due_ms - self.now_ms.get()).min(100)).await;
        }
    }

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

/// A host, and the tasks that run on it.
#[derive(Default)]
pub struct Machine {
    pub host: Virtual,
    pool: LocalPool,
}

impl Machine {
    /// Begins a task; the handle ends it without any notice.
    pub fn run(&self, task: impl Future<Output = ()> + 'static) -> AbortHandle {
        let (task, end) = abortable(task);
        self.pool.spawner().spawn_local(task.map(|_| ())).expect("the pool is alive");
        end
    }

    /// Where tasks begin others.
    pub fn tasks(&self) -> LocalSpawner {
        self.pool.spawner()
    }

    /// Runs an elector whose work stops as soon as its term is lost; `note` hears each event.
    pub fn elect<H: Host + Clone + 'static>(
        &self,
        handle: &Handle,
        store: impl Store + 'static,
        host: &H,
        mut note: impl FnMut(Event) + 'static,
    ) -> AbortHandle {
        let (running, host) = (handle.clone(), host.clone());
        self.run(async move {
            let tell = |event| {
                if let Event::Lost { term, .. } = event {
                    running.tell(Input::WorkEnded { term });
                }
                note(event);
            };
            driver::run(&running, &store, &host, tell).await;
        })
    }

    /// Lets virtual time pass.
    pub fn pass(&mut self, ms: u64) {
        self.host.pass(&mut self.pool, ms);
    }

    /// Lets virtual time pass until the monotonic clock shows this.
    pub fn at(&mut self, ms: u64) {
        self.pass(ms.checked_sub(self.host.now_ms.get()).expect("time does not go back"));
    }
}

/// A store that can be made to hang: no answer, and nothing happens.
#[derive(Clone)]
pub struct Hanging {
    /// What it keeps.
    pub memory: Memory,
    /// Whether it hangs now.
    pub hangs: Rc<Cell<bool>>,
    /// Whether it complains beside its answers.
    pub complains: Rc<Cell<bool>>,
}

impl Hanging {
    /// An empty store by this host's wall clock.
    pub fn new(host: &Virtual) -> Self {
        let host = host.clone();
        let memory = Memory::new(move || host.wall_ms());
        Self { memory, hangs: Rc::default(), complains: Rc::default() }
    }

    /// The store of a group that was just made.
    pub fn with_group(host: &Virtual) -> Self {
        let store = Self::new(host);
        block_on(driver::init(&store, host, &config())).expect("a new group");
        store
    }

    /// The record as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.memory.body().expect("there is a record")).expect("text")
    }

    /// Whether the record is a tombstone.
    pub fn released(&self) -> bool {
        self.text().contains("0001-01-01T00:00:00Z")
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

    fn complaint(&self) -> Option<Fault> {
        self.complains.get().then(|| Fault::new(FaultKind::Denied, "nobody cleans up"))
    }

    fn describe(&self) -> String {
        "a store that can hang".to_owned()
    }
}

/// A store that answers as this says.
pub struct Through<F>(pub F);

impl<F: AsyncFn(Operation) -> Answer> Store for Through<F> {
    async fn perform(&self, operation: Operation) -> Answer {
        (self.0)(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "the store".to_owned()
    }
}

/// An answer that says nothing of time.
pub fn undated(outcome: Outcome) -> Answer {
    Answer { outcome, facts: Facts::default() }
}

/// The defaults.
pub fn config() -> Config {
    config_of(Settings::default())
}

/// These settings, and the defaults for what they leave open.
pub fn config_of(settings: Settings) -> Config {
    let lockfile_path = Some("leader/test.json".to_owned());
    let settings = Settings { lockfile_path, ..settings };
    Config::new(&settings).expect("the settings keep every rule")
}
