//! The deployable Worker: `scheduled` runs the elector for one cron tick, `fetch` answers the peers.
//!
//! A tick keeps the lease until its `sustain` is over, then parks it for the next tick of the same
//! `serverId`. Nothing is carried from one tick to the next but the record in the store: the isolate may be
//! gone by then, or be another one.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures::future::{Either, select};
use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use worker::{
    Context, Env, Headers, Request, Response, ScheduleContext, ScheduledEvent, console_error,
    console_log, event,
};

use crate::config::{Config, ConfigError, HostClock};
use crate::driver::{self, Handle, Host};
use crate::election::{Event, Input};
use crate::lease::Reading;
use crate::peer::{self, HealthAnswer};
use crate::remote::S3Store;
use crate::store::{Answer, Operation, Outcome, Store};
use crate::vars;
use crate::web::{JsHost, Link, Settled, Web};

/// How long a tick may take from its scheduled time, in milliseconds, where nothing else is set.
const SUSTAIN_MS: u64 = 57_000;

thread_local! {
    /// The JavaScript side, for as long as this instance lives.
    static LINK: RefCell<Option<Rc<Link>>> = const { RefCell::new(None) };
    /// The electors of the ticks that run in this isolate now, for questions that happen to land here, each
    /// with the clock that it is driven by.
    static RUNNING: RefCell<Vec<(Handle, Web)>> = const { RefCell::new(Vec::new()) };
    /// The record as this isolate read it last: of which store, when, and what.
    static SEEN: RefCell<Option<(String, u64, Answer)>> = const { RefCell::new(None) };
}

/// Gives this instance the host of `js/host.js`; before any event.
#[wasm_bindgen]
pub fn connect(host: JsHost) {
    LINK.with(|link| *link.borrow_mut() = Some(Link::new(host)));
}

/// How an operation that the host began has ended.
#[wasm_bindgen]
pub fn settle(id: u32, ok: bool, head: String, body: Vec<u8>) {
    // Not borrowed while it settles: whoever is woken may ask for the link.
    let link = LINK.with(|link| link.borrow().clone());
    if let Some(link) = link {
        link.settle(id, Settled { ok, head, body });
    }
}

fn web() -> Web {
    let link = LINK.with(|link| link.borrow().clone());
    Web::new(link.expect("js/worker.js connects the host before it hands over any event"))
}

struct Setup {
    config: Config,
    bucket: S3Store<Web>,
    web: Web,
}

/// Reads the variables and secrets; nothing of a secret is in an error.
fn set_up(env: &Env) -> Result<Setup, ConfigError> {
    let get = |name: &str| variable_text(&Reflect::get(env, &name.into()).unwrap_or_default());
    let mut settings = vars::settings(get)?;
    settings.clock = HostClock::One;
    settings.sustain_ms.get_or_insert(SUSTAIN_MS);
    settings.server_id.get_or_insert_with(|| "edgelect".to_owned());
    let config = vars::config(&settings)?;
    let web = web();
    let bucket = S3Store::from_vars(get, &config.lockfile_path, web.clone())?;
    Ok(Setup { config, bucket, web })
}

/// A variable or secret as the text that it would be in an environment; `wrangler.toml` may give a number or a
/// flag. What has no text is kept as something that no option accepts, so that it is refused by name.
fn variable_text(value: &JsValue) -> Option<String> {
    if value.is_undefined() || value.is_null() {
        return None;
    }
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    let text = value.as_string().or_else(|| number.map(|number| (number as i64).to_string()));
    let text = text.or_else(|| value.as_bool().map(|flag| flag.to_string()));
    Some(text.unwrap_or_else(|| "(no text)\0".to_owned()))
}

/// One cron tick.
#[event(scheduled)]
async fn scheduled(event: ScheduledEvent, env: Env, _ctx: ScheduleContext) {
    let setup = match set_up(&env) {
        Ok(setup) => setup,
        Err(error) => return console_error!("edgelect: {error}"),
    };
    let started_ms = setup.web.now().wall_ms;
    let scheduled_ms = event.schedule().max(0.0) as u64;
    let sustain_ms = setup.config.sustain_ms.unwrap_or(SUSTAIN_MS);
    // A trigger that came early gets no more than its budget, one without a usable time gets that.
    let from_ms = if scheduled_ms == 0 { started_ms } else { scheduled_ms.min(started_ms) };
    let end_ms = from_ms.saturating_add(sustain_ms);
    match tick(&setup, end_ms).await {
        Ok(line) => console_log!("edgelect tick: {line}"),
        Err(error) => console_error!("edgelect: {error}"),
    }
}

/// Runs one elector until `end_ms` on the wall clock and parks what it holds; says how it went.
async fn tick(setup: &Setup, end_ms: u64) -> Result<String, String> {
    let Setup { config, bucket, web } = setup;
    let left_ms = end_ms.saturating_sub(web.now().wall_ms);
    let parking_ms = 2 * config.request_timeout_ms;
    if left_ms <= parking_ms {
        return Ok("outcome=late requests=0".to_owned());
    }
    let handle = Handle::new(driver::new_election(web, config.clone())?);
    RUNNING.with(|running| running.borrow_mut().push((handle.clone(), web.clone())));
    let mut terms = Vec::new();
    let mut failure = None;
    {
        let run = pin!(driver::run(&handle, bucket, web, |event| match event {
            Event::Acquired { term } => terms.push(term),
            // This Worker has no work of its own yet, so it has stopped as soon as it should.
            Event::Lost { term, .. } => handle.tell(Input::WorkEnded { term }),
            Event::Failed(fault) => failure = Some(fault.message),
            Event::NewLeader { .. } | Event::GivenUp => {}
        }));
        let until_park = pin!(web.sleep(left_ms - parking_ms));
        if let Either::Right((_, run)) = select(run, until_park).await {
            handle.tell(Input::Stop { park: true });
            let rest_ms = end_ms.saturating_sub(web.now().wall_ms);
            let _ = select(run, pin!(web.sleep(rest_ms))).await;
        }
    }
    RUNNING.with(|running| {
        running.borrow_mut().retain(|(other, _)| session_of(other) != session_of(&handle));
    });
    if let Some(message) = failure {
        return Err(message);
    }
    let requests = handle.requests();
    let outcome = if terms.is_empty() { "followed" } else { "led" };
    let term = terms.last().map_or_else(|| "none".to_owned(), u64::to_string);
    Ok(format!("outcome={outcome} term={term} requests={}", requests.read + requests.write))
}

/// `GET /health/leadership`.
#[event(fetch)]
async fn fetch(request: Request, env: Env, _ctx: Context) -> worker::Result<Response> {
    let url = request.inner().url();
    let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("/", |start| &after_scheme[start..]);
    let path = path.split(['?', '#']).next().unwrap_or("/");
    if path != peer::PATH {
        return respond(404, None, r#"{"error":"not found"}"#);
    }
    if request.inner().method() != "GET" {
        let answer = HealthAnswer::wrong_method();
        return respond(answer.status, None, &answer.body);
    }
    let answer = match set_up(&env) {
        Ok(setup) => health(&setup).await,
        Err(error) => {
            console_error!("edgelect: {error}");
            return respond(500, None, &config_error_body(&error));
        }
    };
    let etag = answer.etag.as_ref().map(|version| version.0.as_str());
    respond(answer.status, etag, &answer.body)
}

/// Names the variable and nothing of its value, which may be a secret in the wrong place.
fn config_error_body(error: &ConfigError) -> String {
    serde_json::json!({ "error": "edgelect is not configured", "variable": error.field })
        .to_string()
}

fn session_of(handle: &Handle) -> String {
    handle.with(|election| election.session().to_owned())
}

async fn health(setup: &Setup) -> HealthAnswer {
    let Setup { config, web, .. } = setup;
    let here: Vec<(Handle, Web)> = RUNNING.with(|running| running.borrow().clone());
    for (handle, clock) in &here {
        let now = clock.now();
        let answer = handle.with(|election| peer::answer(election, now));
        if answer.status == 200 {
            return answer;
        }
    }
    let sessions: Vec<String> = here.iter().map(|(handle, _)| session_of(handle)).collect();
    let (at_ms, answer) = read_cached(setup).await;
    let facts = answer.facts;
    let kept_ms = web.now().wall_ms.saturating_sub(at_ms);
    let age_ms = match (facts.date_ms, facts.last_modified_ms) {
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
async fn read_cached(setup: &Setup) -> (u64, Answer) {
    let Setup { config, bucket, web } = setup;
    let now_ms = web.now().wall_ms;
    let place = format!("{} {}", bucket.describe(), config.lockfile_path);
    let fresh = SEEN.with(|seen| {
        let seen = seen.borrow();
        let (from, at_ms, answer) = seen.as_ref()?;
        let age_ms = now_ms.checked_sub(*at_ms)?;
        let usable = *from == place && age_ms < config.frequent_interval_ms;
        usable.then(|| (*at_ms, answer.clone()))
    });
    if let Some(fresh) = fresh {
        return fresh;
    }
    let read = bucket.perform(Operation::Read { unless: None });
    match select(pin!(read), pin!(web.sleep(config.request_timeout_ms))).await {
        Either::Left((answer, _)) => {
            // A failure is not kept: the next question may find the store well.
            if matches!(answer.outcome, Outcome::Found { .. } | Outcome::Missing) {
                SEEN.with(|seen| *seen.borrow_mut() = Some((place, now_ms, answer.clone())));
            }
            (now_ms, answer)
        }
        Either::Right(_) => {
            (now_ms, Answer { outcome: Outcome::Missing, facts: Default::default() })
        }
    }
}

fn respond(status: u16, etag: Option<&str>, body: &str) -> worker::Result<Response> {
    let headers = Headers::new();
    headers.set("content-type", "application/json")?;
    headers.set("cache-control", "no-store")?;
    if let Some(etag) = etag {
        headers.set("etag", etag)?;
    }
    if status == 405 {
        headers.set("allow", "GET")?;
    }
    Ok(Response::ok(body)?.with_status(status).with_headers(headers))
}
