//! Hosts with one clock (S11): a step forward that no rule foresaw must not make a wait shorter.

use edgelect::election::Step;
use edgelect::store::{Facts, Outcome};

use crate::alone::told::{AT_MS, Alone, LIVING, denied, found};

const STEP_MS: u64 = 20_000;

fn dated(ms: u64) -> Facts {
    Facts { date_ms: Some(AT_MS + ms), ..Facts::default() }
}

fn undated(_: u64) -> Facts {
    Facts::default()
}

/// A cache's answer, whose date is of so long before.
fn cached(age_ms: u64, ms: u64) -> Facts {
    let date_ms = Some(AT_MS + ms - age_ms);
    Facts { date_ms, relayed: true, cached: true, ..Facts::default() }
}

/// A follower must not claim another's lease one real second after it saw it, its clock having stepped.
#[test]
fn c38_c43_a_step_is_not_an_age_whatever_the_answers_say_of_time() {
    type Says = fn(u64) -> Facts;
    let rows: [(&str, Facts, Says); 5] = [
        ("both are dated", dated(0), dated),
        ("the second has no date", dated(0), undated),
        ("the first had no date", Facts::default(), dated),
        ("the first date was an old one from a cache", cached(60_000, 0), dated),
        ("a cache gives every date", cached(60_000, 0), |ms| cached(0, ms)),
    ];
    let mut claimed = Vec::new();
    for (name, first, later) in rows {
        let mut alone = Alone::with_one_clock();
        alone.reads();
        alone.answer_with(found("\"v\"", LIVING), |_| first);
        alone.ms = 1_000 + STEP_MS;
        alone.reads();
        let facts = later(alone.ms - STEP_MS);
        alone.answer_with(Outcome::Unchanged, |_| facts);
        if let Step::Claim { .. } = alone.election.poll(alone.now()) {
            claimed.push(name);
        }
    }
    assert!(claimed.is_empty(), "{claimed:?}");
}

#[test]
fn a_step_back_while_a_read_is_under_way_does_not_put_off_the_next_look() {
    for step_ms in [1_000, 60_000, 3_600_000] {
        let mut alone = Alone::with_one_clock();
        (alone.ms, alone.dated) = (10_000_000, false);
        alone.reads();
        alone.found("\"v1\"", LIVING);
        alone.step();
        alone.ms -= step_ms;
        alone.found("\"v2\"", LIVING);
        let now_ms = alone.ms;
        alone.step();
        let pause_ms = alone.ms - now_ms;
        assert!(pause_ms <= 15_100, "a step of {step_ms} ms: {pause_ms} ms");
    }
}

/// A follower of a leader that nobody renews for claims in the end, whatever the first answer said of time.
#[test]
fn c38_what_somebody_on_the_way_said_once_stops_nobody_for_ever() {
    let dateless = |relayed: bool| Facts { relayed, cached: relayed, ..Facts::default() };
    for (name, outcome, facts, most_ms) in [
        ("a cache without a date", found("\"v\"", LIVING), dateless(true), 40_000),
        ("a dated refusal", denied(), dated(0), 60_000),
    ] {
        let mut alone = Alone::with_one_clock();
        alone.reads();
        alone.answer_with(outcome, |_| facts);
        alone.until_written_with("\"v\"", LIVING, |_| dateless(false));
        assert!((17_000..most_ms).contains(&alone.ms), "{name}: after {} ms", alone.ms);
    }
}
