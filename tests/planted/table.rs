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

/// The depth of the simulator that a bug needs.
pub fn depth(bug: Bug) -> Depth {
    match bug.depth() {
        planted::Depth::Core => Depth::Core,
        planted::Depth::Store => Depth::Store,
        planted::Depth::Epochs => unreachable!("the adversary of epochs has no depths"),
        planted::Depth::Shards => unreachable!("the schedules of shards have no depths"),
    }
}

/// The first seed from 0 on with which this bug was found before, so that a test need not look for it anew.
pub fn known_seed(bug: Bug) -> Option<u64> {
    let name = format!("{bug:?}");
    let lines = include_str!("found.txt").lines();
    lines.filter_map(|line| line.split_once(' ')).find(|(of, _)| *of == name)?.1.parse().ok()
}

/// How many of so many schedules from `base_seed` on it takes until one breaks a rule with this bug planted, and which.
pub fn found_after(bug: Bug, base_seed: u64, count: u64) -> Option<(u64, Violation)> {
    if bug.depth() == planted::Depth::Epochs {
        let found = adversary::play(base_seed, count, || plant(Some(bug))).err();
        return found.map(|(seed, violation)| (seed - base_seed + 1, violation));
    }
    if bug.depth() == planted::Depth::Shards {
        let found = play::play(base_seed, count, || plant(Some(bug))).err();
        return found.map(|(seed, text)| {
            (seed - base_seed + 1, Violation { at_ms: 0, check: "shards", text })
        });
    }
    let range = Range { depth: depth(bug), first: base_seed, count };
    let found = run_until_broken(range, || plant(Some(bug)));
    found.into_iter().next().map(|(seed, violation)| (seed.number - base_seed + 1, violation))
}
