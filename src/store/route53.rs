//! One lease in a TXT record set of a Route 53 hosted zone, on the layout of shardcoordinator (`record`).
//!
//! A write is one `ChangeResourceRecordSets`: DELETE of the exact old values and CREATE of the new ones, or
//! CREATE alone where there was nothing. Route 53 carries out both or none, and the values are the version: all
//! that was judged is what must still be there (S3). No two values of ours are equal (S4).
//!
//! # Reads may be old
//!
//! Route 53 promises no more of a read than that it shows what was there at some time. That can cost time, and
//! no rule:
//!
//! * **What is claimed** is what is deleted. Whoever claims a tombstone, a lease parked for it, its own record
//!   or one whose age is proven (S6) is refused unless that very record is the newest one at that moment. The
//!   age holds too: it counts from an answer that showed the record, and the record was older than any such
//!   answer.
//! * **Old absence**: the CREATE is refused. One that is accepted met true absence, and its grace (S7) counts
//!   from that answer or from a read-back that shows it: both are later.
//! * **A read-back that shows a write of ours** proves that it landed, and the other attempts on its condition
//!   can't any more. It may have been replaced meanwhile, but only by somebody who proved an age after it was
//!   sent, so that its own fence comes first (S5).
//! * **A read-back that shows the held version** means "not yet" as anywhere (S8): the next attempt has the
//!   same condition, and the fence holds.
//! * **A read-back that shows anything else** means lost, and that may be wrong: a term is given up for
//!   nothing, never the other way round. A schedule could also take an old record of another session for proof
//!   that its own claim did not land, and call a slot skipped that it holds itself.
//!
//! So this store does not let an elector see the past where it knows better: a record with a lower term than
//! one that it has seen, or an earlier one of the same session, is an answer that says nothing (S2 makes terms
//! grow), and so is absence soon after an accepted write. Both for a while only, so that a restored record is
//! met one day.
//!
//! There is no `Last-Modified`: ages are watched (S6 (a)).
//!
//! Sources: <https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html>,
//! <https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html>,
//! <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html>.

mod record;
mod xml;

use std::cell::RefCell;

use http::Method;

use self::record::Content;
use self::xml::{Document, RecordSet, Values};
use crate::config::ConfigError;
use crate::lease::{Flaw, Lease, MAX_LEASE_MS, MIN_LEASE_MS, Reading, Remains, Stamp};
use crate::protocol::{Next, Protocol};
use crate::request::{Request, Response};
use crate::sigv4::Credentials;
use crate::store::sentences::{self, BUSY, EXPIRED, OTHER_WRITE};
use crate::store::service::{self, FirstSight, Service, Tried};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Version, heard,
};
use crate::text::{first, quoted};

/// Where Route 53 is.
const HOST: &str = "route53.amazonaws.com";

/// The one region that signatures name, in each of AWS's partitions.
fn region(endpoint: Option<&str>) -> &'static str {
    let endpoint = endpoint.unwrap_or(HOST).trim_end_matches('/').to_ascii_lowercase();
    match endpoint {
        china if china.ends_with("route53.amazonaws.com.cn") => "cn-northwest-1",
        government if government.ends_with("route53.us-gov.amazonaws.com") => "us-gov-west-1",
        _ => "us-east-1",
    }
}

/// For how long a record that is provably old is not shown, in milliseconds.
const OLD_MS: u64 = 600_000;

/// For how long at least an accepted record is not believed to be gone, in milliseconds: Route 53 needs up to a minute
/// to tell all of itself.
const GONE_MS: u64 = 60_000;

/// Codes that mean "not with these credentials".
const DENIED: [&str; 10] = [
    "AccessDenied",
    "AccessDeniedException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
];

/// Codes of a service that is unwell or busy, whatever the status. Another change of the zone under way, and more than
/// five requests a second of one account, are among them.
const PASSING: [&str; 9] = [
    "InternalError",
    "InternalFailure",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequests",
];

/// Where the lease is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route53Config {
    /// The service's address. Left out: AWS's.
    pub endpoint: Option<String>,
    /// The id of the hosted zone, such as `Z1234567890ABC`; also as `/hostedzone/Z1234567890ABC`.
    pub hosted_zone_id: String,
    /// What the record's name begins with, such as `lock`.
    pub record_prefix: String,
    /// The domain that the record's name ends with: the zone's, or one below it.
    pub domain_name: String,
    /// The shard: the middle of the record's name (`lockfilePath`).
    pub shard_id: String,
    /// The own lease in milliseconds (`leaderTimeout`): records of other makes are watched for no less.
    pub lease_ms: u64,
}

/// One lease in a TXT record set, and what its store taught us across operations.
#[derive(Debug)]
pub struct Route53 {
    service: Service,
    config: Route53Config,
    zone: String,
    /// `lock.jobs.example.com`, without a dot at its end.
    name: String,
    learned: RefCell<Learned>,
}

#[derive(Clone, Debug, Default)]
struct Learned {
    newest: Option<Newest>,
    /// The last record of ours that was accepted, if no other was seen since; when, and for how long it is there.
    own: Option<(Version, u64, u64)>,
    /// Of a foreign record, by its epoch.
    foreign: FirstSight,
}

/// The newest record of edgelect's that was seen here.
#[derive(Clone, Debug)]
struct Newest {
    term: u64,
    session: String,
    sequence: u64,
    /// When an answer last showed it, by the own wall clock.
    wall_ms: u64,
}

/// One operation on its way.
#[derive(Debug)]
pub struct Exchange {
    operation: Operation,
    tried: Tried,
    /// What the last request writes.
    writes: Option<(Version, Box<Lease>)>,
}

/// An answer, taken apart.
struct Heard<'a> {
    status: u16,
    code: &'a str,
    message: &'a str,
    response: &'a Response,
    facts: Facts,
}

/// The rule that an owner id breaks, if it does: it has no blank, no quotation mark, no backslash, no tilde in front,
/// and fits into one string of a TXT record. It is the group's `serverId`; a session's own id always does.
///
/// # Errors
/// The rule.
pub fn check_owner(owner: &str) -> Result<(), ConfigError> {
    match record::owner_flaw(owner) {
        Some(rule) => Err(ConfigError::new("serverId", quoted(first(owner, 100)), rule)),
        None => Ok(()),
    }
}

impl Route53Config {
    fn check(&self) -> Result<(String, String), ConfigError> {
        let refuse = |field, value: &str, rule| {
            Err(ConfigError::new(field, quoted(first(value, 300)), rule))
        };
        let zone = self.hosted_zone_id.trim_start_matches('/');
        let zone = zone.strip_prefix("hostedzone/").unwrap_or(zone);
        if !(1..=32).contains(&zone.len()) || !zone.bytes().all(|b| b.is_ascii_alphanumeric()) {
            let rule = "is the id of a hosted zone, such as Z1234567890ABC";
            return refuse("hostedZoneId", &self.hosted_zone_id, rule);
        }
        if !(MIN_LEASE_MS..=MAX_LEASE_MS).contains(&self.lease_ms) {
            return refuse("leaseMs", &self.lease_ms.to_string(), "is from a second to an hour");
        }
        if self.shard_id.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let rule = "is written in lower case: DNS takes upper and lower case for the same name";
            return refuse("lockfilePath", &self.shard_id, rule);
        }
        let domain = self.domain_name.strip_suffix('.').unwrap_or(&self.domain_name);
        let parts = [
            ("recordPrefix", self.record_prefix.as_str()),
            ("lockfilePath", &self.shard_id),
            ("domainName", domain),
        ];
        for (field, part) in parts {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
            if !part.split('.').all(label) {
                let rule = "is part of a record's name: labels of 1 to 63 letters, digits, dashes and underscores, \
                            with a dot between two";
                return refuse(field, part, rule);
            }
        }
        let name = parts.map(|(_, part)| part).join(".").to_ascii_lowercase();
        if name.len() > 254 {
            let rule =
                "is too long: with prefix, shard and domain a record's name has at most 255 bytes";
            return refuse("lockfilePath", &self.shard_id, rule);
        }
        Ok((zone.to_owned(), name))
    }
}

impl Route53 {
    /// The record that a configuration names.
    ///
    /// # Errors
    /// The option that cannot be used, its value and the rule.
    pub fn new(config: Route53Config) -> Result<Self, ConfigError> {
        let (zone, name) = config.check()?;
        let endpoint = config.endpoint.as_deref();
        let service =
            Service::new("route53", endpoint, Some(region(endpoint)), |_| HOST.to_owned())?;
        Ok(Self { service, config, zone, name, learned: RefCell::default() })
    }

    /// Values and epoch of a body. The epoch counts from `lastUpdated`, which is storage time by the clock with which the
    /// election counts: neither a step of the wall clock nor the `Date` of something in between reaches it. The second
    /// on top is what `Date` may have been rounded down by. A tombstone's epoch is long past: a member of another make
    /// takes it at once.
    fn compose(&self, record: &Record) -> Result<(Version, Box<Lease>), String> {
        let Record::Lease(lease) = record else {
            return Err("it is no lease".to_owned());
        };
        if let Err(error) = check_owner(&lease.leader_id) {
            return Err(error.message());
        }
        let lease_ms = lease.lease_ms.unwrap_or(self.config.lease_ms);
        let epoch = match lease.last_updated {
            Stamp::Released => 0,
            Stamp::At(updated_ms) => {
                let updated_ms = u64::try_from(updated_ms).unwrap_or(0);
                updated_ms.saturating_add(lease_ms).div_ceil(1_000) + 1
            }
        };
        let version =
            record::write(lease, epoch).and_then(|values| record::version(record::TTL, &values));
        match version {
            Some(version) => Ok((version, lease.clone())),
            None => Err("it does not fit into the 4,000 characters of a value; shorten serverAddr"
                .to_owned()),
        }
    }
}

impl Protocol for Route53 {
    type Exchange = Exchange;

    /// A listing of one record set of the size that can still be replaced, with room for XML's own escapes.
    const ANSWER_LIMIT: usize = 128 * 1024;

    fn begin(&self, operation: Operation) -> Exchange {
        Exchange { operation, tried: Tried::default(), writes: None }
    }

    fn request(
        &self,
        exchange: &mut Exchange,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault> {
        let zone = format!("/2013-04-01/hostedzone/{}/rrset", self.zone);
        let who = self.describe();
        let mut request = match &exchange.operation {
            Operation::Read { .. } => {
                let query = format!("?maxitems=1&name={}.&type=TXT", self.name);
                self.service.request(Method::GET, &(zone + &query), &[], String::new(), &who)?
            }
            Operation::Write { record, condition } => {
                let unfit = |kind, why: &str| {
                    Fault::new(kind, format!("{}: nothing was sent: {why}", self.describe()))
                };
                let old = match condition {
                    Condition::Absent => None,
                    Condition::Match(held) => match record::of_version(held) {
                        Some((ttl, values)) => Some(Values { ttl, values }),
                        None => {
                            let why = "the version is not one that this store gives";
                            return Err(unfit(FaultKind::Nonsense, why));
                        }
                    },
                };
                let (version, lease) =
                    self.compose(record).map_err(|why| unfit(FaultKind::Misconfigured, &why))?;
                let (ttl, values) = record::of_version(&version).expect("it was just made");
                let batch = xml::batch(&self.name, old.as_ref(), &Values { ttl, values });
                exchange.writes = Some((version, lease));
                let headers = [("content-type", "text/xml")];
                self.service.request(Method::POST, &(zone + "/"), &headers, batch, &who)?
            }
            // It would cost two of the five requests a second that an account has.
            Operation::Delete => return Err(Fault::not_deleted(&who)),
        };
        self.service.sign(&mut request, credentials, wall_ms, &who)?;
        Ok(request)
    }

    fn answer(&self, exchange: &mut Exchange, response: Response, wall_ms: u64) -> Next {
        // It would be of another object: no record set of Route 53 has one.
        let facts = Facts { last_modified_ms: None, ..heard::facts(&response) };
        let whole = !response.body().truncated;
        let document = if whole { xml::read(&response.body().bytes) } else { None };
        let (code, message) = match &document {
            Some(Document::Error { code, message }) => (code.as_str(), message.as_str()),
            _ => ("", ""),
        };
        if let Some(next) = self.service.recover(&mut exchange.tried, code, &response, wall_ms) {
            return next;
        }
        let heard =
            Heard { status: response.status().as_u16(), code, message, response: &response, facts };
        let outcome = match (&exchange.operation, &document) {
            (Operation::Read { unless }, Some(Document::Listing(sets))) if heard.status == 200 => {
                self.judge_listing(exchange, &heard, sets, unless.as_ref(), wall_ms)
            }
            (Operation::Write { .. }, Some(Document::Changed)) if heard.status == 200 => {
                self.accepted(exchange, wall_ms)
            }
            _ => self.judge_failure(exchange, &heard),
        };
        Next::Done(Answer { outcome, facts })
    }

    fn silence(&self, _: &mut Exchange, cause: Fault) -> Answer {
        Answer::unknown(cause)
    }

    fn describe(&self) -> String {
        format!(
            "Route 53 record {} in zone {} at {}",
            quoted(&self.name),
            self.zone,
            self.service.origin()
        )
    }
}

/// Answers.
impl Route53 {
    fn accepted(&self, exchange: &Exchange, wall_ms: u64) -> Outcome {
        let Some((version, lease)) = &exchange.writes else {
            return Outcome::Written { version: None };
        };
        let learned = &mut *self.learned.borrow_mut();
        learned.note(lease, wall_ms);
        let there_ms = lease.lease_ms.unwrap_or(0).max(GONE_MS);
        learned.own = Some((version.clone(), wall_ms, there_ms));
        Outcome::Written { version: Some(version.clone()) }
    }

    fn judge_listing(
        &self,
        exchange: &Exchange,
        heard: &Heard<'_>,
        sets: &[RecordSet],
        unless: Option<&Version>,
        wall_ms: u64,
    ) -> Outcome {
        let reject =
            |kind, advice: &str| Outcome::Rejected(self.fault(exchange, heard, kind, advice));
        let old = |advice: &str| Outcome::Unknown {
            retry_after_ms: None,
            cause: self.fault(exchange, heard, FaultKind::Unavailable, advice),
        };
        let ours = |set: &&RecordSet| {
            set.kind == "TXT"
                && record::plain_name(&set.name).as_deref() == Some(self.name.as_bytes())
        };
        // Route 53 begins at the name that was asked for, or behind it.
        let Some(set) = sets.iter().find(ours) else {
            let gone = |(_, since_ms, ms): &(_, u64, u64)| wall_ms.abs_diff(*since_ms) <= *ms;
            return match self.learned.borrow().own.as_ref().is_some_and(gone) {
                true => old("it shows no record where it has just accepted one; it is asked again"),
                false => Outcome::Missing,
            };
        };
        let version = set.ttl.and_then(|ttl| record::version(ttl, &set.values));
        let Some(mut version) = version.filter(|_| !set.special) else {
            return reject(
                FaultKind::Misconfigured,
                "the name belongs to an alias, a record with a routing policy, or one \
                too large to be replaced; use another recordPrefix, or delete it",
            );
        };
        let own = self.learned.borrow().own.as_ref().map(|(own, ..)| own.clone());
        for known in own.iter().chain(unless) {
            if record::same(known, &version) {
                version = known.clone();
            }
        }
        let reading = self.judge_values(&version, &set.values, heard, wall_ms);
        let learned = &mut *self.learned.borrow_mut();
        if let Reading::Lease(lease) = &reading {
            if learned.is_old(lease, wall_ms) {
                return old(
                    "it shows an earlier record than it has shown before; it is asked again",
                );
            }
            learned.note(lease, wall_ms);
        }
        if learned.own.as_ref().is_some_and(|(own, ..)| *own != version) {
            learned.own = None;
        }
        if unless == Some(&version) && !learned.foreign.is_of(&version) {
            return Outcome::Unchanged;
        }
        Outcome::Found { version, reading }
    }

    fn judge_values(
        &self,
        version: &Version,
        values: &[String],
        heard: &Heard<'_>,
        wall_ms: u64,
    ) -> Reading {
        let storage_ms = service::foreign_clock_ms(&heard.facts, wall_ms);
        match record::read(values) {
            Some(Content::Native { reading: Reading::Unreadable(flaw, told), epoch }) => {
                Reading::Unreadable(flaw, told.and(service::foreign_remains(epoch, storage_ms)))
            }
            Some(Content::Native { reading, .. }) => reading,
            Some(Content::Foreign { owner, epoch }) => {
                let ahead_ms = service::foreign_ahead_ms(epoch, storage_ms);
                let sight = &self.learned.borrow().foreign;
                let lasts_ms = sight.lasts_ms(version, ahead_ms, &heard.facts, wall_ms);
                let lease = record::foreign(owner, epoch, lasts_ms, self.config.lease_ms);
                Reading::Lease(Box::new(lease))
            }
            None => Reading::Unreadable(Flaw::Foreign, Remains::NONE),
        }
    }

    fn judge_failure(&self, exchange: &Exchange, heard: &Heard<'_>) -> Outcome {
        let reject =
            |kind, advice: &str| Outcome::Rejected(self.fault(exchange, heard, kind, advice));
        let unknown = |kind, advice: &str| Outcome::Unknown {
            retry_after_ms: heard::retry_after_ms(
                heard.response,
                &heard.facts,
                !heard.code.is_empty(),
            ),
            cause: self.fault(exchange, heard, kind, advice),
        };
        let writes = matches!(exchange.operation, Operation::Write { .. });
        if PASSING.contains(&heard.code) {
            let (said, limit) = match heard.code {
                "PriorRequestNotComplete" => (OTHER_WRITE, "one change of a zone at a time"),
                _ => (BUSY, "five requests a second of an account"),
            };
            let advice = format!("{said}: Route 53 takes {limit}");
            return unknown(FaultKind::Unavailable, &advice);
        }
        let refused = (400..500).contains(&heard.status) && !heard.code.is_empty();
        match (heard.status, heard.code) {
            (409, _) => unknown(FaultKind::Unavailable, OTHER_WRITE),
            (500..=599 | 408 | 429, _) => unknown(FaultKind::Unavailable, BUSY),
            (_, "InvalidChangeBatch") if refused && writes => self.judge_batch(exchange, heard),
            (_, "NoSuchHostedZone") if refused => reject(
                FaultKind::Misconfigured,
                "create the zone (aws route53 create-hosted-zone), or correct hostedZoneId",
            ),
            (_, "InvalidInput" | "InvalidDomainName") if refused => reject(
                FaultKind::Misconfigured,
                "check hostedZoneId, recordPrefix, domainName and the shard",
            ),
            (status, code) if refused && is_denial(status, code) => {
                reject(FaultKind::Denied, &denial(exchange, code))
            }
            // It may be a gateway that judges answers too, or a code of later.
            _ if writes => unknown(
                FaultKind::Nonsense,
                "this does not say that Route 53 did nothing, so the record is read back",
            ),
            _ if refused => reject(FaultKind::Nonsense, "Route 53 did not do it"),
            _ => reject(
                FaultKind::Nonsense,
                "this is no answer of Route 53 that can be read; check the endpoint",
            ),
        }
    }

    /// Why a batch was not carried out: none of it was.
    fn judge_batch(&self, exchange: &Exchange, heard: &Heard<'_>) -> Outcome {
        let says = |text: &str| heard.message.contains(text);
        let tried = says("Tried to ");
        if tried
            && (says("but it already exists")
                || says("but it was not found")
                || says("values provided do not match"))
        {
            return Outcome::Refused;
        }
        let (kind, advice) = if says("not permitted") {
            let advice = "the name lies outside of the zone or belongs to a CNAME; check domainName, or use another \
                          recordPrefix";
            (FaultKind::Misconfigured, advice)
        } else {
            (FaultKind::Nonsense, "Route 53 did not carry out the batch")
        };
        let message = first(heard.message.trim(), 300);
        let said = match quotes_request(heard.message) {
            true => advice.to_owned(),
            false => format!("{advice}; it said {}", quoted(message)),
        };
        Outcome::Rejected(self.fault(exchange, heard, kind, &said))
    }

    /// A fault of an exchange: store, operation, status, the service's code, what to do.
    fn fault(
        &self,
        exchange: &Exchange,
        heard: &Heard<'_>,
        kind: FaultKind,
        advice: &str,
    ) -> Fault {
        let action = action(exchange);
        let blank = if heard.code.is_empty() { "" } else { " " };
        let status = heard.status.to_string();
        let message = format!(
            "{}: {action} was answered {status}{blank}{}: {advice}",
            self.describe(),
            heard.code
        );
        let code = Some(heard.code.to_owned()).filter(|code| !code.is_empty());
        Fault { status: Some(heard.status), code, ..Fault::new(kind, message) }
    }
}

/// Whether a sentence of the service's may repeat a signature, a token or a key of the request.
fn quotes_request(sentence: &str) -> bool {
    let sentence = sentence.to_ascii_lowercase();
    let part = |character: char| !character.is_ascii_alphanumeric() && !"+/=".contains(character);
    ["aws4", "signature", "credential", "token", "authorization"]
        .iter()
        .any(|name| sentence.contains(name))
        || sentence.split(part).any(|part| part.len() >= 40)
}

fn action(exchange: &Exchange) -> &'static str {
    match exchange.operation {
        Operation::Read { .. } => "ListResourceRecordSets",
        Operation::Write { .. } | Operation::Delete => "ChangeResourceRecordSets",
    }
}

/// Whether the service does not take these credentials, as it says of its own: then it has done nothing.
fn is_denial(status: u16, code: &str) -> bool {
    matches!(status, 401 | 403) || DENIED.contains(&code) || EXPIRED.contains(&code)
}

fn denial(exchange: &Exchange, code: &str) -> String {
    let text = match code {
        "IncompleteSignature"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "SignatureDoesNotMatch" => {
            Some("check the secret access key, and that nothing on the way changes the request")
        }
        "InvalidClientTokenId" | "UnrecognizedClientException" => {
            Some("check the access key id and the session token")
        }
        code => sentences::denial(code),
    };
    text.map_or_else(
        || format!("the credentials need route53:{} on the zone", action(exchange)),
        str::to_owned,
    )
}

impl Learned {
    /// Whether a record is provably older than one that was seen here not long ago: terms only grow (S2), and within
    /// a session sequences do.
    fn is_old(&self, lease: &Lease, wall_ms: u64) -> bool {
        let (Some(newest), Some(term), Some(session)) = (&self.newest, lease.term, &lease.session)
        else {
            return false;
        };
        let earlier = *session == newest.session && lease.sequence < newest.sequence;
        wall_ms.abs_diff(newest.wall_ms) <= OLD_MS && (term < newest.term || earlier)
    }

    fn note(&mut self, lease: &Lease, wall_ms: u64) {
        let (Some(term), Some(session)) = (lease.term, &lease.session) else { return };
        if !self.is_old(lease, wall_ms) {
            let (session, sequence) = (session.clone(), lease.sequence);
            self.newest = Some(Newest { term, session, sequence, wall_ms });
        }
    }
}
