//! Who is heard of, and who has been silent for long: an early sign for people and for work. It changes no lease, no wait and no
//! authority: a suspected leader leads until its lease has run out.

use std::collections::BTreeMap;

use crate::election::Event;

/// How many others are watched.
const MOST: usize = 1_000;

/// Those who are watched, by `serverId`.
#[derive(Clone, Debug, Default)]
pub struct Watch(BTreeMap<String, Seen>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// On the monotonic clock.
    heard_ms: u64,
    suspected: bool,
}

impl Watch {
    /// Somebody was heard of. Whoever was never heard of is not suspected.
    pub fn heard(&mut self, server_id: &str, now_ms: u64) -> Option<Event> {
        if self.0.len() >= MOST && !self.0.contains_key(server_id) {
            return None;
        }
        let before = self.0.get(server_id).copied();
        let heard_ms = before.map_or(now_ms, |before| before.heard_ms.max(now_ms));
        self.0.insert(server_id.to_owned(), Seen { heard_ms, suspected: false });
        before.filter(|seen| seen.suspected).map(|_| recovered(server_id))
    }

    /// Those who have become suspect: silent for `after_ms`.
    pub fn check(&mut self, now_ms: u64, after_ms: u64) -> Vec<Event> {
        let silent = |seen: &Seen| now_ms.saturating_sub(seen.heard_ms) >= after_ms;
        let mut events = Vec::new();
        for (server_id, seen) in
            self.0.iter_mut().filter(|(_, seen)| !seen.suspected && silent(seen))
        {
            seen.suspected = true;
            events.push(Event::Suspected { server_id: server_id.clone() });
        }
        events
    }

    /// When somebody who is not suspected was heard of last.
    pub fn trusted_since_ms(&self, server_id: &str) -> Option<u64> {
        self.0.get(server_id).filter(|seen| !seen.suspected).map(|seen| seen.heard_ms)
    }

    /// The others are watched no more; those of them who are suspected count as recovered.
    pub fn keep(&mut self, kept: impl Fn(&str, u64) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.retain(|server_id, seen| {
            let stays = kept(server_id, seen.heard_ms);
            if !stays && seen.suspected {
                events.push(recovered(server_id));
            }
            stays
        });
        events
    }
}

fn recovered(server_id: &str) -> Event {
    Event::Recovered { server_id: server_id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspected(server_id: &str) -> Event {
        Event::Suspected { server_id: server_id.to_owned() }
    }

    #[test]
    fn the_silent_are_suspected_once_and_recover_once() {
        let mut watch = Watch::default();
        assert_eq!(watch.heard("a", 1_000), None);
        assert_eq!(watch.heard("a", 200), None, "an answer may overtake a heartbeat");
        assert_eq!(watch.heard("b", 2_000), None);
        assert_eq!(watch.check(2_499, 1_500), []);
        assert_eq!(watch.check(2_500, 1_500), [suspected("a")]);
        assert_eq!(watch.check(3_000, 1_500), []);
        assert_eq!(watch.heard("a", 3_000), Some(recovered("a")));
        assert_eq!(watch.heard("a", 3_100), None);
        assert_eq!(watch.check(9_000, 1_500), [suspected("a"), suspected("b")]);
        assert_eq!(watch.keep(|server_id, _| server_id == "b"), [recovered("a")]);
        assert_eq!(watch.check(99_000, 1_500), []);
    }

    #[test]
    fn it_watches_no_more_than_a_thousand() {
        let mut watch = Watch::default();
        for number in 0..2 * MOST {
            watch.heard(&number.to_string(), 1);
        }
        assert_eq!(watch.check(9_000, 1_500).len(), MOST);
    }
}
