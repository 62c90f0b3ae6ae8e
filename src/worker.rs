//! The deployable Worker: `scheduled` runs the elector for one cron tick, `fetch` answers the peers.
//!
//! A tick keeps the lease until its `sustain` is over, then parks it for the next tick of the same
//! `serverId`. Nothing is carried from one tick to the next but the record in the store: the isolate may be
//! gone by then, or be another one.
//!
//! Plain `wasm-bindgen` under `js/worker.js`, which turns events into texts and texts into answers: crate `worker`
//! links `std` and makes the wasm 33.7 KB larger after gzip -9. Each event has a host and a task of its own, so that what it begins is
//! settled in that event.

mod slot;

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::pin::pin;

use futures::future::{Either, select};
use wasm_bindgen::prelude::*;

use crate::config::{Config, ConfigError, HostClock};
use crate::driver::{self, Handle, Host};
use crate::election::{Event, Input};
use crate::job::{self, JobTarget};
use crate::json::{self, Object, Writer};
use crate::lease::Reading;
use crate::peer::{self, HealthAnswer};
use crate::prelude::*;
use crate::remote::S3Store;
use crate::request::Parts;
use crate::slots::Schedule;
use crate::store::{Answer, Operation, Outcome, Store};
use crate::task::Task;
use crate::vars;
use crate::web::{JsHost, Link, Settled, Web};

/// How long a tick may take from its scheduled time, in milliseconds, where nothing else is set.
const SUSTAIN_MS: u64 = 57_000;

/// How long before the end of its `sustain` a tick begins to park, in milliseconds: a usual store needs a tenth of
/// it. Whatever is left of the minute nobody has authority, so it is short; a slow store may make the tick end later,
/// by no more than the attempts of one write.
const PARKING_MS: u64 = 1_000;

/// A slot to check a schedule with that has no trigger yet.
const SOME_SLOT_MS: u64 = 1;

/// How long a failed read answers questions from peers, in milliseconds: the store may be well again soon.
const KEEP_FAILURE_MS: u64 = 1_000;

/// What lives as long as this instance of the wasm.
#[derive(Default)]
struct Isolate {
    /// The electors of the ticks that run in this isolate now, for questions that happen to land here, each
    /// with the clock that it is driven by.
    running: RefCell<Vec<(Handle, Web)>>,
    /// The record as this isolate read it last: of which store, when, and what.
    seen: RefCell<Option<(String, u64, Answer)>>,
    /// When a read of the record left that has not come back: the questions are public, and one read is enough.
    asked_ms: Cell<Option<u64>>,
}

/// The Worker as `js/worker.js` sees it.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawWorker(Rc<Isolate>);

#[wasm_bindgen]
impl RawWorker {
    /// No tick runs yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// One cron tick. `variables` is a JSON object of texts. Ends with `{ line }` for the log, or with the `problem`.
    pub fn scheduled(&self, scheduled_ms: f64, variables: String, host: JsHost) -> RawEvent {
        let (isolate, link) = (Rc::clone(&self.0), Link::new(host));
        let web = Web::new(Rc::clone(&link));
        let task = Task::new(async move {
            let (name, text) = match scheduled(&isolate, scheduled_ms as u64, &variables, web).await
            {
                Ok(line) => ("line", line),
                Err(problem) => ("problem", problem),
            };
            Writer::new().text(name, &text).end()
        });
        RawEvent { link, task }
    }

    /// Any request. Ends with `{ status, etag, body, problem }`; a problem is for the log alone.
    pub fn fetch(&self, method: String, url: String, variables: String, host: JsHost) -> RawEvent {
        let (isolate, link) = (Rc::clone(&self.0), Link::new(host));
        let web = Web::new(Rc::clone(&link));
        let task = Task::new(async move {
            let (answer, problem) = answer(&isolate, &method, &url, &variables, web).await;
            Writer::new()
                .number("status", answer.status.into())
                .maybe_text("etag", answer.etag.as_ref().map(|version| version.0.as_str()))
                .text("body", &answer.body)
                .maybe_text("problem", problem.as_deref())
                .end()
        });
        RawEvent { link, task }
    }
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
    bucket: S3Store<Web>,
    web: Web,
}

/// Reads the variables and secrets; nothing of a secret is in an error.
fn set_up(variables: &str, web: Web) -> Result<Setup, ConfigError> {
    let variables = Object::read(variables.as_bytes()).unwrap_or_default();
    let get = |name: &str| variables.get(name).and_then(json::text);
    let mut settings = vars::settings(get)?;
    settings.clock = HostClock::One;
    settings.sustain_ms.get_or_insert(SUSTAIN_MS);
    settings.server_id.get_or_insert_with(|| "edgelect".to_owned());
    let config = vars::config(&settings)?;
    let job = JobTarget::from_vars(get, get("JOB").is_some())?;
    let schedule = Schedule::new(&job::schedule(get, SOME_SLOT_MS)?, &config);
    schedule.map_err(job::by_variable)?;
    let bucket = S3Store::from_vars(get, &config.lockfile_path, web.clone())?;
    Ok(Setup { config, job, bucket, web })
}

async fn scheduled(
    isolate: &Isolate,
    scheduled_ms: u64,
    variables: &str,
    web: Web,
) -> Result<String, String> {
    let setup = set_up(variables, web).map_err(|error| error.message())?;
    let started_ms = setup.web.now().wall_ms;
    let sustain_ms = setup.config.sustain_ms.unwrap_or(SUSTAIN_MS);
    // A trigger that came early gets no more than its budget, one without a usable time gets that.
    let from_ms = if scheduled_ms == 0 { started_ms } else { scheduled_ms.min(started_ms) };
    if let Some(target) = &setup.job {
        let slot_ms = if scheduled_ms == 0 { started_ms } else { scheduled_ms };
        return one_slot(isolate, &setup, target, variables, slot_ms).await;
    }
    tick(isolate, &setup, from_ms.saturating_add(sustain_ms)).await
}

/// Runs the job of one slot, and of those that must come before it.
async fn one_slot(
    isolate: &Isolate,
    setup: &Setup,
    target: &JobTarget,
    variables: &str,
    slot_ms: u64,
) -> Result<String, String> {
    let Setup { config, bucket, web, .. } = setup;
    let variables = Object::read(variables.as_bytes()).unwrap_or_default();
    let get = |name: &str| variables.get(name).and_then(json::text);
    let settings = job::schedule(get, slot_ms).map_err(|error| error.message())?;
    let schedule = Schedule::new(&settings, config).map_err(|error| error.message())?;
    let handle = Handle::new(driver::new_schedule(web, config.clone(), schedule)?);
    isolate.running.borrow_mut().push((handle.clone(), web.clone()));
    let line = slot::run_slot(&handle, bucket, web, target).await;
    isolate.running.borrow_mut().retain(|(other, _)| session_of(other) != session_of(&handle));
    line
}

/// Runs one elector until `end_ms` on the wall clock and parks what it holds; says how it went.
async fn tick(isolate: &Isolate, setup: &Setup, end_ms: u64) -> Result<String, String> {
    let Setup { config, bucket, web, .. } = setup;
    let left_ms = end_ms.saturating_sub(web.now().wall_ms);
    if left_ms <= PARKING_MS {
        return Ok("outcome=late requests=0".to_owned());
    }
    let handle = Handle::new(driver::new_election(web, config.clone())?);
    isolate.running.borrow_mut().push((handle.clone(), web.clone()));
    let mut terms = Vec::new();
    let mut failure = None;
    {
        let run = pin!(driver::run(&handle, bucket, web, |event| match event {
            Event::Acquired { term } => terms.push(term),
            // This Worker has no work of its own yet, so it has stopped as soon as it should.
            Event::Lost { term, .. } => handle.tell(Input::WorkEnded { term }),
            Event::Failed(fault) => failure = Some(fault.message),
            Event::NewLeader { .. } | Event::GivenUp => {}
            Event::SlotClosed { .. } | Event::SlotsOver(_) => {}
        }));
        let until_park = pin!(web.sleep(left_ms - PARKING_MS));
        if let Either::Right((_, run)) = select(run, until_park).await {
            handle.tell(Input::Stop { park: true });
            run.await;
        }
    }
    isolate.running.borrow_mut().retain(|(other, _)| session_of(other) != session_of(&handle));
    if let Some(message) = failure {
        return Err(message);
    }
    let requests = handle.requests();
    let outcome = if terms.is_empty() { "followed" } else { "led" };
    let term = terms.last().map_or_else(|| "none".to_owned(), u64::to_string);
    let requests = (requests.read + requests.write).to_string();
    Ok(["outcome=", outcome, " term=", &term, " requests=", &requests].concat())
}

/// Answers a request, and says what to log.
async fn answer(
    isolate: &Isolate,
    method: &str,
    url: &str,
    variables: &str,
    web: Web,
) -> (HealthAnswer, Option<String>) {
    let plain = |status, body: &str| HealthAnswer { status, etag: None, body: body.to_owned() };
    if Parts::of(url).is_none_or(|parts| parts.path != peer::PATH) {
        return (plain(404, r#"{"error":"not found"}"#), None);
    }
    if method != "GET" {
        return (HealthAnswer::wrong_method(), None);
    }
    match set_up(variables, web) {
        Ok(setup) => (health(isolate, &setup).await, None),
        Err(error) => {
            // Names the variable and nothing of its value, which may be a secret in the wrong place.
            let body = Writer::new()
                .text("error", "edgelect is not configured")
                .text("variable", &error.field)
                .end();
            (plain(500, &body), Some(error.message()))
        }
    }
}

fn session_of(handle: &Handle) -> String {
    handle.with(|election| election.session().to_owned())
}

async fn health(isolate: &Isolate, setup: &Setup) -> HealthAnswer {
    let Setup { config, web, .. } = setup;
    let here: Vec<(Handle, Web)> = isolate.running.borrow().clone();
    for (handle, clock) in &here {
        let now = clock.now();
        let answer = handle.with(|election| peer::answer(election, now));
        if answer.status == 200 {
            return answer;
        }
    }
    let sessions: Vec<String> = here.iter().map(|(handle, _)| session_of(handle)).collect();
    let (at_ms, answer) = read_cached(isolate, setup).await;
    let facts = answer.facts;
    let kept_ms = web.now().wall_ms.saturating_sub(at_ms);
    let age_ms = match (facts.date_ms, facts.last_modified_ms) {
        // An answer out of somebody's cache says nothing of now (S6).
        _ if facts.relayed => None,
        (Some(date_ms), Some(modified_ms)) => {
            Some(date_ms.saturating_sub(modified_ms).saturating_add(kept_ms))
        }
        _ => None,
    };
    match &answer.outcome {
        // A session of ours that is here and has no authority speaks for its own record.
        Outcome::Found { reading: Reading::Lease(lease), .. }
            if lease.session.as_ref().is_some_and(|session| sessions.contains(session)) =>
        {
            HealthAnswer::not_leading()
        }
        Outcome::Found { version, reading: Reading::Lease(lease) } => peer::answer_from_store(
            &config.lockfile_path,
            &config.server_id,
            version,
            lease,
            age_ms,
            config.leader_timeout_ms,
        ),
        _ => HealthAnswer::not_leading(),
    }
}

/// The record as the store has it and when it was read, at most once per `frequentInterval` by one isolate.
async fn read_cached(isolate: &Isolate, setup: &Setup) -> (u64, Answer) {
    let Setup { config, bucket, web, .. } = setup;
    let now_ms = web.now().wall_ms;
    let place = [&bucket.describe(), " ", &config.lockfile_path].concat();
    let nothing = || (now_ms, Answer { outcome: Outcome::Missing, facts: Default::default() });
    let within =
        |since_ms: u64, ms: u64| now_ms.checked_sub(since_ms).is_some_and(|age_ms| age_ms < ms);
    let asking = isolate.asked_ms.get();
    let asking = asking.is_some_and(|asked_ms| within(asked_ms, config.request_timeout_ms));
    if let Some((from, at_ms, answer)) = &*isolate.seen.borrow()
        && *from == place
    {
        let known = matches!(answer.outcome, Outcome::Found { .. } | Outcome::Missing);
        let kept_ms = if known { config.frequent_interval_ms } else { KEEP_FAILURE_MS };
        // While the next one is on its way the last one serves a little longer; its age counts on.
        let kept_ms = kept_ms + if asking { config.request_timeout_ms } else { 0 };
        if within(*at_ms, kept_ms) {
            return (*at_ms, answer.clone());
        }
    }
    // What another event has begun can't be waited for in this one.
    if asking {
        return nothing();
    }
    isolate.asked_ms.set(Some(now_ms));
    let (read, late) = (
        pin!(bucket.perform(Operation::Read { unless: None })),
        pin!(web.sleep(config.request_timeout_ms)),
    );
    let read = select(read, late).await;
    isolate.asked_ms.set(None);
    match read {
        Either::Left((answer, _)) => {
            *isolate.seen.borrow_mut() = Some((place, now_ms, answer.clone()));
            (now_ms, answer)
        }
        Either::Right(_) => nothing(),
    }
}
