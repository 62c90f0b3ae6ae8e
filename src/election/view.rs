//! What others may see of an election. Nothing here changes it.

use super::{Election, Holder, Outstanding, Problem, Purpose, Seen};
use crate::clock::Now;
use crate::config::Config;
use crate::lease::{Lease, PastSlot, Reading};
use crate::planted::planted;
use crate::store::{Fault, Version};

impl Election {
    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The random id of this instance.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The name of this participant: `serverId`, or the session's id where none was set.
    pub fn server_id(&self) -> &str {
        if self.config.server_id.is_empty() { &self.session } else { &self.config.server_id }
    }

    /// What somebody should know about, if anything.
    pub fn problem(&self) -> Option<&Problem> {
        // Who is not to claim a lease is not kept from it.
        let waits = |problem: &&Problem| !self.competes && **problem == Problem::LongWait;
        let problem = self.problem.as_ref().filter(|problem| !waits(problem));
        problem.or(self.complaint.as_ref()).or(self.warning.as_ref())
    }

    /// Why the last request to the store has failed, if it has: a read that is answered does not mend a write that failed.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.problem {
            Some(Problem::Store(fault)) => Some(fault),
            _ => None,
        }
    }

    /// Whether the store has answered, or has failed in a way that may pass.
    pub fn is_heard(&self) -> bool {
        let passing =
            |problem: &Problem| !matches!(problem, Problem::Store(fault) if fault.is_for_good());
        let waits = !self.config.fail_fast && self.problem.is_some();
        self.answered || self.accepted || waits || self.problem.as_ref().is_some_and(passing)
    }

    /// Whether it has given up a term, by itself or because somebody asked, and still holds the lease until its work has ended
    /// and the record says so. False where the authority was lost.
    pub fn gives_up(&self) -> bool {
        self.term.as_ref().is_some_and(|term| term.ended)
    }

    /// The newest record and its version, as last read or written by this session.
    pub fn record(&self) -> Option<(&Version, &Lease)> {
        if let Some(term) = &self.term {
            return Some((&term.version, &term.lease));
        }
        match &self.seen {
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                Some((&observation.version, lease))
            }
            _ => None,
        }
    }

    /// The `serverId` that leads as far as this session knows: its own only with authority.
    pub fn leader_id(&self, now: Now) -> Option<&str> {
        if self.authority(now).is_some() {
            return Some(self.server_id());
        }
        let own =
            self.record().is_some_and(|(_, lease)| lease.session.as_ref() == Some(&self.session));
        self.known_leader.as_deref().filter(|_| !own)
    }

    /// Who holds the lease. Advice: what a claim rests on is the next read.
    pub fn holder(&self, now: Now) -> Holder<'_> {
        if let Some(term) = &self.term {
            return if term.ended { Holder::Unnamed } else { Holder::Me };
        }
        let (observation, reading) = match &self.seen {
            Seen::Nothing => return Holder::Unknown,
            Seen::Absent => return Holder::Nobody,
            Seen::Record { observation, reading } => (observation, reading),
        };
        // By the last answer that showed it: until the next one comes, a lease that may have been renewed is not free.
        let heard = Now { mono_ms: self.seen_sent.mono_ms.min(now.mono_ms), ..now };
        let heard = if planted!(HolderByOldAge) { now } else { heard };
        let age_ms = self.age_to_claim_ms(observation, heard);
        let sits_out = now.mono_ms < self.compete_after_ms || self.working.is_some();
        let made = |lease: &Lease| lease.acquired.is_none() && !lease.released();
        let coming = self.own_record().is_some_and(made);
        match reading {
            // Whoever held it, nobody is to take it.
            Reading::Lease(_) if self.sees_pause(now) => Holder::Unnamed,
            Reading::Lease(_) if coming && !sits_out => Holder::Coming,
            Reading::Lease(lease) if self.may_succeed(now, lease, age_ms) => {
                if sits_out {
                    Holder::Barred
                } else {
                    Holder::Nobody
                }
            }
            Reading::Lease(lease) if lease.session.as_deref() == Some(&self.session) => Holder::Me,
            Reading::Lease(lease) if lease.leader_id == self.server_id() => Holder::Unnamed,
            Reading::Lease(lease) => Holder::Other(&lease.leader_id),
            Reading::Unreadable(..) if age_ms >= self.config.grace_ms(self.longest_lease_ms) => {
                Holder::Nobody
            }
            Reading::Unreadable(..) | Reading::Closed(_) => Holder::Unnamed,
        }
    }

    /// Whether nobody may claim the record that this session has made, because its grace is not over.
    pub fn in_own_grace(&self, now: Now) -> bool {
        let left = |grace: &super::Grace| self.clocks.passed_ms(now, grace.since) < grace.length_ms;
        self.grace.as_ref().is_some_and(left)
    }

    /// For how long neither the store nor a peer has said anything new of the record, in milliseconds.
    pub fn unheard_ms(&self, now: Now) -> u64 {
        now.mono_ms.saturating_sub(self.seen_sent.mono_ms.max(self.peers.moved_ms()))
    }

    /// How much longer the own term lasts if no write is accepted before, in milliseconds. For whoever orders requests: unlike
    /// [`Election::authority`] it ends nothing.
    pub fn fence_left_ms(&self, now: Now) -> Option<u64> {
        self.lease_left(now).map(|left| left.remaining_ms)
    }

    /// Whether the write under way takes the lease for a session that has given the leadership up since, or may not compete any
    /// more: one that has not left yet is not to leave (S12).
    pub fn claims_in_vain(&self, now: Now) -> bool {
        let Some(Outstanding::Write { sequence }) = &self.outstanding else { return false };
        let attempt = self.unresolved.iter().find(|attempt| attempt.lease.sequence == *sequence);
        attempt.is_some_and(|attempt| self.in_vain(now, attempt.purpose))
    }

    /// Whether a write for this purpose takes what the session leaves to others now.
    pub(super) fn in_vain(&self, now: Now, purpose: Purpose) -> bool {
        let stays_out = !self.competes && !planted!(CompetesUntold);
        let rests = self.wind_down.is_some() || now.mono_ms < self.compete_after_ms || stays_out;
        rests && matches!(purpose, Purpose::Create | Purpose::Reserve | Purpose::Claim)
    }

    /// Whether work of this term that ends now, also after the term was given up, has ended in time. Later its end is not
    /// written, and the lease runs out (S5).
    pub fn ends_in_time(&self, now: Now, term: u64) -> bool {
        let held = self.term.as_ref().filter(|held| held.number == term);
        held.is_some_and(|held| held.anchor.remaining_ms(now).is_some())
    }

    /// Whether this session runs slots.
    pub fn has_schedule(&self) -> bool {
        self.trigger.is_some()
    }

    /// Whether the store has refused for good, so that this session ends.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether this session has ended for good.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// The slot that this session claimed last, in milliseconds since the Unix epoch.
    pub fn slot_ms(&self) -> Option<u64> {
        self.trigger.as_ref()?.last_begun_ms()
    }

    /// The slot before the one that this session has claimed, as the record told it at that claim, while its own record
    /// is the newest. To be shown, not believed.
    pub fn previous_slot(&self) -> Option<&PastSlot> {
        self.trigger.as_ref()?;
        self.own_record()?.history.last_slot()
    }

    /// The slot of the trigger itself, once it is known, and how many missed ones nobody will run.
    pub fn own_slot_ms(&self) -> Option<(u64, u64)> {
        self.trigger.as_ref()?.own_slot_ms()
    }
}
