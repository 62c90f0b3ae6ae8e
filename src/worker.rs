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
use crate::custom::{AnyStore, CustomStore};
use crate::driver::{self, Handle, Host};
use crate::job::{self, JobTarget};
use crate::json::{self, Object, Writer};
use crate::lease::Reading;
use crate::peer::{self, HealthAnswer};
use crate::prelude::*;
use crate::remote::S3Store;
use crate::request::Parts;
use crate::sigv4::Credentials;
use crate::slots::Schedule;
use crate::store::{Answer, Facts, Operation, Outcome, Store};
use crate::task::Task;
use crate::tick;
use crate::vars;
use crate::web::{JsHost, Link, Settled, Web};

/// How long a tick may take from its scheduled time, in milliseconds, where nothing else is set.
const SUSTAIN_MS: u64 = 57_000;

/// A slot to check a schedule with that has no trigger yet.
const SOME_SLOT_MS: u64 = 1;

/// How long a failed read answers questions from peers, in milliseconds: the store may be well again soon.
const KEEP_FAILURE_MS: u64 = 1_000;

/// How many records an isolate keeps for questions: as many as one Worker has groups.
const MOST_SEEN: usize = 16;

/// What lives as long as this instance of the wasm.
#[derive(Default)]
struct Isolate {
    /// The electors of the ticks that run in this isolate now, for questions that happen to land here, each
    /// with the clock that it is driven by.
    running: RefCell<Vec<(Handle, Web)>>,
    /// The records that were asked for, the newest last.
    seen: RefCell<Vec<Rc<Seen>>>,
}

/// A record as this isolate read it last.
struct Seen {
    /// Of which store.
    place: String,
    /// When, and what.
    read: RefCell<Option<(u64, Answer)>>,
    /// When a read of the record left that has not come back: the questions are public, and one read is enough.
    asked_ms: Cell<Option<u64>>,
}

impl Isolate {
    fn seen(&self, place: String) -> Rc<Seen> {
        let mut all = self.seen.borrow_mut();
        if let Some(seen) = all.iter().find(|seen| seen.place == place) {
            return Rc::clone(seen);
        }
        if all.len() == MOST_SEEN {
            all.remove(0);
        }
        let seen = Rc::new(Seen { place, read: RefCell::default(), asked_ms: Cell::default() });
        all.push(Rc::clone(&seen));
        seen
    }
}

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
pub struct RawWorker(Rc<Isolate>);

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
                Ok(line) => Writer::new().text("line", &line).end(),
                Err(problem) => told(&mut Writer::new(), &problem).end(),
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
                Ok(answer) => Writer::new()
                    .number("status", answer.status.into())
                    .maybe_text("etag", answer.etag.as_ref().map(|version| version.0.as_str()))
                    .text("body", &answer.body)
                    .end(),
                Err(problem) => told(&mut Writer::new(), &problem).end(),
            }
        });
        RawEvent { link, task }
    }
}

fn told<'a>(end: &'a mut Writer, problem: &Problem) -> &'a mut Writer {
    end.text("problem", &problem.message).maybe_text("variable", problem.variable.as_deref())
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
    let job = JobTarget::from_vars(get, get("JOB").is_some())?;
    let schedule = Schedule::new(&job::schedule(get, SOME_SLOT_MS)?, &config);
    schedule.map_err(job::by_variable)?;
    let path = &config.lockfile_path;
    let store = if vars::binds_r2(&variables)? {
        AnyStore::Custom(CustomStore::named("R2 bucket EDGELECT_R2", web.clone(), path))
    } else {
        AnyStore::Bucket(Box::new(S3Store::from_vars(get, path, web.clone())?))
    };
    Ok(Setup { config, job, store, web })
}

async fn scheduled(
    isolate: &Isolate,
    scheduled_ms: u64,
    variables: &str,
    web: Web,
) -> Result<String, Problem> {
    let setup = set_up(variables, web)?;
    if let Some(target) = &setup.job {
        let now_ms = setup.web.now().wall_ms;
        let slot_ms = if scheduled_ms == 0 { now_ms } else { scheduled_ms };
        return Ok(one_slot(isolate, &setup, target, variables, slot_ms).await?);
    }
    let Setup { config, store, web, .. } = &setup;
    let sustain_ms = config.sustain_ms.unwrap_or(SUSTAIN_MS);
    let Some(leads_for_ms) = tick::leads_for_ms(scheduled_ms, web.now(), sustain_ms) else {
        return Ok("outcome=late requests=0".to_owned());
    };
    let handle = Handle::new(driver::new_election(web, config.clone())?);
    isolate.running.borrow_mut().push((handle.clone(), web.clone()));
    let led = tick::tick(&handle, store, web, leads_for_ms).await;
    isolate.running.borrow_mut().retain(|(other, _)| session_of(other) != session_of(&handle));
    let led = led.map_err(|fault| fault.message)?;
    let requests = handle.requests();
    let outcome = if led.is_some() { "led" } else { "followed" };
    let term = led.map_or_else(|| "none".to_owned(), |term| term.to_string());
    let requests = (requests.read + requests.write).to_string();
    Ok(["outcome=", outcome, " term=", &term, " requests=", &requests].concat())
}

/// Answers a request.
async fn answer(
    isolate: &Isolate,
    method: &str,
    url: &str,
    variables: &str,
    web: Web,
) -> Result<HealthAnswer, ConfigError> {
    if Parts::of(url).is_none_or(|parts| parts.path != peer::PATH) {
        let body = r#"{"error":"not found"}"#.to_owned();
        return Ok(HealthAnswer { status: 404, etag: None, body });
    }
    if method != "GET" {
        return Ok(HealthAnswer::wrong_method());
    }
    Ok(health(isolate, &set_up(variables, web)?).await)
}

/// Runs the job of one slot, and of those that must come before it.
async fn one_slot(
    isolate: &Isolate,
    setup: &Setup,
    target: &JobTarget,
    variables: &str,
    slot_ms: u64,
) -> Result<String, String> {
    let Setup { config, store, web, .. } = setup;
    let variables = Object::read(variables.as_bytes()).unwrap_or_default();
    let get = |name: &str| variables.get(name).and_then(json::text);
    let settings = job::schedule(get, slot_ms).map_err(|error| error.message())?;
    let schedule = Schedule::new(&settings, config).map_err(|error| error.message())?;
    let handle = Handle::new(driver::new_schedule(web, config.clone(), schedule)?);
    isolate.running.borrow_mut().push((handle.clone(), web.clone()));
    let line = slot::run_slot(&handle, store, web, target).await;
    isolate.running.borrow_mut().retain(|(other, _)| session_of(other) != session_of(&handle));
    line
}

fn session_of(handle: &Handle) -> String {
    handle.with(|election| election.session().to_owned())
}

async fn health(isolate: &Isolate, setup: &Setup) -> HealthAnswer {
    let Setup { config, .. } = setup;
    let mut here: Vec<(Handle, Web)> = isolate.running.borrow().clone();
    here.retain(|(handle, _)| {
        handle.with(|election| election.config().lockfile_path == config.lockfile_path)
    });
    for (handle, clock) in &here {
        let now = clock.now();
        let answer = handle.with(|election| peer::answer(election, now));
        if answer.status == 200 {
            return answer;
        }
    }
    let sessions: Vec<String> = here.iter().map(|(handle, _)| session_of(handle)).collect();
    let (at_ms, answer) = read_cached(isolate, setup).await;
    let age_ms = age_ms(setup, answer.facts, at_ms);
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

/// How old a record is that was read at `at_ms`, as far as an answer to a question may guess.
fn age_ms(setup: &Setup, facts: Facts, at_ms: u64) -> Option<u64> {
    let now_ms = setup.web.now().wall_ms;
    match (facts.date_ms, facts.last_modified_ms) {
        // An answer out of somebody's cache says nothing of now (S6).
        _ if facts.relayed => None,
        (Some(date_ms), Some(modified_ms)) => {
            let kept_ms = now_ms.saturating_sub(at_ms);
            Some(date_ms.saturating_sub(modified_ms).saturating_add(kept_ms))
        }
        // The binding has no `Date`, but its clock and this isolate's are both Cloudflare's. The election must not
        // compare them; an answer may, because it grants nothing and saves a read: where they are apart by less
        // than storeSkew, a dead leader is called alive for no longer than that beyond its lease. To watch the
        // version instead would call it alive for a whole lease from the first look of every new isolate.
        (None, Some(modified_ms)) if matches!(setup.store, AnyStore::Custom(_)) => {
            let ahead_ms = modified_ms.saturating_sub(now_ms);
            (ahead_ms <= setup.config.store_skew_ms).then(|| now_ms.saturating_sub(modified_ms))
        }
        _ => None,
    }
}

/// The record as the store has it and when it was read, at most once per `frequentInterval` by one isolate.
async fn read_cached(isolate: &Isolate, setup: &Setup) -> (u64, Answer) {
    let Setup { config, store, web, .. } = setup;
    let now_ms = web.now().wall_ms;
    let seen = isolate.seen([&store.describe(), " ", &config.lockfile_path].concat());
    let nothing = || (now_ms, Answer { outcome: Outcome::Missing, facts: Facts::default() });
    let within =
        |since_ms: u64, ms: u64| now_ms.checked_sub(since_ms).is_some_and(|age_ms| age_ms < ms);
    let asking = seen.asked_ms.get();
    let asking = asking.is_some_and(|asked_ms| within(asked_ms, config.request_timeout_ms));
    if let Some((at_ms, answer)) = &*seen.read.borrow() {
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
    seen.asked_ms.set(Some(now_ms));
    let (read, late) = (
        pin!(store.perform(Operation::Read { unless: None })),
        pin!(web.sleep(config.request_timeout_ms)),
    );
    let read = select(read, late).await;
    seen.asked_ms.set(None);
    match read {
        Either::Left((answer, _)) => {
            *seen.read.borrow_mut() = Some((now_ms, answer.clone()));
            (now_ms, answer)
        }
        Either::Right(_) => nothing(),
    }
}
