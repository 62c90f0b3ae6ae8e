//! What somebody should know who looks at an elector, as a sentence that says what to do.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::lease::{Closed, Flaw};
use crate::store::Fault;
use crate::text::{first, quoted};

/// What somebody should know who looks at the elector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The last request to the store failed.
    Store(Fault),
    /// The record is of a newer format; nothing is claimed (S7).
    NewerFormat(Option<u64>),
    /// The term is used up, or was set absurdly high; nothing is claimed (S2).
    TermTooHigh,
    /// A lock of another make lasts until its holder says otherwise; nothing is claimed.
    NoEnd,
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
    /// Another process runs under our `serverId`, and leads.
    SharedServerId {
        /// The name.
        server_id: String,
        /// Where the other is reached (`leaderAddr`); empty where its records do not say.
        theirs: String,
        /// Our `serverAddr`; empty without one.
        ours: String,
    },
}

impl Problem {
    /// What anybody may read of it.
    pub(crate) fn public(&self) -> String {
        match self {
            Self::Store(Fault { public: Some(text), .. }) => text.clone(),
            other => other.to_string(),
        }
    }

    /// That of a record which is never claimed.
    pub(crate) fn closed(why: Closed) -> Self {
        match why {
            Closed::NewerFormat(format) => Self::NewerFormat(format),
            Closed::TermTooHigh => Self::TermTooHigh,
            Closed::NoEnd => Self::NoEnd,
        }
    }
}

/// The session that leads under our `serverId`. Nothing is decided by it: two elections that differ in it alone are equal, so
/// that a model has no more states by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Namesake {
    session: String,
    sequence: u64,
    renewals: u32,
}

impl Namesake {
    /// A predecessor that has ended renews no more, but a renewal of its may still have been on the way.
    const ALIVE_AFTER: u32 = 2;

    /// Whether this record of its shows that it goes on renewing while we look.
    pub(super) fn renews(&mut self, session: &str, sequence: u64) -> bool {
        if self.session != session {
            *self = Self { session: session.to_owned(), sequence, renewals: 0 };
        } else if sequence > self.sequence {
            (self.sequence, self.renewals) = (sequence, self.renewals.saturating_add(1));
        }
        self.renewals >= Self::ALIVE_AFTER
    }
}

impl PartialEq for Namesake {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Namesake {}

impl Hash for Namesake {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

const TERM_TOO_HIGH: &str = "the lease object's term is above 2^52, so no member can give out a higher token, \
     and this member claims nothing. Stop all members, delete the object, wait for the \
     longest lease, and start them with a termFloor that your data accepts. If the object \
     shows a lower term, a false answer was read once: restart this member";

const NO_END: &str = "the newest lock file names no validity_ms, so it lasts until its program writes \
     \"expired\": true, and this member claims nothing. If that program has ended, stop \
     all members and write {\"expired\": true} to the file yourself";

const CONTRADICTED: &str = "the store refuses every write of this member, although each names the version \
     that the store showed last. Probably something between here and the store \
     answers reads from a cache, or refuses writes itself: remove it, or run \
     `npx edgelect doctor` to find it";

const LONG_WAIT: &str = "the lease object has not changed for more than two leases, and this member may \
     not claim it yet. If it waits out a lease that is longer than its own, this \
     passes (S7). If it does not pass, the store's answers do not prove how old the \
     object is (S6): remove the cache that answers (header Age), or what lets the \
     header Date stand still or takes it away";

const MOVING_TIMES: &str = "each read of the unchanged lease object shows another Last-Modified, so the wait \
     for a new lease object began again. Something between here and the store sets \
     that header: stop it. After three such reads this member ignores the header";

const MOVING_VERSIONS: &str = "each read of the unchanged lease object shows another ETag, so this member can't \
     tell how long it has not changed, and does not take over from a dead leader. \
     Something between here and the store makes ETags of its own: stop it, or run \
     `npx edgelect doctor` to find it";

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(fault) => f.write_str(&fault.message),
            Self::NewerFormat(format) => write!(
                f,
                "a newer version of edgelect wrote the lease object (format {}), so this member \
                 claims nothing. Upgrade this member. To go back to the old version instead: stop \
                 all members, delete the object, wait for the longest lease, and start them again",
                format.map_or_else(|| "(no number)".to_owned(), |number| number.to_string()),
            ),
            Self::TermTooHigh => f.write_str(TERM_TOO_HIGH),
            Self::NoEnd => f.write_str(NO_END),
            Self::Unreadable(flaw) => f.write_str(&flaw_text(*flaw)),
            Self::Contradicted => f.write_str(CONTRADICTED),
            Self::LongWait => f.write_str(LONG_WAIT),
            Self::MovingTimes => f.write_str(MOVING_TIMES),
            Self::MovingVersions => f.write_str(MOVING_VERSIONS),
            Self::WorkGoesOn { term } => write!(
                f,
                "the authority of term {term} has ended and its work goes on: this member claims \
                 nothing until the work has stopped. End the work when its signal fires. Work \
                 that waits for the next term waits for itself",
            ),
            Self::LeaseTooLong { lease_ms, max_lease_ms } => write!(
                f,
                "a member has a lease of {lease_ms} ms, longer than maxLease ({max_lease_ms} ms) \
                 here. This member waits it out, but one that has not seen it would not: set the \
                 same maxLease for every member of the group (S7). A trigger that ends before that \
                 lease would never claims: give all triggers a maxLease of {lease_ms} until one of \
                 them has claimed. If other software wrote the record, also check the \
                 clock of its machine",
            ),
            Self::SharedName(server_id) => write!(
                f,
                "other software writes this lease under {}, which is this member's own serverId: \
                 it takes this member's record for its own, and can lead at the same time until \
                 the next renewal. If it still runs, give this member a serverId that no other has",
                quoted(server_id),
            ),
            Self::SharedServerId { server_id, theirs, ours } => write!(
                f,
                "another process has the serverId {} and leads{}: the two never lead at once, but \
                 the leader's name does not tell which of them leads, and one takes over the lease \
                 that the other has parked. Give each process a serverId of its own, or none",
                quoted(server_id),
                places(theirs, ours),
            ),
            Self::DateAhead { ahead_ms } => write!(
                f,
                "the `Date` of the store's answers is {ahead_ms} ms ahead of its \
                 `Last-Modified`, more than storeSkew allows. So `Date` proves no age, and this \
                 member takes over from a dead leader only after it has watched the lease object \
                 for a whole lease. Probably a proxy sets `Date` by its own clock: correct that \
                 clock",
            ),
        }
    }
}

/// Where two processes are, as far as is known.
fn places(theirs: &str, ours: &str) -> String {
    match (theirs, ours) {
        ("", "") => String::new(),
        ("", ours) => format!(" (this one is at {ours})"),
        (theirs, "") => format!(" (it is at {})", quoted(first(theirs, 260))),
        (theirs, ours) => format!(" (it is at {}, this one at {ours})", quoted(first(theirs, 260))),
    }
}

fn flaw_text(flaw: Flaw) -> String {
    let what = match flaw {
        Flaw::TooLarge => "is larger than 64 KiB",
        Flaw::NotJson => "is not a JSON object",
        Flaw::Foreign => "is no lease record",
        Flaw::OtherFormat => {
            "has another format than this member's storage is set to (native or kubernetes; set the \
             same for every member)"
        }
        Flaw::Absurd => {
            "has a leaseMs that is not from one second to one hour, or another duration under one second"
        }
    };
    format!(
        "the lease object {what}, so this member can't tell who leads. It will be replaced once it \
         has not changed for the grace and for any lease that can still be read in it. Find out \
         what else writes to this lockfilePath"
    )
}
