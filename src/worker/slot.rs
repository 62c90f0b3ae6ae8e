//! One slot of the deployed Worker: its job, called under the lease.

use std::cell::RefCell;

use crate::config::Config;
use crate::driver::{Handle, Host};
use crate::election::SlotsOver;
use crate::job::{self, JobTarget};

use crate::lead::Term;
use crate::scheduled::{Report, RunEnd, SlotOutcome, run_with_word};
use crate::slots::recorded_cron;
use crate::status;
use crate::store::Store;
use crate::text::{first, quoted, visible};
use crate::web::Web;

/// Runs the slots of this session's schedule; says how it went, as `Err` where somebody should look.
pub async fn run_slot<S: Store>(
    handle: &Handle,
    store: &S,
    web: &Web,
    target: &JobTarget,
) -> Result<String, String> {
    let config = handle.with(|election| election.config().clone());
    let cause = RefCell::new(None);
    let began_ms = web.now().mono_ms;
    let mut job = async |term: Term<'_, Web>| {
        let slot_ms = term.slot_ms.unwrap_or(0);
        let spent_ms = web.now().mono_ms.saturating_sub(began_ms);
        let target = target.after(spent_ms, &config);
        let order = target.order(&config.lockfile_path, slot_ms, term.token, &config.server_id);
        let settled = web.job(&order).await;
        if !settled.ok {
            *cause.borrow_mut() = Some(settled.head.clone());
        }
        job::judge(settled.ok, &settled.head)
    };
    let word = |result: &Result<String, String>| match result {
        Ok(word) | Err(word) => word.clone(),
    };
    let report = run_with_word(handle, store, web, &mut job, word).await;
    let report = report.map_err(|fault| fault.message)?;
    let mut line = line(handle, &config, &report);
    // Why the job could not be called, as the runtime says it; it quotes no header and no address.
    if let Some(cause) = cause.take() {
        line = format!("{line} cause={}", quoted(first(&cause, 120)));
    }
    let fine = report.runs.iter().all(|run| matches!(run.end, RunEnd::Done(_)));
    match report.outcome {
        SlotOutcome::Done | SlotOutcome::Taken if fine && report.fault.is_none() => Ok(line),
        _ => Err(line),
    }
}

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
    }
    if let Some(slot_ms) = report.slot_ms {
        pieces.push(format!("slot={slot_ms}"));
    }
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
    let problem = handle.with(|election| election.problem().map(status::problem_text));
    if let Some(problem) = problem.filter(|_| report.outcome != SlotOutcome::Done) {
        pieces.push(format!("problem=\"{problem}\""));
    }
    pieces.push(format!("group={}", config.lockfile_path));
    pieces.join(" ")
}
