//! A storage that lives in JavaScript (an application's own, a bucket that the platform binds), and the choice between
//! that and the stores over HTTP.

use crate::json;
use crate::lease::{self, Format};
use crate::locker::{Locker, LockerStore};
use crate::remote::DynamoDbStore;
use crate::remote::EpochStore;
use crate::remote::Route53Store;
use crate::remote::{Provide, S3Store};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Store, Version,
};
use crate::text::quoted;
use crate::web::{Settled, Web};

/// The store of an elector, whichever kind it is.
pub enum AnyStore<P> {
    /// An S3 bucket.
    Bucket(Box<S3Store<Web, P>>),
    /// An object for each epoch in an S3 bucket.
    Epochs(Box<EpochStore<Web, P>>),
    /// An item in a DynamoDB table.
    DynamoDb(Box<DynamoDbStore<Web, P>>),
    /// A TXT record in a Route 53 zone.
    Route53(Box<Route53Store<Web, P>>),
    /// A storage that lives in JavaScript.
    Custom(CustomStore),
    /// A backend of three calls that lives there.
    Locker(LockerStore<Web>),
}

impl<P: Provide> Store for AnyStore<P> {
    async fn perform(&self, operation: Operation) -> Answer {
        match self {
            Self::Bucket(bucket) => bucket.perform(operation).await,
            Self::Epochs(bucket) => bucket.perform(operation).await,
            Self::DynamoDb(table) => table.perform(operation).await,
            Self::Route53(zone) => zone.perform(operation).await,
            Self::Custom(custom) => custom.perform(operation).await,
            Self::Locker(locker) => locker.perform(operation).await,
        }
    }

    fn condition_covers_version(&self) -> bool {
        match self {
            Self::Bucket(bucket) => bucket.condition_covers_version(),
            Self::Epochs(bucket) => bucket.condition_covers_version(),
            Self::DynamoDb(table) => table.condition_covers_version(),
            Self::Route53(zone) => zone.condition_covers_version(),
            Self::Custom(custom) => custom.condition_covers_version(),
            Self::Locker(locker) => locker.condition_covers_version(),
        }
    }

    fn stale_writes_fail(&self) -> bool {
        match self {
            Self::Bucket(bucket) => bucket.stale_writes_fail(),
            Self::Epochs(bucket) => bucket.stale_writes_fail(),
            Self::DynamoDb(table) => table.stale_writes_fail(),
            Self::Route53(zone) => zone.stale_writes_fail(),
            Self::Custom(custom) => custom.stale_writes_fail(),
            Self::Locker(locker) => locker.stale_writes_fail(),
        }
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        match self {
            Self::DynamoDb(table) => table.near_misses(version),
            Self::Bucket(bucket) => bucket.near_misses(version),
            Self::Epochs(bucket) => bucket.near_misses(version),
            Self::Route53(zone) => zone.near_misses(version),
            Self::Custom(custom) => custom.near_misses(version),
            Self::Locker(locker) => locker.near_misses(version),
        }
    }

    fn keeps_any_body(&self) -> bool {
        matches!(self, Self::Bucket(_) | Self::Custom(_))
    }

    fn complaint(&self) -> Option<Fault> {
        match self {
            Self::Epochs(bucket) => bucket.complaint(),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Bucket(bucket) => bucket.describe(),
            Self::Epochs(bucket) => bucket.describe(),
            Self::DynamoDb(table) => table.describe(),
            Self::Route53(zone) => zone.describe(),
            Self::Custom(custom) => custom.describe(),
            Self::Locker(locker) => locker.describe(),
        }
    }
}

impl Locker for Web {
    async fn try_acquire(
        &self,
        shard_id: &str,
        owner_id: &str,
        ttl_ms: u64,
    ) -> Result<bool, String> {
        said(self.lock("tryAcquire", shard_id, owner_id, ttl_ms).await)
    }

    async fn renew(&self, shard_id: &str, owner_id: &str, ttl_ms: u64) -> Result<bool, String> {
        said(self.lock("renew", shard_id, owner_id, ttl_ms).await)
    }

    async fn release(&self, shard_id: &str, owner_id: &str) -> Result<(), String> {
        said(self.lock("release", shard_id, owner_id, 0).await).map(|_| ())
    }
}

/// What a locker has said, or what was thrown.
fn said(settled: Settled) -> Result<bool, String> {
    let answer = settled.fields().filter(|_| settled.ok);
    let answer = answer.and_then(|fields| fields.get("answer").and_then(json::flag));
    answer.ok_or(settled.head)
}

/// A store that the application brings: `get(key)` and `putIfMatch(key, body, etag)`.
pub struct CustomStore {
    web: Web,
    name: &'static str,
    key: String,
    format: Format,
}

impl Store for CustomStore {
    async fn perform(&self, operation: Operation) -> Answer {
        let (settled, unless) = match operation {
            Operation::Read { unless } => {
                (self.web.read(&self.key, lease::MAX_RECORD_BYTES + 1).await, Some(unless))
            }
            Operation::Write { body, condition } => {
                let etag = match condition {
                    Condition::Absent => None,
                    Condition::Match(version) => Some(version.0),
                };
                (self.web.write(&self.key, self.format.stored(&body), etag).await, None)
            }
            // It has `get` and `putIfMatch`, and nothing to delete by.
            Operation::Delete => return Answer::rejected(Fault::not_deleted(&self.describe())),
        };
        let Some(fields) = settled.fields().filter(|_| settled.ok) else {
            let cause = self.fault(FaultKind::Network, &settled.head);
            let outcome = Outcome::Unknown { retry_after_ms: None, cause };
            return Answer { outcome, facts: Facts::default() };
        };
        let date = |name: &str| fields.get(name).and_then(json::whole).filter(|ms| *ms > 0);
        let facts = Facts {
            date_ms: date("date"),
            last_modified_ms: date("lastModified"),
            ..Facts::default()
        };
        let version = fields.get("etag").and_then(json::text).map(Version);
        let outcome = if let Some(what) = fields.get("nonsense").and_then(json::text) {
            Outcome::Rejected(self.fault(FaultKind::Nonsense, &what))
        } else {
            let nothing = fields.get("nothing").is_some();
            match (unless, version) {
                (Some(_), _) if nothing => Outcome::Missing,
                (None, _) if nothing => Outcome::Refused,
                (None, version) => Outcome::Written { version },
                (Some(unless), version) if version.is_some() && version == unless => {
                    Outcome::Unchanged
                }
                (Some(_), Some(version)) => {
                    Outcome::Found { version, reading: self.format.read(&settled.body) }
                }
                (Some(_), None) => Outcome::Rejected(self.fault(FaultKind::Nonsense, "no etag")),
            }
        };
        Answer { outcome, facts }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("{}, key {}", self.name, quoted(&self.key))
    }
}

impl CustomStore {
    /// The object `key` of the host's storage, whose records are in this format.
    pub fn new(web: Web, key: &str, format: Format) -> Self {
        Self::named("custom storage", web, key, format)
    }

    /// The same, by a name for errors.
    pub fn named(name: &'static str, web: Web, key: &str, format: Format) -> Self {
        Self { web, name, key: key.to_owned(), format }
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Fault {
        Fault::new(kind, format!("{}: {what}", self.describe()))
    }
}
