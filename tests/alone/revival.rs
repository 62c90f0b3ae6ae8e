//! A record that was deleted, and brought back by a held-up copy of the request that made it: the same bytes, the same
//! version, and only `Last-Modified` tells.

use edgelect::election::Problem;
use edgelect::store::{Condition, Facts, Outcome};

use crate::alone::told::{AT_MS, Alone, LIVING, found, settings, text};

const GRACE_MS: u64 = 15_000;
/// Made from absence, as is one without `acquired`.
const CREATED: &str = r#"{"leaderID":"other","session":"o","sequence":1,"term":1794999990000,
    "leaseMs":15000,"lastUpdated":"2026-11-21T06:58:12Z"}"#;

/// A follower, and the record that grants nothing yet, which has just landed.
fn in_grace(whose: &str) -> (Alone, String) {
    let mut alone = Alone::new(&settings());
    let body = match whose {
        "another's creation" => return (alone, CREATED.to_owned()),
        "own creation" => {
            alone.reads();
            alone.answer(Outcome::Missing);
            let (lease, seen) = alone.claims();
            assert_eq!(seen, Condition::Absent);
            text(&lease)
        }
        _ => {
            alone.modified_ms = Some(AT_MS);
            text(&alone.until_written("\"0\"", "{}").0)
        }
    };
    alone.written("\"created\"");
    (alone, body)
}

#[test]
fn c33_s7_what_came_back_after_a_deletion_begins_its_grace_anew() {
    let mut wrong = Vec::new();
    for (whose, back_after_ms) in [
        ("own creation", None),
        ("own creation", Some(14_000)),
        ("another's creation", Some(14_000)),
        ("own reservation", Some(3_900)),
    ] {
        let (mut alone, body) = in_grace(whose);
        let landed_ms = alone.ms;
        let back_ms = landed_ms + back_after_ms.unwrap_or(0);
        alone.until_written_with("\"created\"", &body, |alone| {
            let modified_ms = if alone.ms < back_ms { landed_ms } else { back_ms };
            Facts { last_modified_ms: Some(AT_MS + modified_ms), ..alone.facts() }
        });
        let waited_ms = alone.ms - back_ms;
        if !(GRACE_MS..2 * GRACE_MS).contains(&waited_ms) {
            wrong.push((whose, back_after_ms, waited_ms));
        }
    }
    assert!(wrong.is_empty(), "whose, back after how long, claimed so much later: {wrong:?}");
}

/// A proxy that makes an ETag of its own for each answer: the watch begins anew with each look, and somebody has to say so.
#[test]
fn a_write_that_is_shown_under_another_version_each_time_is_told_and_never_claimed() {
    let mut alone = Alone::new(&settings());
    alone.dated = false;
    let mut told = 0;
    for look in 0..20 {
        alone.reads();
        alone.found(&format!("\"v{look}\""), LIVING);
        told += u32::from(alone.election.problem() == Some(&Problem::MovingVersions));
    }
    assert_eq!(told, 17, "from the third move on");
    alone.reads();
    alone.answer(found("\"renewed\"", &LIVING.replace("\"sequence\":1", "\"sequence\":2")));
    assert_eq!(alone.election.problem(), None, "a renewal is what a new version is for");
}
