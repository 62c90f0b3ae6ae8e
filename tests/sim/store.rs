//! The modelled store: one object, changed only where its condition holds at the moment of the
//! effect.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use edgelect::lease::{self, Reading};
use edgelect::store::{Condition, Facts, Outcome, Version};

use super::clocks::EPOCH_MS;

/// What a request asks of the store.
#[derive(Clone, Debug)]
pub enum Asked {
    Read { unless: Option<Version> },
    Write { body: Vec<u8>, condition: Condition, write: usize },
}

/// The object and what the all-seeing observer knows of it.
#[derive(Clone)]
pub struct Object {
    pub version: Version,
    pub reading: Reading,
    modified_s: u64,
    /// The entry of the oracle's book of writes; `None` for an operator's.
    pub write: Option<usize>,
}

/// How this store's answers look.
#[derive(Clone, Debug, Default)]
pub struct Manners {
    /// How far each front end's clock is from the truth.
    pub front_end_ms: Vec<u64>,
    /// Answers carry no `Date`.
    pub undated: bool,
    /// Of a thousand answers, how many carry `Via`.
    pub relayed_per_mille: u64,
    /// 304 repeats `Last-Modified`.
    pub full_304: bool,
}

/// The end of one request at the store.
pub struct Effect {
    pub outcome: Outcome,
    pub facts: Facts,
    /// The condition held and the object changed.
    pub accepted: bool,
    /// A conditional request met no object at all.
    pub absent: bool,
}

pub struct ModelStore {
    pub object: Option<Object>,
    pub manners: Manners,
    born_ms: HashMap<Version, u64>,
}

/// The ETag of a body: S3's are hashes of the content, so equal bodies have equal ones.
pub fn etag(body: &[u8]) -> Version {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    Version(format!("\"{:016x}\"", hasher.finish()))
}

impl ModelStore {
    pub fn new(manners: Manners) -> Self {
        Self { object: None, manners, born_ms: HashMap::new() }
    }

    /// When this version first came into being, in true time. A held-up duplicate of a creation can
    /// bring a deleted version back, which nobody can see in its ETag.
    pub fn born_ms(&self, version: &Version) -> Option<u64> {
        self.born_ms.get(version).copied()
    }

    /// An operator's hand: no condition.
    pub fn put(&mut self, now_ms: u64, body: &[u8]) {
        self.change(now_ms, 0, body, None);
    }

    pub fn delete(&mut self) {
        self.object = None;
    }

    /// Answers one request at this instant by this front end.
    pub fn perform(&mut self, now_ms: u64, asked: &Asked, front_end: u64, relayed: bool) -> Effect {
        let front_end = (front_end % self.manners.front_end_ms.len() as u64) as usize;
        let mut facts = self.facts(now_ms, front_end, relayed);
        let mut accepted = false;
        let absent = self.object.is_none();
        let outcome = match asked {
            Asked::Read { unless } => self.read(unless.as_ref(), &mut facts),
            Asked::Write { body, condition, write } => {
                accepted = match (condition, &self.object) {
                    (Condition::Absent, object) => object.is_none(),
                    (Condition::Match(version), Some(object)) => object.version == *version,
                    (Condition::Match(_), None) => false,
                };
                if accepted {
                    self.change(now_ms, front_end, body, Some(*write));
                    Outcome::Written { version: Some(etag(body)) }
                } else {
                    Outcome::Refused
                }
            }
        };
        Effect { outcome, facts, accepted, absent }
    }

    /// What an answer of this front end says about time, whatever else it says.
    pub fn facts(&self, now_ms: u64, front_end: usize, relayed: bool) -> Facts {
        let front_end = front_end % self.manners.front_end_ms.len();
        let date_ms = (!self.manners.undated).then_some(self.clock_s(now_ms, front_end) * 1_000);
        Facts { date_ms, last_modified_ms: None, relayed }
    }

    fn read(&self, unless: Option<&Version>, facts: &mut Facts) -> Outcome {
        let Some(object) = &self.object else { return Outcome::Missing };
        let modified_ms = Some(object.modified_s * 1_000);
        if unless == Some(&object.version) {
            facts.last_modified_ms = modified_ms.filter(|_| self.manners.full_304);
            return Outcome::Unchanged;
        }
        facts.last_modified_ms = modified_ms;
        Outcome::Found { version: object.version.clone(), reading: object.reading.clone() }
    }

    fn change(&mut self, now_ms: u64, front_end: usize, body: &[u8], write: Option<usize>) {
        let version = etag(body);
        self.born_ms.entry(version.clone()).or_insert(now_ms);
        let modified_s = self.clock_s(now_ms, front_end);
        self.object = Some(Object { version, reading: lease::read(body), modified_s, write });
    }

    fn clock_s(&self, now_ms: u64, front_end: usize) -> u64 {
        (EPOCH_MS + now_ms + self.manners.front_end_ms[front_end]) / 1_000
    }
}
