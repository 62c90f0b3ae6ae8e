//! Claims: which one is justified, when, and with which term (S2, S6, S7).

use super::{Action, Attempt, Election, Grace, Plan, Problem, Purpose, Round, Seen, Turn};
use crate::age::Observation;
use crate::clock::{Drift, Now};
use crate::lease::{History, Lease, MAX_TERM, Reading, Stamp};
use crate::planted::planted;
use crate::slots::Verdict;
use crate::store::{Condition, Facts, Version};

/// How many claims in a row may be refused on a record that is still the same before that is told.
pub(super) const PASSING_REFUSALS: u32 = 3;

impl Election {
    /// The claim that waits for an answer which shows its record, if this one shows that the store's clock is right.
    pub(super) fn proven_claim(
        &mut self,
        now: Now,
        version: &Version,
        facts: &Facts,
        drift: Drift,
    ) -> Option<Attempt> {
        let attempt = self.unproven.take()?;
        let waits = |grace: &Grace| grace.version == *version;
        if !self.grace.as_ref().is_some_and(waits)
            || matches!(drift, Drift::StoreAhead | Drift::OwnAhead)
        {
            return None;
        }
        self.compare_clocks(now, &attempt.anchor, facts);
        if self.clocks.pair_agrees() {
            return Some(attempt);
        }
        // A relayed answer says nothing: the next one may.
        self.unproven = Some(attempt).filter(|_| facts.relayed);
        None
    }

    /// A claim was refused or unknown and the record is what it was: looked at again before the next try, so
    /// that a store that keeps refusing is not asked without pause.
    pub(super) fn pause_claim(&mut self, now: Now) {
        self.round = None;
        self.refusals = self.refusals.saturating_add(1);
        // A few happen where others write the same key (409), and are over within a second.
        if self.refusals > PASSING_REFUSALS {
            self.problem.get_or_insert(Problem::Contradicted);
        }
        self.rest_from_claims(now, self.refusals);
        // Whoever has tried before has waited.
        let at_ms = self.plan.at_ms.max(self.claim_after_ms);
        self.turn = Some(Turn { at_ms, until_ms: u64::MAX, of_lease: false });
    }

    /// Claims no more for a pause that grows with the number of claims that came to nothing.
    pub(super) fn rest_from_claims(&mut self, now: Now, times: u32) {
        let pause_ms = self.growing_claim_pause_ms(times);
        self.claim_after_ms = now.mono_ms + pause_ms;
        // A claim that has landed is recognised by a read only before its fence, and nobody leads until then.
        let look_ms = if self.in_doubt() { self.config.frequent_interval_ms } else { pause_ms };
        self.plan_look(now, look_ms.min(pause_ms));
    }

    pub(super) fn forget_claims_in_vain(&mut self) {
        (self.refusals, self.throttled, self.claim_after_ms) = (0, 0, 0);
    }

    pub(super) fn grace_from(&self, now: Now, version: Version, lease: &Lease) -> Grace {
        let length_ms =
            self.config.grace_ms(self.longest_lease_ms).max(lease.lease_ms.unwrap_or(0));
        Grace { version, since: self.clocks.begin(now), length_ms, reserved: false }
    }

    /// Judges what the answer that is processed now has shown; claims follow an answer, never a timer.
    pub(super) fn judge(&mut self, now: Now) {
        self.judge_claim(now);
    }

    /// The same, unless the clock is held: it is until a timer has fired, and a store that takes no time lets none fire.
    pub(super) fn judge_moving(&mut self, now: Now) {
        match self.clocks.trusted(now) || self.wind_down.is_some() {
            true => self.judge(now),
            false => self.plan_look(now, 1),
        }
    }

    /// Whether work of a lost term goes on, under which nothing is claimed; and so the problem that there is.
    fn is_held_back(&mut self) -> bool {
        let working = self.working.filter(|_| !planted!(CompetesUnderOldWork));
        let Some(term) = working else { return false };
        self.held_back = true;
        // Nothing is written meanwhile, so that a write that failed before is no problem any more.
        if self.problem.is_none() || self.unwritten {
            (self.problem, self.unwritten) = (Some(Problem::WorkGoesOn { term }), false);
        }
        true
    }

    /// Whether a lock is not even looked at: that prolongs what a renewal whose answer was lost has left, and nobody may use it.
    pub(super) fn leaves_lock_alone(&mut self) -> bool {
        let idle = self.term.is_none() && self.wind_down.is_none();
        if !(self.unfenced && idle) {
            return false;
        }
        // What the last request has failed of is not asked about meanwhile.
        self.unwritten |= self.working.is_some();
        self.is_held_back()
    }

    /// What [`Election::judge`] does, and whether a claim is justified: it is planned, or the look before it.
    pub(super) fn judge_claim(&mut self, now: Now) -> bool {
        if let Some(wind_down) = self.wind_down {
            if self.term.is_none() && wind_down.until_ms.is_some() {
                self.finish_wind_down(now);
            }
            return false;
        }
        // A creation of its own is written over first, so that the slots after that count, and not those after the next one.
        let goes_on = self.reserves_own(now) || self.slots_go_on(now);
        if self.term.is_some() || self.failed || self.finished || !goes_on {
            return false;
        }
        if !self.is_held_back()
            && (self.competes || planted!(CompetesUntold))
            && now.mono_ms >= self.compete_after_ms
            && let Some(round) = self.justified_claim(now)
        {
            if now.mono_ms < self.claim_after_ms {
                self.plan_look(now, self.claim_after_ms - now.mono_ms);
                return true;
            }
            if !self.may_write_claim() {
                self.await_turn(now);
                return true;
            }
            self.unproven_wait_ms = self.unproven_wait_ms(now);
            self.clocks.forget_agreement();
            // A tombstone lets everybody claim: what it says of the record before has to be sure. Nor is a wait begun
            // that is longer than any of this group's: that is watched (a).
            let longest_ms = self.config.grace_ms(0);
            let bounded = self.unproven_wait_ms.is_none_or(|wait_ms| wait_ms <= longest_ms);
            if self.unproven_wait_ms.is_none() || (bounded && !round.lease.released()) {
                self.round = Some(round);
                self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
                return true;
            }
        }
        self.plan_follow(now);
        false
    }

    /// How long a claim of the newest record waits once it has landed, if nothing but the store's clock, which no write
    /// of this session has shown to be right, says that the record is old enough (S6 (b)).
    pub(super) fn unproven_wait_ms(&self, now: Now) -> Option<u64> {
        let Seen::Record { observation, reading } = &self.seen else { return None };
        let watched_ms = observation.watched_ms(&self.clocks, self.as_claimed(now));
        let wait_ms = match reading {
            // Nobody leads by it, and what is written over it grants nothing before the grace.
            Reading::Lease(lease) if self.must_be_reserved(lease) => return None,
            Reading::Lease(lease) if self.may_succeed(now, lease, watched_ms) => return None,
            Reading::Lease(lease) => self.lease_to_wait_ms(lease),
            Reading::Unreadable(..) | Reading::Closed(_) => {
                self.config.grace_ms(self.longest_lease_ms)
            }
        };
        (watched_ms < wait_ms).then_some(wait_ms)
    }

    /// The claim that S6 and S7 allow at this reading, if any.
    pub(super) fn justified_claim(&mut self, now: Now) -> Option<Round> {
        let verdict = self.slot_verdict(now).map(|(_, verdict)| verdict);
        let longest_ms = self.longest_lease_ms;
        let (condition, before, previous_term) = match &self.seen {
            Seen::Nothing => return None,
            Seen::Absent => return self.creation(now),
            Seen::Record { observation, reading } => {
                let condition = Condition::Match(observation.version.clone());
                let age_ms = self.age_to_claim_ms(observation, now);
                match reading {
                    Reading::Closed(_) if !planted!(NewerFormatClaimed) => return None,
                    Reading::Closed(_) | Reading::Unreadable(..) => {
                        let healed = planted!(GarbageHealedAtOnce);
                        if age_ms < self.config.grace_ms(longest_ms) && !healed {
                            return None;
                        }
                        if self.reserves(verdict) && !planted!(GarbageHealedInOneWrite) {
                            let term = match reading {
                                Reading::Unreadable(_, told) => told.term,
                                _ => None,
                            };
                            return Some(self.reservation(condition, None, term));
                        }
                        (condition, None, self.foreign_term(now))
                    }
                    Reading::Lease(lease) => {
                        if !self.may_succeed(now, lease, age_ms) {
                            return None;
                        }
                        if self.must_be_reserved(lease) {
                            return Some(self.reservation(condition, Some(lease), lease.term));
                        }
                        let term = match lease.term {
                            Some(term) => term,
                            None if lease.released() && self.reserves(verdict) => {
                                return Some(self.reservation(condition, Some(lease), None));
                            }
                            None if self.foreign_term_ahead_ms(now) > 0 => return None,
                            None => self.foreign_term(now),
                        };
                        (condition, Some((**lease).clone()), term)
                    }
                }
            }
        };
        let term =
            self.new_term(previous_term.saturating_add(1), self.clocks.storage_ceiling_ms(now))?;
        let mut lease = self.own_lease(before.as_ref(), term);
        lease.acquired = Some(i64::try_from(self.clocks.storage_ms(now)).unwrap_or(i64::MAX));
        if let (Some(slot_ms), true) = (lease.slot, before.is_some_and(|b| b.acquired.is_none())) {
            // What nobody has led with may have come back after a deletion: its slot covers no less than it counts for.
            let counted_ms = self.storage_times(now).claimed_through_ms();
            (lease.slot, lease.slot_done) = (Some(slot_ms.max(counted_ms)), Some(true));
            lease.slot_term = lease.slot_term.filter(|_| slot_ms >= counted_ms);
        }
        let purpose = self.claim_slot(now, verdict, &mut lease);
        Some(Round { purpose, condition, lease, attempts: 0 })
    }

    /// Whether a record may be succeeded: a tombstone, our own without authority and outside its grace, one
    /// parked for us, or one whose age is proven (S6); none while an operator has paused the group.
    pub(super) fn may_succeed(&self, now: Now, lease: &Lease, age_ms: u64) -> bool {
        if self.pause_of(now, lease).is_some() && !planted!(PauseIgnored) {
            return false;
        }
        let own_name = lease.leader_id == self.server_id();
        let named = planted!(OwnNameIsOwnSession) && own_name;
        // A member of another make that keeps what it does not know carries our session on under its own name.
        if (lease.session.as_deref() == Some(&self.session) && own_name) || named {
            if self.must_be_reserved(lease) {
                return true;
            }
            let grace = self.grace.as_ref().map(|grace| (grace.since, grace.length_ms));
            let over = |(since, length_ms)| self.clocks.passed_ms(now, since) >= length_ms;
            return grace.is_none_or(over) && self.owed.is_none_or(over);
        }
        if lease.released() {
            return true;
        }
        if planted!(WallClocksCompared)
            && let Stamp::At(updated_ms) = lease.last_updated
        {
            let wall_ms = i64::try_from(now.wall_ms).unwrap_or(i64::MAX);
            return wall_ms - updated_ms >= self.lease_to_wait_ms(lease) as i64;
        }
        let named = !self.config.server_id.is_empty() && lease.leader_id == self.config.server_id;
        let parked = lease.parked || (planted!(AnnouncedIsParked) && lease.park_at.is_some());
        let parked_for_us = parked && (named || planted!(ParkedForAnybody));
        let silent = planted!(SilentPeerIsDead) && now.mono_ms < self.peers.silent_until_ms;
        parked_for_us || silent || age_ms >= self.lease_to_wait_ms(lease)
    }

    /// The age that a claim may rest on (S6): where its condition does not cover the version, as it was when the read
    /// left that showed the version last.
    pub(super) fn age_to_claim_ms(&self, observation: &Observation, now: Now) -> u64 {
        observation.age_ms(&self.clocks, self.as_claimed(now))
    }

    pub(super) fn as_claimed(&self, now: Now) -> Now {
        let sent = Now { mono_ms: self.seen_sent.mono_ms.min(now.mono_ms), ..now };
        let goes_on = self.clocks.covered() || planted!(EpochAgeGoesOn);
        if goes_on { now } else { sent }
    }

    /// How long a record of somebody else's is waited out: its own lease, ours for foreign ones.
    pub(super) fn lease_to_wait_ms(&self, lease: &Lease) -> u64 {
        let own_ms = self.config.leader_timeout_ms;
        if planted!(CandidateLease) { own_ms } else { lease.lease_ms.unwrap_or(own_ms) }
    }

    /// The record that is created from absence: a lease as long as the grace, without authority (S7). Its
    /// term is what a record without one would count as, so that the stored number does not fall either,
    /// except by a create that lands late.
    pub(super) fn creation(&mut self, now: Now) -> Option<Round> {
        let floor = self.clocks.storage_ceiling_ms(now).saturating_add(self.foreign_room_ms());
        let term = self.new_term(0, floor)?;
        let mut lease = self.own_lease(None, term);
        lease.lease_ms = Some(self.config.grace_ms(self.longest_lease_ms));
        if self.trigger.is_some() {
            // Said in the record itself, for stores that name no `Last-Modified`.
            lease.slot = Some(self.storage_times(now).claimed_through_ms());
            lease.slot_done = Some(true);
        }
        if planted!(ClaimAbsenceWithoutGrace) {
            lease.acquired = Some(0);
        }
        Some(Round { purpose: Purpose::Create, condition: Condition::Absent, lease, attempts: 0 })
    }

    /// A tombstone without a term is equal in every byte to the next one of that member, and what a hand puts there may
    /// be put again; so are their versions: a claim could land on the next, with a token of before. So it is taken
    /// without a new term and without authority, and that comes by a write on this version, which nothing but a held-up
    /// copy of this write can bring back (S2, S4).
    pub(super) fn reservation(
        &self,
        condition: Condition,
        before: Option<&Lease>,
        term: Option<u64>,
    ) -> Round {
        let mut lease = Lease { term, reserved: true, ..self.own_lease(before, 0) };
        if before.is_none_or(Lease::is_creation) {
            // If it lands late, on the same bytes put again under a leader, others wait as for these (S7).
            lease.lease_ms = Some(self.config.grace_ms(self.longest_lease_ms));
        }
        Round { purpose: Purpose::Reserve, condition, lease, attempts: 0 }
    }

    /// Whether this is a creation that a held-up copy of its write can bring back after a deletion, with the same version, so
    /// that a claim of it would succeed although others have led meanwhile. It is written over at once, and the grace counts
    /// from there (S7). Over epochs no condition covers a version.
    pub(super) fn must_be_reserved(&self, lease: &Lease) -> bool {
        lease.is_creation() && self.clocks.covered() && !planted!(CreationClaimed)
    }

    pub(super) fn reserves_own(&self, now: Now) -> bool {
        let made = self.own_record().is_some_and(|lease| self.must_be_reserved(lease));
        made && !self.sees_pause(now)
    }

    /// Not where a slot is claimed: by the time of that write it would count as claimed.
    pub(super) fn reserves(&self, verdict: Option<Verdict>) -> bool {
        self.clocks.covered() && !matches!(verdict, Some(Verdict::Claim { .. }))
    }

    pub(super) fn own_lease(&self, before: Option<&Lease>, term: u64) -> Lease {
        let moved = before.is_some_and(|lease| lease.leader_id != self.server_id());
        Lease {
            leader_id: self.server_id().to_owned(),
            leader_addr: self.config.server_addr.clone(),
            last_updated: Stamp::At(0),
            term: Some(term),
            session: Some(self.session.clone()),
            sequence: 0,
            lease_ms: Some(self.config.leader_timeout_ms),
            acquired: None,
            reserved: false,
            transitions: before
                .map_or(0, |lease| lease.transitions.saturating_add(u64::from(moved))),
            parked: false,
            park_at: None,
            slot: before.and_then(|lease| lease.slot),
            slot_done: before.and_then(|lease| lease.slot_done),
            slot_result: before.and_then(|lease| lease.slot_result.clone()),
            slot_took_ms: before.and_then(|lease| lease.slot_took_ms),
            slot_failures: before.and_then(|lease| lease.slot_failures),
            slot_term: before.and_then(|lease| lease.slot_term),
            history: before
                .map_or_else(History::default, |lease| History::after(lease, self.changed_ms())),
            operator: None,
            extra: before.map(|lease| lease.extra.clone()).unwrap_or_default(),
        }
    }

    /// What a record without a term counts as: the storage time of its last change, with room for the
    /// store's own clocks (S2, design section 4).
    pub(super) fn foreign_term(&self, now: Now) -> u64 {
        let known_ms = match &self.seen {
            Seen::Record { observation, .. } => observation.changed_by_ms(&self.clocks),
            _ => None,
        };
        let changed_ms = known_ms.unwrap_or_else(|| self.clocks.storage_ceiling_ms(now));
        changed_ms.saturating_add(self.foreign_room_ms())
    }

    /// What the clocks of the store and their whole seconds may make of one instant (S2).
    pub(super) fn foreign_room_ms(&self) -> u64 {
        self.config.store_skew_ms + 2_000
    }

    /// How long until what a record without a term counts as is surely not ahead of storage time, in milliseconds. A
    /// token that ran ahead of it could be handed out again after the next such record, which counts by the whole
    /// seconds of another of the store's clocks (S2).
    pub(super) fn foreign_term_ahead_ms(&self, now: Now) -> u64 {
        let Seen::Record { observation, .. } = &self.seen else { return 0 };
        let ahead_ms = self.foreign_term(now).saturating_sub(self.clocks.storage_ceiling_ms(now));
        ahead_ms.min(self.foreign_room_ms().saturating_sub(observation.age_ms(&self.clocks, now)))
    }

    pub(super) fn new_term(&mut self, at_least: u64, storage_ms: u64) -> Option<u64> {
        if planted!(TermRestarts) {
            return Some(at_least.max(1));
        }
        let highest = if planted!(HighestTermForgotten) { 0 } else { self.highest_term };
        let term =
            at_least.max(highest.saturating_add(1)).max(self.config.term_floor).max(storage_ms);
        if term > MAX_TERM {
            self.problem = Some(Problem::TermTooHigh);
            return None;
        }
        Some(term)
    }

    /// Whether a write that would have to be released may have landed.
    pub(super) fn claiming(&self) -> bool {
        let taken = [Purpose::Claim, Purpose::Reserve];
        self.unproven.is_some()
            || self.unresolved.iter().any(|attempt| taken.contains(&attempt.purpose))
    }
}
