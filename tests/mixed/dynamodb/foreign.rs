//! A stand-in for a member of shardcoordinator, written from its document: its three calls, its state, its ticks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::Host;
use serde_json::json;

use super::table::{Item, Table};
use worlds::virtual_time::Virtual;

/// What becomes of a request: at once, unless said otherwise.
#[derive(Clone, Copy, Default)]
pub struct Travel {
    pub there_ms: u64,
    pub back_ms: u64,
    /// It does not arrive, or its answer does not.
    pub lost: Option<Lost>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    Request,
    Answer,
}

/// Draws what becomes of the next request.
type Travels = Rc<RefCell<Box<dyn FnMut() -> Travel>>>;

/// Clones are the same member.
#[derive(Clone)]
pub struct Foreign {
    pub id: String,
    table: Table,
    /// `LeaseDuration`.
    lease_ms: u64,
    /// `RenewPeriod`.
    renew_ms: u64,
    /// How far its wall clock is ahead.
    pub ahead_ms: Rc<Cell<i64>>,
    /// The coordinator's state.
    leads: Rc<Cell<bool>>,
    /// The `ttl` of its last success.
    until_s: Rc<Cell<u64>>,
    /// It does nothing while this is set: a crash, or a pause.
    pub stands_still: Rc<Cell<bool>>,
    travels: Travels,
    /// When its client gives a request up.
    timeout_ms: u64,
    /// Whether it acts by `IsLeader()` alone.
    by_state: bool,
    /// How often it acquired.
    pub acquired: Rc<Cell<u32>>,
}

impl Foreign {
    pub fn new(id: &str, table: &Table, lease_ms: u64, renew_ms: u64) -> Self {
        Self {
            id: id.to_owned(),
            table: table.clone(),
            lease_ms,
            renew_ms,
            ahead_ms: Rc::default(),
            leads: Rc::default(),
            until_s: Rc::default(),
            stands_still: Rc::default(),
            travels: Rc::new(RefCell::new(Box::new(Travel::default))),
            timeout_ms: 5_000,
            by_state: false,
            acquired: Rc::default(),
        }
    }

    /// Over a network, with a client that gives up after so long.
    pub fn over(self, timeout_ms: u64, travels: impl FnMut() -> Travel + 'static) -> Self {
        Self { timeout_ms, travels: Rc::new(RefCell::new(Box::new(travels))), ..self }
    }

    /// It acts by `IsLeader()` alone.
    pub fn by_state(self) -> Self {
        Self { by_state: true, ..self }
    }

    fn now_ms(&self) -> u64 {
        self.table.true_ms().saturating_add_signed(self.ahead_ms.get())
    }

    fn now_s(&self) -> u64 {
        self.now_ms() / 1_000
    }

    /// `IsLeader()`, what its last call came to, within its `ttl` by its own clock, as far as its clock rules bear it: who
    /// asks `IsLeader()` alone is no more than that where calls end in time.
    pub fn leads(&self) -> bool {
        self.leads.get() && (self.by_state || self.now_s() <= self.until_s.get())
    }

    /// The ticker of `RenewPeriod`: of the ticks that a slow call has missed, one is made up for.
    pub async fn run(self, host: Virtual) {
        let mut due_ms = host.now().mono_ms;
        loop {
            if !self.stands_still.get() {
                let (now_s, ttl_s) = (self.now_s(), (self.now_ms() + self.lease_ms) / 1_000);
                let held = self.call(&host, now_s, ttl_s).await;
                if !self.stands_still.get() {
                    self.set(held, ttl_s);
                }
            }
            let now_ms = host.now().mono_ms;
            let missed = (now_ms - due_ms) / self.renew_ms;
            due_ms += missed.max(1) * self.renew_ms;
            host.sleep(due_ms.saturating_sub(now_ms)).await;
        }
    }

    /// One call of its locker; an error is as good as a refusal to it.
    async fn call(&self, host: &Virtual, now_s: u64, ttl_s: u64) -> bool {
        let Travel { there_ms, back_ms, lost } = (self.travels.borrow_mut())();
        let until_ms = host.now().mono_ms + self.timeout_ms;
        let left_ms = || until_ms - host.now().mono_ms;
        host.sleep(there_ms.min(left_ms())).await;
        if lost == Some(Lost::Request) || left_ms() == 0 {
            host.sleep(left_ms()).await;
            return false;
        }
        let held = self.ask(now_s, ttl_s);
        let heard = lost.is_none() && back_ms < left_ms();
        host.sleep(if heard { back_ms } else { left_ms() }).await;
        held && heard
    }

    pub fn tick(&self) {
        if self.stands_still.get() {
            return;
        }
        let ttl_s = (self.now_ms() + self.lease_ms) / 1_000;
        self.set(self.ask(self.now_s(), ttl_s), ttl_s);
    }

    fn ask(&self, now_s: u64, ttl_s: u64) -> bool {
        if self.leads.get() { self.renew(now_s, ttl_s) } else { self.try_acquire(now_s, ttl_s) }
    }

    fn set(&self, held: bool, ttl_s: u64) {
        if held {
            self.until_s.set(ttl_s);
        }
        if held && !self.leads.get() {
            self.acquired.set(self.acquired.get() + 1);
        }
        self.leads.set(held);
    }

    /// PutItem with `attribute_not_exists(pk) OR (attribute_exists(pk) AND #t < :now)`.
    fn try_acquire(&self, now_s: u64, ttl_s: u64) -> bool {
        let held_s = self.table.ttl_s();
        if self.table.item.borrow().is_some() && held_s.is_none_or(|held_s| held_s >= now_s) {
            return false;
        }
        let item = json!({
            "pk": { "S": "SHARD#jobs" }, "sk": { "S": "LOCK" },
            "ownerId": { "S": self.id }, "ttl": { "N": ttl_s.to_string() },
        });
        let item: Item = item.as_object().expect("an object").clone();
        *self.table.item.borrow_mut() = Some(item);
        true
    }

    /// UpdateItem with `ownerId = :me AND #t >= :now`.
    fn renew(&self, now_s: u64, ttl_s: u64) -> bool {
        let mine = self.table.text("ownerId").as_ref() == Some(&self.id);
        if !mine || self.table.ttl_s().is_none_or(|held_s| held_s < now_s) {
            return false;
        }
        let mut item = self.table.item.borrow_mut();
        let item = item.as_mut().expect("it has an owner");
        item.insert("ttl".to_owned(), json!({ "N": ttl_s.to_string() }));
        true
    }

    /// Its process is gone, and with it whatever it believed.
    pub fn crash(&self) {
        self.stands_still.set(true);
        self.leads.set(false);
    }

    /// `Stop()`: DeleteItem with `ownerId = :me`, and no more ticks.
    pub fn stop(&self) {
        self.stands_still.set(true);
        let leads = self.leads.replace(false);
        if leads && self.table.text("ownerId").as_ref() == Some(&self.id) {
            *self.table.item.borrow_mut() = None;
        }
    }
}
