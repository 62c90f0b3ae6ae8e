//! One lease item in a DynamoDB table, as shardcoordinator lays it out: which request an operation is, and what the
//! answer to it means.
//!
//! | attribute | type | what it is |
//! |---|---|---|
//! | `pk`, `sk` | S | `SHARD#{id}` and `LOCK` |
//! | `ownerId` | S | who holds the lease: the record's `leaderID` |
//! | `ttl` | N | epoch seconds until which members of shardcoordinator leave the lease alone |
//! | `lease` | S | the record as the JSON that it is everywhere, for machines and people |
//! | `revision` | S | a digest of `ttl`, `ownerId` and `lease`: whether all three are still as one of us wrote them |
//!
//! One text instead of an attribute for each field, because fields of others and of newer versions then stay to the
//! byte, and one parser judges them. Other attributes are dropped by the next write, as every acquisition of
//! shardcoordinator drops them.
//!
//! Members of shardcoordinator renew by an update that moves `ttl` alone, acquire by a put of the whole item without
//! our attributes, and release by a deletion. So every condition names `revision`, `ownerId` and `ttl` as they were
//! read, and an item whose `revision` does not fit is theirs, whatever our attributes in it say; one whose `lease` cannot be
//! read is nobody's, and is waited out (S7).
//!
//! Sources: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html>,
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>,
//! <https://pkg.go.dev/github.com/gurre/shardcoordinator/dynamolock>.

mod item;

use std::collections::BTreeMap;

use http::Method;
use serde::Serialize;

use self::item::{Held, NAMES, attribute, digest, foreign, normal, revision, scalar};
use crate::config::ConfigError;
use crate::json::{self, Object};
use crate::lease::{
    self, Flaw, Format, Lease, MAX_LEASE_MS, MAX_NAME_BYTES, MAX_RECORD_BYTES, MIN_LEASE_MS,
    Reading, Remains, Stamp,
};
use crate::protocol::{Next, Protocol};
use crate::request::{self, Request, Response};
use crate::sigv4::Credentials;
use crate::store::sentences::{self, BUSY, EXPIRED, OTHER_WRITE};
use crate::store::service::{self, FirstSight, Service, Tried};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Version, heard,
};
use crate::text::{MAX_CODE_BYTES, first, quoted};

/// The longest that `ttl`, `ownerId` and `revision` may be together for a condition to name them, in bytes.
const MAX_HELD_BYTES: usize = 8 * 1024;

/// Codes of a service that is unwell or busy, whatever the status: the write may have landed, or may be tried again.
const PASSING: [&str; 12] = [
    "InternalFailure",
    "InternalServerError",
    "ItemCollectionSizeLimitExceededException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Those of a conflict with another request for the item.
const CONFLICTS: [&str; 3] = [
    "ReplicatedWriteConflictException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Codes that mean "not with these credentials".
const DENIED: [&str; 9] = [
    "AccessDenied",
    "AccessDeniedException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "RequestExpired",
    "UnrecognizedClientException",
];

/// Codes of a service that will never take such a request.
const IMPOSSIBLE: [&str; 4] = [
    "ResourceNotFoundException",
    "SerializationException",
    "UnknownOperationException",
    "ValidationException",
];

const NO_TABLE: &str =
    "there is no such table here; create it, or correct its name, the region or the endpoint";

const NOT_DYNAMODB: &str = "this does not come from DynamoDB; check the endpoint";

/// Where the lease item is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamoDbConfig {
    /// The service's address. Left out: AWS in `region`.
    pub endpoint: Option<String>,
    /// The region that signatures name. Left out: `us-east-1`.
    pub region: Option<String>,
    /// The table, with the keys `pk` and `sk`, both of type S.
    pub table: String,
    /// The shard's id (`lockfilePath`).
    pub shard_id: String,
    /// The own `leaderTimeout` in milliseconds: how long an item that does not say more is waited out.
    pub lease_ms: u64,
}

/// One lease item.
#[derive(Debug)]
pub struct DynamoDb {
    service: Service,
    table: String,
    partition: String,
    lease_ms: u64,
    /// Of a foreign item, by its `ttl`.
    first_sight: FirstSight,
}

/// One operation on its way: a request, its answer, perhaps another request.
#[derive(Debug)]
pub struct Exchange {
    operation: Operation,
    tried: Tried,
    /// What the write makes, once it was sent.
    made: Option<Version>,
    /// Whether the item has shown itself too large, and is read without the record.
    large: bool,
}

/// An answer, taken apart.
struct Heard {
    response: Response,
    /// The body, where it is the service's own JSON.
    fields: Option<Object>,
    code: String,
}

impl DynamoDb {
    /// The item that a configuration names.
    ///
    /// # Errors
    /// The option that cannot be used, its value and the rule.
    pub fn new(config: DynamoDbConfig) -> Result<Self, ConfigError> {
        let DynamoDbConfig { endpoint, region, table, shard_id, lease_ms } = config;
        check_table(&table)?;
        check_shard(&shard_id)?;
        if !(MIN_LEASE_MS..=MAX_LEASE_MS).contains(&lease_ms) {
            let rule = "a lease lasts from 1000 ms to one hour";
            return Err(ConfigError::new("leaderTimeout", lease_ms.to_string(), rule));
        }
        if endpoint.is_none() && region.as_deref() == Some("auto") {
            let rule = "needs an endpoint, because AWS has no such region";
            return Err(ConfigError::new("region", quoted("auto"), rule));
        }
        let host = |region: &str| {
            let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("dynamodb.{region}.amazonaws.com{suffix}")
        };
        Ok(Self {
            service: Service::new("dynamodb", endpoint.as_deref(), region.as_deref(), host)?,
            table,
            partition: format!("SHARD#{shard_id}"),
            lease_ms,
            first_sight: FirstSight::default(),
        })
    }
}

impl Protocol for DynamoDb {
    type Exchange = Exchange;

    /// Non-ASCII text may come as escapes, three times as long as it is.
    const ANSWER_LIMIT: usize = 3 * MAX_RECORD_BYTES + 2 * MAX_HELD_BYTES;

    fn begin(&self, operation: Operation) -> Exchange {
        Exchange { operation, tried: Tried::default(), made: None, large: false }
    }

    fn request(
        &self,
        exchange: &mut Exchange,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault> {
        let body = match &exchange.operation {
            Operation::Read { .. } => self.get_item(exchange.large),
            Operation::Write { record, condition } => {
                let (made, body) = self.put_item(record, condition)?;
                exchange.made = Some(made);
                body
            }
            // No member has the right to DeleteItem.
            Operation::Delete => return Err(Fault::not_deleted(&self.describe())),
        };
        let target = format!("DynamoDB_20120810.{}", verb(&exchange.operation));
        let headers =
            [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let who = self.describe();
        let mut request = self.service.request(Method::POST, "/", &headers, body, &who)?;
        self.service.sign(&mut request, credentials, wall_ms, &who)?;
        Ok(request)
    }

    fn answer(&self, exchange: &mut Exchange, response: Response, wall_ms: u64) -> Next {
        // Whatever a relay adds: the service itself tells no time of the last change.
        let facts = Facts { last_modified_ms: None, ..heard::facts(&response) };
        let heard = Heard::new(response);
        if let Some(next) =
            self.service.recover(&mut exchange.tried, &heard.code, &heard.response, wall_ms)
        {
            return next;
        }
        let outcome = match &exchange.operation {
            Operation::Read { unless } => {
                if heard.response.status().as_u16() == 200
                    && heard.response.body().truncated
                    && !exchange.large
                {
                    exchange.large = true;
                    return Next::Again;
                }
                self.judge_read(exchange, &heard, &facts, unless.as_ref(), wall_ms)
            }
            // A deletion is never sent.
            Operation::Write { .. } | Operation::Delete => {
                self.judge_write(exchange, &heard, &facts)
            }
        };
        Next::Done(Answer { outcome, facts })
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        Held::of(version).near_misses().iter().map(|held| held.version(None)).collect()
    }

    fn silence(&self, _: &mut Exchange, cause: Fault) -> Answer {
        Answer::unknown(cause)
    }

    fn describe(&self) -> String {
        format!("DynamoDB table {} at {}", quoted(&self.table), self.service.origin())
    }
}

/// Requests.
impl DynamoDb {
    fn key(&self) -> Object {
        let mut key = Object::new();
        key.set("pk", attribute("S", &self.partition));
        key.set("sk", attribute("S", "LOCK"));
        key
    }

    fn get_item(&self, large: bool) -> String {
        let mut names = BTreeMap::from(NAMES);
        names.insert("#p", "pk");
        if !large {
            names.insert("#l", "lease");
        }
        json::of(&GetItem {
            table_name: &self.table,
            key: self.key(),
            consistent_read: true,
            projection_expression: names.keys().copied().collect::<Vec<_>>().join(","),
            expression_attribute_names: names,
        })
    }

    /// The version that a write makes, and its request.
    fn put_item(&self, record: &Record, condition: &Condition) -> Result<(Version, String), Fault> {
        let unfit = |what: &str| {
            let text = format!("{}: PutItem: nothing was sent: {what}", self.describe());
            Fault::new(FaultKind::Nonsense, text)
        };
        let lease = match record {
            Record::Lease(lease) if !lease.leader_id.is_empty() => lease,
            _ => return Err(unfit("this store keeps lease records and nothing else")),
        };
        let text = Format::Native.write(lease);
        let ttl_s = self.ttl_s(lease);
        let held = Held {
            ttl: Some(attribute("N", &ttl_s.to_string())),
            owner: Some(attribute("S", &lease.leader_id)),
            revision: Some(attribute("S", &revision(ttl_s, &lease.leader_id, &text))),
        };
        let mut item = self.key();
        for (name, value) in held.named() {
            item.set(name, value.as_deref().unwrap_or("null"));
        }
        item.set("lease", attribute("S", &text));
        let seen = match condition {
            Condition::Absent => None,
            Condition::Match(version) => Some(Held::of(version)),
        };
        let put = json::of(&PutItem {
            table_name: &self.table,
            item,
            condition_expression: match &seen {
                None => "attribute_not_exists(pk)".to_owned(),
                Some(seen) => seen.expression(),
            },
            expression_attribute_names: seen.is_some().then(|| BTreeMap::from(NAMES)),
            expression_attribute_values: seen.and_then(|seen| seen.values()),
        });
        Ok((held.version(None), put))
    }

    /// Until when members of shardcoordinator leave a record alone, in seconds since the Unix epoch. `lastUpdated` is
    /// storage time, by the clock with which the election counts; the second on top is what `Date` may have been
    /// rounded down by. A released record may be taken at once: DynamoDB deletes nothing whose `ttl` is more than five
    /// years old
    /// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-before-you-start.html>).
    fn ttl_s(&self, lease: &Lease) -> u64 {
        let Stamp::At(updated_ms) = lease.last_updated else { return 0 };
        let updated_ms = u64::try_from(updated_ms).unwrap_or(0);
        let until_ms = updated_ms.saturating_add(lease.lease_ms.unwrap_or(self.lease_ms));
        until_ms.div_ceil(1_000) + 1
    }
}

/// Answers.
impl DynamoDb {
    fn judge_read(
        &self,
        exchange: &Exchange,
        heard: &Heard,
        facts: &Facts,
        unless: Option<&Version>,
        wall_ms: u64,
    ) -> Outcome {
        let nonsense = |advice: &str| {
            Outcome::Rejected(self.fault(exchange, heard, FaultKind::Nonsense, advice))
        };
        if heard.response.status().as_u16() != 200 {
            return self.judge_failure(exchange, heard, facts);
        }
        if heard.response.body().truncated {
            return nonsense(TOO_LARGE);
        }
        let Some(fields) = heard.fields.as_ref().filter(|fields| fields.get("__type").is_none())
        else {
            return nonsense(NOT_DYNAMODB);
        };
        let Some(item) = fields.get("Item") else {
            // Nothing but what the service may put beside an item: else it is not known to be an answer to this at all.
            let known = fields.iter().all(|(name, _)| name == "ConsumedCapacity");
            return if known { Outcome::Missing } else { nonsense(NOT_DYNAMODB) };
        };
        let Some(item) = Object::read(item.as_bytes()) else { return nonsense(NOT_DYNAMODB) };
        let (version, reading) = self.judge_item(&item, exchange.large, facts, wall_ms);
        if version.0.len() > MAX_HELD_BYTES {
            return nonsense(TOO_LARGE);
        }
        match unless {
            Some(unless) if *unless == version && !self.first_sight.is_of(&version) => {
                Outcome::Unchanged
            }
            _ => Outcome::Found { version, reading },
        }
    }

    fn judge_item(
        &self,
        item: &Object,
        large: bool,
        facts: &Facts,
        wall_ms: u64,
    ) -> (Version, Reading) {
        let storage_ms = service::foreign_clock_ms(facts, wall_ms);
        let held = Held {
            ttl: item.get("ttl").map(normal),
            owner: item.get("ownerId").map(normal),
            revision: item.get("revision").map(normal),
        };
        let ttl_s = held.ttl.as_deref().and_then(|json| scalar("N", json));
        let ttl_s = ttl_s.and_then(|digits| json::whole(&digits));
        let ahead = |version: &Version| {
            let ahead_ms = |ttl_s| service::foreign_remains(ttl_s, storage_ms).lease_ms;
            let ahead_ms = ttl_s.and_then(ahead_ms).unwrap_or(0);
            let lease_ms = self.foreign_lease_ms(version, ahead_ms, facts, wall_ms);
            Remains { term: None, lease_ms: lease_ms.map(|ms| ms.min(MAX_LEASE_MS)) }
        };
        if large {
            let version = held.version(Some("large"));
            let reading = Reading::Unreadable(Flaw::TooLarge, ahead(&version));
            return (version, reading);
        }
        let owner = held.owner.as_deref().and_then(|json| scalar("S", json));
        let owner = owner.filter(|owner| (1..=MAX_NAME_BYTES).contains(&owner.len()));
        let kept = item.get("lease").map(normal);
        let text = kept.as_deref().and_then(|json| scalar("S", json));
        let reading = text.as_ref().map(|text| lease::read(text.as_bytes()));
        if let (Some(owner), Some(ttl_s), Some(text), Some(reading)) =
            (&owner, ttl_s, &text, &reading)
        {
            let fits = held.revision == Some(attribute("S", &revision(ttl_s, owner, text)));
            if fits && matches!(reading, Reading::Lease(lease) if lease.leader_id == *owner) {
                return (held.version(None), reading.clone());
            }
        }
        // Not as one of us wrote it: what was written by hand, or by a renewal of shardcoordinator.
        let touched = kept.as_deref().map_or_else(|| "none".to_owned(), |kept| digest(&[kept]));
        let version = held.version(Some(&touched));
        let held_lease = |kept, owner, ttl_s: u64| {
            let ahead_ms = service::foreign_ahead_ms(ttl_s, storage_ms);
            let lease_ms = self.foreign_lease_ms(&version, ahead_ms, facts, wall_ms);
            let lasts_ms = lease_ms.unwrap_or(self.lease_ms);
            let written_ms = ttl_s.saturating_mul(1_000).saturating_sub(lasts_ms);
            Reading::Lease(Box::new(foreign(kept, owner, lease_ms, written_ms)))
        };
        let unreadable =
            |told: Remains| Reading::Unreadable(Flaw::Foreign, told.and(ahead(&version)));
        let reading = match (reading, owner.zip(ttl_s)) {
            (Some(Reading::Closed(why)), _) => Reading::Closed(why),
            (Some(Reading::Lease(lease)), Some((owner, ttl_s))) => {
                held_lease(Some(*lease), owner, ttl_s)
            }
            (Some(Reading::Lease(lease)), None) => unreadable(Remains::of(&lease)),
            // Who led by it last, and how long at most, is what cannot be read, whoever holds the rest (S7).
            (Some(Reading::Unreadable(_, told)), _) => unreadable(told),
            (None, Some((owner, ttl_s))) if kept.is_none() => held_lease(None, owner, ttl_s),
            (None, _) => unreadable(Remains::NONE),
        };
        (version, reading)
    }

    /// How long an item that is so far ahead is waited out from the first answer on that showed it; `None` for a lease.
    fn foreign_lease_ms(
        &self,
        version: &Version,
        ahead_ms: u64,
        facts: &Facts,
        wall_ms: u64,
    ) -> Option<u64> {
        let lasts_ms = self.first_sight.lasts_ms(version, ahead_ms, facts, wall_ms);
        // Not only where it is longer than `leaderTimeout`, which may have been shortened since this store was made.
        (lasts_ms > 0).then(|| lasts_ms.max(self.lease_ms))
    }

    fn judge_write(&self, exchange: &Exchange, heard: &Heard, facts: &Facts) -> Outcome {
        let fields = heard.fields.as_ref();
        match heard.response.status().as_u16() {
            200 => {
                // Nothing was asked for; whoever says more is not DynamoDB alone.
                let bare = fields.is_some_and(|fields| {
                    fields.iter().all(|(name, _)| name == "ConsumedCapacity")
                });
                if bare && !heard.response.body().truncated {
                    return Outcome::Written { version: exchange.made.clone() };
                }
                self.unknown(exchange, heard, facts, FaultKind::Nonsense, "the item is read back")
            }
            400..=499 if heard.code == "ConditionalCheckFailedException" => Outcome::Refused,
            _ => self.judge_failure(exchange, heard, facts),
        }
    }

    /// Statuses that mean the same for reads and writes.
    fn judge_failure(&self, exchange: &Exchange, heard: &Heard, facts: &Facts) -> Outcome {
        let writes = matches!(exchange.operation, Operation::Write { .. });
        let code = heard.code.as_str();
        let reject =
            |kind, advice: &str| Outcome::Rejected(self.fault(exchange, heard, kind, advice));
        let unknown = |kind, advice: &str| self.unknown(exchange, heard, facts, kind, advice);
        let refused = (400..500).contains(&heard.response.status().as_u16());
        if PASSING.contains(&code) {
            let advice = if CONFLICTS.contains(&code) { OTHER_WRITE } else { BUSY };
            return unknown(FaultKind::Unavailable, advice);
        }
        if refused && (EXPIRED.contains(&code) || DENIED.contains(&code)) {
            return reject(FaultKind::Denied, &denial(exchange, heard));
        }
        if refused && IMPOSSIBLE.contains(&code) {
            let advice = match code {
                "ResourceNotFoundException" => NO_TABLE,
                "ValidationException" => {
                    "the table's keys must be pk and sk, both of type S; create it as docs/dynamodb.md says"
                }
                _ => NOT_DYNAMODB,
            };
            return reject(FaultKind::Misconfigured, advice);
        }
        match heard.response.status().as_u16() {
            409 => unknown(FaultKind::Unavailable, OTHER_WRITE),
            408 | 429 | 500..=599 => unknown(FaultKind::Unavailable, BUSY),
            // It may be a gateway that judges answers too, or a code of later.
            _ if writes => unknown(FaultKind::Nonsense, "the item is read back"),
            _ => reject(FaultKind::Nonsense, NOT_DYNAMODB),
        }
    }

    fn unknown(
        &self,
        exchange: &Exchange,
        heard: &Heard,
        facts: &Facts,
        kind: FaultKind,
        advice: &str,
    ) -> Outcome {
        Outcome::Unknown {
            retry_after_ms: heard::retry_after_ms(&heard.response, facts, !heard.code.is_empty()),
            cause: self.fault(exchange, heard, kind, advice),
        }
    }

    /// A fault of this exchange: store, operation, status, the service's code, what to do.
    fn fault(&self, exchange: &Exchange, heard: &Heard, kind: FaultKind, advice: &str) -> Fault {
        let (code, status) = (heard.code.as_str(), heard.response.status().as_u16());
        let message = format!(
            "{}: {} of {} was answered {status}{}{code}: {advice}",
            self.describe(),
            verb(&exchange.operation),
            quoted(&self.partition),
            if code.is_empty() { "" } else { " " }
        );
        let code = Some(heard.code.clone()).filter(|code| !code.is_empty());
        Fault { status: Some(status), code, ..Fault::new(kind, message) }
    }
}

fn denial(exchange: &Exchange, heard: &Heard) -> String {
    let action = format!("dynamodb:{}", verb(&exchange.operation));
    match heard.code.as_str() {
        "AccessDenied" | "AccessDeniedException" => {
            format!("the credentials need {action} on the table")
        }
        "UnrecognizedClientException" => {
            "check the access key id and the session token, and that the account uses this region".to_owned()
        }
        // Source: <https://github.com/aws/aws-sdk-js/issues/4002>.
        "InvalidSignatureException" if heard.says("scoped to a valid region") => {
            "the endpoint is one of another region; set region to that of the endpoint, or leave the endpoint out"
                .to_owned()
        }
        code => sentences::denial(code).map_or_else(|| WRONG_SIGNATURE.to_owned(), str::to_owned),
    }
}

const WRONG_SIGNATURE: &str = "check the secret access key, the region and this machine's clock, and that nothing on \
                               the way changes the request";

const TOO_LARGE: &str = "the item is larger than any that is written here, and nothing can be conditional on it; \
                         look at it, and delete it when no member runs";

impl Heard {
    fn new(response: Response) -> Self {
        // Every answer of DynamoDB says so; a page or a gateway's JSON does not.
        let kind = request::text(response.headers(), "content-type").unwrap_or_default();
        let own = kind.starts_with("application/x-amz-json-") && !response.body().truncated;
        let fields = Some(&response.body().bytes).filter(|_| own);
        let fields = fields.and_then(|bytes| Object::read(bytes));
        let code = fields.as_ref().and_then(|fields| json::text(fields.get("__type")?));
        let code = code.as_deref().map(word).unwrap_or_default().to_owned();
        Self { response, fields, code }
    }

    /// Whether the service's sentence has these words. It is not repeated.
    fn says(&self, words: &str) -> bool {
        let sentence = self.fields.as_ref().and_then(|fields| json::text(fields.get("message")?));
        sentence.is_some_and(|sentence| sentence.contains(words))
    }
}

/// The last word of an error's type, such as `com.amazonaws.dynamodb.v20120810#ResourceNotFoundException`; empty if it
/// is none.
fn word(code: &str) -> &str {
    let code = code.rsplit('#').next().unwrap_or_default();
    let plain = code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain && code.len() <= MAX_CODE_BYTES { code } else { "" }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GetItem<'a> {
    table_name: &'a str,
    key: Object,
    consistent_read: bool,
    projection_expression: String,
    expression_attribute_names: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PutItem<'a> {
    table_name: &'a str,
    item: Object,
    condition_expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression_attribute_names: Option<BTreeMap<&'static str, &'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression_attribute_values: Option<Object>,
}

fn verb(operation: &Operation) -> &'static str {
    match operation {
        Operation::Read { .. } => "GetItem",
        Operation::Write { .. } => "PutItem",
        Operation::Delete => "DeleteItem",
    }
}

/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>.
fn check_table(table: &str) -> Result<(), ConfigError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (3..=255).contains(&table.len()) && table.bytes().all(plain) {
        return Ok(());
    }
    let rule = "is a table's name: 3 to 255 letters, digits, dashes, dots and underscores";
    Err(ConfigError::new("table", quoted(first(table, 200)), rule))
}

fn check_shard(id: &str) -> Result<(), ConfigError> {
    if lease::is_name(id) {
        return Ok(());
    }
    let rule = "is the shard's id: 1 to 1024 bytes without control characters, such as \"batch-processor\"";
    Err(ConfigError::new("lockfilePath", quoted(first(id, 200)), rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_plain_word() {
        assert_eq!(
            word("com.amazonaws.dynamodb.v20120810#ThrottlingException"),
            "ThrottlingException"
        );
        assert_eq!(word("ThrottlingException"), "ThrottlingException");
        for odd in ["", "a#", "a#b c", "a#<script>", "a#b\n", &"x".repeat(65)] {
            assert_eq!(word(odd), "", "{odd}");
        }
    }
}
