//! A store whose answers get lost.

use std::collections::VecDeque;

use edgelect::Owner;
use edgelect::store::Record;

use crate::driver::prelude::*;

/// What becomes of one operation; without one it is performed and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not performed, and nobody knows.
    LostBefore,
    /// It is performed, and nobody knows.
    LostAfter,
    /// It is performed, and a refusal is the answer.
    RefusedAfter,
    /// It is not performed, and refused.
    Refused,
    /// It is performed, and the answer names no version.
    NoVersion,
    /// It is performed just before the next operation after the next one, and nobody knows.
    Late,
    /// It is performed, and there is no answer at all.
    Hang,
    /// It is not performed, and the store says so.
    Rejected,
    /// It is not performed, and the store asks for three seconds.
    Throttled,
}

#[derive(Default)]
pub struct Desk {
    pub memory: Memory,
    pub fates: RefCell<VecDeque<Fate>>,
    /// The body of each write that was sent.
    pub bodies: RefCell<Vec<Vec<u8>>>,
    log: RefCell<Vec<String>>,
    late: RefCell<Vec<(u32, Operation)>>,
}

impl Desk {
    /// Each operation that was sent: `read`, or the token and the value.
    pub fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    pub fn record(&self) -> Lease {
        lease_of(&self.memory.body().expect("there is an object"))
    }

    pub fn value(&self) -> Option<String> {
        self.record().extra.get("value").map(str::to_owned)
    }

    async fn perform_late(&self) {
        let waiting = std::mem::take(&mut *self.late.borrow_mut());
        for (left, operation) in waiting {
            match left {
                0 => drop(self.memory.perform(operation).await),
                left => self.late.borrow_mut().push((left - 1, operation)),
            }
        }
    }
}

/// The lease that a write stores.
pub fn stored_by(record: &Record) -> Lease {
    lease_of(&record.body(Format::Native))
}

pub fn unknown() -> Outcome {
    let cause = Fault::new(FaultKind::Network, "the answer was lost");
    Outcome::Unknown { retry_after_ms: None, cause }
}

impl Store for Desk {
    async fn perform(&self, operation: Operation) -> Answer {
        self.log.borrow_mut().push(match &operation {
            Operation::Read { .. } => "read".to_owned(),
            Operation::Delete => "delete".to_owned(),
            Operation::Write { record, .. } => {
                self.bodies.borrow_mut().push(record.body(Format::Native));
                let record = stored_by(record);
                let term = record.term.expect("it has a token");
                format!("{term} {}", record.extra.get("value").expect("it has a value"))
            }
        });
        self.perform_late().await;
        let Some(fate) = self.fates.borrow_mut().pop_front() else {
            return undated(self.memory.perform(operation).await.outcome);
        };
        undated(match fate {
            Fate::LostBefore => unknown(),
            Fate::Refused => Outcome::Refused,
            Fate::Rejected => Outcome::Rejected(Fault::new(FaultKind::Denied, "access denied")),
            Fate::Throttled => {
                let cause = Fault::new(FaultKind::Unavailable, "slow down");
                Outcome::Unknown { retry_after_ms: Some(3_000), cause }
            }
            Fate::Late => {
                self.late.borrow_mut().push((1, operation));
                unknown()
            }
            Fate::LostAfter | Fate::RefusedAfter | Fate::NoVersion | Fate::Hang => {
                self.memory.perform(operation).await;
                match fate {
                    Fate::LostAfter => unknown(),
                    Fate::RefusedAfter => Outcome::Refused,
                    Fate::NoVersion => Outcome::Written { version: None },
                    _ => std::future::pending().await,
                }
            }
        })
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a desk".to_owned()
    }
}

/// The session of this very term.
pub fn owner(token: u64) -> Owner {
    let session = format!("session-{token}");
    Owner::new(&config(), &session, token, "state.json").expect("a good owner")
}
