//! Settings that change while the election runs count from then on.

use edgelect::election::{Input, Problem, Step};
use edgelect::lease::Lease;
use edgelect::store::{Condition, Facts, Outcome, Version};
use edgelect::{Follow, Settings};

use crate::alone::told::{
    AT_MS, Alone, LIVING, busy, config, found, settings, text, tombstone, unknown,
};

fn with_skew(ms: u64) -> Settings {
    Settings { store_skew_ms: Some(ms), ..settings() }
}

fn with_longest(ms: u64) -> Settings {
    Settings { max_lease_ms: Some(ms), ..settings() }
}

fn written(version: &str) -> Outcome {
    Outcome::Written { version: Some(Version(version.to_owned())) }
}

/// By a front end whose clock is so much ahead of the one that writes `Last-Modified`.
fn by_front_end(ahead_ms: u64, modified_ms: Option<u64>) -> impl Fn(&Alone) -> Facts + Copy {
    move |alone: &Alone| Facts {
        date_ms: Some((alone.store_ms() + ahead_ms) / 1_000 * 1_000),
        last_modified_ms: modified_ms,
        ..Facts::default()
    }
}

#[test]
fn a_follower_that_is_told_of_another_interval_looks_by_it() {
    let frugal = |ms| Settings {
        follow: Some(Follow::Frugal),
        infrequent_interval_ms: Some(ms),
        ..settings()
    };
    let follows = |follow| Settings { follow: Some(follow), ..frugal(86_400_000) };
    for (name, next, latest_ms) in [
        ("a shorter one", frugal(30_000), 34_100),
        ("as long as a lease", follows(Follow::Balanced), 17_600),
        ("that of a leader", follows(Follow::Tight), 6_600),
        ("the same", frugal(86_400_000), 95_100_000),
    ] {
        let mut alone = Alone::new(&frugal(86_400_000));
        alone.reads();
        alone.found("\"v\"", LIVING);
        alone.ms += 1_000;
        alone.tell(Input::Configure(Box::new(config(&next))));
        alone.reads();
        assert!(alone.ms <= latest_ms, "{name}: it looks after {} s", alone.ms / 1_000);
        assert!(alone.ms >= latest_ms / 2, "{name}: it looks after {} s", alone.ms / 1_000);
    }
}

#[test]
fn a_claim_that_was_put_off_for_long_is_not_put_off_beyond_the_new_interval() {
    let waits = |ms| Settings { infrequent_interval_ms: Some(ms), ..settings() };
    let mut alone = Alone::new(&waits(86_400_000));
    for _ in 0..20 {
        alone.until_written("\"v\"", &tombstone(1));
        alone.answer(busy());
    }
    let told_ms = alone.ms;
    alone.tell(Input::Configure(Box::new(config(&waits(30_000)))));
    alone.until_written("\"v\"", &tombstone(1));
    assert!(alone.ms <= told_ms + 34_100, "{} ms", alone.ms - told_ms);
}

/// The leader's last renewal left at 0 ms, so that its authority lasts until 13.5 s. Its store's servers are further apart
/// than `storeSkew` allowed until it is raised, before or after the claim has left.
#[test]
fn s6_a_proof_by_the_stores_clock_counts_by_the_skew_that_is_set() {
    for raised in ["before the claim", "while it is under way", "before it is read back"] {
        let mut alone = Alone::new(&with_skew(2_000));
        let raise = |alone: &mut Alone, at| {
            if raised == at {
                alone.tell(Input::Configure(Box::new(config(&with_skew(10_000)))));
            }
        };
        alone.reads();
        alone.answer_with(found("\"v\"", LIVING), by_front_end(9_000, Some(AT_MS)));
        alone.ms += 1_000;
        raise(&mut alone, "before the claim");
        let (claim, _) =
            alone.until_written_with("\"v\"", LIVING, by_front_end(9_000, Some(AT_MS)));
        raise(&mut alone, "while it is under way");
        let made_ms = (alone.store_ms() + alone.takes_ms) / 1_000 * 1_000;
        alone.answer_with(written("\"c\""), by_front_end(9_000, None));
        raise(&mut alone, "before it is read back");
        for _ in 0..2 {
            assert!(
                !alone.leads() || alone.ms >= 13_500,
                "{raised}: a second leader at {} ms",
                alone.ms
            );
            alone.step();
            alone.answer_with(found("\"c\"", &text(&claim)), by_front_end(9_000, Some(made_ms)));
        }
    }
}

/// A member that a proxy's `Date`, 30 s ahead, kept waiting leads at last.
fn leads_behind_a_fast_proxy() -> (Alone, Lease) {
    let ahead = by_front_end(30_000, Some(AT_MS));
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.answer_with(found("\"v\"", LIVING), ahead);
    let (claim, _) = alone.claims();
    alone.answer_with(written("\"c\""), by_front_end(30_000, None));
    let made_ms = alone.store_ms() / 1_000 * 1_000;
    alone.reads();
    alone.answer_with(found("\"c\"", &text(&claim)), by_front_end(30_000, Some(made_ms)));
    assert!(matches!(alone.election.problem(), Some(Problem::DateAhead { .. })));
    (alone, claim)
}

#[test]
fn a_proxys_date_that_was_put_right_is_no_problem_any_more() {
    let (mut alone, claim) = leads_behind_a_fast_proxy();
    for number in 0..3 {
        alone.until_written("\"c\"", &text(&claim));
        alone.written(&format!("\"n{number}\""));
    }
    assert!(alone.leads());
    assert_eq!(alone.election.problem(), None);
}

#[test]
fn a_proxys_date_within_a_new_store_skew_is_no_problem_any_more() {
    let (mut alone, _) = leads_behind_a_fast_proxy();
    alone.tell(Input::Configure(Box::new(config(&with_skew(2_000)))));
    assert!(alone.election.problem().is_some(), "the settings are the same");
    alone.tell(Input::Configure(Box::new(config(&with_skew(60_000)))));
    assert_eq!(alone.election.problem(), None);
}

/// Whoever led may have its lease still when `maxLease` is raised, and so may another's settings be longer.
#[test]
fn s7_longer_settings_count_for_a_grace_that_goes_on() {
    let mut alone = Alone::new(&with_longest(15_000));
    alone.reads();
    alone.answer(Outcome::Missing);
    let (created, seen) = alone.claims();
    assert_eq!((seen, created.lease_ms), (Condition::Absent, Some(15_000)));
    alone.written("\"c\"");
    let reserved = alone.reserves("\"c\"");
    alone.ms += 5_000;
    alone.tell(Input::Configure(Box::new(config(&with_longest(60_000)))));
    alone.until_written("\"r\"", &text(&reserved));
    assert!((60_000..=63_000).contains(&alone.ms), "claimed at {} ms", alone.ms);
}

/// What it tried by the old settings counted a shorter grace.
#[test]
fn s7_a_creation_by_old_settings_does_not_leave_once_more() {
    let mut alone = Alone::new(&with_longest(15_000));
    alone.reads();
    alone.answer(Outcome::Missing);
    alone.claims();
    alone.tell(Input::Configure(Box::new(config(&with_longest(60_000)))));
    alone.answer(unknown());
    let created = loop {
        match alone.step() {
            Step::Claim { lease, .. } => break lease,
            _ => alone.answer(Outcome::Missing),
        }
    };
    assert_eq!(created.lease_ms, Some(60_000));
}

/// It waits for the one lease that it knows, which is no grace.
#[test]
fn s6_settings_that_are_told_again_lengthen_no_wait_for_a_proof() {
    let mut alone = Alone::new(&with_longest(3_600_000));
    // The clocks of its store are further apart than `storeSkew`, so that what is read back proves nothing.
    let (claim, _) = alone.until_written_with("\"v\"", LIVING, by_front_end(9_000, Some(AT_MS)));
    alone.answer_with(written("\"c\""), by_front_end(9_000, None));
    let landed_ms = alone.ms;
    alone.tell(Input::Configure(Box::new(config(&with_longest(3_600_000)))));
    let made_ms = alone.store_ms() / 1_000 * 1_000;
    alone.until_written_with("\"c\"", &text(&claim), by_front_end(9_000, Some(made_ms)));
    let waited_ms = alone.ms - landed_ms;
    assert!((15_000..=25_000).contains(&waited_ms), "claimed after {waited_ms} ms");
}
