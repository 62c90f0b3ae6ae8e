//! How far behind its leader's renewals a tight follower looks: what a failover costs beyond the lease.

use edgelect::config::HostClock;
use edgelect::election::Step;
use edgelect::store::Outcome;
use edgelect::{Follow, Input, Settings};

use crate::alone::told::{Alone, LIVING, config, found, settings};

const INTERVAL_MS: u64 = 5_000;
const ROUND_TRIP_MS: u64 = 40;

/// One renewal: when it landed, and whose it is; a leader without a term is of another make.
struct Renewal {
    at_ms: u64,
    leader: &'static str,
    term: Option<u64>,
}

/// So many renewals, an interval apart from the number on that each has moved by.
fn renewals(count: u64, moved_from: u64, moved_ms: u64) -> Vec<Renewal> {
    let at_ms = |index| 1_000 + index * INTERVAL_MS + if index < moved_from { 0 } else { moved_ms };
    let renewal = |index| Renewal { at_ms: at_ms(index), leader: "other", term: Some(5) };
    (0..count).map(renewal).collect()
}

fn record(index: usize, renewal: &Renewal) -> Outcome {
    let more = renewal.term.map_or_else(String::new, |term| {
        format!(
            r#","term":{term},"session":"o{term}","sequence":{index},"leaseMs":15000,"acquired":"2026-11-21T06:00:00Z""#
        )
    });
    let Renewal { leader, .. } = renewal;
    let text = format!(r#"{{"leaderID":"{leader}","lastUpdated":"2026-11-21T06:58:12Z"{more}}}"#);
    found(&format!("\"v{index}\""), &text)
}

/// How old each renewal was when it was first seen by a follower that begins so long after the first of them, in
/// milliseconds; and the number of reads.
fn lags(renewals: &[Renewal], begins_ms: u64) -> (Vec<Option<u64>>, usize) {
    let mut alone = Alone::new(&Settings { follow: Some(Follow::Tight), ..settings() });
    alone.dated = false;
    alone.ms = renewals[0].at_ms + begins_ms;
    let (mut lags, mut reads, mut held) = (vec![None; renewals.len()], 0, None);
    let end_ms = renewals.last().expect("there are some").at_ms + INTERVAL_MS;
    loop {
        let step = alone.step();
        if alone.ms >= end_ms {
            return (lags, reads);
        }
        assert!(matches!(step, Step::Read { .. }), "a live leader is only looked at: {step:?}");
        reads += 1;
        let seen_ms = alone.ms + ROUND_TRIP_MS / 2;
        let index = renewals.iter().rposition(|renewal| renewal.at_ms <= seen_ms);
        let index = index.expect("it starts after the first");
        alone.ms += ROUND_TRIP_MS - 10;
        if held.replace(index) == Some(index) {
            alone.answer(Outcome::Unchanged);
        } else {
            lags[index] = Some(seen_ms - renewals[index].at_ms);
            alone.answer(record(index, &renewals[index]));
        }
    }
}

fn worst(lags: &[Option<u64>]) -> u64 {
    lags.iter().flatten().copied().max().expect("some renewals were seen")
}

#[test]
fn it_takes_few_reads_to_get_in_step_and_hardly_more_than_one_for_each_renewal_then() {
    for begins_ms in (50..INTERVAL_MS).step_by(150) {
        let (lags, reads) = lags(&renewals(120, 0, 0), begins_ms);
        assert!(reads <= 132, "from {begins_ms} ms: {reads} reads of 120 renewals");
        assert!(worst(&lags[10..]) <= 500, "from {begins_ms} ms: {} ms", worst(&lags[10..]));
    }
}

#[test]
fn after_a_renewal_that_came_late_or_of_a_new_leader_without_terms_it_is_soon_in_step_again() {
    for late_ms in [300, 1_000, 1_900, 2_900] {
        let (lags, reads) = lags(&renewals(60, 20, late_ms), 1_300);
        let worst_ms = worst(&lags[30..]);
        assert!(worst_ms <= 500, "late by {late_ms} ms: {worst_ms} ms behind ten renewals later");
        assert!(reads <= 95, "late by {late_ms} ms: {reads} reads of 60 renewals");
    }
    let mut renewals = renewals(60, 20, 2_500);
    for (index, renewal) in renewals.iter_mut().enumerate() {
        (renewal.leader, renewal.term) = (if index < 20 { "one" } else { "two" }, None);
    }
    let worst_ms = worst(&lags(&renewals, 1_300).0[32..]);
    assert!(worst_ms <= 500, "{worst_ms} ms behind twelve renewals after the change");
}

/// How early it looks was learned by the interval of before, and a clock that stepped back counts from near 0.
#[test]
fn a_much_shorter_interval_after_a_step_of_the_clock_is_looked_at_in_time() {
    let with_interval = |frequent_ms| Settings {
        follow: Some(Follow::Tight),
        clock: HostClock::One,
        frequent_interval_ms: Some(frequent_ms),
        leader_timeout_ms: Some(60_000),
        max_lease_ms: Some(60_000),
        ..settings()
    };
    let mut alone = Alone::new(&with_interval(20_000));
    (alone.dated, alone.from_ms) = (false, 0);
    for (index, ms) in [(0, 15_000), (1, 100)] {
        alone.ms = ms;
        alone.reads();
        assert_eq!(alone.ms, ms, "it looks at once");
        alone.ms -= 10;
        alone.answer(record(index, &Renewal { at_ms: ms, leader: "other", term: Some(5) }));
        alone.tell(Input::Configure(Box::new(config(&with_interval(1_000)))));
    }
    alone.step();
    assert!(alone.ms <= 1_200, "{}", alone.ms);
}

/// A follower of the leader's own name, for two leases, of which each record announces this time of a park.
#[test]
fn an_announced_park_that_is_long_over_or_years_away_multiplies_no_reads() {
    for park_at in ["2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"] {
        let settings = Settings { server_id: Some("other".to_owned()), ..settings() };
        let (mut alone, mut reads) = (Alone::new(&settings), 0);
        let more = format!(r#","parkAt":"{park_at}"}}"#);
        while alone.ms < 30_000 {
            alone.reads();
            reads += 1;
            let index = alone.ms / INTERVAL_MS;
            let renewed = LIVING.replace(r#""sequence":1"#, &format!(r#""sequence":{index}"#));
            alone.found(&format!("\"v{index}\""), &renewed.replace('}', &more));
        }
        assert!((2..=8).contains(&reads), "{park_at}: {reads} reads");
    }
}
