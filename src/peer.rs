//! `GET /health/leadership`: the question, the answer that a member gives, and what a follower makes of it.
//!
//! An answer saves a read of the store; it never grants or extends anything.

mod desk;

use serde::Serialize;
use serde_json::json;

pub use self::desk::{Desk, Reply};
use crate::clock::Now;
use crate::config::{Config, MAX_WAIT_MS, PeerTrust, Peers};
use crate::election::{Election, PeerAnswer};
use crate::hostname::Hostname;
use crate::json::{self, Object};
use crate::lease::{self, History, Lease, Reading, Stamp};
use crate::planted::planted;
use crate::proof::Secrets;
use crate::store::Version;

/// The path of the question.
pub const PATH: &str = "/health/leadership";

/// The largest answer that is read, in bytes: a record and what we add to it.
pub const MAX_ANSWER_BYTES: usize = lease::MAX_RECORD_BYTES + 1024;

/// The header in which an answer is proven: the HMAC-SHA256 by `peerSecret` of the nonce, the status and the body, in hex.
pub const PROOF: &str = "edgelect-proof";

/// What comes before the proof of a question, at the end of its query.
const PROVED_BY: &str = "&proof=";

/// The longest query that is read, in bytes: a group's key and an address, percent-encoded, and a few numbers.
const MAX_QUERY_BYTES: usize = 8 * 1024;

/// The longest nonce that is answered, in bytes.
const MAX_NONCE_BYTES: usize = 64;

/// An HTTP answer, for whichever server gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthAnswer {
    /// 200, 404, 405 or 503.
    pub status: u16,
    /// The lease's version, as the `ETag` header; none where a header can't have it.
    pub etag: Option<Version>,
    /// After how many seconds to ask again, as `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// The header [`PROOF`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// JSON.
    pub body: String,
}

/// What an answer says beside the record.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Beside<'a> {
    group: &'a str,
    /// The authority that is left, where the session itself answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<u64>,
    /// `store` where the answer is of the stored record, `relay` where it is what the leader has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
}

impl HealthAnswer {
    /// 404: this member does not lead; `leader_id` names who does, as far as it knows.
    pub fn not_leading(leader_id: Option<&str>) -> Self {
        let body = match leader_id {
            Some(leader_id) => json!({ "error": "not the leader", "leaderID": leader_id }),
            None => json!({ "error": "no leader is known", "leaderID": null }),
        };
        Self::of(404, body.to_string())
    }

    /// The same, and how many hear at once that the term which they asked about is over.
    fn over(leader_id: Option<&str>, waiting: u64) -> Self {
        let error = "the term is over";
        let body = json!({ "error": error, "leaderID": leader_id, "waiting": waiting });
        Self::of(404, body.to_string())
    }

    /// An answer of a status and a body, and nothing else.
    pub fn of(status: u16, body: String) -> Self {
        Self { status, etag: None, retry_after_s: None, proof: None, body }
    }

    /// 503: there is no room to hold the question. `relays` answer in this member's place.
    pub fn busy(pause_s: u64, relays: &[&str]) -> Self {
        let error = "too many wait for an answer";
        let body = json!({ "error": error, "retryAfterMs": pause_s * 1_000, "relays": relays });
        Self { retry_after_s: Some(pause_s), ..Self::of(503, body.to_string()) }
    }

    /// The same, proven to who asked.
    pub fn to(self, question: &Question, secrets: &Secrets) -> Self {
        let text = answer_text(&question.nonce, self.status, &self.body);
        let proof = secrets.proof(&text).filter(|_| !question.nonce.is_empty());
        Self { proof, ..self }
    }

    /// 405: the path knows GET only.
    pub fn wrong_method() -> Self {
        Self::of(405, r#"{"error":"use GET"}"#.to_owned())
    }

    /// Anybody may ask: the answer shows who leads and that it renews, and neither the session nor the word of a job, nor
    /// what was before, nor fields of others.
    fn leading(version: &Version, lease: &Lease, beside: &Beside<'_>) -> Self {
        let lease = Lease {
            session: None,
            slot_result: None,
            slot_term: None,
            history: History::default(),
            operator: None,
            extra: Object::new(),
            ..lease.clone()
        };
        let body = lease::write_with(&lease, &Object::of(beside));
        let etag = version.0.bytes().all(|byte| byte.is_ascii_graphic()).then(|| version.clone());
        Self { etag, ..Self::of(200, body) }
    }
}

/// What the session itself answers: its lease while it has authority, with what is left of it; to a `proven` question what
/// its leader has told, while it believes that; 404 otherwise, so also as soon as the authority of a leader that is cut off
/// from the store is gone. Whoever proves nothing takes 200 for the word of the leader itself.
pub fn answer(election: &Election, now: Now, proven: bool) -> HealthAnswer {
    let left_ms = election.authority(now).map(|authority| authority.remaining_ms);
    let own = |(_, lease): (_, &Lease)| lease.session.as_deref() == Some(election.session());
    let zombie = planted!(ZombieAnswersPeers) && election.record().is_some_and(own);
    let left_ms = left_ms.or(zombie.then_some(1));
    match (left_ms, election.record()) {
        (Some(left_ms), Some((version, lease))) => {
            let group = election.config().lockfile_path.as_str();
            let beside = Beside { group, remaining_ms: Some(left_ms), source: None };
            if election.is_unfenced() {
                // Made up: somebody might take the one for a token, the other for a version.
                let lease = Lease { term: None, ..lease.clone() };
                return HealthAnswer {
                    etag: None,
                    ..HealthAnswer::leading(version, &lease, &beside)
                };
            }
            HealthAnswer::leading(version, lease, &beside)
        }
        _ => match election.relayed(now).filter(|_| proven).zip(election.record()) {
            Some((lease, (version, _))) => {
                let group = election.config().lockfile_path.as_str();
                let beside = Beside { group, remaining_ms: None, source: Some("relay") };
                // It may be an older version than the one that the leader has told of.
                HealthAnswer { etag: None, ..HealthAnswer::leading(version, &lease, &beside) }
            }
            None => HealthAnswer::not_leading(election.leader_id(now)),
        },
    }
}

/// What an isolate answers that has no session at hand: the stored record, if it names this `server_id` and
/// has not run out by the store's own clock. `age_ms` is `Date` less `Last-Modified`, where both are known.
pub fn answer_from_store(
    group: &str,
    server_id: &str,
    version: &Version,
    lease: &Lease,
    age_ms: Option<u64>,
    own_lease_ms: u64,
) -> HealthAnswer {
    let lease_ms = lease.lease_ms.unwrap_or(own_lease_ms);
    let alive = age_ms.is_some_and(|age_ms| age_ms < lease_ms);
    if lease.released() || lease.parked || lease.in_grace() || !alive {
        return HealthAnswer::not_leading(None);
    }
    if lease.leader_id != server_id {
        return HealthAnswer::not_leading(Some(&lease.leader_id));
    }
    let beside = Beside { group, remaining_ms: None, source: Some("store") };
    HealthAnswer::leading(version, lease, &beside)
}

/// A question, as it stands in the query of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// `group`: of which group; empty where nobody says.
    pub group: String,
    /// `nonce`: what the proof of the answer is bound to, in hex; empty without `peerSecret`.
    pub nonce: String,
    /// `term`: the term that the asker knows.
    pub term: Option<u64>,
    /// `wait`: for how many milliseconds the answer may be held until that term is over.
    pub wait_ms: u64,
    /// `relay`: where the asker answers others, `host` or `host:port`; empty where it does not.
    pub relay: String,
    /// `from`: the `serverId` of who asks, in a heartbeat; empty in other questions.
    pub from: String,
}

impl Question {
    /// The query of the URL; with a secret its last field proves the others.
    pub fn to_query(&self, secrets: &Secrets) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let (term, wait) = (self.term.map(|term| term.to_string()), self.wait_ms.to_string());
        let fields = [
            ("group", Some(&*self.group)),
            ("nonce", Some(&*self.nonce)),
            ("term", term.as_deref()),
            ("wait", (self.wait_ms > 0).then_some(&*wait)),
            ("relay", Some(&*self.relay)),
            ("from", Some(&*self.from)),
        ];
        for (name, value) in fields {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        match secrets.proof(&question_text(&query)) {
            Some(proof) => format!("{query}{PROVED_BY}{proof}"),
            None => query,
        }
    }

    /// Reads a query, and whether it is proven. What is too long or no value of its field counts as left out: anybody may ask.
    pub fn read(query: &str, secrets: &Secrets) -> (Self, bool) {
        let query = if query.len() > MAX_QUERY_BYTES { "" } else { query };
        let proven = query
            .rsplit_once(PROVED_BY)
            .is_some_and(|(fields, proof)| secrets.prove(&question_text(fields), proof));
        let mut question = Self {
            group: String::new(),
            nonce: String::new(),
            term: None,
            wait_ms: 0,
            relay: String::new(),
            from: String::new(),
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "group" if question.group.is_empty() => question.group = value.into_owned(),
                // In hex, as askers make it: with other signs in it one answer's proof could be of another answer, too.
                "nonce" if is_nonce(&value) => question.nonce = value.into_owned(),
                "term" => question.term = value.parse().ok(),
                "wait" => question.wait_ms = value.parse().unwrap_or(0).min(MAX_WAIT_MS),
                "relay" => question.relay = value.into_owned(),
                "from" => question.from = value.into_owned(),
                _ => {}
            }
        }
        (question, proven)
    }
}

fn is_nonce(text: &str) -> bool {
    text.len() <= MAX_NONCE_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a question's proof is of.
fn question_text(query: &str) -> String {
    format!("edgelect question\n{query}")
}

/// What an answer's proof is of.
fn answer_text(nonce: &str, status: u16, body: &str) -> String {
    format!("edgelect answer\n{nonce}\n{status}\n{body}")
}

/// An answer as it came.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The status.
    pub status: u16,
    /// The header [`PROOF`].
    pub proof: Option<&'a str>,
    /// The body, or so much of it that it is too long.
    pub body: &'a [u8],
}

/// What an answer to our question means: alive only if it is a 200 with a lease of this group, and proven if there is a
/// secret.
pub fn judge(heard: &Heard<'_>, question: &Question, peers: &Peers) -> PeerAnswer {
    let Heard { status, body, .. } = *heard;
    let Some(text) = std::str::from_utf8(body).ok().filter(|_| body.len() <= MAX_ANSWER_BYTES)
    else {
        return PeerAnswer::Silent;
    };
    let proven = heard.proof.is_some_and(|proof| {
        peers.secrets.prove(&answer_text(&question.nonce, status, text), proof)
    });
    if peers.secrets.is_set() && !proven && !planted!(UnprovenPeerBelieved) {
        return PeerAnswer::Silent;
    }
    if status == 503 {
        let Some(fields) = Object::read(body) else { return PeerAnswer::Silent };
        let Some(retry_after_ms) = fields.get("retryAfterMs").and_then(json::whole) else {
            return PeerAnswer::Silent;
        };
        // Without a secret anybody could send a fleet to any address.
        let relays = fields.get("relays").filter(|_| proven).and_then(json::texts);
        return PeerAnswer::Busy { retry_after_ms, relays: relays.unwrap_or_default() };
    }
    if status == 404 {
        let told =
            Object::read(body).and_then(|fields| fields.get("waiting").and_then(json::whole));
        return told.map_or(PeerAnswer::Silent, |waiting| PeerAnswer::Over { waiting });
    }
    if status != 200 {
        return PeerAnswer::Silent;
    }
    let Reading::Lease(lease) = lease::read(body) else { return PeerAnswer::Silent };
    let theirs = lease.extra.get("group").and_then(json::text);
    let foreign = theirs.is_none() && peers.trust == PeerTrust::S3lect && lease.term.is_none();
    let unled = lease.released() || lease.parked;
    if (theirs.as_deref() != Some(&*question.group) && !foreign) || unled {
        return PeerAnswer::Silent;
    }
    let own = lease.extra.get("source").is_none();
    let Lease { leader_id, term, sequence, last_updated, .. } = *lease;
    let sequence = match last_updated {
        Stamp::At(ms) if foreign => u64::try_from(ms).unwrap_or(0),
        _ => sequence,
    };
    PeerAnswer::Alive { leader_id, term, sequence, own }
}

/// The URL of the question, or `None` where it must not be asked. `addr` came out of a bucket or from another peer: it is a
/// host and a port and nothing else, asked over https; over http with `insecurePeers`, and on loopback unless that is `false`.
/// On loopback it is asked only by a member that is itself published there, so that a bucket can't send anybody to a local
/// service.
pub fn url(addr: &str, config: &Config) -> Option<String> {
    let (host, port) = Hostname::parse_with_port(addr).filter(|_| config.asks(addr))?;
    let insecure = config.peers.insecure.unwrap_or_else(|| host.is_loopback());
    let scheme = if insecure { "http" } else { "https" };
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{scheme}://{}{port}{PATH}", host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn lease() -> Lease {
        Lease {
            leader_id: "a".to_owned(),
            leader_addr: "10.0.1.42:8443".to_owned(),
            last_updated: Stamp::At(1_795_244_292_345),
            term: Some(7),
            session: Some("s".to_owned()),
            sequence: 3,
            lease_ms: Some(15_000),
            acquired: Some(1_795_244_280_000),
            reserved: false,
            transitions: 1,
            parked: false,
            park_at: None,
            slot: None,
            slot_done: None,
            slot_result: None,
            slot_took_ms: None,
            slot_failures: None,
            slot_term: None,
            history: History::default(),
            operator: None,
            extra: crate::json::Object::new(),
        }
    }

    fn config(options: serde_json::Value) -> Config {
        let mut settings = Settings::from_json(&Object::of(&options)).unwrap();
        settings.lockfile_path = Some("jobs".to_owned());
        Config::new(&settings).unwrap()
    }

    fn from_store(lease: &Lease, age_ms: Option<u64>) -> HealthAnswer {
        let version = Version("\"v\"".to_owned());
        answer_from_store("jobs", "a", &version, lease, age_ms, 15_000)
    }

    #[test]
    fn a_version_that_no_header_can_have_is_none() {
        for (version, shown) in
            [("\"v\"", true), ("r1;ttl2", true), ("a b", false), ("a\nb", false)]
        {
            let version = Version(version.to_owned());
            let answer = answer_from_store("jobs", "a", &version, &lease(), Some(1), 15_000);
            assert_eq!((answer.status, answer.etag), (200, shown.then_some(version)));
        }
    }

    #[test]
    fn an_isolate_without_the_session_answers_only_for_a_lease_that_surely_lives() {
        let answer = from_store(&lease(), Some(14_999));
        assert_eq!((answer.status, answer.etag), (200, Some(Version("\"v\"".to_owned()))));
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((&body["source"], &body["group"]), (&"store".into(), &"jobs".into()));
        assert!(body.get("remainingMs").is_none());
        let past = Lease { history: History::after(&lease(), None), slot_term: Some(7), ..lease() };
        assert_eq!(past.history.entries().len(), 1);
        assert_eq!(from_store(&past, Some(0)).body, answer.body, "nor what was before");
        assert_eq!(from_store(&lease(), Some(15_000)).status, 404);
        assert_eq!(from_store(&lease(), None).status, 404);
        let other = Lease { leader_id: "b".to_owned(), ..lease() };
        assert_eq!(from_store(&other, Some(0)).status, 404);
        let released = Lease { last_updated: Stamp::Released, ..lease() };
        assert_eq!(from_store(&released, Some(0)).status, 404);
        assert_eq!(from_store(&Lease { acquired: None, ..lease() }, Some(0)).status, 404);
    }

    #[test]
    fn c68_an_answer_counts_only_for_this_group_and_within_bounds() {
        let answer = from_store(&lease(), Some(0)).body;
        let alive =
            PeerAnswer::Alive { leader_id: "a".to_owned(), term: Some(7), sequence: 3, own: false };
        let asked = |group: &str| Question {
            group: group.to_owned(),
            ..Question::read("", &Secrets::default()).0
        };
        let judge = |status, body: &[u8], group| {
            let heard = Heard { status, proof: None, body };
            super::judge(&heard, &asked(group), &config(json!({})).peers)
        };
        assert_eq!(judge(200, answer.as_bytes(), "jobs"), alive);
        for (status, body, group) in [
            (200, answer.clone(), "other"),
            (404, answer.clone(), "jobs"),
            (307, answer.clone(), "jobs"),
            (200, "{}".to_owned(), "jobs"),
            (200, "<html>".to_owned(), "jobs"),
            (200, answer.replace('{', &format!("{{\"x\":\"{}\",", "y".repeat(70_000))), "jobs"),
        ] {
            assert_eq!(judge(status, body.as_bytes(), group), PeerAnswer::Silent, "{status}");
        }
    }

    #[test]
    fn the_proof_of_one_answer_is_of_no_other() {
        let peers = config(json!({ "peerSecret": "0123456789abcdef" })).peers;
        let nonce = "00112233445566778899aabbccddeeff";
        let asked = |query: &str| Question::read(query, &peers.secrets).0;
        // Whoever is asked by this nonce asks the leader with more in it.
        let stretched = asked(&format!("nonce={nonce}%0A503%0A"));
        assert_eq!(stretched.nonce, "", "a nonce is hex");
        let told = from_store(&lease(), Some(0)).to(&stretched, &peers.secrets);
        assert_eq!(told.proof, None);
        let question = asked(&format!("nonce={nonce}"));
        let told = from_store(&lease(), Some(0)).to(&question, &peers.secrets);
        let judged = |status, body: &str| {
            let heard = Heard { status, proof: told.proof.as_deref(), body: body.as_bytes() };
            super::judge(&heard, &Question { group: "jobs".to_owned(), ..question.clone() }, &peers)
        };
        assert!(matches!(judged(200, &told.body), PeerAnswer::Alive { .. }));
        let busy = told.body.replacen('{', "{\"retryAfterMs\":1000,", 1);
        for (status, body) in [(503, &busy), (200, &busy), (503, &told.body)] {
            assert_eq!(judged(status, body), PeerAnswer::Silent);
        }
    }

    #[test]
    fn c68_only_a_host_of_the_same_kind_is_asked() {
        let asked = |addr: &str, own: &str| url(addr, &config(json!({ "serverAddr": own })));
        assert_eq!(
            asked("10.0.1.42:8443", "").as_deref(),
            Some("https://10.0.1.42:8443/health/leadership")
        );
        assert_eq!(
            asked("127.0.0.1:80", "127.0.0.1:81").as_deref(),
            Some("http://127.0.0.1:80/health/leadership")
        );
        for (addr, own) in [
            ("127.0.0.1:80", ""),
            ("localhost:80", "10.0.0.1:80"),
            ("[::1]:80", "example.com"),
            ("metadata.google.internal", "x"),
            ("u@evil", "x"),
            ("evil/path", "x"),
            ("evil?x", "x"),
            ("127.1", "x"),
            ("169.254.169.254", "x"),
            ("[::ffff:127.0.0.1]", "x"),
        ] {
            assert_eq!(asked(addr, own), None, "{addr} by {own}");
        }
    }
}
