//! The book of slots: which were claimed, begun, done, failed, and whether each claim, each job and
//! each closing write was right (scenarios 54 to 56).

use std::collections::{BTreeMap, BTreeSet};

use edgelect::election::SlotsOver;
use edgelect::lease::{Ask, Lease, Reading};
use edgelect::slots::{Missed, Policy};

use super::clocks::EPOCH_MS;
use super::justified::Writer;
use super::oracle::{Aim, Contract, Deed, Look, Oracle};
use super::slots::{Ended, Plan, Triggered};
use super::store::Shown;

/// The slots of a group by the all-seeing observer.
#[derive(Default)]
pub struct SlotOracle {
    /// For each claim that left: whether the record before it named no slot, so that all before the
    /// claimed one count as claimed.
    pub claims: BTreeMap<usize, bool>,
    /// The slot that the claim about to leave passes over because its session has run it, and that of
    /// each claim that left.
    passing: Option<u64>,
    passed: BTreeMap<usize, u64>,
    pub newest_ms: u64,
    /// Who began a slot's job, in which term.
    begun: BTreeMap<u64, Vec<(usize, u64)>>,
    done: BTreeSet<u64>,
    /// How the job of a session's term ended, where the session was told.
    pub ended: BTreeMap<(usize, u64), Ended>,
    /// Failed ones that gave no answer.
    pub unknown: BTreeSet<(usize, u64)>,
    failures: BTreeMap<u64, u64>,
    /// Slots up to here count as claimed by nobody's doing: nobody owes them.
    covered_ms: u64,
    /// Nobody can know any more what was claimed.
    pub forgotten: bool,
}

impl SlotOracle {
    /// The slots up to `until_ms` that are owed and neither done nor given up.
    pub fn owed(&self, plan: &Plan, until_ms: u64) -> Vec<u64> {
        let mut owed = Vec::new();
        let mut slot_ms = (self.covered_ms / plan.period_ms + 1) * plan.period_ms;
        while slot_ms <= until_ms {
            let spent = self.failures.get(&slot_ms).is_some_and(|n| *n >= plan.attempts);
            if !self.done.contains(&slot_ms) && !spent {
                owed.push(slot_ms);
            }
            slot_ms += plan.period_ms;
        }
        owed
    }
}

/// What a schedule says in the end, and what is true of the record that it was shown.
pub struct End {
    pub why: SlotsOver,
    /// The trigger's own slot, once it is known.
    pub own_ms: Option<u64>,
    /// Without a slot it counts all up to here as claimed at most.
    pub through_ms: Option<u64>,
    /// It is old enough to be healed, if nobody can read it (S7).
    pub healable: bool,
    /// The store shows old states.
    pub stale: bool,
}

/// Whether a record says which slots were claimed where nothing says when it was changed.
fn says_slot(before: &Lease) -> bool {
    before.acquired.is_some() && before.slot.is_some()
}

/// The slot that a record says was claimed, unless it lies ahead.
fn stored(before: Option<&Lease>, true_ms: u64, skew_ms: u64) -> Option<(u64, &Lease)> {
    let latest_ms = EPOCH_MS + true_ms + 3 * skew_ms + 2_000;
    let slot = before.and_then(|lease| Some((lease.slot?, lease)));
    slot.filter(|(slot_ms, _)| *slot_ms <= latest_ms)
}

impl Oracle {
    /// One write of a record's slot, before it leaves.
    pub fn check_slot(&mut self, writer: &Writer, before: Option<&Lease>, lease: &Lease, aim: Aim) {
        match (writer.trigger, aim) {
            (_, Aim::Create) | (Some(_), Aim::Reserve) => {}
            (Some(trigger), Aim::Claim) => self.check_slot_claim(writer, trigger, before, lease),
            (Some(_), Aim::Cover) => {
                let Lease { slot, slot_done, slot_result, slot_took_ms, slot_failures, .. } = lease;
                let bare = slot.is_some()
                    && lease.slot_term.is_none()
                    && (*slot_done, slot_result, *slot_took_ms, *slot_failures)
                        == (Some(true), &None, None, None);
                let blind = !self.contract.changes_told && before.is_none_or(|b| !says_slot(b));
                let blind = blind || !self.contract.always_dated;
                require!(self, bare && blind, "slot: what is covered";
                    "{before:?} became {lease:?}");
            }
            (Some(trigger), Aim::Release | Aim::Park)
                if trigger.told.as_ref().is_some_and(|(term, _)| lease.term == Some(*term)) =>
            {
                self.check_closing(trigger, before, lease);
            }
            _ => {
                let fields = |lease: &Lease| {
                    let Lease { slot, slot_done, slot_result, slot_took_ms, slot_failures, .. } =
                        lease;
                    (*slot, *slot_done, slot_result.clone(), *slot_took_ms, *slot_failures)
                };
                // What nobody has led with covers all up to its own last change.
                let covers = |before: &Lease| {
                    before.acquired.is_none()
                        && before.slot <= lease.slot
                        && lease.slot_done == Some(true)
                };
                let kept =
                    before.is_none_or(|before| fields(before) == fields(lease) || covers(before));
                require!(self, kept, "slot: kept by who runs none"; "{before:?} became {lease:?}");
            }
        }
    }

    fn check_slot_claim(
        &mut self,
        writer: &Writer,
        trigger: &Triggered,
        before: Option<&Lease>,
        lease: &Lease,
    ) {
        let session = writer.look.session;
        let slot_ms = lease.slot.unwrap_or(0);
        let fresh = lease.slot.is_some()
            && (lease.slot_done, &lease.slot_result, lease.slot_took_ms)
                == (Some(false), &None, None)
            && lease.slot_term == lease.term;
        require!(self, fresh, "slot: a claim begins anew";
            "{:?}, done {:?}", lease.slot, lease.slot_done);
        let skew_ms = writer.config.store_skew_ms;
        let latest_ms = EPOCH_MS + self.true_ms + 3 * skew_ms + 2_000;
        let early = slot_ms > latest_ms && self.contract.always_dated;
        require!(self, !early, "slot: no slot ahead of its time";
            "slot {slot_ms} is claimed {} ms ahead", slot_ms - EPOCH_MS - self.true_ms);
        let Some((stored_ms, before)) = stored(before, self.true_ms, skew_ms) else { return };
        if before.in_grace() {
            // No claim of a slot: what had been claimed before it is in the book.
            return;
        }
        let mine = before.session.as_deref() == Some(self.views[session].name.as_str());
        // This session has run it to a good end, whatever became of its closing write.
        let ran = trigger.ended_well(stored_ms);
        self.slots.passing = ran.then_some(stored_ms);
        let open = before.slot_done != Some(true) && !ran;
        let failures = before.slot_failures.unwrap_or(0);
        let owed =
            trigger.schedule.policy == Policy::AtLeastOnce && failures < trigger.schedule.attempts;
        let again = open && (owed || (mine && !trigger.began(stored_ms)));
        let right = if again {
            slot_ms == stored_ms && !trigger.began(slot_ms)
        } else {
            slot_ms > stored_ms
        };
        require!(self, right, "slot: grows, and reruns come first";
            "{slot_ms} is claimed over {stored_ms}, done {:?}, failures {:?}",
            before.slot_done, before.slot_failures);
        let counted = lease.slot_failures == before.slot_failures.filter(|_| again);
        require!(self, counted, "slot: failures are kept";
            "{:?} became {:?}", before.slot_failures, lease.slot_failures);
        if let Some((own_ms, _)) = writer.own_slot.filter(|_| !again) {
            self.check_missed(trigger, (stored_ms, slot_ms, own_ms));
        }
    }

    /// Which of the slots that nobody claimed comes next.
    fn check_missed(&mut self, trigger: &Triggered, of: (u64, u64, u64)) {
        const MOST: u64 = edgelect::slots::MAX_MISSED;
        let (stored_ms, slot_ms, own_ms) = of;
        let period_ms = trigger.schedule.period_ms.unwrap_or(0);
        let back_ms = own_ms.saturating_sub(slot_ms);
        let first = slot_ms <= stored_ms + period_ms;
        let right = match trigger.schedule.missed {
            Missed::Skip => back_ms == 0,
            Missed::Latest => back_ms == period_ms || (back_ms == 0 && first),
            Missed::All => first || back_ms == MOST * period_ms,
        };
        require!(self, right && own_ms >= slot_ms, "slot: missed ones, in order";
            "{slot_ms} after {stored_ms} for {own_ms} with {:?} and {period_ms}",
            trigger.schedule.missed);
    }

    /// The closing write says how the job ended, and nothing else changes (S12).
    fn check_closing(&mut self, trigger: &Triggered, before: Option<&Lease>, lease: &Lease) {
        let Some((term, end)) = &trigger.told else { return };
        let failures = before.and_then(|before| before.slot_failures);
        let failures = match end.failed {
            true => Some(failures.unwrap_or(0) + 1),
            false => failures,
        };
        let right = lease.term == Some(*term)
            && lease.slot == before.and_then(|before| before.slot)
            && lease.slot_done == Some(end.done)
            && lease.slot_result.as_deref() == Some(end.result.as_str())
            && lease.slot_took_ms == Some(end.took_ms)
            && lease.slot_failures == failures;
        require!(self, right, "slot: the closing write says how it ended";
            "{lease:?} for {end:?} of term {term}");
    }

    /// A claim of a slot has left.
    pub fn claims_slot(&mut self, session: usize, deed: usize, skew_ms: u64) {
        let Deed { sent_ms, .. } = self.deeds[deed];
        let before = self.shown_lease(session);
        let blind = stored(before, sent_ms, skew_ms).is_none_or(|(_, lease)| lease.in_grace());
        self.slots.claims.insert(deed, blind);
        if let Some(slot_ms) = self.slots.passing.take() {
            self.slots.passed.insert(deed, slot_ms);
        }
    }

    /// A write took effect.
    pub fn slot_lands(&mut self, deed: usize) {
        let Deed { aim, lease, .. } = &self.deeds[deed];
        let (aim, lease) = (*aim, lease.clone());
        let Some(slot_ms) = lease.slot else { return };
        self.slots.done.extend(self.slots.passed.get(&deed));
        if let Some(blind) = self.slots.claims.get(&deed).copied() {
            self.slots.forgotten |= self.outlived(deed);
            let newest_ms = self.slots.newest_ms;
            let grows = slot_ms > newest_ms || (slot_ms == newest_ms && !blind);
            let holds = grows || self.slots.forgotten;
            self.slots.newest_ms = newest_ms.max(slot_ms);
            if blind {
                self.slots.covered_ms = self.slots.covered_ms.max(slot_ms - 1);
            }
            require!(self, holds, "slot: claims only grow";
                "{slot_ms} was claimed after {newest_ms}");
        }
        if aim == Aim::Cover {
            self.slots.forgotten |= self.outlived(deed) || !self.contract.always_dated;
            let SlotOracle { newest_ms, forgotten, .. } = self.slots;
            self.slots.covered_ms = self.slots.covered_ms.max(slot_ms);
            require!(self, slot_ms >= newest_ms || forgotten, "slot: what was claimed is covered";
                "all up to {slot_ms} count as claimed after {newest_ms} was");
        }
        if matches!(aim, Aim::Release | Aim::Park) {
            if lease.slot_done == Some(true) {
                self.slots.done.insert(slot_ms);
            }
            if let Some(failures) = lease.slot_failures {
                self.slots.failures.insert(slot_ms, failures);
            }
        }
    }

    /// The job of a slot begins; whether it is a rerun.
    pub fn slot_begins(
        &mut self,
        session: usize,
        (slot_ms, term): (u64, u64),
        trigger: &Triggered,
    ) -> bool {
        let claimed = self.views[session].grant.map(|grant| self.deeds[grant].lease.clone());
        let right = claimed.is_some_and(|lease| {
            (lease.slot, lease.slot_done, lease.term) == (Some(slot_ms), Some(false), Some(term))
        });
        require!(self, right, "slot: a job begins by its claim";
            "slot {slot_ms} begins in term {term}");
        let twice = trigger.began(slot_ms);
        require!(self, !twice, "slot: once in a session"; "s{session} begins slot {slot_ms} again");
        let SlotOracle { begun, done, failures, forgotten, .. } = &mut self.slots;
        let runs = begun.entry(slot_ms).or_default();
        runs.push((session, term));
        let (times, first) = (runs.len(), runs[0]);
        let failed = failures.get(&slot_ms).copied().unwrap_or(0);
        let (done, forgotten) = (done.contains(&slot_ms), *forgotten);
        let policy = trigger.schedule.policy;
        let again = match policy {
            Policy::AtMostOnce => false,
            // A single clock that stood still may begin late: its token is refused.
            Policy::AtLeastOnce => {
                (!done && failed < trigger.schedule.attempts) || self.views[session].single
            }
        };
        require!(self, times == 1 || again || forgotten, "slot: at most once";
            "slot {slot_ms} begins for the {times}. time, first in term {} of s{}; {policy:?}, \
                 done {done}, failed {failed} times", first.1, first.0);
        times > 1
    }

    /// Whether this session's claim of a slot has taken effect and nobody has begun its job.
    pub fn claimed_in_vain(&self, session: usize, slot_ms: u64) -> bool {
        let claims = |deed: &Deed| {
            let own = deed.session == session && deed.aim == Aim::Claim;
            own && deed.lease.slot == Some(slot_ms) && deed.landed_ms.is_some()
        };
        let Contract { clocks, always_dated, .. } = self.contract;
        let judged = clocks && always_dated && !self.slots.forgotten;
        judged && !self.slots.begun.contains_key(&slot_ms) && self.deeds.iter().any(claims)
    }

    /// Whether the closing write of this term has taken effect.
    pub fn closed(&self, session: usize, term: u64) -> bool {
        self.deeds.iter().rev().any(|deed| {
            deed.session == session
                && deed.term == term
                && matches!(deed.aim, Aim::Release | Aim::Park)
                && deed.landed_ms.is_some()
        })
    }

    /// A schedule says why it needs nothing more.
    pub fn told_over(&mut self, look: Look, trigger: &Triggered, end: &End) {
        let End { why, own_ms, stale, .. } = *end;
        let Look { session, now } = look;
        let first = trigger.over.is_none();
        require!(self, first, "slot: one end"; "s{session} says {why:?} after {:?}", trigger.over);
        let slot_ms = own_ms.unwrap_or(0);
        let waited_ms = now.mono_ms.saturating_sub(trigger.began_mono_ms);
        let steady = !self.views[session].single;
        let right = match why {
            SlotsOver::Ran => trigger.began(slot_ms),
            // It ran a later slot again, which was claimed after its own.
            SlotsOver::Taken if trigger.runs.iter().any(|ran| ran.slot_ms > slot_ms) => true,
            SlotsOver::Taken => self.taken(look, trigger, end),
            SlotsOver::NewGroup => self.shown_lease(session).is_some_and(|lease| {
                let own = lease.session.as_deref() == Some(self.views[session].name.as_str());
                lease.in_grace() || (own && lease.released() && lease.slot_done == Some(true))
            }),
            SlotsOver::Blocked if trigger.lost => true,
            SlotsOver::Blocked => self.shown_lease(session).is_some_and(|lease| {
                lease.slot_done != Some(true) && lease.slot.is_some_and(|slot| trigger.began(slot))
            }),
            // Told to stop, it may have claimed a slot whose job never began.
            SlotsOver::Lost => trigger.lost || trigger.stopped,
            SlotsOver::Stopped => trigger.stopped,
            SlotsOver::Store => trigger.failed,
            SlotsOver::Paused => self.shown_lease(session).is_some_and(|lease| {
                lease.operator.as_ref().is_some_and(|request| request.ask == Ask::Pause)
            }),
            SlotsOver::OtherCron => trigger.schedule.cron.is_some(),
            SlotsOver::Full => !trigger.runs.is_empty() && !steady,
            SlotsOver::Ahead { .. } => {
                slot_ms > EPOCH_MS + trigger.began_ms || !self.contract.always_dated
            }
            SlotsOver::Unknown if stale || trigger.claimed => true,
            SlotsOver::Budget | SlotsOver::Unknown => {
                waited_ms + 2 >= trigger.schedule.budget_ms || !steady || trigger.stopped
            }
        };
        require!(self, right, "slot: the end that is told";
            "s{session} says {why:?} of slot {slot_ms} after {waited_ms} ms");
    }

    /// Whether the newest record says that the slot, or a later one, was claimed.
    fn taken(&self, look: Look, trigger: &Triggered, end: &End) -> bool {
        let session = look.session;
        let End { own_ms, through_ms, healable, .. } = *end;
        let slot_ms = own_ms.unwrap_or(0);
        let Some(sight) = &self.views[session].sight else { return false };
        let by_time = through_ms.is_some_and(|through_ms| slot_ms <= through_ms);
        let lease = match &sight.shown {
            Shown::Lease(lease) => lease,
            // Damaged on the way, it says nothing of what is stored.
            Shown::Other(Reading::Unreadable(..)) => {
                return by_time && (healable || self.own_book(&sight.version).is_none());
            }
            Shown::Other(_) => return false,
        };
        let mine = lease.session.as_deref() == Some(self.views[session].name.as_str());
        match stored(Some(lease), self.true_ms, 0) {
            Some((stored_ms, lease)) => {
                let own = mine && lease.slot_done != Some(true) && !trigger.began(stored_ms);
                slot_ms <= stored_ms && !own
            }
            // Where storage time is a wall clock's, it may lie ahead for others.
            None => {
                let timed = self.contract.always_dated && self.contract.changes_told;
                by_time || (!timed && lease.slot >= own_ms)
            }
        }
    }
}
