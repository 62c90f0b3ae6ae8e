//! What a member without authority shows of its waiting, and what anybody may see of it.

use edgelect::Settings;
use edgelect::driver::Requests;
use edgelect::election::Waiting;
use edgelect::lease::Closed;
use edgelect::status;
use edgelect::store::{Fault, FaultKind, Outcome};
use serde_json::{Value, json};

use crate::alone::told::{AT_MS, Alone, LIVING, settings, text};

fn shown(
    alone: &Alone,
    of: fn(&edgelect::Election, edgelect::clock::Now, Requests) -> String,
) -> Value {
    let text = of(&alone.election, alone.now(), Requests::default());
    serde_json::from_str(&text).expect("a status is JSON")
}

fn reader(settings: &Settings, record: &str) -> Alone {
    let mut alone = Alone::new(settings);
    alone.reads();
    alone.found("\"v\"", record);
    alone
}

#[test]
fn a_record_that_is_never_claimed_is_waited_for_with_the_way_out() {
    for (record, why, way_out) in [
        (r#"{"leaderID":"x","format":2}"#, Closed::NewerFormat(Some(2)), "Upgrade this member."),
        (
            r#"{"leaderID":"x","lastUpdated":"2026-11-21T06:58:12Z","term":4503599627370497}"#,
            Closed::TermTooHigh,
            "Stop all members, delete the object",
        ),
    ] {
        let alone = reader(&settings(), record);
        assert_eq!(alone.election.waiting(alone.now()), Some((Waiting::Closed(why), None)));
        let status = shown(&alone, status::status);
        let message = status["waiting"]["message"].as_str().expect("a sentence");
        let waiting = json!({ "reason": "closed", "untilMs": null, "message": message });
        assert_eq!(status["waiting"], waiting);
        assert!(message.contains(way_out) && status["error"] == message, "{status}");
    }
}

/// What it shows to people: that its claim is being proven, or that it waits for whoever may still lead.
#[test]
fn a_claim_by_the_stores_clock_waits_for_the_store_or_for_a_lease_and_nothing_is_gone() {
    for (ahead_ms, waiting) in [(0, None), (30_000, Some(Waiting::Lease))] {
        let mut alone = Alone::new(&settings());
        (alone.ahead_ms, alone.modified_ms) = (ahead_ms, Some(AT_MS));
        alone.ms = 60_000;
        alone.reads();
        alone.found("\"v\"", LIVING);
        let (claim, _) = alone.claims();
        alone.written("\"c\"");
        let waits = |alone: &Alone| alone.election.waiting(alone.now()).map(|(what, _)| what);
        assert_eq!(waits(&alone), Some(Waiting::Store));
        alone.modified_ms = Some(AT_MS + alone.ms);
        alone.reads();
        alone.found("\"c\"", &text(&claim));
        assert_eq!(waits(&alone), waiting);
        assert_eq!(alone.leads(), waiting.is_none());
    }
}

#[test]
fn what_is_wrong_with_a_record_is_told_again_after_a_read_that_failed() {
    let long_lease = LIVING.replace("15000", "3600000");
    for (record, told) in [
        (r#"{"leaderID":"x","format":2}"#, "a newer version of edgelect"),
        (&long_lease, "a member has a lease of 3600000 ms"),
        ("{", "the lease object"),
    ] {
        let mut alone = reader(&settings(), record);
        let problem = |alone: &Alone| alone.election.problem().map(ToString::to_string);
        alone.reads();
        alone.timeout();
        assert_eq!(problem(&alone).as_deref(), Some("no answer"));
        alone.reads();
        alone.answer(Outcome::Unchanged);
        let problem = problem(&alone).unwrap_or_default();
        assert!(problem.starts_with(told), "{problem}");
    }
}

#[test]
fn a_name_out_of_a_bucket_is_quoted_where_it_is_waited_for() {
    let record = LIVING.replace("\"other\"", "\"a\\u001b[2J\\u202e\"");
    let alone = reader(&settings(), &record);
    let message = shown(&alone, status::status)["waiting"]["message"].as_str().map(str::to_owned);
    let message = message.expect("it waits for a lease");
    assert!(message.starts_with(r#""a\u{1b}[2J\u{202e}" leads; "#), "{message}");
}

#[test]
fn what_the_applications_own_code_said_is_shown_to_its_program_alone() {
    let mut alone = reader(&settings(), LIVING);
    let fault = Fault::new(FaultKind::Network, "locker: connect postgres://app:hunter2@db");
    alone.election.complain(Some(fault.shown_as("locker: it failed")));
    let own = shown(&alone, status::status);
    assert_eq!(own["error"], "locker: connect postgres://app:hunter2@db");
    assert_eq!(shown(&alone, status::public)["error"], "locker: it failed");
}

#[test]
fn anybody_sees_the_beginning_of_a_sessions_id_and_no_more() {
    for theirs in ["fedcba98-7654-4210-bedc-ba9876543210", "fedcba9876543210fedcba9876543210"] {
        shows_the_beginning("01234567-89ab-4def-8123-456789abcdef", theirs);
    }
}

fn shows_the_beginning(ours: &str, theirs: &str) {
    let record = format!(
        r#"{{"leaderID":"{theirs}","session":"{theirs}","sequence":1,"term":5,"leaseMs":15000,"slot":60000,"slotTerm":5,
        "acquired":"2026-11-21T06:00:00Z","lastUpdated":"2026-11-21T06:58:12Z",
        "history":[{{"term":4,"by":"{ours}","how":"released"}},{{"slot":1,"outcome":"ok","by":"{theirs}"}}]}}"#
    );
    let config = edgelect::Config::new(&Settings { server_id: None, ..settings() });
    let config = config.expect("a name is no must");
    let mut alone = Alone::of(edgelect::Election::new(config, ours.to_owned(), 7));
    alone.reads();
    alone.found("\"v\"", &record);
    let own = shown(&alone, status::status);
    let named = |status: &Value| [&status["serverId"], &status["leaderId"]].map(Value::to_owned);
    assert_eq!(named(&own), [ours, theirs]);
    assert!(own["session"] == ours && own["history"][0]["by"] == ours, "{own}");
    let public = shown(&alone, status::public);
    assert!(public.get("session").is_none(), "{public}");
    assert_eq!(named(&public), ["01234567…", "fedcba98…"]);
    let by = [&public["history"][0]["by"], &public["lastSlot"]["by"]];
    assert_eq!(by, ["01234567…", "fedcba98…"]);
    let text = public.to_string();
    assert!(!text.contains(&ours[..9]) && !text.contains(&theirs[..9]), "{text}");
    let others = shown(&reader(&settings(), LIVING), status::public);
    assert_eq!(named(&others), ["ours", "other"]);
}
