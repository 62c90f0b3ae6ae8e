//! Where the election asks the trigger whose slots it runs, if it runs any ([`Trigger`](crate::slots::Trigger)).

use super::{Anchor, Election, Event, LostReason, Purpose, Seen, WindDown};
use crate::clock::Now;
use crate::lease::{Lease, Reading, Stamp};
use crate::planted::planted;
use crate::slots::{Holder, SlotEnd, SlotsOver, StorageTimes, Verdict};
use crate::store::{Condition, Version};

impl Election {
    /// `Last-Modified` of the newest record in milliseconds since the Unix epoch, where the store names it.
    pub(super) fn changed_ms(&self) -> Option<u64> {
        match &self.seen {
            Seen::Record { observation, .. } => observation.changed_ms(),
            _ => None,
        }
    }

    pub(super) fn storage_times(&self, now: Now) -> StorageTimes {
        StorageTimes {
            now_ms: self.clocks.storage_ms(now),
            ceiling_ms: self.clocks.storage_ceiling_ms(now),
            dated: self.clocks.dated(),
            changed_ms: self.changed_ms(),
            skew_ms: self.config.store_skew_ms,
        }
    }

    /// What the newest record allows, and the trigger's own slot; nothing without a record that may be claimed.
    pub(super) fn slot_verdict(&self, now: Now) -> Option<(u64, Verdict)> {
        let trigger = self.trigger.as_ref()?;
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
        Some(trigger.verdict(lease, &self.session, &self.storage_times(now)))
    }

    /// Ends a schedule that the newest record leaves nothing to do; false if it did.
    pub(super) fn slots_go_on(&mut self, now: Now) -> bool {
        let Some(judged) = self.slot_verdict(now) else { return true };
        let old = self.clocks.newest().cached && !planted!(CachedDateAhead);
        if matches!(judged.1, Verdict::Ahead { .. } | Verdict::Undated) && old {
            // A cache's `Date` may be of long ago.
            self.plan_follow(now);
            return false;
        }
        let holder = match &self.seen {
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                let age_ms = self.age_to_claim_ms(observation, now);
                let own = lease.session.as_ref() == Some(&self.session);
                // An own claim that waits to act keeps nobody busy.
                let busy = !own && !self.may_succeed(now, lease, age_ms);
                Holder { busy, made: lease.in_grace() || own }
            }
            _ => Holder { busy: false, made: false },
        };
        let paused = self.sees_pause(now);
        let trigger = self.trigger.as_mut().expect("it has a verdict");
        let over = trigger.is_over(now.mono_ms, judged, holder);
        let Some(over) = over.or(paused.then_some(SlotsOver::Paused)) else { return true };
        self.slots_over(over);
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
        let Some(verdict) = verdict else { return Purpose::Claim };
        let (own, times) = (self.own_record().cloned(), self.storage_times(now));
        let trigger = self.trigger.as_mut().expect("it has a verdict");
        if trigger.fill(verdict, own.as_ref(), &times, lease) {
            return Purpose::Claim;
        }
        lease.last_updated = Stamp::Released;
        Purpose::Reserve
    }

    /// What becomes of a claim is worth as much time as three attempts and a read-back take.
    pub(super) fn claim_leaves(
        &mut self,
        anchor: &Anchor,
        condition: &Condition,
        slot: Option<u64>,
    ) {
        let now = anchor.sent;
        let needed_ms = now.mono_ms.saturating_add(self.config.attempts_ms());
        let record = self.record().map(|(_, lease)| lease);
        let term = record.and_then(|lease| lease.term);
        let succeeds = match record {
            Some(Lease {
                term: Some(term), session: Some(_), sequence, acquired: Some(_), ..
            }) => (*term, *sequence),
            // Members of other makes count no writes; and the number of a creation, or where there is none, may be lower than
            // those before a deletion. Whoever takes such a record has a term that is higher than this.
            Some(Lease { term: Some(term), acquired: Some(_), .. }) => (*term, u64::MAX),
            _ => (self.foreign_term(now).max(term.unwrap_or(0)), u64::MAX),
        };
        let held_ms = anchor.lease_ms.saturating_sub(anchor.margin_ms);
        let sent = (now, self.clocks.begin(now));
        if let Some(trigger) = &mut self.trigger {
            let claims = slot.map(|slot_ms| (slot_ms, held_ms));
            trigger.claim_leaves(sent, needed_ms, condition, succeeds, claims);
        }
    }

    pub(super) fn note_claim(&mut self, now: Now, shown: Option<(&Version, &Reading)>) {
        let covered = self.clocks.covered();
        let Some(trigger) = &mut self.trigger else { return };
        let sent = trigger.doubted_since().filter(|_| self.clocks.trusted(now));
        let passed = sent.and_then(|(sent, since)| self.clocks.at_most_ms(now, sent, since));
        trigger.claim_shown(passed, shown, &self.session, covered);
    }

    pub(super) fn on_slot_ended(&mut self, term: u64, end: SlotEnd) {
        let ours = self.term.as_ref().is_some_and(|held| held.number == term);
        let Some(trigger) = self.trigger.as_mut().filter(|_| ours) else { return };
        trigger.job_ended(term, end);
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
        let Some(trigger) = &mut self.trigger else { return };
        let closing = trigger.closed();
        if let Some(term) = closing.term {
            self.events.push_back(Event::SlotClosed { term, recorded: closing.recorded });
        }
        match closing.over {
            Some(SlotsOver::Ran) => self.slots_over(SlotsOver::Ran),
            over if finish => {
                if over.is_none() {
                    // What the record says of the slot is told rather than that it was stopped.
                    self.slots_go_on(now);
                }
                self.slots_over(over.unwrap_or(SlotsOver::Stopped));
            }
            _ if closing.recorded => self.judge(now),
            _ if self.outstanding.is_none() => self.plan_look(now, 0),
            _ => {}
        }
        if finish {
            self.events.push_back(Event::GivenUp);
        }
    }

    pub(super) fn slots_over(&mut self, why: SlotsOver) {
        let fails = why == SlotsOver::Budget && self.fault().is_some();
        let covered = self.has_covered(fails);
        let own = self.own_record().cloned();
        let Some(trigger) = self.trigger.as_mut().filter(|_| !self.finished) else { return };
        let why = trigger.told(why, covered, own.as_ref());
        self.events.push_back(Event::SlotsOver(why));
        self.round = None;
        self.finished = true;
    }

    /// Whether the newest record is this session's own word that the trigger's slot counts as claimed.
    pub(super) fn has_covered(&self, fails: bool) -> bool {
        let (Some(trigger), Some((_, lease))) = (&self.trigger, self.record()) else {
            return false;
        };
        trigger.has_covered(lease, &self.session, fails)
    }

    /// The newest record, if this session wrote it.
    pub(super) fn own_record(&self) -> Option<&Lease> {
        let own = |lease: &&Lease| lease.session.as_ref() == Some(&self.session);
        self.record().map(|(_, lease)| lease).filter(own)
    }

    /// Until when to wait for somebody else's lease, on the monotonic clock; nothing while there is more to do than
    /// to wait.
    pub(super) fn slots_until_ms(&self) -> Option<u64> {
        let trigger = self.trigger.as_ref()?;
        let claiming = self.round.as_ref().is_some_and(|round| round.attempts == 0);
        if self.term.is_some() || self.wind_down.is_some() || claiming {
            return None;
        }
        trigger.until_ms()
    }

    /// Ends a schedule whose budget is used up; true if it did.
    pub(super) fn slots_waited(&mut self, now: Now) -> bool {
        if let Some(trigger) = &mut self.trigger {
            trigger.begin(now.mono_ms);
        }
        let over = self.slots_until_ms().is_some_and(|until_ms| now.mono_ms >= until_ms);
        if over && self.outstanding.is_none() {
            self.slots_over(SlotsOver::Budget);
        }
        self.finished
    }
}
