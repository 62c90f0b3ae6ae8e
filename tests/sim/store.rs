//! The modelled store: one object, changed only where its condition holds at the moment of the
//! effect.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use edgelect::lease::{self, Lease, Reading};
use edgelect::store::{Condition, Facts, Outcome, Version};

use super::clocks::EPOCH_MS;

/// What a request asks of the store.
#[derive(Clone, Debug)]
pub enum Asked {
    Read {
        unless: Option<Version>,
    },
    Write {
        lease: Rc<Lease>,
        /// The JSON, where the requests are HTTP.
        bytes: Option<Rc<[u8]>>,
        /// The ETag that these bytes have.
        version: Version,
        condition: Condition,
        /// The entry of the oracle's book of writes; none for an operator's request before it takes effect.
        write: Option<usize>,
    },
}

/// What a body says, cheap to keep.
#[derive(Clone, Debug)]
pub enum Shown {
    Lease(Rc<Lease>),
    Other(Reading),
}

impl Shown {
    pub fn of(reading: Reading) -> Self {
        match reading {
            Reading::Lease(lease) => Self::Lease(Rc::new(*lease)),
            other => Self::Other(other),
        }
    }

    pub fn reading(&self) -> Reading {
        match self {
            Self::Lease(lease) => Reading::Lease(Box::new((**lease).clone())),
            Self::Other(reading) => reading.clone(),
        }
    }

    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Lease(lease) => Some(lease),
            Self::Other(_) => None,
        }
    }
}

/// The object and what the all-seeing observer knows of it.
#[derive(Clone)]
pub struct Object {
    pub version: Version,
    pub shown: Shown,
    /// The body; none of a member's write where the requests are not HTTP.
    pub bytes: Option<Rc<[u8]>>,
    pub modified_s: u64,
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
    /// Of a thousand answers, how many carry no `Date` although the others do.
    pub undated_per_mille: u64,
    /// Of eight answers to reads, how many have a `Date` that is an hour too late.
    pub late_dates_of_eight: u64,
    /// Of a thousand answers, how many carry `Via`.
    pub relayed_per_mille: u64,
    /// How old the `Date` of a relayed answer may be, in milliseconds.
    pub cached_ms: u64,
    /// Of a thousand reads, how many show an older state.
    pub stale_per_mille: u64,
    /// Answers carry no `Last-Modified`, as those of databases.
    pub unmodified: bool,
    /// A version that once was is answered as unchanged, whatever there is now.
    pub unchanged: bool,
    /// `Last-Modified` is the time of the answer.
    pub moving: bool,
    /// 304 repeats `Last-Modified`.
    pub full_304: bool,
    /// ETags come without quotes.
    pub unquoted: bool,
    /// The store is one of AWS's, which send clients to other regions.
    pub aws: bool,
    /// After how many milliseconds credentials expire, where they do.
    pub credentials_ms: Option<u64>,
}

/// The end of one request at the store, but for its time.
pub struct Effect {
    pub outcome: Outcome,
    /// What a read shows beside the body.
    pub last_modified_ms: Option<u64>,
    /// A conditional request met no object at all.
    pub absent: bool,
    /// The body that a read shows.
    pub bytes: Option<Rc<[u8]>>,
}

impl Effect {
    /// Whether the condition held and the object changed.
    pub fn accepted(&self) -> bool {
        matches!(self.outcome, Outcome::Written { .. })
    }
}

#[derive(Default)]
pub struct ModelStore {
    pub object: Option<Object>,
    pub manners: Manners,
    /// What was put last that nobody can read.
    pub garbage: Option<Vec<u8>>,
    /// Every version that was put more than once: it has not changed since, in its own eyes. Who was shown one may write
    /// over it when something else was put there twice since. Looked up only, never walked.
    pub again: HashSet<Version>,
    /// Earlier states, newest last, where something may show or restore them.
    pub past: Vec<Option<Object>>,
    pub keeps_past: bool,
    born_ms: HashMap<Version, u64>,
}

/// How many earlier states are kept.
const MOST_PAST: usize = 6;

impl ModelStore {
    pub fn new(manners: Manners) -> Self {
        let keeps_past = manners.stale_per_mille > 0;
        Self { manners, keeps_past, ..Self::default() }
    }

    /// The ETag of a body: S3's are hashes of the content, so equal bodies have equal ones. Where nobody writes the JSON the
    /// record stands for it: equal records have equal bodies.
    pub fn etag(&self, content: impl Hash) -> Version {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let mark = if self.manners.unquoted { "" } else { "\"" };
        Version(format!("{mark}{:016x}{mark}", hasher.finish()))
    }

    /// When this version last came into being, in true time. A held-up duplicate of a creation can
    /// bring a deleted version back, which nobody can see in its ETag.
    pub fn born_ms(&self, version: &Version) -> Option<u64> {
        self.born_ms.get(version).copied()
    }

    /// An operator's hand: no condition.
    pub fn put(&mut self, now_ms: u64, body: &[u8]) {
        self.put_by(now_ms, body, 0);
    }

    /// The same by this front end.
    pub fn put_by(&mut self, now_ms: u64, body: &[u8], front_end: usize) {
        let version = self.etag(body);
        let shown = Shown::of(lease::read(body));
        if self.born_ms.contains_key(&version) {
            self.again.insert(version.clone());
        }
        let (bytes, modified_s) = (Some(Rc::from(body)), self.clock_s(now_ms, front_end));
        self.change(now_ms, Object { version, shown, bytes, modified_s, write: None });
    }

    pub fn delete(&mut self) {
        self.remember();
        self.object = None;
    }

    /// An operator restores a backup; whose write it holds, if it changed anything.
    pub fn roll_back(&mut self, now_ms: u64, back: usize) -> bool {
        let Some(Some(old)) = self.past.iter().rev().nth(back).cloned() else { return false };
        let modified_s = self.clock_s(now_ms, 0);
        self.change(now_ms, Object { modified_s, ..old });
        true
    }

    /// Answers one request at this instant by this front end. `condition` is what a write really
    /// carries; `stale` counts back through the earlier states.
    pub fn perform(
        &mut self,
        now_ms: u64,
        asked: &Asked,
        condition: Option<&Condition>,
        front_end: usize,
        stale: Option<usize>,
    ) -> Effect {
        let front_end = front_end % self.manners.front_end_ms.len();
        let (mut last_modified_ms, mut bytes) = (None, None);
        let absent = self.object.is_none();
        let outcome = match asked {
            Asked::Read { unless } => {
                let outcome = self.read(unless.as_ref(), &mut last_modified_ms, &mut bytes, stale);
                if self.manners.moving && last_modified_ms.is_some() {
                    last_modified_ms = Some(self.clock_s(now_ms, front_end) * 1_000);
                }
                outcome
            }
            Asked::Write { lease, bytes, version, write, .. } => {
                let accepted = match (condition, &self.object) {
                    (None, _) => true,
                    (Some(Condition::Absent), object) => object.is_none(),
                    (Some(Condition::Match(held)), Some(object)) => object.version == *held,
                    (Some(Condition::Match(_)), None) => false,
                };
                if accepted {
                    let (bytes, write) = (bytes.clone(), *write);
                    let (shown, modified_s) =
                        (Shown::Lease(lease.clone()), self.clock_s(now_ms, front_end));
                    let object =
                        Object { version: version.clone(), shown, bytes, modified_s, write };
                    self.change(now_ms, object);
                    Outcome::Written { version: Some(version.clone()) }
                } else {
                    Outcome::Refused
                }
            }
        };
        Effect { outcome, last_modified_ms, absent, bytes }
    }

    /// What an answer of this front end says about time, whatever else it says.
    pub fn facts(&self, now_ms: u64, front_end: usize) -> Facts {
        let front_end = front_end % self.manners.front_end_ms.len();
        let date_ms = (!self.manners.undated).then_some(self.clock_s(now_ms, front_end) * 1_000);
        Facts { date_ms, ..Facts::default() }
    }

    fn read(
        &self,
        unless: Option<&Version>,
        last_modified_ms: &mut Option<u64>,
        bytes: &mut Option<Rc<[u8]>>,
        stale: Option<usize>,
    ) -> Outcome {
        let old = stale.and_then(|back| self.past.iter().rev().nth(back));
        if self.manners.unchanged && unless.is_some_and(|known| self.born_ms.contains_key(known)) {
            return Outcome::Unchanged;
        }
        let Some(object) = old.unwrap_or(&self.object) else { return Outcome::Missing };
        let modified_ms = (!self.manners.unmodified).then_some(object.modified_s * 1_000);
        if unless == Some(&object.version) {
            *last_modified_ms = modified_ms.filter(|_| self.manners.full_304);
            return Outcome::Unchanged;
        }
        *last_modified_ms = modified_ms;
        bytes.clone_from(&object.bytes);
        Outcome::Found { version: object.version.clone(), reading: object.shown.reading() }
    }

    fn remember(&mut self) {
        if self.keeps_past {
            self.past.push(self.object.clone());
            if self.past.len() > MOST_PAST {
                self.past.remove(0);
            }
        }
    }

    /// There is another object from now on, whatever was there.
    pub fn change(&mut self, now_ms: u64, object: Object) {
        self.remember();
        self.born_ms.insert(object.version.clone(), now_ms);
        self.object = Some(object);
    }

    pub fn clock_s(&self, now_ms: u64, front_end: usize) -> u64 {
        (EPOCH_MS + now_ms + self.manners.front_end_ms[front_end]) / 1_000
    }
}
