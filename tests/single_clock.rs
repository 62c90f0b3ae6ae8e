//! Hosts with one clock (S11): a step forward that no rule foresaw must not make a wait shorter.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Input, Step};
use edgelect::lease;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Outcome, Version};
use edgelect::{Config, Settings};

const EPOCH_MS: u64 = 1_795_000_000_000;
const STEP_MS: u64 = 20_000;
const RECORD: &[u8] = br#"{"leaderID":"other","session":"o","sequence":1,"term":5,"leaseMs":15000,
    "acquired":"2026-11-21T06:00:00Z","lastUpdated":"2026-11-21T06:58:12Z"}"#;

fn election() -> Election {
    let lockfile_path = Some("leader/x.json".to_owned());
    let settings = Settings { lockfile_path, clock: HostClock::One, ..Settings::default() };
    let config = Config::new(&settings).expect("the defaults are fine");
    Election::new(config, "me".to_owned(), 7)
}

fn at(ms: u64) -> Now {
    Now::new(EPOCH_MS + ms, EPOCH_MS + ms)
}

fn dated(ms: u64) -> Facts {
    Facts { date_ms: Some(EPOCH_MS + ms), ..Facts::default() }
}

fn answer(outcome: Outcome, facts: Facts) -> Input {
    Input::Answer(Answer { outcome, facts })
}

/// The next request and when it leaves.
fn request(election: &mut Election, mut ms: u64) -> (u64, Step) {
    loop {
        match election.poll(at(ms)) {
            Step::Wait { until_ms } => ms = (until_ms - EPOCH_MS).max(ms + 1),
            step => return (ms, step),
        }
    }
}

/// Whether a follower claims another's lease one real second after it saw it, its clock having stepped.
fn claims_after_a_step(first: Facts, later: impl Fn(u64) -> Facts) -> bool {
    let mut election = election();
    request(&mut election, 0);
    let version = Version("\"v\"".to_owned());
    election
        .handle(at(10), answer(Outcome::Found { version, reading: lease::read(RECORD) }, first));
    let (asked_ms, _) = request(&mut election, 1_000 + STEP_MS);
    let facts = later(asked_ms - STEP_MS);
    election.handle(at(asked_ms + 10), answer(Outcome::Unchanged, facts));
    matches!(election.poll(at(asked_ms + 10)), Step::Claim { .. })
}

#[test]
fn c38_a_step_is_not_an_age_when_both_answers_are_dated() {
    assert!(!claims_after_a_step(dated(0), dated));
}

#[test]
fn c38_a_step_is_not_an_age_when_the_second_answer_has_no_date() {
    assert!(!claims_after_a_step(dated(0), |_| Facts::default()));
}

#[test]
fn c38_a_step_is_not_an_age_when_the_first_answer_had_no_date() {
    assert!(!claims_after_a_step(Facts::default(), dated));
}

#[test]
fn c38_c43_a_step_is_not_an_age_when_the_first_date_was_an_old_one_from_a_cache() {
    let cached =
        Facts { date_ms: Some(EPOCH_MS - 60_000), relayed: true, cached: true, ..Facts::default() };
    assert!(!claims_after_a_step(cached, dated));
}

#[test]
fn c38_c43_a_step_is_not_an_age_when_a_cache_gives_every_date() {
    let old = |ms: u64| Facts { relayed: true, cached: true, ..dated(ms) };
    let first = Facts { date_ms: Some(EPOCH_MS - 60_000), ..old(0) };
    assert!(!claims_after_a_step(first, old));
}

#[test]
fn c33_c38_a_step_does_not_end_a_grace_that_began_without_a_date() {
    let mut election = election();
    request(&mut election, 0);
    election.handle(at(10), answer(Outcome::Missing, dated(0)));
    let (sent_ms, step) = request(&mut election, 10);
    assert!(matches!(step, Step::Claim { .. }), "the creation, not {step:?}");
    let version = Some(Version("\"c\"".to_owned()));
    election.handle(at(sent_ms + 10), answer(Outcome::Written { version }, Facts::default()));
    let (asked_ms, step) = request(&mut election, 1_000 + STEP_MS);
    assert!(matches!(step, Step::Read { .. }), "{step:?}");
    election.handle(at(asked_ms + 10), answer(Outcome::Unchanged, dated(asked_ms - STEP_MS)));
    let step = election.poll(at(asked_ms + 10));
    assert!(matches!(step, Step::Wait { .. }), "one second of fifteen is over, not {step:?}");
}

#[test]
fn a_step_back_while_a_read_is_under_way_does_not_put_off_the_next_look() {
    for step_ms in [1_000, 60_000, 3_600_000] {
        let mut election = election();
        let start_ms = 10_000_000;
        let seen = |sequence: u64| {
            let version = Version(format!("\"v{sequence}\""));
            answer(Outcome::Found { version, reading: lease::read(RECORD) }, Facts::default())
        };
        let (first_ms, _) = request(&mut election, start_ms);
        election.handle(at(first_ms + 20), seen(1));
        let (asked_ms, _) = request(&mut election, first_ms + 20);
        let now_ms = asked_ms + 20 - step_ms;
        election.handle(at(now_ms), seen(2));
        let (next_ms, _) = request(&mut election, now_ms);
        assert!(next_ms - now_ms <= 15_100, "a step of {step_ms} ms: {} ms", next_ms - now_ms);
    }
}

/// After how long a follower claims another's lease that nobody renews, where every answer says this of time.
fn claims_after_ms(
    mut election: Election,
    mut ms: u64,
    facts: impl Fn(usize, u64) -> Facts,
) -> Option<u64> {
    let version = || Version("\"v\"".to_owned());
    for answers in 0..200 {
        let (asked_ms, step) = request(&mut election, ms);
        ms = asked_ms + 10;
        let outcome = match step {
            Step::Read { unless: None, .. } => {
                Outcome::Found { version: version(), reading: lease::read(RECORD) }
            }
            Step::Read { .. } => Outcome::Unchanged,
            _ => return Some(asked_ms),
        };
        election.handle(at(ms), answer(outcome, facts(answers, ms)));
    }
    None
}

#[test]
fn c38_a_cache_without_a_date_stops_nobody_for_ever() {
    let cached_once = |answers: usize, _| Facts {
        relayed: answers == 0,
        cached: answers == 0,
        ..Facts::default()
    };
    let claimed_ms = claims_after_ms(election(), 0, cached_once);
    let claimed_ms = claimed_ms.expect("a lease that runs out is claimed");
    assert!((17_000..40_000).contains(&claimed_ms), "after {claimed_ms} ms");
}

#[test]
fn c38_a_date_of_something_on_the_way_that_refused_stops_nobody_for_ever() {
    let mut election = election();
    let (asked_ms, _) = request(&mut election, 0);
    let fault = Fault::new(FaultKind::Denied, "a proxy wants to know who you are");
    election.handle(at(asked_ms + 10), answer(Outcome::Rejected(fault), dated(asked_ms)));
    let claimed_ms = claims_after_ms(election, asked_ms + 10, |_, _| Facts::default());
    let claimed_ms = claimed_ms.expect("a lease that runs out is claimed");
    assert!((17_000..60_000).contains(&claimed_ms), "after {claimed_ms} ms");
}
