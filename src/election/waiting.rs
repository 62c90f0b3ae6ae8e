//! What a member that does not lead waits for, for people. Nothing is decided by it.

use std::hash::{Hash, Hasher};

use super::{Election, Plan, Problem, Seen};
use crate::clock::Now;
use crate::lease::{Closed, Lease, Reading, Stamp};
use crate::text::{first, quoted};

/// What a member that does not lead waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The grace of a group of which this session has never seen a record (S7): nobody leads before it is over.
    NewGroup,
    /// The grace of a record that is gone or was damaged (S7): a lease may still be held.
    Grace,
    /// Another member's lease, which has to be released or to run out.
    Lease,
    /// Its own pause after it resigned.
    SittingOut,
    /// The store's next answer: it has not answered yet, or the last request failed.
    Store,
    /// Work of a lost term that has not stopped.
    Work,
    /// The end of a pause by an operator.
    Paused,
    /// An operator: the record is one that this member never claims.
    Closed(Closed),
}

impl Waiting {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewGroup | Self::Grace => "grace",
            Self::Lease => "lease",
            Self::SittingOut => "sittingOut",
            Self::Store => "store",
            Self::Work => "work",
            Self::Paused => "paused",
            Self::Closed(_) => "closed",
        }
    }

    /// As a sentence for people. `left_ms` is for how many more milliseconds, where that is known; `leader_id` names who leads.
    pub fn text(self, left_ms: Option<u64>, leader_id: Option<&str>) -> String {
        let left =
            left_ms.map_or_else(String::new, |ms| format!(", {} s left", ms.div_ceil(1_000)));
        match self {
            Self::NewGroup => format!(
                "waiting out the grace of a new group{left}; `init` avoids this where no member has run"
            ),
            Self::Grace => format!(
                "the lease object is gone or damaged, and a lease may still be held; waiting it out{left}"
            ),
            Self::Lease => match leader_id {
                Some(leader_id) => {
                    let leader_id = quoted(first(leader_id, 120));
                    format!("{leader_id} leads; its lease may be taken when it runs out{left}")
                }
                None => format!("waiting for a lease to run out{left}"),
            },
            Self::SittingOut => format!("sitting out after a resignation{left}"),
            Self::Store => "waiting for the store's next answer".to_owned(),
            Self::Work => "waiting for the work of a lost term to stop".to_owned(),
            Self::Paused => format!("an operator has paused the group{left}"),
            Self::Closed(why) => Problem::closed(why).to_string(),
        }
    }
}

/// Whether this session has ever seen a lease, or held one. Told and never judged by, so that it makes no two elections
/// different.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenLease(pub(super) bool);

impl PartialEq for SeenLease {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SeenLease {}

impl Hash for SeenLease {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Election {
    /// What this member waits for at this reading of the clocks, and for how many more milliseconds as far as it knows: at the
    /// end it looks, and what it sees then decides. Nothing while it leads, or has finished.
    pub fn waiting(&self, now: Now) -> Option<(Waiting, Option<u64>)> {
        if self.finished || self.failed || self.lease_left(now).is_some() {
            return None;
        }
        let Plan { at_ms: next_ms, .. } = self.plan;
        let next_ms = next_ms.max(self.not_before_ms);
        let left_ms = |until_ms: u64| Some(until_ms.saturating_sub(now.mono_ms));
        if self.working.is_some() && self.held_back {
            return Some((Waiting::Work, None));
        }
        if self.fault().is_some() || self.seen == Seen::Nothing {
            return Some((Waiting::Store, left_ms(next_ms)));
        }
        if self.sees_pause(now) {
            return Some((Waiting::Paused, self.pause_left_ms(now)));
        }
        if now.mono_ms < self.compete_after_ms {
            return Some((Waiting::SittingOut, left_ms(self.compete_after_ms)));
        }
        let (waiting, until_ms) = match &self.seen {
            Seen::Nothing | Seen::Absent => (self.grace_kind(), None),
            Seen::Record { reading: Reading::Closed(why), .. } => {
                return Some((Waiting::Closed(*why), None));
            }
            Seen::Record { observation, reading: Reading::Unreadable(..) } => {
                let wait_ms = self.config.grace_ms(self.longest_lease_ms);
                (self.grace_kind(), Some(observation.proven_at_ms(&self.clocks, now, wait_ms)))
            }
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                if self.unproven.is_some() {
                    // The next answer shows whether this claim may act.
                    return Some((Waiting::Store, left_ms(next_ms)));
                }
                if let Some(until_ms) = self.grace_until_ms(now, lease) {
                    // Over a record, whoever led before may have its authority still.
                    let waiting = if lease.in_grace() { self.grace_kind() } else { Waiting::Lease };
                    return Some((waiting, left_ms(until_ms)));
                }
                let own = lease.session.as_deref() == Some(&self.session);
                if own || lease.released() {
                    return Some((Waiting::Store, left_ms(next_ms)));
                }
                if self.unfenced {
                    // A locker says that somebody holds the lock, and neither who nor until when.
                    return Some((Waiting::Lease, None));
                }
                let in_grace = lease.in_grace();
                let waiting = if in_grace { self.grace_kind() } else { Waiting::Lease };
                let wait_ms = self.lease_to_wait_ms(lease);
                (waiting, Some(observation.proven_at_ms(&self.clocks, now, wait_ms)))
            }
        };
        // What should have ended by now has not been looked at yet.
        Some((waiting, until_ms.and_then(|until_ms| left_ms(until_ms.max(next_ms)))))
    }

    /// The same as a sentence for people. `leader_id` names who leads.
    pub fn waiting_text(
        &self,
        now: Now,
        (waiting, left_ms): (Waiting, Option<u64>),
        leader_id: Option<&str>,
    ) -> String {
        match self.paused(now).filter(|_| waiting == Waiting::Paused) {
            Some(request) => request.told(),
            None => waiting.text(left_ms, leader_id),
        }
    }

    /// The newest record's own time, where the lease or the grace that it names has run out by that, as far as this host's clock
    /// goes with the store's. Nobody may take it for that (S6).
    pub fn seems_over(&self, now: Now) -> Option<i64> {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return None };
        let Stamp::At(written_ms) = lease.last_updated else { return None };
        let age_ms = i128::from(self.clocks.storage_ms(now)) - i128::from(written_ms);
        let wait_ms = self.lease_to_wait_ms(lease).saturating_add(self.config.store_skew_ms);
        (age_ms > i128::from(wait_ms)).then_some(written_ms)
    }

    fn grace_kind(&self) -> Waiting {
        let damaged = matches!(&self.seen, Seen::Record { reading: Reading::Unreadable(..), .. });
        if self.seen_lease.0 || damaged { Waiting::Grace } else { Waiting::NewGroup }
    }

    /// When the grace of this session's own record is over, on the monotonic clock.
    fn grace_until_ms(&self, now: Now, lease: &Lease) -> Option<u64> {
        let own = lease.session.as_deref() == Some(&self.session);
        let grace = self.grace.as_ref().filter(|_| own)?;
        let passed_ms = self.clocks.passed_ms(now, grace.since);
        Some(now.mono_ms + grace.length_ms.saturating_sub(passed_ms))
    }
}
