//! A store whose requests wait for their turn among those of other groups.

use crate::clock::Now;
use crate::driver::{Handle, Host};
use crate::electors::budget::Urgency;
use crate::store::{Answer, Fault, FaultKind, Operation, Store, Version};

const TOO_LATE: &str = "the renewal was not sent: its term ended while it waited for its turn";
const IN_VAIN: &str =
    "the claim was not sent: the leadership was given up while it waited for its turn";

/// Where a request of one of many groups waits until it may leave.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Queue {
    /// What holds its place among those that are under way, and gives it back when dropped.
    type Turn;

    /// Ends once the request may leave; dropping the future gives up the wait.
    async fn turn(&self, urgency: Urgency) -> Self::Turn;
}

/// A store whose requests wait for their turn.
pub struct Budgeted<S, Q> {
    store: S,
    queue: Q,
    handle: Handle,
    now: Box<dyn Fn() -> Now>,
}

impl<S, Q> Budgeted<S, Q> {
    /// The store of the election behind `handle`, whose requests wait in `queue`.
    pub fn new(store: S, queue: Q, handle: Handle, host: impl Host + 'static) -> Self {
        Self { store, queue, handle, now: Box::new(move || host.now()) }
    }

    /// The store without the wait.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn urgency(&self, operation: &Operation) -> Urgency {
        let now = (self.now)();
        match (self.handle.with(|election| election.fence_left_ms(now)), operation) {
            (Some(left_ms), _) => Urgency::Term { fence_ms: now.mono_ms.saturating_add(left_ms) },
            (None, Operation::Read { .. }) => Urgency::Read,
            (None, _) => Urgency::Change,
        }
    }
}

impl<S: Store, Q: Queue> Store for Budgeted<S, Q> {
    async fn perform(&self, operation: Operation) -> Answer {
        let urgency = self.urgency(&operation);
        let _turn = self.queue.turn(urgency).await;
        // A renewal whose term has ended while it waited would lengthen a lease that nobody holds.
        let writes = matches!(operation, Operation::Write { .. });
        let renews = matches!(urgency, Urgency::Term { .. }) && writes;
        if renews && !matches!(self.urgency(&operation), Urgency::Term { .. }) {
            return Answer::unknown(Fault::new(FaultKind::Timeout, TOO_LATE));
        }
        // A claim that still left would take the lease from those to whom it was left.
        if writes && self.handle.with(|election| election.claims_in_vain((self.now)())) {
            return Answer::unknown(Fault::new(FaultKind::Timeout, IN_VAIN));
        }
        self.store.perform(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        self.store.condition_covers_version()
    }

    fn stale_writes_fail(&self) -> bool {
        self.store.stale_writes_fail()
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        self.store.near_misses(version)
    }

    fn keeps_any_body(&self) -> bool {
        self.store.keeps_any_body()
    }

    fn writes_apart_ms(&self) -> u64 {
        self.store.writes_apart_ms()
    }

    fn complaint(&self) -> Option<Fault> {
        self.store.complaint()
    }

    fn describe(&self) -> String {
        self.store.describe()
    }
}
