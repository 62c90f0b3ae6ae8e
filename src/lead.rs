//! Run this while I lead: work that exists only as long as its authority.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use futures::future::{Either, select};

use crate::driver::{Handle, Host, run};
use crate::election::{Event, Input};
use crate::probe::judge;
use crate::store::{Fault, Store};

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
    pub fn remaining_ms(&self) -> u64 {
        let authority = self.handle.authority(self.host.now());
        authority
            .filter(|authority| authority.term == self.token)
            .map_or(0, |authority| authority.remaining_ms)
    }
}

/// Competes for the leadership and runs `work` with the term once it leads. It judges the store before it trusts it, as
/// [`judge`] says.
///
/// When the authority ends, the future that `work` made is dropped, which is the signal to stop; and it is
/// never polled without authority, not even after the machine was suspended. What the work has started
/// elsewhere (a task, a process) is its own to end: let a guard that it holds do so when dropped. After a
/// term that was lost it competes for the next one.
///
/// When the work ends by itself, the lease is released and its value comes back. `None` comes back after an
/// [`Input::Stop`] that was told to `handle`. To drop the future of `lead` itself leaves the lease to run out.
///
/// Work that keeps its thread busy keeps the renewals waiting: give it a thread of its own, and await that.
///
/// # Errors
/// The store can't be used as it is set up, or breaks its conditions.
pub async fn lead<'a, S: Store, H: Host, T>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    mut work: impl AsyncFnMut(Term<'a, H>) -> T,
) -> Result<Option<T>, Fault> {
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
    });
    let leading = async {
        loop {
            let token = once(|| leads.get()).await;
            begun.set(Some(token));
            let term = || Term { token, slot_ms: None, handle, host };
            // Looked at before the work is called as well: its first part may run in the call.
            if term().remaining_ms() > 0
                && let Some(value) = with_authority(&term(), work(term())).await
            {
                return (token, value);
            }
            handle.tell(Input::Tick);
            once(|| {
                // Seen here only: a single clock that says something again. The work is gone, so the term goes.
                if term().remaining_ms() > 0 {
                    handle.tell(Input::Resign);
                }
                (leads.get() != Some(token)).then_some(())
            })
            .await;
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

/// The work's value, or `None` as soon as the authority has ended; the work is dropped then.
async fn with_authority<H: Host, T>(
    term: &Term<'_, H>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match term.remaining_ms() {
        0 => Poll::Ready(None),
        _ => work.as_mut().poll(context).map(Some),
    })
    .await
}
