//! One object, changed by compare-and-swap, and what is under way to it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use edgelect::lease::{History, Lease, Reading};
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};

use super::rules::Author;

/// The object as it is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub version: Version,
    pub lease: Lease,
    /// When it was written, by the store's clock.
    pub written_ms: u64,
}

impl Object {
    pub fn new(lease: Lease, written_ms: u64) -> Arc<Self> {
        Arc::new(Self { version: version_of(&lease), lease, written_ms })
    }
}

/// A conditional write.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub author: Author,
    pub condition: Condition,
    pub lease: Lease,
    pub version: Version,
}

impl Write {
    /// Without the past, on which no decision depends: states that differ in nothing else are one.
    pub fn new(author: Author, condition: Condition, mut lease: Lease) -> Arc<Self> {
        lease.history = History::default();
        let version = version_of(&lease);
        Arc::new(Self { author, condition, lease, version })
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Read { unless: Option<Version> },
    Write(Arc<Write>),
}

/// A write whose sender no longer waits for it, or a copy. It may land at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stray {
    pub write: Arc<Write>,
    /// It has arrived once.
    pub copy: bool,
}

/// Equal bodies have equal versions, as with S3.
fn version_of(lease: &Lease) -> Version {
    let mut hasher = DefaultHasher::new();
    lease.hash(&mut hasher);
    Version(format!("{:x}", hasher.finish()))
}

/// Whether a condition holds for what is stored.
pub fn holds(object: Option<&Arc<Object>>, condition: &Condition) -> bool {
    match (object, condition) {
        (None, Condition::Absent) => true,
        (Some(object), Condition::Match(version)) => object.version == *version,
        _ => false,
    }
}

/// The answer to a read; in whole seconds, as HTTP tells time, if the store tells it.
pub fn read(
    object: Option<&Arc<Object>>,
    unless: Option<&Version>,
    store_ms: Option<u64>,
) -> Answer {
    let mut facts = dated(store_ms);
    let outcome = match object {
        None => Outcome::Missing,
        Some(object) if unless == Some(&object.version) => Outcome::Unchanged,
        Some(object) => {
            facts.last_modified_ms = store_ms.map(|_| whole_seconds_ms(object.written_ms));
            let reading = Reading::Lease(Box::new(object.lease.clone()));
            Outcome::Found { version: object.version.clone(), reading }
        }
    };
    Answer { outcome, facts }
}

/// The answer to a write that was accepted with this version, or refused.
pub fn written(version: Option<Version>, store_ms: Option<u64>) -> Answer {
    let outcome = match version {
        Some(version) => Outcome::Written { version: Some(version) },
        None => Outcome::Refused,
    };
    Answer { outcome, facts: dated(store_ms) }
}

fn dated(store_ms: Option<u64>) -> Facts {
    Facts { date_ms: store_ms.map(whole_seconds_ms), ..Facts::default() }
}

fn whole_seconds_ms(ms: u64) -> u64 {
    ms - ms % 1_000
}
