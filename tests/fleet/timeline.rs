//! Events in the order in which they happen, for millions of them.

use std::collections::BTreeMap;

/// What happens to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its time to act comes.
    Wake,
    /// Its request reaches the store, or its question the peer.
    Arrive,
    /// The answer reaches it.
    Answer,
    /// Its question was held for long enough.
    Due,
    /// It begins.
    Start,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub what: What,
    pub member: u32,
    /// Which of the member's wakes or requests this belongs to; what is older than its newest is over.
    pub number: u32,
}

/// Events by the millisecond, in the order in which they were planned.
#[derive(Default)]
pub struct Timeline {
    planned: BTreeMap<u64, Vec<Event>>,
    /// A list that is empty again, to be used for another millisecond.
    spare: Vec<Vec<Event>>,
}

impl Timeline {
    pub fn plan(&mut self, at_ms: u64, event: Event) {
        let spare = &mut self.spare;
        let list = self.planned.entry(at_ms).or_insert_with(|| spare.pop().unwrap_or_default());
        list.push(event);
    }

    /// The next millisecond in which something happens, no later than `until_ms`, and what.
    pub fn next(&mut self, until_ms: u64) -> Option<(u64, Vec<Event>)> {
        let entry = self.planned.first_entry().filter(|entry| *entry.key() <= until_ms)?;
        Some(entry.remove_entry())
    }

    pub fn give_back(&mut self, mut list: Vec<Event>) {
        list.clear();
        self.spare.push(list);
    }
}
