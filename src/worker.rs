//! The deployable Worker: `scheduled` runs the elector for one cron tick, `fetch` answers the peers.
//!
//! A tick keeps the lease until its `sustain` is over, then parks it for the next tick of the same
//! `serverId`. Nothing is carried from one tick to the next but the record in the store: the isolate may be
//! gone by then, or be another one.
//!
//! Plain `wasm-bindgen` under `js/worker.js`, which turns events into texts and texts into answers. Each event has a host
//! and a task of its own, so that what it begins is settled in that event.

mod slot;

use std::rc::Rc;

use http::Uri;
use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::config::{Config, ConfigError, HostClock};
use crate::cron;
use crate::custom::{AnyStore, CustomStore};
use crate::driver::{self, Handle, Host};
use crate::isolate::Isolate;
use crate::job::{self, JobTarget};
use crate::json::{self, Object};
use crate::peer::{self, HealthAnswer};
use crate::remote::S3Store;
use crate::sigv4::Credentials;
use crate::slots::{Cron, Missed, Policy, Schedule};
use crate::task::Task;
use crate::tick::{self, SUSTAIN_MS};
use crate::vars;
use crate::web::{JsHost, Link, Settled, Web};

/// A slot to check a schedule with that has no trigger yet.
const SOME_SLOT_MS: u64 = 1;

/// The trigger that the event is of, among the variables: `js/worker.js` adds it.
const CRON: &str = "cron";

/// Why an event came to nothing.
struct Problem {
    message: String,
    /// The variable that it is about.
    variable: Option<String>,
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self { message: error.message(), variable: Some(error.field) }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, variable: None }
    }
}

/// The Worker as `js/worker.js` sees it.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawWorker(Rc<Isolate<Web>>);

#[wasm_bindgen]
impl RawWorker {
    /// No tick runs yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// One cron tick of one group. `variables` is a JSON object of texts. Ends with `{ line }` for the log, or with the
    /// `problem` and the `variable` that it is about.
    pub fn scheduled(&self, scheduled_ms: f64, variables: String, host: JsHost) -> RawEvent {
        let (isolate, link) = (Rc::clone(&self.0), Link::new(host));
        let web = Web::new(Rc::clone(&link));
        let task = Task::new(async move {
            match scheduled(&isolate, scheduled_ms as u64, &variables, web).await {
                Ok(line) => json!({ "line": line }).to_string(),
                Err(problem) => told(&problem),
            }
        });
        RawEvent { link, task }
    }

    /// Any request about one group. Ends with `{ status, etag, body }`, or with a `problem` for the log alone and the
    /// `variable` that it is about.
    pub fn fetch(&self, method: String, url: String, variables: String, host: JsHost) -> RawEvent {
        let (isolate, link) = (Rc::clone(&self.0), Link::new(host));
        let web = Web::new(Rc::clone(&link));
        let task = Task::new(async move {
            match answer(&isolate, &method, &url, &variables, web).await.map_err(Problem::from) {
                Ok(answer) => json::of(&answer),
                Err(problem) => told(&problem),
            }
        });
        RawEvent { link, task }
    }
}

fn told(problem: &Problem) -> String {
    json!({ "problem": problem.message, "variable": problem.variable }).to_string()
}

/// One event on its way.
#[wasm_bindgen]
pub struct RawEvent {
    link: Rc<Link>,
    task: Task,
}

#[wasm_bindgen]
impl RawEvent {
    /// Goes on as far as it can; its end as JSON, once. To be called after anything was settled.
    pub fn poll(&mut self) -> Option<String> {
        self.task.poll()
    }

    /// How an operation that the host began has ended.
    pub fn settle(&self, id: u32, ok: bool, head: String, body: Vec<u8>) {
        self.link.settle(id, Settled { ok, head, body });
    }
}

struct Setup {
    config: Config,
    /// The job of each slot; without one a tick leads and parks.
    job: Option<JobTarget>,
    store: AnyStore<Credentials>,
    web: Web,
}

/// Reads the variables and secrets; nothing of a secret is in an error.
fn set_up(variables: &str, web: Web) -> Result<Setup, ConfigError> {
    let variables = Object::read(variables.as_bytes()).unwrap_or_default();
    vars::check_names(&variables)?;
    let get = |name: &str| variables.get(name).and_then(json::text);
    let mut settings = vars::settings(get)?;
    settings.clock = HostClock::One;
    settings.sustain_ms.get_or_insert(SUSTAIN_MS);
    settings.server_id.get_or_insert_with(|| "edgelect".to_owned());
    let config = vars::config(&settings)?;
    let schedule = schedule_of(get, Some(SOME_SLOT_MS), &config)?;
    let job = JobTarget::from_vars(get, get("JOB").is_some(), &config, &schedule)?;
    if let (None, Some(most)) = (&job, schedule.subrequests) {
        tick::check_tick(&config, config.sustain_ms.unwrap_or(SUSTAIN_MS), most)?;
    }
    let path = &config.lockfile_path;
    let store = if vars::binds_r2(&variables)? {
        AnyStore::Custom(CustomStore::named(
            "R2 bucket EDGELECT_R2",
            web.clone(),
            path,
            vars::format(get)?,
        ))
    } else {
        AnyStore::Bucket(Box::new(S3Store::from_vars(get, path, web.clone())?))
    };
    Ok(Setup { config, job, store, web })
}

/// The schedule of a trigger. Where slots must not be lost and nobody names their period, it is the trigger's own.
fn schedule_of(
    get: impl Fn(&str) -> Option<String> + Copy,
    slot_ms: Option<u64>,
    config: &Config,
) -> Result<Schedule, ConfigError> {
    let mut settings = job::schedule(get, slot_ms)?;
    let mut schedule = Schedule::new(&settings, config).map_err(job::by_variable)?;
    let own = get("EDGELECT_CRON").filter(|text| !text.is_empty());
    if let Some(text) = &own {
        cron::check_text(text)?;
    }
    let named = own.is_some();
    let Some(text) = own.or_else(|| get(CRON)) else { return Ok(schedule) };
    cron::check(&text, config, &schedule)?;
    if schedule.policy != Policy::AtMostOnce && schedule.period_ms.is_none() {
        let even = cron::steps(&text).filter(|steps| steps.even);
        settings.period_ms = even.map(|steps| steps.least_ms);
        schedule = Schedule::new(&settings, config).map_err(job::by_variable)?;
    }
    let by_default = schedule.policy == Policy::AtLeastOnce;
    let makes_up = settings.missed.map_or(by_default, |missed| missed != Missed::Skip);
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    schedule.cron = Some(Cron { text, named, periodic: schedule.period_ms.is_some() })
        .filter(|cron| makes_up && !cron.text.is_empty());
    Ok(schedule)
}

async fn scheduled(
    isolate: &Rc<Isolate<Web>>,
    scheduled_ms: u64,
    variables: &str,
    web: Web,
) -> Result<String, Problem> {
    let setup = set_up(variables, web)?;
    if let Some(target) = &setup.job {
        // A slot by this isolate's clock would be one that no other copy of the trigger means.
        let slot_ms = Some(scheduled_ms).filter(|ms| *ms > 0);
        return one_slot(isolate, &setup, target, variables, slot_ms).await;
    }
    let Setup { config, store, web, .. } = &setup;
    let sustain_ms = config.sustain_ms.unwrap_or(SUSTAIN_MS);
    let Some(leads_for_ms) = tick::leads_for_ms(scheduled_ms, web.now(), sustain_ms) else {
        return Ok("outcome=late requests=0".to_owned());
    };
    let handle = Handle::new(driver::new_election(web, config.clone())?);
    let _running = isolate.runs(&handle, web);
    let led = tick::tick(&handle, store, web, leads_for_ms).await;
    let led = led.map_err(|fault| fault.message)?;
    let requests = handle.requests();
    let outcome = if led.is_some() { "led" } else { "followed" };
    let term = led.map_or_else(|| "none".to_owned(), |term| term.to_string());
    let requests = (requests.read + requests.write).to_string();
    Ok(format!("outcome={outcome} term={term} requests={requests}"))
}

/// Answers a request.
async fn answer(
    isolate: &Rc<Isolate<Web>>,
    method: &str,
    url: &str,
    variables: &str,
    web: Web,
) -> Result<HealthAnswer, ConfigError> {
    if !url.parse::<Uri>().is_ok_and(|uri| uri.path() == peer::PATH) {
        let body = r#"{"error":"not found"}"#.to_owned();
        return Ok(HealthAnswer { status: 404, etag: None, body });
    }
    if method != "GET" {
        return Ok(HealthAnswer::wrong_method());
    }
    let Setup { config, store, web, .. } = set_up(variables, web)?;
    let bound = matches!(store, AnyStore::Custom(_));
    Ok(isolate.health(&config, &store, &web, bound).await)
}

/// Runs the job of one slot, and of those that must come before it.
async fn one_slot(
    isolate: &Rc<Isolate<Web>>,
    setup: &Setup,
    target: &JobTarget,
    variables: &str,
    slot_ms: Option<u64>,
) -> Result<String, Problem> {
    let Setup { config, store, web, .. } = setup;
    let variables = Object::read(variables.as_bytes()).unwrap_or_default();
    let get = |name: &str| variables.get(name).and_then(json::text);
    let mut schedule = schedule_of(get, slot_ms, config)?;
    target.reserve(config, &mut schedule);
    let handle = Handle::new(driver::new_schedule(web, config.clone(), schedule)?);
    let _running = isolate.runs(&handle, web);
    Ok(slot::run_slot(&handle, store, web, target).await?)
}
