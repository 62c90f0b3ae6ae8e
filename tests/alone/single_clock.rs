//! Hosts with one clock (S11): a step forward that no rule foresaw must not make a wait shorter.

use edgelect::clock::Now;
use edgelect::election::Standing;
use edgelect::store::Facts;

use crate::alone::told::{AT_MS, Alone, LIVING, denied, found};

fn dated(ms: u64) -> Facts {
    Facts { date_ms: Some(AT_MS + ms), ..Facts::default() }
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

/// Each event of a Worker has a clock of its own, which stands still at its last I/O.
#[test]
fn a_look_from_an_event_whose_clock_is_behind_ends_no_term() {
    let mut alone = Alone::with_one_clock();
    let released = LIVING.replace("2026-11-21T06:58:12Z", "0001-01-01T00:00:00Z");
    alone.until_written("\"v1\"", &released);
    alone.written("\"v2\"");
    let behind = Now { mono_ms: alone.now().mono_ms - 1, ..alone.now() };
    assert!(matches!(alone.election.standing(behind), Standing::Unproven(_)));
    assert!(alone.election.authority(behind).is_none());
    assert!(matches!(alone.election.standing(alone.now()), Standing::Leads(_)));
    let early = Now { early_timers: 1, ..alone.now() };
    assert_eq!(alone.election.standing(early), Standing::Over);
    assert_eq!(alone.election.standing(alone.now()), Standing::Over);
}
