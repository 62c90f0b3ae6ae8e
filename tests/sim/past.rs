//! Is the past true that a record tells? Held against the book of all writes as each record is written.

use edgelect::json;
use edgelect::lease::history::{MAX_ENTRIES, MAX_HISTORY_BYTES};
use edgelect::lease::{Ask, History, Lease, Past, PastSlot, PastTerm, Stamp};

use super::clocks::EPOCH_MS;
use super::justified::Writer;
use super::oracle::{Aim, Deed, Oracle};
use super::slots::Ended;

impl Oracle {
    /// A record that takes the lease tells what the record told that it replaces, and how that one's term and slot ended.
    pub fn check_past(&mut self, writer: &Writer, lease: &Lease) {
        let sight = self.views[writer.look.session].sight.as_ref();
        let Some(sight) = sight.filter(|_| !self.views[writer.look.session].absent) else {
            let none = lease.history == History::default();
            return require!(self, none, "history: nothing before"; "{:?}", lease.history);
        };
        let mut told =
            sight.shown.lease().map_or_else(Vec::new, |before| before.history.entries().to_vec());
        let made = self.own_book(&sight.version).filter(|_| sight.shown.lease().is_some());
        let changed = made.map(|deed| self.deeds[deed].aim);
        // Nothing has begun in a term whose slot this session claims once more.
        let again = writer.trigger.is_some_and(|trigger| {
            let of = made.map(|deed| &self.deeds[deed]);
            let own = of.is_some_and(|deed| deed.session == writer.look.session);
            let slot = lease.slot.filter(|_| lease.slot_term == lease.term);
            let same = slot.is_some() && of.is_some_and(|deed| deed.lease.slot == slot);
            own && same && slot.is_some_and(|slot| !trigger.began(slot))
        });
        let ended = made.filter(|_| !again).map(|deed| self.ended(deed));
        told.extend(ended.unwrap_or_default());
        let at_ms = made.map_or((0, 0), |deed| (self.deeds[deed].sent_ms, self.true_ms));
        let slack_ms = 2 * writer.config.store_skew_ms + 2_000;
        let timed = !self.contract.wild && !self.contract.changes_made_up;
        let entries = lease.history.entries();
        let offset = told.len().saturating_sub(entries.len());
        let mut right = entries.len() <= told.len();
        for (entry, truth) in entries.iter().zip(&told[offset..]) {
            right &= match (entry, truth) {
                (Past::Term(entry), Past::Term(truth)) if truth.to == UNSAID => {
                    let during = EPOCH_MS + at_ms.0 - slack_ms..=EPOCH_MS + at_ms.1 + slack_ms;
                    let near = entry.to.is_none_or(|to_ms| during.contains(&to_ms));
                    let to = truth.to;
                    (near || !timed) && PastTerm { to, ..entry.clone() } == *truth
                }
                (entry, truth) => entry == truth,
            };
        }
        require!(self, right, "history: what it tells is true";
            "{entries:?} where {told:?} is true, over {changed:?}");
        let bytes = |entries: &[Past]| json::of(entries).len();
        let bounded = entries.len() <= MAX_ENTRIES && bytes(entries) <= MAX_HISTORY_BYTES;
        let full = |more: &[Past]| more.len() > MAX_ENTRIES || bytes(more) > MAX_HISTORY_BYTES;
        let newest = offset == 0 || full(&told[offset - 1..]);
        require!(self, bounded && newest, "history: the last ones, as many as fit";
            "{} of {} in {} bytes", entries.len(), told.len(), bytes(entries));
    }

    /// A term's own writes tell the past that its claim told.
    pub fn check_past_kept(&mut self, held: &Lease, lease: &Lease) {
        let kept = (&held.history, held.slot_term) == (&lease.history, lease.slot_term);
        require!(self, kept, "history: kept by its term";
            "{:?} became {:?}", held.history, lease.history);
    }

    /// How the term of a write ended, and its slot, given that nothing of it followed.
    fn ended(&self, deed: usize) -> Vec<Past> {
        let Deed { session, aim, term, ref lease, ref by, .. } = self.deeds[deed];
        let (how, to) = match aim {
            Aim::Create | Aim::Reserve => return Vec::new(),
            Aim::Release | Aim::Cover => ("released", UNSAID),
            Aim::Park => ("parked", stamp_ms(lease)),
            Aim::Claim | Aim::Renew => ("expired", stamp_ms(lease)),
        };
        let begins = |one: &Deed| {
            (one.session, one.term) == (session, term) && matches!(one.aim, Aim::Claim | Aim::Cover)
        };
        let Some(claim) = self.deeds.iter().position(begins) else { return Vec::new() };
        let from = self.deeds[claim].lease.acquired.and_then(|ms| u64::try_from(ms).ok());
        let asked = lease.operator.as_ref().filter(|request| request.term == Some(term));
        let how = match asked.map(|request| request.ask).filter(|_| how == "released") {
            Some(Ask::StepDown) => "steppedDown",
            Some(Ask::Pause) => "paused",
            _ => how,
        };
        let (by, how) = (by.clone(), how.to_owned());
        let mut past = vec![Past::Term(PastTerm { term, by: by.clone(), from, to, how })];
        let of_slot = self.slots.claims.contains_key(&claim);
        if let Some(slot) = self.deeds[claim].lease.slot.filter(|_| of_slot) {
            let closed = matches!(aim, Aim::Release | Aim::Park);
            let ended = self.slots.ended.get(&(session, term)).filter(|_| closed);
            let unknown = self.slots.unknown.contains(&(session, term));
            let outcome = match ended {
                Some(Ended::Failed) if unknown => "unknown",
                Some(ended) => ended.word(),
                None => "died",
            };
            past.push(Past::Slot(PastSlot { slot, outcome: outcome.to_owned(), by: Some(by) }));
        }
        past
    }

    /// What a job is told of the slot before is what its own record tells.
    pub fn check_previous(&mut self, session: usize, past: Option<&PastSlot>) {
        let Some(grant) = self.views[session].grant else { return };
        let history = &self.deeds[grant].lease.history;
        require!(self, past == history.last_slot(), "history: the slot before";
            "{past:?} of {history:?}");
    }
}

/// A tombstone names no time.
const UNSAID: Option<u64> = Some(u64::MAX);

fn stamp_ms(lease: &Lease) -> Option<u64> {
    match lease.last_updated {
        Stamp::At(ms) => u64::try_from(ms).ok(),
        Stamp::Released => UNSAID,
    }
}
