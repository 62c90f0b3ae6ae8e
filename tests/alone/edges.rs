//! Edges that no schedule meets: each was missed when the code was changed one place at a time.

use edgelect::Settings;
use edgelect::election::{Event, Input, LostReason, Problem, Step};
use edgelect::lease::{Lease, MAX_TERM, OperatorRequest, Stamp};
use edgelect::store::{Facts, Outcome};

use crate::alone::told::{AT_MS, Alone, found, matching, record, settings, text, tombstone};

#[test]
fn s2_over_the_highest_number_there_is_no_next_term() {
    let last = tombstone(1).replace("\"term\":5", &format!("\"term\":{MAX_TERM}"));
    let mut alone = Alone::new(&settings());
    for _ in 0..5 {
        alone.reads();
        alone.found("\"t\"", &last);
    }
    assert_eq!(alone.election.problem(), Some(&Problem::TermTooHigh));
}

/// Only what heals unusable bytes lasts as long as the grace.
#[test]
fn s7_a_reservation_over_a_release_lasts_no_longer_than_a_lease() {
    let mut alone = Alone::new(&Settings { max_lease_ms: Some(3_600_000), ..settings() });
    let (reserved, _) = alone.until_written("\"t\"", &tombstone(1).replace("\"term\":5,", ""));
    assert!(reserved.in_grace(), "{reserved:?}");
    assert_eq!(reserved.lease_ms, Some(15_000));
}

#[test]
fn s12_who_waits_for_its_work_to_end_sleeps_until_its_lease_is_over() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.found("\"t\"", &tombstone(1));
    alone.claims();
    alone.written("\"c\"");
    assert!(alone.leads());
    alone.tell(Input::Resign);
    assert!(!alone.leads());
    let began_ms = alone.ms;
    match alone.election.poll(alone.now()) {
        Step::Wait { until_ms } => assert!(until_ms >= began_ms + 10_000, "{until_ms}"),
        other => panic!("{other:?}"),
    }
}

/// A member that leads, and its record.
fn leader() -> (Alone, Lease) {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.found("\"t\"", &tombstone(1));
    let (lease, _) = alone.claims();
    alone.written("\"c\"");
    assert!(alone.leads());
    (alone, lease)
}

#[test]
fn s12_who_has_resigned_and_is_then_stopped_parks_nothing() {
    for resigns in [true, false] {
        let (mut alone, _) = leader();
        if resigns {
            alone.tell(Input::Resign);
        }
        alone.tell(Input::Stop { park: true });
        alone.events();
        let (last, _) = alone.renews();
        assert_eq!((last.parked, last.released()), (!resigns, resigns));
    }
}

/// The request was written over the record, and read only once the term was over.
#[test]
fn a_request_to_step_down_that_is_read_late_leaves_the_next_term_to_others() {
    let claimed_after_ms = |asked: bool| {
        let (mut alone, mut lease) = leader();
        if asked {
            let json = format!(
                r#"{{"ask":"stepDown","id":"1","term":{},"session":"session"}}"#,
                lease.term.expect("a claim has one")
            );
            lease = OperatorRequest::read(&json).expect("it is a request").over(&lease);
        }
        while alone.leads() {
            alone.step();
            alone.timeout();
        }
        let lost_ms = alone.ms;
        alone.reads();
        alone.found("\"o\"", &text(&lease));
        let (written, _) = alone.until_written("\"o\"", &text(&lease));
        assert_eq!(written.released(), asked, "others need not wait for it");
        if asked {
            alone.written("\"r\"");
            alone.until_written("\"r\"", &text(&written));
        }
        alone.ms - lost_ms
    };
    let (by_itself_ms, asked_ms) = (claimed_after_ms(false), claimed_after_ms(true));
    assert!(by_itself_ms < 2_000, "{by_itself_ms}");
    assert!(asked_ms >= 15_000, "{asked_ms}");
}

/// One look says when the record was made, also where the answer to the write had a `Date`: that may be of another clock.
#[test]
fn s7_a_grace_is_waited_out_with_one_look() {
    for dated in [true, false] {
        let mut alone = Alone::new(&Settings { max_lease_ms: Some(60_000), ..settings() });
        alone.dated = dated;
        let reserved = alone.makes();
        (alone.dated, alone.modified_ms) = (true, Some(alone.store_ms()));
        let mut looks_ms = Vec::new();
        while let Step::Read { .. } = alone.step() {
            looks_ms.push(alone.ms);
            alone.found("\"r\"", &text(&reserved));
        }
        assert!((60_000..66_000).contains(&alone.ms), "claimed at {} ms", alone.ms);
        let early = looks_ms.iter().filter(|ms| **ms <= 6_000).count();
        assert!(looks_ms.len() <= 2 && early == 1, "{dated}: {looks_ms:?}");
    }
}

/// It was deleted, and a held-up copy of the creation brought it back: from a cache, with the times of before, or soon enough that
/// the store's clocks may differ by as much.
#[test]
fn s7_the_grace_of_a_creation_that_came_back_counts_from_what_is_written_over_it() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.answer(Outcome::Missing);
    let (made, _) = alone.claims();
    alone.modified_ms = Some(alone.store_ms());
    alone.written("\"c\"");
    let (reserved, _) = alone.claims();
    assert_eq!(reserved.lease_ms, Some(15_000));
    alone.answer(Outcome::Refused);
    alone.ms += 10_000;
    alone.until_written("\"c\"", &text(&made));
    alone.timeout();
    let (again, seen) = alone.claims();
    assert_eq!((seen, again.reserved), (matching("\"c\""), true));
    alone.written("\"r\"");
    let reserved_ms = alone.ms;
    let (claim, seen) = alone.until_written("\"r\"", &text(&again));
    let waited_ms = alone.ms - reserved_ms;
    assert_eq!((seen, claim.in_grace()), (matching("\"r\""), false));
    assert!((15_000..16_000).contains(&waited_ms), "claimed after {waited_ms} ms");
}

/// It may be a held-up copy of one that a leader's record has replaced since, and that was deleted.
#[test]
fn s7_what_an_init_has_made_is_claimed_at_once_only_where_its_second_write_says_so() {
    let made = r#"{"leaderID":"init","lastUpdated":"0001-01-01T00:00:00Z","term":5,"session":"i","sequence":1,"leaseMs":15000}"#;
    let confirmed =
        made.replace("\"sequence\":1", "\"sequence\":2,\"acquired\":\"1970-01-01T00:00:00Z\"");
    let mut alone = Alone::new(&settings());
    let (claim, _) = alone.until_written("\"i\"", &confirmed);
    assert_eq!((alone.ms, claim.in_grace()), (10, false));
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.found("\"i\"", made);
    let reserved = alone.reserves("\"i\"");
    assert_eq!(reserved.lease_ms, Some(15_000));
    let reserved_ms = alone.ms;
    let (claim, _) = alone.until_written("\"r\"", &text(&reserved));
    assert!(!claim.in_grace() && alone.ms - reserved_ms >= 15_000, "{} ms", alone.ms);
}

/// Its member is gone, and nobody knows how often it was made.
#[test]
fn s7_somebody_elses_creation_is_waited_for_and_then_what_was_written_over_it() {
    let mut maker = Alone::new(&settings());
    maker.reads();
    maker.answer(Outcome::Missing);
    let (made, _) = maker.claims();
    let (session, last_updated) = (Some("theirs".to_owned()), Stamp::At(AT_MS as i64 - 60_000));
    let theirs = text(&Lease { session, last_updated, ..made });
    for (modified_ms, waits_ms) in [(None, 15_000..21_000), (Some(AT_MS - 60_000), 0..100)] {
        let mut alone = Alone { modified_ms, ..Alone::new(&settings()) };
        let (reserved, _) = alone.until_written("\"c\"", &theirs);
        assert!(waits_ms.contains(&alone.ms), "{modified_ms:?}: after {} ms", alone.ms);
        assert!(reserved.reserved && reserved.in_grace(), "{reserved:?}");
        alone.modified_ms = modified_ms.map(|_| alone.store_ms());
        alone.written("\"r\"");
        let reserved_ms = alone.ms;
        let (claim, _) = alone.until_written("\"r\"", &text(&reserved));
        let waited_ms = alone.ms - reserved_ms;
        assert!(!claim.in_grace() && claim.term > reserved.term, "{claim:?}");
        assert!((15_000..16_000).contains(&waited_ms), "claimed after {waited_ms} ms");
    }
}

/// A read-back that nobody can read may be the renewal itself, cut short on the way; or somebody has put garbage there.
#[test]
fn s8_an_unreadable_read_back_is_read_once_more_before_it_ends_the_term() {
    for whole in [true, false] {
        let (mut alone, _) = leader();
        let (renewal, _) = alone.renews();
        alone.answer(Outcome::Refused);
        alone.reads();
        alone.found("\"d\"", "{\"leaderID\":");
        assert!(alone.leads());
        alone.reads();
        alone.found("\"d\"", &if whole { text(&renewal) } else { "{".to_owned() });
        let told = alone.events();
        let lost =
            |event: &Event| matches!(event, Event::Lost { reason: LostReason::Overtaken, .. });
        assert_eq!((alone.leads(), told.iter().any(lost)), (whole, !whole), "{told:?}");
    }
}

/// A member of another make that keeps what it does not know carries our session and the request on, and leads.
#[test]
fn s3_a_request_that_somebody_else_carries_on_releases_nothing_of_theirs() {
    for name in ["ours", "theirs"] {
        let (mut alone, lease) = leader();
        let term = lease.term.expect("a claim has one");
        while alone.leads() {
            alone.step();
            alone.timeout();
        }
        let json = format!(r#"{{"ask":"stepDown","id":"1","term":{term},"session":"session"}}"#);
        let asked = OperatorRequest::read(&json).expect("it is a request").over(&lease);
        let taken = Lease { leader_id: name.to_owned(), ..asked };
        alone.reads();
        alone.found("\"f\"", &text(&taken));
        let releases = matches!(alone.step(), Step::Renew { .. });
        assert_eq!(releases, name == "ours", "{name}");
    }
}

/// A store within the isolate answers before any timer can fire, and until one has the clock is held at it.
#[test]
fn s11_a_claim_over_a_store_that_takes_no_time_waits_for_the_clock_to_move() {
    let mut alone = Alone { takes_ms: 0, ..Alone::with_one_clock() };
    alone.held = true;
    alone.reads();
    alone.found("\"o\"", &tombstone(1));
    let (claimed, _) = alone.claims();
    alone.written("\"c\"");
    let landed_ms = alone.ms;
    assert_eq!(alone.election.poll(alone.now()), Step::Wait { until_ms: alone.now().mono_ms + 1 });
    alone.held = false;
    alone.reads();
    assert_eq!(alone.ms, landed_ms + 1);
    alone.found("\"c\"", &text(&claimed));
    let (again, over) = alone.claims();
    assert_eq!((over, again.term > claimed.term), (matching("\"c\""), true));
    alone.written("\"d\"");
    assert!(alone.leads());
}

/// Over epochs an age counts up to the last read that shows the present. One that left before a single clock stepped back
/// seems to have left after what is measured anew from there.
#[test]
fn s11_a_read_that_left_before_a_step_of_the_clock_proves_no_age_after_it() {
    let mut alone = Alone::with_one_clock();
    alone.election.condition_covers_version(false);
    let (stepped_ms, mut sequence) = (40_000, 0);
    while alone.ms < 60_000 {
        alone.reads();
        sequence += 1;
        alone.found(&format!("\"{sequence}\""), &record("other", sequence, ""));
    }
    alone.reads();
    alone.ms -= stepped_ms;
    let date = |alone: &Alone| Some((alone.store_ms() + stepped_ms) / 1_000 * 1_000);
    let body = found("\"last\"", &record("other", sequence + 1, ""));
    alone.answer_with(body.clone(), |alone| Facts { date_ms: date(alone), ..Facts::default() });
    while alone.ms < 90_000 {
        match alone.step() {
            Step::Read { .. } => alone.answer_with(body.clone(), |alone| Facts {
                date_ms: date(alone),
                relayed: true,
                ..Facts::default()
            }),
            step => panic!("at {} ms, over what is behind a cache: {step:?}", alone.ms),
        }
    }
}
