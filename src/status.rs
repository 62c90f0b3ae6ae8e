//! What an elector says about itself, as JSON for people and monitors. Never a secret.

use serde::Serialize;

use crate::clock::Now;
use crate::driver::Requests;
use crate::election::{Election, Problem};
use crate::json;

/// The path at which a member shows its status.
pub const PATH: &str = "/status.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    role: &'static str,
    server_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    group: &'a str,
    leader_id: Option<&'a str>,
    leader_addr: Option<&'a str>,
    term: Option<u64>,
    remaining_ms: Option<u64>,
    transitions: Option<u64>,
    parked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfenced: Option<bool>,
    waiting: Option<WaitingStatus>,
    requests: Requests,
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingStatus {
    reason: &'static str,
    until_ms: Option<u64>,
    message: String,
}

/// The status of one elector at one reading of the clocks, as a JSON object. `waiting` says what a member without authority waits
/// for: `reason` (see [`Waiting::name`]), `untilMs` by the host's wall clock, and a `message` for people. `role` is `leader` with authority, `candidate`
/// while no leader is known, `follower` otherwise; `remainingMs` is the authority that is left. `unfenced` is there, and true, where
/// the store has no versions, so that terms have no fencing tokens.
pub fn status(election: &Election, now: Now, requests: Requests) -> String {
    json::of(&status_of(election, now, requests, Some(election.session())))
}

/// The same for anybody who asks: without the session.
pub fn public(election: &Election, now: Now, requests: Requests) -> String {
    json::of(&status_of(election, now, requests, None))
}

fn status_of<'a>(
    election: &'a Election,
    now: Now,
    requests: Requests,
    session: Option<&'a str>,
) -> Status<'a> {
    let authority = election.authority(now);
    let leader_id = election.leader_id(now);
    let record = election.record().map(|(_, lease)| lease);
    // What a record without versions says of terms is made up.
    let unfenced = election.is_unfenced();
    let term = authority.map(|authority| authority.term).or(record.and_then(|lease| lease.term));
    let role = match (authority, leader_id) {
        (Some(_), _) => "leader",
        (None, Some(_)) => "follower",
        (None, None) => "candidate",
    };
    let leader_addr =
        record.map(|lease| lease.leader_addr.as_str()).filter(|addr| !addr.is_empty());
    Status {
        role,
        server_id: election.server_id(),
        session,
        group: &election.config().lockfile_path,
        leader_id,
        leader_addr,
        term: term.filter(|_| !unfenced),
        remaining_ms: authority.map(|authority| authority.remaining_ms),
        transitions: record.map(|lease| lease.transitions).filter(|_| !unfenced),
        parked: record.map(|lease| lease.parked).filter(|_| !unfenced),
        unfenced: unfenced.then_some(true),
        waiting: election.waiting(now).map(|(waiting, left_ms)| WaitingStatus {
            reason: waiting.name(),
            until_ms: left_ms.map(|left_ms| now.wall_ms.saturating_add(left_ms)),
            message: waiting.text(left_ms, leader_id),
        }),
        requests,
        error: election.problem().map(Problem::to_string),
    }
}
