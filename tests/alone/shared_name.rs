//! Two processes of one `serverId`, by mistake and on purpose.

use edgelect::Settings;
use edgelect::config::HostClock;

use crate::alone::told::{Alone, record, settings};

/// Shows these records, each at the next read, and gives what is said after each.
fn said(alone: &mut Alone, records: &[String]) -> Vec<Option<String>> {
    let mut said = Vec::new();
    for record in records {
        alone.reads();
        alone.found(&format!("\"{}\"", alone.ms), record);
        said.push(alone.election.problem().map(ToString::to_string));
    }
    said
}

#[test]
fn a_second_process_of_one_server_id_is_told_once_it_has_renewed_twice() {
    let advice = "the two never lead at once, but the leader's name does not tell which of them leads, and one takes \
                  over the lease that the other has parked. Give each process a serverId of its own, or none";
    let (here, there) = (Some("here:8443"), r#","leaderAddr":"there:80""#);
    for (ours, more, places) in [
        (None, "", ""),
        (here, "", " (this one is at here:8443)"),
        (None, there, " (it is at \"there:80\")"),
        (here, there, " (it is at \"there:80\", this one at here:8443)"),
    ] {
        let server_addr = ours.map(str::to_owned);
        let mut alone = Alone::new(&Settings { server_addr, ..settings() });
        let renewals = [1, 2, 3].map(|sequence| record("ours", sequence, more));
        let told = format!("another process has the serverId \"ours\" and leads{places}: {advice}");
        assert_eq!(said(&mut alone, &renewals), [None, None, Some(told)]);
    }
}

#[test]
fn a_second_process_is_forgotten_once_another_has_led_for_two_leases() {
    let mut alone = Alone::new(&settings());
    let renewals = [1, 2, 3].map(|sequence| record("ours", sequence, ""));
    assert!(said(&mut alone, &renewals)[2].is_some());
    let since_ms = alone.ms;
    for sequence in 10.. {
        let told = said(&mut alone, &[record("theirs", sequence, "")]);
        if told == [None] {
            break;
        }
        assert!(alone.ms - since_ms < 40_000, "{told:?}");
    }
    assert!(alone.ms - since_ms >= 30_000, "after {} ms", alone.ms - since_ms);
}

#[test]
fn a_restart_a_cron_and_the_isolates_of_a_worker_share_a_server_id_on_purpose() {
    let renewals = |more: &str| [1, 2, 3, 4].map(|sequence| record("ours", sequence, more));
    let one_clock = Settings { clock: HostClock::One, ..settings() };
    let tick = Settings { sustain_ms: Some(60_000), ..settings() };
    let park_at = r#","parkAt":"2026-11-21T06:59:12Z""#;
    let restart = [1, 2, 2, 2].map(|sequence| record("ours", sequence, ""));
    let others = [1, 2, 3, 4].map(|sequence| record("theirs", sequence, ""));
    for (what, settings, records) in [
        ("a predecessor whose last renewal was on the way", settings(), restart),
        ("the trigger before", settings(), renewals(park_at)),
        ("a tick", tick, renewals("")),
        ("an isolate", one_clock, renewals("")),
        ("another name", settings(), others),
    ] {
        let mut alone = Alone::new(&settings);
        assert_eq!(said(&mut alone, &records), [None, None, None, None], "{what}");
    }
}
