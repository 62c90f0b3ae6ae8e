//! A Worker of one's own that writes a report for each cron slot: once, in however many accounts, isolates and
//! triggers it is woken.

use edgelect::Term;
use edgelect::workerd::{self, Workerd};
use wasm_bindgen::prelude::*;
use worker::*;

/// Compiles most of the wasm while the isolate starts, whose CPU Cloudflare counts to no trigger.
#[event(start)]
fn start() {
    workerd::rehearse();
}

/// Not `#[event(scheduled)]`: an error of that never makes Cloudflare count the trigger as failed.
#[wasm_bindgen]
pub async fn scheduled(event: worker_sys::ScheduledEvent, env: Env) -> Result<()> {
    let job = async |term: Term<'_, Workerd>| report(&env, &term).await;
    workerd::scheduled_with(&event.into(), &env, job).await
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    workerd::fetch_with(&request, &env, &context).await
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
        200..=299 => Ok(()),
        status => Err(format!("the report was refused with {status}").into()),
    }
}
