//! A backend of three calls as its contract has it, on a clock of its own, behind a network that fails; and what its calls have
//! to keep, looked at with each of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use edgelect::{Host, Locker};

use worlds::virtual_time::Virtual;

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It never arrives, and the caller gets an error.
    Before,
    /// It takes effect, and the caller gets an error.
    After,
    /// It never arrives, and nobody says so.
    Hang,
    /// It takes effect so many milliseconds later, and nobody says so.
    Late(u64),
    /// It takes effect at once and is answered so many milliseconds later.
    Slow(u64),
    /// It takes effect after the first number of milliseconds, and is answered after the second.
    Held(u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    TryAcquire,
    Renew,
    Release,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: Name,
    pub owner_id: String,
    pub ttl_ms: u64,
    pub at_ms: u64,
}

#[derive(Clone, Debug)]
struct Lock {
    owner_id: String,
    until_ms: u64,
}

#[derive(Default)]
struct State {
    lock: Option<Lock>,
    calls: Vec<Call>,
    /// Calls that have yet to take effect: when, which, and by what number.
    under_way: Vec<(u64, usize, Call)>,
    answers: BTreeMap<usize, bool>,
    /// Owners whose lock was asked to be released.
    spent: BTreeSet<String>,
}

type Chosen = Box<dyn FnMut(Name) -> Option<Fault>>;

/// Clones share the lock and the faults.
#[derive(Clone)]
pub struct Backend {
    host: Virtual,
    state: Rc<RefCell<State>>,
    fault: Rc<RefCell<Chosen>>,
}

impl Backend {
    pub fn new(host: &Virtual) -> Self {
        let fault: Chosen = Box::new(|_| None);
        Self { host: host.clone(), state: Rc::default(), fault: Rc::new(RefCell::new(fault)) }
    }

    /// What becomes of the next calls.
    pub fn failing(&self, fault: impl FnMut(Name) -> Option<Fault> + 'static) {
        *self.fault.borrow_mut() = Box::new(fault);
    }

    /// Who holds the lock, and for how many milliseconds from now.
    pub fn holder(&self) -> Option<(String, u64)> {
        let now_ms = self.host.now_ms.get();
        let state = &mut *self.state.borrow_mut();
        state.settle(now_ms);
        let lock = state.held_at(now_ms)?;
        Some((lock.owner_id.clone(), lock.until_ms - now_ms))
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state.borrow().calls.clone()
    }

    /// Somebody else takes the lock, whoever holds it.
    pub fn steal(&self, ttl_ms: u64) {
        let until_ms = self.host.now_ms.get() + ttl_ms;
        self.state.borrow_mut().lock = Some(Lock { owner_id: "thief".to_owned(), until_ms });
    }

    async fn call(&self, name: Name, owner_id: &str, ttl_ms: u64) -> Result<bool, String> {
        let at_ms = self.host.now_ms.get();
        let call = Call { name, owner_id: owner_id.to_owned(), ttl_ms, at_ms };
        let fault = (self.fault.borrow_mut())(name);
        let number = self.state.borrow_mut().note(&call);
        let (late_ms, answered_ms) = match fault {
            Some(Fault::Before) => return Err(format!("{name:?} was cut off")),
            Some(Fault::Hang) => return std::future::pending().await,
            Some(Fault::Late(ms)) => (ms, None),
            Some(Fault::Slow(ms)) => (0, Some(ms)),
            Some(Fault::Held(late_ms, ms)) => (late_ms, Some(ms)),
            Some(Fault::After) | None => (0, Some(0)),
        };
        self.state.borrow_mut().under_way.push((at_ms + late_ms, number, call));
        let Some(answered_ms) = answered_ms else { return std::future::pending().await };
        self.host.sleep(late_ms).await;
        self.state.borrow_mut().settle(self.host.now_ms.get());
        self.host.sleep(answered_ms).await;
        match fault {
            Some(Fault::After) => Err(format!("{name:?} was cut off afterwards")),
            _ => Ok(self.state.borrow().answers[&number]),
        }
    }
}

impl State {
    /// Notes a call as it leaves, and holds it to what the contract says of them all.
    fn note(&mut self, call: &Call) -> usize {
        let of_owner = self.calls.iter().filter(|one| one.owner_id == call.owner_id);
        if call.name == Name::Release {
            self.spent.insert(call.owner_id.clone());
        } else {
            for one in of_owner.filter(|one| one.name != Name::Release) {
                assert_eq!(one.ttl_ms, call.ttl_ms, "one owner has one ttl: {call:?}");
            }
            // A release that is held up could meet it.
            assert!(!self.spent.contains(&call.owner_id), "asked for after its release: {call:?}");
        }
        self.calls.push(call.clone());
        self.calls.len()
    }

    fn held_at(&self, now_ms: u64) -> Option<&Lock> {
        self.lock.as_ref().filter(|lock| lock.until_ms > now_ms)
    }

    /// Carries out what is due, in the order in which it is.
    fn settle(&mut self, now_ms: u64) {
        self.under_way.sort_by_key(|(due_ms, number, _)| (*due_ms, *number));
        while self.under_way.first().is_some_and(|(due_ms, ..)| *due_ms <= now_ms) {
            let (due_ms, number, call) = self.under_way.remove(0);
            let holder = self.held_at(due_ms).map(|lock| lock.owner_id.clone());
            let own = holder.as_ref() == Some(&call.owner_id);
            let done = match call.name {
                Name::TryAcquire => holder.is_none(),
                Name::Renew | Name::Release => own,
            };
            let until_ms = due_ms + call.ttl_ms;
            match call.name {
                _ if !done => {}
                Name::Release => self.lock = None,
                _ => self.lock = Some(Lock { owner_id: call.owner_id, until_ms }),
            }
            self.answers.insert(number, done);
        }
    }
}

impl Locker for Backend {
    async fn try_acquire(&self, _: &str, owner_id: &str, ttl_ms: u64) -> Result<bool, String> {
        self.call(Name::TryAcquire, owner_id, ttl_ms).await
    }

    async fn renew(&self, _: &str, owner_id: &str, ttl_ms: u64) -> Result<bool, String> {
        self.call(Name::Renew, owner_id, ttl_ms).await
    }

    async fn release(&self, _: &str, owner_id: &str) -> Result<(), String> {
        self.call(Name::Release, owner_id, 0).await.map(|_| ())
    }
}
