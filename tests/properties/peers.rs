//! Peers: any answer to a follower's question, and every answer that a member gives.

use proptest::prelude::*;

use edgelect::config::MAX_WAIT_MS;
use edgelect::election::PeerAnswer;
use edgelect::json;
use edgelect::peer::Question;
use edgelect::proof::Secrets;

use super::draw::{self, Bytes};
use super::hold::{drew, hold, saw};
use super::rules::peers;

const REGRESSIONS: &str = "tests/properties/regressions/peers.txt";

#[test]
fn c68_any_answer_is_worth_a_held_record_of_this_group_or_nothing() {
    let status = prop_oneof![8 => Just(200_u16), 1 => any::<u16>()];
    let drawn = (status, draw::body(), any::<bool>());
    hold(REGRESSIONS, 10_000, drawn, |(status, Bytes(body), ours)| {
        peers::judged(status, &body, "jobs");
        // The same with a group: nearly no drawn body has one.
        let Some(rest) = body.strip_prefix(b"{") else { return };
        let group = format!("{{\"group\":{},", json::of(if ours { "jobs" } else { "others" }));
        let body = [group.as_bytes(), rest].concat();
        saw("alive", peers::judge(status, &body, "jobs") != PeerAnswer::Silent);
        peers::judged(status, &body, "jobs");
    });
    drew(["alive"], 300);
}

#[test]
fn every_record_is_answered_so_that_its_followers_understand() {
    hold(REGRESSIONS, 10_000, (draw::lease(), draw::text(20)), |(lease, group)| {
        peers::answered(&lease, &group);
    });
}

#[test]
fn any_question_is_read_within_bounds_and_one_of_a_member_comes_as_it_was_asked() {
    let secrets = Secrets::new(vec!["0123456789abcdef".to_owned()]).expect("it is one");
    hold(REGRESSIONS, 5_000, draw::text(60), |query| {
        let (question, proven) = Question::read(&query, &secrets);
        assert!(question.wait_ms <= MAX_WAIT_MS && question.nonce.len() <= 64 && !proven);
    });
    let names = (draw::text(30), draw::text(20), draw::text(20));
    let question = (names, "[0-9a-f]{0,32}", any::<Option<u64>>(), 0..MAX_WAIT_MS);
    hold(REGRESSIONS, 5_000, question, |(names, nonce, term, wait_ms)| {
        let (group, relay, from) = names;
        let question = Question { group, nonce, term, wait_ms, relay, from };
        let query = question.to_query(&secrets);
        let told = Question::read(&query, &secrets);
        assert_eq!(told, (question.clone(), true), "{query}");
        let other = Secrets::new(vec!["fedcba9876543210".to_owned()]).expect("it is one");
        assert!(!Question::read(&query, &other).1, "a stranger's proof");
        let more = query.replacen('&', "&x=1&", 1);
        assert!(more == query || !Question::read(&more, &secrets).1);
        assert!(query.bytes().all(|byte| byte.is_ascii_graphic()));
    });
}
