//! The conformance list against the stores that run natively.

mod conformance;

use std::cell::Cell;
use std::rc::Rc;

use conformance::Traits;
use edgelect::lease::Format;
use edgelect::store::memory::Memory;
use edgelect::store::{Condition, Operation, Outcome, Store};
use futures::executor::block_on;

#[test]
fn memory_with_a_clock_conforms() {
    let traits = Traits { tells_time: true, versions_are_hashes: true };
    let ran = block_on(conformance::check(traits, || Memory::new(|| 1_763_719_199_999)));
    assert_eq!(ran, 19);
}

#[test]
fn memory_without_a_clock_conforms() {
    let traits = Traits { tells_time: false, versions_are_hashes: true };
    block_on(conformance::check(traits, Memory::default));
}

#[test]
fn memory_with_records_for_kubernetes_members_conforms() {
    let traits = Traits { tells_time: false, versions_are_hashes: true };
    let fresh = || Memory::default().in_format(Format::Kubernetes);
    assert_eq!(block_on(conformance::check(traits, fresh)), 19);
}

#[test]
fn memory_tells_when_the_record_was_written_in_whole_seconds() {
    let clock = Rc::new(Cell::new(10_999));
    let store = Memory::new({
        let clock = Rc::clone(&clock);
        move || clock.get()
    });
    let write = Operation::Write { body: conformance::body("a", 1), condition: Condition::Absent };
    block_on(store.perform(write));
    clock.set(25_500);
    let facts = block_on(store.perform(Operation::Read { unless: None })).facts;
    assert_eq!((facts.date_ms, facts.last_modified_ms), (Some(25_000), Some(10_000)));
}

#[test]
fn clones_of_memory_share_the_record_and_a_foreign_hand_can_change_it() {
    let store = Memory::default();
    let other = store.clone();
    store.overwrite(Some(conformance::body("a", 1)));
    assert_eq!(other.body(), Some(conformance::body("a", 1)));
    other.overwrite(None);
    let answer = block_on(store.perform(Operation::Read { unless: None }));
    assert_eq!(answer.outcome, Outcome::Missing);
}
