//! Edges that no schedule meets: each was missed when the code was changed one place at a time.

use edgelect::Settings;
use edgelect::election::{Input, Problem, Step};
use edgelect::lease::MAX_TERM;
use edgelect::store::Outcome;

use crate::alone::told::{Alone, settings, text, tombstone};

#[test]
fn s2_over_the_highest_number_there_is_no_next_term() {
    let last = tombstone(1).replace("\"term\":5", &format!("\"term\":{MAX_TERM}"));
    let mut alone = Alone::new(&settings());
    for _ in 0..5 {
        alone.reads();
        alone.found("\"t\"", &last);
    }
    assert_eq!(alone.election.problem(), Some(&Problem::TermTooHigh));
}

/// Only what heals unusable bytes lasts as long as the grace.
#[test]
fn s7_a_reservation_over_a_release_lasts_no_longer_than_a_lease() {
    let mut alone = Alone::new(&Settings { max_lease_ms: Some(3_600_000), ..settings() });
    let (reserved, _) = alone.until_written("\"t\"", &tombstone(1).replace("\"term\":5,", ""));
    assert!(reserved.in_grace(), "{reserved:?}");
    assert_eq!(reserved.lease_ms, Some(15_000));
}

#[test]
fn s12_who_waits_for_its_work_to_end_sleeps_until_its_lease_is_over() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.found("\"t\"", &tombstone(1));
    alone.claims();
    alone.written("\"c\"");
    assert!(alone.leads());
    alone.tell(Input::Resign);
    assert!(!alone.leads());
    let began_ms = alone.ms;
    match alone.election.poll(alone.now()) {
        Step::Wait { until_ms } => assert!(until_ms >= began_ms + 10_000, "{until_ms}"),
        other => panic!("{other:?}"),
    }
}

/// Where the answer to the creation had no `Date`, one look says when the record was made.
#[test]
fn s7_a_grace_is_waited_out_with_one_look_at_most() {
    for dated in [true, false] {
        let mut alone = Alone::new(&Settings { max_lease_ms: Some(60_000), ..settings() });
        alone.reads();
        alone.answer(Outcome::Missing);
        let (created, _) = alone.claims();
        alone.dated = dated;
        alone.written("\"c\"");
        (alone.dated, alone.modified_ms) = (true, Some(alone.store_ms()));
        let mut looks_ms = Vec::new();
        while let Step::Read { .. } = alone.step() {
            looks_ms.push(alone.ms);
            alone.found("\"c\"", &text(&created));
        }
        assert!(alone.ms >= 60_000, "claimed at {} ms", alone.ms);
        let early = looks_ms.iter().filter(|ms| **ms <= 6_000).count();
        assert!(looks_ms.len() <= 2 && early == usize::from(!dated), "{dated}: {looks_ms:?}");
    }
}
