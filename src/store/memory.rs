//! A store in this process's memory: for tests, for trying things out, and as the plainest reading of what a
//! store owes the election.

use std::cell::RefCell;
use std::rc::Rc;

use sha2::{Digest, Sha256};

use crate::lease::Format;
use crate::store::{Answer, Condition, Facts, Fault, Operation, Outcome, Record, Store, Version};

/// One record in memory. Clones share it. Versions are hashes of the content, as S3's ETags are: equal bodies
/// make equal versions, so that a writer who repeats a body is caught here too (S4).
#[derive(Clone)]
pub struct Memory {
    record: Rc<RefCell<Option<Kept>>>,
    wall_ms: Rc<dyn Fn() -> Option<u64>>,
    format: Format,
}

struct Kept {
    body: Vec<u8>,
    version: Version,
    /// When it was written, in milliseconds since the Unix epoch.
    written_ms: Option<u64>,
}

impl Default for Memory {
    /// Without a clock: no answer has a `Date`, as with R2's binding.
    fn default() -> Self {
        Self::with_clock(|| None)
    }
}

impl Memory {
    /// An empty place. `wall_ms` is the store's own clock, in milliseconds since the Unix epoch; answers tell it
    /// in whole seconds, as HTTP does.
    pub fn new(wall_ms: impl Fn() -> u64 + 'static) -> Self {
        Self::with_clock(move || Some(wall_ms()))
    }

    fn with_clock(wall_ms: impl Fn() -> Option<u64> + 'static) -> Self {
        Self { record: Rc::default(), wall_ms: Rc::new(wall_ms), format: Format::default() }
    }

    /// The same place, with records in this format.
    pub fn in_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Replaces or deletes the record without any condition: the foreign hand that the rules must survive.
    pub fn overwrite(&self, body: Option<Vec<u8>>) {
        *self.record.borrow_mut() = body.map(|body| self.record_of(body));
    }

    /// The body as it is now.
    pub fn body(&self) -> Option<Vec<u8>> {
        self.record.borrow().as_ref().map(|record| record.body.clone())
    }

    fn record_of(&self, body: Vec<u8>) -> Kept {
        Kept { version: version_of(&body), written_ms: (self.wall_ms)(), body }
    }

    fn read(&self, unless: Option<&Version>, facts: &mut Facts) -> Outcome {
        match &*self.record.borrow() {
            None => Outcome::Missing,
            Some(record) if unless == Some(&record.version) => Outcome::Unchanged,
            Some(record) => {
                facts.last_modified_ms = record.written_ms.map(whole_seconds_ms);
                let reading = self.format.read(&record.body);
                Outcome::Found { version: record.version.clone(), reading }
            }
        }
    }

    fn write(&self, record: Record, condition: &Condition) -> Outcome {
        let mut place = self.record.borrow_mut();
        let holds = match (&*place, condition) {
            (None, Condition::Absent) => true,
            (Some(record), Condition::Match(version)) => record.version == *version,
            _ => false,
        };
        if !holds {
            return Outcome::Refused;
        }
        let record = self.record_of(record.body(self.format));
        let version = Some(record.version.clone());
        *place = Some(record);
        Outcome::Written { version }
    }
}

impl Store for Memory {
    async fn perform(&self, operation: Operation) -> Answer {
        let mut facts =
            Facts { date_ms: (self.wall_ms)().map(whole_seconds_ms), ..Facts::default() };
        let outcome = match operation {
            Operation::Read { unless } => self.read(unless.as_ref(), &mut facts),
            Operation::Write { record, condition } => self.write(record, &condition),
            // It has one record and no key by which that could be a probe's.
            Operation::Delete => Outcome::Rejected(Fault::not_deleted(&self.describe())),
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
        "memory".to_owned()
    }
}

fn version_of(body: &[u8]) -> Version {
    // As long as S3's MD5.
    Version(format!("\"{}\"", hex::encode(&Sha256::digest(body)[..16])))
}

fn whole_seconds_ms(ms: u64) -> u64 {
    ms - ms % 1_000
}
