//! Giving the leadership up: authority ends, the work stops, then the record says so (S5, S12).

use super::{
    ATTEMPTS, Action, Anchor, Election, Event, HeldTerm, LostReason, Plan, Problem, Purpose, Round,
    SlotsOver, WindDown,
};
use crate::clock::Now;
use crate::lease::Stamp;
use crate::planted::planted;
use crate::store::Condition;

impl Election {
    /// Ends the term and with it the authority. The record is ours still, without authority (S9).
    pub(super) fn end_term(&mut self, reason: LostReason) {
        let Some(term) = self.term.take() else { return };
        self.round = None;
        self.forgotten = None;
        if self.announced.take().is_some() {
            self.tell_lost(term.number, reason);
            // The job may go on for a moment, so this session runs no other.
            let lost = self.trigger.as_ref().is_some_and(|trigger| trigger.runs_own());
            self.slots_over(if lost { SlotsOver::Lost } else { SlotsOver::Blocked });
        }
    }

    /// Says that the term is over. Its work may go on for a while, or ignore it.
    pub(super) fn tell_lost(&mut self, term: u64, reason: LostReason) {
        self.working = Some(term).filter(|_| self.trigger.is_none());
        self.events.push_back(Event::Lost { term, reason });
    }

    pub(super) fn on_work_ended(&mut self, now: Now, term: u64) {
        let ours = self.term.as_ref().is_some_and(|held| held.number == term);
        if let Some(wind_down) = self.wind_down.as_mut().filter(|_| ours) {
            wind_down.work_ended = true;
        }
        if self.working == Some(term) {
            self.working = None;
            if matches!(self.problem, Some(Problem::WorkGoesOn { .. })) {
                self.problem = None;
            }
            let held_back = std::mem::take(&mut self.held_back);
            let idle = self.term.is_none() && self.wind_down.is_none();
            if held_back && idle && self.outstanding.is_none() {
                self.plan_look(now, 0);
            }
        }
    }

    pub(super) fn begin_wind_down(&mut self, now: Now, park: bool, finish: bool) {
        let reason = if finish { LostReason::Stopped } else { LostReason::Resigned };
        self.give_up(now, park, finish, reason);
    }

    /// Gives the leadership up for this reason: the work stops, then the record says so (S12).
    pub(super) fn give_up(&mut self, now: Now, park: bool, finish: bool, reason: LostReason) {
        if self.finished {
            return;
        }
        // A pause keeps everybody from claiming by itself, and whoever resumes wants a leader.
        if !finish && reason != LostReason::Paused {
            // Also where the leadership is being given up already, perhaps of a term that was told to nobody: whoever
            // resigns sits out from then on, and never for less than they said before, by another lease.
            self.compete_after_ms = self.compete_after_ms.max(now.mono_ms + self.sit_out_ms());
        }
        if !finish || matches!(reason, LostReason::Paused | LostReason::SteppedDown) {
            self.yielded_term = self.highest_term;
        }
        if let Some(wind_down) = &mut self.wind_down {
            wind_down.finish |= finish;
            wind_down.park |= park && wind_down.until_ms.is_none();
            return;
        }
        // A reservation is released at once, unless it keeps a term, which would be succeeded without a wait; what was
        // created from absence is not (S7).
        // Nor is one that may have been followed by another write: a look decides what there is to release (S3).
        let newest = self.unresolved.is_empty();
        if let (Some(grace), Some((_, lease)), true) = (&self.grace, self.record(), newest)
            && ((grace.reserved && lease.term.is_none()) || planted!(ReleaseInGrace))
        {
            let (version, lease) = (grace.version.clone(), lease.clone());
            let lease_ms = lease.lease_ms.unwrap_or(grace.length_ms);
            let anchor = Anchor { sent: now, lease_ms, margin_ms: 0 };
            let number = lease.term.unwrap_or(0);
            self.term = Some(HeldTerm { number, version, lease, anchor, ended: true });
        }
        let acting = planted!(ParkUnderAuthority) && park;
        let announced = self.announced.take_if(|_| !acting);
        if let Some(term) = announced {
            self.tell_lost(term, reason);
        }
        if let Some(term) = &mut self.term {
            term.ended = !acting;
        }
        // Nor does anything more of it leave once the answer to what is under way has come.
        if self.outstanding.is_none() || !planted!(RoundAfterGivenUp) {
            self.round = None;
        }
        if self.term.is_some() || (self.claiming() && !planted!(ResignForgetsClaim)) {
            self.wind_down = Some(WindDown {
                park,
                finish,
                work_ended: announced.is_none() || planted!(ReleaseBeforeWorkEnded),
                until_ms: None,
                read_back: false,
            });
            if let (Some(wind_down), true) = (&mut self.wind_down, planted!(ClosedUnderJob)) {
                wind_down.work_ended |= self.trigger.is_some();
            }
            return;
        }
        self.slots_over(SlotsOver::Stopped);
        self.events.push_back(Event::GivenUp);
        if finish {
            self.finished = true;
        } else if self.outstanding.is_none() {
            self.plan_look(now, self.config.frequent_interval_ms);
        }
    }

    /// How long a session that resigned leaves the lease to others.
    pub(super) fn sit_out_ms(&self) -> u64 {
        self.config.leader_timeout_ms + self.config.frequent_interval_ms
    }

    pub(super) fn awaiting_work(&self) -> bool {
        self.term.is_some() && self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_none())
    }

    pub(super) fn advance_wind_down(&mut self, now: Now) {
        let Some(wind_down) = self.wind_down else { return };
        if wind_down.until_ms.is_some_and(|until_ms| now.mono_ms >= until_ms) {
            return self.finish_wind_down(now);
        }
        if self.outstanding.is_some() || wind_down.until_ms.is_some() {
            return;
        }
        let until_ms = Some(now.mono_ms + self.closing_ms());
        match &self.term {
            None => {
                // A claim left and nobody knows whether it landed: one look decides what there is to release.
                if !self.claiming() {
                    return self.finish_wind_down(now);
                }
                self.wind_down = Some(WindDown { until_ms, ..wind_down });
                self.round = None;
                self.plan_look(now, 0);
            }
            // The work did not stop in time: nothing is written, the lease runs out (S5).
            Some(term) if term.anchor.remaining_ms(now).is_none() => self.finish_wind_down(now),
            Some(_) if wind_down.work_ended => {
                self.wind_down = Some(WindDown { until_ms, ..wind_down });
                self.begin_release(now);
            }
            Some(_) => {}
        }
    }

    /// How long the attempts of a closing write and a read-back may take.
    pub(super) fn closing_ms(&self) -> u64 {
        self.config.attempts_ms() + 2 * self.writes_apart_ms
    }

    pub(super) fn begin_release(&mut self, now: Now) {
        let (Some(term), Some(wind_down)) = (&self.term, self.wind_down) else { return };
        let mut lease = term.lease.clone();
        // Nobody has led with a reservation, so there is nothing to keep.
        let park = wind_down.park && !(lease.in_grace() && lease.term.is_none());
        // A lease that is parked is this member's again at once, also where it was stopped only after it had resigned.
        let park = park && !self.yields();
        let purpose = if park { Purpose::Park } else { Purpose::Release };
        lease.parked = park;
        lease.park_at = None;
        if park {
            // Nobody acts meanwhile, so that a late trigger costs less than its lease: the group's longest is waited out.
            lease.lease_ms = Some(self.config.max_lease_ms);
        } else {
            lease.last_updated = Stamp::Released;
        }
        if planted!(PauseReleased) {
            lease.operator = None;
        }
        if let Some(trigger) = &self.trigger {
            trigger.close(&mut lease);
        }
        let condition = Condition::Match(term.version.clone());
        self.round = Some(Round { purpose, condition, lease, attempts: 0 });
        self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
        if planted!(ReleaseRereadVersion) {
            self.plan_look(now, 0);
        }
    }

    /// A refused tombstone met a renewal of our own that had landed: it is written once more (S12).
    pub(super) fn release_again(&mut self, now: Now) {
        match &mut self.wind_down {
            Some(wind_down) if !wind_down.read_back => {
                wind_down.read_back = true;
                self.begin_release(now);
            }
            _ => self.finish_wind_down(now),
        }
    }

    /// A closing write has not taken effect, yet, and its condition holds still: what is left of its attempts is made.
    pub(super) fn close_again(&mut self, now: Now) {
        match &self.round {
            Some(round) if (1..ATTEMPTS).contains(&round.attempts) => self.plan_next_attempt(now),
            _ => self.finish_wind_down(now),
        }
    }

    /// Who has resigned since an attempt to park releases with the next one.
    pub(super) fn park_no_more(&mut self, now: Now) {
        let parks = |round: &&Round| round.purpose == Purpose::Park;
        let Some(made) = self.round.as_ref().filter(parks).map(|round| round.attempts) else {
            return;
        };
        if self.yields() {
            self.begin_release(now);
            if let Some(round) = &mut self.round {
                round.attempts = made;
            }
        }
    }

    fn yields(&self) -> bool {
        let yielded = |term: &HeldTerm| term.number <= self.yielded_term;
        self.term.as_ref().is_some_and(yielded) || self.steps_down()
    }

    pub(super) fn finish_wind_down(&mut self, now: Now) {
        self.term = None;
        let tried = self.round.take().is_some_and(|round| round.attempts > 0);
        if let (Some(grace), true) = (&mut self.grace, tried) {
            // Its release may have landed: nothing is released over it again without a look (S8).
            grace.reserved = false;
        }
        if let Some(wind_down) = self.wind_down.take() {
            if self.trigger.is_some() {
                return self.slot_closed(now, wind_down.finish);
            }
            self.finished |= wind_down.finish;
            self.events.push_back(Event::GivenUp);
        }
        if self.outstanding.is_none() {
            self.plan_follow(now);
        }
    }
}
