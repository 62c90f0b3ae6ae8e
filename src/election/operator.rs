//! What an operator's request in the record changes: who ends its term, and who claims nothing.

use super::{Action, Anchor, Election, HeldTerm, LostReason, Plan, Seen};
use crate::clock::Now;
use crate::lease::{Ask, Lease, OperatorRequest, Reading};
use crate::planted::planted;
use crate::store::Version;

impl Election {
    /// The request that keeps the group paused, as the newest record shows it.
    pub fn paused(&self, now: Now) -> Option<&OperatorRequest> {
        self.record().and_then(|(_, lease)| self.pause_of(now, lease))
    }

    /// The request of a record by which nobody claims it now.
    pub(super) fn pause_of<'a>(&self, now: Now, lease: &'a Lease) -> Option<&'a OperatorRequest> {
        lease.pause(self.clocks.storage_ms(now))
    }

    /// For how many more milliseconds the newest record is paused; `None` where that has no end.
    pub(super) fn pause_left_ms(&self, now: Now) -> Option<u64> {
        let until_ms = self.paused(now)?.until_ms?;
        Some(until_ms.saturating_sub(self.clocks.storage_ms(now)))
    }

    /// Takes an operator's request that was written over the record that this session holds; true if there is one. Its
    /// authority stays what it was: the sequence is one that was known to have landed. The fences of writes in doubt go on to
    /// count, because the read may be an old one (Route 53) and such a write may have landed since (S5, S8).
    pub(super) fn take_request(&mut self, now: Now, version: &Version, reading: &Reading) -> bool {
        let Reading::Lease(lease) = reading else { return false };
        let compared = self.clocks.covered() && self.stale_writes_fail;
        let asked = |held: &Lease| {
            let new = lease.operator.is_some() && held.operator != lease.operator;
            new && held.is_same_write(lease)
        };
        let Some(term) = self.term.as_mut().filter(|term| compared && asked(&term.lease)) else {
            return false;
        };
        term.version = version.clone();
        term.lease.operator.clone_from(&lease.operator);
        if planted!(RequestExtends) {
            term.anchor.sent = now;
        }
        let lease = term.lease.clone();
        (self.round, self.misses) = (None, 0);
        self.see_own(now, &lease, version.clone());
        if self.wind_down.is_some() {
            self.obey_late(now, &lease, version);
        }
        match self.wind_down {
            // Another one may come between: the end of the release bounds them.
            Some(wind_down) if wind_down.until_ms.is_some() => self.begin_release(now),
            Some(_) => {}
            None => {
                // The renewal that was refused is due.
                self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
                self.obey(now);
            }
        }
        true
    }

    /// Whether the request in the own record asks this term to end.
    pub(super) fn steps_down(&self) -> bool {
        self.term.as_ref().is_some_and(|term| {
            let request = term.lease.operator.as_ref();
            request.is_some_and(|request| request.ends(term.number, &self.session))
        })
    }

    /// Gives the term up if the request in its record asks for that; true if it does.
    pub(super) fn obey(&mut self, now: Now) -> bool {
        let Some(term) = self.term.as_ref().filter(|term| !term.ended) else { return false };
        let Some(request) = &term.lease.operator else { return false };
        let ends = self.steps_down() && !planted!(StepDownIgnored);
        let reason = match request.ask {
            Ask::StepDown if ends => LostReason::SteppedDown,
            Ask::Pause if self.pause_of(now, &term.lease).is_some() => LostReason::Paused,
            _ => return false,
        };
        self.obeyed = Some(request.id.clone());
        self.give_up(now, false, self.trigger.is_some(), reason);
        true
    }

    /// A request to step down that is read when its term is over, or is being given up: the next term is left to others all
    /// the same. Once, however often it is read. True if the record, which is this session's still, is released. A member of
    /// another make may carry the session and the request on under its own name.
    pub(super) fn obey_late(&mut self, now: Now, lease: &Lease, version: &Version) -> bool {
        let own =
            lease.session.as_ref() == Some(&self.session) && lease.leader_id == self.server_id();
        let ends = |request: &&OperatorRequest| {
            lease.term.is_some_and(|term| request.ends(term, &self.session))
                && self.obeyed.as_ref() != Some(&request.id)
        };
        let request = lease.operator.as_ref().filter(ends);
        let Some(request) = request.filter(|_| own && !planted!(StepDownIgnored)) else {
            return false;
        };
        self.obeyed = Some(request.id.clone());
        self.compete_after_ms = self.compete_after_ms.max(now.mono_ms + self.sit_out_ms());
        let idle = self.term.is_none() && self.wind_down.is_none() && self.working.is_none();
        // Whoever led before may lead still, where a wait for that goes on.
        let settled = self.owed.is_none() && self.unproven.is_none() && self.grace.is_none();
        let compared = self.clocks.covered() && self.stale_writes_fail;
        if !(idle && settled && compared && self.trigger.is_none())
            || lease.released()
            || lease.in_grace()
        {
            return false;
        }
        self.see_own(now, lease, version.clone());
        let lease_ms = lease.lease_ms.unwrap_or(0);
        let anchor = Anchor { sent: now, lease_ms, margin_ms: 0 };
        let (number, version) = (lease.term.unwrap_or(0), version.clone());
        self.term = Some(HeldTerm { number, version, lease: lease.clone(), anchor, ended: true });
        self.give_up(now, false, false, LostReason::SteppedDown);
        true
    }

    /// Whether the newest record is one that nobody claims because an operator has paused the group.
    pub(super) fn sees_pause(&self, now: Now) -> bool {
        match &self.seen {
            Seen::Record { reading: Reading::Lease(lease), .. } => {
                self.pause_of(now, lease).is_some()
            }
            _ => false,
        }
    }
}
