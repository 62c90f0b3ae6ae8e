//! What a Worker does in an event: all that the deployed one does.

use std::fmt::Display;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{FutureExt, join_all};
use wasm_bindgen::JsCast;
use worker::js_sys::Reflect;
use worker::{Context, Env, Error, Response, Result, ScheduledEvent, console_error, console_log};

use super::group::{self, Job, Setup, set_up};
use super::problem::Problem;
use super::slot::{self, Trigger, run_slot};
use super::{Workerd, env};
use crate::config::ConfigError;
use crate::driver::{self, Handle, Host};
use crate::election::Problem as Trouble;
use crate::groups::{self, Group};
use crate::isolate::Isolate;
use crate::job::Call;
use crate::lead::Term;
use crate::metrics::Sample;
use crate::peer::{self, HealthAnswer};
use crate::text::{first, quoted};
use crate::tick::{self, Ticked};
use crate::{calendar, metrics, page, rehearsal, status, vars};

thread_local! {
    static ISOLATE: Rc<Isolate<Workerd>> = Rc::default();
}

/// Runs a cron trigger for each group that it is for: leads until `EDGELECT_SUSTAIN` is over and parks, or runs the job of
/// the slot where `JOB` is bound or `EDGELECT_JOB_URL` is set. Each group is a line of the log.
///
/// # Errors
/// Somebody should look at the log, which says why. Return it from an exported function, not from crate `worker`'s
/// `#[event(scheduled)]`, which drops it: Cloudflare counts a trigger as failed only where its promise is rejected.
pub async fn scheduled(event: &ScheduledEvent, env: &Env) -> Result<()> {
    let nobody = async |_: Term<'_, Workerd>| Ok(());
    trigger(event, env, Job::Named, &nobody).await
}

/// The same, with a job of this Worker's own in place of a bound one. Its slot is [`Term::slot_ms`]; an `Err` is a failure of
/// the slot, and its text is in the log. `EDGELECT_JOB_TIMEOUT` bounds it.
///
/// # Errors
/// As for [`scheduled`].
pub async fn scheduled_with<E: Display>(
    event: &ScheduledEvent,
    env: &Env,
    job: impl AsyncFn(Term<'_, Workerd>) -> std::result::Result<(), E>,
) -> Result<()> {
    let job = async |term: Term<'_, Workerd>| job(term).await.map_err(|error| error.to_string());
    trigger(event, env, Job::Own, &job).await
}

/// Runs one slot without a store and without a job, so that V8 has compiled most of what an event calls before the first one
/// comes: call it where the isolate starts, whose CPU Cloudflare counts to no event. It reads no clock, draws nothing random,
/// and sends nothing. Whether it went as a slot goes; nothing depends on that.
pub fn rehearse() -> bool {
    let variables = worker::js_sys::Object::new();
    for (name, text) in REHEARSED {
        if Reflect::set(&variables, &name.into(), &text.into()).is_err() {
            return false;
        }
    }
    let env: Env = variables.unchecked_into();
    let cron = "* * * * *";
    let Ok(groups) = groups::on_trigger(&env::entries(&env), cron) else { return false };
    groups.iter().all(|group| {
        let setup = set_up(group, &env, Job::Named, Some(cron), &Workerd::new());
        let Ok(Setup { config, job: Some(job), .. }) = setup else { return false };
        let slot_ms = Some(rehearsal::AT_MS);
        let schedule = group::schedule_for(&job, group, slot_ms, Some(cron), &config);
        let Ok(schedule) = schedule else { return false };
        let (group, server_id) = (&*config.lockfile_path, &*config.server_id);
        let call = Call { group, slot: rehearsal::AT_MS, term: rehearsal::AT_MS, server_id };
        job.order(&call, rehearsal::AT_MS);
        rehearsal::rehearse(&config, schedule)
    })
}

/// The variables of a Worker that has a job, over S3.
const REHEARSED: [(&str, &str); 7] = [
    ("EDGELECT_LOCKFILE_PATH", "rehearsal.json"),
    ("EDGELECT_ENDPOINT", "https://s3.example"),
    ("EDGELECT_BUCKET", "rehearsal"),
    ("EDGELECT_REGION", "us-east-1"),
    ("EDGELECT_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("EDGELECT_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    ("EDGELECT_JOB_URL", "https://job.example"),
];

async fn trigger(
    event: &ScheduledEvent,
    env: &Env,
    job: Job,
    own: &impl AsyncFn(Term<'_, Workerd>) -> std::result::Result<(), String>,
) -> Result<()> {
    let cron = event.cron();
    let groups = groups::on_trigger(&env::entries(env), &cron).map_err(|error| {
        console_error!("edgelect: {}", error.message());
        failed(&error.field)
    })?;
    if groups.is_empty() {
        // The cron of a group may have been changed in one of two places: nobody else would say that its slots never run.
        console_error!(
            "edgelect: no group is for the trigger \"{cron}\"; let EDGELECT_CRON name one of `crons` in wrangler.toml"
        );
        return Err(failed("EDGELECT_CRON"));
    }
    let host = &Workerd::new();
    let scheduled_ms = event.schedule().max(0.0) as u64;
    let event = &Event { scheduled_ms, cron: &cron, env, job, host };
    let ends = join_all(groups.iter().map(async |group| run(group, event, own).await)).await;
    // Only now: an event that has failed may take with it what is still under way.
    let words: Vec<String> = ends.into_iter().flatten().collect();
    if words.is_empty() { Ok(()) } else { Err(failed(&words.join(", "))) }
}

fn failed(what: &str) -> Error {
    Error::RustError(format!("edgelect: {what}; the log says why"))
}

/// A cron trigger.
struct Event<'a> {
    scheduled_ms: u64,
    cron: &'a str,
    env: &'a Env,
    job: Job,
    /// One for all groups: whichever of their timers is due first holds the clock of the event (S11).
    host: &'a Workerd,
}

/// One group's part of a trigger, told in the log under the group's name; a few words where somebody should look.
async fn run(
    group: &Group,
    event: &Event<'_>,
    own: &impl AsyncFn(Term<'_, Workerd>) -> std::result::Result<(), String>,
) -> Option<String> {
    let name = group.name.as_ref().map(|name| format!("group={name} ")).unwrap_or_default();
    let (problem, word) = match one_group(group, event, own).await {
        Ok(line) => {
            match json_line(group, "info", &line, event.host) {
                Some(json) => console_log!("{json}"),
                None => console_log!("edgelect tick: {name}{line}"),
            }
            return None;
        }
        Err(Problem::Told(text, word)) => (text, word.to_owned()),
        Err(Problem::Config(error)) => {
            let error = group.by_source(error);
            (error.message(), error.field)
        }
    };
    match json_line(group, "error", &problem, event.host) {
        Some(json) => console_error!("{json}"),
        None => console_error!("edgelect: {name}{problem}"),
    }
    Some(name + &word)
}

/// The line that a trigger of a group leaves in the log, where `EDGELECT_LOG` is `json`.
fn json_line(group: &Group, level: &str, message: &str, host: &Workerd) -> Option<String> {
    if !vars::log_is_json(|name| group.get(name)).unwrap_or_default() {
        return None;
    }
    let time = i64::try_from(host.now().wall_ms).ok().map(calendar::rfc3339_with_ms);
    let group = group.get("EDGELECT_LOCKFILE_PATH");
    let line = serde_json::json!({
        "time": time, "level": level, "group": group, "event": "trigger", "message": message,
    });
    Some(line.to_string())
}

async fn one_group(
    group: &Group,
    event: &Event<'_>,
    own: &impl AsyncFn(Term<'_, Workerd>) -> std::result::Result<(), String>,
) -> std::result::Result<String, Problem> {
    let host = event.host;
    let isolate = ISOLATE.with(Rc::clone);
    let Setup { config, job, store, sustain_ms } =
        set_up(group, event.env, event.job, Some(event.cron), host)?;
    if let Some(target) = job {
        // A slot by this isolate's clock would be one that no other copy of the trigger means.
        let slot_ms = Some(event.scheduled_ms).filter(|ms| *ms > 0);
        let schedule = group::schedule_for(&target, group, slot_ms, Some(event.cron), &config)?;
        let handle = Handle::new(driver::new_schedule(host, config, schedule)?);
        let _running = isolate.runs(&handle, host);
        let trigger = Trigger { handle: &handle, host, target, group, env: event.env };
        let call = async |term: Term<'_, Workerd>| match event.job {
            Job::Named => trigger.call(&term).await,
            Job::Own => slot::own(own(term).await),
        };
        return run_slot(&trigger, &store, call).boxed_local().await;
    }
    let Some(leads_for_ms) = tick::leads_for_ms(event.scheduled_ms, host.now(), sustain_ms) else {
        return Ok("outcome=late requests=0".to_owned());
    };
    let handle = Handle::new(driver::new_election(host, config)?);
    let _running = isolate.runs(&handle, host);
    // As the slot above behind a pointer: V8 compiles a function whole, and an event needs one of the two.
    let ticked = tick::tick(&handle, &store, host, leads_for_ms).boxed_local().await;
    let Ticked { term: led, lost } = ticked.map_err(|fault| fault.message)?;
    let requests = handle.requests();
    let led_none = led.is_none();
    let outcome = if led_none { "followed" } else { "led" };
    let term = led.map_or_else(|| "none".to_owned(), |term| term.to_string());
    let requests = (requests.read + requests.write + requests.peer).to_string();
    let mut line = format!("outcome={outcome} term={term} requests={requests}");
    if let Some(reason) = lost {
        line = format!("{line} lost={}", reason.name());
    }
    let now = host.now();
    let waiting = handle.with(|election| {
        let (waiting, left_ms) = election.waiting(now).filter(|_| led_none)?;
        Some(waiting.text(left_ms, election.leader_id(now)))
    });
    if let Some(waiting) = waiting {
        line = format!("{line} waiting={}", quoted(first(&waiting, 120)));
    }
    let problem = handle.with(|election| election.problem().map(Trouble::to_string));
    if let Some(problem) = problem {
        line = format!("{line} problem={}", quoted(&problem));
    }
    let bad = lost.is_some() || handle.with(|election| is_bad(election.problem(), led_none));
    if bad { Err(Problem::Told(line, outcome)) } else { Ok(line) }
}

/// Whether somebody should look at what a tick has met.
fn is_bad(problem: Option<&Trouble>, led_none: bool) -> bool {
    match problem {
        Some(
            Trouble::NewerFormat(_)
            | Trouble::TermTooHigh
            | Trouble::NoEnd
            | Trouble::SharedName(_),
        ) => true,
        // A later tick would fare no better. One that has led has come by.
        Some(
            Trouble::Store(_)
            | Trouble::Contradicted
            | Trouble::MovingVersions
            | Trouble::LongWait
            | Trouble::Unreadable(_)
            | Trouble::LeaseTooLong { .. },
        ) => led_none,
        _ => false,
    }
}

/// Answers `GET /health/leadership`; to whoever shows `EDGELECT_STATUS_TOKEN`, `GET /status.json` and `GET /metrics`; and with
/// `EDGELECT_PAGE` people at `/`. `?group=PATH` asks about one of several groups. Anything else is a 404. It goes on where the
/// client hangs up.
///
/// # Errors
/// The runtime refuses to make an answer.
pub async fn fetch(request: &worker::Request, env: &Env, context: &Context) -> Result<Response> {
    answer(request, env, context, Job::Named).await
}

/// The same for a Worker with a job of its own, whose variables are those of a job: beside [`scheduled_with`].
///
/// # Errors
/// As for [`fetch`].
pub async fn fetch_with(
    request: &worker::Request,
    env: &Env,
    context: &Context,
) -> Result<Response> {
    answer(request, env, context, Job::Own).await
}

/// What a request gets.
enum Shown {
    Json(HealthAnswer),
    Metrics(String),
    Page,
}

async fn answer(
    request: &worker::Request,
    env: &Env,
    context: &Context,
    job: Job,
) -> Result<Response> {
    // Whoever hangs up would end the event: its read would be under way for others until it is too late, and what it holds in
    // the wasm would stay there, since nothing drops it.
    let (_ends, ended) = oneshot::channel::<()>();
    context.wait_until(ended.map(|_| ()));
    let answer = match shown(request, env, job).await {
        Ok(Shown::Json(answer)) => answer,
        Ok(Shown::Metrics(text)) => {
            let response = Response::builder().with_header("cache-control", "no-store")?;
            let response = response.with_header("content-type", metrics::CONTENT_TYPE)?;
            return Ok(response.fixed(text.into_bytes()));
        }
        Ok(Shown::Page) => {
            let mut response = Response::builder();
            for (name, value) in page::headers() {
                response = response.with_header(name, &value)?;
            }
            return Ok(response.fixed(page::HTML.into()));
        }
        Err(error) => {
            console_error!("edgelect: {}", error.message());
            // Names the variable and nothing of its value, which may be a secret in the wrong place.
            let body = serde_json::json!({ "error": "edgelect is not configured", "variable": error.field });
            HealthAnswer::of(500, body.to_string())
        }
    };
    json_response(answer)
}

fn json_response(answer: HealthAnswer) -> Result<Response> {
    let mut response = Response::builder()
        .with_status(answer.status)
        .with_header("content-type", "application/json")?
        .with_header("cache-control", "no-store")?;
    if let Some(version) = answer.etag {
        response = response.with_header("etag", &version.0)?;
    }
    if let Some(seconds) = answer.retry_after_s {
        response = response.with_header("retry-after", &seconds.to_string())?;
    }
    if let Some(proof) = &answer.proof {
        response = response.with_header(peer::PROOF, proof)?;
    }
    if answer.status == 405 {
        response = response.with_header("allow", "GET")?;
    }
    if answer.status == 401 {
        response = response.with_header("www-authenticate", "Bearer")?;
    }
    Ok(response.fixed(answer.body.into_bytes()))
}

async fn shown(
    request: &worker::Request,
    env: &Env,
    job: Job,
) -> std::result::Result<Shown, ConfigError> {
    let none = |what: &str| {
        let body = serde_json::json!({ "error": what }).to_string();
        Ok(Shown::Json(HealthAnswer::of(404, body)))
    };
    // By crate `worker` it would be parsed as a URL, with tables for international names.
    let url = request.inner().url();
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut fields = form_urlencoded::parse(query.as_bytes());
    let named = fields.find_map(|(name, path)| (name == "group").then_some(path));
    let env_entries = env::entries(env);
    let path = request.path();
    let event = Asked { env, job, host: &Workerd::new() };
    // Crate `worker` takes a method that it does not know for GET.
    let is_get = request.inner().method() == "GET";
    if path == peer::PATH && is_get {
        return match groups::of_path(&env_entries, named.as_deref())? {
            Some(group) => event.health(&group, query).await.map(Shown::Json),
            None => none("no such group"),
        };
    }
    let groups = groups::each(&env_entries)?;
    let has_page = || {
        let access = groups.iter().map(|group| vars::access(|name| group.get(name)));
        access.filter_map(std::result::Result::ok).any(|access| access.page)
    };
    match path.as_str() {
        peer::PATH | status::PATH | metrics::PATH => {}
        page::PATH if has_page() => {}
        _ => return none("not found"),
    }
    if !is_get {
        return Ok(Shown::Json(HealthAnswer::wrong_method()));
    }
    if path == page::PATH {
        return Ok(Shown::Page);
    }
    let authorization = request.headers().get("authorization").ok().flatten();
    let mut seen = match visible(&groups, authorization.as_deref())? {
        Ok(seen) => seen,
        Err(refusal) => return Ok(Shown::Json(refusal)),
    };
    if let Some(named) = &named {
        let sees_all = seen.len() == groups.len();
        seen.retain(|group| group.get("EDGELECT_LOCKFILE_PATH").as_deref() == Some(named.as_ref()));
        // Who may not see all groups does not learn which there are.
        match (seen.is_empty(), sees_all) {
            (false, _) => {}
            (true, true) => return none("no such group"),
            (true, false) => return Ok(Shown::Json(unauthorised())),
        }
    }
    if path == metrics::PATH {
        return Ok(Shown::Metrics(event.metrics(&seen).await));
    }
    let body = event.status(&seen, named.is_none() && groups.len() > 1).await?;
    Ok(Shown::Json(HealthAnswer::of(200, body)))
}

/// The groups that a request may see, or what it gets instead. Of several one whose access is misconfigured is seen by nobody,
/// and hides no other.
fn visible<'a>(
    groups: &'a [Group],
    authorization: Option<&str>,
) -> std::result::Result<std::result::Result<Vec<&'a Group>, HealthAnswer>, ConfigError> {
    let (mut seen, mut closed) = (Vec::new(), true);
    for group in groups {
        let access = match vars::access(|name| group.get(name)) {
            Ok(access) => access,
            Err(error) if group.name.is_none() => return Err(group.by_source(error)),
            Err(error) => {
                console_error!("edgelect: {}", group.by_source(error).message());
                closed = false;
                continue;
            }
        };
        let shows = |token: &String| status::is_allowed(authorization, token);
        closed &= access.token.is_none();
        if access.public || access.token.as_ref().is_some_and(shows) {
            seen.push(group);
        }
    }
    if !seen.is_empty() {
        return Ok(Ok(seen));
    }
    if !closed {
        return Ok(Err(unauthorised()));
    }
    let body =
        r#"{"error":"the status is shown to whoever has EDGELECT_STATUS_TOKEN, which is not set"}"#;
    Ok(Err(HealthAnswer::of(404, body.to_owned())))
}

fn unauthorised() -> HealthAnswer {
    let body = r#"{"error":"show EDGELECT_STATUS_TOKEN: Authorization: Bearer TOKEN"}"#;
    HealthAnswer::of(401, body.to_owned())
}

/// A request about groups.
struct Asked<'a> {
    env: &'a Env,
    job: Job,
    host: &'a Workerd,
}

impl Asked<'_> {
    fn set_up(&self, group: &Group) -> std::result::Result<Setup, ConfigError> {
        set_up(group, self.env, self.job, None, self.host).map_err(|error| group.by_source(error))
    }

    async fn health(
        &self,
        group: &Group,
        query: &str,
    ) -> std::result::Result<HealthAnswer, ConfigError> {
        // What is wrong with it is wrong for every path.
        vars::access(|name| group.get(name)).map_err(|error| group.by_source(error))?;
        let Setup { config, store, .. } = self.set_up(group)?;
        let (isolate, bound) = (ISOLATE.with(Rc::clone), is_bound(&store));
        Ok(isolate.health(&config, &store, self.host, bound, query, &[]).await)
    }

    /// With `many`, one that can't be used hides no other.
    async fn status(
        &self,
        groups: &[&Group],
        many: bool,
    ) -> std::result::Result<String, ConfigError> {
        let one = async |group: &Group| {
            let Setup { config, store, .. } = self.set_up(group)?;
            Ok(ISOLATE.with(Rc::clone).status(&config, &store, self.host).await)
        };
        if !many {
            return one(groups[0]).await;
        }
        let all = join_all(groups.iter().map(async |group| {
            one(group).await.unwrap_or_else(|error: ConfigError| {
                let name = group.name.as_deref().unwrap_or_default();
                status::of_nobody(name, &format!("edgelect is not configured: {}", error.field))
            })
        }));
        Ok(format!(r#"{{"groups":[{}]}}"#, all.await.join(",")))
    }

    async fn metrics(&self, groups: &[&Group]) -> String {
        let samples = join_all(groups.iter().map(async |group| {
            let Ok(Setup { config, store, .. }) = self.set_up(group) else {
                return Sample::unusable(group.name.as_deref().unwrap_or_default());
            };
            let (isolate, bound) = (ISOLATE.with(Rc::clone), is_bound(&store));
            isolate.metrics(&config, &store, self.host, bound).await
        }));
        metrics::text(samples.await)
    }
}

fn is_bound(store: &super::AnyStore) -> bool {
    matches!(store, super::AnyStore::Local(_))
}
