//! Known bugs, planted one at a time: the model must see each that its bounds can show.

use edgelect::planted::Bug;

use super::bounds::{Bounds, Budget};
use super::check::explore;
use crate::model::led;

#[track_caller]
fn found(bug: Bug, bounds: Bounds, rule: &str) {
    let explored = explore(Bounds { bug: Some(bug), ..bounds }, false);
    let (broken, acts) = explored.broken.expect("the model should see this bug");
    println!("    {bug:?}: {broken} is broken by {} acts", acts.len());
    assert_eq!(broken, rule, "{acts:#?}");
}

const ONE_AUTHORITY: &str = "S1 one authority";
/// The second of two leaders at one tick got no higher token than the first.
const TOKENS_GROW: &str = "S2 tokens only grow";

#[test]
fn a_lease_that_counts_from_the_answer() {
    found(Bug::AnchorAfterAnswer, led("two sessions", 2, 8), ONE_AUTHORITY);
}

#[test]
fn a_deleted_record_taken_for_permission() {
    let budget = Budget { deletions: 1, ..Budget::default() };
    let bounds = Bounds { budget, ..led("two, a deletion", 2, 6) }.with_one_wall();
    found(Bug::ClaimAbsenceWithoutGrace, bounds, ONE_AUTHORITY);
}

#[test]
fn a_refusal_taken_for_success() {
    found(Bug::RefusedIsSuccess, led("two sessions", 2, 8), TOKENS_GROW);
}

#[test]
fn authority_that_somebody_has_to_take_down() {
    found(Bug::AuthorityIsAFlag, led("two sessions", 2, 8), ONE_AUTHORITY);
}

#[test]
fn an_age_that_counts_from_the_sending_of_the_read() {
    found(Bug::AgeFromSending, led("two sessions", 2, 8), ONE_AUTHORITY);
}

#[test]
fn a_tombstone_conditional_on_a_version_read_anew() {
    let budget = Budget { farewells: 1, ..Budget::default() };
    let bounds = Bounds { budget, ..led("two, a farewell", 2, 5) };
    found(Bug::ReleaseRereadVersion, bounds, TOKENS_GROW);
}

#[test]
fn bodies_without_a_sequence() {
    found(Bug::NoSequence, Bounds::new("two at a tombstone", 2, 3), "S4 every body is new");
}

#[test]
fn wall_clocks_compared() {
    found(Bug::WallClocksCompared, Bounds::new("two at a tombstone", 2, 3), TOKENS_GROW);
}
