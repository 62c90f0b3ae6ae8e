//! The election: a state machine without I/O, without a clock, without async.
//!
//! It is told the time and what happened ([`Election::handle`]) and answers what to do next
//! ([`Election::poll`]). Whoever drives it keeps to one order:
//!
//! 1. read the clocks, call [`Election::poll`], and carry out the [`Step`] at once: the reading given to
//!    `poll` is the anchor of the request that the step asks for (S5);
//! 2. at most one request is under way; its end goes to [`Election::handle`] with a new reading. While it is
//!    under way `poll` answers [`Step::Wait`], so that the fence is met even if no answer comes;
//! 3. after every call, drain [`Election::next_event`].
//!
//! Nothing here is a stored "is leader": [`Election::authority`] computes from the reading it is given.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use crate::age::Observation;
use crate::clock::{Clocks, Drift, Now, Since};
use crate::config::{Config, Follow, SPREAD_MS, is_peer_addr};
use crate::lease::{Closed, Flaw, Lease, MAX_LEASE_MS, MAX_RESULT_BYTES, MAX_TERM, Reading, Stamp};
use crate::planted::planted;
use crate::slots::{OwnSlots, Schedule, SlotEnd, StorageTimes, Verdict};
use crate::store::{Answer, Condition, Facts, Fault, FaultKind, Outcome, Version};

/// How many unresolved writes are remembered. Each is pruned when its own fence has passed, so that more
/// than this need a `requestTimeout` far below what the config accepts.
const MAX_UNRESOLVED: usize = 64;

/// The longest `Retry-After` that is honoured, in milliseconds.
const MAX_RETRY_AFTER_MS: u64 = 300_000;

/// After how many looks for one renewal a tight follower takes itself for out of step.
const LOST_AFTER: u32 = 4;

/// For how many leases peers are believed before the store is read all the same.
const LEASES_BY_PEER: u64 = 10;

/// After how many new versions of one write in a row somebody is told: a copy that is put by hand makes one.
const VERSIONS_MOVED: u32 = 3;

/// The number of attempts of one write before it is read back (S8).
const ATTEMPTS: usize = 3;

/// The right to act, as it is at one reading of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The term: the fencing token.
    pub term: u64,
    /// How much longer it lasts if nothing happens, in milliseconds; never zero.
    pub remaining_ms: u64,
}

/// What one reading of the clocks says of the own term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is authority.
    Leads(Authority),
    /// A single clock proves nothing at this reading (S11): there is no authority now, but the term goes on. This much
    /// would be left if the reading were right.
    Unproven(Authority),
    /// The term is over, or there was none.
    Over,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read the record.
    Read {
        /// The version that is known, to be answered by [`Outcome::Unchanged`].
        unless: Option<Version>,
        /// After how many milliseconds the request is cut off and counts as [`Outcome::Unknown`].
        timeout_ms: u64,
    },
    /// Write a record that takes the leadership, or creates it from absence.
    Claim {
        /// The new record.
        lease: Box<Lease>,
        /// What was seen, and must still be so.
        seen: Condition,
        /// As for a read.
        timeout_ms: u64,
    },
    /// Write a record over our own: a renewal, a tombstone, a parked lease.
    Renew {
        /// The new record.
        lease: Box<Lease>,
        /// The version that we hold.
        held: Version,
        /// As for a read.
        timeout_ms: u64,
    },
    /// Ask the leader (`GET /health/leadership`).
    AskPeer {
        /// `host` or `host:port`, checked.
        addr: String,
        /// After how many milliseconds to give up.
        timeout_ms: u64,
    },
    /// Call again at this monotonic reading, or when something happens.
    Wait {
        /// The reading, in milliseconds.
        until_ms: u64,
    },
    /// The elector has stopped; nothing more will happen.
    Finished,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The request of the last `Read`, `Claim` or `Renew` ended.
    Answer(Answer),
    /// The question of the last `AskPeer` ended.
    Peer(PeerAnswer),
    /// Give the leadership up and sit out for a while.
    Resign,
    /// Give the leadership up and finish. With `park`, the lease is kept for this `serverId`.
    Stop {
        /// Whether to park the lease instead of releasing it.
        park: bool,
    },
    /// The work of a term that was lost or resigned has ended. Until then this session claims nothing.
    WorkEnded {
        /// The fencing token of that term: work of an earlier term may end late.
        term: u64,
    },
    /// The job of the slot that this term claimed has ended, and nothing of it goes on.
    SlotEnded {
        /// The fencing token of that term.
        term: u64,
        /// How it ended.
        end: SlotEnd,
    },
    /// New settings; they count from the next write on.
    Configure(Box<Config>),
    /// Nothing but time: somebody saw that the authority may have ended.
    Tick,
}

/// What a peer said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAnswer {
    /// 200 with the lease of this leader.
    Alive {
        /// Its `leaderID`.
        leader_id: String,
        /// Its `term`; `None` where the answer names none.
        term: Option<u64>,
        /// Its `sequence`, which grows with each renewal.
        sequence: u64,
    },
    /// Anything else, or nothing.
    Silent,
}

/// What the application is told, once each, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A term began.
    Acquired {
        /// The fencing token.
        term: u64,
    },
    /// The term ended. [`Input::WorkEnded`] has to follow, unless it was that of a slot.
    Lost {
        /// The fencing token.
        term: u64,
        /// Why.
        reason: LostReason,
    },
    /// The record names another leader than before.
    NewLeader {
        /// Its `leaderID`; `None` once it has released the lease or its record is gone.
        leader_id: Option<String>,
    },
    /// Giving the leadership up after [`Input::Resign`] is over: the record says so, or it will run out.
    GivenUp,
    /// The closing write of a slot is over.
    SlotClosed {
        /// The fencing token of its term.
        term: u64,
        /// Whether the record is known to say how it ended; otherwise it may, or the lease runs out.
        recorded: bool,
    },
    /// The schedule needs nothing more; the elector finishes.
    SlotsOver(SlotsOver),
    /// The store cannot be used; the elector finishes.
    Failed(Fault),
}

/// Why a schedule needs nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotsOver {
    /// The slot was run.
    Ran,
    /// The slot, or a later one, was claimed before.
    Taken,
    /// The record is new, or was made anew because it did not say which slots were claimed before; later ones can be.
    NewGroup,
    /// Somebody else held the lease, or the store did not answer, for longer than the budget.
    Budget,
    /// An earlier slot must be run first, and has failed or was lost.
    Blocked,
    /// The record's slots are of another cron, so that nobody knows which ones were missed; nothing was claimed.
    OtherCron,
    /// The term was lost under the job of the slot.
    Lost,
    /// The slot is this many milliseconds ahead of storage time.
    Ahead {
        /// By how many milliseconds.
        by_ms: u64,
    },
    /// A claim left and nobody knows whether it landed: the slot may count as claimed.
    Unknown,
    /// Earlier slots had to be run first, and another one would not fit into what one trigger may do.
    Full,
    /// The store can't be used.
    Store,
    /// It was told to stop before it had claimed the slot.
    Stopped,
}

impl SlotsOver {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Taken => "taken",
            Self::NewGroup => "newGroup",
            Self::Budget => "budget",
            Self::Blocked => "blocked",
            Self::OtherCron => "otherCron",
            Self::Lost => "lost",
            Self::Ahead { .. } => "ahead",
            Self::Unknown => "unknown",
            Self::Full => "full",
            Self::Store => "store",
            Self::Stopped => "stopped",
        }
    }
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostReason {
    /// The fence passed without a renewal that was known to have landed.
    Expired,
    /// The record was changed by somebody else.
    Overtaken,
    /// The record is gone.
    Deleted,
    /// A single clock stepped or stood still, so that nobody knows how long the lease has lasted (S11).
    Clock,
    /// [`Input::Resign`].
    Resigned,
    /// [`Input::Stop`].
    Stopped,
    /// [`Input::SlotEnded`].
    Done,
}

impl LostReason {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Overtaken => "overtaken",
            Self::Deleted => "deleted",
            Self::Clock => "clock",
            Self::Resigned => "resigned",
            Self::Stopped => "stopped",
            Self::Done => "done",
        }
    }
}

/// What somebody should know who looks at the elector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The last request to the store failed.
    Store(Fault),
    /// The record is of a newer format; nothing is claimed (S7).
    NewerFormat(Option<u64>),
    /// The term is used up, or was set absurdly high; nothing is claimed (S2).
    TermTooHigh,
    /// The store refuses each write on the version that it shows.
    Contradicted,
    /// The store shows another `Last-Modified` with each read of one version, so that a wait begins anew (S7).
    MovingTimes,
    /// The store shows one write under another version with each read, so that its age is never proven (S6).
    MovingVersions,
    /// The version has not changed for long by the own clock, and its age is not proven (S6), or it is in a long grace.
    LongWait,
    /// The record is unusable and will be healed once it has not changed for the grace (S7).
    Unreadable(Flaw),
    /// The work of a lost term has not stopped; nothing is claimed until it has.
    WorkGoesOn {
        /// The fencing token of that term.
        term: u64,
    },
    /// The record's lease is longer than `maxLease`, so that members disagree on the grace (S7).
    LeaseTooLong {
        /// The record's lease in milliseconds.
        lease_ms: u64,
        /// Our `maxLease` in milliseconds.
        max_lease_ms: u64,
    },
    /// The `Date` of an answer that showed a write of ours was ahead of its `Last-Modified`: something on the way sets
    /// `Date`, and no age is proven by it (S6).
    DateAhead {
        /// By how many milliseconds at least.
        ahead_ms: u64,
    },
    /// A member of another make writes records under our `serverId`, and takes ours for its own.
    SharedName(String),
}

/// When a request left and what it may grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Anchor {
    sent: Now,
    lease_ms: u64,
    margin_ms: u64,
}

impl Anchor {
    /// What is left until `sent + lease - margin`, in milliseconds; `None` from there on (S5).
    fn remaining_ms(&self, now: Now) -> Option<u64> {
        let span_ms = self.lease_ms.saturating_sub(self.margin_ms);
        span_ms.checked_sub(now.since_pessimistic_ms(self.sent)).filter(|left_ms| *left_ms > 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Create,
    /// Takes what may come back byte for byte, without authority; the term comes by a claim over this. Or writes a
    /// tombstone that says which slots count as claimed.
    Reserve,
    Claim,
    Renew,
    Release,
    Park,
}

/// One write that left and of which we do not know yet whether it landed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    purpose: Purpose,
    anchor: Anchor,
    lease: Lease,
    /// The answer says that it was not done. Something on the way may have said so instead, so that its fence
    /// binds all the same and it may be recognised; but nobody hurries to find out.
    rejected: bool,
}

/// Up to three attempts of one change, all on the same condition (S8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    purpose: Purpose,
    condition: Condition,
    lease: Lease,
    attempts: usize,
}

/// A leadership of this session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Term {
    number: u64,
    version: Version,
    lease: Lease,
    anchor: Anchor,
    /// Authority was given up; the record is kept only to be released or parked.
    ended: bool,
}

/// A record of ours that grants nothing yet: created from absence (S7), or a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Grace {
    version: Version,
    since: Since,
    length_ms: u64,
    reserved: bool,
}

/// What the newest answer showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Seen {
    Nothing,
    Absent,
    Record { observation: Box<Observation>, reading: Reading },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Look,
    Ask,
    Attempt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Plan {
    at_ms: u64,
    action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Outstanding {
    Read { sent: Now },
    Write { sequence: u64 },
    Peer,
}

/// Giving the leadership up (S12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WindDown {
    park: bool,
    finish: bool,
    work_ended: bool,
    /// When to give up on the store, on the monotonic clock; set once the work has ended.
    until_ms: Option<u64>,
    /// The one read-back that a refused tombstone gets was used.
    read_back: bool,
}

/// The slots that this session is to run, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Errand {
    schedule: Schedule,
    /// The trigger's own slot, once it is known.
    slot_ms: Option<u64>,
    /// Until when to wait for somebody else's lease; set at the first turn.
    until_ms: Option<u64>,
    /// Whether it waits longer, for what becomes of a claim.
    extended: bool,
    /// When it began, on the monotonic clock, and how many requests it has made.
    began_ms: u64,
    requests: u64,
    /// The slots that this session began to run.
    begun: Vec<u64>,
    /// How the job of the term that is being closed has ended, and whether the record is known to say so.
    end: Option<(u64, SlotEnd)>,
    recorded: bool,
    /// The jobs of this session that ended well, also where the record may not say so.
    done: Vec<u64>,
    /// What a claim that left was conditional on, until an answer shows what became of it: it may still land.
    unheard: Option<Condition>,
    /// The term of the record that this claim is to succeed, where it names one.
    succeeds: Option<u64>,
    /// The slot of a claim that may have landed and whose job was not begun, and when the first of its attempts left,
    /// on the monotonic clock.
    doubted: Option<(u64, u64)>,
    /// A slot that was claimed after a stop, so that its job never begins.
    dropped: Option<u64>,
    /// How many missed slots nobody will run once the claim that left has landed, and since one has.
    leaves_out: Option<u64>,
    left_out: Option<u64>,
}

/// A flag that a reader may raise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Flag(Cell<bool>);

impl Hash for Flag {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.get().hash(hasher);
    }
}

/// One participant of one group. See the module for the order of calls. Two that are equal have the same
/// future, given the same inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    config: Config,
    session: String,
    chance: u64,
    clocks: Clocks,
    sequence: u64,
    highest_term: u64,
    longest_lease_ms: u64,
    seen: Seen,
    /// When the read left whose answer last showed the record or its absence.
    seen_sent_ms: u64,
    grace: Option<Grace>,
    term: Option<Term>,
    unresolved: Vec<Attempt>,
    /// The shortest fence among the renewals that had to be forgotten; it still binds the term (S5).
    forgotten: Option<Anchor>,
    /// Authority was seen to have ended at a reading that was not given to `poll` or `handle`: it stays
    /// ended, even if the wall clock is put right before the next of them (S9).
    lapsed: Flag,
    round: Option<Round>,
    outstanding: Option<Outstanding>,
    plan: Plan,
    wind_down: Option<WindDown>,
    failed: bool,
    finished: bool,
    /// Whether the store is known to work: it answered a read, and it took a conditional write of ours or a probe held.
    answered: bool,
    accepted: bool,
    /// A write was refused since the last body was read: the version that we know may be an old one.
    contradicted: bool,
    compete_after_ms: u64,
    /// Until when the store asked to be left alone (`Retry-After`).
    not_before_ms: u64,
    failures: u32,
    /// How many writes in a row were rejected.
    rejections: u32,
    /// Whether work of the last term, which goes on, has kept this session from claiming.
    held_back: bool,
    misses: u32,
    /// How often in a row one write of a member's was shown under another version.
    versions_moved: u32,
    /// How many claims in a row came to nothing.
    refusals: u32,
    /// How much earlier than one interval after the last a tight follower looks, in milliseconds, and at which
    /// leader, of which term: larger until it is in step with that leader's renewals.
    early: Option<(u64, String, Option<u64>)>,
    peer_silent_until_ms: u64,
    /// The newest term and sequence that a peer has answered with, and when it first did, on the monotonic clock.
    peer_moved: Option<(Option<u64>, u64, u64)>,
    announced: Option<u64>,
    /// The lost term whose work is not known to have stopped: nothing is claimed under it.
    working: Option<u64>,
    known_leader: Option<String>,
    events: VecDeque<Event>,
    problem: Option<Problem>,
    /// The problem is of a write that has not landed: a read alone does not solve it.
    unwritten: bool,
    errand: Option<Box<Errand>>,
    /// A problem that no single answer shows to be over, and that costs no term.
    warning: Option<Problem>,
    /// When a member of another make was last seen under our name, on the monotonic clock.
    shared_ms: u64,
    /// A write that is held up takes no effect once a later one was accepted.
    stale_writes_fail: bool,
    /// How long the newest claim waits once it has landed, in milliseconds, unless the own write shows that the store's
    /// clock, on which alone it rests, is right (S6 (b)).
    unproven_wait_ms: Option<u64>,
    /// A claim that has landed and waits for an answer which shows that.
    unproven: Option<Attempt>,
    /// Since when and for how many milliseconds no record of this session grants anything, because such a claim may have
    /// met a leader.
    owed: Option<(Since, u64)>,
}

impl Election {
    /// A new participant. `session` is random and never used again; `seed` is where jitter comes from.
    pub fn new(config: Config, session: String, seed: u64) -> Self {
        let clocks = Clocks::new(config.clock, config.store_skew_ms);
        Self {
            config,
            session,
            chance: seed,
            clocks,
            sequence: 0,
            highest_term: 0,
            longest_lease_ms: 0,
            seen: Seen::Nothing,
            seen_sent_ms: 0,
            grace: None,
            term: None,
            unresolved: Vec::new(),
            forgotten: None,
            lapsed: Flag::default(),
            round: None,
            outstanding: None,
            plan: Plan { at_ms: 0, action: Action::Look },
            wind_down: None,
            failed: false,
            finished: false,
            answered: false,
            accepted: false,
            contradicted: false,
            compete_after_ms: 0,
            not_before_ms: 0,
            failures: 0,
            rejections: 0,
            held_back: false,
            misses: 0,
            versions_moved: 0,
            refusals: 0,
            early: None,
            peer_silent_until_ms: 0,
            peer_moved: None,
            announced: None,
            working: None,
            known_leader: None,
            events: VecDeque::new(),
            problem: None,
            unwritten: false,
            errand: None,
            warning: None,
            shared_ms: 0,
            stale_writes_fail: true,
            unproven_wait_ms: None,
            unproven: None,
            owed: None,
        }
    }

    /// A new participant that runs the slots of a schedule, each in a term of its own, and finishes.
    pub fn for_schedule(config: Config, session: String, seed: u64, schedule: Schedule) -> Self {
        let slot_ms = schedule.slot_ms;
        // What a peer says of its lease tells nothing of slots.
        let config = Config { peer_mode: false, ..config };
        let errand = Errand {
            schedule,
            slot_ms,
            until_ms: None,
            extended: false,
            began_ms: 0,
            requests: 0,
            begun: Vec::new(),
            end: None,
            recorded: false,
            done: Vec::new(),
            unheard: None,
            succeeds: None,
            doubted: None,
            dropped: None,
            leaves_out: None,
            left_out: None,
        };
        Self { errand: Some(Box::new(errand)), ..Self::new(config, session, seed) }
    }

    /// Before the first poll: whether the store's conditions cover the version that they name; see
    /// [`Store::condition_covers_version`](crate::store::Store::condition_covers_version).
    pub fn condition_covers_version(&mut self, covers: bool) {
        self.clocks.set_covered(covers);
    }

    /// Before the first poll: a probe has shown that the store keeps its conditions, so that no single answer ends this
    /// session for good (S8).
    pub fn store_held(&mut self) {
        self.accepted = true;
    }

    /// Before the first poll: whether a held-up write fails once a later one was accepted; see
    /// [`Store::stale_writes_fail`](crate::store::Store::stale_writes_fail).
    pub fn stale_writes_fail(&mut self, fail: bool) {
        self.stale_writes_fail = fail;
    }

    /// The right to act at this reading, or none (S5, S9, S11).
    pub fn authority(&self, now: Now) -> Option<Authority> {
        if !self.clocks.trusted(now) {
            return None;
        }
        let authority = self.lease_left(now);
        if authority.is_none() && !planted!(LapseForgotten) {
            self.lapsed.0.set(true);
        }
        authority
    }

    /// What this reading says of the term. To ask changes nothing of a term that goes on; one that is seen here to be over
    /// stays so, and [`Election::handle`] tells of it at the next call.
    pub fn standing(&self, now: Now) -> Standing {
        if let Some(authority) = self.authority(now) {
            return Standing::Leads(authority);
        }
        match self.lease_left(now) {
            Some(left) if !self.clocks.stepped_back(now) => Standing::Unproven(left),
            _ => {
                self.lapsed.0.set(true);
                Standing::Over
            }
        }
    }

    /// What happened, given the time at which it is processed.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.observe(now);
        match input {
            Input::Answer(answer) => self.on_answer(now, answer),
            Input::Peer(answer) => self.on_peer(now, answer),
            Input::Tick => {}
            // A session that runs slots has nothing to wait for afterwards.
            Input::Resign => self.begin_wind_down(now, false, self.errand.is_some()),
            Input::Stop { park } => self.begin_wind_down(now, park, true),
            Input::WorkEnded { term } => self.on_work_ended(now, term),
            Input::SlotEnded { term, end } => self.on_slot_ended(term, end),
            Input::Configure(config) => {
                self.config = *config;
                self.config.peer_mode &= self.errand.is_none();
                self.clocks.set_store_skew_ms(self.config.store_skew_ms);
                if self.term.is_none() && self.outstanding.is_none() && self.round.is_some() {
                    // A claim that has not left yet is judged again, by the new settings.
                    self.round = None;
                    self.plan_look(now, 0);
                }
            }
        }
    }

    /// What to do next. The reading is the anchor of the request that the step asks for.
    pub fn poll(&mut self, now: Now) -> Step {
        self.observe(now);
        self.advance_wind_down(now);
        let active = self.term.as_ref().is_some_and(|term| !term.ended);
        if self.finished || (self.failed && !active) {
            if self.failed {
                self.errand_over(SlotsOver::Store);
            }
            if self.wind_down.take().is_some() {
                self.events.push_back(Event::GivenUp);
            }
            self.finished = true;
            return Step::Finished;
        }
        if self.errand_waited(now) {
            return Step::Finished;
        }
        if self.outstanding.is_some() || self.failed || self.awaiting_work() {
            return Step::Wait { until_ms: self.wake_ms(now, u64::MAX) };
        }
        let asks_store = self.plan.action != Action::Ask;
        let not_before_ms = if asks_store { self.not_before_ms } else { 0 };
        let waits_until_ms =
            self.errand_until_ms().filter(|_| !planted!(BudgetForgotten)).unwrap_or(u64::MAX);
        let at_ms = self.plan.at_ms.max(not_before_ms).min(waits_until_ms);
        if now.mono_ms < at_ms {
            return Step::Wait { until_ms: self.wake_ms(now, at_ms) };
        }
        if let Some(errand) = &mut self.errand {
            // Where no condition covers the version, a step is up to three requests: a write, its listing, a cleaning.
            errand.requests += if self.clocks.covered() { 1 } else { 3 };
        }
        match self.plan.action {
            Action::Look => self.look(now),
            Action::Ask => self.ask(now),
            Action::Attempt => self.attempt(now),
        }
    }

    /// The next thing that the application has to be told.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Draws jitter from here on as a new election with this seed does. For whoever explores every course of
    /// events: elections that differ only in what they have drawn become equal.
    pub fn reseed(&mut self, seed: u64) {
        self.chance = seed;
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The random id of this instance.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The name of this participant: `serverId`, or the session's id where none was set.
    pub fn server_id(&self) -> &str {
        if self.config.server_id.is_empty() { &self.session } else { &self.config.server_id }
    }

    /// What somebody should know about, if anything.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref().or(self.warning.as_ref())
    }

    /// The newest record and its version, as last read or written by this session.
    pub fn record(&self) -> Option<(&Version, &Lease)> {
        if let Some(term) = &self.term {
            return Some((&term.version, &term.lease));
        }
        match &self.seen {
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                Some((&observation.version, lease))
            }
            _ => None,
        }
    }

    /// The `serverId` that leads as far as this session knows: its own only with authority.
    pub fn leader_id(&self, now: Now) -> Option<&str> {
        if self.authority(now).is_some() {
            return Some(self.server_id());
        }
        let own =
            self.record().is_some_and(|(_, lease)| lease.session.as_ref() == Some(&self.session));
        self.known_leader.as_deref().filter(|_| !own)
    }

    /// Whether this session runs slots.
    pub fn has_schedule(&self) -> bool {
        self.errand.is_some()
    }

    /// Whether this session has ended for good.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// The slot that this session claimed last, in milliseconds since the Unix epoch.
    pub fn slot_ms(&self) -> Option<u64> {
        self.errand.as_ref()?.begun.last().copied()
    }

    /// The slot of the trigger itself, once it is known, and how many missed ones nobody will run.
    pub fn own_slot_ms(&self) -> Option<(u64, u64)> {
        let errand = self.errand.as_ref()?;
        Some((errand.slot_ms?, errand.left_out.unwrap_or(0)))
    }

    fn lease_left(&self, now: Now) -> Option<Authority> {
        let term = self.term.as_ref().filter(|term| !term.ended)?;
        if planted!(AuthorityIsAFlag) {
            return Some(Authority { term: term.number, remaining_ms: 1 });
        }
        if self.lapsed.0.get() {
            return None;
        }
        let mut remaining_ms = term.anchor.remaining_ms(now)?;
        let renewals = self.unresolved.iter().filter(|attempt| {
            attempt.purpose == Purpose::Renew && !planted!(ShortenedLeaseKeepsFence)
        });
        for anchor in renewals.map(|attempt| &attempt.anchor).chain(&self.forgotten) {
            remaining_ms = remaining_ms.min(anchor.remaining_ms(now)?);
        }
        Some(Authority { term: term.number, remaining_ms })
    }

    /// Takes note of the time: a lapsed term ends here and nowhere else.
    fn observe(&mut self, now: Now) {
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
    fn restart_measures(&mut self, now: Now) {
        if let Seen::Record { observation, .. } = &mut self.seen
            && !planted!(StepBackKeepsAge)
        {
            observation.restart(&self.clocks, now);
        }
        if !self.clocks.covered() {
            // By the clock as it was, the read may seem to have left after what is measured from here on.
            self.seen_sent_ms = self.seen_sent_ms.min(now.mono_ms);
        }
        if let Some(grace) = &mut self.grace {
            grace.since = self.clocks.begin(now);
        }
        if let Some((since, _)) = &mut self.owed {
            *since = self.clocks.begin(now);
        }
        if let Some(until_ms) = self.wind_down.as_mut().and_then(|down| down.until_ms.as_mut()) {
            *until_ms = (*until_ms).min(now.mono_ms + self.config.attempts_ms());
        }
        if self.term.is_none() {
            self.round = None;
            self.plan_look(now, 0);
        }
        if let Some(errand) = &mut self.errand {
            let latest_ms = now.mono_ms.saturating_add(errand.schedule.budget_ms);
            errand.until_ms = errand.until_ms.map(|until_ms| until_ms.min(latest_ms));
        }
        self.peer_silent_until_ms = 0;
        self.peer_moved = None;
        self.compete_after_ms = self.compete_after_ms.min(now.mono_ms + self.sit_out_ms());
        self.not_before_ms = 0;
    }

    /// Nobody knows how long ago these writes left: they may be recognised, but grant nothing (S11).
    fn void_anchors(&mut self) {
        for attempt in &mut self.unresolved {
            attempt.anchor.lease_ms = 0;
        }
        self.unproven = None;
        self.forgotten = None;
    }

    /// Ends the term and with it the authority. The record is ours still, without authority (S9).
    fn end_term(&mut self, reason: LostReason) {
        let Some(term) = self.term.take() else { return };
        self.round = None;
        self.forgotten = None;
        if self.announced.take().is_some() {
            self.tell_lost(term.number, reason);
            // The job may go on for a moment, so this session runs no other.
            let own = self.errand.as_ref().and_then(|errand| errand.slot_ms);
            let lost = own == self.slot_ms();
            self.errand_over(if lost { SlotsOver::Lost } else { SlotsOver::Blocked });
        }
    }

    /// Says that the term is over. Its work may go on for a while, or ignore it.
    fn tell_lost(&mut self, term: u64, reason: LostReason) {
        self.working = Some(term).filter(|_| self.errand.is_none());
        self.events.push_back(Event::Lost { term, reason });
    }

    fn on_work_ended(&mut self, now: Now, term: u64) {
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

    fn wake_ms(&self, now: Now, plan_ms: u64) -> u64 {
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
}

/// Steps: what leaves.
impl Election {
    fn look(&mut self, now: Now) -> Step {
        self.outstanding = Some(Outstanding::Read { sent: now });
        let unless = match (&self.term, &self.seen) {
            // Something between here and the store may answer "unchanged" of an old version for ever.
            _ if self.contradicted && !planted!(RefusedReadConditional) => None,
            (Some(term), _) => Some(term.version.clone()),
            // A held-up copy of its creation can bring such a record back after a deletion, with the same bytes:
            // only the `Last-Modified` of a whole answer shows it.
            (None, Seen::Record { reading, .. }) if reading.may_come_back() => None,
            // Nothing is written over it, so that no refusal would ever show that it is gone.
            (None, Seen::Record { reading: Reading::Closed(_), .. }) => None,
            // Nor has anything else the two times of one answer.
            (None, _) if self.unproven.is_some() => None,
            (None, Seen::Record { observation, .. }) => Some(observation.version.clone()),
            _ => None,
        };
        Step::Read { unless, timeout_ms: self.config.request_timeout_ms }
    }

    fn ask(&mut self, now: Now) -> Step {
        match self.peer_to_ask(now) {
            Some(addr) => {
                self.outstanding = Some(Outstanding::Peer);
                // A peer that hangs must not blind us for longer than a lease.
                let timeout_ms = self.config.peer_timeout_ms.min(self.config.leader_timeout_ms);
                Step::AskPeer { addr, timeout_ms }
            }
            None => self.look(now),
        }
    }

    /// Sends the next attempt of the round: a new sequence, the same condition (S4, S8).
    fn attempt(&mut self, now: Now) -> Step {
        let mut lease_ms = self.config.leader_timeout_ms;
        let mut margin_ms = if planted!(NoMargin) { 0 } else { self.config.margin_ms };
        let stale_fail = self.clocks.covered() && self.stale_writes_fail;
        let varies = stale_fail || planted!(EpochLeaseVaries);
        if let (Some(term), false) = (&self.term, varies) {
            // An earlier renewal may land after a later one: with a shorter lease it would be waited out too early.
            (lease_ms, margin_ms) = (term.anchor.lease_ms, term.anchor.margin_ms);
        }
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
        }
        // The number of a creation is no token, and lies ahead of storage time: it counts once it is in the record (S2).
        if purpose != Purpose::Create {
            self.highest_term = self.highest_term.max(lease.term.unwrap_or(0));
        }
        let anchor = Anchor { sent: now, lease_ms: lease.lease_ms.unwrap_or(lease_ms), margin_ms };
        if let (Purpose::Claim, Some(errand), true) =
            (purpose, &mut self.errand, planted!(BegunBeforeClaim))
        {
            errand.begun.extend(lease.slot);
        }
        self.remember(now, Attempt { purpose, anchor, lease: lease.clone(), rejected: false });
        if matches!(purpose, Purpose::Reserve | Purpose::Claim) {
            self.claim_leaves(now, &condition, lease.slot.filter(|_| purpose == Purpose::Claim));
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
    fn remember(&mut self, now: Now, attempt: Attempt) {
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

    fn renewal(&self) -> Option<Round> {
        let term = self.term.as_ref().filter(|term| !term.ended)?;
        let mut lease = term.lease.clone();
        lease.leader_addr.clone_from(&self.config.server_addr);
        Some(Round {
            purpose: Purpose::Renew,
            condition: Condition::Match(term.version.clone()),
            lease,
            attempts: 0,
        })
    }
}

/// Answers: what comes back.
impl Election {
    fn on_answer(&mut self, now: Now, answer: Answer) {
        let Some(outstanding) = self.outstanding.take() else { return };
        let Answer { outcome, facts } = answer;
        let heard = !matches!(outcome, Outcome::Unknown { .. } | Outcome::Rejected(_));
        let sent = match outstanding {
            Outstanding::Read { sent } => Some(sent),
            Outstanding::Write { sequence } => {
                let own = |attempt: &&Attempt| attempt.lease.sequence == sequence;
                self.unresolved.iter().find(own).map(|attempt| attempt.anchor.sent)
            }
            Outstanding::Peer => None,
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
            Outstanding::Read { sent } => self.on_read(now, sent, outcome, &facts, drift),
            Outstanding::Write { sequence } => self.on_write(now, sequence, outcome),
            Outstanding::Peer => self.on_silent_peer(now),
        }
    }

    fn on_read(&mut self, now: Now, sent: Now, outcome: Outcome, facts: &Facts, drift: Drift) {
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
            Outcome::Unknown { retry_after_ms, cause } => {
                (self.problem, self.unwritten) = (Some(Problem::Store(cause)), false);
                self.leave_alone(now, retry_after_ms);
                self.plan_after_failure(now);
            }
            // No store answers a read like this; nothing may be concluded from it.
            Outcome::Written { .. } | Outcome::Refused => self.plan_after_failure(now),
        }
    }

    fn on_found(
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
        let held = self.term.as_ref().map(|term| &term.version);
        if held == Some(&version) {
            return self.on_not_landed(now);
        }
        if let Some(attempt) = self.landed_attempt(&reading) {
            self.compare_clocks(now, &attempt.anchor, facts);
            return self.on_landed(now, attempt, version);
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
        self.end_term(LostReason::Overtaken);
        let same = matches!(&self.seen, Seen::Record { observation, .. } if observation.version == version);
        self.observe_version(now, sent, version, reading, facts, drift);
        self.unresolved.retain(|attempt| same || attempt.purpose == Purpose::Create);
        let refused = self.round.take().is_some();
        if !(same && refused) {
            self.judge(now);
        }
        // A store that shows other records in turn, each of which may be claimed, is not to be asked without
        // pause either.
        if refused && (same || self.round.is_some()) {
            self.pause_claim(now);
        }
    }

    /// The claim that waits for an answer which shows its record, if this one shows that the store's clock is right.
    fn proven_claim(
        &mut self,
        now: Now,
        version: &Version,
        facts: &Facts,
        drift: Drift,
    ) -> Option<Attempt> {
        let attempt = self.unproven.take()?;
        let waits = |grace: &Grace| grace.version == *version;
        if !self.grace.as_ref().is_some_and(waits)
            || matches!(drift, Drift::StoreAhead | Drift::OwnAhead)
        {
            return None;
        }
        self.compare_clocks(now, &attempt.anchor, facts);
        if self.clocks.pair_agrees() {
            return Some(attempt);
        }
        // A relayed answer says nothing: the next one may.
        self.unproven = Some(attempt).filter(|_| facts.relayed);
        None
    }

    /// A record of ours shows whether `Date` and `Last-Modified` are of one clock (S6 (b)).
    fn compare_clocks(&mut self, now: Now, anchor: &Anchor, facts: &Facts) {
        self.clocks.compare(facts, now.since_pessimistic_ms(anchor.sent), anchor.margin_ms);
        match self.clocks.date_ahead_ms() {
            Some(ahead_ms) => self.warning = Some(Problem::DateAhead { ahead_ms }),
            None => {
                self.warning.take_if(|known| matches!(known, Problem::DateAhead { .. }));
            }
        }
    }

    /// The write of ours that a record shows to have landed, if it is one that we may still adopt (S8).
    fn landed_attempt(&self, reading: &Reading) -> Option<Attempt> {
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
        self.unresolved.iter().find(ours).cloned()
    }

    fn on_unchanged(&mut self, now: Now, sent: Now, facts: &Facts, drift: Drift) {
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
            self.seen_sent_ms = sent.mono_ms;
        }
        if self.round.is_some() {
            return self.pause_claim(now);
        }
        self.judge(now);
    }

    /// A claim was refused or unknown and the record is what it was: looked at again before the next try, so
    /// that a store that keeps refusing is not asked without pause.
    fn pause_claim(&mut self, now: Now) {
        self.round = None;
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals > 1 {
            self.problem.get_or_insert(Problem::Contradicted);
        }
        let pause_ms = self.growing_pause_ms(self.refusals);
        self.plan_look(now, pause_ms);
    }

    /// The record still has the version that we hold: an unresolved write has not landed, yet.
    fn on_not_landed(&mut self, now: Now) {
        if planted!(ReleaseRereadVersion) && self.round.as_ref().is_some_and(|r| r.attempts == 0) {
            self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
            return;
        }
        self.round = None;
        if let Some(wind_down) = self.wind_down {
            if wind_down.until_ms.is_some() {
                self.finish_wind_down(now);
            }
            return;
        }
        self.misses = self.misses.saturating_add(1);
        let pause_ms = self.growing_pause_ms(self.misses);
        self.plan = Plan { at_ms: now.mono_ms + pause_ms, action: Action::Attempt };
    }

    fn on_missing(&mut self, now: Now, sent: Now) {
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
        self.grace = None;
        self.unproven = None;
        self.seen = Seen::Absent;
        self.seen_sent_ms = sent.mono_ms;
        if !(self.unwritten && creating) {
            (self.problem, self.unwritten) = (None, false);
        }
        self.name_leader(None);
        if creating {
            return self.pause_claim(now);
        }
        self.judge(now);
    }

    fn note_reading(&mut self, reading: &Reading) {
        if !self.unwritten {
            self.problem = None;
        }
        match reading {
            Reading::Lease(lease) => {
                self.highest_term = self.highest_term.max(lease.term.unwrap_or(0));
                let lease_ms = lease.lease_ms.unwrap_or(0);
                // A longer one, of another make, is waited out where it is read; a grace is a lease of ours.
                self.longest_lease_ms = self.longest_lease_ms.max(lease_ms.min(MAX_LEASE_MS));
                let max_lease_ms = self.config.max_lease_ms;
                // What is in its grace carries that, and what it says of a lease may have been read of damage.
                if lease_ms > max_lease_ms.max(self.config.grace_ms(0)) && !lease.in_grace() {
                    self.problem = Some(Problem::LeaseTooLong { lease_ms, max_lease_ms });
                }
            }
            Reading::Unreadable(flaw, told) => {
                if !planted!(DamagedTermForgotten) {
                    self.highest_term = self.highest_term.max(told.term.unwrap_or(0));
                }
                if !planted!(DamagedLeaseForgotten) {
                    self.longest_lease_ms = self.longest_lease_ms.max(told.lease_ms.unwrap_or(0));
                }
                self.problem = Some(Problem::Unreadable(*flaw));
            }
            Reading::Closed(Closed::NewerFormat(format)) => {
                self.problem = Some(Problem::NewerFormat(*format));
            }
            Reading::Closed(Closed::TermTooHigh) => self.problem = Some(Problem::TermTooHigh),
        }
    }

    /// Records of other makes have no session: a living one of our name is of somebody who takes our record at once.
    fn note_name(&mut self, now: Now, reading: &Reading) {
        let Reading::Lease(lease) = reading else { return };
        let named = !self.config.server_id.is_empty() && lease.leader_id == self.config.server_id;
        if named && lease.session.is_none() && !lease.released() {
            self.warning = Some(Problem::SharedName(self.config.server_id.clone()));
            self.shared_ms = now.mono_ms;
        }
    }

    /// Counts under how many new versions in a row one write of a member's was shown.
    fn note_versions(&mut self, before: &Seen, version: &Version, reading: &Reading) {
        self.versions_moved = match before {
            // Every body that a member writes has another sequence (S4).
            Seen::Record { observation, reading: Reading::Lease(before) }
                if observation.version != *version =>
            {
                let again = matches!(reading, Reading::Lease(lease) if before.session.is_some()
                    && (&before.session, before.sequence, before.term)
                        == (&lease.session, lease.sequence, lease.term));
                if again { self.versions_moved.saturating_add(1) } else { 0 }
            }
            Seen::Record { .. } => self.versions_moved,
            _ => 0,
        };
    }

    fn observe_version(
        &mut self,
        now: Now,
        sent: Now,
        version: Version,
        mut reading: Reading,
        facts: &Facts,
        drift: Drift,
    ) {
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
                let in_step = self.early.as_ref().is_some_and(|(ms, ..)| *ms <= in_step_ms);
                if in_step && self.misses >= LOST_AFTER {
                    self.early = None;
                }
                self.misses = 0;
                let oldest_ms = now.mono_ms.saturating_sub(self.seen_sent_ms);
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
        if self.clocks.shows_present(facts) {
            self.seen_sent_ms = sent.mono_ms;
        }
        self.grace = self.grace.take().filter(|grace| grace.version == observation.version);
        if let Reading::Lease(lease) = &reading {
            let own = lease.session.as_deref() == Some(&self.session);
            let late = own && lease.in_grace() && self.grace.is_none();
            if late && !planted!(LateCreationHasNoGrace) {
                // A create of ours that landed after we had given it up, or a reservation, over unusable bytes that may
                // have been put again under a leader: known by this read-back only (S7).
                self.grace = Some(self.grace_from(now, observation.version.clone(), lease));
            }
            let leads = !lease.released() && !lease.in_grace();
            self.name_leader(leads.then(|| lease.leader_id.clone()));
        }
        self.seen = Seen::Record { observation: Box::new(observation), reading };
    }

    /// Whether a record shows that its writer goes by another clock than the store's, as we may.
    fn stamped_ahead(&self, reading: &Reading, facts: &Facts) -> bool {
        let (Reading::Lease(lease), Some(modified_ms)) = (reading, facts.last_modified_ms) else {
            return false;
        };
        let (Some(_), Stamp::At(stamp_ms)) = (&lease.session, lease.last_updated) else {
            return false;
        };
        self.clocks.stamped_ahead(stamp_ms, modified_ms, self.config.request_timeout_ms)
    }

    fn grace_from(&self, now: Now, version: Version, lease: &Lease) -> Grace {
        let length_ms =
            self.config.grace_ms(self.longest_lease_ms).max(lease.lease_ms.unwrap_or(0));
        Grace { version, since: self.clocks.begin(now), length_ms, reserved: false }
    }

    fn on_write(&mut self, now: Now, sequence: u64, outcome: Outcome) {
        self.contradicted |= outcome == Outcome::Refused;
        let found = self.unresolved.iter().position(|attempt| attempt.lease.sequence == sequence);
        let Some(index) = found else {
            return self.plan_look(now, 0);
        };
        match outcome {
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
                if let (Some(errand), true) = (&mut self.errand, planted!(RefusedClaimSkipped)) {
                    (errand.unheard, errand.doubted) = (None, None);
                }
                if planted!(RefusedIsLost) {
                    self.unresolved.clear();
                    self.end_term(LostReason::Overtaken);
                }
                self.plan_look(now, 0);
            }
            Outcome::Rejected(fault) => {
                self.unresolved[index].rejected = true;
                if let (Some(errand), true) = (&mut self.errand, planted!(RefusedClaimSkipped)) {
                    (errand.unheard, errand.doubted) = (None, None);
                }
                if planted!(RejectedForgotten) {
                    self.unresolved.swap_remove(index);
                }
                self.unwritten = true;
                self.rejections = self.rejections.saturating_add(1);
                if !self.on_rejected(fault, false) {
                    self.plan_after_rejected_write(now);
                }
            }
            Outcome::Unknown { retry_after_ms, cause } => {
                if planted!(TimeoutDidNotLand) {
                    self.unresolved.swap_remove(index);
                }
                (self.problem, self.unwritten) = (Some(Problem::Store(cause)), true);
                self.leave_alone(now, retry_after_ms);
                self.plan_next_attempt(now);
            }
            // No store answers a write like this: it may have landed.
            Outcome::Found { .. } | Outcome::Missing | Outcome::Unchanged => self.plan_look(now, 0),
        }
    }

    /// Honours `Retry-After`, even where that costs the term: the fence holds all the same (scenario 12).
    fn leave_alone(&mut self, now: Now, retry_after_ms: Option<u64>) {
        let asked_ms = retry_after_ms.unwrap_or(0).min(MAX_RETRY_AFTER_MS);
        self.not_before_ms = now.mono_ms.saturating_add(asked_ms);
    }

    fn plan_next_attempt(&mut self, now: Now) {
        let made = self.round.as_ref().map_or(ATTEMPTS, |round| round.attempts);
        if made >= ATTEMPTS {
            return self.plan_look(now, 0);
        }
        let delay_ms = self.config.retry_delays_ms[made.saturating_sub(1).min(1)];
        self.plan = Plan { at_ms: now.mono_ms + delay_ms, action: Action::Attempt };
    }

    /// A write of ours is known to have landed: by its own answer, or by reading it back.
    fn on_landed(&mut self, now: Now, attempt: Attempt, version: Version) {
        (self.accepted, self.contradicted, self.rejections) = (true, false, 0);
        // Every other write of ours had the same condition, which no longer holds.
        self.unresolved.clear();
        self.forgotten = None;
        self.round = None;
        (self.failures, self.misses, self.refusals) = (0, 0, 0);
        (self.problem, self.unwritten) = (None, false);
        let unsettled = self.unsettled(now);
        let unproven = self.unproven_age(&attempt, unsettled);
        self.highest_term = self.highest_term.max(attempt.lease.term.unwrap_or(0));
        let lease_ms = attempt.lease.lease_ms.unwrap_or(0).min(MAX_LEASE_MS);
        self.longest_lease_ms = self.longest_lease_ms.max(lease_ms);
        self.seen_sent_ms = attempt.anchor.sent.mono_ms;
        // The record that it waited for is gone; if it ever comes back, it is waited for anew.
        self.grace = None;
        self.see_own(now, &attempt.lease, version.clone());
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
                let mut grace = self.grace_from(now, version, &attempt.lease);
                if !unsettled {
                    (grace.length_ms, grace.reserved) = (self.foreign_room_ms(), true);
                }
                self.grace = Some(grace);
                self.judge(now);
            }
            Purpose::Claim | Purpose::Reserve => self.judge(now),
            Purpose::Release | Purpose::Park => self.on_given_up(now, &attempt.lease),
        }
    }

    /// The record is what this session has written now.
    fn see_own(&mut self, now: Now, lease: &Lease, version: Version) {
        let mut observation = Observation::first(version, &self.clocks, now);
        observation.made(&self.clocks, self.clocks.newest());
        let reading = Reading::Lease(Box::new(lease.clone()));
        self.seen = Seen::Record { observation: Box::new(observation), reading };
    }

    fn on_given_up(&mut self, now: Now, lease: &Lease) {
        self.name_leader((!lease.released()).then(|| lease.leader_id.clone()));
        if let Some(errand) = &mut self.errand {
            errand.recorded = true;
        }
        self.finish_wind_down(now);
    }

    /// How long a claim that has landed waits, in milliseconds, because it rests on a clock of the store that no write of
    /// ours has shown to be right; and whether the next answer can show it.
    fn unproven_age(&mut self, attempt: &Attempt, unsettled: bool) -> Option<(u64, bool)> {
        let wait_ms = self.unproven_wait_ms.take()?;
        let taken = matches!(attempt.purpose, Purpose::Claim | Purpose::Reserve);
        let by_store = matches!(&self.seen,
            Seen::Record { observation, .. } if observation.has_store_clock(&self.clocks));
        let proven = by_store && self.clocks.pair_agrees();
        (taken && !proven).then_some((wait_ms, by_store && !unsettled))
    }

    /// Whether what has landed now may lie on unusable bytes that were put again under a leader. No other member begins a
    /// term over such bytes within this time after the look that showed them old.
    fn unsettled(&self, now: Now) -> bool {
        let Seen::Record { observation, reading: Reading::Unreadable(..) } = &self.seen else {
            return false;
        };
        now.mono_ms.saturating_sub(self.seen_sent_ms) >= self.foreign_room_ms()
            || self.age_to_claim_ms(observation, now) < self.config.grace_ms(self.longest_lease_ms)
    }

    /// The grace counts from here, not from the answer that showed absence: between that answer and this
    /// write somebody else may have created, led and been deleted.
    fn on_created(&mut self, now: Now, attempt: &Attempt, version: Version) {
        let from = if planted!(GraceFromSending) { attempt.anchor.sent } else { now };
        let grace = self.grace_from(from, version.clone(), &attempt.lease);
        if grace.length_ms > self.config.grace_ms(0) {
            self.problem = Some(Problem::LongWait);
        }
        self.grace = Some(grace);
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
        if self.errand.is_some() {
            // Whether the store says when it was made decides what it says of slots.
            return self.plan_look(now, 0);
        }
        self.judge(now);
    }

    fn begin_term(&mut self, now: Now, lease: Lease, version: Version, anchor: Anchor) {
        let (number, slot_ms) = (lease.term.unwrap_or(0), lease.slot);
        (self.grace, self.owed) = (None, None);
        self.lapsed.0.set(false);
        let ended = self.wind_down.is_some() && !planted!(StopForgetsClaim);
        self.term = Some(Term { number, version, lease, anchor, ended });
        self.plan_renewal(now, anchor.sent);
        if self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_some()) {
            self.begin_release(now);
        }
        if let (Some(errand), Some(slot_ms)) = (&mut self.errand, slot_ms) {
            (errand.unheard, errand.doubted) = (None, None);
            errand.left_out = errand.left_out.or(errand.leaves_out.take());
            match ended {
                true => errand.dropped = Some(slot_ms),
                false => errand.begun.push(slot_ms),
            }
        }
        if !ended {
            if !planted!(AcquiredBeforeWrite) {
                self.announce(number);
            }
            self.name_leader(Some(self.server_id().to_owned()));
        }
    }

    fn announce(&mut self, term: u64) {
        self.announced = Some(term);
        self.events.push_back(Event::Acquired { term });
    }

    fn on_renewed(&mut self, now: Now, lease: Lease, version: Version, anchor: Anchor) {
        match &mut self.term {
            Some(term) if lease.term == Some(term.number) => {
                if !planted!(ConstantEtag) {
                    term.version = version;
                }
                term.lease = lease;
                term.anchor = anchor;
                // Whoever was there would have written over our record by now.
                let alone_ms = now.mono_ms.saturating_sub(self.shared_ms);
                if alone_ms >= 2 * self.config.leader_timeout_ms {
                    self.warning.take_if(|known| matches!(known, Problem::SharedName(_)));
                }
                self.plan_renewal(now, anchor.sent);
            }
            None if planted!(LapsedRenewalAdopted) && anchor.remaining_ms(now).is_some() => {
                self.begin_term(now, lease, version, anchor);
            }
            // The term lapsed before this was known: the record is ours, without authority (S9).
            _ => self.judge(now),
        }
        if self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_some()) {
            self.release_again(now);
        }
    }

    /// Takes note of what a store says beside its answers, unless something worse is known.
    pub fn complain(&mut self, fault: Fault) {
        self.problem.get_or_insert(Problem::Store(fault));
    }

    /// Takes note of what the store refuses to do; true if that is final. What has worked once is not given up for one
    /// answer, which may be a proxy's or of a moment (S8).
    fn on_rejected(&mut self, fault: Fault, answered: bool) -> bool {
        let works = (self.accepted || answered) && !planted!(OneAnswerIsFinal);
        // Authority that is still proven lasts to its fence, but nothing is tried again (scenario 14).
        self.failed = fault.kind == FaultKind::Misconfigured && !works;
        if self.failed {
            self.events.push_back(Event::Failed(fault.clone()));
        }
        self.problem = Some(Problem::Store(fault));
        self.failed
    }

    fn plan_after_rejected_write(&mut self, now: Now) {
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

    fn on_peer(&mut self, now: Now, answer: PeerAnswer) {
        if !matches!(self.outstanding, Some(Outstanding::Peer)) {
            return;
        }
        self.outstanding = None;
        match answer {
            PeerAnswer::Alive { leader_id, term, sequence }
                if self.peer_moves(now, &leader_id, term, sequence) =>
            {
                if let Seen::Record { observation, .. } = &mut self.seen
                    && planted!(PeerExtendsLease)
                {
                    observation.restart(&self.clocks, now);
                }
                let at_ms = now.mono_ms + self.peer_interval_ms();
                self.plan = Plan { at_ms, action: Action::Ask };
            }
            _ => self.on_silent_peer(now),
        }
    }

    /// Whether an answer is of the leader and the term that the record names, and of a leader that renews: one whose
    /// sequence has not grown for a lease is somebody's who repeats an old answer.
    fn peer_moves(&mut self, now: Now, leader_id: &str, term: Option<u64>, sequence: u64) -> bool {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return false };
        if lease.leader_id != leader_id || lease.term != term {
            return false;
        }
        let grown = |(before, at, _): &(Option<u64>, u64, u64)| *before != term || sequence > *at;
        if self.peer_moved.as_ref().is_none_or(grown) {
            self.peer_moved = Some((term, sequence, now.mono_ms));
            return true;
        }
        let since_ms = self.peer_moved.map_or(now.mono_ms, |(_, _, since_ms)| since_ms);
        let still_ms = now.mono_ms.saturating_sub(since_ms);
        still_ms < self.lease_to_wait_ms(lease) || planted!(PeerReplayBelieved)
    }

    fn on_silent_peer(&mut self, now: Now) {
        self.peer_silent_until_ms = now.mono_ms + self.config.leader_timeout_ms;
        self.plan_look(now, 0);
    }
}

/// Decisions: what is justified, and when to look next.
impl Election {
    /// Judges what the answer that is processed now has shown; claims follow an answer, never a timer.
    fn judge(&mut self, now: Now) {
        if let Some(wind_down) = self.wind_down {
            if self.term.is_none() && wind_down.until_ms.is_some() {
                self.finish_wind_down(now);
            }
            return;
        }
        if self.term.is_some() || self.failed || self.finished || !self.errand_goes_on(now) {
            return;
        }
        let working = self.working.filter(|_| !planted!(CompetesUnderOldWork));
        if let Some(term) = working {
            self.held_back = true;
            // Nothing is written meanwhile, so that a write that failed before is no problem any more.
            if self.problem.is_none() || self.unwritten {
                (self.problem, self.unwritten) = (Some(Problem::WorkGoesOn { term }), false);
            }
        } else if now.mono_ms >= self.compete_after_ms
            && let Some(round) = self.justified_claim(now)
        {
            self.unproven_wait_ms = self.unproven_wait_ms(now);
            self.clocks.forget_agreement();
            // A tombstone lets everybody claim: what it says of the record before has to be sure. Nor is a wait begun
            // that is longer than any of this group's: that is watched (a).
            let longest_ms = self.config.grace_ms(0);
            let bounded = self.unproven_wait_ms.is_none_or(|wait_ms| wait_ms <= longest_ms);
            if self.unproven_wait_ms.is_none() || (bounded && !round.lease.released()) {
                self.round = Some(round);
                self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
                return;
            }
        }
        self.plan_follow(now);
    }

    /// How long a claim of the newest record waits once it has landed, if nothing but the store's clock, which no write
    /// of this session has shown to be right, says that the record is old enough (S6 (b)).
    fn unproven_wait_ms(&self, now: Now) -> Option<u64> {
        let Seen::Record { observation, reading } = &self.seen else { return None };
        let watched_ms = observation.watched_ms(&self.clocks, self.as_claimed(now));
        let wait_ms = match reading {
            Reading::Lease(lease) if self.may_succeed(now, lease, watched_ms) => return None,
            Reading::Lease(lease) => self.lease_to_wait_ms(lease),
            Reading::Unreadable(..) | Reading::Closed(_) => {
                self.config.grace_ms(self.longest_lease_ms)
            }
        };
        (watched_ms < wait_ms).then_some(wait_ms)
    }

    /// The claim that S6 and S7 allow at this reading, if any.
    fn justified_claim(&mut self, now: Now) -> Option<Round> {
        let verdict = self.slot_verdict(now).map(|(_, verdict)| verdict);
        let longest_ms = self.longest_lease_ms;
        let (condition, before, previous_term) = match &self.seen {
            Seen::Nothing => return None,
            Seen::Absent => return self.creation(now),
            Seen::Record { observation, reading } => {
                let condition = Condition::Match(observation.version.clone());
                let age_ms = self.age_to_claim_ms(observation, now);
                match reading {
                    Reading::Closed(_) if !planted!(NewerFormatClaimed) => return None,
                    Reading::Closed(_) | Reading::Unreadable(..) => {
                        let healed = planted!(GarbageHealedAtOnce);
                        if age_ms < self.config.grace_ms(longest_ms) && !healed {
                            return None;
                        }
                        if self.reserves(verdict) && !planted!(GarbageHealedInOneWrite) {
                            let term = match reading {
                                Reading::Unreadable(_, told) => told.term,
                                _ => None,
                            };
                            return Some(self.reservation(condition, None, term));
                        }
                        (condition, None, self.foreign_term(now))
                    }
                    Reading::Lease(lease) => {
                        if !self.may_succeed(now, lease, age_ms) {
                            return None;
                        }
                        let term = match lease.term {
                            Some(term) => term,
                            None if lease.released() && self.reserves(verdict) => {
                                return Some(self.reservation(condition, Some(lease), None));
                            }
                            None if self.foreign_term_ahead_ms(now) > 0 => return None,
                            None => self.foreign_term(now),
                        };
                        (condition, Some((**lease).clone()), term)
                    }
                }
            }
        };
        let term =
            self.new_term(previous_term.saturating_add(1), self.clocks.storage_ceiling_ms(now))?;
        let mut lease = self.own_lease(before.as_ref(), term);
        lease.acquired = Some(i64::try_from(self.clocks.storage_ms(now)).unwrap_or(i64::MAX));
        if let (Some(slot_ms), true) = (lease.slot, before.is_some_and(|b| b.acquired.is_none())) {
            // What nobody has led with may have come back after a deletion: its slot covers no less than it counts for.
            let counted_ms = self.storage_times(now).claimed_through_ms();
            (lease.slot, lease.slot_done) = (Some(slot_ms.max(counted_ms)), Some(true));
        }
        let purpose = self.claim_slot(now, verdict, &mut lease);
        Some(Round { purpose, condition, lease, attempts: 0 })
    }

    /// Whether a record may be succeeded: a tombstone, our own without authority and outside its grace, one
    /// parked for us, or one whose age is proven (S6).
    fn may_succeed(&self, now: Now, lease: &Lease, age_ms: u64) -> bool {
        let own_name = lease.leader_id == self.server_id();
        let named = planted!(OwnNameIsOwnSession) && own_name;
        // A member of another make that keeps what it does not know carries our session on under its own name.
        if (lease.session.as_deref() == Some(&self.session) && own_name) || named {
            let grace = self.grace.as_ref().map(|grace| (grace.since, grace.length_ms));
            let over = |(since, length_ms)| self.clocks.passed_ms(now, since) >= length_ms;
            return grace.is_none_or(over) && self.owed.is_none_or(over);
        }
        if lease.released() {
            return true;
        }
        if planted!(WallClocksCompared)
            && let Stamp::At(updated_ms) = lease.last_updated
        {
            let wall_ms = i64::try_from(now.wall_ms).unwrap_or(i64::MAX);
            return wall_ms - updated_ms >= self.lease_to_wait_ms(lease) as i64;
        }
        let named = !self.config.server_id.is_empty() && lease.leader_id == self.config.server_id;
        let parked_for_us = lease.parked && (named || planted!(ParkedForAnybody));
        let silent = planted!(SilentPeerIsDead) && now.mono_ms < self.peer_silent_until_ms;
        parked_for_us || silent || age_ms >= self.lease_to_wait_ms(lease)
    }

    /// The age that a claim may rest on (S6): where its condition does not cover the version, as it was when the read
    /// left that showed the version last.
    fn age_to_claim_ms(&self, observation: &Observation, now: Now) -> u64 {
        observation.age_ms(&self.clocks, self.as_claimed(now))
    }

    fn as_claimed(&self, now: Now) -> Now {
        let sent = Now { mono_ms: self.seen_sent_ms.min(now.mono_ms), ..now };
        let goes_on = self.clocks.covered() || planted!(EpochAgeGoesOn);
        if goes_on { now } else { sent }
    }

    /// How long a record of somebody else's is waited out: its own lease, ours for foreign ones.
    fn lease_to_wait_ms(&self, lease: &Lease) -> u64 {
        let own_ms = self.config.leader_timeout_ms;
        if planted!(CandidateLease) { own_ms } else { lease.lease_ms.unwrap_or(own_ms) }
    }

    /// The record that is created from absence: a lease as long as the grace, without authority (S7). Its
    /// term is what a record without one would count as, so that the stored number does not fall either,
    /// except by a create that lands late.
    fn creation(&mut self, now: Now) -> Option<Round> {
        let floor = self.clocks.storage_ceiling_ms(now).saturating_add(self.foreign_room_ms());
        let term = self.new_term(0, floor)?;
        let mut lease = self.own_lease(None, term);
        lease.lease_ms = Some(self.config.grace_ms(self.longest_lease_ms));
        if self.errand.is_some() {
            // Said in the record itself, for stores that name no `Last-Modified`.
            lease.slot = Some(self.storage_times(now).claimed_through_ms());
            lease.slot_done = Some(true);
        }
        if planted!(ClaimAbsenceWithoutGrace) {
            lease.acquired = Some(0);
        }
        Some(Round { purpose: Purpose::Create, condition: Condition::Absent, lease, attempts: 0 })
    }

    /// A tombstone without a term is equal in every byte to the next one of that member, and what a hand puts there may
    /// be put again; so are their versions: a claim could land on the next, with a token of before. So it is taken
    /// without a new term and without authority, and that comes by a write on this version, which nothing but a held-up
    /// copy of this write can bring back (S2, S4).
    fn reservation(
        &self,
        condition: Condition,
        before: Option<&Lease>,
        term: Option<u64>,
    ) -> Round {
        let mut lease = Lease { term, ..self.own_lease(before, 0) };
        if before.is_none() {
            // If it lands late, on the same bytes put again under a leader, others wait as for these (S7).
            lease.lease_ms = Some(self.config.grace_ms(self.longest_lease_ms));
        }
        Round { purpose: Purpose::Reserve, condition, lease, attempts: 0 }
    }

    /// Not where a slot is claimed: by the time of that write it would count as claimed.
    fn reserves(&self, verdict: Option<Verdict>) -> bool {
        self.clocks.covered() && !matches!(verdict, Some(Verdict::Claim { .. }))
    }

    fn own_lease(&self, before: Option<&Lease>, term: u64) -> Lease {
        let moved = before.is_some_and(|lease| lease.leader_id != self.server_id());
        Lease {
            leader_id: self.server_id().to_owned(),
            leader_addr: self.config.server_addr.clone(),
            last_updated: Stamp::At(0),
            term: Some(term),
            session: Some(self.session.clone()),
            sequence: 0,
            lease_ms: Some(self.config.leader_timeout_ms),
            acquired: None,
            transitions: before
                .map_or(0, |lease| lease.transitions.saturating_add(u64::from(moved))),
            parked: false,
            slot: before.and_then(|lease| lease.slot),
            slot_done: before.and_then(|lease| lease.slot_done),
            slot_result: before.and_then(|lease| lease.slot_result.clone()),
            slot_took_ms: before.and_then(|lease| lease.slot_took_ms),
            slot_failures: before.and_then(|lease| lease.slot_failures),
            extra: before.map(|lease| lease.extra.clone()).unwrap_or_default(),
        }
    }

    /// What a record without a term counts as: the storage time of its last change, with room for the
    /// store's own clocks (S2, design section 4).
    fn foreign_term(&self, now: Now) -> u64 {
        let known_ms = match &self.seen {
            Seen::Record { observation, .. } => observation.changed_by_ms(&self.clocks),
            _ => None,
        };
        let changed_ms = known_ms.unwrap_or_else(|| self.clocks.storage_ceiling_ms(now));
        changed_ms.saturating_add(self.foreign_room_ms())
    }

    /// What the clocks of the store and their whole seconds may make of one instant (S2).
    fn foreign_room_ms(&self) -> u64 {
        self.config.store_skew_ms + 2_000
    }

    /// How long until what a record without a term counts as is surely not ahead of storage time, in milliseconds. A
    /// token that ran ahead of it could be handed out again after the next such record, which counts by the whole
    /// seconds of another of the store's clocks (S2).
    fn foreign_term_ahead_ms(&self, now: Now) -> u64 {
        let Seen::Record { observation, .. } = &self.seen else { return 0 };
        let ahead_ms = self.foreign_term(now).saturating_sub(self.clocks.storage_ceiling_ms(now));
        ahead_ms.min(self.foreign_room_ms().saturating_sub(observation.age_ms(&self.clocks, now)))
    }

    fn new_term(&mut self, at_least: u64, storage_ms: u64) -> Option<u64> {
        if planted!(TermRestarts) {
            return Some(at_least.max(1));
        }
        let highest = if planted!(HighestTermForgotten) { 0 } else { self.highest_term };
        let term =
            at_least.max(highest.saturating_add(1)).max(self.config.term_floor).max(storage_ms);
        if term > MAX_TERM {
            self.problem = Some(Problem::TermTooHigh);
            return None;
        }
        Some(term)
    }

    fn plan_look(&mut self, now: Now, pause_ms: u64) {
        self.plan = Plan { at_ms: now.mono_ms.saturating_add(pause_ms), action: Action::Look };
    }

    fn plan_renewal(&mut self, now: Now, after: Now) {
        let Some(term) = &self.term else { return };
        let span_ms = term.anchor.lease_ms.saturating_sub(term.anchor.margin_ms);
        // The settings may be newer than the lease that was written: three attempts have to fit into that, or a third.
        let fits_ms = span_ms.saturating_sub(self.config.attempts_ms()).max(span_ms / 3);
        let pause_ms = self.config.frequent_interval_ms.min(fits_ms);
        let at_ms = after.mono_ms.saturating_add(pause_ms);
        self.plan = Plan { at_ms: at_ms.max(now.mono_ms), action: Action::Attempt };
    }

    /// After a request without a usable answer: two quick retries, then a capped back-off (scenario 64).
    fn plan_after_failure(&mut self, now: Now) {
        self.failures = self.failures.saturating_add(1);
        let [first_ms, second_ms] = self.config.retry_delays_ms;
        let frequent_ms = self.config.frequent_interval_ms;
        // A trigger has a budget: it waits for the store as often as for somebody else's lease.
        let cap_ms = match self.errand {
            Some(_) => frequent_ms,
            None => self.config.infrequent_interval_ms.max(self.config.leader_timeout_ms),
        };
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
    fn in_doubt(&self) -> bool {
        self.unproven.is_some() || self.unresolved.iter().any(|attempt| !attempt.rejected)
    }

    fn growing_pause_ms(&mut self, times: u32) -> u64 {
        let [first_ms, _] = self.config.retry_delays_ms;
        let cap_ms = self.config.frequent_interval_ms;
        let pause_ms = first_ms.saturating_mul(1 << (times.saturating_sub(1)).min(16)).min(cap_ms);
        pause_ms + self.random_below(pause_ms / 2 + 1)
    }

    /// When a follower looks next (design section 3, timing).
    fn plan_follow(&mut self, now: Now) {
        let frequent_ms = self.config.frequent_interval_ms;
        let spread_ms = self.spread_ms();
        let jitter_ms = self.random_below(frequent_ms / 10 + 1);
        let soon_ms = now.mono_ms + frequent_ms + jitter_ms;
        let (at_ms, action) = match &self.seen {
            Seen::Record { observation, reading: Reading::Lease(lease) } => {
                let own = lease.session.as_deref() == Some(&self.session);
                let lease_ms = self.lease_to_wait_ms(lease);
                let proof_ms =
                    observation.proven_at_ms(&self.clocks, now, lease_ms).saturating_add(spread_ms);
                let grace_left_ms = self.grace.as_ref().filter(|_| own).map_or(0, |grace| {
                    grace.length_ms.saturating_sub(self.clocks.passed_ms(now, grace.since))
                });
                match grace_left_ms {
                    // Looked at once meanwhile, to know when it was made.
                    left_ms if left_ms > 0 && !observation.has_latest() => {
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
                        let reached_ms = now.mono_ms + ahead_ms.max(1_000) + spread_ms;
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
                let at_ms = if proven { soon_ms } else { soon_ms.min(proof_ms + spread_ms) };
                (at_ms, Action::Look)
            }
            _ => (soon_ms, Action::Look),
        };
        self.note_wait(now);
        self.misses = self.misses.saturating_add(1);
        self.refusals = 0;
        // A single clock learns of a second only by the store's `Date`: no reading over and over meanwhile.
        let least_ms = self.config.retry_delays_ms[0].min(100);
        self.plan = Plan { at_ms: at_ms.max(now.mono_ms + least_ms), action };
    }

    /// Whoever looks at the elector is told why nobody leads for long.
    fn note_wait(&mut self, now: Now) {
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

    fn stable_look_ms(&mut self, now: Now, proof_ms: u64, jitter_ms: u64) -> u64 {
        let frequent_ms = self.config.frequent_interval_ms;
        let Seen::Record { observation, reading: Reading::Lease(lease) } = &self.seen else {
            return now.mono_ms + frequent_ms;
        };
        // Another session of our own name may park at any moment (design, Crons), and so may a job end; a silent peer
        // is a sign.
        let own_name = lease.leader_id == self.config.server_id || self.errand.is_some();
        if own_name || now.mono_ms < self.peer_silent_until_ms {
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
        match self.config.follow {
            // A tick ends before the look of the next interval: it would never see a lease run out.
            Follow::Frugal if self.config.sustain_ms.is_none() => {
                let late = observation.age_ms(&self.clocks, now) > frequent_ms;
                let usual_ms = now.mono_ms + self.config.infrequent_interval_ms + jitter_ms;
                if fresh && !late { usual_ms } else { usual_ms.min(proof_ms) }
            }
            Follow::Balanced | Follow::Frugal if observation.has_store_clock(&self.clocks) => {
                proof_ms
            }
            // Earlier than the next renewal after one was seen, a little later until one is, and less early from
            // then on: so the look settles just behind the renewals within a few of them, for one GET per
            // interval and a few more.
            _ if fresh => {
                self.early = Some((early_ms, leader_id, term));
                // From when the read left, as the leader counts: a slow store must not carry the look away.
                // A single clock may have stepped back since.
                self.seen_sent_ms.min(now.mono_ms) + frequent_ms - early_ms
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

    fn peer_interval_ms(&self) -> u64 {
        match self.config.follow {
            Follow::Tight => self.config.frequent_interval_ms,
            Follow::Balanced => self.config.leader_timeout_ms,
            Follow::Frugal => self.config.infrequent_interval_ms,
        }
    }

    /// The address to ask instead of the store, if peers are on and the record names a usable one.
    fn peer_to_ask(&self, now: Now) -> Option<String> {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return None };
        let own = lease.session.as_deref() == Some(&self.session)
            || lease.leader_addr == self.config.server_addr;
        // No peer blinds a follower: some time the store is read whatever the peer says.
        let unread_ms = now.mono_ms.saturating_sub(self.seen_sent_ms);
        let read = unread_ms < LEASES_BY_PEER.saturating_mul(self.lease_to_wait_ms(lease))
            || planted!(PeerBelievedForEver);
        let usable = self.config.peer_mode
            && read
            && !own
            && !lease.parked
            && !lease.released()
            && now.mono_ms >= self.peer_silent_until_ms
            && is_peer_addr(&lease.leader_addr);
        usable.then(|| lease.leader_addr.clone())
    }

    fn name_leader(&mut self, leader_id: Option<String>) {
        if self.known_leader != leader_id {
            self.known_leader.clone_from(&leader_id);
            self.events.push_back(Event::NewLeader { leader_id });
        }
    }

    /// How long after a lease ran out this follower looks. Most followers draw a time near the end and few an
    /// early one, so that whatever their number only a handful act before the first of them is seen: the
    /// truncated exponential distribution of feedback suppression in multicast (Nonnenmacher and Biersack).
    fn spread_ms(&mut self) -> u64 {
        const SLOTS: u64 = 14;
        let window_ms = (self.config.leader_timeout_ms / 30).min(SPREAD_MS);
        let from_end = u64::from(self.random().leading_zeros()).min(SLOTS - 1);
        let within_ms = self.random_below(window_ms / SLOTS + 1);
        window_ms * (SLOTS - 1 - from_end) / SLOTS + within_ms
    }

    /// SplitMix64: small, seeded by the host, and never used for anything that has to be secret.
    fn random(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.random() % bound }
    }
}

/// Giving up the leadership: authority ends, the work stops, then the record says so (S5, S12).
impl Election {
    fn begin_wind_down(&mut self, now: Now, park: bool, finish: bool) {
        if self.finished {
            return;
        }
        if let Some(wind_down) = &mut self.wind_down {
            wind_down.finish |= finish;
            wind_down.park |= park && wind_down.until_ms.is_none();
            return;
        }
        if !finish {
            self.compete_after_ms = now.mono_ms + self.sit_out_ms();
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
            self.term = Some(Term { number, version, lease, anchor, ended: true });
        }
        let acting = planted!(ParkUnderAuthority) && park;
        let announced = self.announced.take_if(|_| !acting);
        if let Some(term) = announced {
            let reason = if finish { LostReason::Stopped } else { LostReason::Resigned };
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
                wind_down.work_ended |= self.errand.is_some();
            }
            return;
        }
        self.errand_over(SlotsOver::Stopped);
        self.events.push_back(Event::GivenUp);
        if finish {
            self.finished = true;
        } else if self.outstanding.is_none() {
            self.plan_look(now, self.config.frequent_interval_ms);
        }
    }

    /// Whether a write that would have to be released may have landed.
    fn claiming(&self) -> bool {
        let taken = [Purpose::Claim, Purpose::Reserve];
        self.unproven.is_some()
            || self.unresolved.iter().any(|attempt| taken.contains(&attempt.purpose))
    }

    /// How long a session that resigned leaves the lease to others.
    fn sit_out_ms(&self) -> u64 {
        self.config.leader_timeout_ms + self.config.frequent_interval_ms
    }

    fn awaiting_work(&self) -> bool {
        self.term.is_some() && self.wind_down.is_some_and(|wind_down| wind_down.until_ms.is_none())
    }

    fn advance_wind_down(&mut self, now: Now) {
        let Some(wind_down) = self.wind_down else { return };
        if wind_down.until_ms.is_some_and(|until_ms| now.mono_ms >= until_ms) {
            return self.finish_wind_down(now);
        }
        if self.outstanding.is_some() || wind_down.until_ms.is_some() {
            return;
        }
        let until_ms = Some(now.mono_ms + self.config.attempts_ms());
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

    fn begin_release(&mut self, now: Now) {
        let (Some(term), Some(wind_down)) = (&self.term, self.wind_down) else { return };
        let mut lease = term.lease.clone();
        // Nobody has led with a reservation, so there is nothing to keep.
        let park = wind_down.park && !(lease.in_grace() && lease.term.is_none());
        let purpose = if park { Purpose::Park } else { Purpose::Release };
        lease.parked = park;
        if park {
            // Nobody acts meanwhile, so that a late trigger costs less than its lease: the group's longest is waited out.
            lease.lease_ms = Some(self.config.max_lease_ms);
        } else {
            lease.last_updated = Stamp::Released;
        }
        if let Some((_, end)) = self.errand.as_ref().and_then(|errand| errand.end.as_ref()) {
            close_slot(&mut lease, end);
        }
        let condition = Condition::Match(term.version.clone());
        self.round = Some(Round { purpose, condition, lease, attempts: 0 });
        self.plan = Plan { at_ms: now.mono_ms, action: Action::Attempt };
        if planted!(ReleaseRereadVersion) {
            self.plan_look(now, 0);
        }
    }

    /// A refused tombstone met a renewal of our own that had landed: it is written once more (S12).
    fn release_again(&mut self, now: Now) {
        match &mut self.wind_down {
            Some(wind_down) if !wind_down.read_back => {
                wind_down.read_back = true;
                self.begin_release(now);
            }
            _ => self.finish_wind_down(now),
        }
    }

    fn finish_wind_down(&mut self, now: Now) {
        self.term = None;
        self.round = None;
        if let Some(wind_down) = self.wind_down.take() {
            if self.errand.is_some() {
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

/// Slots: which to claim next, and when there is nothing left to do.
impl Election {
    fn storage_times(&self, now: Now) -> StorageTimes {
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
    fn slot_verdict(&self, now: Now) -> Option<(u64, Verdict)> {
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
    fn errand_goes_on(&mut self, now: Now) -> bool {
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
    fn claim_slot(&mut self, now: Now, verdict: Option<Verdict>, lease: &mut Lease) -> Purpose {
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

    fn on_slot_ended(&mut self, term: u64, end: SlotEnd) {
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
    fn slot_closed(&mut self, now: Now, finish: bool) {
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

    fn errand_over(&mut self, why: SlotsOver) {
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
    fn has_covered(&self) -> bool {
        let (Some(errand), Some((_, lease))) = (&self.errand, self.record()) else { return false };
        let own = lease.session.as_ref() == Some(&self.session) && lease.released();
        own && lease.slot_done == Some(true)
            && errand
                .slot_ms
                .is_some_and(|own_ms| lease.slot >= Some(own_ms) && !errand.begun.contains(&own_ms))
    }

    /// Until when to wait for somebody else's lease, on the monotonic clock; nothing while there is more to do than
    /// to wait.
    fn errand_until_ms(&self) -> Option<u64> {
        let errand = self.errand.as_ref()?;
        let claiming = self.round.as_ref().is_some_and(|round| round.attempts == 0);
        if self.term.is_some() || self.wind_down.is_some() || claiming {
            return None;
        }
        errand.until_ms
    }

    /// What becomes of a claim is worth as much time as three attempts and a read-back take, whatever was left; once,
    /// so that a store that shows old states in turn is not asked for ever.
    fn claim_leaves(&mut self, now: Now, condition: &Condition, slot_ms: Option<u64>) {
        let needed_ms = now.mono_ms.saturating_add(self.config.attempts_ms());
        let succeeds = self.record().and_then(|(_, lease)| lease.term);
        let Some(errand) = &mut self.errand else { return };
        if let Some(until_ms) = errand.until_ms.filter(|ms| *ms < needed_ms && !errand.extended) {
            errand.until_ms = Some(until_ms.max(needed_ms));
            errand.extended = true;
        }
        errand.unheard = Some(condition.clone());
        errand.succeeds = succeeds;
        if errand.doubted.map(|(doubted_ms, _)| doubted_ms) != slot_ms.or(errand.slot_ms) {
            errand.doubted = slot_ms.map(|slot_ms| (slot_ms, now.mono_ms));
        }
    }

    /// Ends a schedule whose budget is used up; true if it did.
    fn errand_waited(&mut self, now: Now) -> bool {
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

    /// Whether nobody knows what became of this session's claim of the trigger's own slot: it may have landed, or may
    /// still.
    fn claim_in_doubt(&self) -> bool {
        let Some(errand) = &self.errand else { return false };
        let own = |lease: &&Lease| lease.session.as_ref() == Some(&self.session);
        let own = self.record().map(|(_, lease)| lease).filter(own);
        // A write that counts the slot as claimed, which no record of its own, nor anybody else's, has shown to be over.
        let covers = errand.unheard.is_some()
            && errand.doubted.is_none()
            && own.is_none_or(|lease| lease.acquired.is_none())
            && !planted!(UnheardCoverSkipped);
        let late = own.filter(|lease| lease.slot_done == Some(false)).and_then(|lease| lease.slot);
        let doubted = errand.doubted.map(|(slot_ms, _)| slot_ms);
        errand.slot_ms.is_some_and(|own_ms| {
            let open = late == Some(own_ms) || doubted == Some(own_ms) || covers;
            open && !errand.begun.contains(&own_ms)
        })
    }

    /// A claim that was not heard of can't land any more once the record is somebody else's; and it has not landed
    /// before, if nobody could have taken its lease over since it left.
    fn note_claim(&mut self, now: Now, shown: Option<(&Version, &Reading)>) {
        let held_ms = self.config.leader_timeout_ms - self.config.margin_ms;
        let covered = self.clocks.covered();
        let Some(errand) = &mut self.errand else { return };
        let Some(Condition::Match(held)) = &errand.unheard else { return };
        let theirs = match shown {
            None => false,
            Some((version, _)) if version == held => return,
            // The record may have been overwritten by itself, under which a claim still lands.
            Some((_, Reading::Lease(lease))) if !covered && lease.term <= errand.succeeds => return,
            // Its own, whose job never began, or a body that does not say whose it is.
            Some((_, Reading::Lease(lease))) if lease.session.as_ref() == Some(&self.session) => {
                return;
            }
            Some((_, Reading::Unreadable(..))) => return,
            Some((_, Reading::Lease(lease))) => lease.session.is_some(),
            Some((_, Reading::Closed(_))) => false,
        };
        errand.unheard = None;
        errand.doubted = errand
            .doubted
            .filter(|(_, sent_ms)| !theirs || now.mono_ms.saturating_sub(*sent_ms) >= held_ms);
    }
}

/// Says in a record how the job of its slot has ended.
fn close_slot(lease: &mut Lease, end: &SlotEnd) {
    lease.slot_done = Some(end.done || (planted!(FailedIsDone) && end.failed));
    let word: String = end.result.chars().filter(|c| !c.is_control()).collect();
    let cut = (0..=word.len().min(MAX_RESULT_BYTES)).rev().find(|at| word.is_char_boundary(*at));
    lease.slot_result = Some(word[..cut.unwrap_or(0)].to_owned());
    lease.slot_took_ms = Some(end.took_ms);
    if end.failed {
        lease.slot_failures = Some(lease.slot_failures.unwrap_or(0).saturating_add(1));
    }
}
