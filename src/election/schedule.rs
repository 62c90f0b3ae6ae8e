//! Cron slots: which one to claim next, and when there is nothing left to do.

use super::{Election, Errand, Event, LostReason, Purpose, Seen, SlotsOver, WindDown};
use crate::clock::Now;
use crate::lease::{Lease, MAX_RESULT_BYTES, Reading, Stamp};
use crate::planted::planted;
use crate::slots::{OwnSlots, SlotEnd, StorageTimes, Verdict};

impl Election {
    pub(super) fn storage_times(&self, now: Now) -> StorageTimes {
        let changed_ms = match &self.seen {
            Seen::Record { observation, .. } => observation.changed_ms(),
            _ => None,
        };
        StorageTimes {
            now_ms: self.clocks.storage_ms(now),
            ceiling_ms: self.clocks.storage_ceiling_ms(now),
            dated: self.clocks.dated(),
            changed_ms,
            skew_ms: self.config.store_skew_ms,
        }
    }

    /// What the newest record allows, and the trigger's own slot; nothing without a record that may be claimed.
    pub(super) fn slot_verdict(&self, now: Now) -> Option<(u64, Verdict)> {
        let errand = self.errand.as_ref()?;
        let lease = match &self.seen {
            Seen::Record { reading: Reading::Lease(lease), .. } => Some(&**lease),
            // Mostly it was damaged on the way only, and says nothing of what is stored.
            Seen::Record { observation, reading: Reading::Unreadable(..) }
                if self.age_to_claim_ms(observation, now)
                    >= self.config.grace_ms(self.longest_lease_ms)
                    || planted!(DamagedSlotIsTaken) =>
            {
                None
            }
            _ => return None,
        };
        let times = self.storage_times(now);
        let slot_ms = errand.slot_ms.unwrap_or_else(|| errand.schedule.slot_at(&times));
        let Errand { schedule, begun, done, .. } = &**errand;
        let own = OwnSlots { session: &self.session, begun, done };
        Some((slot_ms, schedule.judge(slot_ms, lease, &own, &times)))
    }

    /// Ends a schedule that the newest record leaves nothing to do; false if it did.
    pub(super) fn errand_goes_on(&mut self, now: Now) -> bool {
        let Some((slot_ms, verdict)) = self.slot_verdict(now) else { return true };
        let old = self.clocks.newest().cached && !planted!(CachedDateAhead);
        if matches!(verdict, Verdict::Ahead { .. } | Verdict::Undated) && old {
            // A cache's `Date` may be of long ago.
            self.plan_follow(now);
            return false;
        }
        let (busy, made) = match &self.seen {
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                let age_ms = self.age_to_claim_ms(observation, now);
                let own = lease.session.as_ref() == Some(&self.session);
                // An own claim that waits to act keeps nobody busy.
                let busy = !own && !self.may_succeed(now, lease, age_ms);
                (busy, lease.in_grace() || own)
            }
            _ => (false, false),
        };
        let errand = self.errand.as_mut().expect("it has a verdict");
        errand.slot_ms = Some(slot_ms);
        let spent_ms = now.mono_ms.saturating_sub(errand.began_ms);
        let full = errand.schedule.is_full(errand.requests, spent_ms, errand.begun.len() as u64);
        let over = match verdict {
            // Somebody runs it, or died doing so: the next trigger will see.
            Verdict::Claim { slot_ms: next_ms, again: true, .. } if busy && slot_ms <= next_ms => {
                SlotsOver::Taken
            }
            Verdict::Claim { .. } if full => SlotsOver::Full,
            Verdict::Claim { .. } | Verdict::Undated => return true,
            Verdict::Taken if errand.begun.contains(&slot_ms) => SlotsOver::Ran,
            Verdict::Taken if made => SlotsOver::NewGroup,
            Verdict::Taken => SlotsOver::Taken,
            Verdict::Blocked => SlotsOver::Blocked,
            Verdict::OtherCron => SlotsOver::OtherCron,
            Verdict::Ahead { by_ms } => SlotsOver::Ahead { by_ms },
        };
        self.errand_over(over);
        false
    }

    /// Writes the slot that this claim takes into its record; or, where nobody can know which were claimed before, those
    /// that count as claimed, in a tombstone: no job needs authority.
    pub(super) fn claim_slot(
        &mut self,
        now: Now,
        verdict: Option<Verdict>,
        lease: &mut Lease,
    ) -> Purpose {
        let (slot_ms, again, purpose) = match verdict {
            None => return Purpose::Claim,
            Some(Verdict::Claim { slot_ms, again, left_out }) => {
                let own = |(_, lease): (_, &Lease)| lease.session.as_ref() == Some(&self.session);
                let late = again && self.record().is_some_and(own);
                if let Some(errand) = &mut self.errand {
                    // A claim of its own that was known to have landed too late is made once more.
                    errand.leaves_out = errand.leaves_out.filter(|_| late);
                    if !again {
                        errand.leaves_out = Some(left_out);
                    }
                    if let Some(cron) = &errand.schedule.cron {
                        cron.record(lease);
                    }
                }
                (slot_ms, again, Purpose::Claim)
            }
            Some(_) => {
                lease.last_updated = Stamp::Released;
                // A member with a fast clock may have claimed the trigger's own slot before the last change.
                let own_ms = self.errand.as_ref().and_then(|errand| errand.slot_ms).unwrap_or(0);
                let through_ms = self.storage_times(now).claimed_through_ms().max(own_ms);
                (through_ms, false, Purpose::Reserve)
            }
        };
        let unsaid = purpose == Purpose::Reserve && planted!(CoverWithoutSlot);
        lease.slot = Some(slot_ms).filter(|_| !unsaid);
        if !planted!(SlotDoneKept) {
            lease.slot_done = Some(purpose == Purpose::Reserve);
        }
        lease.slot_result = None;
        lease.slot_took_ms = None;
        let counts = again && !planted!(FailuresForgotten);
        lease.slot_failures = lease.slot_failures.filter(|_| counts);
        purpose
    }

    pub(super) fn on_slot_ended(&mut self, term: u64, end: SlotEnd) {
        let ours = self.term.as_ref().is_some_and(|held| held.number == term);
        let Some(errand) = self.errand.as_mut().filter(|_| ours) else { return };
        if let (true, Some(slot_ms)) = (end.done, errand.begun.last()) {
            errand.done.push(*slot_ms);
        }
        errand.end = Some((term, end));
        errand.recorded = false;
        if let Some(wind_down) = &mut self.wind_down {
            wind_down.work_ended = true;
            return;
        }
        if let Some(term) = self.announced.take() {
            self.events.push_back(Event::Lost { term, reason: LostReason::Done });
        }
        if let Some(term) = &mut self.term {
            term.ended = true;
        }
        if self.outstanding.is_none() {
            self.round = None;
        }
        let (park, finish, until_ms) = (false, false, None);
        self.wind_down =
            Some(WindDown { park, finish, work_ended: true, until_ms, read_back: false });
    }

    /// What follows the closing write of a slot.
    pub(super) fn slot_closed(&mut self, now: Now, finish: bool) {
        let Some(errand) = &mut self.errand else { return };
        let recorded = errand.recorded || planted!(RecordedUnheard);
        errand.extended = false;
        if let Some((term, _)) = errand.end.take() {
            self.events.push_back(Event::SlotClosed { term, recorded });
        }
        let ran = errand.slot_ms.is_some_and(|slot_ms| errand.begun.contains(&slot_ms));
        let dropped = errand.slot_ms.is_some() && errand.dropped == errand.slot_ms;
        if ran || finish {
            if !ran && !dropped {
                // What the record says of the slot is told rather than that it was stopped.
                self.errand_goes_on(now);
            }
            self.errand_over(match (ran, dropped) {
                (true, _) => SlotsOver::Ran,
                (false, true) => SlotsOver::Lost,
                (false, false) => SlotsOver::Stopped,
            });
            if finish {
                self.events.push_back(Event::GivenUp);
            }
        } else if recorded {
            self.judge(now);
        } else if self.outstanding.is_none() {
            self.plan_look(now, 0);
        }
    }

    pub(super) fn errand_over(&mut self, why: SlotsOver) {
        let Some(errand) = self.errand.as_ref().filter(|_| !self.finished) else { return };
        // A late trigger that ran a later slot again: its own was claimed before that one.
        let later = |own_ms| errand.begun.iter().any(|slot_ms| *slot_ms > own_ms);
        let ended = matches!(why, SlotsOver::Ran | SlotsOver::Lost);
        let why = match errand.slot_ms.is_some_and(later) {
            true => SlotsOver::Taken,
            false if !ended && self.has_covered() => SlotsOver::NewGroup,
            false if ended || !self.claim_in_doubt() => why,
            false if planted!(UnknownIsTaken) => SlotsOver::Taken,
            false => SlotsOver::Unknown,
        };
        if let (SlotsOver::Unknown, Some(errand)) = (why, &mut self.errand) {
            // If it has landed, nobody else tells of them.
            errand.left_out = errand.left_out.or(errand.leaves_out);
        }
        self.events.push_back(Event::SlotsOver(why));
        self.round = None;
        self.finished = true;
    }

    /// Whether the newest record is this session's own word that the trigger's slot counts as claimed, also where a
    /// `Date` that came later shows that it was said by a wrong clock.
    pub(super) fn has_covered(&self) -> bool {
        let (Some(errand), Some((_, lease))) = (&self.errand, self.record()) else { return false };
        let own = lease.session.as_ref() == Some(&self.session) && lease.released();
        own && lease.slot_done == Some(true)
            && errand
                .slot_ms
                .is_some_and(|own_ms| lease.slot >= Some(own_ms) && !errand.begun.contains(&own_ms))
    }

    /// Until when to wait for somebody else's lease, on the monotonic clock; nothing while there is more to do than
    /// to wait.
    pub(super) fn errand_until_ms(&self) -> Option<u64> {
        let errand = self.errand.as_ref()?;
        let claiming = self.round.as_ref().is_some_and(|round| round.attempts == 0);
        if self.term.is_some() || self.wind_down.is_some() || claiming {
            return None;
        }
        errand.until_ms
    }

    /// Ends a schedule whose budget is used up; true if it did.
    pub(super) fn errand_waited(&mut self, now: Now) -> bool {
        if let Some(errand) = &mut self.errand {
            let budget_ms = errand.schedule.budget_ms;
            if errand.until_ms.is_none() {
                errand.until_ms = Some(now.mono_ms.saturating_add(budget_ms));
                errand.began_ms = now.mono_ms;
            }
        }
        let over = self.errand_until_ms().is_some_and(|until_ms| now.mono_ms >= until_ms)
            && !planted!(BudgetForgotten);
        if over && self.outstanding.is_none() {
            self.errand_over(SlotsOver::Budget);
        }
        self.finished
    }
}

/// Says in a record how the job of its slot has ended.
pub(super) fn close_slot(lease: &mut Lease, end: &SlotEnd) {
    lease.slot_done = Some(end.done || (planted!(FailedIsDone) && end.failed));
    let word: String = end.result.chars().filter(|c| !c.is_control()).collect();
    let cut = (0..=word.len().min(MAX_RESULT_BYTES)).rev().find(|at| word.is_char_boundary(*at));
    lease.slot_result = Some(word[..cut.unwrap_or(0)].to_owned());
    lease.slot_took_ms = Some(end.took_ms);
    if end.failed {
        lease.slot_failures = Some(lease.slot_failures.unwrap_or(0).saturating_add(1));
    }
}
