//! After how many schedules the simulator finds a planted bug, from any base seed.

use edgelect::planted::{self, Bug, plant};

use crate::sim::oracle::Violation;
use crate::sim::run::{Range, run_until_broken};
use crate::sim::world::Depth;
use crate::{adversary, play};

/// Within how many schedules a bug has to be found.
pub const SCHEDULES: u64 = 5_000;

/// What the simulator does not find; [`Bug::survives`] says why.
pub const SURVIVORS: [Bug; 1] = [Bug::EpochDateOfBody];

/// The first seed from 0 on with which this bug was found before, so that a test need not look for it anew.
pub fn known_seed(bug: Bug) -> Option<u64> {
    let name = format!("{bug:?}");
    let lines = include_str!("found.txt").lines();
    lines.filter_map(|line| line.split_once(' ')).find(|(of, _)| *of == name)?.1.parse().ok()
}

/// How many of so many schedules from `base_seed` on it takes until one breaks a rule with this bug planted, and which.
pub fn found_after(bug: Bug, base_seed: u64, count: u64) -> Option<(u64, Violation)> {
    let prepare = || plant(Some(bug));
    let simulated = |depth| {
        let found = run_until_broken(Range { depth, first: base_seed, count }, prepare);
        found.map(|(seed, violation)| (seed.number, violation))
    };
    let (seed, violation) = match bug.depth() {
        planted::Depth::Core => simulated(Depth::Core)?,
        planted::Depth::Store => simulated(Depth::Store)?,
        planted::Depth::Epochs => adversary::play(base_seed, count, prepare).err()?,
        planted::Depth::Shards => {
            let (seed, text) = play::play(base_seed, count, prepare).err()?;
            (seed, Violation { at_ms: 0, check: "shards", text })
        }
    };
    Some((seed - base_seed + 1, violation))
}
