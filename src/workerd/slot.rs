//! One slot of a Worker: its job, called under the lease.

use std::cell::RefCell;
use std::pin::pin;

use futures::future::{Either, select};
use worker::{Env, Fetcher};

use super::host::Workerd;
use super::problem::{Problem, told};
use super::send;
use crate::config::Config;
use crate::driver::{Handle, Host};
use crate::election::{Election, LostReason, SlotsOver};
use crate::groups::Group;
use crate::job::{self, Answered, Call, JobTarget, Order};
use crate::lead::Term;
use crate::scheduled::{Report, RunEnd, SlotOutcome, run_with_word};
use crate::slots::recorded_cron;
use crate::store::Store;
use crate::text::{first, quoted, visible};
use crate::vars::JOB;

/// What came of a call, and what the log says of one that failed; it quotes no header and no address.
pub type Ended = (Answered, Option<String>);

/// One trigger of one group.
pub struct Trigger<'a> {
    pub handle: &'a Handle,
    pub host: &'a Workerd,
    pub target: JobTarget,
    pub group: &'a Group,
    pub env: &'a Env,
}

impl Trigger<'_> {
    /// Calls the job that the variables name.
    pub async fn call(&self, term: &Term<'_, Workerd>) -> Ended {
        let config = self.handle.with(|election| election.config().clone());
        let call = Call {
            group: &config.lockfile_path,
            slot: term.slot_ms.unwrap_or(0),
            term: term.token,
            server_id: &config.server_id,
        };
        let order = self.target.order(&call, self.host.now().wall_ms);
        match self.post(&order).await {
            Ok(status) => (Answered::Status(status), None),
            Err(error) => (Answered::Never, Some(told(&error.into()))),
        }
    }

    /// Nothing of the answer but its status is read, so that a long or endless one costs nothing.
    async fn post(&self, order: &Order) -> worker::Result<u16> {
        let bound: Option<Fetcher> = match self.target.url {
            Some(_) => None,
            None => Some(self.env.service(self.group.source(JOB))?),
        };
        let headers = order.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let body = order.body.as_bytes();
        let sent = send::send("POST", &order.url, headers, body, bound.as_ref()).await?;
        let (_under_way, answer) = sent;
        Ok(answer.status_code())
    }
}

/// How a job of the Worker's own has ended.
pub fn own(ended: Result<(), String>) -> Ended {
    match ended {
        Ok(()) => (Answered::Own(true), None),
        Err(cause) => (Answered::Own(false), Some(cause)),
    }
}

/// Runs the slots of a trigger's schedule; says how it went, as `Err` where somebody should look.
pub async fn run_slot<S: Store>(
    trigger: &Trigger<'_>,
    store: &S,
    call: impl AsyncFn(Term<'_, Workerd>) -> Ended,
) -> Result<String, Problem> {
    let Trigger { handle, host, target, .. } = trigger;
    let config = handle.with(|election| election.config().clone());
    let cause = RefCell::new(None);
    let began_ms = host.now().mono_ms;
    let mut job = async |term: Term<'_, Workerd>| {
        let spent_ms = host.now().mono_ms.saturating_sub(began_ms);
        let late = pin!(host.sleep(target.after(spent_ms, &config).timeout_ms));
        let (answered, why) = match select(pin!(call(term)), late).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => (Answered::Late, Some("timeout".to_owned())),
        };
        if why.is_some() {
            *cause.borrow_mut() = why;
        }
        job::judge(answered)
    };
    let word = |result: &Result<String, String>| match result {
        Ok(word) | Err(word) => word.clone(),
    };
    let report = run_with_word(handle, store, *host, &mut job, word).await;
    let report = report.map_err(|fault| fault.message)?;
    let mut line = line(handle, &config, &report);
    if let Some(cause) = cause.take() {
        line = format!("{line} cause={}", quoted(first(&cause, 120)));
    }
    // Nothing is wrong with a group that begins, or that an operator has paused.
    let ends = report.runs.iter().map(|run| &run.end);
    let well = |end: &_| matches!(end, RunEnd::Done(_) | RunEnd::Lost(LostReason::Paused));
    let fine = report.fault.is_none() && ends.into_iter().all(well);
    match report.outcome {
        SlotOutcome::Done | SlotOutcome::Taken if fine => Ok(line),
        SlotOutcome::Skipped(SlotsOver::NewGroup | SlotsOver::Paused) if fine => Ok(line),
        // Its own slot went well, and one that was missed did not.
        SlotOutcome::Done | SlotOutcome::Taken if report.fault.is_none() => {
            Err(Problem::Told(line, "an earlier slot failed"))
        }
        outcome => Err(Problem::Told(line, outcome.name())),
    }
}

/// What the first trigger of a group says.
const NEW_GROUP: &str = "the group begins: nobody knows whether this slot ran before, so it is left out and the next can \
                         run; npx edgelect init, run once before, avoids that";

/// What to do about a second cron.
fn other_cron(handle: &Handle) -> String {
    let of = handle.with(|election| election.record().and_then(|(_, lease)| recorded_cron(lease)));
    let of = of.map_or_else(String::new, |text| visible(first(&text, 60)));
    let rule = "so that nobody knows which slots were missed: give each trigger a group of its own, or set EDGELECT_CRON \
                to the one that is meant; EDGELECT_MISSED=skip makes up for none";
    format!(
        "conflict={}",
        quoted(&format!("the group's slots are those of the trigger {of}, {rule}"))
    )
}

/// A sentence for why a slot was skipped.
fn said_of(why: SlotsOver, handle: &Handle) -> Option<String> {
    let operator = |election: &Election| election.record()?.1.operator.as_ref().map(|r| r.told());
    let note = match why {
        SlotsOver::OtherCron => return Some(other_cron(handle)),
        SlotsOver::Paused => quoted(&handle.with(operator)?),
        SlotsOver::NewGroup => quoted(NEW_GROUP),
        SlotsOver::Ahead { by_ms } => quoted(&format!("{}: by {by_ms} ms", why.text())),
        _ => quoted(why.text()),
    };
    Some(format!("note={note}"))
}

/// What the log says of one trigger, on one line.
fn line(handle: &Handle, config: &Config, report: &Report<String, String>) -> String {
    let mut pieces = Vec::from([format!("outcome={}", report.outcome.name())]);
    if let SlotOutcome::Skipped(why) = report.outcome {
        pieces.push(format!("why={}", why.name()));
        pieces.extend(said_of(why, handle));
    }
    if let Some(slot_ms) = report.slot_ms {
        pieces.push(format!("slot={slot_ms}"));
    }
    pieces.extend(job::past_fields(report.taken.as_ref(), report.previous.as_ref()));
    for run in &report.runs {
        let word = match &run.end {
            RunEnd::Done(word) | RunEnd::Failed(word) => word,
            RunEnd::Lost(reason) => reason.name(),
        };
        let (slot, term) = (run.slot_ms.to_string(), run.term.to_string());
        let took = run.took_ms.to_string();
        let recorded = if run.recorded { "" } else { " (not recorded)" };
        let run = ["run=\"", &slot, " term ", &term, " ", word, " ", &took, " ms", recorded, "\""];
        pieces.push(run.concat());
    }
    if report.left_out > 0 {
        pieces.push(format!("leftOut={}", report.left_out));
    }
    let requests = handle.requests();
    let runs = report.runs.len() as u64;
    pieces.push(format!("requests={}", requests.read + requests.write + requests.peer + runs));
    let recorded = report.runs.iter().all(|run| run.recorded);
    let problem = handle.with(|election| election.problem().map(ToString::to_string));
    let problem = problem.or_else(|| report.fault.as_ref().map(|fault| fault.message.clone()));
    if let Some(problem) = problem.filter(|_| report.outcome != SlotOutcome::Done || !recorded) {
        pieces.push(format!("problem={}", quoted(&problem)));
    }
    pieces.push(format!("group={}", config.lockfile_path));
    pieces.join(" ")
}
