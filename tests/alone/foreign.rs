//! Records that say nothing of terms, on virtual time: as what they count, and how they are taken (S2, S4, S12).

use edgelect::config::HostClock;
use edgelect::election::{Event, Step};
use edgelect::lease::{Lease, Stamp};
use edgelect::store::{Condition, Facts, Outcome};
use edgelect::{Input, Settings};

use crate::alone::told::{AT_MS, Alone, found, matching, settings, text};

/// The reservation that it has just seen is waited for as if it were somebody else's lease.
fn waits_anew(alone: &mut Alone, version: &str, reservation: &Lease) {
    let seen_ms = alone.ms;
    alone.until_written(version, &text(reservation));
    let waited_ms = alone.ms - seen_ms;
    assert!(waited_ms >= 15_000, "claimed {waited_ms} ms after the read-back");
}

/// The reservation of what is there, which has landed.
fn reserved(settings: &Settings, body: &str) -> (Alone, Lease) {
    let mut alone = Alone::new(settings);
    let (lease, seen) = alone.until_written("\"0\"", body);
    assert_eq!(seen, matching("\"0\""));
    assert!(lease.in_grace(), "it grants nothing: {lease:?}");
    alone.written("\"1\"");
    (alone, lease)
}

const EXPIRED: &str = r#"{"leaderID":"s3lect-0","lastUpdated":"2026-11-21T06:50:00Z"}"#;
const TOMBSTONE: &str = r#"{"leaderID":"s3lect-0","lastUpdated":"0001-01-01T00:00:00Z"}"#;

#[test]
fn s2_a_token_over_an_old_record_without_a_term_is_storage_time_and_no_more() {
    for clock in [HostClock::Two, HostClock::One] {
        let mut alone = Alone::new(&Settings { clock, ..settings() });
        let (lease, _) = alone.until_written("\"0\"", EXPIRED);
        let term = lease.term.expect("it grants one");
        assert!(term <= alone.store_ms() + 999, "{} ms ahead", term - alone.store_ms());
        assert!(term >= alone.store_ms() / 1_000 * 1_000, "behind the last answer");
    }
}

#[test]
fn s2_a_deletion_right_after_a_token_over_a_foreign_record_does_not_bring_a_lower_one() {
    let settings =
        Settings { frequent_interval_ms: Some(500), leader_timeout_ms: Some(2_000), ..settings() };
    let mut first = Alone::new(&settings);
    first.ahead_ms = 2_000;
    let (lease, _) = first.until_written("\"0\"", EXPIRED);
    let before = lease.term.expect("it grants one");
    let mut second = Alone::new(&settings);
    second.ms = first.ms + 10;
    second.reads();
    second.answer(Outcome::Missing);
    let (lease, seen) = second.claims();
    assert_eq!(seen, Condition::Absent);
    second.written("\"1\"");
    let (lease, _) = second.until_written("\"1\"", &text(&lease));
    assert!(lease.term > Some(before), "{:?} after {before}", lease.term);
}

#[test]
fn s2_a_cached_date_that_stands_still_leaves_room_for_what_was_handed_out_before_it() {
    let mut alone = Alone::new(&settings());
    let facts = Facts { date_ms: Some(AT_MS), relayed: true, cached: true, ..Facts::default() };
    let (lease, _) = alone.until_written_with("\"0\"", EXPIRED, |_| facts);
    let term = lease.term.expect("it grants one");
    assert!(term > AT_MS + 4_000, "a member by a clock that is 2 s ahead handed out more");
    assert!(term <= alone.store_ms(), "and it is not ahead of storage time");
}

#[test]
fn s2_s4_what_may_be_put_again_is_taken_without_a_term_first() {
    let damaged = r#"{"leaderID":"","term":1900000000000}"#;
    for (body, term) in [("{}", None), ("\u{1}", None), (damaged, Some(1_900_000_000_000))] {
        let (mut alone, lease) = reserved(&settings(), body);
        assert!(alone.ms >= 15_000, "healed after the grace, not after {} ms", alone.ms);
        assert_eq!(lease.term, term, "the term that can be read is kept");
        let (claim, seen) = alone.until_written("\"1\"", &text(&lease));
        assert_eq!(seen, matching("\"1\""));
        assert!(claim.acquired.is_some() && claim.term > term.max(Some(AT_MS)), "{claim:?}");
        assert!(alone.ms <= 26_000, "there is no second grace: {} ms", alone.ms);
        alone.written("\"2\"");
        assert!(alone.leads(), "over {body:?}");
    }
}

#[test]
fn s2_s7_what_one_look_could_read_of_an_unusable_record_is_not_forgotten_by_a_better_one() {
    const TERM: u64 = 1_900_000_000_000_000;
    let whole = format!(r#"{{"leaderID":7,"term":{TERM},"leaseMs":60000}}"#);
    for bodies in [[whole.as_str(), "cut sh"], ["cut sh", whole.as_str()]] {
        let mut alone = Alone::new(&settings());
        for body in bodies {
            assert!(matches!(alone.step(), Step::Read { unless: None, .. }), "it may come back");
            alone.found("\"0\"", body);
        }
        let seen_ms = alone.ms;
        let (lease, _) = alone.until_written("\"0\"", bodies[1]);
        assert_eq!((lease.in_grace(), lease.term), (true, Some(TERM)));
        assert!(alone.ms - seen_ms > 50_000, "healed after {} ms", alone.ms - seen_ms);
    }
}

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
fn s12_nothing_of_a_round_leaves_after_the_session_has_given_up() {
    for absent in [true, false] {
        let mut alone = Alone::new(&settings());
        alone.step();
        match absent {
            true => alone.answer(Outcome::Missing),
            false => alone.found("\"0\"", TOMBSTONE),
        }
        let (lease, _) = alone.claims();
        assert!(lease.in_grace());
        alone.tell(Input::Resign);
        let sits_out_ms = alone.ms + 15_000;
        alone.silence();
        while alone.ms < sits_out_ms {
            match alone.step() {
                Step::Read { .. } if absent => alone.answer(Outcome::Missing),
                Step::Read { .. } => alone.found("\"0\"", TOMBSTONE),
                other => assert!(alone.ms >= sits_out_ms, "absent {absent}: {other:?}"),
            }
        }
        assert!(alone.events().contains(&Event::GivenUp), "absent {absent}");
    }
}

#[test]
fn s12_a_reservation_is_released_by_whoever_stops_before_it_grants_anything() {
    let inputs = [Input::Resign, Input::Stop { park: false }, Input::Stop { park: true }];
    for (landed, input) in inputs.iter().flat_map(|input| [(true, input), (false, input)]) {
        let mut alone = Alone::new(&settings());
        let (lease, _) = alone.until_written("\"0\"", TOMBSTONE);
        if landed {
            alone.written("\"1\"");
        }
        alone.tell(input.clone());
        if !landed {
            alone.silence();
        }
        let (tombstone, seen) = alone.until_written("\"1\"", &text(&lease));
        assert_eq!(seen, matching("\"1\""), "{input:?}, landed {landed}");
        assert!(tombstone.released() && tombstone.sequence > lease.sequence, "{tombstone:?}");
        assert!(!tombstone.parked, "nobody has led with it");
        alone.written("\"2\"");
        alone.election.poll(alone.now());
        let given_up = alone.events().into_iter().filter(|event| *event == Event::GivenUp);
        assert_eq!(given_up.count(), 1, "{input:?}, landed {landed}");
    }
}

#[test]
fn s7_a_reservation_that_keeps_a_term_is_left_to_run_out() {
    let damaged = format!(r#"{{"leaderID":"x","leaseMs":1e19,"term":{}}}"#, AT_MS - 60_000);
    for (landed, park) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut alone = Alone::new(&settings());
        let (lease, _) = alone.until_written("\"0\"", &damaged);
        assert_eq!((lease.in_grace(), lease.term), (true, Some(AT_MS - 60_000)));
        if landed {
            alone.written("\"1\"");
        }
        alone.tell(Input::Stop { park });
        if !landed {
            alone.silence();
            alone.reads();
            alone.found("\"1\"", &text(&lease));
        }
        // Whoever comes next would wait for nothing.
        assert_eq!(alone.step(), Step::Finished, "landed {landed}, parks {park}");
    }
}

#[test]
fn s7_a_reservation_on_bytes_that_were_seen_to_be_put_again_is_waited_for_like_them() {
    let mut alone = Alone::new(&settings());
    alone.modified_ms = Some(AT_MS - 60_000);
    let (first, _) = alone.until_written("\"0\"", "{}");
    alone.silence();
    for _ in 0..2 {
        alone.claims();
        alone.silence();
    }
    // Somebody else has healed and leads when a hand puts the same bytes again, and only then the first attempt lands.
    alone.reads();
    alone.modified_ms = Some(alone.store_ms() / 1_000 * 1_000);
    alone.found("\"0\"", "{}");
    alone.reads();
    alone.found("\"1\"", &text(&first));
    waits_anew(&mut alone, "\"1\"", &first);
}

#[test]
fn s7_a_reservation_that_lands_on_the_same_bytes_put_again_is_waited_for_like_them() {
    let settings = Settings { max_lease_ms: Some(30_000), ..settings() };
    let mut alone = Alone::new(&settings);
    let (first, _) = alone.until_written("\"0\"", "{}");
    alone.silence();
    alone.claims();
    alone.written("\"1\"");
    // Somebody else leads, renews, and is cut off. A hand puts the same bytes again, under the attempt that was held up.
    alone.step();
    let term = alone.store_ms();
    alone.found("\"2\"", &format!(
        r#"{{"leaderID":"c","lastUpdated":"2026-11-21T06:59:12Z","session":"c","sequence":2,"term":{term},
            "leaseMs":30000,"acquired":"2026-11-21T06:59:12Z"}}"#
    ));
    let renewed_ms = alone.ms;
    let mut another = Alone::new(&Settings { server_id: Some("b".to_owned()), ..settings });
    another.ms = alone.ms;
    for (member, who) in [(&mut alone, "its author"), (&mut another, "another member")] {
        member.step();
        member.found("\"3\"", &text(&first));
        member.until_written("\"3\"", &text(&first));
        let waited_ms = member.ms - renewed_ms;
        assert!(waited_ms >= 27_000, "{who} claims {waited_ms} ms after a lease of 30 s began");
    }
}

#[test]
fn s7_a_reservation_known_long_after_the_bytes_were_seen_is_waited_for_like_them() {
    for stops in [false, true] {
        let mut alone = Alone::new(&settings());
        let (first, _) = alone.until_written("\"0\"", "{}");
        let read_ms = alone.ms;
        // Others may heal, lead and be overwritten by the same bytes while this session hears nothing.
        loop {
            alone.ms += 1_500;
            alone.silence();
            if alone.ms - read_ms > 9_000 {
                break;
            }
            alone.step();
        }
        if stops {
            alone.tell(Input::Stop { park: false });
        }
        alone.reads();
        alone.found("\"1\"", &text(&first));
        match stops {
            // A tombstone would free what somebody may hold.
            true => assert_eq!(alone.step(), Step::Finished),
            false => waits_anew(&mut alone, "\"1\"", &first),
        }
    }
}

#[test]
fn s12_a_claim_over_a_reservation_whose_answer_is_late_is_looked_for_at_a_stop() {
    let settings =
        Settings { leader_timeout_ms: Some(60_000), request_timeout_ms: Some(6_000), ..settings() };
    let (mut alone, lease) = reserved(&settings, TOMBSTONE);
    let (claim, _) = alone.until_written("\"1\"", &text(&lease));
    alone.tell(Input::Stop { park: false });
    alone.ms += 5_990;
    alone.silence();
    let mut released = None;
    loop {
        match alone.step() {
            Step::Read { .. } => alone.found("\"2\"", &text(&claim)),
            Step::Renew { held, .. } if held.0 == "\"1\"" => alone.answer(Outcome::Refused),
            Step::Renew { lease, held, .. } => {
                assert_eq!(held.0, "\"2\"");
                alone.written("\"3\"");
                released = Some(lease.released());
            }
            Step::Finished => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(released, Some(true), "the claim had landed, and its lease runs for a minute");
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

/// What somebody is told who looks at the elector.
fn told(alone: &Alone) -> Option<String> {
    alone.election.problem().map(edgelect::election::Problem::to_string)
}

/// A record of a member of another make.
fn theirs(name: &str, updated: &str) -> String {
    format!(r#"{{"leaderID":"{name}","leaderAddr":"","lastUpdated":"{updated}"}}"#)
}

#[test]
fn a_member_of_another_make_with_the_own_name_is_told_of_at_the_start_and_later() {
    let (living, left) = ("2026-11-21T06:58:12Z", "0001-01-01T00:00:00Z");
    for (name, updated, warns) in
        [("ours", living, true), ("theirs", living, false), ("ours", left, false)]
    {
        let mut alone = Alone::new(&settings());
        alone.reads();
        alone.found("\"0\"", &theirs(name, updated));
        let text = told(&alone).unwrap_or_default();
        let said = text.contains("other software") && text.contains("serverId");
        assert_eq!(said, warns, "{name} {updated}: {text:?}");
    }
    let (mut alone, _) = reserved(&settings(), &theirs("theirs", left));
    let (lease, _) = alone.until_written("\"1\"", "");
    alone.written("\"2\"");
    assert_eq!((alone.events().last().is_some(), told(&alone)), (true, None));
    let (_, held) = alone.until_written("\"2\"", &text(&lease));
    assert_eq!(held, matching("\"2\""));
    alone.answer(Outcome::Refused);
    alone.reads();
    alone.found("\"3\"", &theirs("ours", living));
    alone.tell(Input::WorkEnded { term: lease.term.expect("a claim has a term") });
    let text = told(&alone).expect("it is told");
    assert!(text.contains("other software"), "{text}");
    assert!(!alone.leads(), "and who may lead is the same");
}

#[test]
fn what_was_told_of_a_name_is_over_once_the_own_record_was_left_alone_for_long() {
    let mut alone = Alone::new(&settings());
    let (lease, _) = alone.until_written("\"0\"", &theirs("ours", "2026-11-21T06:58:12Z"));
    alone.written("\"1\"");
    assert!(told(&alone).is_some(), "{lease:?}");
    for renewal in 2..12 {
        alone.until_written("\"1\"", "");
        alone.written(&format!("\"{renewal}\""));
    }
    assert_eq!(told(&alone), None);
}
