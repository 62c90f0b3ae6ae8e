//! One lease object in an S3 bucket: which request an operation is, and what the answer to it means.
//!
//! No fetch and no clock: the host sends what [`Exchange::request`] gives and tells [`Exchange::answer`] what
//! came back, until it says [`Next::Done`]:
//!
//! ```text
//! let mut exchange = s3.begin(operation);
//! loop { send(exchange.request(&s3, &credentials, now)?) -> response; match exchange.answer(&s3, response, now) {
//!     Again => continue, Refresh => ask for new credentials and continue, Done(answer) => break } }
//! ```
//!
//! A request is sent again inside one exchange only after an answer that shows that it did nothing: a redirect,
//! a wrong clock, a wrong region, expired credentials; each of them a bounded number of times, always under the
//! same condition. Everything else is for the election to judge. A write is [`Outcome::Rejected`] only where the
//! store itself says so; where an answer may come from something in between, it is [`Outcome::Unknown`] (S8).
//!
//! Sources: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html> and
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>.

pub(in crate::store) mod address;
mod answer;
pub(in crate::store) mod document;

use std::cell::RefCell;

use http::Method;

use self::address::Address;
pub use self::address::S3Config;
use self::answer::{Heard, is_version, region_of, store_time_ms};
use crate::config::ConfigError;
use crate::lease::{Format, MAX_RECORD_BYTES};
use crate::planted::planted;
pub use crate::protocol::Next;
use crate::protocol::Protocol;
use crate::request::{self, Request, Response};
use crate::sigv4::{self, Coverage, Credentials, KeyCache, SignError};
use crate::store::sentences::EXPIRED;
use crate::store::{
    Answer, Condition, Fault, FaultKind, Operation, Outcome, Record, Version, heard, is_probe,
};
use crate::text::quoted;

/// How many redirects one exchange follows.
const MAX_HOPS: u8 = 2;

/// Codes of a key that the store does not know, or not with this secret: it may have been rotated.
pub(super) const UNKNOWN_KEY: [&str; 6] = [
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    // R2's, with a 401.
    "Unauthorized",
    "UnrecognizedClientException",
];

/// How long after the provider was asked because of [`UNKNOWN_KEY`] it is asked again, in milliseconds: a key that is simply
/// wrong must not cost a question for each request.
const REASK_MS: u64 = 10_000;

/// When the provider was last asked because the store did not know the key, by the own wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reasked(Option<u64>);

impl Reasked {
    /// Whether to ask the provider, having received this code.
    pub fn asks(&mut self, code: &str, wall_ms: u64) -> bool {
        let due = self.0.is_none_or(|asked_ms| wall_ms.abs_diff(asked_ms) >= REASK_MS);
        let asks = due && UNKNOWN_KEY.contains(&code);
        if asks {
            self.0 = Some(wall_ms);
        }
        asks
    }
}

/// The headers of an answer that anybody here reads; a host need not hand over others.
pub const ANSWER_HEADERS: [&str; 10] = [
    "age",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "via",
    "x-amz-bucket-region",
    "x-amz-request-id",
];

/// One lease object, and what its store taught us across operations.
#[derive(Debug)]
pub struct S3 {
    bucket: String,
    key: String,
    encoded_key: String,
    format: Format,
    /// Whether the host follows from the region, because no endpoint was given.
    by_region: bool,
    /// The address and region that the settings give.
    configured: (Address, String),
    learned: RefCell<Learned>,
}

/// What answers have corrected.
#[derive(Debug)]
struct Learned {
    address: Address,
    region: String,
    /// What to add to the own wall clock for signing, in milliseconds. For nothing else: no lease knows it.
    clock_offset_ms: i64,
    keys: KeyCache,
    reasked: Reasked,
}

/// One operation on its way: a request, its answer, perhaps another request.
#[derive(Debug)]
pub struct Exchange {
    operation: Operation,
    target: Option<Target>,
    /// Where an answer sends this operation, and with which region.
    detour: Option<(Address, String)>,
    /// Whether later operations go there too, once the store has answered from there.
    lasting: bool,
    hops: u8,
    learned_clock: bool,
    learned_region: bool,
    refreshed: bool,
}

/// What an exchange of the epoch layout asks for beside the store's own key.
#[derive(Clone, Debug)]
pub(in crate::store) struct Target {
    /// The key, or the beginning of keys, for people.
    pub key: String,
    /// What follows the bucket in the URL, encoded.
    pub encoded: String,
    /// An epoch is overwritten by its creator, on no condition.
    pub unconditional: bool,
}

impl S3 {
    /// The object that a configuration names.
    ///
    /// # Errors
    /// The option that cannot be used, its value (without what may be a secret) and the rule.
    pub fn new(config: S3Config) -> Result<Self, ConfigError> {
        let checked = config.check()?;
        Ok(Self {
            encoded_key: address::encode_key(&config.key),
            bucket: config.bucket,
            key: config.key,
            format: config.format,
            by_region: checked.by_region,
            configured: (checked.address.clone(), checked.region.clone()),
            learned: RefCell::new(Learned {
                address: checked.address,
                region: checked.region,
                clock_offset_ms: 0,
                keys: KeyCache::default(),
                reasked: Reasked::default(),
            }),
        })
    }

    /// Another object of the same bucket, native, with what this one has learned of its store.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        address::check_key(key)?;
        let learned = self.learned.borrow();
        Ok(Self {
            encoded_key: address::encode_key(key),
            bucket: self.bucket.clone(),
            key: key.to_owned(),
            format: Format::Native,
            by_region: self.by_region,
            configured: self.configured.clone(),
            learned: RefCell::new(Learned {
                address: learned.address.clone(),
                region: learned.region.clone(),
                clock_offset_ms: learned.clock_offset_ms,
                keys: KeyCache::default(),
                reasked: Reasked::default(),
            }),
        })
    }

    /// Begins an operation.
    pub fn begin(&self, operation: Operation) -> Exchange {
        Exchange {
            operation,
            target: None,
            detour: None,
            lasting: false,
            hops: 0,
            learned_clock: false,
            learned_region: false,
            refreshed: false,
        }
    }

    /// Begins an operation on something else in the same bucket.
    pub(in crate::store) fn begin_at(&self, operation: Operation, target: Target) -> Exchange {
        Exchange { target: Some(target), ..self.begin(operation) }
    }

    /// The name for errors and status, such as `S3 bucket "jobs" at https://…`.
    pub fn describe(&self) -> String {
        named(&self.bucket, &self.learned.borrow().address.shown(&self.bucket))
    }

    /// What one answer taught may be why the next is refused: the settings are tried again, and what is right is learned anew.
    fn unlearn(&self) {
        let learned = &mut *self.learned.borrow_mut();
        (learned.address, learned.region) = self.configured.clone();
        learned.clock_offset_ms = 0;
    }
}

impl Protocol for S3 {
    type Exchange = Exchange;

    const ANSWER_LIMIT: usize = MAX_RECORD_BYTES + 1;

    fn begin(&self, operation: Operation) -> Exchange {
        self.begin(operation)
    }

    fn request(
        &self,
        exchange: &mut Exchange,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault> {
        exchange.request(self, credentials, wall_ms)
    }

    fn answer(&self, exchange: &mut Exchange, response: Response, wall_ms: u64) -> Next {
        exchange.answer(self, response, wall_ms)
    }

    fn silence(&self, _: &mut Exchange, cause: Fault) -> Answer {
        Answer::unknown(cause)
    }

    fn beside(&self, key: &str) -> Option<Self> {
        // A key that has no room for a probe's is no violation.
        self.at(key).ok()
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn writes_apart_ms(&self) -> u64 {
        self.configured.0.writes_apart_ms()
    }

    fn describe(&self) -> String {
        self.describe()
    }
}

fn named(bucket: &str, origin: &str) -> String {
    format!("S3 bucket {} at {origin}", quoted(bucket))
}

/// Requests.
impl Exchange {
    /// The signed request to send now. `wall_ms` is the own wall clock in milliseconds since the Unix epoch.
    /// `Host` and `Content-Length` are left to whoever sends it.
    ///
    /// # Errors
    /// Nothing can be sent: credentials that no header can carry, a version that no store would have given.
    pub fn request(
        &mut self,
        s3: &S3,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault> {
        if self.deletes_a_lease(s3) {
            return Err(Fault::not_deleted(&s3.describe()));
        }
        let learned = &mut *s3.learned.borrow_mut();
        let (address, region) = match &self.detour {
            Some((address, region)) => (address, region),
            None => (&learned.address, &learned.region),
        };
        let url = address.url(&s3.bucket, self.encoded_key(s3));
        let (method, condition) = self.method_and_condition();
        let unfit = |kind, why: &str| {
            let origin = address.origin(&s3.bucket);
            let text = format!("{}: nothing was sent: {why}", named(&s3.bucket, &origin));
            Fault::new(kind, text)
        };
        let body = match &self.operation {
            Operation::Write { record, .. } => record.body(s3.format),
            Operation::Read { .. } | Operation::Delete => Vec::new(),
        };
        let header = match condition {
            None => None,
            Some((_, Some(version))) if planted!(NoEtagNoCondition) && version.0.is_empty() => None,
            Some((name, None)) => Some((name, "*")),
            Some((name, Some(version))) if is_version(&version.0) => {
                Some((name, version.0.as_str()))
            }
            // A condition such as `*` would let every write pass (S3).
            Some(_) => {
                return Err(unfit(FaultKind::Nonsense, "the version is not one that S3 gives"));
            }
        };
        let mut request = request::new(method, &url, header.as_slice(), body)
            .map_err(|_| unfit(FaultKind::Misconfigured, "the address is no URL"))?;
        let signing_ms = wall_ms.saturating_add_signed(learned.clock_offset_ms);
        let coverage = &Coverage::CONDITIONAL;
        sigv4::sign(
            &mut request,
            credentials,
            [region, "s3"],
            signing_ms,
            &mut learned.keys,
            coverage,
        )
        .map_err(|error| match error {
            SignError::NoCredentials | SignError::BadCredentials => {
                unfit(FaultKind::Denied, &format!("{}; check the credentials", error.text()))
            }
            SignError::NoHost | SignError::RawPath => unfit(FaultKind::Misconfigured, error.text()),
        })?;
        Ok(request)
    }

    fn encoded_key<'a>(&'a self, s3: &'a S3) -> &'a str {
        self.target.as_ref().map_or(&s3.encoded_key, |target| &target.encoded)
    }

    fn key<'a>(&'a self, s3: &'a S3) -> &'a str {
        self.target.as_ref().map_or(&s3.key, |target| &target.key)
    }

    /// With the condition's name comes the version that it names; without one it is `*`.
    fn method_and_condition(&self) -> (Method, Option<(&'static str, Option<&Version>)>) {
        match &self.operation {
            Operation::Read { unless: None } => (Method::GET, None),
            Operation::Read { unless: Some(known) } => {
                (Method::GET, Some(("if-none-match", Some(known))))
            }
            Operation::Write { condition: Condition::Absent, .. } => {
                (Method::PUT, Some(("if-none-match", None)))
            }
            Operation::Write { record, .. } if self.unconditional(record) => (Method::PUT, None),
            Operation::Write { condition: Condition::Match(held), .. } => {
                let copied = planted!(CopySourceCondition);
                let name = if copied { "x-amz-copy-source-if-match" } else { "if-match" };
                (Method::PUT, Some((name, Some(held))))
            }
            Operation::Delete => (Method::DELETE, None),
        }
    }

    /// Whether this exchange would delete the lease itself. What the epoch layout names, it has chosen itself.
    fn deletes_a_lease(&self, s3: &S3) -> bool {
        self.operation == Operation::Delete && self.target.is_none() && !is_probe(&s3.key)
    }

    /// Whether an update goes out on no condition: by the creator of an epoch, or by a planted bug.
    fn unconditional(&self, record: &Record) -> bool {
        if let Some(target) = &self.target {
            return target.unconditional;
        }
        if planted!(TombstoneUnconditional) {
            return matches!(record, Record::Lease(lease) if lease.released());
        }
        if planted!(RedirectDropsCondition) {
            return self.hops > 0;
        }
        planted!(UpdateUnconditional)
    }
}

/// Answers.
impl Exchange {
    /// What an answer means. `wall_ms` is the own wall clock when it came.
    pub fn answer(&mut self, s3: &S3, response: Response, wall_ms: u64) -> Next {
        let document = document::read(&response.body().bytes);
        self.judge(s3, &Heard { response, document }, wall_ms)
    }

    fn judge(&mut self, s3: &S3, heard: &Heard, wall_ms: u64) -> Next {
        if let Some(next) = self.recover(s3, heard, wall_ms) {
            return next;
        }
        if matches!(heard.response.status().as_u16(), 400 | 401 | 403) {
            s3.unlearn();
        }
        let mut facts = heard::facts(&heard.response);
        let outcome = match &self.operation {
            Operation::Read { unless } => self.judge_read(s3, heard, &facts, unless.as_ref()),
            Operation::Write { .. } => match self.judge_write(s3, heard, &facts) {
                Outcome::Unknown { cause, .. } if planted!(FailureDidNotLand) => {
                    Outcome::Rejected(cause)
                }
                outcome => outcome,
            },
            Operation::Delete => match heard.response.status().as_u16() {
                200..=299 | 404 => Outcome::Missing,
                _ => self.judge_failure(s3, heard, &facts),
            },
        };
        facts.doubtful = outcome == Outcome::Refused && self.is_doubtful(heard);
        let answered = matches!(
            outcome,
            Outcome::Found { .. }
                | Outcome::Unchanged
                | Outcome::Missing
                | Outcome::Written { .. }
                | Outcome::Refused
        );
        if answered && !facts.doubtful {
            self.has_answered(s3);
        }
        Next::Done(Answer { outcome, facts })
    }

    /// The store has answered from where this operation was sent: later ones go there, too.
    pub(in crate::store) fn has_answered(&mut self, s3: &S3) {
        if let Some(place) = self.detour.take().filter(|_| self.lasting) {
            let learned = &mut *s3.learned.borrow_mut();
            (learned.address, learned.region) = place;
        }
    }

    /// The answers after which the same request, signed otherwise, may do.
    fn recover(&mut self, s3: &S3, heard: &Heard, wall_ms: u64) -> Option<Next> {
        if !(300..500).contains(&heard.response.status().as_u16()) {
            // Whatever the document says, the request may have been carried out.
            return None;
        }
        if heard.code() == "RequestTimeTooSkewed" && !self.learned_clock {
            let offset_ms = store_time_ms(heard)?.checked_signed_diff(wall_ms)?;
            s3.learned.borrow_mut().clock_offset_ms = offset_ms;
            self.learned_clock = true;
            return Some(Next::Again);
        }
        let expired = EXPIRED.contains(&heard.code());
        if !self.refreshed
            && (expired || s3.learned.borrow_mut().reasked.asks(heard.code(), wall_ms))
        {
            self.refreshed = true;
            return Some(Next::Refresh);
        }
        let recovered = match heard.response.status().as_u16() {
            301 | 307 | 308 => self.follow(s3, heard),
            400 => self.learn_region(s3, heard),
            _ => false,
        };
        recovered.then_some(Next::Again)
    }

    /// Follows a redirect; false if it may not be followed or leads nowhere new.
    fn follow(&mut self, s3: &S3, heard: &Heard) -> bool {
        let (address, region) = self.place(s3);
        let named_region = region_of(heard);
        let target =
            heard.header("location").or_else(|| heard.document.as_ref()?.endpoint.as_deref());
        if target.is_none() && self.is_unfounded(heard) {
            return false;
        }
        let next = match (target, &named_region) {
            (Some(target), _) => address.redirected(target, &s3.bucket),
            (None, Some(region)) if address.is_aws() => Some((address.moved(region), None)),
            (None, _) => Some((address.clone(), None)),
        };
        let Some((next, implied_region)) = next else { return false };
        let next = (next, named_region.or(implied_region).unwrap_or_else(|| region.clone()));
        if self.hops >= MAX_HOPS || next == (address, region) {
            return false;
        }
        self.hops += 1;
        // AWS: a temporary redirect's endpoint is not to be used again, nor where that leads.
        let lasting = self.lasting || self.detour.is_none();
        self.lasting = lasting && heard.response.status().as_u16() != 307;
        self.detour = Some(next);
        true
    }

    /// Takes the region that a 400 names; false if it names no new one.
    fn learn_region(&mut self, s3: &S3, heard: &Heard) -> bool {
        let Some(region) = region_of(heard) else { return false };
        let (address, current) = self.place(s3);
        if self.learned_region || current == region || self.is_unfounded(heard) {
            return false;
        }
        self.learned_region = true;
        let address = if s3.by_region { address.moved(&region) } else { address };
        // Not where a temporary redirect has led.
        self.lasting |= self.detour.is_none();
        self.detour = Some((address, region));
        true
    }

    /// Whether a write may have been carried out all the same: nothing but a header says that the answer is the store's.
    fn is_unfounded(&self, heard: &Heard) -> bool {
        heard.document.is_none() && matches!(self.operation, Operation::Write { .. })
    }

    /// Where this operation goes now, and with which region.
    fn place(&self, s3: &S3) -> (Address, String) {
        let learned = s3.learned.borrow();
        self.detour.clone().unwrap_or_else(|| (learned.address.clone(), learned.region.clone()))
    }
}
