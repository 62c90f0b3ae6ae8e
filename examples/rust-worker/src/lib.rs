//! A Worker of one's own that writes a report for each cron slot: once, in however many accounts, isolates and
//! triggers it is woken.

use std::error::Error;
use std::rc::Rc;

use edgelect::isolate::Isolate;
use edgelect::peer::{self, HealthAnswer};
use edgelect::workerd::{self, AnyStore, Workerd};
use edgelect::{Handle, RunEnd, Schedule, ScheduleSettings, Term, new_schedule, run_scheduled};
use worker::*;

thread_local! {
    static ISOLATE: Rc<Isolate<Workerd>> = Rc::default();
}

#[event(scheduled)]
async fn scheduled(event: ScheduledEvent, env: Env, _: ScheduleContext) {
    match trigger(event.schedule() as u64, &env).await {
        Ok(outcome) => console_log!("{outcome}"),
        Err(error) => console_error!("{error}"),
    }
}

async fn trigger(slot_ms: u64, env: &Env) -> std::result::Result<&'static str, Box<dyn Error>> {
    let host = Workerd::new();
    let config = workerd::config(workerd::variables(env))?;
    let store = AnyStore::from_env(env, &config.lockfile_path, &host)?;
    let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..ScheduleSettings::default() };
    let schedule = Schedule::new(&settings, &config)?;
    let elector = Handle::new(new_schedule(&host, config, schedule)?);
    let _running = ISOLATE.with(|isolate| isolate.runs(&elector, &host));
    let job = async |term: Term<'_, Workerd>| report(env, &term).await;
    let done = run_scheduled(&elector, &store, &host, job).await?;
    for run in done.runs {
        if let RunEnd::Failed(error) = run.end {
            return Err(error.into());
        }
    }
    Ok(done.outcome.name())
}

/// The work. Whoever takes the report refuses a token that is lower than one it has seen: this one's authority may
/// have ended while the request was on its way.
async fn report(env: &Env, term: &Term<'_, Workerd>) -> Result<()> {
    let headers = Headers::new();
    // Not the trigger's own slot where a rerun or a missed one comes first.
    let slot_ms = term.slot_ms.expect("each run of a schedule has its slot");
    headers.set("edgelect-slot", &slot_ms.to_string())?;
    headers.set("edgelect-token", &term.token.to_string())?;
    let mut init = RequestInit::new();
    init.with_method(Method::Post).with_headers(headers);
    let url = env.var("REPORT_URL")?.to_string();
    let answer = Fetch::Request(Request::new_with_init(&url, &init)?).send().await?;
    match answer.status_code() {
        200 => Ok(()),
        status => Err(format!("the report was refused with {status}").into()),
    }
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _: Context) -> Result<Response> {
    if request.path() != peer::PATH {
        return Response::error("not found", 404);
    }
    let answer = match request.method() {
        Method::Get => match health(&env).await {
            Ok(answer) => answer,
            Err(error) => {
                console_error!("{error}");
                return Response::error("edgelect is not configured", 500);
            }
        },
        _ => HealthAnswer::wrong_method(),
    };
    let mut response = Response::builder()
        .with_status(answer.status)
        .with_header("content-type", "application/json")?
        .with_header("cache-control", "no-store")?;
    if let Some(version) = answer.etag {
        response = response.with_header("etag", &version.0)?;
    }
    if answer.status == 405 {
        response = response.with_header("allow", "GET")?;
    }
    Ok(response.fixed(answer.body.into_bytes()))
}

async fn health(env: &Env) -> std::result::Result<HealthAnswer, Box<dyn Error>> {
    let host = Workerd::new();
    let config = workerd::config(workerd::variables(env))?;
    let store = AnyStore::from_env(env, &config.lockfile_path, &host)?;
    let bound = matches!(store, AnyStore::R2(_));
    Ok(ISOLATE.with(Rc::clone).health(&config, &store, &host, bound).await)
}
