//! A storage that lives in JavaScript: an application's own, or a bucket that the platform binds.

use crate::choice;
use crate::lease::{Format, MAX_RECORD_BYTES};
use crate::locker::{Locker, LockerStore};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use crate::text::quoted;
use crate::web::{Found, Settled, Web};

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

    fn writes_apart_ms(&self) -> u64 {
        match self {
            Self::Storage(storage) => storage.writes_apart_ms(),
            Self::Locker(locker) => locker.writes_apart_ms(),
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
    match settled {
        Settled::Locked(answer) => Ok(answer),
        other => Err(other.failure()),
    }
}

/// A store that the application brings: `get(key)` and `putIfMatch(key, body, etag)`.
pub struct CustomStore {
    web: Web,
    key: String,
    format: Format,
    writes_apart_ms: u64,
}

impl Store for CustomStore {
    async fn perform(&self, operation: Operation) -> Answer {
        match operation {
            Operation::Read { unless } => self.read(unless).await,
            Operation::Write { record, condition } => self.write(record, condition).await,
            // It has `get` and `putIfMatch`, and nothing to delete by.
            Operation::Delete => Answer::rejected(Fault::not_deleted(&self.describe())),
        }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn writes_apart_ms(&self) -> u64 {
        self.writes_apart_ms
    }

    fn describe(&self) -> String {
        format!("custom storage, key {}", quoted(&self.key))
    }
}

impl CustomStore {
    /// The object `key` of the host's storage, whose records are in this format and which takes two writes of one object no
    /// faster than this after each other.
    pub fn new(web: Web, key: &str, format: Format, writes_apart_ms: u64) -> Self {
        Self { web, key: key.to_owned(), format, writes_apart_ms }
    }

    async fn read(&self, unless: Option<Version>) -> Answer {
        match self.web.read(&self.key, MAX_RECORD_BYTES + 1).await {
            Settled::Found(Found { etag, body, date_ms, last_modified_ms }) => {
                let version = Version(etag);
                let outcome = match unless == Some(version.clone()) {
                    true => Outcome::Unchanged,
                    false => Outcome::Found { version, reading: self.format.read(&body) },
                };
                Answer { outcome, facts: Facts { date_ms, last_modified_ms, ..Facts::default() } }
            }
            Settled::Missing => answer(Outcome::Missing),
            Settled::Nonsense(what) => Answer::rejected(self.fault(FaultKind::Nonsense, &what)),
            other => self.unknown(other),
        }
    }

    async fn write(&self, record: Record, condition: Condition) -> Answer {
        let etag = match condition {
            Condition::Absent => None,
            Condition::Match(version) => Some(version.0),
        };
        match self.web.write(&self.key, record.body(self.format), etag).await {
            Settled::Written(etag) => answer(Outcome::Written { version: etag.map(Version) }),
            Settled::Refused => answer(Outcome::Refused),
            other => self.unknown(other),
        }
    }

    fn unknown(&self, settled: Settled) -> Answer {
        let public = format!("{}: it failed; the log says why", self.describe());
        Answer::unknown(self.fault(FaultKind::Network, &settled.failure()).shown_as(public))
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Fault {
        Fault::new(kind, format!("{}: {what}", self.describe()))
    }
}

/// An answer that tells no time.
fn answer(outcome: Outcome) -> Answer {
    Answer { outcome, facts: Facts::default() }
}
