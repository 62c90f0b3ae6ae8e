//! Bugs that the simulator must find. Compiled only under `--cfg planted`, so that none of this ships.

use std::cell::Cell;

/// A way in which elections over object storage have gone wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The lease counts from the answer, not from before the request (S5).
    AnchorAfterAnswer,
    /// A record created from absence grants authority at once (S7).
    ClaimAbsenceWithoutGrace,
    /// Bodies carry no growing sequence (S4).
    NoSequence,
    /// The tombstone is conditional on a version read anew (S3).
    ReleaseRereadVersion,
    /// A 412 is taken for a loss without reading back (S8).
    RefusedIsLost,
    /// A 412 counts as success (S8).
    RefusedIsSuccess,
    /// Authority is a flag that somebody has to take down (S5).
    AuthorityIsAFlag,
    /// The age of another's lease counts from the sending of the read (S6).
    AgeFromSending,
    /// Another's `lastUpdated` is compared with the own wall clock (S1).
    WallClocksCompared,
    /// A timeout counts as "did not land" (S8).
    TimeoutDidNotLand,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Bug; 10] = [
        Bug::AnchorAfterAnswer,
        Bug::ClaimAbsenceWithoutGrace,
        Bug::NoSequence,
        Bug::ReleaseRereadVersion,
        Bug::RefusedIsLost,
        Bug::RefusedIsSuccess,
        Bug::AuthorityIsAFlag,
        Bug::AgeFromSending,
        Bug::WallClocksCompared,
        Bug::TimeoutDidNotLand,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants one bug in this thread, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

/// Whether this bug is planted in this thread.
pub fn is(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}
