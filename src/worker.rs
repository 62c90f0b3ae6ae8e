//! The deployable Worker: an ordinary user of [`workerd`](crate::workerd), whose settings are variables alone.
//!
//! A tick keeps the lease until its `sustain` is over, then parks it for the next tick of the same
//! `serverId`. Nothing is carried from one tick to the next but the record in the store: the isolate may be
//! gone by then, or be another one. `js/worker.js` hands the events over, and replaces an instance that has trapped.

use wasm_bindgen::prelude::*;
use worker::{Context, Env, Request, Response, Result, event, worker_sys};

use crate::workerd;

/// A cron trigger. Not by `#[event(scheduled)]`, whose promise is never rejected: no trigger would count as failed.
///
/// # Errors
/// What failed; the log says why.
#[wasm_bindgen(
    wasm_bindgen = worker::wasm_bindgen,
    wasm_bindgen_futures = worker::wasm_bindgen_futures,
    js_sys = worker::js_sys
)]
pub async fn scheduled(event: worker_sys::ScheduledEvent, env: Env) -> Result<()> {
    workerd::scheduled(&event.into(), &env).await
}

/// What the isolate does while it starts: see [`workerd::rehearse`].
#[wasm_bindgen(wasm_bindgen = worker::wasm_bindgen)]
pub fn rehearse() -> bool {
    workerd::rehearse()
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    workerd::fetch(&request, &env, &context).await
}
