//! The pending timers of a host, by which a single clock gives itself away (S11): held at the due time of the
//! earliest one until that has fired, or stepped back when one fires before its time.

use std::cell::RefCell;
use std::rc::Rc;

use crate::clock::Now;
use crate::config::HostClock;

/// What a timer's own rounding may take off, in milliseconds.
const ROUNDING_MS: u64 = 2;

/// The timers of one host. Clones share them.
#[derive(Clone)]
pub struct Timers {
    clock: HostClock,
    pending: Rc<RefCell<Pending>>,
}

#[derive(Default)]
struct Pending {
    due_ms: Vec<u64>,
    early: u32,
}

impl Timers {
    /// No timer is pending yet.
    pub fn new(clock: HostClock) -> Self {
        Self { clock, pending: Rc::default() }
    }

    /// What clocks the host has.
    pub fn clock(&self) -> HostClock {
        self.clock
    }

    /// A reading of the clocks, and what the timers say about it.
    pub fn now(&self, mono_ms: u64, wall_ms: u64) -> Now {
        let pending = self.pending.borrow();
        let due_ms = pending.due_ms.iter().min().copied();
        let held = self.clock == HostClock::One && due_ms == Some(mono_ms);
        Now { mono_ms, wall_ms, held, early_timers: pending.early }
    }

    /// A timer was set; it is pending until it has fired or this is dropped.
    pub fn set(&self, due_ms: u64) -> Due {
        self.pending.borrow_mut().due_ms.push(due_ms);
        Due { timers: self.clone(), due_ms }
    }
}

/// When a pending timer is due.
pub struct Due {
    timers: Timers,
    due_ms: u64,
}

impl Due {
    /// It has fired, and the monotonic clock gives this.
    pub fn fired(self, mono_ms: u64) {
        let early = mono_ms + ROUNDING_MS < self.due_ms;
        if early && self.timers.clock == HostClock::One {
            self.timers.pending.borrow_mut().early += 1;
        }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        let mut pending = self.timers.pending.borrow_mut();
        if let Some(at) = pending.due_ms.iter().position(|due_ms| *due_ms == self.due_ms) {
            pending.due_ms.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_clock_is_held_at_the_earliest_due_time_until_that_timer_is_gone() {
        let timers = Timers::new(HostClock::One);
        let (first, second) = (timers.set(100), timers.set(200));
        let held = |ms| timers.now(ms, ms).held;
        assert!(held(100) && !held(99) && !held(101) && !held(200));
        first.fired(100);
        assert!(!held(100) && held(200));
        drop(second);
        assert!(!held(200));
        assert_eq!(timers.now(200, 200).early_timers, 0);
    }

    #[test]
    fn a_timer_that_fires_before_its_time_is_a_step_back_of_a_single_clock_only() {
        for (clock, early) in [(HostClock::One, 1), (HostClock::Two, 0)] {
            let timers = Timers::new(clock);
            timers.set(100).fired(100 - ROUNDING_MS);
            assert_eq!(timers.now(0, 0).early_timers, 0, "rounding is no step");
            timers.set(100).fired(99 - ROUNDING_MS);
            assert_eq!(timers.now(0, 0).early_timers, early);
            let _pending = timers.set(50);
            assert_eq!(timers.now(50, 50).held, clock == HostClock::One);
        }
    }
}
