//! What an elector says about itself, as JSON for people and monitors. Never a secret.

use serde::Serialize;

use crate::clock::Now;
use crate::driver::Requests;
use crate::election::{Election, Problem};
use crate::json;
use crate::lease::{Flaw, History, PastSlot, history};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    role: &'static str,
    server_id: &'a str,
    session: &'a str,
    group: &'a str,
    leader_id: Option<&'a str>,
    leader_addr: Option<&'a str>,
    term: Option<u64>,
    remaining_ms: Option<u64>,
    transitions: Option<u64>,
    parked: Option<bool>,
    history: History,
    last_slot: Option<PastSlot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfenced: Option<bool>,
    requests: Requests,
    error: Option<String>,
}

/// The status of one elector at one reading of the clocks, as a JSON object. `role` is `leader` with authority, `candidate`
/// while no leader is known, `follower` otherwise; `remainingMs` is the authority that is left. `unfenced` is there, and true, where
/// the store has no versions, so that terms have no fencing tokens.
pub fn status(election: &Election, now: Now, requests: Requests) -> String {
    let authority = election.authority(now);
    let leader_id = election.leader_id(now);
    let record = election.record().map(|(_, lease)| lease);
    // What a record without versions says of terms is made up.
    let unfenced = election.is_unfenced();
    let told = record.filter(|_| !unfenced);
    let term = authority.map(|authority| authority.term).or(record.and_then(|lease| lease.term));
    let role = match (authority, leader_id) {
        (Some(_), _) => "leader",
        (None, Some(_)) => "follower",
        (None, None) => "candidate",
    };
    let leader_addr =
        record.map(|lease| lease.leader_addr.as_str()).filter(|addr| !addr.is_empty());
    json::of(&Status {
        role,
        server_id: election.server_id(),
        session: election.session(),
        group: &election.config().lockfile_path,
        leader_id,
        leader_addr,
        term: term.filter(|_| !unfenced),
        remaining_ms: authority.map(|authority| authority.remaining_ms),
        transitions: record.map(|lease| lease.transitions).filter(|_| !unfenced),
        parked: record.map(|lease| lease.parked).filter(|_| !unfenced),
        history: told.map(|lease| lease.history.clone()).unwrap_or_default(),
        last_slot: told.and_then(history::shown_slot),
        unfenced: unfenced.then_some(true),
        requests,
        error: election.problem().map(problem_text),
    })
}

/// A problem as a sentence that says what to do.
pub fn problem_text(problem: &Problem) -> String {
    match problem {
        Problem::Store(fault) => fault.message.clone(),
        Problem::NewerFormat(format) => format!(
            "the lease object has format {}, which a newer edgelect wrote; nothing is claimed. \
             Upgrade this member; or, to go back, stop all members, delete the object, and wait \
             for the longest lease", format.map_or_else(|| "(no number)".to_owned(), |number| number.to_string())),
        Problem::TermTooHigh => "the lease object's term is above 2^52, so no higher token can be given out; \
             nothing is claimed. Stop all members, delete the object, wait for the longest lease, and start \
             with a termFloor that your fenced resources accept"
            .to_owned(),
        Problem::Unreadable(flaw) => flaw_text(*flaw),
        Problem::Contradicted => "the store refuses each write on the version that it shows: does something between \
             here and there answer reads from a cache? Run `npx edgelect doctor`"
            .to_owned(),
        Problem::LongWait => "the lease object has not changed for more than two leases and can't be claimed yet: either it \
             waits out a longer lease than this member's (S7), or the store's answers prove no age, because a cache \
             answers (Age) or its Date does not move (S6)"
            .to_owned(),
        Problem::MovingTimes => "the store shows another Last-Modified with each read of one version, so the wait \
             for a new lease object began again: does something between here and there set that header? It is \
             ignored after three such reads"
            .to_owned(),
        Problem::MovingVersions => "the store shows another ETag with each read of one record, so nobody can tell how long it \
             has not changed, and a dead leader is not succeeded: does something between here and there make ETags of \
             its own? Run `npx edgelect doctor`"
            .to_owned(),
        Problem::WorkGoesOn { term } => format!(
            "the authority of term {term} has ended and its work goes on: this member claims \
             nothing until the work has stopped, which is what its signal asks for; work that \
             waits for the next term waits for itself"),
        Problem::LeaseTooLong { lease_ms, max_lease_ms } => format!(
            "a member has a lease of {lease_ms} ms, longer than maxLease ({max_lease_ms} ms) \
             here, which is waited out: set the same maxLease for every member of the group \
             (S7). If a member of another make wrote it, its clock and this machine's may be \
             apart"),
        Problem::SharedName(server_id) => format!(
            "a member of another make writes this lease as \"{server_id}\", our own serverId: \
             it takes our record for its own and leads beside us until the next renewal. If it \
             still runs, give this member a serverId that no other has"),
        Problem::DateAhead { ahead_ms } => format!(
            "the `Date` of the store's answers is {ahead_ms} ms ahead of its `Last-Modified`, \
             more than storeSkew allows, so a dead leader's lease is watched for as long as it \
             lasts: a proxy on the way sets `Date` by a clock of its own, which has to be put \
             right"),
    }
}

fn flaw_text(flaw: Flaw) -> String {
    let what = match flaw {
        Flaw::TooLarge => "is larger than 64 KiB",
        Flaw::NotJson => "is not a JSON object",
        Flaw::Foreign => "is no lease record",
        Flaw::OtherFormat => {
            "is a record of another format than this member's store is set to (native or kubernetes), \
             which every member must set alike"
        }
        Flaw::Absurd => {
            "has a leaseMs that is not between a second and an hour, or another duration under a second"
        }
    };
    format!(
        "the lease object {what}; it will be replaced once it has not changed for the grace and \
         for the lease that can be read of it. Does something else write to this lockfilePath?"
    )
}
