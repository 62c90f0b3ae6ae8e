//! Reads: what an answer shows of the record, of time and of others.

use super::{
    Action, Anchor, Attempt, Election, LOST_AFTER, LostReason, Outstanding, Peers, Plan, Problem,
    Purpose, Round, Seen, VERSIONS_MOVED,
};
use crate::age::Observation;
use crate::clock::{Drift, Now};
use crate::config::HostClock;
use crate::lease::{Lease, MAX_LEASE_MS, Reading, Stamp};
use crate::planted::planted;
use crate::store::{Answer, Condition, Facts, Outcome, Version};

impl Election {
    /// Takes note of the time: a lapsed term ends here and nowhere else.
    pub(super) fn observe(&mut self, now: Now) {
        if self.clocks.read(now) {
            self.restart_measures(now);
            if !planted!(StepBackKeepsTerm) {
                self.void_anchors();
                self.end_term(LostReason::Clock);
            }
            self.plan_look(now, 0);
        }
        let active = self.term.as_ref().is_some_and(|term| !term.ended);
        if active && self.lease_left(now).is_none() {
            self.end_term(LostReason::Expired);
            self.plan = Plan { at_ms: now.mono_ms, action: Action::Look };
        }
        let outstanding = match &self.outstanding {
            Some(Outstanding::Write { sequence }) => Some(*sequence),
            _ => None,
        };
        self.unresolved.retain(|attempt| {
            attempt.anchor.remaining_ms(now).is_some()
                || outstanding == Some(attempt.lease.sequence)
        });
    }

    /// A single clock stepped: what began before is measured anew from here, and what was judged by it is
    /// not acted on (S11).
    pub(super) fn restart_measures(&mut self, now: Now) {
        if let Seen::Record { observation, .. } = &mut self.seen
            && !planted!(StepBackKeepsAge)
        {
            observation.restart(&self.clocks, now);
        }
        if !self.clocks.covered() {
            // By the clock as it was, the read may seem to have left after what is measured from here on.
            self.seen_sent.mono_ms = self.seen_sent.mono_ms.min(now.mono_ms);
        }
        if let Some(grace) = &mut self.grace {
            grace.since = self.clocks.begin(now);
        }
        if let Some((since, _)) = &mut self.owed {
            *since = self.clocks.begin(now);
        }
        let closing_ms = self.closing_ms();
        if let Some(until_ms) = self.wind_down.as_mut().and_then(|down| down.until_ms.as_mut()) {
            *until_ms = (*until_ms).min(now.mono_ms + closing_ms);
        }
        if self.term.is_none() {
            self.round = None;
            self.plan_look(now, 0);
        }
        if let Some(trigger) = &mut self.trigger {
            trigger.stepped_back(now.mono_ms);
        }
        self.peers = Peers::default();
        if let Some(Outstanding::Peer { sent_ms, .. }) = &mut self.outstanding {
            *sent_ms = u64::MAX;
        }
        self.compete_after_ms = self.compete_after_ms.min(now.mono_ms + self.sit_out_ms());
        // When it will park by the clock as it is now, nobody has said.
        self.parks_at_ms = None;
        (self.not_before_ms, self.claim_after_ms) = (0, 0);
    }

    /// The read that has shown the record left then; by a single clock that stepped back since, at the latest now.
    fn note_sent(&mut self, now: Now, sent: Now) {
        self.seen_sent = Now { mono_ms: sent.mono_ms.min(now.mono_ms), ..sent };
    }

    /// Nobody knows how long ago these writes left: they may be recognised, but grant nothing (S11).
    pub(super) fn void_anchors(&mut self) {
        for attempt in &mut self.unresolved {
            attempt.anchor.lease_ms = 0;
        }
        self.unproven = None;
        self.forgotten = None;
    }

    pub(super) fn on_answer(&mut self, now: Now, answer: Answer) {
        let Some(outstanding) = self.outstanding.take() else { return };
        let Answer { outcome, facts } = answer;
        let heard = !matches!(outcome, Outcome::Unknown { .. } | Outcome::Rejected(_));
        let sent = match outstanding {
            Outstanding::Read { sent } => Some(sent),
            Outstanding::Write { sequence } => {
                let own = |attempt: &&Attempt| attempt.lease.sequence == sequence;
                self.unresolved.iter().find(own).map(|attempt| attempt.anchor.sent)
            }
            Outstanding::Peer { .. } => None,
        };
        let drift = match outcome {
            Outcome::Unknown { .. } => Drift::Unproven,
            Outcome::Rejected(_) => self.clocks.turned_away(now, &facts),
            _ => self.clocks.answer(now, sent.unwrap_or(now), &facts),
        };
        if let (Seen::Record { observation, .. }, Drift::StoreAhead | Drift::OwnAhead) =
            (&mut self.seen, drift)
        {
            observation.distrust_store_clock();
        }
        self.tell_date_ahead();
        if heard {
            if let Seen::Record { observation, .. } = &mut self.seen {
                observation.rebase(&self.clocks, now);
            }
            if let Some(grace) = &mut self.grace {
                grace.since = self.clocks.rebased(now, grace.since);
            }
            if let Some((since, _)) = &mut self.owed {
                *since = self.clocks.rebased(now, *since);
            }
        }
        // The single clock lost time. That it gained some needs nothing here: a wait ends no sooner than
        // the store's clock says.
        if self.clocks.single() && drift == Drift::StoreAhead && !planted!(DateAheadIgnored) {
            self.void_anchors();
            if self.term.as_ref().is_some_and(|term| !term.ended) {
                self.end_term(LostReason::Clock);
                self.plan_look(now, 0);
            }
        }
        if heard && matches!(self.problem, Some(Problem::Store(_))) && !self.unwritten {
            self.problem = None;
        }
        match outstanding {
            Outstanding::Read { sent } => {
                if heard {
                    self.note_round_trip(now.mono_ms.saturating_sub(sent.mono_ms));
                }
                self.on_read(now, sent, outcome, &facts, drift);
            }
            Outstanding::Write { sequence } => self.on_write(now, sequence, outcome),
            Outstanding::Peer { .. } => self.on_silent_peer(now),
        }
    }

    pub(super) fn on_read(
        &mut self,
        now: Now,
        sent: Now,
        outcome: Outcome,
        facts: &Facts,
        drift: Drift,
    ) {
        match outcome {
            Outcome::Found { version, reading } => {
                (self.failures, self.answered, self.contradicted) = (0, true, false);
                self.on_found(now, sent, version, reading, facts, drift);
            }
            Outcome::Unchanged => {
                (self.failures, self.answered) = (0, true);
                self.on_unchanged(now, sent, facts, drift);
            }
            Outcome::Missing => {
                (self.failures, self.answered, self.contradicted) = (0, true, false);
                self.on_missing(now, sent);
            }
            Outcome::Rejected(fault) => {
                self.unwritten = false;
                if !self.on_rejected(fault, self.answered) {
                    self.failures = self.failures.max(2);
                    self.plan_after_failure(now);
                }
            }
            // The request never left, and never will.
            Outcome::Unknown { cause, .. } if cause.is_for_good() => {
                self.unwritten = false;
                if !self.on_rejected(cause, self.answered) {
                    self.plan_after_failure(now);
                }
            }
            Outcome::Unknown { retry_after_ms, cause } => {
                (self.problem, self.unwritten) = (Some(Problem::Store(cause)), false);
                self.leave_alone(now, retry_after_ms);
                self.plan_after_failure(now);
            }
            // No store answers a read like this; nothing may be concluded from it.
            Outcome::Written { .. } | Outcome::Refused => self.plan_after_failure(now),
        }
    }

    pub(super) fn on_found(
        &mut self,
        now: Now,
        sent: Now,
        version: Version,
        reading: Reading,
        facts: &Facts,
        drift: Drift,
    ) {
        let known = match (&self.term, &self.seen) {
            (Some(term), _) => Some(&term.version),
            (None, Seen::Record { observation, .. }) => Some(&observation.version),
            _ => None,
        };
        self.unwritten &= known == Some(&version);
        if let Reading::Lease(lease) = &reading {
            // What names this session was a conditional write of its own; and what another has changed since, of its.
            let moved = known.is_some_and(|known| *known != version) && lease.session.is_some();
            self.accepted |= moved || lease.session.as_ref() == Some(&self.session);
        }
        self.note_reading(&reading);
        self.note_name(now, &reading);
        self.note_claim(now, Some((&version, &reading)));
        if planted!(ReleaseRereadVersion)
            && let Some(round) = self.round.as_mut().filter(|round| {
                round.attempts == 0 && matches!(round.purpose, Purpose::Release | Purpose::Park)
            })
        {
            round.condition = Condition::Match(version);
            self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
            return;
        }
        let held = self.term.as_ref().filter(|held| held.version == version);
        if let Some(lease) = held.map(|held| held.lease.clone()) {
            self.see_held(now, &lease, version, facts, drift);
            return self.on_not_landed(now);
        }
        if let Some(attempt) = self.landed_attempt(&reading) {
            self.compare_clocks(now, &attempt.anchor, facts);
            return self.on_landed(now, attempt, version);
        }
        if self.take_request(now, &version, &reading) {
            return;
        }
        if let Reading::Lease(lease) = &reading
            && self.obey_late(now, lease, &version)
        {
            return;
        }
        if planted!(RenewalOverAnything)
            && let Some(term) = &mut self.term
        {
            term.version = version;
            return self.on_not_landed(now);
        }
        if let Some(attempt) = self.proven_claim(now, &version, facts, drift) {
            return self.on_landed(now, attempt, version);
        }
        if self.is_blurred(&reading) {
            // It may be what was written last, damaged on the way: a second look tells, before the previous fence (S8).
            (self.contradicted, self.blurred) = (true, true);
            let misses = self.misses;
            self.observe_version(now, sent, version, reading, facts, drift);
            self.misses = misses;
            let pause_ms = self.pause_after_miss_ms();
            return self.plan_look(now, pause_ms);
        }
        self.end_term(LostReason::Overtaken);
        let same = matches!(&self.seen, Seen::Record { observation, .. } if observation.version == version);
        self.observe_version(now, sent, version, reading, facts, drift);
        self.unresolved.retain(|attempt| same || attempt.purpose == Purpose::Create);
        let refused = self.round.take().is_some();
        let justified = !(same && refused) && self.judge_claim(now);
        // A store that shows other records in turn, each of which may be claimed, is not to be asked without
        // pause either.
        if refused && (same || justified) {
            self.pause_claim(now);
        }
    }

    /// The version that is held is shown, perhaps after one that nobody could read: that is watched from its next answer on.
    fn see_held(&mut self, now: Now, lease: &Lease, version: Version, facts: &Facts, drift: Drift) {
        let seen = |seen: &Seen| matches!(seen, Seen::Record { observation, .. } if observation.version == version);
        if seen(&self.seen) {
            return;
        }
        self.see_own(now, lease, version);
        if let Seen::Record { observation, .. } = &mut self.seen {
            observation.shown(&self.clocks, now, facts, drift, None);
        }
    }

    /// A record of ours shows whether `Date` and `Last-Modified` are of one clock (S6 (b)).
    pub(super) fn compare_clocks(&mut self, now: Now, anchor: &Anchor, facts: &Facts) {
        if anchor.lease_ms == 0 {
            // A step of the clock has voided it: how long ago it left is unknown.
            return;
        }
        // The margin that counts is the other member's, which may be as short as the default.
        let margin_ms = anchor.margin_ms.min(anchor.lease_ms / 10);
        self.clocks.compare(facts, now.since_pessimistic_ms(anchor.sent), margin_ms);
        self.tell_date_ahead();
    }

    /// New settings say how far the store's own clocks may be apart: what they have proven by the old ones counts no more.
    pub(super) fn set_store_skew(&mut self, store_skew_ms: u64) {
        if !self.clocks.set_store_skew_ms(store_skew_ms) {
            return;
        }
        self.unproven = None;
        // Nor does anybody know by which settings others wait for the bytes below a reservation that is on its way (S7).
        let over_bytes =
            matches!(&self.seen, Seen::Record { reading: Reading::Unreadable(..), .. });
        for attempt in &mut self.unresolved {
            if attempt.purpose == Purpose::Reserve && over_bytes {
                attempt.anchor.lease_ms = 0;
            }
        }
        if let Seen::Record { observation, .. } = &mut self.seen {
            observation.forget_store_age();
        }
        self.tell_date_ahead();
    }

    fn tell_date_ahead(&mut self) {
        match self.clocks.date_ahead_ms() {
            Some(ahead_ms) => self.warning = Some(Problem::DateAhead { ahead_ms }),
            None => {
                self.warning.take_if(|known| matches!(known, Problem::DateAhead { .. }));
            }
        }
    }

    /// The write of ours that a record shows to have landed, if it is one that we may still adopt (S8).
    pub(super) fn landed_attempt(&self, reading: &Reading) -> Option<Attempt> {
        let Reading::Lease(lease) = reading else { return None };
        let named = planted!(OwnNameIsOwnWrite) && lease.leader_id == self.server_id();
        if lease.session.as_deref() != Some(&self.session) && !named {
            return None;
        }
        let ours = |attempt: &&Attempt| {
            let sent = &attempt.lease;
            // A foreign hand that keeps what it does not know may have released or taken our record since.
            let kept = sent.released() == lease.released() && sent.leader_id == lease.leader_id;
            sent.sequence == lease.sequence && (kept || named)
        };
        let mut attempt = self.unresolved.iter().find(ours).cloned()?;
        if !planted!(RequestOverUnknownLost) {
            // An operator may have written over it before this look.
            attempt.lease.operator.clone_from(&lease.operator);
        }
        Some(attempt)
    }

    pub(super) fn on_unchanged(&mut self, now: Now, sent: Now, facts: &Facts, drift: Drift) {
        if self.term.is_some() {
            return self.on_not_landed(now);
        }
        let Seen::Record { observation, .. } = &mut self.seen else {
            // Nobody asked for this: a 304 without a version of ours proves nothing.
            return self.plan_after_failure(now);
        };
        // A 304 adds its `Date` to the 200's `Last-Modified` (S6 (b)).
        let facts = Facts { last_modified_ms: None, ..*facts };
        observation.shown(&self.clocks, now, &facts, drift, None);
        if self.clocks.shows_present(&facts) {
            self.note_sent(now, sent);
        }
        if self.problem.is_none()
            && let Seen::Record { reading, .. } = &self.seen
        {
            // A read that failed was told in its place.
            self.problem = self.problem_of(reading);
        }
        if self.round.is_some() {
            return self.pause_claim(now);
        }
        self.judge(now);
    }

    /// The record still has the version that we hold: an unresolved write has not landed, yet.
    pub(super) fn on_not_landed(&mut self, now: Now) {
        if planted!(ReleaseRereadVersion) && self.round.as_ref().is_some_and(|r| r.attempts == 0) {
            self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
            return;
        }
        if let Some(wind_down) = self.wind_down {
            if wind_down.until_ms.is_some() {
                self.close_again(now);
            } else {
                self.round = None;
            }
            return;
        }
        let pause_ms = self.pause_after_miss_ms();
        self.plan = Plan { at_ms: now.mono_ms + pause_ms, action: Action::Attempt };
    }

    fn pause_after_miss_ms(&mut self) -> u64 {
        self.round = None;
        self.misses = self.misses.saturating_add(1);
        self.growing_pause_ms(self.misses, self.config.frequent_interval_ms)
    }

    /// Whether a leader's read-back of a renewal in doubt says neither that it landed nor that it did not. What nobody can
    /// read twice is stored so.
    fn is_blurred(&self, reading: &Reading) -> bool {
        let active = self.term.as_ref().is_some_and(|term| !term.ended);
        let renews = |attempt: &Attempt| attempt.purpose == Purpose::Renew;
        let doubted = active && self.unresolved.iter().any(renews);
        let blurred = doubted && matches!(reading, Reading::Unreadable(..)) && !self.blurred;
        blurred && !planted!(UnreadableIsLost)
    }

    pub(super) fn on_missing(&mut self, now: Now, sent: Now) {
        if planted!(DeletedIsRecreated)
            && let Some(lease) = self.term.as_ref().map(|term| term.lease.clone())
        {
            let (purpose, condition) = (Purpose::Create, Condition::Absent);
            self.round = Some(Round { purpose, condition, lease, attempts: 0 });
            self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
            return;
        }
        self.note_claim(now, None);
        self.end_term(LostReason::Deleted);
        self.unresolved.retain(|attempt| attempt.purpose == Purpose::Create);
        let creating = self.round.take().is_some_and(|round| round.purpose == Purpose::Create);
        // What was accepted and is not shown may be accepted again and again.
        let vanished = self.grace.take().is_some();
        self.unproven = None;
        self.seen = Seen::Absent;
        self.seen_sent = sent;
        let contradicted = self.competes && self.problem == Some(Problem::Contradicted);
        if !(contradicted || self.unwritten && creating) {
            (self.problem, self.unwritten) = (None, false);
        }
        self.name_leader(None);
        if (creating || vanished) && self.wind_down.is_none() {
            return self.pause_claim(now);
        }
        self.judge(now);
    }

    pub(super) fn note_reading(&mut self, reading: &Reading) {
        match reading {
            Reading::Lease(lease) => {
                self.seen_lease.0 |= !lease.in_grace() && !lease.is_creation();
                self.highest_term = self.highest_term.max(lease.term.unwrap_or(0));
                // A longer one, of another make, is waited out where it is read; a grace is a lease of ours.
                let lease_ms = lease.lease_ms.unwrap_or(0).min(MAX_LEASE_MS);
                self.longest_lease_ms = self.longest_lease_ms.max(lease_ms);
            }
            Reading::Unreadable(_, told) => {
                if !planted!(DamagedTermForgotten) {
                    self.highest_term = self.highest_term.max(told.term.unwrap_or(0));
                }
                if !planted!(DamagedLeaseForgotten) {
                    let lease_ms = told.lease_ms.unwrap_or(0).min(MAX_LEASE_MS);
                    self.longest_lease_ms = self.longest_lease_ms.max(lease_ms);
                }
            }
            Reading::Closed(_) => {}
        }
        let problem = self.problem_of(reading);
        if problem.is_some() || !self.unwritten {
            self.problem = problem;
        }
    }

    /// What somebody should know about a record.
    fn problem_of(&self, reading: &Reading) -> Option<Problem> {
        match reading {
            Reading::Lease(lease) => {
                let (lease_ms, max_lease_ms) = (lease.lease_ms?, self.config.max_lease_ms);
                // What is in its grace carries that, and what it says of a lease may have been read of damage.
                let long = lease_ms > max_lease_ms.max(self.config.grace_ms(0));
                (long && !lease.in_grace())
                    .then_some(Problem::LeaseTooLong { lease_ms, max_lease_ms })
            }
            Reading::Unreadable(flaw, _) => Some(Problem::Unreadable(*flaw)),
            Reading::Closed(why) => Some(Problem::closed(*why)),
        }
    }

    /// Records of other makes have no session: a living one of our name is of somebody who takes our record at once.
    pub(super) fn note_name(&mut self, now: Now, reading: &Reading) {
        let Reading::Lease(lease) = reading else { return };
        let named = !self.config.server_id.is_empty() && lease.leader_id == self.config.server_id;
        if named && lease.session.is_none() && !lease.released() {
            self.warning = Some(Problem::SharedName(self.config.server_id.clone()));
            self.shared_ms = now.mono_ms;
        }
        if named && self.is_namesake(lease) {
            self.warning.get_or_insert_with(|| Problem::SharedServerId {
                server_id: self.config.server_id.clone(),
                theirs: lease.leader_addr.clone(),
                ours: self.config.server_addr.clone(),
            });
            self.shared_ms = now.mono_ms;
        }
        if matches!(self.warning, Some(Problem::SharedServerId { .. })) {
            self.forget_shared_name(now);
        }
    }

    /// Whether a record of our name shows another process that goes on leading. The isolates of a Worker and the triggers of a
    /// cron share a name on purpose, and follow each other.
    fn is_namesake(&mut self, lease: &Lease) -> bool {
        let long_running = self.config.clock == HostClock::Two
            && self.config.sustain_ms.is_none()
            && self.trigger.is_none();
        let leads = !lease.released() && !lease.in_grace() && !lease.parked;
        match lease.session.as_deref().filter(|session| *session != self.session) {
            Some(session) if long_running && leads && lease.park_at.is_none() => {
                self.namesake.renews(session, lease.sequence)
            }
            _ => false,
        }
    }

    /// Nobody was seen under our name for two leases. Whoever was there would have written, or renewed, by now.
    pub(super) fn forget_shared_name(&mut self, now: Now) {
        let alone_ms = now.mono_ms.saturating_sub(self.shared_ms);
        if alone_ms >= 2 * self.config.leader_timeout_ms {
            self.warning.take_if(|known| {
                matches!(known, Problem::SharedName(_) | Problem::SharedServerId { .. })
            });
        }
    }

    /// Counts under how many new versions in a row one write of a member's was shown.
    pub(super) fn note_versions(&mut self, before: &Seen, version: &Version, reading: &Reading) {
        // A locker shows no record: it makes one up at each turn.
        if self.unfenced {
            return;
        }
        self.versions_moved = match before {
            // Every body that a member writes has another sequence (S4).
            Seen::Record { observation, reading: Reading::Lease(before) }
                if observation.version != *version =>
            {
                let of = |lease: &Lease| {
                    // An operator's request is written over the rest.
                    let request = lease.operator.as_ref().map(|request| request.id.clone());
                    (lease.session.clone(), lease.sequence, lease.term, request)
                };
                let again = matches!(reading, Reading::Lease(lease)
                    if before.session.is_some() && of(before) == of(lease));
                if again { self.versions_moved.saturating_add(1) } else { 0 }
            }
            Seen::Record { .. } => self.versions_moved,
            _ => 0,
        };
    }

    pub(super) fn observe_version(
        &mut self,
        now: Now,
        sent: Now,
        version: Version,
        mut reading: Reading,
        facts: &Facts,
        drift: Drift,
    ) {
        let read_before = self.has_read(&version);
        let before = std::mem::replace(&mut self.seen, Seen::Nothing);
        self.note_versions(&before, &version, &reading);
        let (mut observation, oldest_ms) = match before {
            Seen::Record { observation, reading: before } if observation.version == version => {
                // The same version is the same body: what could be read of it once was not damaged but on the way.
                reading = match (before, reading) {
                    (Reading::Unreadable(flaw, once), Reading::Unreadable(_, again)) => {
                        Reading::Unreadable(flaw, once.and(again))
                    }
                    (before, Reading::Unreadable(..)) if !planted!(DamageOnTheWayCounts) => before,
                    (_, reading) => reading,
                };
                if reading.may_come_back()
                    && observation.made_anew(facts)
                    && !planted!(RevivalUnseen)
                {
                    self.grace = None;
                    (observation.anew(&self.clocks, now), None)
                } else {
                    (*observation, None)
                }
            }
            Seen::Record { mut observation, .. } if planted!(ObservationOverVersions) => {
                observation.version = version;
                (*observation, None)
            }
            Seen::Nothing => (Observation::first(version, &self.clocks, now), None),
            _ => {
                // Once in step, a renewal found only after many looks has another phase than the one that was learned.
                let in_step_ms = self.config.frequent_interval_ms / 100;
                if self.misses >= LOST_AFTER {
                    self.early.take_if(|(early_ms, ..)| *early_ms <= in_step_ms);
                }
                self.misses = 0;
                self.forget_turn();
                let oldest_ms = now.mono_ms.saturating_sub(self.seen_sent.mono_ms);
                (Observation::first(version, &self.clocks, now), Some(oldest_ms))
            }
        };
        if planted!(AgeFromSending) && observation.is_new(now) {
            observation.restart(&self.clocks, sent);
        }
        observation.shown(&self.clocks, now, facts, drift, oldest_ms);
        if reading.may_come_back() && observation.moved() && !observation.moves_always() {
            self.problem.get_or_insert(Problem::MovingTimes);
        }
        if self.versions_moved >= VERSIONS_MOVED {
            self.problem.get_or_insert(Problem::MovingVersions);
        }
        if self.stamped_ahead(&reading, facts) {
            observation.distrust_store_clock();
        }
        let unread_ms = sent.mono_ms.saturating_sub(self.seen_sent.mono_ms);
        let put_off_ms = if observation.is_new(now) { unread_ms } else { 0 };
        if self.clocks.shows_present(facts) {
            self.note_sent(now, sent);
        }
        let dated = observation.has_store_clock(&self.clocks);
        self.grace = self.grace.take().filter(|grace| grace.version == observation.version);
        if let Reading::Lease(lease) = &reading {
            let own = lease.session.as_deref() == Some(&self.session);
            let late = own && lease.in_grace() && self.grace.is_none();
            if late && !planted!(LateCreationHasNoGrace) {
                // A create of ours that landed after we had given it up, or a reservation, over unusable bytes that may
                // have been put again under a leader: known by this read-back only (S7).
                self.grace = Some(self.grace_from(now, observation.version.clone(), lease));
            }
            self.own_is_shown(now, own && (observation.is_new(now) || !read_before));
            let leads = !lease.released() && !lease.in_grace();
            self.name_leader(leads.then(|| lease.leader_id.clone()));
        }
        self.seen = Seen::Record { observation: Box::new(observation), reading };
        self.note_read_for_peers(put_off_ms, dated);
    }

    /// Whether what this version says is known: it may have been damaged on the way when it was shown before.
    fn has_read(&self, version: &Version) -> bool {
        matches!(&self.seen, Seen::Record { observation, reading: Reading::Lease(_) }
            if observation.version == *version)
    }

    /// A record is shown; whether it is this session's own and is shown for the first time.
    fn own_is_shown(&mut self, now: Now, first: bool) {
        if let Some((since, _)) = self.owed.as_mut().filter(|_| first && !self.clocks.covered()) {
            // No condition kept the leader from renewing until this landed, however long after it left.
            *since = self.clocks.begin(now);
        }
    }

    /// Whether a record shows that its writer goes by another clock than the store's, as we may.
    pub(super) fn stamped_ahead(&self, reading: &Reading, facts: &Facts) -> bool {
        let (Reading::Lease(lease), Some(modified_ms)) = (reading, facts.last_modified_ms) else {
            return false;
        };
        let (Some(_), Stamp::At(stamp_ms)) = (&lease.session, lease.last_updated) else {
            return false;
        };
        self.clocks.stamped_ahead(stamp_ms, modified_ms, self.config.request_timeout_ms)
    }
}
