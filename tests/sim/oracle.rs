//! The all-seeing observer: holds the rules of the design against what the sessions say and do.
//!
//! It knows the true time, every write and every answer, and none of the election's inner state.
//! What a session may know is kept in its [`View`]; what is true is in the book of [`Deed`]s.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::election::{Authority, LostReason};
use edgelect::lease::{Lease, Reading};
use edgelect::store::{Answer, Condition, Facts, FaultKind, Outcome, Version};

use super::report::Ground;
use super::slot_oracle::SlotOracle;
use super::store::Shown;

/// One millisecond for each of two floors, so that rounding is never taken for a broken rule.
pub const ROUNDING_MS: u64 = 2;

/// What a write is for, as its bytes and condition say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    Create,
    /// Takes what may come back byte for byte, and grants nothing yet.
    Reserve,
    /// A tombstone that says which slots count as claimed, over a record that does not.
    Cover,
    Claim,
    Renew,
    Release,
    Park,
}

impl Aim {
    /// Whether it takes what is there, or makes what is not.
    pub fn takes(self) -> bool {
        matches!(self, Self::Create | Self::Reserve | Self::Cover | Self::Claim)
    }
}

/// One write that left, in the book of all writes.
#[derive(Clone, Debug)]
pub struct Deed {
    pub session: usize,
    pub aim: Aim,
    pub term: u64,
    pub lease: Rc<Lease>,
    /// The name of its member.
    pub by: String,
    pub margin_ms: u64,
    pub sent_ms: u64,
    pub version: Version,
    pub landed_ms: Option<u64>,
    /// Of a reservation over bytes that nobody can read: within this time after the read that showed them, other members begin
    /// no term over the same (S7).
    pub room_ms: Option<u64>,
    /// Over a creation, or one itself: nothing is done with it before the grace (S7).
    pub graced: bool,
    /// How many copies of it are on their way to the store.
    pub under_way: u64,
}

/// The newest version that a session was shown, and every proof of its age.
pub struct Sight {
    pub version: Version,
    pub shown: Shown,
    /// The earliest monotonic reading at which one of the answers proves the version was there.
    pub origin_ms: i128,
    pub first_ms: u64,
    /// Every answer so far came from a cache, whose `Date` measures nothing (S11).
    pub cached: bool,
    /// The greatest age that one answer has shown by the store's clock.
    pub by_store_ms: u64,
    modified_ms: Option<u64>,
    drifted: bool,
}

/// An instant by a session's own clock and in truth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instant {
    pub mono_ms: u64,
    pub true_ms: u64,
}

/// A record of the session's own that grants nothing yet, and since when its wait counts: created from absence, for the grace;
/// reserved, for as long as this.
pub struct Grace {
    version: Version,
    pub since: Instant,
    pub reserved_ms: Option<u64>,
}

/// What one session was told and has said so far.
#[derive(Default)]
pub struct View {
    pub name: String,
    pub rate_ppm: i64,
    pub single: bool,
    pub sight: Option<Sight>,
    /// Whether the newest answer about the object showed absence, and when one last did.
    pub absent: bool,
    absent_at: Instant,
    /// When its newest read left, and the newest that was answered with the record.
    pub asked_ms: u64,
    shown_sent_ms: u64,
    /// The same, before the newest answer.
    shown_before_ms: u64,
    /// The same without the time for which its host slept, which its monotonic clock does not count (S11).
    pub asked_lived_ms: u64,
    shown_lived_ms: u64,
    /// When the first read of a version left that was answered with it.
    first_looks: BTreeMap<usize, u64>,
    /// The grace of the record that this session created from absence.
    pub grace: Option<Grace>,
    /// The write that grants the authority, by the answers that this session got.
    pub grant: Option<usize>,
    open: Vec<usize>,
    pub announced: Option<u64>,
    acquired: Option<u64>,
    current: Option<u64>,
    lapsed: Option<u64>,
    pub highest_term: u64,
    /// The highest that it ever wrote, landed or not: also the number of a creation, which is no token.
    pub sent_term: u64,
    pub longest_lease_ms: u64,
    sequence: u64,
    pub date_ms: Option<u64>,
    /// The highest `Date` of an answer.
    pub latest_date_ms: Option<u64>,
    /// The newest answer that said anything, by the session's own clocks.
    pub heard: Now,
    sample: Option<(u64, u64)>,
    /// Its host knows by timers that nobody sees here when they fired too early: after a step back its clock may begin anew
    /// once more at any time.
    pub hides_timers: bool,
    begins_anew: bool,
    /// The `Date` from which storage time is known best, counted on by the fastest clock of the contract.
    best_date: Option<(u64, u64)>,
    /// When a single clock stepped back, which neither a reading nor a `Date` has shown yet.
    stepped_back_ms: Option<u64>,
    /// The newest answer came from a cache.
    newest_cached: bool,
    /// The newest reading that the session was given.
    read: Now,
    /// A held reading was polled, and no answer has come with a moving clock since (S11).
    held: bool,
    /// Writes without a usable answer since the last look at the record (S8).
    in_doubt: u64,
    /// What the newest request to the store was; none of a read.
    aim: Option<Aim>,
    /// Until when the store asked to be left alone.
    not_before_ms: u64,
    /// Until when it leaves the lease to others, having resigned.
    sits_out_ms: u64,
    /// The highest term that it had sent when it resigned last: neither this one nor an earlier one is parked.
    pub yielded_term: u64,
    /// How often in a row a body was shown that nobody can read.
    blurred: u32,
    /// The id of the newest request of an operator that asks it to end a term.
    asked_to_end: Option<String>,
    /// The store said that it cannot be used as it is set up, and had not worked before.
    unusable: bool,
    /// It has answered a read; it has taken a write of this session.
    answered: bool,
    accepted: bool,
    /// A write was refused since a read last showed the record, or its absence.
    refused: bool,
    /// The highest `Last-Modified` of an answer.
    latest_modified_ms: Option<u64>,
    /// The term and sequence that a peer has answered with, since when in truth, and whether too long ago.
    peer: Option<(Option<u64>, u64, u64)>,
    peer_stale: bool,
    leader: Option<String>,
    recent: VecDeque<u64>,
    pace_ms: (u64, u64),
}

/// Which rules hold in this schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contract {
    /// How far any clock's rate is from the truth at most.
    pub worst_ppm: u64,
    /// Clocks keep to the contract, so that ages can be held against true time.
    pub clocks: bool,
    /// The shortest lease that any member is configured to: what a record without `leaseMs` is
    /// waited out for at least.
    pub shortest_lease_ms: u64,
    /// The store names `Date`s.
    pub dated: bool,
    /// In every answer, so that tokens survive a deletion (S2).
    pub always_dated: bool,
    /// Some `Date`s are far too late: tokens need not follow it, and a claim by it waits for the authority of whoever leads.
    pub late_dates: bool,
    /// By `Date`s of caches alone, or by a `Last-Modified` too: without either, storage time may lag for minutes.
    pub timely: bool,
    /// The store names a `Last-Modified`.
    pub changes_told: bool,
    /// A proxy makes its own of it.
    pub changes_made_up: bool,
    /// Clocks do what they want, and backups are restored: only the rules that never depend on them
    /// hold.
    pub wild: bool,
}

/// Two moments of the store so near to one another may show the same second: its clocks are two seconds apart at most.
const UNTOLD_MS: u64 = 6_000;

/// The rules that hold whatever the clocks do.
const TIMELESS: [&str; 16] = [
    "I2",
    "I3",
    "I4",
    "S2",
    "S3",
    "S4",
    "token",
    "S8 sent once",
    "S7 a closed record",
    "the store code",
    "history",
    "slot: kept by who runs none",
    "slot: failures are kept",
    "slot: a claim begins anew",
    "slot: the closing write says how it ended",
    "slot: what is recorded is in the store",
];

/// A broken rule.
#[derive(Clone, Debug)]
pub struct Violation {
    pub at_ms: u64,
    pub check: &'static str,
    pub text: String,
}

#[derive(Default)]
pub struct Oracle {
    pub contract: Contract,
    pub deeds: Vec<Deed>,
    pub views: Vec<View>,
    /// The instant at which everything is judged now.
    pub true_ms: u64,
    pub violation: Option<Violation>,
    pub slots: SlotOracle,
    /// Which write made which version; looked up only, never walked.
    made: HashMap<Version, usize>,
    stored: Option<(u64, usize)>,
    highest_token: Option<u64>,
    /// Whether every new token is above all earlier ones.
    pub tokens_hold: bool,
    revived: bool,
    /// When a deleted version last came back.
    revived_ms: u64,
    /// The write that made it.
    revived_deed: Option<usize>,
    /// Something has happened that no rule can tell from what is allowed: nothing is judged from there on.
    beyond: bool,
}

/// One look at a session: who, and when by its own clocks.
#[derive(Clone, Copy)]
pub struct Look {
    pub session: usize,
    pub now: Now,
}

impl Oracle {
    pub fn new(contract: Contract) -> Self {
        Self { contract, tokens_hold: true, ..Self::default() }
    }

    pub fn join(&mut self, name: String, rate_ppm: i64, single: bool) {
        self.views.push(View { name, rate_ppm, single, ..View::default() });
    }

    /// Takes down the first broken rule; later ones may only be its echo.
    pub fn broke(&mut self, check: &'static str, text: String) {
        if self.beyond {
            return;
        }
        if self.contract.wild && !TIMELESS.iter().any(|timeless| check.starts_with(timeless)) {
            return;
        }
        self.violation.get_or_insert(Violation { at_ms: self.true_ms, check, text });
    }

    /// A single clock was stepped. After a step back its measures are put right here, and what it
    /// granted before is known to nobody (S11); after a step forward the checks against true time
    /// are the judge.
    pub fn stepped(&mut self, session: usize, true_ms: u64, step_ms: i64) {
        let view = &mut self.views[session];
        view.not_before_ms = 0;
        if step_ms >= 0 {
            return;
        }
        view.stepped_back_ms = Some(true_ms);
        view.begins_anew = view.hides_timers && view.single;
        view.recent.clear();
        // How long a peer has repeated itself is measured anew; how long the store was not read is judged by true time.
        (view.peer, view.peer_stale) = (None, false);
        view.absent_at.mono_ms = view.absent_at.mono_ms.saturating_add_signed(step_ms);
        if let Some(sight) = &mut view.sight {
            sight.origin_ms += i128::from(step_ms);
            sight.first_ms = sight.first_ms.saturating_add_signed(step_ms);
        }
        if let Some(grace) = &mut view.grace {
            grace.since.mono_ms = grace.since.mono_ms.saturating_add_signed(step_ms);
        }
    }

    /// A member from outside reads its clock when it likes: it may have seen a step back at once, and have begun anew what it
    /// watches, or will never see it. Nobody knows, so that no later reading shows it here, and the measures stay as they were
    /// put right.
    pub fn may_have_seen(&mut self, session: usize, now: Now) {
        let view = &mut self.views[session];
        (view.read, view.sample) = (now, None);
    }

    /// When the write took effect that grants the session its authority, in true time.
    pub fn granted_ms(&self, session: usize) -> u64 {
        let granted = self.views[session].grant.and_then(|grant| self.deeds[grant].landed_ms);
        granted.unwrap_or(0)
    }

    /// The write that grants the session a term, and its renewals of which nobody knows yet what became: the term ends with the
    /// first of them (S5).
    pub fn granting(&self, session: usize) -> Option<(u64, Vec<usize>)> {
        let View { grant, open, .. } = &self.views[session];
        let granted = (*grant)?;
        let term = self.deeds[granted].term;
        let renews = |open: &&usize| {
            let deed = &self.deeds[**open];
            deed.aim == Aim::Renew && deed.term == term
        };
        Some((term, open.iter().filter(renews).chain([&granted]).copied().collect()))
    }

    /// Whether the session has a write under way or in doubt that takes the lease.
    pub fn claims(&self, session: usize) -> bool {
        let View { open, announced, .. } = &self.views[session];
        announced.is_none() && open.iter().any(|open| self.deeds[*open].aim.takes())
    }

    /// Whether the session's hold on its clock excuses it from I1 and S5: a single clock that
    /// stepped back after the granting write left, before a reading or a `Date` has shown it.
    fn excused(&self, session: usize) -> bool {
        let view = &self.views[session];
        let sent_ms = view.grant.map_or(0, |grant| self.deeds[grant].sent_ms);
        view.stepped_back_ms.is_some_and(|step_ms| step_ms >= sent_ms)
    }

    /// I1: two sessions have authority at this instant.
    pub fn leaders(&mut self, first: (usize, u64), second: (usize, u64)) {
        if self.excused(first.0) || self.excused(second.0) {
            return;
        }
        let names = [first.0, second.0].map(|session| self.views[session].name.clone());
        require!(self, false, "I1 one authority";
            "{} has term {} while {} has term {}", names[0], first.1, names[1], second.1);
    }

    /// I1: a member of another make acts while this session has authority.
    pub fn beside(&mut self, (session, term): (usize, u64), foreign: &str) {
        if !self.excused(session) {
            let name = self.views[session].name.clone();
            self.broke("I1 one authority", format!("{name} has term {term} while {foreign} acts"));
        }
    }

    /// A body was accepted by the store (I2). A record in its grace carries no token yet: its
    /// number may be older than a deleted one's where its creation was held up on the way.
    pub fn accepted(&mut self, deed: usize) {
        let Deed { term, session, landed_ms, .. } = self.deeds[deed];
        self.deeds[deed].landed_ms.get_or_insert(self.true_ms);
        // A held-up duplicate that lands on absence brings a deleted version back, and with it whatever
        // waits for that version; what is handed out is still held against every earlier token.
        // What left before a deleted version came back, or a second copy on top of the one that brought it back.
        let outlived = self.outlived(deed) || landed_ms.is_some();
        // A creation and a reservation grant nothing, and whoever claims on them is judged there.
        self.beyond |= outlived && !matches!(self.deeds[deed].aim, Aim::Create | Aim::Reserve);
        if landed_ms.is_some() {
            (self.revived, self.revived_ms) = (true, self.true_ms);
            self.revived_deed = Some(deed);
        }
        self.slot_lands(deed);
        if self.deeds[deed].lease.acquired.is_none() || self.revived {
            return;
        }
        if let Some((before, author)) = self.stored.filter(|_| self.tokens_hold) {
            let grows = term > before || (term == before && session == author);
            require!(self, grows, "I2 stored terms grow"; "term {term} was stored after {before}");
        }
        self.stored = Some((term, session));
    }

    /// Whether a write that left before a deleted version came back lands on it: two held-up copies,
    /// one after another, which no rule can tell from the first time.
    pub fn outlived(&self, deed: usize) -> bool {
        self.revived && self.deeds[deed].sent_ms <= self.revived_ms
    }

    /// Whether a session was shown last what a copy has brought back after a deletion.
    pub fn shows_revived(&self, session: usize) -> bool {
        let shown = self.views[session].sight.as_ref().map(|sight| &sight.version);
        let deed = shown.and_then(|version| self.made.get(version));
        deed.is_some_and(|deed| self.revived_deed == Some(*deed))
    }

    /// Whether a claim is the next attempt of one that was judged before a deleted version came back.
    pub fn retries_revived(&self, session: usize) -> bool {
        let View { aim, in_doubt, .. } = &self.views[session];
        self.revived && matches!(aim, Some(Aim::Claim | Aim::Cover)) && *in_doubt > 0
    }

    /// A claim on a version that came back after the read that it rests on had left, or before its author's first look at it
    /// where no `Date` can have told that apart: no rule can tell, and two may lead from here on (docs/proof.md).
    pub fn rests_on_revived(&mut self, session: usize, version: &Version) {
        let View { shown_sent_ms, first_looks, .. } = &self.views[session];
        let Some(&deed) = self.made.get(version).filter(|deed| self.revived_deed == Some(**deed))
        else {
            return;
        };
        let Deed { session: author, landed_ms, .. } = self.deeds[deed];
        let soon = self.revived_ms.saturating_sub(landed_ms.unwrap_or(0)) < UNTOLD_MS;
        let own = author == session && (soon || !self.contract.always_dated);
        let first_look = first_looks.get(&deed);
        let late = own && first_look.is_none_or(|ms| *ms >= self.revived_ms);
        // Who saw it before it was deleted counts its wait from then, where nothing says that it was put again.
        let untold =
            !self.contract.changes_told && first_look.is_some_and(|ms| *ms < self.revived_ms);
        if *shown_sent_ms <= self.revived_ms || late || untold {
            self.beyond = true;
        }
    }

    /// An operator restored an earlier record: the newest terms are forgotten, which may lower
    /// tokens.
    pub fn rolled_back(&mut self) {
        self.revived = true;
        self.forget();
    }

    /// The object was deleted or overwritten by somebody outside: without a `Date` tokens may fall
    /// (S2).
    pub fn tampered(&mut self) {
        let Contract { always_dated, timely, clocks, .. } = self.contract;
        if !(self.tokens_hold && always_dated && timely && clocks) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.slots.forgotten = true;
        (self.tokens_hold, self.stored, self.highest_token) = (false, None, None);
    }

    /// One look at a session's authority, before or after it was told something.
    pub fn looked(&mut self, look: Look, authority: Option<Authority>, polled: bool) {
        let Look { session, now } = look;
        if polled {
            self.views[session].read(now);
        }
        let view = &mut self.views[session];
        let Some(Authority { term, remaining_ms }) = authority else {
            if let Some(term) = view.current.filter(|_| !view.single) {
                view.lapsed = view.lapsed.max(Some(term));
                view.current = None;
            }
            let late = polled && view.announced.is_some() && !view.single;
            return require!(self, !late, "S10 lost is told";
                "authority is gone after a poll and no Lost was told");
        };
        view.current = Some(term);
        let (lapsed, announced) = (view.lapsed, view.announced);
        require!(self, lapsed < Some(term), "S9 no term resumes";
            "term {term} has authority again");
        require!(self, announced == Some(term), "S10 authority is told";
            "authority of term {term} while {announced:?} is told");
        let hidden = self.views[session].held;
        require!(self, !hidden, "S11 a held clock";
            "authority of term {term} before the answer after a held reading");
        require!(self, remaining_ms > 0, "S5 fence"; "nothing remains");
        self.check_fence(now, session, term, remaining_ms);
    }

    /// S5: authority ends at `sent + lease - margin` of a write that landed, and of every one in
    /// doubt.
    fn check_fence(&mut self, now: Now, session: usize, term: u64, left_ms: u64) {
        let view = &self.views[session];
        let granted = view.grant.map(|grant| &self.deeds[grant]).filter(|deed| {
            deed.term == term && deed.aim != Aim::Create && deed.landed_ms.is_some()
        });
        let Some(granted) = granted else {
            return self
                .broke("S5 authority without a landed write", format!("term {term} at {now:?}"));
        };
        if self.excused(session) {
            return;
        }
        let rate = 1_000_000 + view.rate_ppm;
        let over = |deed: &Deed| {
            let passed_ms = (self.true_ms - deed.sent_ms) as i64 * rate / 1_000_000;
            let span_ms = deed.lease.lease_ms.unwrap_or(0) as i64 - deed.margin_ms as i64;
            passed_ms + left_ms as i64 - span_ms
        };
        let mut worst_ms = over(granted);
        for open in &view.open {
            let deed = &self.deeds[*open];
            if deed.aim == Aim::Renew && deed.term == term {
                worst_ms = worst_ms.max(over(deed));
            }
        }
        require!(self, worst_ms <= ROUNDING_MS as i64, "S5 fence";
            "authority of term {term} lasts {worst_ms} ms beyond its fence");
    }

    pub fn told_acquired(&mut self, session: usize, term: u64, holds: bool) {
        let view = &mut self.views[session];
        let in_order = view.announced.is_none() && view.acquired < Some(term);
        view.announced = Some(term);
        view.acquired = Some(term);
        require!(self, in_order, "S10 once and in order"; "Acquired({term}) out of order");
        require!(self, holds, "S10 acquired without authority";
            "Acquired({term}) without authority");
        // A host that slept, or whose clock is beyond the contract, hears of an old claim: only the resource can tell (S11).
        let asleep = self.excused(session) || !self.contract.clocks;
        if let Some(highest) = self.highest_token.filter(|_| self.tokens_hold && !asleep) {
            require!(self, term > highest, "I2 tokens grow";
                "token {term} was handed out after {highest}");
        }
        self.highest_token = self.highest_token.max(Some(term));
    }

    /// `own` is the term of the stored record, where this very session wrote it.
    pub fn told_lost(
        &mut self,
        session: usize,
        (term, reason): (u64, LostReason),
        own: Option<u64>,
    ) {
        let view = &mut self.views[session];
        let in_order = view.announced.take() == Some(term);
        view.lapsed = view.lapsed.max(Some(term));
        view.current = None;
        require!(self, in_order, "S10 once and in order"; "Lost({term}) out of order");
        // A body that was cut short twice on the way says nothing of whose it is.
        let blurred = self.views[session].blurred >= 2;
        let taken = matches!(reason, LostReason::Overtaken | LostReason::Deleted) && !blurred;
        // A second held-up copy may have brought back the own version as well (docs/proof.md).
        require!(self, !taken || own != Some(term) || self.revived, "S8 own write taken as lost";
            "Lost({term}, {reason:?}) while the record is that term's own write");
    }

    /// What a write is, by its bytes and condition.
    pub fn aim(lease: &Lease, condition: &Condition, claim: bool) -> Aim {
        match (claim, condition) {
            (true, Condition::Absent) => Aim::Create,
            (true, _) if lease.acquired.is_none() => Aim::Reserve,
            (true, _) if lease.released() => Aim::Cover,
            (true, _) => Aim::Claim,
            _ if lease.released() => Aim::Release,
            _ if lease.parked => Aim::Park,
            _ => Aim::Renew,
        }
    }

    /// Enters a write into the book and checks what holds for every one (S4); its place in the
    /// book.
    pub fn wrote(
        &mut self,
        look: Look,
        lease: Rc<Lease>,
        version: Version,
        aim: Aim,
        config: &Config,
    ) -> usize {
        let session = look.session;
        let fresh = self.enter(&version);
        require!(self, fresh, "S4 every body is new"; "{} was written before", version.0);
        let view = &mut self.views[session];
        let grows = lease.sequence > view.sequence;
        view.sequence = view.sequence.max(lease.sequence);
        view.sent_term = view.sent_term.max(lease.term.unwrap_or(0));
        let own = lease.session.as_deref() == Some(view.name.as_str());
        require!(self, grows && own, "S4 session and sequence";
            "sequence {} of session {:?}", lease.sequence, lease.session);
        let term = lease.term.unwrap_or(0);
        let unreadable = |sight: &Sight| matches!(sight.shown, Shown::Other(_));
        let over = self.views[session].sight.as_ref().is_some_and(unreadable);
        let room_ms = (aim == Aim::Reserve && over).then_some(config.store_skew_ms + 2_000);
        let over_creation = self.shown_lease(session).is_some_and(Lease::is_creation);
        let graced = aim == Aim::Create || (aim == Aim::Reserve && over_creation);
        let named = Some(&config.server_id).filter(|id| !id.is_empty());
        let by = named.unwrap_or(&self.views[session].name).clone();
        self.deeds.push(Deed {
            session,
            aim,
            term,
            lease,
            by,
            margin_ms: config.margin_ms,
            sent_ms: self.true_ms,
            version,
            landed_ms: None,
            room_ms,
            graced,
            under_way: 0,
        });
        let deed = self.deeds.len() - 1;
        self.views[session].open.push(deed);
        deed
    }

    /// The next entry of the book makes this version; whether that is a new one.
    pub fn enter(&mut self, version: &Version) -> bool {
        self.made.insert(version.clone(), self.deeds.len()).is_none()
    }

    /// How many requests this session sent within one of its leases, this one included; other
    /// settings begin the count again.
    pub fn sent(&mut self, look: Look, config: &Config) -> u64 {
        let view = &mut self.views[look.session];
        let pace_ms = (config.leader_timeout_ms, config.frequent_interval_ms);
        if view.pace_ms != pace_ms {
            view.pace_ms = pace_ms;
            view.recent.clear();
        }
        view.recent.push_back(look.now.mono_ms);
        while view.recent.front().is_some_and(|first| first + pace_ms.0 <= look.now.mono_ms) {
            view.recent.pop_front();
        }
        view.recent.len() as u64
    }

    /// What holds for every request to the store: patience, and a look after three attempts.
    pub fn asks(&mut self, look: Look, aim: Option<Aim>) {
        let Look { session, now } = look;
        let view = &mut self.views[session];
        let (not_before_ms, unusable) = (view.not_before_ms, view.unusable);
        let competes = aim.is_some_and(Aim::takes);
        let early = competes && !view.single && now.mono_ms < view.sits_out_ms;
        if view.aim != aim {
            (view.aim, view.in_doubt) = (aim, 0);
        }
        let in_doubt = view.in_doubt;
        require!(self, in_doubt < 3, "S8 three attempts";
            "a write after {in_doubt} of which nobody knows the end, and no look between");
        require!(self, now.mono_ms >= not_before_ms, "Retry-After";
            "a request at {} before {not_before_ms}", now.mono_ms);
        require!(self, !early, "who resigned sits out";
            "{aim:?} at {}, too soon after it resigned", now.mono_ms);
        require!(self, !unusable, "an unusable store is left alone";
            "a request after the store said that it is set up wrongly");
    }

    /// What a refused write contradicts is read whole: something between may call it unchanged for ever (S8).
    pub fn reads(&mut self, look: Look, conditional: bool) {
        let refused = self.views[look.session].refused;
        require!(self, !(refused && conditional), "S8 a whole read-back";
            "a refused write is read back by a conditional read");
    }

    /// What has worked is not given up for one answer (S8).
    pub fn gave_up(&mut self, session: usize) {
        let unusable = self.views[session].unusable;
        require!(self, unusable, "S8 one answer is not final";
            "s{session} gave up a store that has worked");
    }

    /// No peer blinds a follower: the store is read some time, and one who repeats itself is silence.
    /// `lived_ms` is true time without that for which its host slept: it counts leases by its monotonic clock, which sleeps
    /// as well (S11).
    pub fn asks_peer(&mut self, look: Look, lived_ms: u64, lease_ms: u64, infrequent_ms: u64) {
        let view = &self.views[look.session];
        let longest_ms = lease_ms.max(view.longest_lease_ms);
        let (stale, unread_ms) = (view.peer_stale, lived_ms.saturating_sub(view.shown_lived_ms));
        let often = unread_ms < 14 * longest_ms + 2 * infrequent_ms;
        require!(self, often && !stale, "a peer blinds nobody";
            "asked {unread_ms} ms after the store, though it repeats itself: {stale}");
    }

    /// A peer's answer reaches a session: of the leader and the term that the record names, with this sequence.
    pub fn peer_answered(&mut self, look: Look, shown: (Option<u64>, u64), lease_ms: u64) {
        let (term, sequence) = shown;
        let view = &mut self.views[look.session];
        let grown = |(before, at, _): &(Option<u64>, u64, u64)| *before != term || sequence > *at;
        if view.peer.as_ref().is_none_or(grown) {
            view.peer = Some((term, sequence, look.now.mono_ms));
        }
        // By its own clock, which may stand still with its machine, and step where it is the only one.
        let since_ms = view.peer.map_or(look.now.mono_ms, |(_, _, since_ms)| since_ms);
        let longest_ms = lease_ms.max(view.longest_lease_ms);
        view.peer_stale = look.now.mono_ms.saturating_sub(since_ms) > 2 * longest_ms;
    }

    /// It was asked to give up the leadership, and leaves it to others for so long.
    pub fn resigns(&mut self, look: Look, rest_ms: u64) {
        let view = &mut self.views[look.session];
        let claimed = |open: &usize| {
            let Deed { aim, term, .. } = &self.deeds[*open];
            (*aim == Aim::Claim).then_some(*term)
        };
        let claimed = view.open.iter().filter_map(claimed).max();
        view.yielded_term = view.highest_term.max(claimed.unwrap_or(0));
        view.sits_out_ms = view.sits_out_ms.max(look.now.mono_ms + rest_ms);
        // Giving up once more has attempts of its own.
        view.in_doubt = 0;
    }

    /// Whether its own record asks for the end of a term that is over already, for the first time.
    pub fn is_asked_late(&mut self, session: usize, lease: &Lease) -> bool {
        let view = &mut self.views[session];
        let (Some(term), Some(request)) = (lease.term, &lease.operator) else { return false };
        let ends = request.ends(term, &view.name) && lease.session.as_ref() == Some(&view.name);
        let first = ends && view.asked_to_end.as_ref() != Some(&request.id);
        if first {
            view.asked_to_end = Some(request.id.clone());
        }
        first && view.announced.is_none()
    }

    /// The record names another leader than before, or the session says so.
    pub fn told_leader(&mut self, session: usize, leader: Option<String>) {
        let before = std::mem::replace(&mut self.views[session].leader, leader);
        let another = before != self.views[session].leader;
        require!(self, another, "a new leader is told once"; "NewLeader({before:?}) again");
    }

    /// What an answer tells the session that gets it now.
    pub fn answered(&mut self, look: Look, deed: Option<usize>, answer: &Answer, skew_ms: u64) {
        let Look { session, now, .. } = look;
        self.views[session].read(now);
        // A refusal may come from something on the way, and so may its `Date`.
        let heard = !matches!(answer.outcome, Outcome::Unknown { .. } | Outcome::Rejected(_));
        let drifted = heard && self.drifted(session, now, &answer.facts);
        if let (true, Some(date_ms)) = (heard, answer.facts.date_ms) {
            let view = &mut self.views[session];
            let best_ms = view.best_date_ms(now);
            let wrong = !answer.facts.cached && best_ms > date_ms + 1_000 + skew_ms;
            if wrong || date_ms >= best_ms {
                view.best_date = Some((date_ms, now.mono_ms));
            }
        }
        if heard {
            let view = &mut self.views[session];
            view.newest_cached = answer.facts.cached && answer.facts.date_ms.is_some();
            // A `Date` of the store's own bounds what a proxy makes of the record's time.
            let bound_ms = match answer.facts.date_ms {
                Some(date_ms) if !answer.facts.cached => date_ms + 1_000 + skew_ms,
                Some(_) => u64::MAX,
                None => 0,
            };
            let modified_ms = answer.facts.last_modified_ms.filter(|ms| *ms <= bound_ms);
            view.latest_modified_ms = view.latest_modified_ms.max(modified_ms);
        }
        let fresh = heard && answer.facts.date_ms.is_some() && !answer.facts.cached;
        if let Some(sight) = self.views[session].sight.as_mut().filter(|_| fresh) {
            sight.cached = false;
        }
        self.views[session].told(now, &answer.outcome, deed.is_some());
        if matches!(answer.outcome, Outcome::Found { .. } | Outcome::Unchanged) && deed.is_none() {
            let view = &mut self.views[session];
            view.shown_before_ms = view.shown_sent_ms;
            (view.shown_sent_ms, view.shown_lived_ms) = (view.asked_ms, view.asked_lived_ms);
        }
        match (&answer.outcome, deed) {
            (Outcome::Found { version, reading }, _) => {
                if let Some(made) = self.made.get(version) {
                    let view = &mut self.views[session];
                    view.first_looks.entry(*made).or_insert(view.asked_ms);
                }
                self.shown(look, version, reading, &answer.facts, skew_ms, drifted);
            }
            (Outcome::Unchanged, _) => {
                if let Some(sight) = &mut self.views[session].sight {
                    // A 304's `Date` beside the 200's `Last-Modified` (S6 (b)).
                    let facts = Facts { last_modified_ms: None, ..answer.facts };
                    sight.prove(now, &facts, skew_ms, drifted);
                }
            }
            (Outcome::Missing, _) => {
                let view = &mut self.views[session];
                view.sight = None;
                view.grace = None;
                view.absent = true;
                view.absent_at = Instant { mono_ms: now.mono_ms, true_ms: self.true_ms };
            }
            (Outcome::Written { version: Some(version) }, Some(deed))
                if self.deeds[deed].version == *version =>
            {
                self.landed(look, deed, true);
            }
            _ => {}
        }
    }

    /// S6 (b) is off where `Date` and the own clock moved apart by over 2 s between two answers.
    fn drifted(&mut self, session: usize, now: Now, facts: &Facts) -> bool {
        let view = &mut self.views[session];
        let Some(date_ms) = facts.date_ms else { return false };
        view.latest_date_ms = view.latest_date_ms.max(Some(date_ms));
        let before = view.sample.replace((date_ms, now.mono_ms));
        let apart_ms = before.map_or(0, |(date_before_ms, mono_before_ms)| {
            let moved_ms = i128::from(date_ms) - i128::from(date_before_ms);
            moved_ms - (i128::from(now.mono_ms) - i128::from(mono_before_ms))
        });
        if facts.cached && apart_ms < -2_000 {
            // What a cache says may be old, and no token has to follow it.
            view.sample = before;
        } else {
            view.date_ms = Some(date_ms);
        }
        if apart_ms > 2_000 {
            view.stepped_back_ms = None;
        }
        apart_ms.abs() > 2_000 && !view.begins_anew
    }

    fn shown(
        &mut self,
        look: Look,
        version: &Version,
        reading: &Reading,
        facts: &Facts,
        skew_ms: u64,
        drifted: bool,
    ) {
        let Look { session, now, .. } = look;
        // A body that nobody can read does not say whose it is.
        let readable = matches!(reading, Reading::Lease(_));
        let own = self.own_deed(session, version).filter(|_| readable);
        if let Some(deed) = own {
            self.landed(look, deed, false);
        }
        let view = &mut self.views[session];
        if let Reading::Lease(lease) = reading {
            // Another member has changed it since, by a conditional write.
            let moved = view.sight.as_ref().is_some_and(|sight| sight.version != *version);
            view.accepted |= moved && lease.session.is_some();
            view.highest_term = view.highest_term.max(lease.term.unwrap_or(0));
            view.longest_lease_ms = view.longest_lease_ms.max(lease.lease_ms.unwrap_or(0));
        }
        if let Reading::Unreadable(_, told) = reading {
            view.highest_term = view.highest_term.max(told.term.unwrap_or(0));
            view.longest_lease_ms = view.longest_lease_ms.max(told.lease_ms.unwrap_or(0));
        }
        view.blurred = if readable { 0 } else { view.blurred + 1 };
        view.absent = false;
        if own.is_none() {
            view.grace = view.grace.take().filter(|grace| grace.version == *version);
        }
        match &mut view.sight {
            // A body can be cut short on the way, and whole the next time.
            Some(sight) if sight.version == *version => {
                if let Shown::Other(Reading::Unreadable(flaw, once)) = &sight.shown {
                    sight.shown = match reading {
                        Reading::Unreadable(_, again) => {
                            Shown::Other(Reading::Unreadable(*flaw, once.and(*again)))
                        }
                        whole => Shown::of(whole.clone()),
                    };
                }
            }
            _ => {
                let made = self.made.get(version).map(|deed| &self.deeds[*deed].lease);
                // What a leader holds it knows, also where the body is cut short on the way.
                let holds = view.announced.is_some()
                    && view.grant.is_some_and(|grant| self.deeds[grant].version == *version);
                let whole = holds || matches!(reading, Reading::Lease(_));
                let shown = match made.filter(|_| whole) {
                    Some(lease) => Shown::Lease(lease.clone()),
                    None => Shown::of(reading.clone()),
                };
                let mut sight = Sight::first(version.clone(), shown, now);
                sight.cached = facts.cached && facts.date_ms.is_some();
                view.sight = Some(sight);
            }
        }
        if let Some(sight) = &mut view.sight {
            sight.prove(now, facts, skew_ms, drifted);
        }
    }

    /// The write of this session that made this version.
    pub fn own_deed(&self, session: usize, version: &Version) -> Option<usize> {
        self.own_book(version).filter(|deed| self.deeds[*deed].session == session)
    }

    /// The write that made this version, whichever session's it was.
    pub fn own_book(&self, version: &Version) -> Option<usize> {
        self.made.get(version).copied()
    }

    /// The readable record that a session was shown last.
    pub fn shown_lease(&self, session: usize) -> Option<&Lease> {
        self.views[session].sight.as_ref().and_then(|sight| sight.shown.lease())
    }

    /// A session learns that its write landed: by the answer, or by reading its record back.
    fn landed(&mut self, look: Look, deed: usize, answered: bool) {
        let Look { session, now, .. } = look;
        let Deed { aim, version, lease, room_ms, graced, .. } = &self.deeds[deed];
        let (aim, room_ms, graced) = (*aim, *room_ms, *graced);
        let (view_ppm, least_ms) = (self.contract.worst_ppm, room_ms.unwrap_or(0));
        let view = &mut self.views[session];
        (view.accepted, view.refused) = (true, false);
        view.open.clear();
        view.absent = false;
        view.highest_term = view.highest_term.max(lease.term.unwrap_or(0));
        view.longest_lease_ms = view.longest_lease_ms.max(lease.lease_ms.unwrap_or(0));
        let known = view.grace.as_ref().is_some_and(|grace| grace.version == *version);
        match aim {
            Aim::Create if !known => {
                let here = Instant { mono_ms: now.mono_ms, true_ms: self.true_ms };
                let since = if answered { view.absent_at } else { here };
                view.grace = Some(Grace { version: version.clone(), since, reserved_ms: None });
            }
            Aim::Reserve if !known && graced => {
                let since = Instant { mono_ms: now.mono_ms, true_ms: self.true_ms };
                view.grace = Some(Grace { version: version.clone(), since, reserved_ms: None });
            }
            Aim::Reserve if !known => {
                let read_ms = if answered { view.shown_sent_ms } else { view.shown_before_ms };
                // By the slowest clock of the contract.
                let read_ms = (self.true_ms - read_ms) * (1_000_000 - view_ppm) / 1_000_000;
                let late =
                    !view.single && room_ms.is_some_and(|room_ms| read_ms > room_ms + ROUNDING_MS);
                let reserved_ms = lease.lease_ms.filter(|_| late).unwrap_or(least_ms);
                let since = Instant { mono_ms: now.mono_ms, true_ms: self.true_ms };
                let (version, reserved_ms) = (version.clone(), Some(reserved_ms));
                view.grace = Some(Grace { version, since, reserved_ms });
            }
            Aim::Create | Aim::Reserve => {}
            Aim::Claim | Aim::Renew => {
                view.grace = None;
                view.grant = Some(deed);
            }
            Aim::Cover | Aim::Release | Aim::Park => view.grace = None,
        }
        if view.sight.as_ref().is_none_or(|sight| sight.version != *version) {
            view.sight = Some(Sight::first(version.clone(), Shown::Lease(lease.clone()), now));
        }
    }
}

impl View {
    /// A reading that the session was given: a step back of a single clock that it shows is no
    /// excuse from here on.
    fn read(&mut self, now: Now) {
        let before = std::mem::replace(&mut self.read, now);
        if now.mono_ms < before.mono_ms || now.early_timers != before.early_timers {
            self.stepped_back_ms = None;
            self.sample = None;
            self.not_before_ms = 0;
            self.peer = None;
            // Observations and graces begin again.
            if let Some(sight) = &mut self.sight {
                sight.cached = self.newest_cached;
                (sight.origin_ms, sight.first_ms) = (i128::from(now.mono_ms), now.mono_ms);
                sight.by_store_ms = 0;
            }
            if let Some(grace) = &mut self.grace {
                grace.since.mono_ms = now.mono_ms;
            }
        }
        self.held |= self.single && now.held;
    }

    /// What the end of a request says about the next one.
    fn told(&mut self, now: Now, outcome: &Outcome, write: bool) {
        let Outcome::Unknown { retry_after_ms, .. } = outcome else {
            self.heard = now;
            self.held &= now.held;
            let works = self.accepted || (self.answered && !write);
            self.unusable |= !works
                && matches!(outcome, Outcome::Rejected(fault)
                    if fault.kind == FaultKind::Misconfigured);
            match outcome {
                Outcome::Written { .. } => self.in_doubt = 0,
                Outcome::Refused => self.refused |= write,
                Outcome::Found { .. } | Outcome::Missing if !write => {
                    (self.answered, self.refused, self.peer_stale) = (true, false, false);
                }
                Outcome::Unchanged if !write => (self.answered, self.peer_stale) = (true, false),
                _ => {}
            }
            return;
        };
        self.in_doubt += u64::from(write);
        self.not_before_ms = now.mono_ms + retry_after_ms.unwrap_or(0).min(300_000);
    }

    /// The best known `Date` and two thirds of own time since: a clock of the contract is fast by at most half.
    fn best_date_ms(&self, now: Now) -> u64 {
        self.best_date
            .map_or(0, |(date_ms, mono_ms)| date_ms + now.mono_ms.saturating_sub(mono_ms) * 2 / 3)
    }

    /// Storage time when the newest answer was processed, rounded up, for tokens (S2).
    pub fn storage_ms(&self) -> u64 {
        const ROUNDED_UP_MS: u64 = 999;
        let by_date_ms = match (self.latest_date_ms, self.sample) {
            (Some(date_ms), _) if self.single => date_ms + ROUNDED_UP_MS,
            (Some(date_ms), _) if self.newest_cached => {
                date_ms.max(self.best_date_ms(self.heard)) + ROUNDED_UP_MS
            }
            (Some(_), Some((date_ms, mono_ms))) => {
                date_ms + self.heard.mono_ms.saturating_sub(mono_ms) + ROUNDED_UP_MS
            }
            _ => self.heard.wall_ms,
        };
        by_date_ms.max(self.latest_modified_ms.map_or(0, |ms| ms + ROUNDED_UP_MS))
    }
}

impl Sight {
    fn first(version: Version, shown: Shown, now: Now) -> Self {
        Self {
            version,
            shown,
            origin_ms: i128::from(now.mono_ms),
            first_ms: now.mono_ms,
            cached: false,
            by_store_ms: 0,
            modified_ms: None,
            drifted: false,
        }
    }

    /// S6 (b): what one answer says about the age by the store's own clock.
    fn prove(&mut self, now: Now, facts: &Facts, skew_ms: u64, drifted: bool) {
        // A relay's word on it proves nothing, and takes nothing from what the store itself has said.
        let told_ms = facts.last_modified_ms.filter(|_| !facts.relayed);
        self.modified_ms = told_ms.or(self.modified_ms);
        if drifted {
            self.drifted = true;
            self.origin_ms = i128::from(self.first_ms);
            self.by_store_ms = 0;
        }
        let (Some(date_ms), Some(modified_ms)) = (facts.date_ms, self.modified_ms) else { return };
        if facts.relayed || self.drifted {
            return;
        }
        let proven_ms = date_ms.saturating_sub(modified_ms).saturating_sub(1_000 + skew_ms);
        self.by_store_ms = self.by_store_ms.max(proven_ms);
        self.origin_ms = self.origin_ms.min(i128::from(now.mono_ms) - i128::from(proven_ms));
    }

    /// On which of the two proofs an age of this length rests.
    pub fn ground(&self, now: Now, age_ms: u64) -> Ground {
        let watched = now.mono_ms.saturating_sub(self.first_ms) >= age_ms;
        if watched { Ground::Watched } else { Ground::StoreClock }
    }
}
