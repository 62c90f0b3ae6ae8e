//! The probe as JavaScript asks for it: at a start, and as `Elector.doctor`.

use std::rc::Rc;

use serde::Serialize;
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::{RawElector, config_error, error_json, object, thrown};
use crate::bucket::CredentialSource;
use crate::config::{Config, ConfigError, check_path};
use crate::custom::AnyStore;
use crate::json::{self, Object};
use crate::probe::{self, Effort, Judged, Progress, Report, is_due, probe_until};
use crate::store::Store;
use crate::task::Task;

/// One race finds a store that looks before it writes most of the time; docs/doctor.md has the figures.
const RACES: u32 = 20;
const MOST_RACES: u64 = 1_000;
const LONGEST_AGE_MS: u64 = 3_600_000;

#[wasm_bindgen]
impl RawElector {
    /// Has [`RawElector::poll`] probe the store, by an object of its own beside the lease. `order` is JSON: `races` and `age`,
    /// each with a default. An event `begins` comes before each step, `step` after it, `probed` of the whole. [`RawElector::stop`] ends it, and the
    /// object is deleted all the same.
    pub fn probe(&mut self, order: &str) -> Result<(), String> {
        let effort = effort(&object(order)?).map_err(config_error)?;
        let (object, config) = self.beside()?;
        let (handle, web) = (self.handle.clone(), self.web.clone());
        let events = Rc::clone(&self.events);
        self.task = Task::new(async move {
            let tell = |progress: Progress<'_>| {
                let told = match progress {
                    Progress::Begins(step) => json!({ "type": "begins", "step": step.name() }),
                    Progress::Done(one) => json!({ "type": "step", "step": StepTold::of(one) }),
                };
                events.borrow_mut().push(told.to_string());
            };
            let stop = handle.stop_told();
            let mut end = json!({ "type": "finished" });
            match probe_until(&object, &web, &config, effort, tell, stop).await {
                Ok(report) => {
                    let told = json::of(&ReportEvent::of(&report, object.describe()));
                    events.borrow_mut().push(told);
                }
                Err(message) => end["error"] = error_json("EDGELECT_RANDOMNESS", &message),
            }
            end.to_string()
        });
        Ok(())
    }
}

impl RawElector {
    /// The object by which the store is judged before the election trusts it. None where the lease's key has no room for a
    /// probe's.
    pub(super) fn judged(&self, judges: Option<bool>) -> Option<AnyStore<CredentialSource>> {
        // A table and a zone are AWS's own, and requests of a zone are scarce.
        let in_bucket = matches!(self.store.inner(), AnyStore::S3(_) | AnyStore::Epochs(_));
        let due = in_bucket && self.handle.with(|election| is_due(election.config()));
        if judges.unwrap_or(due) { self.beside().ok().map(|(object, _)| object) } else { None }
    }

    /// A probe's own object beside the lease, and the settings with its key.
    fn beside(&self) -> Result<(AnyStore<CredentialSource>, Config), String> {
        let mut config = self.handle.with(|election| election.config().clone());
        let key = probe::key(&config.lockfile_path, &self.web)
            .map_err(|message| thrown("EDGELECT_RANDOMNESS", &message))?;
        config.lockfile_path = check_path(Some(&key)).map_err(config_error)?;
        let object = self.place.open(&config, &self.web)?;
        Ok((object, config))
    }
}

/// How much is asked for.
fn effort(order: &Object) -> Result<Effort, ConfigError> {
    let races = match order.get("races") {
        None => Some(u64::from(RACES)),
        Some(races) => json::whole(races).filter(|races| (1..=MOST_RACES).contains(races)),
    };
    let Some(races) = races else {
        let rule = format!("must be a whole number from 1 to {MOST_RACES}");
        return Err(refused(order, "races", rule));
    };
    let thorough = Effort::thorough(races as u32);
    let age_ms = match order.get("age") {
        None => Some(thorough.age_ms),
        Some(age) => Some(age)
            .filter(|age| json::is_number(age))
            .and_then(json::rounded_up)
            .filter(|age_ms| *age_ms <= LONGEST_AGE_MS),
    };
    let Some(age_ms) = age_ms else {
        let rule = format!("must be a number of milliseconds from 0 to {LONGEST_AGE_MS}");
        return Err(refused(order, "age", rule));
    };
    Ok(Effort { age_ms, ..thorough })
}

fn refused(order: &Object, field: &str, rule: String) -> ConfigError {
    let value = order.get(field).unwrap_or_default();
    let value = if json::is_number(value) { value } else { "(not a number)" };
    ConfigError::new(field, value, rule)
}

/// One step, as the public types have it.
#[derive(Serialize)]
struct StepTold<'a> {
    step: &'a str,
    finding: &'a str,
    why: Option<&'a str>,
}

impl<'a> StepTold<'a> {
    fn of(Judged { step, finding }: &'a Judged) -> Self {
        Self { step: step.name(), finding: finding.name(), why: finding.why() }
    }
}

/// What ended a probe, as the public types have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refusal<'a> {
    status: Option<u16>,
    store_code: Option<&'a str>,
}

/// A report, as the public types have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportEvent<'a> {
    r#type: &'static str,
    store: String,
    finding: &'static str,
    steps: Vec<StepTold<'a>>,
    refusal: Option<Refusal<'a>>,
    clock_offset: Option<i64>,
    clock_error: Option<u64>,
}

impl<'a> ReportEvent<'a> {
    fn of(report: &'a Report, store: String) -> Self {
        Self {
            r#type: "probed",
            store,
            finding: report.finding().name(),
            steps: report.judged.iter().map(StepTold::of).collect(),
            refusal: report
                .refusal()
                .map(|fault| Refusal { status: fault.status, store_code: fault.code.as_deref() }),
            clock_offset: report.offset.map(|offset| offset.ms),
            clock_error: report.offset.map(|offset| offset.error_ms),
        }
    }
}
