//! A Worker of one's own that writes a report on each cron trigger, once at a time, in however many accounts and
//! isolates it runs.

use std::error::Error;
use std::pin::pin;
use std::rc::Rc;

use edgelect::isolate::Isolate;
use edgelect::peer::{self, HealthAnswer};
use edgelect::workerd::{self, AnyStore, Workerd};
use edgelect::{Handle, Host, Input, lead, new_election};
use futures::future::{Either, select};
use worker::*;

/// How long a trigger may wait for the lease and work, in milliseconds, where `EDGELECT_SUSTAIN` says nothing.
const BUDGET_MS: u64 = 50_000;

thread_local! {
    static ISOLATE: Rc<Isolate<Workerd>> = Rc::default();
}

#[event(scheduled)]
async fn scheduled(_: ScheduledEvent, env: Env, _: ScheduleContext) {
    match trigger(&env).await {
        Ok(outcome) => console_log!("{outcome}"),
        Err(error) => console_error!("{error}"),
    }
}

async fn trigger(env: &Env) -> std::result::Result<&'static str, Box<dyn Error>> {
    let host = Workerd::new();
    let config = workerd::config(workerd::variables(env))?;
    let store = AnyStore::from_env(env, &config.lockfile_path, &host)?;
    let budget_ms = config.sustain_ms.unwrap_or(BUDGET_MS);
    let elector = Handle::new(new_election(&host, config)?);
    let _running = ISOLATE.with(|isolate| isolate.runs(&elector, &host));
    let leading = pin!(lead(&elector, &store, &host, async |term| report(env, term.token).await));
    let led = match select(leading, pin!(host.sleep(budget_ms))).await {
        Either::Left((led, _)) => led?,
        Either::Right((_, leading)) => {
            elector.tell(Input::Stop { park: false });
            leading.await?
        }
    };
    match led {
        Some(done) => done.map(|()| "the report is written").map_err(Into::into),
        None => Ok("no lease within the budget, or the report took longer"),
    }
}

/// The work. Whoever takes the report refuses a token that is lower than one it has seen: this one's authority may
/// have ended while the request was on its way.
async fn report(env: &Env, token: u64) -> Result<()> {
    let headers = Headers::new();
    headers.set("edgelect-token", &token.to_string())?;
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
    Ok(ISOLATE.with(Rc::clone).health(&config, &store, &host).await)
}
