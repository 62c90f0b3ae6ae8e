//! Records of other makes, which say nothing of terms: as what they count, and how they are taken (S2, S4, S12); and those
//! of a second process of the own `serverId`, by mistake and on purpose.

use edgelect::config::HostClock;
use edgelect::election::{Event, Step};
use edgelect::lease::{Lease, Stamp};
use edgelect::store::{Facts, Outcome};
use edgelect::{Input, Settings};

use crate::alone::told::{AT_MS, Alone, found, matching, record, settings, text, tombstone};

fn reserved(settings: &Settings, body: &str) -> (Alone, Lease) {
    let mut alone = Alone::new(settings);
    let (lease, seen) = alone.until_written("\"0\"", body);
    assert_eq!(seen, matching("\"0\""));
    assert!(lease.in_grace(), "it grants nothing: {lease:?}");
    alone.written("\"1\"");
    (alone, lease)
}

/// For how long a reservation over bytes that nobody can read is waited for, if the host sleeps while it is on its way.
fn waits_ms(slept_ms: u64) -> u64 {
    let mut alone = Alone::new(&settings());
    let (lease, _) = alone.until_written("\"0\"", "damaged");
    assert!(lease.in_grace(), "{lease:?}");
    // The wall clock and the store's go on; the monotonic one does not.
    (alone.from_ms, alone.ahead_ms) = (alone.from_ms + slept_ms, slept_ms);
    alone.written("\"1\"");
    let landed_ms = alone.ms;
    alone.until_written("\"1\"", &text(&lease));
    alone.ms - landed_ms
}

/// For how long a reservation is waited for that was not heard of at first, where this was read next; the look that showed what it
/// lies on was long ago by the time it is found.
fn found_late_waits_ms(read_meanwhile: impl Fn() -> Outcome) -> u64 {
    let mut alone = Alone::new(&settings());
    let (lease, _) = alone.until_written("\"0\"", "damaged");
    alone.timeout();
    while let Step::Claim { .. } = alone.step() {
        alone.timeout();
    }
    alone.answer(read_meanwhile());
    alone.ms += 5_000;
    while let Step::Claim { .. } = alone.step() {
        alone.answer(Outcome::Refused);
    }
    alone.found("\"1\"", &text(&lease));
    let found_ms = alone.ms;
    alone.until_written("\"1\"", &text(&lease));
    alone.ms - found_ms
}

#[test]
fn s7_a_reservation_that_is_found_late_waits_for_the_grace_whatever_was_read_before() {
    let newer = || found("\"0\"", r#"{"format":2}"#);
    let old = || found("\"old\"", &tombstone(1));
    let whole = || found("\"0\"", &record("other", 1, ""));
    for (what, waits_ms) in [
        ("bytes cut short", found_late_waits_ms(|| found("\"0\"", "damaged"))),
        ("a newer format", found_late_waits_ms(newer)),
        ("an old state", found_late_waits_ms(old)),
        ("a lease that was cut short before", found_late_waits_ms(whole)),
        ("nothing", found_late_waits_ms(|| Outcome::Missing)),
    ] {
        assert!(waits_ms >= 15_000, "{what}: {waits_ms} ms");
    }
}

#[test]
fn s7_a_host_that_slept_over_a_reservation_waits_for_the_grace() {
    let (at_once_ms, slept_ms) = (waits_ms(0), waits_ms(4_000));
    assert!((4_000..8_000).contains(&at_once_ms), "{at_once_ms}");
    assert!(slept_ms >= 15_000, "other members may have led meanwhile: {slept_ms}");
}

const TOMBSTONE: &str = r#"{"leaderID":"s3lect-0","lastUpdated":"0001-01-01T00:00:00Z"}"#;

#[test]
fn s2_a_reservation_is_completed_where_store_skew_is_longer_than_the_lease() {
    for clock in [HostClock::Two, HostClock::One] {
        let settings = Settings { store_skew_ms: Some(20_000), clock, ..settings() };
        let (mut alone, lease) = reserved(&settings, TOMBSTONE);
        let (claim, _) = alone.until_written("\"1\"", &text(&lease));
        assert!(claim.term <= Some(alone.store_ms() + 999), "{claim:?} at {}", alone.store_ms());
        alone.written("\"2\"");
        assert!(alone.leads(), "{clock:?}");
    }
}

#[test]
fn s7_s12_a_stop_releases_a_reservation_and_leaves_one_that_keeps_a_term_to_run_out() {
    let damaged = format!(r#"{{"leaderID":"x","leaseMs":1e19,"term":{}}}"#, AT_MS - 60_000);
    let [resign, stop, park] =
        [Input::Resign, Input::Stop { park: false }, Input::Stop { park: true }];
    for (body, input) in [
        (TOMBSTONE, &resign),
        (TOMBSTONE, &stop),
        (TOMBSTONE, &park),
        (&damaged, &stop),
        (&damaged, &park),
    ] {
        for landed in [true, false] {
            let mut alone = Alone::new(&settings());
            let (lease, _) = alone.until_written("\"0\"", body);
            assert!(lease.in_grace(), "{lease:?}");
            if landed {
                alone.written("\"1\"");
            }
            alone.tell(input.clone());
            if !landed {
                alone.silence();
            }
            let tombstone = loop {
                match alone.step() {
                    Step::Read { .. } => alone.found("\"1\"", &text(&lease)),
                    Step::Renew { lease, held, .. } if held.0 == "\"1\"" => break Some(*lease),
                    Step::Finished => break None,
                    other => panic!("{other:?}"),
                }
            };
            // Whoever comes next would wait for nothing.
            assert_eq!(tombstone.is_none(), lease.term.is_some(), "{input:?} {body}");
            if let Some(tombstone) = tombstone {
                assert!(tombstone.released() && tombstone.sequence > lease.sequence);
                assert!(!tombstone.parked, "nobody has led with it");
                alone.written("\"2\"");
                alone.election.poll(alone.now());
            }
            let given_up = alone.events().into_iter().filter(|event| *event == Event::GivenUp);
            assert_eq!(given_up.count(), 1, "{input:?}, landed {landed}");
        }
    }
}

#[test]
fn the_time_in_a_record_that_follows_a_caches_old_answer_is_not_of_that_time() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    let released = TOMBSTONE.replace('}', r#","term":1795244200000}"#);
    alone.answer_with(found("\"0\"", &released), |alone| {
        let date_ms = Some(alone.store_ms() - 60_000);
        Facts { date_ms, relayed: true, cached: true, ..Facts::default() }
    });
    let (lease, _) = alone.claims();
    let Stamp::At(at_ms) = lease.last_updated else { panic!("{lease:?}") };
    let behind_ms = alone.store_ms() as i64 - at_ms;
    assert!(behind_ms <= 0, "members of S3lect take it {behind_ms} ms early");
}

fn told(alone: &Alone) -> Option<String> {
    alone.election.problem().map(ToString::to_string)
}

fn theirs(name: &str, updated: &str) -> String {
    format!(r#"{{"leaderID":"{name}","leaderAddr":"","lastUpdated":"{updated}"}}"#)
}

#[test]
fn a_member_of_another_make_with_the_own_name_is_told_of_until_the_own_record_is_left_alone() {
    let (living, left) = ("2026-11-21T06:58:12Z", "0001-01-01T00:00:00Z");
    let says = |alone: &Alone| told(alone).is_some_and(|text| text.contains("other software"));
    for (name, updated, warns) in
        [("ours", living, true), ("theirs", living, false), ("ours", left, false)]
    {
        let mut alone = Alone::new(&settings());
        alone.reads();
        alone.found("\"0\"", &theirs(name, updated));
        assert_eq!(says(&alone), warns, "{name} {updated}: {:?}", told(&alone));
    }
    let (mut alone, _) = reserved(&settings(), &theirs("theirs", left));
    alone.until_written("\"1\"", "");
    alone.written("\"2\"");
    assert_eq!(told(&alone), None);
    alone.renews();
    alone.answer(Outcome::Refused);
    alone.reads();
    alone.found("\"3\"", &theirs("ours", living));
    alone.events();
    assert!(says(&alone) && !alone.leads(), "{:?}", told(&alone));
    alone.until_written("\"3\"", &theirs("ours", living));
    alone.written("\"4\"");
    assert!(says(&alone), "{:?}", told(&alone));
    for renewal in 5..16 {
        alone.renews();
        alone.written(&format!("\"{renewal}\""));
    }
    assert_eq!(told(&alone), None);
}

/// Shows these records, each at the next read, and gives what is said after each.
fn said(alone: &mut Alone, records: &[String]) -> Vec<Option<String>> {
    let mut said = Vec::new();
    for record in records {
        alone.reads();
        alone.found(&format!("\"{}\"", alone.ms), record);
        said.push(told(alone));
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
