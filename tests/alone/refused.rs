//! Stores, or something before them, that refuse: nobody is asked without pause, and nothing is learned.

use edgelect::Settings;
use edgelect::config::HostClock;
use edgelect::election::{Input, Step};
use edgelect::store::{Facts, Outcome};

use crate::alone::told::{AT_MS, Alone, denied, found, settings};

/// A record that its leader has released.
fn tombstone(number: u64) -> String {
    format!(
        r#"{{"leaderID":"other","session":"o","sequence":{number},"term":5,"leaseMs":15000,
        "lastUpdated":"0001-01-01T00:00:00Z"}}"#
    )
}

/// How many requests leave in five minutes.
fn requests(read: impl Fn(u64) -> Outcome, write: &Outcome) -> u64 {
    let (mut alone, mut sent) = (Alone::new(&settings()), 0);
    loop {
        let step = alone.step();
        if alone.ms >= 300_000 {
            return sent;
        }
        let reads = matches!(step, Step::Read { .. });
        alone.answer(if reads { read(sent) } else { write.clone() });
        sent += 1;
    }
}

#[test]
fn writes_that_are_all_refused_are_not_repeated_without_pause() {
    let released = |number| found(&format!("\"v{number}\""), &tombstone(number));
    for write in [Outcome::Refused, denied()] {
        for (shown, sent) in [
            ("one version", requests(|_| released(1), &write)),
            ("versions in turn", requests(|sent| released(sent % 3), &write)),
            ("nothing", requests(|_| Outcome::Missing, &write)),
        ] {
            assert!(sent < 300, "{shown}, {write:?}: {sent} requests in 60 intervals");
        }
    }
}

#[test]
fn s2_a_token_does_not_follow_the_date_of_something_on_the_way_that_refused() {
    const HOUR_MS: u64 = 3_600_000;
    for clock in [HostClock::One, HostClock::Two] {
        let mut alone = Alone::new(&Settings { clock, ..settings() });
        alone.reads();
        let date_ms = Some(AT_MS + HOUR_MS);
        alone.answer_with(denied(), |_| Facts { date_ms, ..Facts::default() });
        let (lease, _) = alone.until_written("\"v1\"", &tombstone(1));
        let term = lease.term.expect("a tombstone is claimed at once");
        assert!(term < AT_MS + HOUR_MS / 2, "{clock:?}: {} ms ahead", term - AT_MS);
    }
}

/// What is under way may land; nothing more of it leaves.
#[test]
fn a_claim_of_who_is_told_not_to_compete_is_not_sent_again() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.answer(Outcome::Missing);
    alone.claims();
    alone.tell(Input::Compete(false));
    alone.timeout();
    alone.reads();
    alone.answer(Outcome::Missing);
    assert!(matches!(alone.step(), Step::Read { .. }), "it only looks");
}
