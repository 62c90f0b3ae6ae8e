//! Run this once per cron slot: the job of each slot in a term of its own.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::task::Poll;

use futures::future::{Either, select};

use crate::driver::{Handle, Host, run};
use crate::election::{Election, Event, Input, LostReason, SlotsOver};
use crate::lead::{Term, held, once};
use crate::lease::{PastSlot, history};
use crate::slots::SlotEnd;
use crate::store::{Fault, FaultKind, Store};

/// What became of the trigger's own slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// Its job has ended well.
    Done,
    /// Its job has failed.
    Failed,
    /// Its job was ended because the authority had ended, or it was told to stop.
    Lost,
    /// The slot, or a later one, was claimed before.
    Taken,
    /// It was not claimed; the reason says why.
    Skipped(SlotsOver),
    /// A claim left and nobody knows whether it landed; its job was not run here.
    Unknown,
}

impl SlotOutcome {
    /// What became of a slot whose job was not run here.
    pub(crate) fn unrun(over: Option<SlotsOver>) -> Self {
        match over {
            Some(SlotsOver::Ran | SlotsOver::Lost) => Self::Lost,
            Some(SlotsOver::Taken) => Self::Taken,
            Some(SlotsOver::Unknown) => Self::Unknown,
            Some(why) => Self::Skipped(why),
            None => Self::Skipped(SlotsOver::Stopped),
        }
    }

    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Taken => "taken",
            Self::Skipped(_) => "skipped",
            Self::Unknown => "unknown",
        }
    }
}

/// How one job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd<T, E> {
    /// Well, with this value.
    Done(T),
    /// With its own error.
    Failed(E),
    /// It was dropped, because the authority had ended for this reason.
    Lost(LostReason),
}

/// One job that was run, or whose authority ended before it could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<T, E> {
    /// Its slot, in milliseconds since the Unix epoch.
    pub slot_ms: u64,
    /// The fencing token.
    pub term: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Whether the record is known to say how it ended.
    pub recorded: bool,
    /// The slot that the record named before this one was claimed, and how that ended; the same slot where it is run
    /// again. `None` where the record named none. To be shown, not believed.
    pub previous: Option<PastSlot>,
    /// How it ended.
    pub end: RunEnd<T, E>,
}

/// Whether a trigger that has run no job has nothing to tell but that the store can't be used.
pub(crate) fn says_nothing(over: Option<SlotsOver>) -> bool {
    matches!(over, None | Some(SlotsOver::Store))
}

/// The slot that the newest record of an election shows.
pub(crate) fn shown_slot(election: &Election) -> Option<PastSlot> {
    election.record().and_then(|(_, lease)| history::shown_slot(lease))
}

/// What one trigger has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<T, E> {
    /// What became of the trigger's own slot.
    pub outcome: SlotOutcome,
    /// That slot, in milliseconds since the Unix epoch; `None` if the store was never heard of.
    pub slot_ms: Option<u64>,
    /// How many missed slots nobody will run: older than the list is long, or left out by `missed`.
    pub left_out: u64,
    /// The slot before the trigger's own, as in [`Run::previous`]; `None` where its job was not run here.
    pub previous: Option<PastSlot>,
    /// Where the slot is [`SlotOutcome::Taken`]: the slot that the record shows, which is this one or a later one.
    /// To be shown, not believed.
    pub taken: Option<PastSlot>,
    /// Every job that was run, or whose authority ended before it could be, in order: reruns and missed slots first.
    pub runs: Vec<Run<T, E>>,
    /// Why the store could not be used any more, after a job had been run or a claim had left; or why it failed to the end of
    /// the budget.
    pub fault: Option<Fault>,
}

/// Claims the slots of a schedule (see [`new_schedule`](crate::driver::new_schedule)) one by one and runs `job` for each.
///
/// One conditional write claims a slot and the lease together; the lease is renewed while the job runs; the closing
/// write says how it ended and gives the lease up. When the authority ends, the future that `job` made is dropped, as
/// under [`lead`](crate::lead()): what it has started elsewhere is its own to end, and the term's token protects.
///
/// To stop early tell `handle` an [`Input::Stop`] and poll this future to its end; to drop it leaves the lease to run out, and the
/// slot without its end.
///
/// # Errors
/// The store can't be used as it is set up.
pub async fn run_scheduled<'a, S: Store, H: Host, T, E>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    mut job: impl AsyncFnMut(Term<'a, H>) -> Result<T, E>,
) -> Result<Report<T, E>, Fault> {
    let word = |result: &Result<T, E>| if result.is_ok() { "ok" } else { "failed" }.to_owned();
    run_with_word(handle, store, host, &mut job, word).await
}

/// The same, with the word that the record keeps of how a job ended.
pub(crate) async fn run_with_word<'a, S: Store, H: Host, T, E>(
    handle: &'a Handle,
    store: &S,
    host: &'a H,
    job: &mut impl AsyncFnMut(Term<'a, H>) -> Result<T, E>,
    word: impl Fn(&Result<T, E>) -> String,
) -> Result<Report<T, E>, Fault> {
    if !handle.with(Election::has_schedule) {
        let message = "this election runs no slots: make it by new_schedule";
        return Err(Fault::new(FaultKind::Misconfigured, message));
    }
    if handle.with(Election::has_finished) {
        let message = "this election has run its trigger: make another by new_schedule";
        return Err(Fault::new(FaultKind::Misconfigured, message));
    }
    let told = Told::default();
    let runs: RefCell<Vec<Run<T, E>>> = RefCell::default();
    let driving = run(handle, store, host, |event| told.hear(handle, event));
    let working = async {
        loop {
            let (token, slot_ms) = once(|| told.leads.get()).await;
            told.begun.set(Some(token));
            let previous = told.previous.borrow().clone();
            let term = || Term { token, slot_ms: Some(slot_ms), handle, host };
            let began_ms = host.now().mono_ms;
            // Looked at before the job is called as well: its first part may run in the call.
            let lost = || told.lost(token);
            let result = match held(&term(), lost, ready(())).await {
                Some(()) => held(&term(), lost, job(term())).await,
                None => None,
            };
            let took_ms = host.now().mono_ms.saturating_sub(began_ms);
            let (done, failed) =
                result.as_ref().map_or((false, false), |result| (result.is_ok(), result.is_err()));
            let text = result.as_ref().map_or_else(|| "stopped".to_owned(), &word);
            handle.tell(Input::SlotEnded {
                term: token,
                end: SlotEnd { done, failed, result: text, took_ms },
            });
            once(|| told.lost(token).then_some(())).await;
            let end = match (result, told.lost.get()) {
                // The election has ended the term before it took note of the job's end: the authority may have ended under it.
                (Some(_), Some(reason)) if reason.is_loss() => RunEnd::Lost(reason),
                (Some(Ok(value)), _) => RunEnd::Done(value),
                (Some(Err(error)), _) => RunEnd::Failed(error),
                // Told to end by a clock that said nothing for a moment.
                (None, None | Some(LostReason::Done)) => RunEnd::Lost(LostReason::Clock),
                (None, Some(reason)) => RunEnd::Lost(reason),
            };
            let run = Run { slot_ms, term: token, took_ms, recorded: false, previous, end };
            runs.borrow_mut().push(run);
        }
    };
    finish(driving, working).await;
    told.report(handle, runs.into_inner())
}

/// Drives until the election has finished. The events come first, so that one turn of the work suffices to see them,
/// also after the last.
async fn finish(driving: impl Future<Output = ()>, working: impl Future<Output = ()>) {
    if let Either::Left((_, mut working)) = select(pin!(driving), pin!(working)).await {
        poll_fn(|context| {
            let _ = working.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
    }
}

/// A slot whose term was over before its job was begun.
struct Unbegun {
    slot_ms: u64,
    term: u64,
    previous: Option<PastSlot>,
    reason: LostReason,
}

/// What the election has told so far.
#[derive(Default)]
struct Told {
    leads: Cell<Option<(u64, u64)>>,
    /// The slot before that one.
    previous: RefCell<Option<PastSlot>>,
    /// The term whose job was begun last.
    begun: Cell<Option<u64>>,
    lost: Cell<Option<LostReason>>,
    unbegun: RefCell<Vec<Unbegun>>,
    over: Cell<Option<SlotsOver>>,
    /// The terms whose closing write is known to have landed.
    recorded: RefCell<Vec<u64>>,
    failure: RefCell<Option<Fault>>,
    /// Why a closing write is not known to have landed.
    unrecorded: RefCell<Option<Fault>>,
}

impl Told {
    /// Whether this term is over.
    fn lost(&self, term: u64) -> bool {
        self.leads.get().is_none_or(|(other, _)| other != term)
    }

    fn hear(&self, handle: &Handle, event: Event) {
        match event {
            Event::Acquired { term } => {
                let slot_ms = handle.with(Election::slot_ms);
                let previous = handle.with(|election| election.previous_slot().cloned());
                self.previous.replace(previous);
                self.leads.set(slot_ms.map(|slot_ms| (term, slot_ms)));
            }
            Event::Lost { term, reason } => {
                if self.begun.get() != Some(term) {
                    // Gone before its job was begun: nobody else would say so.
                    let previous = self.previous.borrow().clone();
                    let slot_ms = self.leads.get().map(|(_, slot_ms)| slot_ms);
                    let unbegun =
                        slot_ms.map(|slot_ms| Unbegun { slot_ms, term, previous, reason });
                    self.unbegun.borrow_mut().extend(unbegun);
                    let (done, failed, took_ms) = (false, false, 0);
                    let end = SlotEnd { done, failed, result: "stopped".to_owned(), took_ms };
                    handle.tell(Input::SlotEnded { term, end });
                }
                self.leads.set(None);
                self.lost.set(Some(reason));
            }
            Event::SlotsOver(why) => self.over.set(Some(why)),
            Event::Failed(fault) => *self.failure.borrow_mut() = Some(fault),
            Event::SlotClosed { term, recorded: true } => {
                self.recorded.borrow_mut().push(term);
            }
            Event::SlotClosed { recorded: false, .. } => {
                *self.unrecorded.borrow_mut() = handle.with(|election| election.fault().cloned());
            }
            Event::NewLeader { .. } | Event::GivenUp => {}
            Event::Troubled(_) | Event::Solved | Event::InGrace { .. } => {}
            Event::Suspected { .. } | Event::Recovered { .. } => {}
        }
    }

    fn report<T, E>(
        self,
        handle: &Handle,
        mut runs: Vec<Run<T, E>>,
    ) -> Result<Report<T, E>, Fault> {
        runs.extend(self.unbegun.take().into_iter().map(
            |Unbegun { slot_ms, term, previous, reason }| {
                let end = RunEnd::Lost(reason);
                Run { slot_ms, term, took_ms: 0, recorded: false, previous, end }
            },
        ));
        // Tokens grow.
        runs.sort_by_key(|run| run.term);
        for run in &mut runs {
            run.recorded = self.recorded.borrow().contains(&run.term);
        }
        let own = handle.with(Election::own_slot_ms);
        let (slot_ms, left_out) = own.unzip();
        let ran = runs.iter().rev().find(|run| Some(run.slot_ms) == slot_ms);
        let fault = match self.failure.into_inner() {
            Some(fault) if runs.is_empty() && says_nothing(self.over.get()) => return Err(fault),
            // A store that has failed to the end of the budget said of nobody that they hold the lease, and one that has not
            // answered a claim may be why that is unknown.
            None if matches!(self.over.get(), Some(SlotsOver::Budget | SlotsOver::Unknown)) => {
                handle.with(|election| election.fault().cloned())
            }
            fault => fault,
        };
        // Of an earlier slot the claims that followed have said what became of it.
        let fault = match ran {
            Some(run) if !run.recorded => fault.or(self.unrecorded.into_inner()),
            _ => fault,
        };
        let outcome = match ran.map(|run| &run.end) {
            Some(RunEnd::Done(_)) => SlotOutcome::Done,
            Some(RunEnd::Failed(_)) => SlotOutcome::Failed,
            Some(RunEnd::Lost(_)) => SlotOutcome::Lost,
            None => SlotOutcome::unrun(self.over.get()),
        };
        let previous = ran.and_then(|run| run.previous.clone());
        let taken = match outcome {
            SlotOutcome::Taken => handle.with(shown_slot),
            _ => None,
        };
        let left_out = left_out.unwrap_or(0);
        Ok(Report { outcome, slot_ms, left_out, previous, taken, runs, fault })
    }
}
