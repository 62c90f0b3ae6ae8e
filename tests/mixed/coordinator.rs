//! A stand-in for a member of shardcoordinator, written from its document: its ticks and its state, over either of its locks.
//! Other makes that take, renew and release so are this over a lock of their own.

use crate::driver::prelude::*;
use crate::mixed::world::World;

/// Where it takes its lock, and how.
pub trait Lock: Clone + 'static {
    /// `TryAcquire`, or `Renew` for whoever leads, by its own wall clock: until what time it is held then, if it is. An
    /// error is as good as a refusal.
    async fn take(&self, id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64>;

    async fn release(&self, id: &str);
}

/// Clones are the same member.
#[derive(Clone)]
pub struct Coordinator<L> {
    pub id: String,
    pub lock: L,
    /// Its wall clock may be off.
    pub host: Virtual,
    /// `LeaseDuration` and `RenewPeriod`.
    pub lease_ms: u64,
    pub renew_ms: u64,
    /// Whether its period is from the end of a tick on, not from tick to tick.
    pub from_end: bool,
    /// Whether it acts by `IsLeader()` alone.
    pub by_state: bool,
    /// How long after it has acquired it begins to act.
    pub grace_ms: u64,
    pub acts_from_ms: Rc<Cell<u64>>,
    /// The coordinator's state: until when it leads by its own wall clock, if its last call has succeeded.
    pub until_ms: Rc<Cell<Option<u64>>>,
    /// It does nothing while this is set: a pause.
    pub stands_still: Rc<Cell<bool>>,
    pub stops: Rc<Cell<bool>>,
    pub acquired: Rc<Cell<u32>>,
}

impl<L: Lock> Coordinator<L> {
    pub fn new(id: &str, lock: L, host: Virtual, lease_ms: u64, renew_ms: u64) -> Self {
        Self {
            id: id.to_owned(),
            lock,
            host,
            lease_ms,
            renew_ms,
            from_end: false,
            by_state: false,
            grace_ms: 0,
            acts_from_ms: Rc::default(),
            until_ms: Rc::default(),
            stands_still: Rc::default(),
            stops: Rc::default(),
            acquired: Rc::default(),
        }
    }

    /// `IsLeader()`, within what its last call came to by its own clock: who asks `IsLeader()` alone is no more than that
    /// where calls end in time.
    pub fn leads(&self) -> bool {
        let until_ms = self.until_ms.get();
        let acts = self.host.now_ms.get() >= self.acts_from_ms.get();
        acts && until_ms.is_some_and(|until_ms| self.by_state || self.host.wall_ms() < until_ms)
    }

    /// The ticker of `RenewPeriod`: of the ticks that a slow call has missed, one is made up for.
    async fn run(self) {
        let mut due_ms = self.host.now_ms.get();
        loop {
            if self.stops.take() {
                self.crash();
                self.lock.release(&self.id).await;
            } else if !self.stands_still.get() {
                self.tick().await;
            }
            let now_ms = self.host.now_ms.get();
            if self.from_end {
                due_ms = now_ms + self.renew_ms;
            } else if let Some(late_ms) = now_ms.checked_sub(due_ms) {
                due_ms += (late_ms / self.renew_ms).max(1) * self.renew_ms;
            }
            self.host.sleep_until_or(due_ms, &self.stops).await;
        }
    }

    pub async fn tick(&self) {
        let leads = self.until_ms.get().is_some();
        let until_ms = self.lock.take(&self.id, leads, self.lease_ms, &self.host).await;
        if self.stands_still.get() {
            return;
        }
        if until_ms.is_some() && !leads {
            self.acquired.set(self.acquired.get() + 1);
            self.acts_from_ms.set(self.host.now_ms.get() + self.grace_ms);
        }
        self.until_ms.set(until_ms);
    }

    /// Its process is gone, and with it whatever it believed.
    pub fn crash(&self) {
        self.stands_still.set(true);
        self.until_ms.set(None);
    }

    /// `Stop()`: it releases, and there are no more ticks.
    pub fn stop(&self) {
        self.crash();
        self.stops.set(true);
    }
}

impl<P> World<P> {
    pub fn coordinate<L: Lock>(&self, one: Coordinator<L>) -> Coordinator<L> {
        let seen = one.clone();
        self.admit(&one.id, false, move || seen.leads(), one.clone().run());
        one
    }
}
