//! One object behind a network that loses, delays and cuts off, for members of both makes.

use futures::FutureExt;

use crate::driver::prelude::*;

/// The longest way of a request to the store, or of its answer back, when nothing is wrong.
pub const WAY_MS: u64 = 100;

pub type Shared<T> = Rc<RefCell<T>>;

/// One accepted write.
#[derive(Clone)]
pub struct Written {
    pub at_ms: u64,
    pub body: Vec<u8>,
}

/// One member's way to the object. Clones share it.
#[derive(Clone)]
pub struct Bucket {
    pub time: Virtual,
    pub memory: Memory,
    pub chance: Shared<Chance>,
    pub written: Shared<Vec<Written>>,
    pub failing_per_mille: Rc<Cell<u64>>,
    /// Until when this way is cut off.
    pub cut_until_ms: Rc<Cell<u64>>,
    /// Whether writes are held up on their way until [`Bucket::release`].
    pub holds_writes: Rc<Cell<bool>>,
    /// Requests that are still on their way, though whoever sent them has given up.
    late: Shared<Vec<(u64, Operation)>>,
}

impl Bucket {
    /// An empty one, whose answers name a `Date` or do not.
    pub fn new(time: &Virtual, dated: bool, chance: &Shared<Chance>) -> Self {
        Self {
            time: time.clone(),
            memory: if dated { memory(time) } else { Memory::default() },
            chance: Rc::clone(chance),
            written: Shared::default(),
            failing_per_mille: Rc::default(),
            cut_until_ms: Rc::default(),
            holds_writes: Rc::default(),
            late: Shared::default(),
        }
    }

    /// Another way to the same object.
    pub fn another_way(&self) -> Self {
        Self { cut_until_ms: Rc::default(), ..self.clone() }
    }

    /// Lets everything arrive that is still on its way.
    pub fn release(&self) {
        self.late.borrow_mut().iter_mut().for_each(|(at_ms, _)| *at_ms = 0);
        self.arrive();
    }

    /// Lets those requests arrive whose time has come.
    pub fn arrive(&self) {
        let now_ms = self.time.now_ms.get();
        let due: Vec<_> = self.late.borrow_mut().extract_if(.., |one| one.0 <= now_ms).collect();
        due.into_iter().for_each(|(_, operation)| drop(self.at_once(operation)));
    }

    async fn way(&self) {
        let ms = self.chance.borrow_mut().between(1, WAY_MS);
        self.time.sleep(ms).await;
    }

    /// At this very moment, without any network.
    pub fn at_once(&self, operation: Operation) -> Answer {
        let body = match &operation {
            Operation::Write { record, .. } => Some(record.body(Format::Native)),
            Operation::Read { .. } | Operation::Delete => None,
        };
        let answer = self.memory.perform(operation).now_or_never().expect("memory never waits");
        if let (Outcome::Written { .. }, Some(body)) = (&answer.outcome, body) {
            let at_ms = self.time.now_ms.get();
            self.written.borrow_mut().push(Written { at_ms, body });
        }
        answer
    }

    /// Over the network; the body beside the answer is the one that the answer is about.
    async fn over_the_network(&self, operation: Operation) -> (Answer, Option<Vec<u8>>) {
        if self.time.now_ms.get() < self.cut_until_ms.get() {
            return std::future::pending().await;
        }
        self.way().await;
        let fails = self.chance.borrow_mut().per_mille(self.failing_per_mille.get());
        let [arrives, late, cut] = [(); 3].map(|()| self.chance.borrow_mut().one_in(3));
        let fault = || Answer::unknown(Fault::new(FaultKind::Network, "the network failed"));
        if self.holds_writes.get() && matches!(operation, Operation::Write { .. }) {
            self.late.borrow_mut().push((u64::MAX, operation));
            return std::future::pending().await;
        }
        if fails && late {
            // It goes on though whoever asked has long given up.
            let delay_ms = self.chance.borrow_mut().between(500, 20_000);
            self.late.borrow_mut().push((self.time.now_ms.get() + delay_ms, operation));
            return std::future::pending().await;
        }
        if fails && !arrives {
            return (fault(), None);
        }
        let answer = self.at_once(operation);
        let body = self.memory.body();
        if fails && cut {
            return std::future::pending().await;
        }
        self.way().await;
        if fails { (fault(), None) } else { (answer, body) }
    }

    /// S3lect's storage interface: the body with its ETag, `None` without an object.
    pub async fn get(&self) -> Result<Option<(Vec<u8>, Version)>, String> {
        let (answer, body) = self.over_the_network(Operation::Read { unless: None }).await;
        match answer.outcome {
            Outcome::Found { version, .. } => Ok(Some((body.expect("it was found"), version))),
            Outcome::Missing => Ok(None),
            other => Err(format!("{other:?}")),
        }
    }

    /// The other half; without an ETag it creates. `Ok(false)` is a 412.
    pub async fn put_if_match(&self, body: Vec<u8>, etag: Option<Version>) -> Result<bool, String> {
        let condition = etag.map_or(Condition::Absent, Condition::Match);
        let write = Operation::Write { record: body.into(), condition };
        match self.over_the_network(write).await.0.outcome {
            Outcome::Written { .. } => Ok(true),
            Outcome::Refused => Ok(false),
            other => Err(format!("{other:?}")),
        }
    }
}

impl Store for Bucket {
    async fn perform(&self, operation: Operation) -> Answer {
        self.over_the_network(operation).await.0
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a bucket far away".to_owned()
    }
}
