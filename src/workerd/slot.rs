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
use crate::election::{Election, SlotsOver};
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
    let fine = report.runs.iter().all(|run| matches!(run.end, RunEnd::Done(_)));
    match report.outcome {
        SlotOutcome::Done | SlotOutcome::Taken if fine && report.fault.is_none() => Ok(line),
        // Nothing is wrong with a group that begins, or that an operator has paused.
        SlotOutcome::Skipped(SlotsOver::NewGroup | SlotsOver::Paused) if report.fault.is_none() => {
            Ok(line)
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

/// What the log says of one trigger, on one line.
fn line(handle: &Handle, config: &Config, report: &Report<String, String>) -> String {
    let mut pieces = Vec::from([format!("outcome={}", report.outcome.name())]);
    if let SlotOutcome::Skipped(why) = report.outcome {
        pieces.push(format!("why={}", why.name()));
        if why == SlotsOver::OtherCron {
            pieces.push(other_cron(handle));
        }
        if why == SlotsOver::Paused {
            let of = |election: &Election| election.record()?.1.operator.as_ref().map(|r| r.told());
            pieces.extend(handle.with(of).map(|told| format!("note={}", quoted(&told))));
        }
        if why == SlotsOver::NewGroup {
            pieces.push(format!("note=\"{NEW_GROUP}\""));
        }
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
    pieces
        .push(format!("requests={}", (requests.read + requests.write + report.runs.len() as u64)));
    let problem = handle.with(|election| election.problem().map(ToString::to_string));
    if let Some(problem) = problem.filter(|_| report.outcome != SlotOutcome::Done) {
        pieces.push(format!("problem=\"{problem}\""));
    }
    pieces.push(format!("group={}", config.lockfile_path));
    pieces.join(" ")
}
