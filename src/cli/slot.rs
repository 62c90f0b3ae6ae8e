//! `edgelect slot`: a command that one of many machines runs in each period.

use std::cell::Cell;
use std::future::pending;

use edgelect::json::Object;
use edgelect::slots::SlotsOver;
use edgelect::{
    ConfigError, Election, RunEnd, Schedule, ScheduleSettings, SlotOutcome, calendar, new_schedule,
    run_scheduled,
};
use serde_json::json;

use super::command::{Flags, code};
use super::place::Failure;
use super::runner::Runner;

/// Variables of a Worker's job, which would be set for nothing.
const OF_WORKERS: [(&str, &str); 5] = [
    ("EDGELECT_POLICY", "use --policy"),
    ("EDGELECT_MISSED", "use --missed"),
    ("EDGELECT_PERIOD", "use --period"),
    ("EDGELECT_BUDGET", "use --budget"),
    ("EDGELECT_ATTEMPTS", "a slot is given up after three failures"),
];

/// Runs the command if the slot is still free; gives the exit code.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn slot(flags: &Flags) -> Result<i32, Failure> {
    for (variable, instead) in OF_WORKERS {
        if std::env::var_os(variable).is_some_and(|text| !text.is_empty()) {
            let text = format!("{variable}: only Workers read it; {instead}");
            return Err(Failure::Settings(text));
        }
    }
    let mut options = Object::new();
    for long in ["policy", "missed", "period", "budget"] {
        let number = flags.number(long).map(|number| json!(number));
        if let Some(value) = number.or(flags.get(long).map(|text| json!(text))) {
            options.set(long, value.to_string());
        }
    }
    let refused = |error: ConfigError| {
        let field = format!("--{}", error.field);
        Failure::Settings(ConfigError { field, ..error }.message())
    };
    let settings = ScheduleSettings::from_json(&options).map_err(refused)?;
    let runner = Runner::open(flags, |host, config| {
        let schedule = Schedule::new(&settings, &config).map_err(refused)?;
        new_schedule(host, config, schedule).map_err(Failure::Machine)
    })?;
    runner.attend(take(&runner)).await
}

async fn take(runner: &Runner) -> Result<i32, Failure> {
    let last = Cell::new(code("failed"));
    let job = async |term: edgelect::Term<'_, _>| {
        let slot_ms = term.slot_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or_default();
        let ended = runner.run(&term, Some(&calendar::rfc3339_with_ms(slot_ms))).await;
        match ended.map(|ended| ended.code) {
            Some(0) => Ok(()),
            Some(code) if !runner.is_over() => {
                last.set(code);
                Err(())
            }
            // The record says that it was stopped, and nobody repeats what may have done its work.
            stopped => {
                runner.end(stopped.unwrap_or(code("failed")));
                pending().await
            }
        }
    };
    let report = run_scheduled(&runner.handle, &runner.store, &runner.host, job).await;
    let report = report.map_err(Failure::Store)?;
    let outcome = report.outcome;
    let why = match outcome {
        SlotOutcome::Skipped(why) => Some(reason(runner, why)),
        SlotOutcome::Unknown => Some(SlotsOver::Unknown.text().to_owned()),
        _ => None,
    };
    let which = match report.slot_ms.and_then(|ms| i64::try_from(ms).ok()) {
        Some(slot_ms) if !report.runs.is_empty() => {
            format!(" for the slot of {}", calendar::rfc3339_with_ms(slot_ms))
        }
        _ => String::new(),
    };
    let why = why.map(|why| format!("the command did not run{which}: {why}"));
    let untold = report.fault.as_ref().filter(|_| outcome == SlotOutcome::Done).map(|fault| {
        let said = "the command has run, but nobody knows whether the store has recorded that; with atLeastOnce it may run again";
        format!("{said}: {}", fault.message)
    });
    runner.tell("over", json!({ "outcome": outcome.name() }), why.or(untold).as_deref());
    // A slot of before that was not done is told, whatever became of the newest.
    let undone = report.runs.iter().rev().find(|run| !matches!(run.end, RunEnd::Done(())));
    match undone.map(|run| &run.end) {
        Some(RunEnd::Failed(())) => return Ok(last.get()),
        Some(RunEnd::Lost(_)) => return Ok(code("lost")),
        _ => {}
    }
    Ok(match outcome {
        SlotOutcome::Done | SlotOutcome::Taken => code("done"),
        SlotOutcome::Failed => last.get(),
        SlotOutcome::Lost => code("lost"),
        SlotOutcome::Skipped(SlotsOver::NewGroup) => code("nobody"),
        SlotOutcome::Skipped(_) if let Some(fault) = report.fault => Failure::Store(fault).code(),
        SlotOutcome::Skipped(_) => runner.conflict,
        SlotOutcome::Unknown => code("failed"),
    })
}

fn reason(runner: &Runner, why: SlotsOver) -> String {
    let told = |election: &Election| Some(election.record()?.1.operator.as_ref()?.told());
    let told = if why == SlotsOver::Paused { runner.handle.with(told) } else { None };
    told.unwrap_or_else(|| why.text().to_owned())
}
