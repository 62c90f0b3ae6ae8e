//! What one session has counted, for its metrics. No rule of the election reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::election::{Event, Input, LostReason, PeerAnswer, Step};
use crate::lease::{Lease, Stamp};
use crate::slots::{SlotEnd, SlotsOver};
use crate::store::Outcome;

/// How often something has happened, by the word for it.
pub type Counts = BTreeMap<Word, u64>;

/// The value of a label.
pub type Word = Cow<'static, str>;

/// The upper limits of the ranges in which latencies are counted, in milliseconds; one more range has no limit.
pub const LATENCIES_MS: [u64; 10] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

/// How long requests took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// How many took so long, for each range.
    pub counts: [u64; LATENCIES_MS.len() + 1],
    /// How long all of them took, in milliseconds.
    pub sum_ms: u64,
}

/// What one session has counted since it began, or several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests to the store, by operation and outcome.
    pub requests: BTreeMap<Word, Counts>,
    /// How long they took, by operation.
    pub latencies: BTreeMap<Word, Latencies>,
    /// Questions to peers, by outcome.
    pub questions: Counts,
    /// Terms that have ended, by the reason.
    pub terms: Counts,
    /// Slots, by outcome.
    pub slots: Counts,
    /// How the job of the slot that is being closed has ended.
    #[serde(skip)]
    closing: Option<&'static str>,
    /// Whether a slot is claimed and not counted yet.
    #[serde(skip)]
    open: bool,
    /// Whether it was counted since the last term began.
    #[serde(skip)]
    counted: bool,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    operation: &'static str,
    sent_ms: u64,
}

impl UnderWay {
    /// The request of a step that leaves at this reading of the monotonic clock.
    pub(crate) fn of(step: &Step, sent_ms: u64) -> Option<Self> {
        let operation = match step {
            Step::Read { .. } => "read",
            Step::Claim { .. } => "claim",
            Step::Renew { lease, .. } => write_over_own(lease),
            Step::AskPeer { .. } => "ask",
            Step::Wait { .. } | Step::Finished => return None,
        };
        Some(Self { operation, sent_ms })
    }
}

fn write_over_own(lease: &Lease) -> &'static str {
    match lease.last_updated {
        Stamp::Released => "release",
        Stamp::At(_) if lease.parked => "park",
        Stamp::At(_) => "renew",
    }
}

fn add(counts: &mut Counts, word: &'static str, more: u64) {
    *counts.entry(Cow::Borrowed(word)).or_default() += more;
}

impl Tally {
    /// Nothing yet. What alerts ask for is there from the beginning: a monitor sees no growth of a series that is new.
    pub(crate) fn begun() -> Self {
        let mut tally = Self::default();
        add(&mut tally.terms, LostReason::Expired.name(), 0);
        let renewals = tally.requests.entry(Cow::Borrowed("renew")).or_default();
        ["ok", "unknown"].into_iter().for_each(|outcome| add(renewals, outcome, 0));
        tally
    }

    /// A request has ended.
    pub(crate) fn request_ended(&mut self, request: UnderWay, input: &Input, now_ms: u64) {
        let UnderWay { operation, sent_ms } = request;
        let outcome = match input {
            Input::Answer(answer) => outcome_of(&answer.outcome),
            Input::Peer(PeerAnswer::Alive { .. }) => return add(&mut self.questions, "alive", 1),
            Input::Peer(PeerAnswer::Busy { .. }) => return add(&mut self.questions, "busy", 1),
            Input::Peer(PeerAnswer::Silent | PeerAnswer::Over { .. }) => {
                return add(&mut self.questions, "silent", 1);
            }
            _ => return,
        };
        let operation = Cow::Borrowed(operation);
        add(self.requests.entry(operation.clone()).or_default(), outcome, 1);
        let took_ms = now_ms.saturating_sub(sent_ms);
        let latencies = self.latencies.entry(operation).or_default();
        latencies.counts[LATENCIES_MS.partition_point(|limit_ms| *limit_ms < took_ms)] += 1;
        latencies.sum_ms += took_ms;
    }

    /// The job of a slot has ended.
    pub(crate) fn job_ended(&mut self, end: &SlotEnd) {
        self.closing = Some(match end {
            SlotEnd { done: true, .. } => "ok",
            SlotEnd { failed: true, .. } => "failed",
            _ => "stopped",
        });
    }

    /// The application is told something; `left_out` slots of the trigger will be run by nobody.
    pub(crate) fn told(&mut self, event: &Event, runs_slots: bool, left_out: u64) {
        match event {
            Event::Acquired { .. } => {
                self.slot_left();
                (self.closing, self.open, self.counted) = (None, runs_slots, false);
            }
            Event::Lost { reason, .. } => {
                add(&mut self.terms, reason.name(), 1);
                if reason.is_loss() {
                    self.slot_left();
                }
            }
            Event::SlotClosed { .. } => {
                (self.open, self.counted) = (false, true);
                add(&mut self.slots, self.closing.take().unwrap_or("stopped"), 1);
            }
            Event::SlotsOver(why) => {
                self.slot_left();
                if left_out > 0 {
                    add(&mut self.slots, "missed", left_out);
                }
                match why {
                    // Claimed, and its job never began.
                    SlotsOver::Lost if !self.counted => add(&mut self.slots, "lost", 1),
                    SlotsOver::Ran | SlotsOver::Lost => {}
                    SlotsOver::Taken => add(&mut self.slots, "taken", 1),
                    SlotsOver::Unknown => add(&mut self.slots, "unknown", 1),
                    _ => add(&mut self.slots, "skipped", 1),
                }
            }
            _ => {}
        }
    }

    /// Whatever was claimed and not closed is lost, also where its job was told to stop and outlived the lease.
    fn slot_left(&mut self) {
        if std::mem::take(&mut self.open) {
            self.counted = true;
            add(&mut self.slots, "lost", 1);
        }
    }

    /// Adds what another session has counted.
    pub fn add(&mut self, other: &Self) {
        let add = |counts: &mut Counts, more: &Counts| {
            for (word, count) in more {
                *counts.entry(word.clone()).or_default() += count;
            }
        };
        for (operation, more) in &other.requests {
            add(self.requests.entry(operation.clone()).or_default(), more);
        }
        for (operation, more) in &other.latencies {
            let latencies = self.latencies.entry(operation.clone()).or_default();
            latencies.sum_ms += more.sum_ms;
            latencies.counts.iter_mut().zip(more.counts).for_each(|(count, more)| *count += more);
        }
        add(&mut self.questions, &other.questions);
        add(&mut self.terms, &other.terms);
        add(&mut self.slots, &other.slots);
    }
}

fn outcome_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Found { .. } | Outcome::Missing | Outcome::Unchanged => "ok",
        Outcome::Written { version: Some(_) } => "ok",
        Outcome::Refused => "refused",
        // A success that names no version proves nothing (S8).
        Outcome::Written { version: None } | Outcome::Unknown { .. } => "unknown",
        Outcome::Rejected(_) => "rejected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_after(events: &[Event]) -> Counts {
        let mut tally = Tally::default();
        events.iter().for_each(|event| tally.told(event, true, 0));
        tally.slots
    }

    #[test]
    fn each_slot_that_was_claimed_is_counted_once() {
        let acquired = Event::Acquired { term: 7 };
        let lost = |reason| Event::Lost { term: 7, reason };
        let closed = Event::SlotClosed { term: 7, recorded: true };
        let over = Event::SlotsOver(SlotsOver::Ran);
        for (between, word) in [
            (vec![lost(LostReason::Stopped), closed.clone()], "stopped"),
            // The job outlived the lease, and no write has closed the slot.
            (vec![lost(LostReason::Stopped)], "lost"),
            (vec![lost(LostReason::Expired)], "lost"),
            (vec![lost(LostReason::Expired), acquired.clone(), closed], "both"),
        ] {
            let events = [vec![acquired.clone()], between, vec![over.clone()]].concat();
            let expected: &[_] = match word {
                "both" => &[("lost", 1), ("stopped", 1)],
                word => &[(word, 1)],
            };
            let expected = expected.iter().map(|(word, count)| (Cow::Borrowed(*word), *count));
            assert_eq!(slots_after(&events), expected.collect(), "{events:?}");
        }
    }
}
