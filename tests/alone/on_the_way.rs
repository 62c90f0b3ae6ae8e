//! When an election asks, and what it learns, where clocks step, a peer is behind the store, or something on the way to the
//! store refuses, repeats or misleads. That a tight follower is in step with each renewal otherwise is held by `scale.rs`.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Input, PeerAnswer, Problem, Standing, Step};
use edgelect::lease::Lease;
use edgelect::peer::{Desk, Question, Reply};
use edgelect::proof::Secrets;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Outcome, Version};
use edgelect::{Follow, Settings};

use crate::alone::told::{
    AT_MS, Alone, LIVING, busy, config, denied, found, record, settings, text, tombstone,
};

const INTERVAL_MS: u64 = 5_000;

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
        alone.found(&format!("\"v{index}\""), &record("other", index, ""));
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
            alone.found(&format!("\"v{index}\""), &record("other", index, &more));
        }
        assert!((2..=8).contains(&reads), "{park_at}: {reads} reads");
    }
}

#[test]
fn c23_metadata_that_changes_under_one_version_is_no_renewal() {
    let waits_ms = |changes_after_ms: u64| {
        let mut alone = Alone::new(&settings());
        alone.modified_ms = Some(AT_MS);
        loop {
            match alone.step() {
                Step::Read { .. } => alone.found("\"v\"", LIVING),
                Step::Claim { .. } => return alone.ms,
                other => panic!("{other:?}"),
            }
            if alone.ms >= changes_after_ms {
                alone.modified_ms = Some(AT_MS + changes_after_ms);
            }
        }
    };
    assert_eq!(waits_ms(5_000), waits_ms(u64::MAX));
}

/// How many requests leave in five minutes.
fn requests(read: impl Fn(u64) -> Outcome, write: &Outcome) -> u64 {
    let (mut alone, mut sent) = (Alone::new(&settings()), 0);
    loop {
        let step = alone.step();
        if alone.ms >= 300_000 {
            return sent;
        }
        let reads = matches!(step, Step::Read { .. });
        alone.answer(if reads { read(sent) } else { write.clone() });
        sent += 1;
    }
}

#[test]
fn writes_that_are_all_refused_are_not_repeated_without_pause() {
    let released = |number| found(&format!("\"v{number}\""), &tombstone(number));
    let failed = Fault { status: Some(500), ..Fault::new(FaultKind::Unavailable, "failed") };
    for write in [Outcome::Refused, denied(), Answer::unknown(failed).outcome] {
        for (shown, sent) in [
            ("one version", requests(|_| released(1), &write)),
            ("versions in turn", requests(|sent| released(sent % 3), &write)),
            ("nothing", requests(|_| Outcome::Missing, &write)),
        ] {
            assert!(sent < 100, "{shown}, {write:?}: {sent} requests in 60 intervals");
        }
    }
}

/// What is under way may land; nothing more of it leaves.
#[test]
fn a_claim_of_who_is_told_not_to_compete_is_not_sent_again() {
    let mut alone = Alone::new(&settings());
    alone.reads();
    alone.answer(Outcome::Missing);
    alone.claims();
    alone.tell(Input::Compete(false));
    alone.timeout();
    alone.reads();
    alone.answer(Outcome::Missing);
    assert!(matches!(alone.step(), Step::Read { .. }), "it only looks");
}

#[test]
fn a_step_back_while_a_read_is_under_way_does_not_put_off_the_next_look() {
    for step_ms in [1_000, 60_000, 3_600_000] {
        let mut alone = Alone::with_one_clock();
        (alone.ms, alone.dated) = (10_000_000, false);
        alone.reads();
        alone.found("\"v1\"", LIVING);
        alone.step();
        alone.ms -= step_ms;
        alone.found("\"v2\"", LIVING);
        let now_ms = alone.ms;
        alone.step();
        let pause_ms = alone.ms - now_ms;
        assert!(pause_ms <= 15_100, "a step of {step_ms} ms: {pause_ms} ms");
    }
}

/// A follower of a leader that nobody renews for claims in the end, whatever the first answer said of time.
#[test]
fn c38_what_somebody_on_the_way_said_once_stops_nobody_for_ever() {
    let dated = Facts { date_ms: Some(AT_MS), ..Facts::default() };
    let dateless = |relayed: bool| Facts { relayed, cached: relayed, ..Facts::default() };
    for (name, outcome, facts, most_ms) in [
        ("a cache without a date", found("\"v\"", LIVING), dateless(true), 40_000),
        ("a dated refusal", denied(), dated, 60_000),
    ] {
        let mut alone = Alone::with_one_clock();
        alone.reads();
        alone.answer_with(outcome, |_| facts);
        alone.until_written_with("\"v\"", LIVING, |_| dateless(false));
        assert!((17_000..most_ms).contains(&alone.ms), "{name}: after {} ms", alone.ms);
    }
}

#[test]
fn a_store_that_shows_nothing_and_refuses_each_creation_is_told_for_as_long_as_it_does() {
    let mut alone = Alone::new(&settings());
    let told = |alone: &Alone| alone.election.problem() == Some(&Problem::Contradicted);
    let mut answers = Vec::new();
    for _ in 0..40 {
        let outcome = match alone.step() {
            Step::Read { .. } => Outcome::Missing,
            Step::Claim { .. } => Outcome::Refused,
            other => panic!("{other:?}"),
        };
        alone.answer(outcome);
        answers.push(told(&alone));
    }
    let first = answers.iter().position(|told| *told).expect("it is told");
    assert!(answers[first..].iter().all(|told| *told), "{answers:?}");
}

/// The leader is dead, and the first answers name times that are far too late. On the way of the others is no such clock.
#[test]
fn c38_wrong_dates_of_some_answers_stop_no_single_clock_for_ever() {
    for late in [&[3_600_000][..], &[86_400_000], &[250_000_000_000_000], &[86_400_000, 3_600_000]]
    {
        let mut alone = Alone::with_one_clock();
        for (number, late_ms) in late.iter().enumerate() {
            alone.reads();
            let outcome = if number == 0 { found("\"v\"", LIVING) } else { Outcome::Unchanged };
            alone.answer_with(outcome, |alone| Facts {
                date_ms: alone.facts().date_ms.map(|ms| ms + late_ms),
                ..Facts::default()
            });
        }
        let (claim, _) = alone.until_written("\"v\"", LIVING);
        assert!((17_000..70_000).contains(&alone.ms), "{late:?}: after {} ms", alone.ms);
        let early_ms = claim.term.unwrap().saturating_sub(alone.store_ms());
        assert!(early_ms < 4_000, "{late:?}: a token of {early_ms} ms from now");
    }
}

/// An old answer that nothing marks as a cache's stands still, or jumps. The step forward of the own clock is no time that passed.
#[test]
fn s11_an_old_date_does_not_deny_a_right_one() {
    for old in [&[0, 0][..], &[0; 30], &[0, 0, 0, 0, 4_000], &[0, 1_000, 30_000, 31_000]] {
        let mut alone = Alone::with_one_clock();
        alone.reads();
        alone.found("\"v\"", LIVING);
        for later_ms in old {
            alone.reads();
            let date_ms = Some(AT_MS - 3_600_000 + later_ms);
            let long_ago = Facts { date_ms, ..Facts::default() };
            alone.answer_with(Outcome::Unchanged, |_| long_ago);
        }
        alone.from_ms += 20_000;
        alone.until_written("\"v\"", LIVING);
        assert!(alone.ms >= 17_000, "after {old:?}: a claim at {} ms", alone.ms);
    }
}

#[test]
fn s7_a_wrong_date_of_one_answer_makes_no_grace_endless() {
    let mut alone = Alone::with_one_clock();
    alone.reads();
    alone.answer(Outcome::Missing);
    alone.claims();
    alone.written("\"c\"");
    let (made, _) = alone.claims();
    let version = Some(Version("\"r\"".to_owned()));
    let late = Facts { date_ms: Some(AT_MS + 3_600_000), ..Facts::default() };
    alone.answer_with(Outcome::Written { version }, |_| late);
    alone.until_written("\"r\"", &text(&made));
    assert!((30_000..90_000).contains(&alone.ms), "after {} ms", alone.ms);
}

/// Each event of a Worker has a clock of its own, which stands still at its last I/O.
#[test]
fn a_look_from_an_event_whose_clock_is_behind_ends_no_term() {
    let mut alone = Alone::with_one_clock();
    alone.until_written("\"v1\"", &tombstone(1));
    alone.written("\"v2\"");
    let behind = Now { mono_ms: alone.now().mono_ms - 1, ..alone.now() };
    assert!(matches!(alone.election.standing(behind), Standing::Unproven(_)));
    assert!(alone.election.authority(behind).is_none());
    assert!(matches!(alone.election.standing(alone.now()), Standing::Leads(_)));
    let early = Now { early_timers: 1, ..alone.now() };
    assert_eq!(alone.election.standing(early), Standing::Over);
    assert_eq!(alone.election.standing(alone.now()), Standing::Over);
}

/// A proxy that makes an ETag of its own for each answer: the watch begins anew with each look, and somebody has to say so.
#[test]
fn a_write_that_is_shown_under_another_version_each_time_is_told_and_never_claimed() {
    let mut alone = Alone::new(&settings());
    alone.dated = false;
    let mut told = 0;
    for look in 0..20 {
        alone.reads();
        alone.found(&format!("\"v{look}\""), LIVING);
        told += u32::from(alone.election.problem() == Some(&Problem::MovingVersions));
    }
    assert_eq!(told, 17, "from the third move on");
    alone.reads();
    alone.found("\"renewed\"", &record("other", 2, ""));
    assert_eq!(alone.election.problem(), None, "a renewal is what a new version is for");
}

#[test]
fn c66_a_leader_of_the_past_that_says_it_lives_saves_no_read() {
    let addressed = record("other", 1, ",\"leaderAddr\":\"other:80\"");
    let alive = |leader_id: &str, term| {
        let leader_id = leader_id.to_owned();
        Input::Peer(PeerAnswer::Alive { leader_id, term, sequence: 9, own: true })
    };
    let of_record = ("other", Some(5));
    for (name, term) in [of_record, ("before", Some(5)), ("other", Some(4)), ("other", None)] {
        let mut alone = Alone::new(&Settings { peer_mode: Some(true), ..settings() });
        alone.reads();
        alone.found("\"v\"", &addressed);
        assert!(matches!(alone.step(), Step::AskPeer { term: Some(5), .. }));
        let asked_ms = alone.ms;
        alone.tell(alive(name, term));
        let read = matches!(alone.step(), Step::Read { .. });
        assert_eq!(read, (name, term) != of_record, "{name}, {term:?}");
        assert!(!read || alone.ms <= asked_ms + 1, "{name}, {term:?}: at {} ms", alone.ms);
    }
}

/// Its claims of a released lease are answered like that so often; its next one is to be answered.
fn after_busy_claims(times: usize) -> (Alone, Lease) {
    let mut alone = Alone::new(&settings());
    for _ in 0..times {
        alone.until_written("\"v1\"", &tombstone(1));
        alone.answer(busy());
    }
    let (lease, _) = alone.until_written("\"v1\"", &tombstone(1));
    (alone, lease)
}

#[test]
fn s8_a_claim_that_landed_after_many_that_did_not_is_seen_before_its_fence() {
    let (mut alone, lease) = after_busy_claims(9);
    alone.answer(busy());
    alone.reads();
    alone.shows("\"v2\"", &lease);
    assert!(alone.leads(), "{} ms", alone.ms);
}

/// What was so before the term says nothing of the store as it is now.
#[test]
fn a_store_that_is_busy_once_after_a_term_costs_no_long_pause() {
    let (mut alone, lease) = after_busy_claims(10);
    alone.written("\"v2\"");
    while alone.leads() {
        alone.step();
        alone.timeout();
    }
    let claims = |alone: &mut Alone| loop {
        match alone.step() {
            Step::Read { .. } => alone.shows("\"v2\"", &lease),
            Step::Claim { .. } => return alone.ms,
            other => panic!("{other:?}"),
        }
    };
    claims(&mut alone);
    alone.answer(busy());
    let answered_ms = alone.ms;
    assert!(claims(&mut alone) - answered_ms < 1_000);
}

/// It would answer with 404, and only after the wait.
#[test]
fn a_follower_holds_no_question_that_nobody_has_proven() {
    let mut alone = Alone::new(&Settings { peer_mode: Some(true), ..settings() });
    alone.reads();
    alone.found("\"v\"", &record("other", 1, ",\"leaderAddr\":\"other:80\""));
    assert!(matches!(alone.step(), Step::AskPeer { .. }));
    let (leader_id, term) = ("other".to_owned(), Some(5));
    alone.tell(Input::Peer(PeerAnswer::Alive { leader_id, term, sequence: 9, own: true }));
    let now = alone.now();
    assert_eq!(alone.election.steady_term(now), term);
    let question = Question::read("term=5&wait=10000", &Secrets::default()).0;
    for (proven, holds) in [(true, true), (false, false)] {
        let reply = Desk::default().ask(&alone.election, now, (&question, proven), 0);
        assert_eq!(matches!(reply, Reply::Hold { .. }), holds, "{reply:?}");
    }
}

/// Where something stands between, a refusal need not be about the condition.
#[test]
fn s12_a_release_that_was_refused_over_the_version_that_stands_is_tried_again() {
    let mut alone = Alone::new(&settings());
    let (lease, _) = alone.until_written("\"v1\"", &tombstone(1));
    alone.written("\"v2\"");
    alone.tell(Input::Stop { park: false });
    alone.events();
    for attempt in 1..=3 {
        let Step::Renew { held, .. } = alone.step() else { panic!("{attempt}") };
        assert_eq!(held.0, "\"v2\"");
        alone.answer(Outcome::Refused);
        alone.reads();
        alone.shows("\"v2\"", &lease);
    }
    assert!(matches!(alone.step(), Step::Finished), "no more than three");
}

#[test]
fn s12_who_resigns_after_a_park_that_came_to_nothing_releases() {
    for answer in [Outcome::Refused, busy()] {
        let mut alone = Alone::new(&settings());
        let (lease, _) = alone.until_written("\"v1\"", &tombstone(1));
        alone.written("\"v2\"");
        alone.tell(Input::Stop { park: true });
        alone.events();
        assert!(alone.renews().0.parked);
        alone.answer(answer.clone());
        alone.tell(Input::Resign);
        if answer == Outcome::Refused {
            alone.reads();
            alone.shows("\"v2\"", &lease);
        }
        let (closed, _) = alone.renews();
        assert_eq!((closed.parked, closed.released()), (false, true), "{answer:?}");
    }
}
