//! One object in a store as S3, R2 and Google's have it.

use edgelect::lease::{Format, Reading};
use edgelect::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Version,
};

/// The store's clock at the beginning, in milliseconds since the Unix epoch.
pub const EPOCH_MS: u64 = 1_795_244_292_345;

/// R2 and Google's take one write of one object within so many milliseconds.
pub const WRITE_EVERY_MS: u64 = 1_000;

/// How requests ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub written: u64,
    pub refused: u64,
    pub throttled: u64,
}

pub struct Object {
    limited: bool,
    kept: Option<Kept>,
    versions: u64,
    /// When the store last took a write, whatever became of its condition.
    taken_ms: Option<u64>,
    pub answered: Answered,
}

struct Kept {
    version: Version,
    reading: Reading,
    written_ms: u64,
}

impl Object {
    pub fn new(limited: bool) -> Self {
        Self { limited, kept: None, versions: 0, taken_ms: None, answered: Answered::default() }
    }

    pub fn delete(&mut self) {
        self.kept = None;
    }

    /// The operation takes effect.
    pub fn perform(&mut self, now_ms: u64, operation: Operation) -> Answer {
        let whole_seconds_ms = |ms: u64| (EPOCH_MS + ms) / 1_000 * 1_000;
        let mut facts = Facts { date_ms: Some(whole_seconds_ms(now_ms)), ..Facts::default() };
        let outcome = match operation {
            Operation::Read { unless } => match &self.kept {
                None => Outcome::Missing,
                Some(kept) if unless.as_ref() == Some(&kept.version) => Outcome::Unchanged,
                Some(kept) => {
                    facts.last_modified_ms = Some(whole_seconds_ms(kept.written_ms));
                    let (version, reading) = (kept.version.clone(), kept.reading.clone());
                    Outcome::Found { version, reading }
                }
            },
            Operation::Write { record, condition } => self.write(now_ms, record, &condition),
            Operation::Delete => unreachable!("an election deletes nothing"),
        };
        Answer { outcome, facts }
    }

    fn write(&mut self, now_ms: u64, record: Record, condition: &Condition) -> Outcome {
        let soon = |taken_ms: u64| now_ms - taken_ms < WRITE_EVERY_MS;
        if self.limited && self.taken_ms.is_some_and(soon) {
            self.answered.throttled += 1;
            return Outcome::Unknown { retry_after_ms: None, cause: too_many() };
        }
        self.taken_ms = Some(now_ms);
        let holds = match (&self.kept, condition) {
            (None, Condition::Absent) => true,
            (Some(kept), Condition::Match(version)) => kept.version == *version,
            _ => false,
        };
        if !holds {
            self.answered.refused += 1;
            return Outcome::Refused;
        }
        self.answered.written += 1;
        self.versions += 1;
        let version = Version(format!("\"{:032x}\"", self.versions));
        let reading = Format::default().read(&record.into_body(Format::default()));
        self.kept = Some(Kept { version: version.clone(), reading, written_ms: now_ms });
        Outcome::Written { version: Some(version) }
    }
}

fn too_many() -> Fault {
    let kind = FaultKind::Unavailable;
    Fault { status: Some(429), ..Fault::new(kind, "429: one write a second for each key") }
}
