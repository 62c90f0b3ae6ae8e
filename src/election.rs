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

mod claim;
mod event;
mod follow;
mod observe;
mod operator;
mod peers;
mod policy;
mod problem;
mod release;
mod turn;
mod view;
mod waiting;
mod write;

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use crate::age::Observation;
use crate::clock::{Clocks, Now, Since};
use crate::config::Config;
use crate::lease::{History, Lease, Reading};
use crate::planted::planted;
use crate::slots::{Schedule, SlotEnd, Trigger};
use crate::store::{Answer, Condition, Version};

pub use self::event::{Event, LostReason};
use self::peers::Peers;
use self::problem::Namesake;
pub use self::problem::Problem;
use self::waiting::SeenLease;
pub use self::waiting::Waiting;
pub use crate::slots::SlotsOver;

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

/// Who holds a lease, as far as a session knows at one reading of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder<'a> {
    /// The store has not been heard of yet.
    Unknown,
    /// Nobody: this session could claim it, if its next read shows the same.
    Nobody,
    /// This session, with authority.
    Me,
    /// This session, without authority yet: it has made the record, and has to write over it after the grace.
    Coming,
    /// Nobody, and this session sits out, or work of its last term goes on.
    Barred,
    /// Nobody who could be named: another session of this `serverId`, one that gives it up just now, or anybody while an operator
    /// has paused the group.
    Unnamed,
    /// The member of this `serverId`.
    Other(&'a str),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read the record.
    Read {
        /// The version that is known, to be answered by [`Outcome::Unchanged`](crate::store::Outcome::Unchanged).
        unless: Option<Version>,
        /// After how many milliseconds the request is cut off and counts as [`Outcome::Unknown`](crate::store::Outcome::Unknown).
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
    /// Ask the leader, or who relays for it (`GET /health/leadership`).
    AskPeer {
        /// `host` or `host:port`, checked.
        addr: String,
        /// The term that is known; `None` under a leader that knows none.
        term: Option<u64>,
        /// For how many milliseconds the peer may hold the question until that term is over.
        wait_ms: u64,
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
    /// The one who runs this session means to stop it with `park` at this time of the monotonic clock. Its records say so, so
    /// that the next session of this `serverId` knows when to look.
    ParkAt {
        /// In milliseconds of [`Now::mono_ms`].
        mono_ms: u64,
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
    /// Whether this session may claim, which it may from the beginning unless it is told. One that may not follows all the same,
    /// and what it holds it keeps.
    Compete(bool),
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
        /// Its `sequence`, which grows with each renewal; of S3lect's leaders, which have none, `lastUpdated` in milliseconds.
        sequence: u64,
        /// Whether the leader's own session says so, and not somebody who read or heard of it.
        own: bool,
    },
    /// 404: the term that was asked about is over, and so many were told at once.
    Over {
        /// How many questions about it the leader held.
        waiting: u64,
    },
    /// 503: the leader holds as many questions as it can.
    Busy {
        /// For how long it asks to be left alone, in milliseconds.
        retry_after_ms: u64,
        /// `host` or `host:port` of members that answer for it; not checked.
        relays: Vec<String>,
    },
    /// Anything else, or nothing.
    Silent,
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
    condition: Condition,
    anchor: Anchor,
    lease: Lease,
    /// The answer says that it was not done. Something on the way may have said so instead, so that its fence
    /// binds all the same and it may be recognised; but nobody hurries to find out.
    rejected: bool,
}

impl Attempt {
    fn new(purpose: Purpose, condition: &Condition, anchor: Anchor, lease: &Lease) -> Self {
        let (condition, lease) = (condition.clone(), lease.clone());
        Self { purpose, condition, anchor, lease, rejected: false }
    }
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
struct HeldTerm {
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
    Peer { sent_ms: u64, wait_ms: u64, relays: bool },
}

/// When a follower may claim, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Turn {
    at_ms: u64,
    until_ms: u64,
    /// Whether it is the one of a lease that runs out: of a record that is newer than this, it is none.
    of_lease: bool,
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
    seen_lease: SeenLease,
    seen: Seen,
    /// When the read left whose answer last showed the record or its absence.
    seen_sent: Now,
    grace: Option<Grace>,
    term: Option<HeldTerm>,
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
    /// When this session is to be stopped with `park`, on the monotonic clock.
    parks_at_ms: Option<u64>,
    failed: bool,
    finished: bool,
    /// Whether the store is known to work: it answered a read, and it took a conditional write of ours or a probe held.
    answered: bool,
    accepted: bool,
    /// A write was refused since the last body was read: the version that we know may be an old one.
    contradicted: bool,
    compete_after_ms: u64,
    /// Whether it may claim.
    competes: bool,
    /// Until when the store asked to be left alone (`Retry-After`).
    not_before_ms: u64,
    failures: u32,
    /// How often the store has refused for good.
    refused_keys: u32,
    /// How many writes in a row were rejected.
    rejections: u32,
    /// Whether work of the last term, which goes on, has kept this session from claiming.
    held_back: bool,
    misses: u32,
    /// How often in a row one write of a member's was shown under another version.
    versions_moved: u32,
    /// How many claims in a row came to nothing.
    refusals: u32,
    /// How many claims in a row a store did not take because there were too many writes.
    throttled: u32,
    /// Before that time of the monotonic clock this session claims no more, because its last claims came to nothing.
    claim_after_ms: u64,
    /// How long a read takes, in milliseconds, as the last ones did.
    round_trip_ms: u64,
    /// Its wait is the shortest that there is.
    first: bool,
    /// When this session looks before its claim.
    turn: Option<Turn>,
    /// Whether the newest look was that one, or one of the first.
    in_turn: bool,
    /// How much earlier than one interval after the last a tight follower looks, in milliseconds, and at which
    /// leader, of which term: larger until it is in step with that leader's renewals.
    early: Option<(u64, String, Option<u64>)>,
    peers: Peers,
    announced: Option<u64>,
    /// The lost term whose work is not known to have stopped: nothing is claimed under it.
    working: Option<u64>,
    /// A read-back of the newest attempt could not be read.
    blurred: bool,
    /// The id of the operator's request that this session has obeyed last.
    obeyed: Option<String>,
    /// The highest term that was known when this session resigned last: neither that nor an earlier one of its own is parked.
    yielded_term: u64,
    known_leader: Option<String>,
    events: VecDeque<Event>,
    problem: Option<Problem>,
    /// The problem is of a write that has not landed: a read alone does not solve it.
    unwritten: bool,
    /// What the store says beside its newest answer.
    complaint: Option<Problem>,
    trigger: Option<Box<Trigger>>,
    /// A problem that no single answer shows to be over, and that costs no term.
    warning: Option<Problem>,
    /// When somebody else was last seen under our name, on the monotonic clock.
    shared_ms: u64,
    namesake: Namesake,
    /// A write that is held up takes no effect once a later one was accepted.
    stale_writes_fail: bool,
    /// The store takes one write of the record in so many milliseconds.
    writes_apart_ms: u64,
    /// The store has no versions, so that no term has a token.
    unfenced: bool,
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
            seen_lease: SeenLease::default(),
            seen: Seen::Nothing,
            seen_sent: Now::default(),
            grace: None,
            term: None,
            unresolved: Vec::new(),
            forgotten: None,
            lapsed: Flag::default(),
            round: None,
            outstanding: None,
            plan: Plan { at_ms: 0, action: Action::Look },
            wind_down: None,
            parks_at_ms: None,
            failed: false,
            finished: false,
            answered: false,
            accepted: false,
            contradicted: false,
            compete_after_ms: 0,
            competes: true,
            not_before_ms: 0,
            failures: 0,
            refused_keys: 0,
            rejections: 0,
            held_back: false,
            misses: 0,
            versions_moved: 0,
            refusals: 0,
            throttled: 0,
            claim_after_ms: 0,
            round_trip_ms: 0,
            first: false,
            turn: None,
            in_turn: false,
            early: None,
            peers: Peers::default(),
            announced: None,
            working: None,
            blurred: false,
            obeyed: None,
            yielded_term: 0,
            known_leader: None,
            events: VecDeque::new(),
            problem: None,
            unwritten: false,
            complaint: None,
            trigger: None,
            warning: None,
            shared_ms: 0,
            namesake: Namesake::default(),
            stale_writes_fail: true,
            writes_apart_ms: 0,
            unfenced: false,
            unproven_wait_ms: None,
            unproven: None,
            owed: None,
        }
    }

    /// A new participant that runs the slots of a schedule, each in a term of its own, and finishes.
    pub fn for_schedule(config: Config, session: String, seed: u64, schedule: Schedule) -> Self {
        // What a peer says of its lease tells nothing of slots.
        let config = Config { peer_mode: false, ..config };
        Self { trigger: Some(Box::new(Trigger::new(schedule))), ..Self::new(config, session, seed) }
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

    /// Before the first poll: the shortest time between two writes; see
    /// [`Store::writes_apart_ms`](crate::store::Store::writes_apart_ms).
    pub fn writes_apart_ms(&mut self, apart_ms: u64) {
        self.writes_apart_ms = apart_ms.min(self.config.frequent_interval_ms);
    }

    /// The store has no versions: terms are numbered for this session alone, and their numbers are no fencing tokens.
    pub(crate) fn unfence(&mut self) {
        self.unfenced = true;
    }

    /// Whether its terms have no fencing tokens, as over a locker.
    pub fn is_unfenced(&self) -> bool {
        self.unfenced
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
        // One behind the last says no more of what is left than that one did.
        match self.lease_left(self.clocks.not_before_last(now)) {
            // A reading behind the last may be one of another event of a Worker, whose clock stands still.
            Some(left) if !self.clocks.fired_early(now) => Standing::Unproven(left),
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
            Input::Resign => {
                self.yielded_term = self.highest_term;
                self.begin_wind_down(now, false, self.trigger.is_some());
            }
            Input::ParkAt { mono_ms } => self.parks_at_ms = Some(mono_ms),
            Input::Stop { park } => self.begin_wind_down(now, park, true),
            Input::WorkEnded { term } => self.on_work_ended(now, term),
            Input::SlotEnded { term, end } => self.on_slot_ended(term, end),
            Input::Configure(config) => {
                let before_ms = self.config.grace_ms(self.longest_lease_ms);
                self.config = *config;
                self.config.peer_mode &= self.trigger.is_none();
                self.set_store_skew(self.config.store_skew_ms);
                let grace_ms = self.config.grace_ms(self.longest_lease_ms);
                // Longer settings count for a grace that goes on, too (S7); what waits for less waits for one known lease.
                if let Some(grace) = self.grace.as_mut()
                    && grace_ms > before_ms
                    && grace.length_ms >= before_ms
                {
                    grace.length_ms = grace.length_ms.max(grace_ms);
                }
                if self.term.is_none() {
                    self.plan_by_settings(now);
                } else if self.wind_down.is_none() {
                    // The record is to say soon by which lease others wait.
                    let soon_ms = now.mono_ms.saturating_add(self.config.frequent_interval_ms);
                    self.plan.at_ms = self.plan.at_ms.min(soon_ms);
                }
            }
            Input::Compete(competes) => {
                let changed = std::mem::replace(&mut self.competes, competes) != competes;
                if changed && self.term.is_none() && self.wind_down.is_none() {
                    // A claim that has not left yet is judged again, by the answer to a new read.
                    self.round = self.round.take().filter(|_| self.outstanding.is_some());
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
                self.slots_over(SlotsOver::Store);
            }
            if self.wind_down.take().is_some() {
                self.events.push_back(Event::GivenUp);
            }
            self.finished = true;
            return Step::Finished;
        }
        if self.slots_waited(now) {
            return Step::Finished;
        }
        let waits = self.outstanding.is_some() || self.failed || self.awaiting_work();
        if waits || self.leaves_lock_alone() {
            return Step::Wait { until_ms: self.wake_ms(now, u64::MAX) };
        }
        let asks_store = self.plan.action != Action::Ask;
        let not_before_ms = if asks_store { self.not_before_ms } else { 0 };
        let waits_until_ms = self.slots_until_ms().unwrap_or(u64::MAX);
        let at_ms = self.plan.at_ms.max(not_before_ms).min(waits_until_ms);
        if now.mono_ms < at_ms {
            return Step::Wait { until_ms: self.wake_ms(now, at_ms) };
        }
        if let Some(trigger) = &mut self.trigger {
            // Where no condition covers the version, a step is up to three requests: a write, its listing, a cleaning.
            trigger.count_step(if self.clocks.covered() { 1 } else { 3 });
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

    /// Takes its turn at once wherever followers claim one after the other, as the one with the shortest wait does. For
    /// whoever explores every course of events: the others do the same, only later.
    pub fn claim_first(&mut self) {
        self.first = true;
    }

    /// Forgets what came before the records that this session knows. For whoever explores every course of events: no
    /// decision depends on it, so that elections that differ only in their past become equal.
    pub fn forget_history(&mut self) {
        let attempts = self.unresolved.iter_mut().chain(&mut self.unproven);
        let mut leases: Vec<&mut Lease> = attempts.map(|attempt| &mut attempt.lease).collect();
        leases.extend(self.round.as_mut().map(|round| &mut round.lease));
        leases.extend(self.term.as_mut().map(|term| &mut term.lease));
        if let Seen::Record { reading: Reading::Lease(lease), .. } = &mut self.seen {
            leases.push(lease);
        }
        leases.into_iter().for_each(|lease| lease.history = History::default());
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
}
