//! Requests and answers of a store over HTTP, for every store alike: what is sent, what is answered, and what that means.

use edgelect::Credentials;
use edgelect::lease::{self, Lease, Reading};
use edgelect::protocol::{Next, Protocol};
use edgelect::request::{self, Body, Request, Response};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Record, Version};
use http::{HeaderName, HeaderValue};

pub const NOW_MS: u64 = 1_763_719_200_000;
pub const DATE: &str = "Fri, 21 Nov 2025 10:00:00 GMT";

pub fn credentials() -> Credentials {
    Credentials { session_token: Some("the-token".to_owned()), ..worlds::credentials() }
}

pub fn read() -> Operation {
    Operation::Read { unless: None }
}

pub fn read_unless(version: &Version) -> Operation {
    Operation::Read { unless: Some(version.clone()) }
}

pub fn write(bytes: impl Into<Vec<u8>>, condition: Condition) -> Operation {
    Operation::Write { record: Record::Raw(bytes.into()), condition }
}

/// A write of the lease that this JSON is.
pub fn write_lease(json: impl Into<Vec<u8>>, condition: Condition) -> Operation {
    Operation::Write { record: lease_in(lease::read(&json.into())).into(), condition }
}

#[track_caller]
pub fn lease_in(reading: Reading) -> Lease {
    match reading {
        Reading::Lease(lease) => *lease,
        other => panic!("{other:?}"),
    }
}

/// What a read has found.
#[track_caller]
pub fn found_in(outcome: Outcome) -> (Version, Reading) {
    match outcome {
        Outcome::Found { version, reading } => (version, reading),
        other => panic!("{other:?}"),
    }
}

/// The new version after a write.
#[track_caller]
pub fn written(outcome: Outcome) -> Version {
    match outcome {
        Outcome::Written { version: Some(version) } => version,
        other => panic!("{other:?}"),
    }
}

pub fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
    let body = Body { bytes: body.into(), truncated: false };
    request::answer(status, headers.iter().copied(), body).expect("an answer")
}

/// The same with a body that was not read to its end.
pub fn cut(mut response: Response) -> Response {
    response.body_mut().truncated = true;
    response
}

/// The same with one header more, in place of any of its name.
pub fn with(mut response: Response, name: &str, value: &str) -> Response {
    let name: HeaderName = name.parse().expect("a header's name");
    let value: HeaderValue = value.parse().expect("a header's value");
    response.headers_mut().insert(name, value);
    response
}

pub fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request::text(request.headers(), name)
}

/// The address to the letter; an `Uri` equals texts that differ in the case of the host.
pub fn url(request: &Request) -> String {
    request.uri().to_string()
}

pub struct Talk<'s, P: Protocol> {
    store: &'s P,
    pub exchange: P::Exchange,
    wall_ms: u64,
}

impl<'s, P: Protocol> Talk<'s, P> {
    pub fn new(store: &'s P, operation: Operation) -> Self {
        Self::at(store, operation, NOW_MS)
    }

    /// The same on a machine whose wall clock shows this.
    pub fn at(store: &'s P, operation: Operation, wall_ms: u64) -> Self {
        Self { store, exchange: store.begin(operation), wall_ms }
    }

    /// An operation of which something was sent, and that.
    pub fn begun(store: &'s P, operation: Operation) -> (Self, Request) {
        let mut talk = Self::new(store, operation);
        let request = talk.sends();
        (talk, request)
    }

    pub fn sends(&mut self) -> Request {
        self.tries(&credentials()).expect("it can be sent")
    }

    pub fn tries(&mut self, credentials: &Credentials) -> Result<Request, Fault> {
        self.store.request(&mut self.exchange, credentials, self.wall_ms)
    }

    /// What follows an answer to what was sent last.
    pub fn hears(&mut self, response: Response) -> Next {
        self.store.answer(&mut self.exchange, response, self.wall_ms)
    }

    #[track_caller]
    pub fn again(&mut self, response: Response) -> Request {
        assert_eq!(self.hears(response), Next::Again);
        self.sends()
    }

    #[track_caller]
    pub fn refreshed(&mut self, response: Response) -> Request {
        assert_eq!(self.hears(response), Next::Refresh);
        self.sends()
    }

    pub fn ends(&mut self, response: Response) -> Answer {
        match self.hears(response) {
            Next::Done(answer) => answer,
            other => panic!("the exchange goes on: {other:?}"),
        }
    }

    /// The end where every response is this one, and whether fresh credentials were asked for, which happens once at most.
    fn ends_with(mut self, response: Response) -> (Answer, bool) {
        self.sends();
        match self.hears(response.clone()) {
            Next::Done(answer) => (answer, false),
            Next::Refresh => {
                self.sends();
                (self.ends(response), true)
            }
            Next::Again => panic!("the exchange goes on after {response:?}"),
        }
    }
}

pub fn sent(store: &impl Protocol, operation: Operation) -> Request {
    Talk::begun(store, operation).1
}

/// The answer to an operation whose every response is this one.
pub fn told(store: &impl Protocol, operation: Operation, response: Response) -> Answer {
    told_at(store, operation, response, NOW_MS)
}

/// The same on a machine whose wall clock shows this.
pub fn told_at(store: &impl Protocol, asked: Operation, response: Response, ms: u64) -> Answer {
    Talk::at(store, asked, ms).ends_with(response).0
}

/// Whether the store asks for fresh credentials at each of these times after [`NOW_MS`].
pub fn refreshes<P: Protocol, const N: usize>(
    store: &P,
    operation: &Operation,
    response: &Response,
    after_ms: [u64; N],
) -> [bool; N] {
    let at = |ms| Talk::at(store, operation.clone(), NOW_MS + ms);
    after_ms.map(|ms| at(ms).ends_with(response.clone()).1)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Means {
    Found,
    Missing,
    Unchanged,
    Written,
    Refused,
    Unknown(FaultKind),
    /// Whatever the cause.
    Unsure,
    Rejected(FaultKind),
}

pub fn means(outcome: &Outcome) -> Means {
    match outcome {
        Outcome::Found { .. } => Means::Found,
        Outcome::Missing => Means::Missing,
        Outcome::Unchanged => Means::Unchanged,
        Outcome::Written { .. } => Means::Written,
        Outcome::Refused => Means::Refused,
        Outcome::Unknown { cause, .. } => Means::Unknown(cause.kind),
        Outcome::Rejected(fault) => Means::Rejected(fault.kind),
    }
}

/// Each of these answers to each of these operations means this; the faults, if it is one. None shows a secret, or repeats
/// what others say.
#[track_caller]
pub fn mean<P: Protocol>(
    store: impl Fn() -> P,
    operations: &[Operation],
    responses: impl IntoIterator<Item = Response>,
    expected: Means,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for response in responses {
        for operation in operations {
            let outcome = told(&store(), operation.clone(), response.clone()).outcome;
            let body = String::from_utf8_lossy(&response.body().bytes).into_owned();
            let (status, headers) = (response.status(), response.headers());
            let found = match means(&outcome) {
                Means::Unknown(_) if expected == Means::Unsure => Means::Unsure,
                found => found,
            };
            assert_eq!(found, expected, "{operation:?}: {status} {headers:?} {body:?}");
            let fault = fault_of(outcome);
            let shown = fault.as_ref().map_or("", |fault| fault.message.as_str());
            let secrets = ["the-secret", "the-token", "the-message"];
            assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
            faults.extend(fault);
        }
    }
    faults
}

#[track_caller]
pub fn all_say(faults: &[Fault], words: &[&str]) {
    for fault in faults {
        let missing = words.iter().find(|word| !fault.message.contains(**word));
        assert_eq!(missing, None, "{fault}");
    }
}

fn fault_of(outcome: Outcome) -> Option<Fault> {
    match outcome {
        Outcome::Rejected(fault) | Outcome::Unknown { cause: fault, .. } => Some(fault),
        _ => None,
    }
}

#[track_caller]
pub fn fault(outcome: Outcome) -> Fault {
    fault_of(outcome.clone()).unwrap_or_else(|| panic!("no fault: {outcome:?}"))
}
