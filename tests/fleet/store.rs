//! One object in a store as S3 and R2 have it.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use futures::FutureExt;

/// The store's clock at the beginning, in milliseconds since the Unix epoch.
pub const EPOCH_MS: u64 = 1_795_244_292_345;

/// R2 takes one write of one object within so many milliseconds.
pub const WRITE_EVERY_MS: u64 = 1_000;

pub struct Object {
    limited: bool,
    memory: Memory,
    now_ms: Rc<Cell<u64>>,
    /// When the store last took a write, whatever became of its condition.
    taken_ms: Option<u64>,
    /// How many writes it did not take.
    pub throttled: u64,
}

impl Object {
    pub fn new(limited: bool) -> Self {
        let now_ms = Rc::<Cell<u64>>::default();
        let clock = Rc::clone(&now_ms);
        let memory = Memory::new(move || EPOCH_MS + clock.get());
        Self { limited, memory, now_ms, taken_ms: None, throttled: 0 }
    }

    pub fn delete(&mut self) {
        self.memory.overwrite(None);
    }

    /// The operation takes effect.
    pub fn perform(&mut self, now_ms: u64, operation: Operation) -> Answer {
        self.now_ms.set(now_ms);
        if matches!(operation, Operation::Write { .. }) {
            let soon = |taken_ms: u64| now_ms - taken_ms < WRITE_EVERY_MS;
            if self.limited && self.taken_ms.is_some_and(soon) {
                self.throttled += 1;
                return too_many(now_ms);
            }
            self.taken_ms = Some(now_ms);
        }
        self.memory.perform(operation).now_or_never().expect("memory answers at once")
    }
}

fn too_many(now_ms: u64) -> Answer {
    let fault = Fault::new(FaultKind::Unavailable, "429: one write a second for each key");
    let cause = Fault { status: Some(429), ..fault };
    let date_ms = Some((EPOCH_MS + now_ms) / 1_000 * 1_000);
    let outcome = Outcome::Unknown { retry_after_ms: None, cause };
    Answer { outcome, facts: Facts { date_ms, ..Facts::default() } }
}
