//! When a tight follower looks again, where what it has learned of its leader's interval misleads. That it is in step with
//! each renewal otherwise is held by `scale.rs`.

use edgelect::config::HostClock;
use edgelect::{Follow, Input, Settings};

use crate::alone::told::{Alone, LIVING, config, settings};

const INTERVAL_MS: u64 = 5_000;
/// The renewal of this number, by a leader that goes on so.
fn renewed(index: u64, more: &str) -> String {
    let record = LIVING.replace(r#""sequence":1"#, &format!(r#""sequence":{index}"#));
    record.replace('}', &format!("{more}}}"))
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
        alone.found(&format!("\"v{index}\""), &renewed(index, ""));
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
        let more = format!(r#","parkAt":"{park_at}""#);
        while alone.ms < 30_000 {
            alone.reads();
            reads += 1;
            let index = alone.ms / INTERVAL_MS;
            alone.found(&format!("\"v{index}\""), &renewed(index, &more));
        }
        assert!((2..=8).contains(&reads), "{park_at}: {reads} reads");
    }
}
