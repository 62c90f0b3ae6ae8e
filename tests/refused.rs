//! Stores, or something before them, that refuse: nobody is asked without pause, and nothing is
//! learned.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Input, Step};
use edgelect::lease;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Outcome, Version};
use edgelect::{Config, Settings};

const EPOCH_MS: u64 = 1_795_000_000_000;

fn election(clock: HostClock) -> Election {
    let lockfile_path = Some("leader/x.json".to_owned());
    let settings = Settings { lockfile_path, clock, ..Settings::default() };
    Election::new(Config::new(&settings).expect("the defaults are fine"), "me".to_owned(), 7)
}

fn at(ms: u64) -> Now {
    Now::new(EPOCH_MS + ms, EPOCH_MS + ms)
}

fn dated(ms: u64) -> Facts {
    Facts { date_ms: Some(EPOCH_MS + ms), ..Facts::default() }
}

/// A record that its leader has released.
fn tombstone(number: u64) -> Outcome {
    let record = format!(
        r#"{{"leaderID":"other","session":"o","sequence":{number},"term":5,"leaseMs":15000,
        "lastUpdated":"0001-01-01T00:00:00Z"}}"#
    );
    let version = Version(format!("\"v{number}\""));
    Outcome::Found { version, reading: lease::read(record.as_bytes()) }
}

fn denied() -> Outcome {
    Outcome::Rejected(Fault::new(FaultKind::Denied, "no"))
}

/// How many requests leave in five minutes.
fn requests(read: impl Fn(u64) -> Outcome, write: impl Fn() -> Outcome) -> u64 {
    let mut election = election(HostClock::Two);
    let (mut ms, mut sent) = (0, 0);
    while ms < 300_000 {
        let outcome = match election.poll(at(ms)) {
            Step::Wait { until_ms } => {
                ms = (until_ms - EPOCH_MS).max(ms + 1);
                continue;
            }
            Step::Read { .. } => read(sent),
            _ => write(),
        };
        sent += 1;
        ms += 20;
        election.handle(at(ms), Input::Answer(Answer { outcome, facts: dated(ms) }));
    }
    sent
}

#[test]
fn writes_that_are_all_refused_are_not_repeated_without_pause() {
    for write in [|| Outcome::Refused, denied] {
        let one = requests(|_| tombstone(1), write);
        assert!(one < 300, "{one} requests in 60 intervals");
        let in_turn = requests(|sent| tombstone(sent % 3), write);
        assert!(in_turn < 300, "{in_turn} requests in 60 intervals");
        let absent = requests(|_| Outcome::Missing, write);
        assert!(absent < 300, "{absent} requests in 60 intervals");
    }
}

#[test]
fn s2_a_token_does_not_follow_the_date_of_something_on_the_way_that_refused() {
    const HOUR_MS: u64 = 3_600_000;
    for clock in [HostClock::One, HostClock::Two] {
        let mut election = election(clock);
        let mut ms = 0;
        let mut answer = |outcome, facts: &dyn Fn(u64) -> Facts| loop {
            match election.poll(at(ms)) {
                Step::Wait { until_ms } => ms = (until_ms - EPOCH_MS).max(ms + 1),
                Step::Claim { lease, .. } => return lease.term,
                _ => {
                    ms += 20;
                    election.handle(at(ms), Input::Answer(Answer { outcome, facts: facts(ms) }));
                    return None;
                }
            }
        };
        answer(denied(), &|ms| dated(ms + HOUR_MS));
        answer(tombstone(1), &dated);
        let term = answer(tombstone(1), &dated).expect("a tombstone is claimed at once");
        assert!(term < EPOCH_MS + HOUR_MS / 2, "{clock:?}: {} ms ahead", term - EPOCH_MS);
    }
}
