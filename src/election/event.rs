//! What the application is told.

use super::Problem;
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
    /// A problem has lasted for two answers of the store in a row, or has become another one. The driver says so, not the
    /// election.
    Troubled(Problem),
    /// The problem that was told is over.
    Solved,
    /// No heartbeat came for `suspectAfter`: from the leader, or, where this session leads, from a follower. The driver says so.
    /// Nothing else changes: the lease alone says who leads.
    Suspected {
        /// The `serverId`.
        server_id: String,
    },
    /// Heartbeats come again from whom was suspected, or it is watched no more: another one leads, it has been gone for ten
    /// leases, heartbeats are switched off, or this session has ended.
    Recovered {
        /// The `serverId`.
        server_id: String,
    },
    /// Nobody leads before the grace of a new group is over (S7). The driver says so, once; not of a session that runs slots.
    InGrace {
        /// For how many more milliseconds.
        left_ms: u64,
    },
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
    /// An operator asked its leader to step down.
    SteppedDown,
    /// An operator has paused the group.
    Paused,
}

impl LostReason {
    /// Whether the authority was lost, and not given up.
    pub(crate) fn is_loss(self) -> bool {
        !matches!(
            self,
            Self::Resigned | Self::Stopped | Self::Done | Self::SteppedDown | Self::Paused
        )
    }

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
            Self::SteppedDown => "stepDown",
            Self::Paused => "paused",
        }
    }
}
