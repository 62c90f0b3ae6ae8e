//! S3lect: its records as Go writes and reads them, and its members beside ours in one group.

#[path = "s3lect/fleet.rs"]
mod fleet;
#[path = "s3lect/member.rs"]
mod member;

use std::fs;

use edgelect::config::{PeerSettings, PeerTrust};
use edgelect::election::{PeerAnswer, Step};
use edgelect::json::Object;
use edgelect::lease::History;
use edgelect::peer;
use edgelect::peer::{Heard, Question};
use serde_json::Value;
use worlds::sim::go;

use self::fleet::{Course, Fleet, Place, fleet};
use self::member::Rules;
use crate::alone::told::{self, Alone, text};
use crate::driver::prelude::*;
use crate::mixed::world::{Group, played};

const GOLDEN: &str = "tests/golden/s3lect";
/// 2026-11-21T06:58:12Z.
const AT_MS: i64 = 1_795_244_292_000;

fn golden(name: &str) -> Vec<u8> {
    fs::read(crate::in_root(&format!("{GOLDEN}/{name}.json")))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn go_record(id: &str, addr: &str, last_updated: go::Time) -> go::Record {
    go::Record { leader_id: id.to_owned(), leader_addr: addr.to_owned(), last_updated }
}

/// What `main.go` beside the golden files marshals.
fn marshalled() -> Vec<(&'static str, go::Record)> {
    let time = |ms, nanoseconds, offset_minutes| go::Time {
        unix_ms: AT_MS - offset_minutes * 60_000 + ms,
        nanoseconds,
        offset_minutes,
    };
    let usual = |last_updated| go_record("server-001", "10.0.1.42:8443", last_updated);
    let zero = go::Time::ZERO;
    let odd = "<a>&\"b\"\\/\u{2028}\u{2029}\u{8}\t\u{1f}\u{7f}ü😀";
    let last = go::Time { nanoseconds: 999_999, ..go::Time::at(edgelect::calendar::YEAR_9999_MS) };
    vec![
        ("seconds", usual(time(0, 0, 0))),
        ("nanoseconds", usual(time(123, 456_789, 0))),
        ("trimmed", usual(time(120, 0, 0))),
        ("one-nanosecond", usual(time(0, 1, 0))),
        ("east", usual(time(345, 678_000, 120))),
        ("west", usual(time(345, 0, -570))),
        ("without-address", go_record("server-001", "", time(345, 0, 0))),
        ("released", usual(zero)),
        ("released-bare", go_record("server-001", "", zero)),
        ("after-zero", usual(go::Time { nanoseconds: 1, ..zero })),
        ("escaped", go_record(odd, "10.0.1.42:8443", time(0, 0, 0))),
        ("broken-text", go_record("server-\u{fffd}", "10.0.1.42:8443", time(0, 0, 0))),
        ("last-year", usual(last)),
    ]
}

#[test]
fn c36_records_as_go_writes_them_are_read() {
    for (name, record) in marshalled().into_iter().chain([("indented", marshalled()[4].1.clone())])
    {
        let Reading::Lease(lease) = lease::read(&golden(name)) else { panic!("{name}") };
        let stamp = match record.last_updated.is_zero() {
            true => Stamp::Released,
            false => Stamp::At(record.last_updated.unix_ms),
        };
        let who = (&record.leader_id, &record.leader_addr);
        assert_eq!((&lease.leader_id, &lease.leader_addr), who);
        assert_eq!((lease.last_updated, lease.released()), (stamp, name.starts_with("released")));
        assert_eq!((lease.term, lease.lease_ms, lease.slot), (None, None, None), "{name}");
        assert!(lease.extra.iter().next().is_none() && !lease.in_grace(), "{name}");
    }
}

#[test]
fn the_stand_in_writes_and_reads_as_go_does() {
    for (name, record) in marshalled() {
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        assert_eq!(text(&go::marshal(&record)), text(&golden(name)), "{name}");
        let read = go::unmarshal(&golden(name)).expect(name);
        let updated = (read.last_updated.unix_ms, read.last_updated.is_zero());
        let expected = (record.last_updated.unix_ms, record.last_updated.is_zero());
        assert_eq!((read.leader_id, updated), (record.leader_id, expected), "{name}");
    }
    // Documents on whose names Go and a reader of exact names disagree.
    for name in ["other-case", "folded-name"] {
        let read = go::unmarshal(&golden(&format!("documents/{name}"))).expect(name);
        assert_eq!(Some(read), go::unmarshal(&golden(&format!("read/{name}"))), "{name}");
    }
}

/// Records of ours, by the name of their golden files.
fn ours() -> Vec<(&'static str, Lease)> {
    let usual = Lease {
        leader_addr: "10.0.1.42:8443".to_owned(),
        term: Some(1_795_244_292_345),
        session: Some("0d9c5e52".to_owned()),
        sequence: 17,
        lease_ms: Some(15_000),
        acquired: Some(AT_MS),
        transitions: 3,
        slot: Some(1_795_244_280_000),
        slot_done: Some(true),
        slot_result: Some("ok".to_owned()),
        slot_took_ms: Some(12),
        slot_failures: Some(1),
        ..Lease::bare("server-001", Stamp::At(AT_MS + 345))
    };
    let odd = "<a>&\"b\"\\/\u{2028}\u{2029}\u{8}\t\u{1f}\u{7f}ü😀\u{202e}";
    let mut kept = Object::new();
    kept.set("note", r#"{"deep":[1,2]}"#);
    let mut disguised = Object::new();
    disguised.set("LEADERID", r#""someone""#);
    disguised.set("la\u{17f}tUpdated", r#""0001-01-01T00:00:00Z""#);
    let before = Lease { slot_term: usual.term, ..usual.clone() };
    let ends = |before: &Lease| History::after(before, Some(AT_MS.unsigned_abs() + 2_000));
    let past =
        (0..4).fold(History::default(), |history, _| ends(&Lease { history, ..before.clone() }));
    assert_eq!(past.entries().len(), 8);
    vec![
        ("usual", usual.clone()),
        ("released", Lease { last_updated: Stamp::Released, ..usual.clone() }),
        ("bare", Lease { leader_addr: String::new(), last_updated: Stamp::At(0), ..usual.clone() }),
        ("first", Lease { last_updated: Stamp::At(i64::MIN), ..usual.clone() }),
        ("last", Lease { last_updated: Stamp::At(i64::MAX), ..usual.clone() }),
        ("escaped", Lease { leader_id: odd.to_owned(), ..usual.clone() }),
        ("extra", Lease { extra: kept, ..usual.clone() }),
        ("disguised", Lease { extra: disguised, ..usual.clone() }),
        ("history", Lease { slot_term: usual.term, history: past, ..usual }),
    ]
}

#[test]
fn c36_go_reads_in_our_records_what_they_say() {
    if std::env::var_os("EDGELECT_WRITE_GOLDEN").is_some() {
        for (name, lease) in ours() {
            let path = crate::in_root(&format!("{GOLDEN}/documents/{name}.json"));
            fs::write(path, lease::write(&lease)).expect("the folder is there");
        }
        return;
    }
    for (name, lease) in ours() {
        let (written, shown) = (lease::write(&lease), golden(&format!("documents/{name}")));
        // What Go was shown, but for the order of the names and for which characters are escaped.
        let json = |text: &[u8]| serde_json::from_slice::<Value>(text).expect(name);
        assert_eq!(json(&written), json(&shown), "{name}");
        let read = go::unmarshal(&golden(&format!("read/{name}"))).expect(name);
        assert_eq!((&read.leader_id, &read.leader_addr), (&lease.leader_id, &lease.leader_addr));
        assert_eq!(read.last_updated.is_zero(), lease.released(), "{name}");
        if let ("usual" | "escaped" | "extra" | "disguised" | "history", Stamp::At(ms)) =
            (name, lease.last_updated)
        {
            assert_eq!(read.last_updated.unix_ms, ms, "{name}");
        }
        assert_eq!(go::unmarshal(&written), Some(read), "{name}: the stand-in reads as Go does");
    }
}

#[test]
fn c36_go_reads_our_health_answer_and_one_of_its_own_names_no_group_so_the_store_is_read() {
    for (name, lease) in ours().into_iter().filter(|(_, lease)| !lease.released()) {
        let version = Version("\"v\"".to_owned());
        let id = &lease.leader_id;
        let answer = peer::answer_from_store("jobs", id, &version, &lease, Some(0), 15_000);
        let read = go::unmarshal(answer.body.as_bytes()).expect(name);
        let who = (lease.leader_id, lease.leader_addr);
        assert_eq!((read.leader_id, read.leader_addr), who, "{name}");
    }
    let body = go::marshal(&go_record("server-001", "10.0.1.42:8443", go::Time::at(AT_MS)));
    let judged = |trust| {
        let peers = PeerSettings { trust: Some(trust), ..PeerSettings::default() };
        let settings =
            Settings { lockfile_path: Some("jobs".to_owned()), peers, ..Settings::default() };
        let config = Config::new(&settings).expect("it is one");
        let (question, _) = Question::read("group=jobs", &config.peers.secrets);
        let heard = Heard { status: 200, proof: None, body: &body };
        peer::judge(&heard, &question, &config.peers)
    };
    assert_eq!(judged(PeerTrust::Edgelect), PeerAnswer::Silent);
    let leader_id = "server-001".to_owned();
    let moved = PeerAnswer::Alive { leader_id, term: None, sequence: AT_MS as u64, own: true };
    assert_eq!(judged(PeerTrust::S3lect), moved, "its lastUpdated moves in place of a sequence");
}

const COURSE: Course =
    Course { rules: Rules::DOCUMENT, foreign_off_ms: 5_000, failing_per_mille: 0 };

#[test]
fn c36_without_its_grace_a_foreign_clock_must_be_within_the_margin_of_the_stores() {
    let rules = Rules { grace_ms: 0, ..Rules::DOCUMENT };
    // The margin less what is on its way.
    let course = Course { rules, foreign_off_ms: 1_200, failing_per_mille: 50 };
    played(80, 16, rules.leader_timeout_ms, 100, |seed| fleet(seed, course));
}

/// A record of a foreign hand, written this very moment.
fn put_foreign(fleet: &Fleet, last_updated: go::Time) {
    let body = go::marshal(&go_record("s3lect-0", "10.0.1.42:8443", last_updated));
    let seen = fleet.place.bucket.at_once(Operation::Read { unless: None });
    let condition = match seen.outcome {
        Outcome::Found { version, .. } => Condition::Match(version),
        _ => Condition::Absent,
    };
    let write = Operation::Write { record: body.into(), condition };
    let answer = fleet.place.bucket.at_once(write);
    assert!(matches!(answer.outcome, Outcome::Written { .. }), "{answer:?}");
}

fn until_led(fleet: &mut Fleet) -> u64 {
    let from_ms = fleet.now_ms();
    assert!(fleet.pass_until(60_000, |fleet| fleet.ours_leads() == Some(true)), "nobody leads");
    fleet.now_ms() - from_ms
}

#[test]
fn c36_s2_two_foreign_resignations_within_one_second_do_not_bring_a_token_again() {
    for seed in 0..40 {
        let mut fleet = fleet(seed, COURSE);
        put_foreign(&fleet, go::Time::ZERO);
        let first = Place::ours(&fleet);
        until_led(&mut fleet);
        first.stop();
        fleet.pass(300);
        // Its `Last-Modified` is that of the first resignation, and no record says any longer which token was handed out.
        put_foreign(&fleet, go::Time::at(AT_MS));
        put_foreign(&fleet, go::Time::ZERO);
        Place::ours(&fleet);
        until_led(&mut fleet);
    }
}

#[test]
fn c36_a_foreign_resignation_is_taken_over_within_an_interval() {
    for seed in 0..40 {
        for old_ms in [0, 2_000, 600_000] {
            let mut fleet = fleet(seed, COURSE);
            put_foreign(&fleet, go::Time::ZERO);
            fleet.pass(old_ms);
            Place::ours(&fleet);
            let took_ms = until_led(&mut fleet);
            assert!(took_ms <= 6_000, "seed {seed}: {took_ms} ms of one of {old_ms} ms");
        }
    }
}

#[test]
fn c36_a_resignation_of_ours_is_taken_over_by_a_foreign_member_at_its_next_look() {
    let rules = Rules::DOCUMENT;
    // One that has seen the leader twice looks once per infrequent interval; one that has just come, once per frequent.
    let rows = [(40_000, rules.infrequent_ms), (1_000, rules.frequent_ms)];
    for ((known_ms, look_ms), seed) in
        rows.into_iter().flat_map(|row| (0..40).map(move |s| (row, s)))
    {
        let mut fleet = fleet(seed, COURSE);
        let ours = Place::ours(&fleet);
        until_led(&mut fleet);
        let theirs = fleet.start_theirs();
        fleet.pass(known_ms + 100 * seed);
        assert_eq!((fleet.ours_leads(), theirs.acquired.get()), (Some(true), 0), "seed {seed}");
        ours.stop();
        let taken = |_: &Fleet| theirs.until_ms.get().is_some();
        assert!(fleet.pass_until(look_ms + 1_000, taken), "seed {seed}: not taken");
        fleet.pass(rules.grace_ms + 1_000);
        assert_eq!(fleet.ours_leads(), Some(false), "seed {seed}");
    }
}

#[test]
fn c36_s2_a_claim_that_lands_on_a_later_equal_resignation_brings_no_older_token() {
    for seed in 0..40 {
        let mut fleet = fleet(seed, COURSE);
        put_foreign(&fleet, go::Time::ZERO);
        fleet.pass(10_000);
        fleet.place.bucket.holds_writes.set(true);
        Place::ours(&fleet);
        fleet.pass(300);
        fleet.place.bucket.holds_writes.set(false);
        let second = Place::ours(&fleet);
        until_led(&mut fleet);
        second.stop();
        fleet.pass(300);
        put_foreign(&fleet, go::Time::at(AT_MS));
        put_foreign(&fleet, go::Time::ZERO);
        fleet.place.bucket.release();
        fleet.pass(5_000);
        until_led(&mut fleet);
    }
}

#[test]
fn c36_s2_a_tombstone_that_may_be_another_equal_one_is_read_whole_each_time() {
    let mut alone = alone();
    alone.reads();
    let (_, tombstone) = ours().remove(1);
    alone.shows("\"0\"", &Lease { term: None, session: None, ..tombstone });
    let (lease, _) = alone.claims();
    assert_eq!((lease.term, lease.acquired), (None, None), "it grants nothing");
    alone.answer(Outcome::Refused);
    let Step::Read { unless, .. } = alone.step() else { panic!("it reads back") };
    assert_eq!(unless, None, "only a whole answer has a Last-Modified");
}

/// Over a store that tells no time.
fn alone() -> Alone {
    Alone { dated: false, ..Alone::new(&told::settings()) }
}

/// Leads by a claim over a tombstone of its own make; gives the record.
fn led(alone: &mut Alone) -> Lease {
    alone.reads();
    alone.shows("\"0\"", &ours().remove(1).1);
    let (lease, _) = alone.claims();
    alone.written("\"1\"");
    assert!(alone.leads());
    lease
}

#[test]
fn s9_a_renewal_whose_record_a_hand_has_released_since_is_not_adopted_by_the_read_back() {
    let mut alone = alone();
    led(&mut alone);
    let (lease, _) = alone.renews();
    alone.answer(Outcome::Refused);
    alone.reads();
    // The renewal has landed, and somebody has given the lease up by hand: it is free to all.
    alone.shows("\"3\"", &Lease { last_updated: Stamp::Released, ..lease });
    assert!(!alone.leads());
}

#[test]
fn s1_a_member_that_keeps_our_session_under_its_own_name_is_waited_out() {
    let mut alone = alone();
    let lease = led(&mut alone);
    alone.renews();
    alone.answer(Outcome::Refused);
    alone.reads();
    let began_ms = alone.ms;
    let taken = Lease { leader_id: "theirs".to_owned(), last_updated: Stamp::At(AT_MS), ..lease };
    alone.shows("\"3\"", &taken);
    alone.until_written("\"3\"", &text(&taken));
    assert!(alone.ms - began_ms >= 15_000, "claimed after {} ms", alone.ms - began_ms);
}
