//! What the application is told, and what somebody should know who looks at the elector.

use crate::lease::Flaw;
use crate::slots::SlotsOver;
use crate::store::Fault;

/// What the application is told, once each, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A term began.
    Acquired {
        /// The fencing token, unless the elector is [unfenced](super::Election::is_unfenced).
        term: u64,
    },
    /// The term ended. [`Input::WorkEnded`](super::Input::WorkEnded) has to follow, unless it was that of a slot.
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
    /// Giving the leadership up after [`Input::Resign`](super::Input::Resign) is over: the record says so, or it will run out.
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
    /// [`Input::Resign`](super::Input::Resign).
    Resigned,
    /// [`Input::Stop`](super::Input::Stop).
    Stopped,
    /// [`Input::SlotEnded`](super::Input::SlotEnded).
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
