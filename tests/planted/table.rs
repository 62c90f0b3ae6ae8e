//! After how many schedules the simulator finds a planted bug, from any base seed.

use edgelect::planted::{Bug, Depth, plant};

use crate::sim::oracle::Violation;
use crate::sim::run::run_until_broken;

/// Within how many schedules a bug has to be found.
pub const SCHEDULES: u64 = 5_000;

/// What the simulator does not find; [`Bug::survives`] says why.
pub const SURVIVORS: [Bug; 7] = [
    Bug::LapseForgotten,
    Bug::PeerExtendsLease,
    Bug::ZombieAnswersPeers,
    Bug::ResignForgetsClaim,
    Bug::StepBackKeepsTerm,
    Bug::StepBackKeepsAge,
    Bug::DateAheadIgnored,
];

/// The bugs of one depth.
pub fn bugs(depth: Depth) -> impl Iterator<Item = Bug> {
    Bug::ALL.iter().copied().filter(move |bug| bug.depth() == depth)
}

/// How many schedules from `base_seed` on it takes until one breaks a rule with this bug planted, and which.
pub fn found_after(bug: Bug, base_seed: u64) -> Option<(u64, Violation)> {
    let found = run_until_broken(base_seed, SCHEDULES, || plant(Some(bug)));
    found.into_iter().next().map(|(seed, violation)| (seed - base_seed + 1, violation))
}
