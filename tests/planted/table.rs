//! After how many schedules the simulator finds a planted bug, from any base seed.

use edgelect::planted::{self, Bug, plant};

use crate::sim::oracle::Violation;
use crate::sim::run::{Range, run_until_broken};
use crate::sim::world::Depth;

/// Within how many schedules a bug has to be found.
pub const SCHEDULES: u64 = 5_000;

/// What the simulator does not find; [`Bug::survives`] says why.
pub const SURVIVORS: [Bug; 0] = [];

/// The depth of the simulator that a bug needs.
pub fn depth(bug: Bug) -> Depth {
    match bug.depth() {
        planted::Depth::Core => Depth::Core,
        planted::Depth::Store => Depth::Store,
    }
}

/// How many schedules from `base_seed` on it takes until one breaks a rule with this bug planted, and which.
pub fn found_after(bug: Bug, base_seed: u64) -> Option<(u64, Violation)> {
    let range = Range { depth: depth(bug), first: base_seed, count: SCHEDULES };
    let found = run_until_broken(range, || plant(Some(bug)));
    found.into_iter().next().map(|(seed, violation)| (seed.number - base_seed + 1, violation))
}
