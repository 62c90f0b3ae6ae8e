//! A stand-in for a member of shardcoordinator, written from its document: its three calls, its state, its ticks.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::Host;
use serde_json::json;

use crate::table::{Item, Table};
use crate::virtual_time::Virtual;

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
            acquired: Rc::default(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.table.true_ms().saturating_add_signed(self.ahead_ms.get())
    }

    fn now_s(&self) -> u64 {
        self.now_ms() / 1_000
    }

    /// `IsLeader()`, as far as its clock rules bear it: its `ttl` has not passed by its own clock.
    pub fn leads(&self) -> bool {
        self.leads.get() && self.now_s() <= self.until_s.get()
    }

    /// The ticker of `RenewPeriod`.
    pub async fn run(self, host: Virtual) {
        loop {
            self.tick();
            host.sleep(self.renew_ms).await;
        }
    }

    pub fn tick(&self) {
        if self.stands_still.get() {
            return;
        }
        let ttl_s = (self.now_ms() + self.lease_ms) / 1_000;
        let held = if self.leads.get() { self.renew(ttl_s) } else { self.try_acquire(ttl_s) };
        if held {
            self.until_s.set(ttl_s);
        }
        if held && !self.leads.get() {
            self.acquired.set(self.acquired.get() + 1);
        }
        self.leads.set(held);
    }

    /// PutItem with `attribute_not_exists(pk) OR (attribute_exists(pk) AND #t < :now)`.
    fn try_acquire(&self, ttl_s: u64) -> bool {
        let held_s = self.table.ttl_s();
        if self.table.item.borrow().is_some() && held_s.is_none_or(|held_s| held_s >= self.now_s())
        {
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
    fn renew(&self, ttl_s: u64) -> bool {
        let mine = self.table.text("ownerId").as_ref() == Some(&self.id);
        if !mine || self.table.ttl_s().is_none_or(|held_s| held_s < self.now_s()) {
            return false;
        }
        let mut item = self.table.item.borrow_mut();
        let item = item.as_mut().expect("it has an owner");
        item.insert("ttl".to_owned(), json!({ "N": ttl_s.to_string() }));
        true
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
