//! Known bugs, planted one at a time: the model must see each that its bounds can show.

use edgelect::planted::Bug;

use super::bounds::{Bounds, Budget};
use super::check::explore;
use crate::{NONE, led, meets};

const ONE_AUTHORITY: &str = "S1 one authority";
/// The second of two leaders at one tick got no higher token than the first.
const TOKENS_GROW: &str = "S2 tokens only grow";

#[test]
fn each_bug_that_the_bounds_can_show_breaks_its_rule() {
    let two = || led("two sessions", 2, 8);
    let at_a_tombstone = || Bounds::new("two at a tombstone", 2, 3);
    let deletion = meets(Budget { deletions: 1, ..NONE }, "two, a deletion", 6).with_one_wall();
    let farewell = meets(Budget { farewells: 1, ..NONE }, "two, a farewell", 5);
    for (bug, bounds, rule) in [
        (Bug::AnchorAfterAnswer, two(), ONE_AUTHORITY),
        (Bug::ClaimAbsenceWithoutGrace, deletion, ONE_AUTHORITY),
        (Bug::RefusedIsSuccess, two(), TOKENS_GROW),
        (Bug::AuthorityIsAFlag, two(), ONE_AUTHORITY),
        (Bug::AgeFromSending, two(), ONE_AUTHORITY),
        (Bug::ReleaseRereadVersion, farewell, TOKENS_GROW),
        (Bug::NoSequence, at_a_tombstone(), "S4 every body is new"),
        (Bug::WallClocksCompared, at_a_tombstone(), TOKENS_GROW),
    ] {
        let explored = explore(Bounds { bug: Some(bug), ..bounds }, false);
        let (broken, acts) = explored.broken.unwrap_or_else(|| panic!("{bug:?} is not seen"));
        println!("    {bug:?}: {broken} is broken by {} acts", acts.len());
        assert_eq!(broken, rule, "{bug:?}: {acts:#?}");
    }
}
