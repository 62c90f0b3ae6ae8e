//! How far behind its leader's renewals a tight follower looks, on virtual time: what a failover costs beyond the lease.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Input, Step};
use edgelect::lease;
use edgelect::store::{Answer, Facts, Outcome, Version};
use edgelect::{Config, Follow, Settings};

const EPOCH_MS: u64 = 1_795_000_000_000;
const INTERVAL_MS: u64 = 5_000;
const ROUND_TRIP_MS: u64 = 40;

/// One renewal: when it landed, and whose it is; a leader without a term is of another make.
struct Renewal {
    at_ms: u64,
    leader: &'static str,
    term: Option<u64>,
}

fn at(ms: u64) -> Now {
    Now::new(EPOCH_MS + ms, EPOCH_MS + ms)
}

fn record(index: usize, renewal: &Renewal) -> Outcome {
    let more = renewal.term.map_or_else(String::new, |term| {
        format!(
            r#","term":{term},"session":"o{term}","sequence":{index},"leaseMs":15000,"acquired":"2026-11-21T06:00:00Z""#
        )
    });
    let Renewal { leader, .. } = renewal;
    let text = format!(r#"{{"leaderID":"{leader}","lastUpdated":"2026-11-21T06:58:12Z"{more}}}"#);
    let version = Version(format!("\"v{index}\""));
    Outcome::Found { version, reading: lease::read(text.as_bytes()) }
}

/// How old each renewal was when it was first seen by a follower that begins so long after the first of them, in
/// milliseconds; and the number of reads.
fn lags(renewals: &[Renewal], begins_ms: u64) -> (Vec<Option<u64>>, usize) {
    let settings = Settings {
        lockfile_path: Some("a".to_owned()),
        follow: Some(Follow::Tight),
        frequent_interval_ms: Some(INTERVAL_MS),
        ..Settings::default()
    };
    let config = Config::new(&settings).expect("the settings keep every rule");
    let mut election = Election::new(config, "me".to_owned(), 7);
    let (mut lags, mut reads, mut held) = (vec![None; renewals.len()], 0, None);
    let mut ms = renewals[0].at_ms + begins_ms;
    let end_ms = renewals.last().expect("there are some").at_ms + INTERVAL_MS;
    while ms < end_ms {
        match election.poll(at(ms)) {
            Step::Wait { until_ms } => ms = (until_ms - EPOCH_MS).max(ms + 1),
            Step::Read { .. } => {
                reads += 1;
                let seen_ms = ms + ROUND_TRIP_MS / 2;
                ms += ROUND_TRIP_MS;
                let index = renewals.iter().rposition(|renewal| renewal.at_ms <= seen_ms);
                let index = index.expect("it starts after the first");
                let outcome = if held == Some(index) {
                    Outcome::Unchanged
                } else {
                    held = Some(index);
                    lags[index] = Some(seen_ms - renewals[index].at_ms);
                    record(index, &renewals[index])
                };
                let answer = Answer { outcome, facts: Facts::default() };
                election.handle(at(ms), Input::Answer(answer));
            }
            step => panic!("a live leader is only looked at: {step:?}"),
        }
    }
    (lags, reads)
}

fn worst(lags: &[Option<u64>]) -> u64 {
    lags.iter().flatten().copied().max().expect("some renewals were seen")
}

#[test]
fn it_takes_few_reads_to_get_in_step_and_hardly_more_than_one_for_each_renewal_then() {
    let renewals: Vec<Renewal> = (0..120)
        .map(|index| Renewal { at_ms: 1_000 + index * INTERVAL_MS, leader: "other", term: Some(5) })
        .collect();
    for begins_ms in (50..INTERVAL_MS).step_by(150) {
        let (lags, reads) = lags(&renewals, begins_ms);
        assert!(reads <= 132, "from {begins_ms} ms: {reads} reads of 120 renewals");
        assert!(worst(&lags[10..]) <= 500, "from {begins_ms} ms: {} ms", worst(&lags[10..]));
    }
}

#[test]
fn after_a_renewal_that_came_late_it_is_soon_in_step_again() {
    for late_ms in [300, 1_000, 1_900, 2_900] {
        let renewals: Vec<Renewal> = (0..60)
            .map(|index| {
                let moved_ms = if index < 20 { 0 } else { late_ms };
                let at_ms = 1_000 + index * INTERVAL_MS + moved_ms;
                Renewal { at_ms, leader: "other", term: Some(5) }
            })
            .collect();
        let (lags, reads) = lags(&renewals, 1_300);
        let worst_ms = worst(&lags[30..]);
        assert!(worst_ms <= 500, "late by {late_ms} ms: {worst_ms} ms behind ten renewals later");
        assert!(reads <= 95, "late by {late_ms} ms: {reads} reads of 60 renewals");
    }
}

#[test]
fn with_a_new_leader_that_has_no_terms_it_is_soon_in_step() {
    let renewals: Vec<Renewal> = (0..60)
        .map(|index| {
            let (leader, moved_ms) = if index < 20 { ("one", 0) } else { ("two", 2_500) };
            Renewal { at_ms: 6_000 + index * INTERVAL_MS + moved_ms, leader, term: None }
        })
        .collect();
    let (lags, _) = lags(&renewals, 1_300);
    let worst_ms = worst(&lags[32..]);
    assert!(worst_ms <= 500, "{worst_ms} ms behind twelve renewals after the change");
}

/// How early it looks was learned by the interval of before, and a clock that stepped back counts from near 0.
#[test]
fn a_much_shorter_interval_after_a_step_of_the_clock_is_looked_at_in_time() {
    let config = |frequent_ms| {
        let settings = Settings {
            lockfile_path: Some("a".to_owned()),
            follow: Some(Follow::Tight),
            clock: HostClock::One,
            frequent_interval_ms: Some(frequent_ms),
            leader_timeout_ms: Some(60_000),
            max_lease_ms: Some(60_000),
            ..Settings::default()
        };
        Config::new(&settings).expect("the settings keep every rule")
    };
    let mut election = Election::new(config(20_000), "me".to_owned(), 7);
    let now = |ms| Now::new(ms, ms);
    for (index, ms) in [(0, 15_000), (1, 100)] {
        let step = election.poll(now(ms));
        assert!(matches!(step, Step::Read { .. }), "{index}: {step:?}");
        let outcome = record(index, &Renewal { at_ms: ms, leader: "other", term: Some(5) });
        let answer = Answer { outcome, facts: Facts::default() };
        election.handle(now(ms), Input::Answer(answer));
        election.handle(now(ms), Input::Configure(Box::new(config(1_000))));
    }
    let Step::Wait { until_ms } = election.poll(now(100)) else { panic!("it has just looked") };
    assert!(until_ms <= 1_200, "{until_ms}");
}
