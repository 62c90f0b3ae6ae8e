//! What an elector says about itself, as JSON for people and monitors. Never a secret.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde_json::json;
use sha2::Sha256;

use crate::clock::Now;
use crate::config::Config;
use crate::driver::Requests;
use crate::election::{Election, Input, Problem};
use crate::json;
use crate::lease::{History, OperatorRequest, PastSlot, Stamp, history};
use crate::store::Answer;
use crate::text::first;

/// The path at which a member shows its status.
pub const PATH: &str = "/status.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    role: &'static str,
    server_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    group: &'a str,
    leader_id: Option<Cow<'a, str>>,
    leader_addr: Option<&'a str>,
    term: Option<u64>,
    remaining_ms: Option<u64>,
    transitions: Option<u64>,
    parked: Option<bool>,
    acquired_ms: Option<u64>,
    renewed_ms: Option<u64>,
    lease_ms: Option<u64>,
    paused: Option<PausedStatus<'a>>,
    history: History,
    last_slot: Option<PastSlot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfenced: Option<bool>,
    waiting: Option<WaitingStatus>,
    requests: Requests,
    error: Option<String>,
}

/// An operator's pause; times in milliseconds since the Unix epoch.
#[derive(Serialize)]
pub(crate) struct PausedStatus<'a> {
    by: &'a str,
    why: &'a str,
    since: Option<u64>,
    until: Option<u64>,
}

impl<'a> From<&'a OperatorRequest> for PausedStatus<'a> {
    fn from(request: &'a OperatorRequest) -> Self {
        let OperatorRequest { by, why, at_ms, until_ms, .. } = request;
        Self { by, why, since: *at_ms, until: *until_ms }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingStatus {
    reason: &'static str,
    until_ms: Option<u64>,
    message: String,
}

/// The status of one elector at one reading of the clocks, as a JSON object. `waiting` says what a member without authority waits
/// for: `reason` (see [`Waiting::name`](crate::election::Waiting::name)), `untilMs` by the host's wall clock, and a `message` for people. `role` is `leader` with authority, `candidate`
/// while no leader is known, `follower` otherwise; `paused` says who has paused the group, why, since when and until when; `remainingMs` is the authority that is left. `unfenced` is there, and true, where
/// the store has no versions, so that terms have no fencing tokens.
pub fn status(election: &Election, now: Now, requests: Requests) -> String {
    json::of(&status_of(election, now, requests, Audience::Owner))
}

/// The same for anybody who asks: without the session. A member without a `serverId` is called by its session's id, of which
/// only the beginning is shown.
pub fn public(election: &Election, now: Now, requests: Requests) -> String {
    json::of(&status_of(election, now, requests, Audience::Anybody))
}

/// What somebody reads who runs no session of the group: the stored record, as this answer shows it. `role` is `none`.
pub fn of_record(config: &Config, answer: Answer, now: Now) -> String {
    let reader = reader_of(config, answer, now);
    let status = status_of(&reader, now, Requests::default(), Audience::Anybody);
    let server_id = Cow::Borrowed(config.server_id.as_str());
    json::of(&Status { role: "none", server_id, waiting: None, ..status })
}

/// An election of nobody's, which has read this answer.
pub(crate) fn reader_of(config: &Config, answer: Answer, now: Now) -> Election {
    let mut reader = Election::new(config.clone(), String::new(), 0);
    // The answer counts only for a read that is under way.
    reader.poll(now);
    reader.handle(now, Input::Answer(answer));
    reader
}

/// What is shown of a group whose settings can't be used.
pub fn of_nobody(group: &str, error: &str) -> String {
    let nothing = json!({ "role": "none", "group": group, "leaderId": null, "history": [], "lastSlot": null, "error": error });
    nothing.to_string()
}

/// Whether a request shows this token in its `Authorization` header, found out in a time that says nothing of the token.
pub fn is_allowed(authorization: Option<&str>, token: &str) -> bool {
    let mac = || {
        let mac = Hmac::<Sha256>::new_from_slice(b"edgelect status");
        mac.expect("a key of any length is one")
    };
    let Some(shown) = authorization.and_then(|text| text.strip_prefix("Bearer ")) else {
        return false;
    };
    let known = mac().chain_update(token).finalize().into_bytes();
    mac().chain_update(shown).verify_slice(&known).is_ok()
}

/// Who reads a status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// The program that runs the elector.
    Owner,
    /// Anybody who reaches its server.
    Anybody,
}

/// How many characters of a session's id anybody may see: enough to tell members apart.
const SHOWN_OF_SESSION: usize = 8;

impl Audience {
    /// A member's name. The driver makes a session's id as a UUID, and before as 32 hex digits; those of other sessions are known
    /// by that alone.
    fn shown<'a>(self, name: &'a str, election: &Election) -> Cow<'a, str> {
        let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let looks_random = name.split('-').all(hex) && {
            let lengths: Vec<usize> = name.split('-').map(str::len).collect();
            [&[32][..], &[8, 4, 4, 4, 12]].contains(&&*lengths)
        };
        let session = looks_random || name == election.session();
        if self == Self::Owner || !session {
            return Cow::Borrowed(name);
        }
        Cow::Owned(format!("{}…", first(name, SHOWN_OF_SESSION)))
    }

    /// A problem: what the application's own code said of it is for the program alone.
    fn told(self, problem: &Problem) -> String {
        match self {
            Self::Owner => problem.to_string(),
            Self::Anybody => problem.public(),
        }
    }
}

fn status_of(election: &Election, now: Now, requests: Requests, audience: Audience) -> Status<'_> {
    let shown = |name| audience.shown(name, election);
    let authority = election.authority(now);
    let leader_id = election.leader_id(now).map(shown);
    let record = election.record().map(|(_, lease)| lease);
    // What a record without versions says of terms is made up.
    let unfenced = election.is_unfenced();
    let told = record.filter(|_| !unfenced);
    let term = authority.map(|authority| authority.term).or(record.and_then(|lease| lease.term));
    let role = match (authority, &leader_id) {
        (Some(_), _) => "leader",
        (None, Some(_)) => "follower",
        (None, None) => "candidate",
    };
    let leader_addr =
        record.map(|lease| lease.leader_addr.as_str()).filter(|addr| !addr.is_empty());
    let waiting = election.waiting(now).map(|(waiting, left_ms)| WaitingStatus {
        reason: waiting.name(),
        until_ms: left_ms.map(|left_ms| now.wall_ms.saturating_add(left_ms)),
        message: election.waiting_text(now, (waiting, left_ms), leader_id.as_deref()),
    });
    let by = |name: &str| audience.shown(name, election).into_owned();
    Status {
        role,
        server_id: shown(election.server_id()),
        session: Some(election.session()).filter(|_| audience == Audience::Owner),
        group: &election.config().lockfile_path,
        leader_id,
        leader_addr,
        term: term.filter(|_| !unfenced),
        remaining_ms: authority.map(|authority| authority.remaining_ms),
        transitions: record.map(|lease| lease.transitions).filter(|_| !unfenced),
        parked: record.map(|lease| lease.parked).filter(|_| !unfenced),
        acquired_ms: told
            .filter(|lease| lease.was_led())
            .and_then(|lease| u64::try_from(lease.acquired?).ok()),
        renewed_ms: told.and_then(|lease| match lease.last_updated {
            Stamp::At(ms) => u64::try_from(ms).ok(),
            Stamp::Released => None,
        }),
        lease_ms: told.and_then(|lease| lease.lease_ms),
        paused: election.paused(now).map(PausedStatus::from),
        history: told.map(|lease| lease.history.with_names(by)).unwrap_or_default(),
        last_slot: told.and_then(history::shown_slot).map(|past| past.with_name(by)),
        unfenced: unfenced.then_some(true),
        waiting,
        requests,
        error: election.problem().map(|problem| audience.told(problem)),
    }
}
