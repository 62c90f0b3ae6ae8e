//! The deeper of the two depths: the real S3 store code between the election and the store, down to
//! HTTP requests and answers. The server's side of HTTP is here; what the store does is in
//! `store.rs`.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use edgelect::calendar;
use edgelect::clock::Now;
use edgelect::driver::Host;
use edgelect::lease::Lease;
use edgelect::peer;
use edgelect::remote::{Provide, perform};
use edgelect::request::{self, Body, Request, Response};
use edgelect::sigv4::Credentials;
use edgelect::store::s3::{S3, S3Config};
use edgelect::store::{Answer, Condition, Facts, Operation, Outcome, Record, Version};

use http::{HeaderValue, StatusCode};

use super::clocks::EPOCH_MS;
use super::network::{Mangle, Trouble};
use super::store::{Asked, Effect, Manners};

const BUCKET: &str = "jobs";
const KEY: &str = "leader.json";
const HOSTS: [&str; 3] = [
    "https://s3.example.com/jobs/leader.json",
    "https://jobs.s3.us-east-1.amazonaws.com/leader.json",
    "https://jobs.s3.eu-west-1.amazonaws.com/leader.json",
];

/// How far a signature's time may be from the store's, in milliseconds, as AWS has it.
const SKEW_MS: i64 = 900_000;

/// Where a client's requests leave and its answers come in, one at a time.
#[derive(Default)]
struct Port {
    outbox: RefCell<Option<Request>>,
    inbox: RefCell<Option<Result<Response, String>>>,
    now: Cell<Now>,
}

struct PortHost(Rc<Port>);

impl Host for PortHost {
    fn now(&self) -> Now {
        self.0.now.get()
    }

    async fn sleep(&self, _ms: u64) {
        std::future::pending().await
    }

    fn random(&self) -> Result<[u8; 16], String> {
        Err("chance comes from the seed".to_owned())
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        *self.0.outbox.borrow_mut() = Some(request);
        let answer = poll_fn(|_| match self.0.inbox.borrow_mut().take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        });
        answer.await.map(|mut response| {
            let body = response.body_mut();
            body.truncated = body.bytes.len() > limit;
            body.bytes.truncate(limit);
            response
        })
    }
}

/// The credentials of one member: a generation that the store lets expire.
#[derive(Clone, Default)]
pub struct Keys(Rc<Generations>);

#[derive(Default)]
struct Generations {
    known: Cell<u64>,
    newest: Cell<u64>,
}

impl Provide for Keys {
    async fn credentials(&self, fresh: bool) -> Result<Credentials, String> {
        if fresh {
            self.0.known.set(self.0.newest.get());
        }
        Ok(Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI".to_owned(),
            session_token: Some(format!("generation-{}", self.0.known.get())),
        })
    }
}

/// The real S3 client of one session.
pub struct Client {
    s3: Rc<S3>,
    keys: Keys,
}

/// What a client does next.
pub enum Move {
    Sends(Box<Request>),
    Ends(Box<Answer>),
}

/// One operation of a client under way.
pub struct Conversation {
    port: Rc<Port>,
    future: Pin<Box<dyn Future<Output = Answer>>>,
}

impl Client {
    pub fn new(manners: &Manners) -> Self {
        let s3 = S3::new(S3Config {
            endpoint: (!manners.aws).then(|| "https://s3.example.com".to_owned()),
            bucket: BUCKET.to_owned(),
            region: None,
            path_style: None,
            key: KEY.to_owned(),
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
        let port = Rc::new(Port::default());
        let (s3, keys, host) = (self.s3.clone(), self.keys.clone(), PortHost(port.clone()));
        let future = Box::pin(async move { perform(&*s3, &host, &keys, operation).await });
        Conversation { port, future }
    }
}

impl Conversation {
    /// Goes on until the next request leaves or the operation ends. `answer` is what came back.
    pub fn go_on(
        &mut self,
        client: &Client,
        now: Now,
        newest_keys: u64,
        answer: Option<Result<Response, String>>,
    ) -> Move {
        client.keys.0.newest.set(newest_keys);
        self.port.now.set(now);
        *self.port.inbox.borrow_mut() = answer;
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Move::Ends(Box::new(answer)),
            Poll::Pending => {
                Move::Sends(Box::new(self.port.outbox.borrow_mut().take().expect("it awaits one")))
            }
        }
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
    let part = |from: usize, to: usize| text.get(from..to);
    let [year, month, day] = [part(0, 4)?, part(4, 6)?, part(6, 8)?];
    let [hour, minute, second] = [part(9, 11)?, part(11, 13)?, part(13, 15)?];
    let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    u64::try_from(calendar::read_rfc3339(&text)?.unix_ms).ok()
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

/// An answer with a status and what each carries.
fn response(status: u16, facts: &Facts, body: Vec<u8>) -> Response {
    let date = facts.date_ms.map(http_date);
    let modified = facts.last_modified_ms.map(http_date);
    let headers = [
        date.as_deref().map(|date| ("date", date)),
        modified.as_deref().map(|modified| ("last-modified", modified)),
        facts.relayed.then_some(("via", "1.1 relay")),
        facts.cached.then_some(("age", "1")),
    ];
    let body = Body { bytes: body, truncated: false };
    request::answer(status, headers.into_iter().flatten(), body).expect("it is an answer")
}

fn http_date(unix_ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(unix_ms);
    httpdate::fmt_http_date(at)
}

/// What a peer answers, or somebody in its place.
pub fn told(status: u16, proof: Option<&str>, body: &str) -> Response {
    let mut response = response(status, &Facts::default(), body.as_bytes().to_vec());
    if let Some(proof) = proof.and_then(|proof| proof.parse().ok()) {
        response.headers_mut().insert(peer::PROOF, proof);
    }
    response
}

fn error(status: u16, code: &str, more: &str, facts: &Facts) -> Response {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>modelled\
         </Message>{more}</Error>"
    );
    response(status, facts, body.into_bytes())
}

/// The answer to a request that was turned away.
pub fn turn_away(turned: Turned, now_ms: u64, facts: &Facts) -> Response {
    match turned {
        Turned::Redirected => {
            let mut answer = error(307, "TemporaryRedirect", "", facts);
            answer.headers_mut().append("location", HeaderValue::from_static(HOSTS[2]));
            answer
        }
        Turned::Skewed => {
            let at_ms = i64::try_from(EPOCH_MS + now_ms).expect("a time of this century");
            let time = format!("<ServerTime>{}</ServerTime>", calendar::rfc3339(at_ms));
            error(403, "RequestTimeTooSkewed", &time, facts)
        }
        Turned::Expired => error(400, "ExpiredToken", "", facts),
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
        Trouble::ServerError => error(503, "SlowDown", "", facts),
        Trouble::TooMany => error(429, "TooManyRequests", "", facts),
        Trouble::Reset => return Err("the connection was reset".to_owned()),
        Trouble::Conflict => error(409, "ConditionalRequestConflict", "", facts),
        Trouble::Denied => error(403, "AccessDenied", "", facts),
        Trouble::Misconfigured => error(501, "NotImplemented", "", facts),
        Trouble::NotFound => response(404, facts, Vec::new()),
        Trouble::Gateway => response(501, facts, b"<html>Not Implemented</html>".to_vec()),
    };
    if let Some(ms) = retry_after_ms {
        answer.headers_mut().append("retry-after", (ms / 1_000).into());
    }
    Ok(answer)
}

/// The honest answer to what took effect, with what happens to it on the way.
pub fn honest(effect: &Effect, known: Option<&Version>, mangle: Option<Mangle>) -> Response {
    let facts = &effect.facts;
    let mut answer = match &effect.outcome {
        Outcome::Found { .. } => {
            response(200, facts, effect.bytes.as_deref().unwrap_or_default().to_vec())
        }
        Outcome::Unchanged => response(304, facts, Vec::new()),
        Outcome::Missing => error(404, "NoSuchKey", "", facts),
        Outcome::Written { .. } => response(200, facts, Vec::new()),
        _ if effect.absent => error(404, "NoSuchKey", "", facts),
        _ => error(412, "PreconditionFailed", "", facts),
    };
    let version = match &effect.outcome {
        Outcome::Found { version, .. } | Outcome::Written { version: Some(version) } => {
            Some(version)
        }
        Outcome::Unchanged => known,
        _ => None,
    };
    let Some(version) = version else { return answer };
    let etag = match mangle {
        Some(Mangle::NoEtag) => None,
        Some(Mangle::WeakEtag) => Some(format!("W/{}", version.0)),
        Some(Mangle::StarEtag) => Some("*".to_owned()),
        _ => Some(version.0.clone()),
    };
    if let Some(etag) = etag {
        let etag = HeaderValue::from_str(&etag).expect("versions here are ASCII");
        answer.headers_mut().append("etag", etag);
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
            answer.body_mut().bytes = error(200, "InternalError", "", facts).into_body().bytes;
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
    same && said.facts == meant.facts
}
