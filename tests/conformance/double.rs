//! A store that counts its writes, honest or broken in one way now and then, so that the list has something to find.

use std::cell::{Cell, RefCell};

use edgelect::lease::{self, Format};
use edgelect::store::{Answer, Condition, Facts, Fault, Operation, Outcome, Store, Version};

/// Every how many operations a broken store breaks its word.
const NOW_AND_THEN: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    Honest,
    /// Two versions take turns, so that a stale condition holds again (ABA).
    RepeatsVersions,
    /// It refuses and writes all the same.
    AppliesRefused,
    ReadsStale,
    IgnoresConditions,
    /// It says that it has written, and has not.
    Forgets,
    /// It sends a write twice, and the second answer is a refusal.
    RefusesItsOwn,
    /// It looks at the condition, waits, and writes.
    LooksBeforeItWrites,
}

impl Manner {
    pub const BROKEN: [Self; 7] = [
        Self::RepeatsVersions,
        Self::AppliesRefused,
        Self::ReadsStale,
        Self::IgnoresConditions,
        Self::Forgets,
        Self::RefusesItsOwn,
        Self::LooksBeforeItWrites,
    ];
}

pub struct Double {
    manner: Manner,
    operations: Cell<u64>,
    /// Every state of the record, the current one last.
    states: RefCell<Vec<Vec<u8>>>,
}

impl Double {
    pub fn new(manner: Manner) -> Self {
        Self { manner, operations: Cell::new(0), states: RefCell::default() }
    }

    fn version(&self) -> Option<Version> {
        let writes = self.states.borrow().len();
        let named = if self.manner == Manner::RepeatsVersions { writes % 2 } else { writes };
        (writes > 0).then(|| Version(format!("\"{named}\"")))
    }

    fn read(&self, unless: Option<Version>, stale: bool) -> Outcome {
        let states = self.states.borrow();
        let Some(mut version) = self.version() else { return Outcome::Missing };
        let mut at = states.len() - 1;
        if stale && at > 0 {
            version = Version(format!("\"{at}\""));
            at -= 1;
        }
        if unless.as_ref() == Some(&version) {
            return Outcome::Unchanged;
        }
        Outcome::Found { version, reading: lease::read(&states[at]) }
    }

    async fn write(&self, body: Vec<u8>, condition: Condition, breaks: bool) -> Outcome {
        let held = self.version().map_or(Condition::Absent, Condition::Match);
        let holds = condition == held;
        let (lands, says) = match self.manner {
            Manner::AppliesRefused => (holds || breaks, holds),
            Manner::IgnoresConditions => [holds || breaks && held != Condition::Absent; 2].into(),
            Manner::Forgets => (holds && !breaks, holds),
            Manner::RefusesItsOwn => (holds, holds && !breaks),
            _ => (holds, holds),
        };
        if self.manner == Manner::LooksBeforeItWrites && holds {
            crate::conformance::pause().await;
        }
        if lands {
            self.states.borrow_mut().push(body);
        }
        if says { Outcome::Written { version: self.version() } } else { Outcome::Refused }
    }
}

impl Store for Double {
    async fn perform(&self, operation: Operation) -> Answer {
        let count = self.operations.replace(self.operations.get() + 1);
        let breaks = count % NOW_AND_THEN == NOW_AND_THEN - 1;
        let outcome = match operation {
            Operation::Read { unless } => {
                self.read(unless, breaks && self.manner == Manner::ReadsStale)
            }
            Operation::Write { record, condition } => {
                self.write(record.body(Format::Native), condition, breaks).await
            }
            Operation::Delete => Outcome::Rejected(Fault::not_deleted(&self.describe())),
        };
        Answer { outcome, facts: Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("a store of which {:?} is true", self.manner)
    }
}
