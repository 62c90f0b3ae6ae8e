//! Peers: any answer to a follower's question, and every answer that a member gives.

use proptest::prelude::*;

use edgelect::election::PeerAnswer;
use edgelect::json;
use edgelect::peer;

use super::draw::{self, Bytes};
use super::hold::{drew, hold, saw};
use super::rules::peers;

const REGRESSIONS: &str = "tests/properties/regressions/peers.txt";

#[test]
fn c68_any_answer_is_worth_a_held_record_of_this_group_or_nothing() {
    let status = prop_oneof![8 => Just(200_u16), 1 => any::<u16>()];
    hold(
        REGRESSIONS,
        10_000,
        (status, draw::body(), any::<bool>()),
        |(status, Bytes(body), ours)| {
            peers::judged(status, &body, "jobs");
            // The same with a group: nearly no drawn body has one.
            let Some(rest) = body.strip_prefix(b"{") else { return };
            let group = format!("{{\"group\":{},", json::of(if ours { "jobs" } else { "others" }));
            let body = [group.as_bytes(), rest].concat();
            let told = peer::judge(status, &body, "jobs");
            saw("alive", told != PeerAnswer::Silent);
            peers::judged(status, &body, "jobs");
        },
    );
    drew(["alive"], 300);
}

#[test]
fn every_record_is_answered_so_that_its_followers_understand() {
    hold(REGRESSIONS, 10_000, (draw::lease(), draw::text(20)), |(lease, group)| {
        peers::answered(&lease, &group);
    });
}
