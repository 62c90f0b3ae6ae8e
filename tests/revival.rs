//! A record that was made from absence, deleted, and brought back by a held-up copy of the request that made it:
//! the same bytes, the same version, and only `Last-Modified` tells.

use edgelect::clock::Now;
use edgelect::election::{Election, Input, Problem, Step};
use edgelect::lease;
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};
use edgelect::{Config, Settings};

const EPOCH_MS: u64 = 1_795_000_000_000;
const GRACE_MS: u64 = 15_000;
const CREATED: &[u8] = br#"{"leaderID":"other","session":"o","sequence":1,"term":1794999990000,
    "leaseMs":15000,"lastUpdated":"2026-11-21T06:58:12Z"}"#;

fn election() -> Election {
    let lockfile_path = Some("leader/x.json".to_owned());
    let settings = Settings { lockfile_path, ..Settings::default() };
    Election::new(Config::new(&settings).expect("the defaults are fine"), "me".to_owned(), 7)
}

fn at(ms: u64) -> Now {
    Now::new(ms, EPOCH_MS + ms)
}

/// An answer at this time about a body that changed at that one.
fn facts(date_ms: u64, modified_ms: Option<u64>) -> Facts {
    let last_modified_ms = modified_ms.map(|ms| EPOCH_MS + ms);
    Facts { date_ms: Some(EPOCH_MS + date_ms), last_modified_ms, ..Facts::default() }
}

fn answer(outcome: Outcome, facts: Facts) -> Input {
    Input::Answer(Answer { outcome, facts })
}

/// The next request and when it leaves.
fn request(election: &mut Election, mut ms: u64) -> (u64, Step) {
    loop {
        match election.poll(at(ms)) {
            Step::Wait { until_ms } => ms = until_ms.max(ms + 1),
            step => return (ms, step),
        }
    }
}

/// Answers every read of a record made from absence, until something is claimed; when that is.
/// `modified_ms` is its `Last-Modified` at a time.
fn claimed_at(
    election: &mut Election,
    mut ms: u64,
    body: &[u8],
    modified_ms: impl Fn(u64) -> u64,
) -> u64 {
    let version = Version("\"created\"".to_owned());
    loop {
        let (asked_ms, step) = request(election, ms);
        let Step::Read { unless, .. } = step else {
            assert!(matches!(step, Step::Claim { .. }), "{step:?}");
            return asked_ms;
        };
        assert_eq!(unless, None, "only a whole answer has a Last-Modified");
        ms = asked_ms + 10;
        let found = Outcome::Found { version: version.clone(), reading: lease::read(body) };
        election.handle(at(ms), answer(found, facts(ms, Some(modified_ms(ms)))));
    }
}

/// The election's own creation, as it was written.
fn create(election: &mut Election) -> Vec<u8> {
    request(election, 0);
    election.handle(at(10), answer(Outcome::Missing, facts(0, None)));
    let (_, step) = request(election, 10);
    let Step::Claim { lease, seen: Condition::Absent, .. } = step else { panic!("{step:?}") };
    let version = Some(Version("\"created\"".to_owned()));
    election.handle(at(20), answer(Outcome::Written { version }, facts(0, None)));
    lease::write(&lease)
}

#[test]
fn c33_a_creation_that_nobody_deleted_is_claimed_after_its_grace() {
    let mut election = election();
    let body = create(&mut election);
    let claimed_ms = claimed_at(&mut election, 20, &body, |_| 0);
    assert!((GRACE_MS..2 * GRACE_MS).contains(&claimed_ms), "{claimed_ms}");
}

#[test]
fn c33_an_own_creation_that_came_back_after_a_deletion_begins_its_grace_anew() {
    let mut election = election();
    let body = create(&mut election);
    let back_ms = 14_000;
    let claimed_ms =
        claimed_at(&mut election, 20, &body, |ms| if ms < back_ms { 0 } else { back_ms });
    assert!(claimed_ms >= back_ms + GRACE_MS, "claimed at {claimed_ms} ms");
}

#[test]
fn c33_anothers_creation_that_came_back_after_a_deletion_is_watched_anew() {
    let mut election = election();
    let back_ms = 14_000;
    let claimed_ms =
        claimed_at(&mut election, 0, CREATED, |ms| if ms < back_ms { 0 } else { back_ms });
    assert!(claimed_ms >= back_ms + GRACE_MS, "claimed at {claimed_ms} ms");
}

#[test]
fn s7_an_own_reservation_that_came_back_after_the_bytes_that_it_replaced_is_watched_anew() {
    let mut election = election();
    let (mut ms, mut wrote) = (0, None);
    while wrote.is_none() {
        let (asked_ms, step) = request(&mut election, ms);
        ms = asked_ms + 10;
        let outcome = match step {
            Step::Claim { lease, .. } => {
                wrote = Some(lease::write(&lease));
                Outcome::Written { version: Some(Version("\"created\"".to_owned())) }
            }
            _ => {
                Outcome::Found { version: Version("\"0\"".to_owned()), reading: lease::read(b"{}") }
            }
        };
        election.handle(at(ms), answer(outcome, facts(ms, Some(0))));
    }
    let (landed_ms, body) = (ms, wrote.expect("it was written"));
    let back_ms = landed_ms + 3_900;
    let modified_ms = |ms| if ms < back_ms { landed_ms } else { back_ms };
    let claimed_ms = claimed_at(&mut election, landed_ms, &body, modified_ms);
    assert!(claimed_ms >= back_ms + GRACE_MS, "claimed at {claimed_ms} ms, back at {back_ms} ms");
}

/// A proxy that makes an ETag of its own for each answer: the watch begins anew with each look, and somebody has to say so.
#[test]
fn a_write_that_is_shown_under_another_version_each_time_is_told_and_never_claimed() {
    let mut election = election();
    let body = std::str::from_utf8(CREATED).expect("it is JSON");
    let living = body.replace("\"leaseMs\"", "\"acquired\":\"2026-11-21T06:00:00Z\",\"leaseMs\"");
    let (mut ms, mut told) = (0, 0);
    for look in 0..20 {
        let (asked_ms, step) = request(&mut election, ms);
        assert!(matches!(step, Step::Read { .. }), "{step:?}");
        ms = asked_ms + 10;
        let version = Version(format!("\"v{look}\""));
        let found = Outcome::Found { version, reading: lease::read(living.as_bytes()) };
        election.handle(at(ms), answer(found, Facts::default()));
        told += u32::from(election.problem() == Some(&Problem::MovingVersions));
    }
    assert_eq!(told, 17, "from the third move on");
    let renewed = living.replace("\"sequence\":1", "\"sequence\":2");
    let (asked_ms, _) = request(&mut election, ms);
    let version = Version("\"renewed\"".to_owned());
    let found = Outcome::Found { version, reading: lease::read(renewed.as_bytes()) };
    election.handle(at(asked_ms + 10), answer(found, Facts::default()));
    assert_eq!(election.problem(), None, "a renewal is what a new version is for");
}
