//! The deeper of the two depths: the real S3 store code between the election and the store, down to
//! HTTP requests and answers. The server's side of HTTP is here; what the store does is in
//! `store.rs`.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::calendar;
use edgelect::clock::Now;
use edgelect::lease::Lease;
use edgelect::peer;
use edgelect::remote::Provide;
use edgelect::request::{Request, Response};
use edgelect::sigv4::Credentials;
use edgelect::store::s3::{S3, S3Config};
use edgelect::store::{Answer, Condition, Facts, Operation, Outcome, Record, Version};
use http::StatusCode;
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;

use super::clocks::EPOCH_MS;
use super::network::{Mangle, Trouble};
use super::port::{self, Conversation, Move, add, http_date};
use super::store::{Asked, Effect, Manners};

const HOSTS: [&str; 3] = [
    "https://s3.example.com/jobs/leader.json",
    "https://jobs.s3.us-east-1.amazonaws.com/leader.json",
    "https://jobs.s3.eu-west-1.amazonaws.com/leader.json",
];

/// How far a signature's time may be from the store's, in milliseconds, as AWS has it.
const SKEW_MS: i64 = 900_000;

/// The credentials of one member: a generation that the store lets expire.
#[derive(Clone, Default)]
pub struct Keys {
    known: Rc<Cell<u64>>,
    newest: Rc<Cell<u64>>,
}

impl Provide for Keys {
    async fn credentials(&self, fresh: bool) -> Result<Credentials, String> {
        if fresh {
            self.known.set(self.newest.get());
        }
        Ok(Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI".to_owned(),
            session_token: Some(format!("generation-{}", self.known.get())),
        })
    }
}

/// The real S3 client of one session.
pub struct Client {
    s3: Rc<S3>,
    keys: Keys,
}

impl Client {
    pub fn new(manners: &Manners) -> Self {
        let s3 = S3::new(S3Config {
            endpoint: (!manners.aws).then(|| "https://s3.example.com".to_owned()),
            bucket: "jobs".to_owned(),
            key: "leader.json".to_owned(),
            ..S3Config::default()
        });
        Self { s3: Rc::new(s3.expect("a plain bucket")), keys: Keys::default() }
    }

    pub fn begin(&self, asked: &Asked) -> Conversation {
        let operation = match asked {
            Asked::Read { unless } => Operation::Read { unless: unless.clone() },
            Asked::Write { lease, condition, .. } => {
                let record = Record::from(Lease::clone(lease));
                Operation::Write { record, condition: condition.clone() }
            }
        };
        Conversation::begin(self.s3.clone(), self.keys.clone(), operation)
    }

    /// Goes on with an operation, where the store takes credentials of this generation and later ones.
    pub fn go_on(
        &self,
        talk: &mut Conversation,
        now: Now,
        newest_keys: u64,
        answer: Option<Result<Response, String>>,
    ) -> Move {
        self.keys.newest.set(newest_keys);
        talk.go_on(now, answer)
    }
}

/// What the server finds in a request.
pub struct Received {
    /// On what a write is really conditional.
    pub condition: Option<Condition>,
    /// What is wrong with the request, given what was asked for.
    pub wrong: Option<String>,
    signed_ms: Option<u64>,
    generation: u64,
    host: usize,
}

/// Reads a request as the store does, by its headers alone, and holds it against what was asked.
pub fn receive(request: &Request, asked: &Asked) -> Received {
    let header = |name: &str| {
        let mut values = request.headers().get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        value.filter(|_| values.next().is_none())
    };
    let none_match = header("if-none-match");
    let matches = header("if-match");
    let condition = match (matches, none_match) {
        (Some(version), None) => Some(Condition::Match(Version(version.to_owned()))),
        (None, Some("*")) => Some(Condition::Absent),
        _ => None,
    };
    let host = HOSTS.iter().position(|url| request.uri() == *url);
    let faithful = match asked {
        Asked::Read { unless } => {
            let known = unless.as_ref().map(|version| version.0.as_str());
            request.method() == "GET" && none_match == known && matches.is_none()
        }
        Asked::Write { bytes, condition: asked, .. } => {
            request.method() == "PUT"
                && condition.as_ref() == Some(asked)
                && Some(&request.body()[..]) == bytes.as_deref()
        }
    };
    let signed = header("authorization").is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256"));
    let wrong = (!faithful || host.is_none() || !signed)
        .then(|| format!("{request:?} with {condition:?} was sent for {asked:?}"));
    let token = header("x-amz-security-token").and_then(|token| token.strip_prefix("generation-"));
    Received {
        condition,
        wrong,
        signed_ms: header("x-amz-date").and_then(signing_time_ms),
        generation: token.and_then(|number| number.parse().ok()).unwrap_or(0),
        host: host.unwrap_or(0),
    }
}

/// `20261121T065812Z` in milliseconds since the Unix epoch.
fn signing_time_ms(text: &str) -> Option<u64> {
    let seconds = OffsetDateTime::parse(text, &Iso8601::PARSING).ok()?.unix_timestamp();
    u64::try_from(seconds).ok().map(|seconds| seconds * 1_000)
}

/// An answer to a request that the store does not carry out, whatever the weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// To another region's host, for this once.
    Redirected,
    /// The signature's time is too far from the store's.
    Skewed,
    /// The credentials have expired.
    Expired,
}

impl Received {
    /// Whether the store turns the request away, so that the client has to ask again.
    pub fn turned(
        &self,
        now_ms: u64,
        manners: &Manners,
        generation: u64,
        redirect: bool,
    ) -> Option<Turned> {
        let apart_ms = self.signed_ms.map(|at_ms| at_ms as i64 - (EPOCH_MS + now_ms) as i64);
        if apart_ms.is_none_or(|apart_ms| apart_ms.abs() > SKEW_MS) {
            return Some(Turned::Skewed);
        }
        if self.generation < generation {
            return Some(Turned::Expired);
        }
        (redirect && manners.aws && self.host == 1).then_some(Turned::Redirected)
    }
}

/// The same answer with what each says of time.
fn telling(facts: &Facts, mut answer: Response) -> Response {
    let times = [("date", facts.date_ms), ("last-modified", facts.last_modified_ms)];
    for (name, ms) in times {
        if let Some(ms) = ms {
            add(&mut answer, name, &http_date(ms));
        }
    }
    for (name, value, is) in [("via", "1.1 relay", facts.relayed), ("age", "1", facts.cached)] {
        if is {
            add(&mut answer, name, value);
        }
    }
    answer
}

fn response(status: u16, facts: &Facts, body: Vec<u8>) -> Response {
    telling(facts, port::answer(status, body))
}

/// What a peer answers, or somebody in its place.
pub fn told(status: u16, proof: Option<&str>, body: &str) -> Response {
    let mut response = response(status, &Facts::default(), body.as_bytes().to_vec());
    if let Some(proof) = proof.and_then(|proof| proof.parse().ok()) {
        response.headers_mut().insert(peer::PROOF, proof);
    }
    response
}

fn error(status: u16, code: &str, facts: &Facts) -> Response {
    telling(facts, port::error(status, code))
}

/// The answer to a request that was turned away.
pub fn turn_away(turned: Turned, now_ms: u64, facts: &Facts) -> Response {
    match turned {
        Turned::Redirected => {
            let mut answer = error(307, "TemporaryRedirect", facts);
            add(&mut answer, "location", HOSTS[2]);
            answer
        }
        Turned::Skewed => {
            let at_ms = i64::try_from(EPOCH_MS + now_ms).expect("a time of this century");
            let time = format!("<ServerTime>{}</ServerTime>", calendar::rfc3339(at_ms));
            telling(facts, port::error_with(403, "RequestTimeTooSkewed", &time))
        }
        Turned::Expired => error(400, "ExpiredToken", facts),
    }
}

/// The answer that says what befell a request instead of the honest one; a broken connection has
/// none.
pub fn trouble(
    trouble: Trouble,
    retry_after_ms: Option<u64>,
    facts: &Facts,
) -> Result<Response, String> {
    let mut answer = match trouble {
        Trouble::ServerError => error(503, "SlowDown", facts),
        Trouble::TooMany => error(429, "TooManyRequests", facts),
        Trouble::Reset => return Err("the connection was reset".to_owned()),
        Trouble::Conflict => error(409, "ConditionalRequestConflict", facts),
        Trouble::Denied => error(403, "AccessDenied", facts),
        Trouble::Misconfigured => error(501, "NotImplemented", facts),
        Trouble::NotFound => response(404, facts, Vec::new()),
        Trouble::Gateway => response(501, facts, b"<html>Not Implemented</html>".to_vec()),
    };
    if let Some(ms) = retry_after_ms {
        add(&mut answer, "retry-after", &(ms / 1_000).to_string());
    }
    Ok(answer)
}

/// The answer to a write that names the version that it was to replace.
pub fn echo(version: &Version, facts: &Facts) -> Response {
    let mut answer = response(200, facts, Vec::new());
    add(&mut answer, "etag", &version.0);
    answer
}

/// The honest answer to what took effect, with what happens to it on the way.
pub fn honest(
    effect: &Effect,
    facts: &Facts,
    known: Option<&Version>,
    mangle: Option<Mangle>,
) -> Response {
    let mut answer = match &effect.outcome {
        Outcome::Found { .. } => {
            response(200, facts, effect.bytes.as_deref().unwrap_or_default().to_vec())
        }
        Outcome::Unchanged => response(304, facts, Vec::new()),
        Outcome::Missing => error(404, "NoSuchKey", facts),
        Outcome::Written { .. } => response(200, facts, Vec::new()),
        _ if effect.absent => error(404, "NoSuchKey", facts),
        _ => error(412, "PreconditionFailed", facts),
    };
    let version = match &effect.outcome {
        Outcome::Found { version, .. } | Outcome::Written { version: Some(version) } => {
            Some(version)
        }
        Outcome::Unchanged => known,
        _ => None,
    };
    let echoed = known.filter(|_| effect.accepted() && mangle == Some(Mangle::Echo));
    let Some(version) = echoed.or(version) else { return answer };
    let etag = match mangle {
        Some(Mangle::NoEtag) => None,
        Some(Mangle::WeakEtag) => Some(format!("W/{}", version.0)),
        Some(Mangle::StarEtag) => Some("*".to_owned()),
        _ => Some(version.0.clone()),
    };
    if let Some(etag) = etag {
        add(&mut answer, "etag", &etag);
    }
    if answer.status() == StatusCode::NOT_MODIFIED {
        return answer;
    }
    match mangle {
        Some(Mangle::CutShort) => {
            let keep = answer.body_mut().bytes.len().saturating_sub(1).min(20);
            answer.body_mut().bytes.truncate(keep);
        }
        Some(Mangle::Oversized) => answer.body_mut().bytes.resize(80 * 1024, b' '),
        Some(Mangle::ErrorDocument) => {
            answer.body_mut().bytes = error(200, "InternalError", facts).into_body().bytes;
        }
        _ => {}
    }
    answer
}

/// What the client has to make of an answer that turned it away for the last time.
pub fn turned_outcome(turned: Turned) -> Trouble {
    match turned {
        Turned::Redirected => Trouble::Misconfigured,
        Turned::Skewed | Turned::Expired => Trouble::Denied,
    }
}

/// Whether the store code says of an answer what it means: the same outcome, and of the time no
/// more than the headers say.
pub fn agrees(said: &Answer, meant: &Answer) -> bool {
    let same = match (&said.outcome, &meant.outcome) {
        (
            Outcome::Unknown { retry_after_ms, cause },
            Outcome::Unknown { retry_after_ms: meant_ms, cause: meant },
        ) => retry_after_ms == meant_ms && cause.kind == meant.kind,
        (Outcome::Rejected(fault), Outcome::Rejected(meant)) => fault.kind == meant.kind,
        (said, meant) => said == meant,
    };
    // The model of a store does not tell apart why it refused; the election treats every refusal alike.
    let doubtful = said.facts.doubtful && said.outcome == Outcome::Refused;
    same && said.facts == Facts { doubtful, ..meant.facts }
}
