//! When to look next, or to renew.

use super::{
    ATTEMPTS, Action, Election, Event, MAX_RETRY_AFTER_MS, Outstanding, Plan, Problem, Round, Seen,
    Step,
};
use crate::clock::Now;
use crate::config::Follow;
use crate::lease::{Lease, MAX_LEASE_MS, Reading};
use crate::planted::planted;

/// How long after a lease was to be parked its successor looks, in milliseconds: the write takes about a look's time.
const PARK_LOOK_MS: u64 = 100;

impl Election {
    pub(super) fn wake_ms(&self, now: Now, plan_ms: u64) -> u64 {
        let mut wake_ms = plan_ms;
        if let Some(authority) = self.lease_left(now) {
            wake_ms = wake_ms.min(now.mono_ms.saturating_add(authority.remaining_ms));
        } else if let Some(left_ms) =
            self.term.as_ref().and_then(|term| term.anchor.remaining_ms(now))
        {
            wake_ms = wake_ms.min(now.mono_ms.saturating_add(left_ms));
        }
        if let Some(until_ms) = self.wind_down.and_then(|wind_down| wind_down.until_ms) {
            wake_ms = wake_ms.min(until_ms);
        }
        wake_ms.max(now.mono_ms + 1)
    }

    pub(super) fn look(&mut self, now: Now) -> Step {
        self.outstanding = Some(Outstanding::Read { sent: now });
        self.take_turn(now);
        let unless = match (&self.term, &self.seen) {
            // Something between here and the store may answer "unchanged" of an old version for ever.
            _ if self.contradicted && !planted!(RefusedReadConditional) => None,
            (Some(term), _) => Some(term.version.clone()),
            // A held-up copy of its creation can bring such a record back after a deletion, with the same bytes:
            // only the `Last-Modified` of a whole answer shows it.
            (None, Seen::Record { reading, .. }) if reading.may_come_back() => None,
            // Nothing is written over it, so that no refusal would ever show that it is gone.
            (None, Seen::Record { reading: Reading::Closed(_), .. }) => None,
            (None, _) if self.sees_pause(now) => None,
            // Nor has anything else the two times of one answer.
            (None, _) if self.unproven.is_some() => None,
            (None, Seen::Record { observation, .. }) => Some(observation.version.clone()),
            _ => None,
        };
        Step::Read { unless, timeout_ms: self.config.request_timeout_ms }
    }

    /// Honours `Retry-After`, even where that costs the term: the fence holds all the same (scenario 12).
    pub(super) fn leave_alone(&mut self, now: Now, retry_after_ms: Option<u64>) {
        let asked_ms = retry_after_ms.unwrap_or(0).min(MAX_RETRY_AFTER_MS);
        self.not_before_ms = now.mono_ms.saturating_add(asked_ms);
    }

    pub(super) fn plan_look(&mut self, now: Now, pause_ms: u64) {
        self.plan = Plan { at_ms: now.mono_ms.saturating_add(pause_ms), action: Action::Look };
    }

    /// New settings of a session without a term: a claim by the old ones is judged again before it leaves, or leaves once more,
    /// and what they have put off is not later than by the new ones.
    pub(super) fn plan_by_settings(&mut self, now: Now) {
        let interval_ms = self.peer_interval_ms();
        let jitter_ms = self.random_below(interval_ms / 10 + 1);
        let soon_ms = now.mono_ms + interval_ms + jitter_ms;
        if self.claim_after_ms > soon_ms {
            // All members may have been told at once, and none has waited for its turn.
            (self.claim_after_ms, self.turn) = (soon_ms, None);
        }
        if self.outstanding.is_some() {
            let under_way = self.round.take().filter(|round| round.attempts > 0);
            self.round = under_way.map(|round| Round { attempts: ATTEMPTS, ..round });
            return;
        }
        if self.round.take().is_some() {
            return self.plan_look(now, 0);
        }
        self.plan.at_ms = self.plan.at_ms.min(soon_ms);
    }

    pub(super) fn plan_renewal(&mut self, now: Now, after: Now) {
        let Some(term) = &self.term else { return };
        let span_ms = term.anchor.lease_ms.saturating_sub(term.anchor.margin_ms);
        // The settings may be newer than the lease that was written: three attempts have to fit into that, or a third.
        let fits_ms = span_ms.saturating_sub(self.config.attempts_ms()).max(span_ms / 3);
        let pause_ms = self.config.frequent_interval_ms.min(fits_ms);
        let at_ms = after.mono_ms.saturating_add(pause_ms);
        self.plan = Plan { at_ms: at_ms.max(now.mono_ms), action: Action::Attempt };
    }

    /// After a request without a usable answer: two quick retries, then a capped back-off (scenario 64).
    pub(super) fn plan_after_failure(&mut self, now: Now) {
        self.failures = self.failures.saturating_add(1);
        let [first_ms, second_ms] = self.config.retry_delays_ms;
        let frequent_ms = self.config.frequent_interval_ms;
        let cap_ms = self.longest_pause_ms();
        let urgent = self.term.is_some() || self.in_doubt();
        if urgent {
            // The back-off begins when the urgency is over: an outage just longer than a lease must not cost more.
            self.failures = self.failures.min(3);
        }
        let pause_ms = match self.failures {
            1 => first_ms,
            2 => second_ms,
            _ if urgent => second_ms.min(frequent_ms),
            many => {
                let doubled_ms = frequent_ms.saturating_mul(1 << (many - 3).min(16)).min(cap_ms);
                doubled_ms / 2 + self.random_below(doubled_ms / 2 + 1)
            }
        };
        self.plan_look(now, pause_ms);
    }

    /// Whether a write may have landed without anybody having said that it did not.
    pub(super) fn in_doubt(&self) -> bool {
        self.unproven.is_some() || self.unresolved.iter().any(|attempt| !attempt.rejected)
    }

    /// The pause after so many claims in a row have come to nothing: where a store takes reads and no writes, many members would
    /// otherwise claim for as long as that lasts.
    pub(super) fn growing_claim_pause_ms(&mut self, times: u32) -> u64 {
        // No longer than after reads that fail, with half as much by chance.
        let cap_ms = (self.longest_pause_ms() * 2 / 3).max(self.config.frequent_interval_ms);
        self.growing_pause_ms(times, cap_ms)
    }

    /// A trigger has a budget: it waits for the store as often as for somebody else's lease.
    fn longest_pause_ms(&self) -> u64 {
        match self.trigger {
            Some(_) => self.config.frequent_interval_ms,
            None => self.config.infrequent_interval_ms.max(self.config.leader_timeout_ms),
        }
    }

    pub(super) fn growing_pause_ms(&mut self, times: u32, cap_ms: u64) -> u64 {
        let [first_ms, _] = self.config.retry_delays_ms;
        let pause_ms = first_ms.saturating_mul(1 << (times.saturating_sub(1)).min(16)).min(cap_ms);
        pause_ms + self.random_below(pause_ms / 2 + 1)
    }

    /// When a follower looks next, now that the store has answered.
    pub(super) fn plan_follow(&mut self, now: Now) {
        self.note_wait(now);
        self.plan_next(now);
    }

    /// When a follower looks next.
    pub(super) fn plan_next(&mut self, now: Now) {
        let frequent_ms = self.config.frequent_interval_ms;
        let rank_ms = self.rank_ms();
        let jitter_ms = self.random_below(frequent_ms / 10 + 1);
        let soon_ms = now.mono_ms + frequent_ms + jitter_ms;
        // When a claim is justified, and this session's turn comes.
        let mut turn_ms = None;
        let (at_ms, action) = match &self.seen {
            _ if self.sees_pause(now) => {
                let left_ms = self.pause_left_ms(now).unwrap_or(u64::MAX);
                (soon_ms.min(now.mono_ms.saturating_add(left_ms)), Action::Look)
            }
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                let own = lease.session.as_deref() == Some(&self.session);
                let lease_ms = self.lease_to_wait_ms(lease);
                let proof_ms =
                    observation.proven_at_ms(&self.clocks, now, lease_ms).saturating_add(rank_ms);
                turn_ms = Some(proof_ms);
                let grace_left_ms = self.grace.as_ref().filter(|_| own).map_or(0, |grace| {
                    grace.length_ms.saturating_sub(self.clocks.passed_ms(now, grace.since))
                });
                match grace_left_ms {
                    // Looked at once meanwhile, to know when it was made.
                    left_ms if left_ms > 0 && !observation.was_read() => {
                        (soon_ms.min(now.mono_ms + left_ms), Action::Look)
                    }
                    left_ms if left_ms > 0 => (now.mono_ms + left_ms, Action::Look),
                    _ if own
                        || lease.released()
                        || self.age_to_claim_ms(observation, now) >= lease_ms =>
                    {
                        let ahead_ms = match lease.term {
                            None => self.foreign_term_ahead_ms(now),
                            Some(_) => 0,
                        };
                        let reached_ms = now.mono_ms + ahead_ms.max(1_000) + rank_ms;
                        turn_ms = Some(reached_ms).filter(|_| ahead_ms > 0);
                        let at_ms = if ahead_ms > 0 { soon_ms.min(reached_ms) } else { soon_ms };
                        (at_ms, Action::Look)
                    }
                    _ if self.peer_to_ask(now).is_some() => {
                        (now.mono_ms + self.peer_interval_ms(), Action::Ask)
                    }
                    _ => (self.stable_look_ms(now, proof_ms, jitter_ms), Action::Look),
                }
            }
            Seen::Record { observation, reading: Reading::Unreadable(..) } => {
                let wait_ms = self.config.grace_ms(self.longest_lease_ms);
                let proof_ms = observation.proven_at_ms(&self.clocks, now, wait_ms);
                let proven = proof_ms <= now.mono_ms;
                turn_ms = Some(proof_ms + rank_ms).filter(|_| !proven);
                let at_ms = turn_ms.map_or(soon_ms, |turn_ms| soon_ms.min(turn_ms));
                (at_ms, Action::Look)
            }
            _ => (soon_ms, Action::Look),
        };
        self.misses = self.misses.saturating_add(1);
        self.forget_claims_in_vain();
        // A single clock learns of a second only by the store's `Date`: no reading over and over meanwhile.
        let least_ms = self.config.retry_delays_ms[0].min(100);
        self.plan = Plan { at_ms: at_ms.max(now.mono_ms + least_ms), action };
        self.plan_turn(turn_ms.filter(|turn_ms| *turn_ms == at_ms));
    }

    /// Whoever looks at the elector is told why nobody leads for long.
    pub(super) fn note_wait(&mut self, now: Now) {
        if self.sees_pause(now) {
            return;
        }
        let Seen::Record { observation, reading } = &self.seen else { return };
        let lease_ms = match reading {
            Reading::Lease(lease) => self.lease_to_wait_ms(lease).min(MAX_LEASE_MS),
            _ => self.config.grace_ms(self.longest_lease_ms),
        };
        // A grace may be longer than it should be; a lease of somebody else's may not be watched for longer.
        let usual_ms = match reading {
            Reading::Lease(lease) if lease.in_grace() => self.config.grace_ms(0),
            _ => lease_ms,
        };
        let long_ms = usual_ms.saturating_mul(2).saturating_add(self.config.store_skew_ms);
        if observation.shown_for_ms(now) > long_ms.saturating_add(self.config.attempts_ms()) {
            self.problem.get_or_insert(Problem::LongWait);
        }
    }

    pub(super) fn stable_look_ms(&mut self, now: Now, proof_ms: u64, jitter_ms: u64) -> u64 {
        let frequent_ms = self.config.frequent_interval_ms;
        let Seen::Record { observation, reading: Reading::Lease(lease) } = &self.seen else {
            return now.mono_ms + frequent_ms;
        };
        // Another session of our own name may park at any moment, and so may a job end; a silent peer
        // is a sign; and a locker shows nobody's renewals. A tick is over before it is in step with renewals, and what it
        // asks for until then is counted.
        let (follow, is_tick) = (self.config.follow, self.config.sustain_ms.is_some());
        let has_store_clock = observation.has_store_clock(&self.clocks);
        let brief = is_tick && (follow == Follow::Tight || !has_store_clock);
        let own_name = lease.leader_id == self.config.server_id || self.trigger.is_some() || brief;
        if let Some(at_ms) = self.parking_look_ms(now, lease) {
            return proof_ms.min(at_ms);
        }
        if own_name || self.unfenced || now.mono_ms < self.peers.silent_until_ms {
            return proof_ms.min(now.mono_ms + frequent_ms + jitter_ms);
        }
        let fresh = observation.is_new(now);
        // Members of other makes have no terms, but names.
        let (leader_id, term) = (lease.leader_id.clone(), lease.term);
        let early_ms = match &self.early {
            // The interval may have become shorter since.
            Some((early_ms, of, at)) if (of, *at) == (&leader_id, term) => {
                (*early_ms).min(frequent_ms / 4)
            }
            _ => frequent_ms / 4,
        };
        match follow {
            // A tick ends before the look of the next interval: it would never see a lease run out.
            Follow::Frugal if !is_tick => {
                let late = observation.age_ms(&self.clocks, now) > frequent_ms;
                let usual_ms = now.mono_ms + self.config.infrequent_interval_ms + jitter_ms;
                if fresh && !late { usual_ms } else { usual_ms.min(proof_ms) }
            }
            Follow::Balanced | Follow::Frugal if has_store_clock => proof_ms,
            // Earlier than the next renewal after one was seen, a little later until one is, and less early from
            // then on: so the look settles just behind the renewals within a few of them, for one GET per
            // interval and a few more.
            _ if fresh => {
                self.early = Some((early_ms, leader_id, term));
                // From when the read left, as the leader counts: a slow store must not carry the look away.
                // A single clock may have stepped back since.
                self.seen_sent.mono_ms.min(now.mono_ms) + frequent_ms - early_ms
            }
            _ => {
                if self.misses <= 1 {
                    let early_ms = (early_ms / 4).max(frequent_ms / 500);
                    self.early = Some((early_ms, leader_id, term));
                }
                let late_ms =
                    (frequent_ms / 25).max(1) << self.misses.clamp(1, 6).saturating_sub(1);
                proof_ms.min(now.mono_ms + late_ms.min(frequent_ms))
            }
        }
    }

    /// When to look at a lease that a session of our own name means to park: soon after that time, and again and again
    /// until it has.
    fn parking_look_ms(&self, now: Now, lease: &Lease) -> Option<u64> {
        let named = lease.leader_id == self.config.server_id && self.trigger.is_none();
        let park_at_ms = lease.park_at.filter(|_| named)?;
        let left_ms = park_at_ms.saturating_sub_unsigned(self.clocks.likely_ms(now));
        // A park is late by no more than its attempts and a second of `Date`: beyond that the time says nothing.
        let late_ms = u64::try_from(left_ms.saturating_neg()).unwrap_or(0);
        if late_ms > self.config.attempts_ms() + 1_000 {
            return None;
        }
        let pause_ms = match u64::try_from(left_ms).unwrap_or(0) {
            0 => (PARK_LOOK_MS << self.misses.min(6)).min(self.config.frequent_interval_ms),
            left_ms => left_ms.saturating_add(PARK_LOOK_MS),
        };
        Some(now.mono_ms.saturating_add(pause_ms))
    }

    pub(super) fn name_leader(&mut self, leader_id: Option<String>) {
        if self.known_leader != leader_id {
            self.known_leader.clone_from(&leader_id);
            self.events.push_back(Event::NewLeader { leader_id });
        }
    }

    /// SplitMix64: small, seeded by the host, and never used for anything that has to be secret.
    pub(super) fn random(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn random_below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.random() % bound }
    }
}
