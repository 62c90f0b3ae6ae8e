//! Run this while I lead: work that exists only as long as its authority.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::task::Poll;

use futures::future::{Either, select};

use crate::driver::{Handle, Host, run};
use crate::election::{Election, Event, Input, Standing};
use crate::probe::judge;
use crate::store::{Fault, FaultKind, Store};

/// After how many milliseconds a single clock that proved nothing is read again.
const REREAD_MS: u64 = 20;

/// One unbroken leadership, as the work sees it.
pub struct Term<'a, H> {
    /// The fencing token. Hand it to whatever the work changes, and let that refuse lower ones.
    pub token: u64,
    /// The slot that is run, in milliseconds since the Unix epoch; where the work is the job of one.
    pub slot_ms: Option<u64>,
    pub(crate) handle: &'a Handle,
    pub(crate) host: &'a H,
}

impl<H: Host> Term<'_, H> {
    /// How much longer the authority lasts if nothing happens, in milliseconds; 0 once it has ended. Computed
    /// now, so that work that does not await can look at it.
    ///
    /// On a host with one clock a reading may prove nothing for a moment. The term does not end by that, so this is
    /// then what the reading would leave of it: advice, while the token protects (S11).
    pub fn remaining_ms(&self) -> u64 {
        match self.standing() {
            Standing::Leads(left) | Standing::Unproven(left) => left.remaining_ms,
            Standing::Over => 0,
        }
    }

    fn standing(&self) -> Standing {
        match self.handle.standing(self.host.now()) {
            Standing::Leads(left) | Standing::Unproven(left) if left.term != self.token => {
                Standing::Over
            }
            standing => standing,
        }
    }
}

/// A term without a fencing token, as the work sees it: its time is all there is.
pub struct UnfencedTerm<'a, H>(Term<'a, H>);

impl<H: Host> UnfencedTerm<'_, H> {
    /// As [`Term::remaining_ms`].
    pub fn remaining_ms(&self) -> u64 {
        self.0.remaining_ms()
    }
}

/// Competes for the leadership and runs `work` with the term once it leads. It judges the store before it trusts it, as
/// [`judge`] says.
///
/// When the authority ends, the future that `work` made is dropped, which is the signal to stop; and it is
/// never polled without authority, not even after the machine was suspended. Where a single clock proves nothing for a
/// moment (S11) it waits, and goes on when the clock proves something again. What the work has started
/// elsewhere (a task, a process) is its own to end: let a guard that it holds do so when dropped. After a
/// term that was lost or resigned it competes for the next one, in which the work runs again; so does work that blocked its
/// thread until the authority was over and then returned: another leader may have done the same meanwhile.
///
/// When the work ends by itself under its authority, the lease is released and its value comes back. `None` comes back after an
/// [`Input::Stop`] that was told to `handle`. Either way the election has ended: to lead again, make another. To drop the future of `lead` itself leaves the lease to run out.
///
/// Work that keeps its thread busy keeps the renewals waiting: give it a thread of its own, and await that. Such a thread goes on
/// when the future that awaits it is dropped: let the work hold a guard whose `Drop` tells the thread to end and waits until it
/// has.
///
/// # Errors
/// The store can't be used as it is set up, or breaks its conditions; or it has no versions and so no tokens, which
/// [`lead_unfenced`] does without.
pub async fn lead<'a, S: Store, H: Host, T>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    work: impl AsyncFnMut(Term<'a, H>) -> T,
) -> Result<Option<T>, Fault> {
    if handle.with(Election::is_unfenced) {
        let what = ": has no fencing tokens; where the work needs none, lead_unfenced runs it";
        return Err(Fault::new(FaultKind::Misconfigured, [&store.describe(), what].concat()));
    }
    run_work(handle, store, host, work).await
}

/// As [`lead`], with work that needs no fencing token: over a [locker](crate::locker) there is none, and nothing can refuse what
/// a late writer sends.
///
/// # Errors
/// The store can't be used as it is set up, or breaks its conditions.
pub async fn lead_unfenced<'a, S: Store, H: Host, T>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    mut work: impl AsyncFnMut(UnfencedTerm<'a, H>) -> T,
) -> Result<Option<T>, Fault> {
    run_work(handle, store, host, async |term| work(UnfencedTerm(term)).await).await
}

async fn run_work<'a, S: Store, H: Host, T>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    mut work: impl AsyncFnMut(Term<'a, H>) -> T,
) -> Result<Option<T>, Fault> {
    let refuse = |message| Err(Fault::new(FaultKind::Misconfigured, message));
    if handle.with(Election::has_schedule) {
        return refuse("this election runs the slots of a schedule: give it to run_scheduled");
    }
    if handle.with(Election::has_finished) {
        return refuse("this election has led before and has ended: make another by new_election");
    }
    // Two drivers take each other's calls: not even the judgement may begin beside another.
    handle.check_undriven()?;
    judge(handle, store, host).await?;
    let (leads, begun) = (Cell::new(None), Cell::new(None));
    let failure = RefCell::new(None);
    let driving = run(handle, store, host, |event| match event {
        Event::Acquired { term } => leads.set(Some(term)),
        Event::Lost { term, .. } => {
            leads.set(None);
            if begun.get() != Some(term) {
                // Gone before its work was begun: nobody else would say so.
                handle.tell(Input::WorkEnded { term });
            }
        }
        Event::Failed(fault) => *failure.borrow_mut() = Some(fault),
        Event::NewLeader { .. } | Event::GivenUp => {}
        Event::SlotClosed { .. } | Event::SlotsOver(_) => {}
        Event::Troubled(_) | Event::Solved | Event::InGrace { .. } => {}
        Event::Suspected { .. } | Event::Recovered { .. } => {}
    });
    let leading = async {
        loop {
            let token = once(|| leads.get()).await;
            begun.set(Some(token));
            let term = || Term { token, slot_ms: None, handle, host };
            let lost = || leads.get() != Some(token);
            // Looked at before the work is called as well: its first part may run in the call.
            if held(&term(), lost, ready(())).await.is_some()
                && let Some(value) = held(&term(), lost, work(term())).await
                && term().standing() != Standing::Over
            {
                return (token, value);
            }
            // It may have been seen here first.
            handle.tell(Input::Tick);
            once(|| lost().then_some(())).await;
            handle.tell(Input::WorkEnded { term: token });
        }
    };
    // The events come first, so that one turn suffices to see them.
    match select(pin!(driving), pin!(leading)).await {
        Either::Left(_) => failure.take().map_or(Ok(None), Err),
        Either::Right(((token, value), driving)) => {
            handle.tell(Input::Stop { park: false });
            handle.tell(Input::WorkEnded { term: token });
            driving.await;
            Ok(Some(value))
        }
    }
}

/// Looks at each turn of the driver, which shares the task; so nothing has to wake it.
pub(crate) fn once<T>(mut look: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    poll_fn(move |_| look().map_or(Poll::Pending, Poll::Ready))
}

/// The work's value, or `None` as soon as its term is over, which `lost` tells where the election has said so; the work is
/// dropped then. It is never polled without authority: where a single clock proves nothing (S11) it waits.
pub(crate) async fn held<H: Host, T>(
    term: &Term<'_, H>,
    lost: impl Fn() -> bool,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut pause = None;
    poll_fn(|context| {
        loop {
            match if lost() { Standing::Over } else { term.standing() } {
                Standing::Over => return Poll::Ready(None),
                Standing::Leads(_) => {
                    pause = None;
                    return work.as_mut().poll(context).map(Some);
                }
                // What woke the work may not come again.
                Standing::Unproven(_) => {
                    let pause_over =
                        pause.get_or_insert_with(|| Box::pin(term.host.sleep(REREAD_MS)));
                    if pause_over.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    pause = None;
                }
            }
        }
    })
    .await
}
