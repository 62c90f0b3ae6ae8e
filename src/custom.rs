//! A storage that lives in JavaScript: an application's own, or a bucket that the platform binds.

use crate::choice;
use crate::json;
use crate::lease::{self, Format};
use crate::locker::{Locker, LockerStore};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Store, Version,
};
use crate::text::quoted;
use crate::web::{Settled, Web};

/// The store of an elector of the npm package.
pub type AnyStore<P> = choice::AnyStore<Web, P, OwnStore>;

/// What an application brings.
pub enum OwnStore {
    /// A storage with versions.
    Storage(CustomStore),
    /// A backend of three calls.
    Locker(LockerStore<Web>),
}

impl Store for OwnStore {
    async fn perform(&self, operation: Operation) -> Answer {
        match self {
            Self::Storage(storage) => storage.perform(operation).await,
            Self::Locker(locker) => locker.perform(operation).await,
        }
    }

    fn condition_covers_version(&self) -> bool {
        match self {
            Self::Storage(storage) => storage.condition_covers_version(),
            Self::Locker(locker) => locker.condition_covers_version(),
        }
    }

    fn stale_writes_fail(&self) -> bool {
        match self {
            Self::Storage(storage) => storage.stale_writes_fail(),
            Self::Locker(locker) => locker.stale_writes_fail(),
        }
    }

    fn keeps_any_body(&self) -> bool {
        match self {
            Self::Storage(storage) => storage.keeps_any_body(),
            Self::Locker(locker) => locker.keeps_any_body(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Storage(storage) => storage.describe(),
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
    key: String,
    format: Format,
}

impl Store for CustomStore {
    async fn perform(&self, operation: Operation) -> Answer {
        let (settled, unless) = match operation {
            Operation::Read { unless } => {
                (self.web.read(&self.key, lease::MAX_RECORD_BYTES + 1).await, Some(unless))
            }
            Operation::Write { record, condition } => {
                let etag = match condition {
                    Condition::Absent => None,
                    Condition::Match(version) => Some(version.0),
                };
                (self.web.write(&self.key, record.into_body(self.format), etag).await, None)
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
        format!("custom storage, key {}", quoted(&self.key))
    }
}

impl CustomStore {
    /// The object `key` of the host's storage, whose records are in this format.
    pub fn new(web: Web, key: &str, format: Format) -> Self {
        Self { web, key: key.to_owned(), format }
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Fault {
        Fault::new(kind, format!("{}: {what}", self.describe()))
    }
}
