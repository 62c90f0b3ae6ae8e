//! Events in the order in which they happen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::world::Event;

/// Bits of chance below the time in a key, so that events of one instant happen in any order.
const CHANCE_BITS: u32 = 22;

/// The latest instant that a key has room for: nothing waits for that long.
const LATEST_MS: u64 = (1 << (64 - CHANCE_BITS)) - 1;

/// A heap of small keys; the events themselves stay where they were put.
#[derive(Default)]
pub struct Queue {
    keys: BinaryHeap<Reverse<(u64, u32)>>,
    events: Vec<Option<Event>>,
    free: Vec<u32>,
}

impl Queue {
    pub fn push(&mut self, at_ms: u64, chance: u64, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            u32::try_from(self.events.len() - 1).expect("a schedule has fewer events")
        });
        self.events[place as usize] = Some(event);
        let key = at_ms.min(LATEST_MS) << CHANCE_BITS | chance >> (64 - CHANCE_BITS);
        self.keys.push(Reverse((key, place)));
    }

    /// When the next event happens.
    pub fn next_ms(&self) -> Option<u64> {
        self.keys.peek().map(|Reverse((key, _))| key >> CHANCE_BITS)
    }

    pub fn pop(&mut self) -> Option<Event> {
        let Reverse((_, place)) = self.keys.pop()?;
        self.free.push(place);
        self.events[place as usize].take()
    }
}
