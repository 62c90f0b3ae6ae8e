//! One group of a Worker in one event: its settings, its store, its job, its schedule.

use worker::Env;

use super::host::Workerd;
use super::{AnyStore, open};
use crate::config::{Config, ConfigError};
use crate::cron;
use crate::groups::Group;
use crate::job::{self, JobTarget};
use crate::slots::{Cron, Missed, Policy, Schedule};
use crate::tick::{self, SUSTAIN_MS};
use crate::vars::{self, Given, JOB, R2};

/// A slot to check a schedule with that has no trigger yet.
const SOME_SLOT_MS: u64 = 1;

/// Who calls the job of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Whoever the variables name, if anybody.
    Named,
    /// The Worker itself.
    Own,
}

/// What an event needs of its group.
pub struct Setup {
    pub config: Config,
    /// The job of each slot; without one a tick leads and parks.
    pub job: Option<JobTarget>,
    pub store: AnyStore,
    pub sustain_ms: u64,
}

/// Reads the variables and secrets; nothing of a secret is in an error.
pub fn set_up(
    group: &Group,
    env: &Env,
    job: Job,
    trigger: Option<&str>,
    host: &Workerd,
) -> Result<Setup, ConfigError> {
    vars::check_given(group.variables())?;
    let get = |name: &str| group.get(name);
    vars::log_is_json(get)?;
    let mut settings = super::settings(get)?;
    let sustain_ms = *settings.sustain_ms.get_or_insert(SUSTAIN_MS);
    settings.server_id.get_or_insert_with(|| "edgelect".to_owned());
    let config = vars::config(&settings)?;
    let schedule = schedule(group, Some(SOME_SLOT_MS), trigger, &config)?;
    let bound = job == Job::Own || group.given(JOB) == Some(&Given::Service);
    let job = JobTarget::from_vars(get, bound, &config, &schedule)?;
    if let (None, Some(most)) = (&job, schedule.subrequests) {
        tick::check_tick(&config, sustain_ms, most)?;
    }
    let store = open(env, get, group.source(R2), &config, host)?;
    Ok(Setup { config, job, store, sustain_ms })
}

/// The schedule of a trigger with this job, with room for the longest.
pub fn schedule_for(
    target: &JobTarget,
    group: &Group,
    slot_ms: Option<u64>,
    trigger: Option<&str>,
    config: &Config,
) -> Result<Schedule, ConfigError> {
    let mut schedule = schedule(group, slot_ms, trigger, config)?;
    target.reserve(config, &mut schedule);
    if over_epochs(group) {
        schedule.subrequests = schedule.subrequests.map(job::requests_of_epochs);
    }
    Ok(schedule)
}

fn over_epochs(group: &Group) -> bool {
    group.get("EDGELECT_STORE").as_deref() == Some("epochs")
}

/// The schedule of a trigger, in steps of its store.
fn schedule(
    group: &Group,
    slot_ms: Option<u64>,
    trigger: Option<&str>,
    config: &Config,
) -> Result<Schedule, ConfigError> {
    let mut schedule = plain_schedule(group, slot_ms, trigger, config)?;
    if over_epochs(group) {
        schedule.subrequests = schedule.subrequests.map(job::steps_of_epochs);
    }
    Ok(schedule)
}

/// The schedule of a trigger. Where slots must not be lost and nobody names their period, it is the trigger's own.
fn plain_schedule(
    group: &Group,
    slot_ms: Option<u64>,
    trigger: Option<&str>,
    config: &Config,
) -> Result<Schedule, ConfigError> {
    let get = |name: &str| group.get(name);
    let settings = job::schedule(get, slot_ms)?;
    let own = get("EDGELECT_CRON").filter(|text| !text.is_empty());
    if let Some(text) = &own {
        cron::check_text(text)?;
    }
    let named = own.is_some();
    let text = own.as_deref().or(trigger);
    let mut schedule = cron::schedule(text, &settings, config).map_err(job::by_variable)?;
    let Some(text) = text else { return Ok(schedule) };
    let by_default = schedule.policy == Policy::AtLeastOnce;
    let makes_up = settings.missed.map_or(by_default, |missed| missed != Missed::Skip);
    let text = cron::plain(text);
    let periodic = schedule.period_ms.is_some();
    schedule.cron =
        Some(Cron { text, named, makes_up, periodic }).filter(|cron| !cron.text.is_empty());
    Ok(schedule)
}
