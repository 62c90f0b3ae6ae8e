//! One trigger on its way: which slots it has run, which claims of it may have landed, and when nothing is left to do.
//!
//! The election asks it at five points: before a claim, in the record of a claim, when a claim leaves, is answered or lands,
//! when a job ends and its record is closed, and when time passes. It knows nothing of leases but what it is given.

use super::{OwnSlots, Policy, Schedule, SlotEnd, SlotsOver, StorageTimes, Verdict};
use crate::clock::{Now, Since};
use crate::lease::{Lease, MAX_RESULT_BYTES, Reading};
use crate::planted::planted;
use crate::store::{Condition, Version};

/// The slots that one session is to run, and how far it is. Instants are of the monotonic clock, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Trigger {
    schedule: Schedule,
    /// The trigger's own slot, once it is known.
    slot_ms: Option<u64>,
    /// Until when to wait for somebody else's lease; set at the first turn.
    until_ms: Option<u64>,
    /// Whether it waits longer, for what becomes of a claim.
    extended: bool,
    /// When it began, and how many requests it has made.
    began_ms: u64,
    requests: u64,
    /// How many requests each step of the store is.
    per_step: u64,
    /// The slots that this session began to run.
    begun: Vec<u64>,
    /// How the job of the term that is being closed has ended, and whether the record is known to say so.
    end: Option<(u64, SlotEnd)>,
    recorded: bool,
    /// The jobs of this session that ended well, also where the record may not say so.
    done: Vec<u64>,
    /// What a claim that left was conditional on, until an answer shows what became of it: it may still land.
    unheard: Option<Condition>,
    /// Whether one of the writes with that condition counts slots as claimed that nobody has run.
    covers: bool,
    /// The highest term and sequence of the records that claims were to succeed: what is below is an old state.
    succeeds: Option<(u64, u64)>,
    /// A claim that may have landed and whose job was not begun. That of the trigger's own slot is kept when another leaves.
    doubted: Option<Doubt>,
    /// A slot that was claimed after a stop, so that its job never begins.
    dropped: Option<u64>,
    /// How many missed slots nobody will run once the claim that left has landed, and since one has.
    leaves_out: Option<u64>,
    left_out: Option<u64>,
}

/// The claim of a slot of which nobody knows whether it has landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Doubt {
    slot_ms: u64,
    /// When the first of its attempts left.
    sent: Option<(Now, Since)>,
    /// For how many milliseconds from then on nobody can have taken its lease over; none once it is known to have landed,
    /// whatever is read later.
    held_ms: u64,
    /// How many missed slots nobody will run if it has landed.
    leaves_out: Option<u64>,
}

/// Who holds the newest record, as far as a trigger must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    /// Somebody else holds the lease.
    pub busy: bool,
    /// The record was made by this very session, or grants nothing yet.
    pub made: bool,
}

/// What the closing write of a slot has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// The term whose job had ended, if one had.
    pub term: Option<u64>,
    /// Whether the record is known to say how.
    pub recorded: bool,
    /// Why the trigger is over, if it is: its own slot was run, or was claimed and never begun.
    pub over: Option<SlotsOver>,
}

impl Trigger {
    pub fn new(schedule: Schedule) -> Self {
        Self {
            slot_ms: schedule.slot_ms,
            schedule,
            until_ms: None,
            extended: false,
            began_ms: 0,
            requests: 0,
            per_step: 1,
            begun: Vec::new(),
            end: None,
            recorded: false,
            done: Vec::new(),
            unheard: None,
            covers: false,
            succeeds: None,
            doubted: None,
            dropped: None,
            leaves_out: None,
            left_out: None,
        }
    }

    /// The trigger's own slot, once it is known, and how many missed ones nobody will run.
    pub fn own_slot_ms(&self) -> Option<(u64, u64)> {
        Some((self.slot_ms?, self.left_out.unwrap_or(0)))
    }

    /// The slot that was claimed last.
    pub fn last_begun_ms(&self) -> Option<u64> {
        self.begun.last().copied()
    }

    /// Whether the trigger's own slot is the last that it has begun.
    pub fn runs_own(&self) -> bool {
        self.slot_ms == self.last_begun_ms()
    }

    /// What a record allows, and the trigger's own slot.
    pub fn verdict(
        &self,
        lease: Option<&Lease>,
        session: &str,
        times: &StorageTimes,
    ) -> (u64, Verdict) {
        let slot_ms = self.slot_ms.unwrap_or_else(|| self.schedule.slot_at(times));
        let own = OwnSlots { session, begun: &self.begun, done: &self.done };
        (slot_ms, self.schedule.judge(slot_ms, lease, &own, times))
    }

    /// Takes note of a verdict; says why nothing is left to do, if so.
    pub fn is_over(
        &mut self,
        now_ms: u64,
        (slot_ms, verdict): (u64, Verdict),
        holder: Holder,
    ) -> Option<SlotsOver> {
        self.slot_ms = Some(slot_ms);
        let spent_ms = now_ms.saturating_sub(self.began_ms);
        let runs = self.begun.len() as u64;
        let full = self.schedule.is_full(self.requests, spent_ms, runs, self.per_step);
        match verdict {
            // Somebody runs it, or died doing so: the next trigger will see.
            Verdict::Claim { slot_ms: next_ms, again: true, .. }
                if holder.busy && slot_ms <= next_ms =>
            {
                Some(SlotsOver::Taken)
            }
            Verdict::Claim { .. } if full => Some(SlotsOver::Full),
            Verdict::Claim { .. } | Verdict::Undated => None,
            Verdict::Taken if self.begun.contains(&slot_ms) => Some(SlotsOver::Ran),
            Verdict::Taken if holder.made => Some(SlotsOver::NewGroup),
            Verdict::Taken => Some(SlotsOver::Taken),
            Verdict::Blocked => Some(SlotsOver::Blocked),
            Verdict::OtherCron => Some(SlotsOver::OtherCron),
            Verdict::Ahead { by_ms } => Some(SlotsOver::Ahead { by_ms }),
        }
    }

    /// Writes into the record of a claim the slot that it takes; or, where nobody can know which were claimed before, those
    /// that count as claimed. `own` is the record before, if it is of this very session. True if the claim
    /// is for a job.
    pub fn fill(
        &mut self,
        verdict: Verdict,
        own: Option<&Lease>,
        times: &StorageTimes,
        lease: &mut Lease,
    ) -> bool {
        let (slot_ms, again, job) = match verdict {
            Verdict::Claim { slot_ms, again, left_out } => {
                // A claim of its own that was known to have landed too late is made once more.
                self.leaves_out = self.leaves_out.filter(|_| again && own.is_some());
                if !again {
                    self.leaves_out = Some(left_out);
                }
                if let (true, Some(own)) = (again, own) {
                    // Its own claim, made once more: that term has not begun.
                    lease.history = own.history.clone();
                }
                // A slot that is run again may be of the cron before this one, and so may the gap after it.
                if let Some(cron) = self.schedule.cron.as_ref().filter(|_| !again) {
                    cron.record(lease);
                }
                (slot_ms, again, true)
            }
            _ => {
                // A member with a fast clock may have claimed the trigger's own slot before the last change.
                let own_ms = self.slot_ms.unwrap_or(0);
                (times.claimed_through_ms().max(own_ms), false, false)
            }
        };
        lease.slot = Some(slot_ms).filter(|_| job || !planted!(CoverWithoutSlot));
        if !planted!(SlotDoneKept) {
            lease.slot_done = Some(!job);
        }
        lease.slot_term = lease.term.filter(|_| job);
        lease.slot_result = None;
        lease.slot_took_ms = None;
        let counts = again && !planted!(FailuresForgotten);
        lease.slot_failures = lease.slot_failures.filter(|_| counts);
        job
    }

    /// A claim leaves. What becomes of it is worth the time until `needed_ms`, whatever was left; once, so that a store
    /// that shows old states in turn is not asked for ever. `claims` is the slot and for how many milliseconds its lease is
    /// safe.
    pub fn claim_leaves(
        &mut self,
        (now, since): (Now, Since),
        needed_ms: u64,
        condition: &Condition,
        succeeds: (u64, u64),
        claims: Option<(u64, u64)>,
    ) {
        if let Some(until_ms) = self.until_ms.filter(|ms| *ms < needed_ms && !self.extended) {
            self.until_ms = Some(until_ms.max(needed_ms));
            self.extended = true;
        }
        let again = self.unheard.as_ref() == Some(condition);
        self.covers = claims.is_none() || (self.covers && again);
        self.unheard = Some(condition.clone());
        self.succeeds = self.succeeds.max(Some(succeeds));
        let own = self.doubted.filter(|doubt| Some(doubt.slot_ms) == self.slot_ms);
        self.doubted = match (claims, self.doubted) {
            (Some((slot_ms, held_ms)), Some(doubt)) if doubt.slot_ms == slot_ms => {
                Some(Doubt { held_ms: doubt.held_ms.min(held_ms), ..doubt })
            }
            (Some((slot_ms, held_ms)), _) => {
                let (sent, leaves_out) = (Some((now, since)), self.leaves_out);
                own.or(Some(Doubt { slot_ms, sent, held_ms, leaves_out }))
            }
            (None, _) => own,
        };
        if planted!(BegunBeforeClaim) {
            self.begun.extend(claims.map(|(slot_ms, _)| slot_ms));
        }
    }

    /// When the claim in doubt left, unless it is known to have landed.
    pub fn doubted_since(&self) -> Option<(Now, Since)> {
        self.doubted.and_then(|doubt| doubt.sent)
    }

    /// A read has shown the record, or none. A claim that was not heard of can't land any more once the record is somebody
    /// else's; and it has not landed before, if nobody could have taken its lease over since it left, so many milliseconds ago
    /// and at most so many more.
    pub fn claim_shown(
        &mut self,
        passed: Option<(u64, u64)>,
        shown: Option<(&Version, &Reading)>,
        session: &str,
        covered: bool,
    ) {
        if let Some((_, Reading::Lease(lease))) = shown
            && let (Some(slot_ms), Some(false)) = (lease.slot, lease.slot_done)
            && lease.session.as_deref() == Some(session)
            && !self.begun.contains(&slot_ms)
        {
            self.claim_unbegun(slot_ms);
        }
        let theirs = match shown {
            None => false,
            Some((version, _)) if self.unheard == Some(Condition::Match(version.clone())) => return,
            // The record may have been overwritten by itself, under which a claim still lands.
            Some((_, Reading::Lease(lease)))
                if !covered && lease.term <= self.succeeds.map(|(term, _)| term) =>
            {
                return;
            }
            // Its own, whose job never began, or a body that does not say whose it is.
            Some((_, Reading::Lease(lease))) if lease.session.as_deref() == Some(session) => return,
            Some((_, Reading::Unreadable(..))) => return,
            Some((_, Reading::Lease(lease))) => self.is_of_another(lease),
            Some((_, Reading::Closed(_))) => false,
        };
        self.unheard = None;
        // Where the store's whole seconds are much of a lease, they count for half of it at most.
        let held = |doubt: &Doubt| {
            let at_most = passed.map(|(ms, more_ms)| ms + more_ms.min(doubt.held_ms / 2));
            at_most.is_some_and(|ms| ms < doubt.held_ms)
        };
        self.doubted = self.doubted.filter(|doubt| !(theirs && held(doubt)));
    }

    /// Whether a record was written by another session after those that this one's claims were to succeed. An old state says
    /// nothing of what was written since; nor does one of a group that began anew after a deletion, or one with an operator's
    /// request over the same write, which may have been taken back before.
    fn is_of_another(&self, lease: &Lease) -> bool {
        let written = lease.term.map(|term| (term, lease.sequence));
        lease.session.is_some() && !lease.in_grace() && written > self.succeeds
    }

    /// The claim of a slot is known to have landed, and its job does not begin by that. An old state that is read later, or
    /// somebody else's hand, changes nothing of it.
    pub fn claim_unbegun(&mut self, slot_ms: u64) {
        let own = self.doubted.filter(|doubt| Some(doubt.slot_ms) == self.slot_ms);
        self.doubted = match own {
            Some(doubt) if doubt.slot_ms != slot_ms => Some(doubt),
            known => {
                let leaves_out = known.map_or(self.leaves_out, |doubt| doubt.leaves_out);
                Some(Doubt { slot_ms, sent: None, held_ms: 0, leaves_out })
            }
        };
    }

    /// The claim of a slot is known to have landed; `ended` if its job never begins.
    pub fn claim_landed(&mut self, slot_ms: u64, ended: bool) {
        // It has landed where that of a later slot could not have landed before. One of an earlier slot is not heard of by it.
        self.unheard = None;
        self.doubted = self.doubted.filter(|doubt| doubt.slot_ms < slot_ms);
        self.left_out = self.left_out.or(self.leaves_out.take());
        match ended {
            true => {
                self.dropped = Some(slot_ms);
                // A missed slot that no later trigger runs either.
                if self.slot_ms != Some(slot_ms) && self.schedule.policy == Policy::AtMostOnce {
                    self.left_out = Some(self.left_out.unwrap_or(0) + 1);
                }
            }
            false => self.begun.push(slot_ms),
        }
    }

    /// No claim is on its way any more.
    pub fn forget_claim(&mut self) {
        (self.unheard, self.doubted) = (None, None);
    }

    /// Whether nobody knows what became of this session's claim of the trigger's own slot: it may have landed, or may
    /// still. `own` is the newest record, if this session wrote it.
    pub fn claim_in_doubt(&self, own: Option<&Lease>) -> bool {
        // A write that counts the slot as claimed, which no record of its own, nor anybody else's, has shown to be over.
        let covers = self.unheard.is_some()
            && self.covers
            && own.is_none_or(|lease| lease.acquired.is_none())
            && !planted!(UnheardCoverSkipped);
        let doubted = self.doubted.map(|doubt| doubt.slot_ms);
        self.slot_ms.is_some_and(|own_ms| {
            (covers || doubted == Some(own_ms)) && !self.begun.contains(&own_ms)
        })
    }

    /// Whether a record is this session's own word that the trigger's slot counts as claimed, also where a `Date` that
    /// came later shows that it was said by a wrong clock.
    /// A record that it has made is one such, unless what failed is to be told in its place: no trigger claims that slot over it.
    pub fn has_covered(&self, lease: &Lease, session: &str, fails: bool) -> bool {
        let made = lease.in_grace() && !fails;
        let own = lease.session.as_deref() == Some(session) && (lease.released() || made);
        let covers = |own_ms| lease.slot >= Some(own_ms) && !self.begun.contains(&own_ms);
        own && lease.slot_done == Some(true) && self.slot_ms.is_some_and(covers)
    }

    /// The job of a term has ended.
    pub fn job_ended(&mut self, term: u64, end: SlotEnd) {
        if let (true, Some(slot_ms)) = (end.done, self.begun.last()) {
            self.done.push(*slot_ms);
        }
        self.end = Some((term, end));
        self.recorded = false;
    }

    /// Says in the record that closes a term how its job has ended.
    pub fn close(&self, lease: &mut Lease) {
        let Some((_, end)) = &self.end else { return };
        lease.slot_done = Some(end.done || (planted!(FailedIsDone) && end.failed));
        let word: String = end.result.chars().filter(|c| !c.is_control()).collect();
        let cut =
            (0..=word.len().min(MAX_RESULT_BYTES)).rev().find(|at| word.is_char_boundary(*at));
        lease.slot_result = Some(word[..cut.unwrap_or(0)].to_owned());
        lease.slot_took_ms = Some(end.took_ms);
        if end.failed {
            lease.slot_failures = Some(lease.slot_failures.unwrap_or(0).saturating_add(1));
        }
    }

    /// The closing write is known to have landed.
    pub fn close_landed(&mut self) {
        self.recorded = true;
    }

    /// The closing write is over, whatever became of it.
    pub fn closed(&mut self) -> Closing {
        self.extended = false;
        let ran = self.slot_ms.is_some_and(|slot_ms| self.begun.contains(&slot_ms));
        let dropped = self.slot_ms.is_some() && self.dropped == self.slot_ms;
        let over = match (ran, dropped) {
            (true, _) => Some(SlotsOver::Ran),
            (false, true) => Some(SlotsOver::Lost),
            (false, false) => None,
        };
        let recorded = self.recorded || planted!(RecordedUnheard);
        Closing { term: self.end.take().map(|(term, _)| term), recorded, over }
    }

    /// What is told of a trigger that ends for this reason: what surely became of its slot comes first.
    pub fn told(&mut self, why: SlotsOver, covered: bool, own: Option<&Lease>) -> SlotsOver {
        // A late trigger that ran a later slot again: its own was claimed before that one.
        let later = |own_ms| self.begun.iter().any(|slot_ms| *slot_ms > own_ms);
        let ended = matches!(why, SlotsOver::Ran | SlotsOver::Lost);
        let doubted = self.doubted.is_some_and(|doubt| Some(doubt.slot_ms) == self.slot_ms);
        let why = match self.slot_ms.is_some_and(later) {
            true if !doubted => SlotsOver::Taken,
            false if !ended && !doubted && covered => SlotsOver::NewGroup,
            false if ended || !self.claim_in_doubt(own) => why,
            _ if planted!(UnknownIsTaken) => SlotsOver::Taken,
            _ => SlotsOver::Unknown,
        };
        if why == SlotsOver::Unknown {
            // If it has landed, nobody else tells of them.
            let doubted = self.doubted.and_then(|doubt| doubt.leaves_out);
            self.left_out = self.left_out.or(doubted).or(self.leaves_out);
        }
        why
    }

    /// A step of the store is about to be made, of so many requests.
    pub fn count_step(&mut self, requests: u64) {
        self.per_step = requests;
        self.requests += requests;
    }

    /// The first turn, from which the budget counts.
    pub fn begin(&mut self, now_ms: u64) {
        if self.until_ms.is_none() {
            self.until_ms = Some(now_ms.saturating_add(self.schedule.budget_ms));
            self.began_ms = now_ms;
        }
    }

    /// Until when to wait for somebody else's lease.
    pub fn until_ms(&self) -> Option<u64> {
        self.until_ms.filter(|_| !planted!(BudgetForgotten))
    }

    /// A single clock has stepped back: no wait becomes longer than the budget.
    pub fn stepped_back(&mut self, now_ms: u64) {
        let latest_ms = now_ms.saturating_add(self.schedule.budget_ms);
        self.until_ms = self.until_ms.map(|until_ms| until_ms.min(latest_ms));
        // Nor does anybody know how long ago a claim left.
        self.doubted = self.doubted.map(|doubt| Doubt { held_ms: 0, ..doubt });
    }
}
