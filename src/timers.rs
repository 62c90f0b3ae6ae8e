//! The pending timers of a host, by which a single clock gives itself away (S11): held at the due time of one until
//! that has fired, or stepped back when one fires before its time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::clock::Now;
use crate::config::HostClock;

/// What a timer's own rounding may take off, in milliseconds.
const ROUNDING_MS: u64 = 2;

/// How long after its due time a timer may be pending, in milliseconds: no cron trigger lasts longer. The timers of an event
/// that was cancelled never fire, and nobody takes them back.
const FORGOTTEN_MS: u64 = 15 * 60_000;

thread_local! {
    /// When the timers of all hosts of one isolate are due: which of them its clock is held at, no host can tell.
    static ISOLATE: Rc<RefCell<Vec<u64>>> = Rc::default();
}

/// The timers of one host. Clones share them.
#[derive(Clone)]
pub struct Timers {
    clock: HostClock,
    due_ms: Rc<RefCell<Vec<u64>>>,
    early: Rc<Cell<u32>>,
}

impl Timers {
    /// No timer is pending yet.
    pub fn new(clock: HostClock) -> Self {
        Self { clock, due_ms: Rc::default(), early: Rc::default() }
    }

    /// Those of a host whose single clock is that of its isolate, and so is held at the timers of the others in it as well.
    pub fn of_isolate() -> Self {
        Self { due_ms: ISOLATE.with(Rc::clone), ..Self::new(HostClock::One) }
    }

    /// What clocks the host has.
    pub fn clock(&self) -> HostClock {
        self.clock
    }

    /// A reading of the clocks, and what the timers say about it.
    pub fn now(&self, mono_ms: u64, wall_ms: u64) -> Now {
        let mut due_ms = self.due_ms.borrow_mut();
        due_ms.retain(|due_ms| due_ms.saturating_add(FORGOTTEN_MS) > mono_ms);
        let held = self.clock == HostClock::One && due_ms.contains(&mono_ms);
        Now { mono_ms, wall_ms, held, early_timers: self.early.get() }
    }

    /// A timer was set; it is pending until it has fired or this is dropped.
    pub fn set(&self, due_ms: u64) -> Due {
        self.due_ms.borrow_mut().push(due_ms);
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
            self.timers.early.set(self.timers.early.get() + 1);
        }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        let mut all_ms = self.timers.due_ms.borrow_mut();
        if let Some(at) = all_ms.iter().position(|due_ms| *due_ms == self.due_ms) {
            all_ms.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_clock_is_held_at_a_due_time_until_that_timer_is_gone() {
        let timers = Timers::new(HostClock::One);
        let (first, second) = (timers.set(100), timers.set(200));
        let held = |ms| timers.now(ms, ms).held;
        assert!(held(100) && !held(99) && !held(101) && held(200));
        first.fired(100);
        assert!(!held(100) && held(200));
        drop(second);
        assert!(!held(200));
        assert_eq!(timers.now(200, 200).early_timers, 0);
    }

    #[test]
    fn the_clock_of_an_isolate_is_held_at_a_timer_of_any_of_its_hosts() {
        let (one, other) = (Timers::of_isolate(), Timers::of_isolate());
        let due = other.set(100);
        assert!(one.now(100, 100).held && !one.now(101, 101).held);
        due.fired(90);
        assert!(!one.now(100, 100).held);
        let early = [&one, &other].map(|timers| timers.now(0, 0).early_timers);
        assert_eq!(early, [0, 1], "each host tells what it has seen itself");
    }

    #[test]
    fn a_timer_that_nobody_takes_back_hides_no_other_and_is_forgotten_in_the_end() {
        let (one, cancelled) = (Timers::of_isolate(), Timers::of_isolate());
        std::mem::forget(cancelled.set(100));
        let _pending = one.set(200);
        assert!(one.now(200, 200).held && !one.now(201, 201).held);
        assert_eq!(one.due_ms.borrow().len(), 2);
        one.now(100 + FORGOTTEN_MS, 0);
        assert_eq!(*one.due_ms.borrow(), [200]);
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
