//! Writes: up to three attempts of one change, and what their answers mean (S8).

use super::claim::PASSING_REFUSALS;
use super::{
    ATTEMPTS, Action, Anchor, Attempt, Election, Event, Grace, HeldTerm, LostReason,
    MAX_UNRESOLVED, Outstanding, Plan, Problem, Purpose, Round, Seen, Step,
};
use crate::age::Observation;
use crate::clock::Now;
use crate::lease::{Lease, MAX_LEASE_MS, Reading, Stamp};
use crate::planted::planted;
use crate::store::{Condition, Fault, FaultKind, Outcome, Version};

impl Election {
    /// Sends the next attempt of the round: a new sequence, the same condition (S4, S8).
    pub(super) fn attempt(&mut self, now: Now) -> Step {
        let mut lease_ms = self.config.leader_timeout_ms;
        let mut margin_ms = if planted!(NoMargin) { 0 } else { self.config.margin_ms };
        let stale_fail = self.clocks.covered() && self.stale_writes_fail;
        let varies = stale_fail || planted!(EpochLeaseVaries);
        if let (Some(term), false) = (&self.term, varies) {
            // An earlier renewal may land after a later one: with a shorter lease it would be waited out too early.
            (lease_ms, margin_ms) = (term.anchor.lease_ms, term.anchor.margin_ms);
        }
        self.park_no_more(now);
        if self.round.is_none() {
            match self.renewal() {
                Some(round) => self.round = Some(round),
                None => return self.look(now),
            }
        }
        let left_ms = self.lease_left(now).map(|authority| authority.remaining_ms);
        let stamp_ms = i64::try_from(self.clocks.stamp_ms(now)).unwrap_or(i64::MAX);
        self.sequence += 1;
        let round = self.round.as_mut().expect("a round was begun above");
        round.attempts += 1;
        self.blurred = false;
        let mut lease = round.lease.clone();
        lease.sequence = if planted!(NoSequence) { 0 } else { self.sequence };
        if planted!(RetryRepeatsSequence) {
            lease.sequence -= round.attempts as u64 - 1;
        }
        if !lease.released() {
            lease.last_updated = Stamp::At(stamp_ms);
        }
        let (purpose, condition) = (round.purpose, round.condition.clone());
        if purpose == Purpose::Claim {
            // Nobody else may take it earlier than this session itself.
            lease_ms = lease_ms.max(self.unproven_wait_ms.unwrap_or(0));
        }
        if matches!(purpose, Purpose::Claim | Purpose::Renew) {
            // Lease and margin come from the same settings, those of this write.
            lease.lease_ms = Some(lease_ms);
            let left_ms = |at_ms: u64| at_ms.checked_sub(now.mono_ms);
            let park_at_ms = |left_ms| self.clocks.likely_ms(now).saturating_add(left_ms);
            let park_at_ms = self.parks_at_ms.and_then(left_ms).map(park_at_ms);
            lease.park_at = park_at_ms.and_then(|at_ms| i64::try_from(at_ms).ok());
        }
        // The number of a creation is no token, and lies ahead of storage time: it counts once it is in the record (S2).
        if purpose != Purpose::Create {
            self.highest_term = self.highest_term.max(lease.term.unwrap_or(0));
        }
        let anchor = Anchor { sent: now, lease_ms: lease.lease_ms.unwrap_or(lease_ms), margin_ms };
        self.remember(now, Attempt::new(purpose, &condition, anchor, &lease));
        if purpose == Purpose::Claim || (purpose == Purpose::Reserve && lease.released()) {
            let slot_ms = lease.slot.filter(|_| purpose == Purpose::Claim);
            self.claim_leaves(&anchor, &condition, slot_ms);
        }
        if let (Purpose::Claim | Purpose::Reserve, Some(wait_ms)) = (purpose, self.unproven_wait_ms)
        {
            // Whoever leads by the record that this replaces may lead for as long, also where the attempt is forgotten before
            // it is known to have landed (S6 (b)).
            self.owed = Some((self.clocks.begin(now), wait_ms));
        }
        if planted!(AcquiredBeforeWrite) && purpose == Purpose::Claim {
            self.announce(lease.term.unwrap_or(0));
        }
        self.outstanding = Some(Outstanding::Write { sequence: lease.sequence });
        let lease = Box::new(lease);
        let mut timeout_ms = self.config.request_timeout_ms;
        if let (Purpose::Renew, Some(left_ms)) = (purpose, left_ms) {
            timeout_ms = timeout_ms.min(left_ms);
        }
        match (purpose, condition) {
            (Purpose::Create | Purpose::Reserve | Purpose::Claim, seen) => {
                Step::Claim { lease, seen, timeout_ms }
            }
            (_, Condition::Match(held)) => Step::Renew { lease, held, timeout_ms },
            (_, Condition::Absent) => unreachable!("only a claim is conditional on absence"),
        }
    }

    /// Forgetting a write only means that it will not be adopted, as long as its fence still binds (S5).
    pub(super) fn remember(&mut self, now: Now, attempt: Attempt) {
        if self.unresolved.len() >= MAX_UNRESOLVED {
            let oldest = self.unresolved.remove(0);
            let left_ms = |anchor: &Anchor| anchor.remaining_ms(now).unwrap_or(0);
            let renewal = Some(oldest.anchor).filter(|_| oldest.purpose == Purpose::Renew);
            self.forgotten = self.forgotten.into_iter().chain(renewal).min_by_key(left_ms);
        }
        if planted!(UnresolvedForgotten) {
            self.unresolved.clear();
        }
        self.unresolved.push(attempt);
    }

    pub(super) fn renewal(&self) -> Option<Round> {
        let term = self.term.as_ref().filter(|term| !term.ended)?;
        let mut lease = term.lease.clone();
        lease.leader_addr.clone_from(&self.config.server_addr);
        // What a leader renews with it has not to obey, or no longer.
        lease.operator = None;
        Some(Round {
            purpose: Purpose::Renew,
            condition: Condition::Match(term.version.clone()),
            lease,
            attempts: 0,
        })
    }

    pub(super) fn on_write(&mut self, now: Now, sequence: u64, outcome: Outcome) {
        self.contradicted |= outcome == Outcome::Refused;
        let found = self.unresolved.iter().position(|attempt| attempt.lease.sequence == sequence);
        let Some(index) = found else {
            return self.plan_look(now, 0);
        };
        match outcome {
            // No two bodies are the same (S4): what still has its old version was not written, or is not what was answered.
            Outcome::Written { version: Some(version) }
                if self.unresolved[index].condition == Condition::Match(version.clone())
                    && !planted!(EchoBelieved) =>
            {
                self.plan_look(now, 0);
            }
            Outcome::Written { version: Some(version) } => {
                self.failures = 0;
                let attempt = self.unresolved.swap_remove(index);
                self.on_landed(now, attempt, version);
            }
            Outcome::Written { version: None } => self.plan_look(now, 0),
            Outcome::Refused if planted!(RefusedIsSuccess) => {
                let attempt = self.unresolved.swap_remove(index);
                let version = Version(format!("\"{sequence}\""));
                self.on_landed(now, attempt, version);
            }
            Outcome::Refused => {
                if let (Some(trigger), true) = (&mut self.trigger, planted!(RefusedClaimSkipped)) {
                    trigger.forget_claim();
                }
                if planted!(RefusedIsLost) {
                    self.unresolved.clear();
                    self.end_term(LostReason::Overtaken);
                }
                self.plan_look(now, 0);
            }
            Outcome::Rejected(fault) => {
                self.unresolved[index].rejected = true;
                if let (Some(trigger), true) = (&mut self.trigger, planted!(RefusedClaimSkipped)) {
                    trigger.forget_claim();
                }
                if planted!(RejectedForgotten) {
                    self.unresolved.swap_remove(index);
                }
                self.unwritten = true;
                self.rejections = self.rejections.saturating_add(1);
                // A key that the store has read with is not given up for one write; whether it takes conditions shows only here.
                let known = self.answered && fault.kind != FaultKind::Misconfigured;
                if !self.on_rejected(fault, known) {
                    self.plan_after_rejected_write(now);
                }
            }
            Outcome::Unknown { retry_after_ms, cause } => {
                if planted!(TimeoutDidNotLand) {
                    self.unresolved.swap_remove(index);
                }
                let many = matches!(cause.status, Some(429 | 503));
                let purpose = self.unresolved.get(index).map(|attempt| attempt.purpose);
                let in_vain = purpose.is_some_and(|purpose| self.in_vain(now, purpose));
                // Who has given up claims nothing any more: how the store is, the look that follows says.
                if !in_vain || self.trigger.is_some() {
                    (self.problem, self.unwritten) = (Some(Problem::Store(cause)), true);
                }
                self.leave_alone(now, retry_after_ms);
                if many && self.term.is_none() && self.wind_down.is_none() {
                    return self.yield_claim(now);
                }
                if in_vain && !planted!(RoundAfterGivenUp) {
                    // What was under way may have landed; nothing more of it is to leave.
                    self.round = None;
                }
                self.plan_next_attempt(now);
            }
            // No store answers a write like this: it may have landed.
            Outcome::Found { .. } | Outcome::Missing | Outcome::Unchanged => self.plan_look(now, 0),
        }
    }

    pub(super) fn plan_next_attempt(&mut self, now: Now) {
        let made = self.round.as_ref().map_or(ATTEMPTS, |round| round.attempts);
        // Claims that come to nothing again and again are not made three times each.
        let claims = self.term.is_none() && self.wind_down.is_none();
        let most = if claims && self.refusals > PASSING_REFUSALS { 1 } else { ATTEMPTS };
        if made >= most {
            return self.plan_look(now, 0);
        }
        let delay_ms = self.config.retry_delays_ms[made.saturating_sub(1).min(1)];
        // A store that takes one write a second refuses each one that comes so soon after the last.
        let apart_ms = self.wind_down.map_or(0, |_| self.writes_apart_ms);
        let delay_ms = delay_ms.max(apart_ms);
        self.plan = Plan { at_ms: now.mono_ms + delay_ms, action: Action::Attempt };
    }

    /// A write of ours is known to have landed: by its own answer, or by reading it back.
    pub(super) fn on_landed(&mut self, now: Now, attempt: Attempt, version: Version) {
        (self.accepted, self.contradicted, self.rejections) = (true, false, 0);
        // Every other write of ours had the same condition, which no longer holds.
        self.unresolved.clear();
        (self.forgotten, self.round) = (None, None);
        (self.failures, self.misses) = (0, 0);
        self.forget_claims_in_vain();
        (self.problem, self.unwritten) = (None, false);
        let unsettled = self.unsettled(now, &attempt);
        let unproven = self.unproven_age(&attempt, unsettled);
        self.highest_term = self.highest_term.max(attempt.lease.term.unwrap_or(0));
        let lease_ms = attempt.lease.lease_ms.unwrap_or(0).min(MAX_LEASE_MS);
        self.longest_lease_ms = self.longest_lease_ms.max(lease_ms);
        self.seen_sent = attempt.anchor.sent;
        // The record that it waited for is gone; if it ever comes back, it is waited for anew.
        self.grace = None;
        self.see_own(now, &attempt.lease, version.clone());
        let asked = (attempt.lease.clone(), version.clone());
        if self.wind_down.is_some() {
            self.obey_late(now, &asked.0, &asked.1);
        }
        if let (Some(trigger), Purpose::Claim, Some(slot_ms)) =
            (&mut self.trigger, attempt.purpose, attempt.lease.slot)
        {
            trigger.claim_unbegun(slot_ms);
        }
        let mut anchor = attempt.anchor;
        if planted!(AnchorAfterAnswer) {
            anchor.sent = now;
        }
        if planted!(AnchorOfNewSettings) {
            anchor.lease_ms = self.config.leader_timeout_ms;
        }
        let in_time = anchor.remaining_ms(now).is_some() || planted!(ClaimAnsweredLate);
        if let Some((length_ms, provable)) = unproven {
            // Whoever led may have its authority still, for as long as its lease.
            let since = self.clocks.begin(now);
            // It outlasts what is read of the record meanwhile: another name of its version, or a moment's absence.
            self.owed = Some((since, length_ms));
            self.grace = Some(Grace { version, since, length_ms, reserved: false });
            self.unproven = Some(attempt).filter(|_| provable);
            // What it met may lead still, so that it is not released either.
            self.obey_late(now, &asked.0, &asked.1);
            return if provable { self.plan_look(now, 0) } else { self.judge(now) };
        }
        match attempt.purpose {
            Purpose::Create => self.on_created(now, &attempt, version),
            // At a reading that says nothing a term can't begin, nor where the leadership was given up since the
            // claim left; the record is ours, and claimed again (S11). A reservation begins nothing but its release.
            Purpose::Claim | Purpose::Reserve
                if in_time
                    && !attempt.lease.released()
                    && !(attempt.purpose == Purpose::Reserve
                        && (unsettled || attempt.lease.term.is_some()))
                    && self.clocks.trusted(now)
                    && (self.wind_down.is_some()
                        || (attempt.purpose == Purpose::Claim
                            && (now.mono_ms >= self.compete_after_ms
                                || planted!(ResignedClaimBegins)))) =>
            {
                self.begin_term(now, attempt.lease, version, anchor);
            }
            Purpose::Renew => self.on_renewed(now, attempt.lease, version, anchor),
            Purpose::Reserve if !attempt.lease.released() => {
                let mut grace = self.grace_of(now, version, &attempt);
                if !unsettled {
                    (grace.length_ms, grace.reserved) = (self.foreign_room_ms(), true);
                }
                self.wait_out(grace);
                self.see_made(now);
            }
            Purpose::Claim | Purpose::Reserve => {
                if !self.obey_late(now, &asked.0, &asked.1) {
                    self.judge_moving(now);
                }
            }
            Purpose::Release | Purpose::Park => self.on_given_up(now, &attempt.lease),
        }
    }

    /// The record is what this session has written now.
    pub(super) fn see_own(&mut self, now: Now, lease: &Lease, version: Version) {
        let mut observation = Observation::first(version, &self.clocks, now);
        observation.made(self.clocks.newest());
        let reading = Reading::Lease(Box::new(lease.clone()));
        self.seen = Seen::Record { observation: Box::new(observation), reading };
    }

    pub(super) fn on_given_up(&mut self, now: Now, lease: &Lease) {
        self.name_leader((!lease.released()).then(|| lease.leader_id.clone()));
        if let Some(trigger) = &mut self.trigger {
            trigger.close_landed();
        }
        self.finish_wind_down(now);
    }

    /// How long a claim that has landed waits, in milliseconds, because it rests on a clock of the store that no write of
    /// ours has shown to be right; and whether the next answer can show it.
    pub(super) fn unproven_age(
        &mut self,
        attempt: &Attempt,
        unsettled: bool,
    ) -> Option<(u64, bool)> {
        let wait_ms = self.unproven_wait_ms.take().filter(|_| !planted!(StoreClockAlone))?;
        let taken = matches!(attempt.purpose, Purpose::Claim | Purpose::Reserve);
        let by_store = matches!(&self.seen,
            Seen::Record { observation, .. } if observation.has_store_clock(&self.clocks));
        let proven = by_store && self.clocks.pair_agrees();
        (taken && !proven).then_some((wait_ms, by_store && !unsettled))
    }

    /// Whether what has landed now may lie on unusable bytes that were put again under a leader. No other member begins a
    /// term over such bytes within this time after the look that showed them old: by the faster clock, because a host that
    /// slept meanwhile counts nothing by the other (S11).
    pub(super) fn unsettled(&self, now: Now, attempt: &Attempt) -> bool {
        let reserves = attempt.purpose == Purpose::Reserve;
        let Seen::Record { observation, reading } = &self.seen else { return reserves };
        if let Reading::Lease(lease) = reading {
            // It lies on a release, or was seen itself. Anything else is an old state, or has come whole only now.
            let over_this = attempt.condition == Condition::Match(observation.version.clone());
            let itself = lease.session.as_deref() == Some(&self.session)
                && lease.sequence == attempt.lease.sequence;
            let bare = lease.released() && lease.term.is_none();
            return reserves && !itself && !(over_this && bare);
        }
        let late = now.since_pessimistic_ms(self.seen_sent) >= self.foreign_room_ms();
        // A step of the clock has voided the anchor: how long ago the look was is unknown.
        let late = (late || attempt.anchor.lease_ms == 0) && !planted!(LateReservationIsTimely);
        late || self.age_to_claim_ms(observation, now) < self.config.grace_ms(self.longest_lease_ms)
    }

    /// The grace counts from here, not from the answer that showed absence: between that answer and this
    /// write somebody else may have created, led and been deleted.
    pub(super) fn on_created(&mut self, now: Now, attempt: &Attempt, version: Version) {
        self.wait_out(self.grace_of(now, version.clone(), attempt));
        if planted!(ClaimAbsenceWithoutGrace) {
            self.grace = None;
            return self.begin_term(now, attempt.lease.clone(), version, attempt.anchor);
        }
        if planted!(CreateRenewedInGrace) {
            let (purpose, condition) = (Purpose::Renew, Condition::Match(version));
            let lease = attempt.lease.clone();
            self.round = Some(Round { purpose, condition, lease, attempts: 0 });
            let at_ms = now.mono_ms + self.config.frequent_interval_ms;
            self.plan = Plan { at_ms, action: Action::Attempt };
            return;
        }
        if self.writes_apart_ms > 0 && self.clocks.covered() && self.wind_down.is_none() {
            // It is written over next.
            return self.plan_look(now, self.writes_apart_ms);
        }
        if self.clocks.covered() {
            return self.judge(now);
        }
        self.see_made(now);
    }

    fn grace_of(&self, now: Now, version: Version, attempt: &Attempt) -> Grace {
        let from = if planted!(GraceFromSending) { attempt.anchor.sent } else { now };
        self.grace_from(from, version, &attempt.lease)
    }

    fn wait_out(&mut self, grace: Grace) {
        if grace.length_ms > self.config.grace_ms(0) {
            self.problem = Some(Problem::LongWait);
        }
        self.grace = Some(grace);
    }

    /// The record is this session's own, and grants nothing yet.
    fn see_made(&mut self, now: Now) {
        match self.trigger.is_some() && self.wind_down.is_none() {
            // Whether the store says when it was made decides what it says of slots.
            true => self.plan_look(now, 0),
            false => self.judge(now),
        }
    }

    pub(super) fn begin_term(&mut self, now: Now, lease: Lease, version: Version, anchor: Anchor) {
        let (number, slot_ms) = (lease.term.unwrap_or(0), lease.slot);
        (self.grace, self.owed) = (None, None);
        self.seen_lease.0 = true;
        self.lapsed.0.set(false);
        let ended = self.wind_down.is_some() && !planted!(StopForgetsClaim);
        self.term = Some(HeldTerm { number, version, lease, anchor, ended });
        // A request may have come before the term was known to have begun: then it is told to nobody.
        let ended = self.obey(now) || ended;
        self.plan_renewal(now, anchor.sent);
        if self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_some()) {
            self.begin_release(now);
        }
        if let (Some(trigger), Some(slot_ms)) = (&mut self.trigger, slot_ms) {
            trigger.claim_landed(slot_ms, ended);
        }
        if !ended {
            if !planted!(AcquiredBeforeWrite) {
                self.announce(number);
            }
            self.name_leader(Some(self.server_id().to_owned()));
        }
    }

    pub(super) fn announce(&mut self, term: u64) {
        self.announced = Some(term);
        self.events.push_back(Event::Acquired { term });
    }

    pub(super) fn on_renewed(&mut self, now: Now, lease: Lease, version: Version, anchor: Anchor) {
        match &mut self.term {
            Some(term) if lease.term == Some(term.number) => {
                if !planted!(ConstantEtag) {
                    term.version = version;
                }
                term.lease = lease;
                term.anchor = anchor;
                self.forget_shared_name(now);
                self.plan_renewal(now, anchor.sent);
                self.obey(now);
            }
            None if planted!(LapsedRenewalAdopted) && anchor.remaining_ms(now).is_some() => {
                self.begin_term(now, lease, version, anchor);
            }
            // The term lapsed before this was known: the record is ours, without authority (S9). An older one of ours that an old
            // state has shown since is not the record.
            _ => {
                self.end_term(LostReason::Overtaken);
                if !self.obey_late(now, &lease, &version) {
                    self.judge(now);
                }
            }
        }
        if self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_some()) {
            self.release_again(now);
        }
    }

    /// Takes note of what a store says beside its newest answer (see [`Store::complaint`](crate::store::Store::complaint)). It is
    /// shown where nothing worse is known, and nothing is waited for because of it.
    pub fn complain(&mut self, fault: Option<Fault>) {
        self.complaint = fault.map(Problem::Store);
    }

    /// Takes note of what the store refuses to do; true if that is final. What has worked once is not given up for one
    /// answer, which may be a proxy's or of a moment (S8).
    pub(super) fn on_rejected(&mut self, fault: Fault, answered: bool) -> bool {
        let works = (self.accepted || answered) && !planted!(OneAnswerIsFinal);
        // Authority that is still proven lasts to its fence, but nothing is tried again (scenario 14).
        // A key that was made a moment ago is not known everywhere: it is asked for a second time.
        let again = fault.kind == FaultKind::Denied && self.refused_keys == 0;
        self.refused_keys = self.refused_keys.saturating_add(u32::from(fault.is_for_good()));
        self.failed = self.config.fail_fast && fault.is_for_good() && !works && !again;
        if self.failed {
            self.events.push_back(Event::Failed(fault.clone()));
        }
        self.problem = Some(Problem::Store(fault));
        self.failed
    }

    pub(super) fn plan_after_rejected_write(&mut self, now: Now) {
        if self.in_doubt() {
            return self.plan_look(now, 0);
        }
        self.round = None;
        if self.wind_down.is_some() {
            self.finish_wind_down(now);
        } else if self.term.is_some() {
            self.plan_renewal(now, now);
        } else {
            // The reads between may all be answered.
            self.failures = self.failures.max(2).max(self.rejections);
            self.plan_after_failure(now);
        }
    }
}
